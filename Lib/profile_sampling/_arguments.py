"""The options of a session as arguments of a command line."""

import argparse

from profile_sampling._data.values import MODES, NAMES
from profile_sampling._options import MAX_DEPTH_FRAMES, MAX_RATE_HZ


def whole(largest):
    """Return the type of an argument that is a number from 1."""
    def number(text):
        if not (text.isascii() and text.isdigit()
                and 1 <= int(text) <= largest):
            raise argparse.ArgumentTypeError(
                f'expected a whole number from 1 to {largest}, not {text!r}')
        return int(text)
    return number


def add_rate(parser):
    parser.add_argument(
        '-r', '-F', '--rate', metavar='HZ', type=whole(MAX_RATE_HZ),
        default=1000, help='samples per second of each thread (default: '
                           '%(default)s)')


def add_kind(parser):
    """Add what the samples are of."""
    parser.add_argument(
        '--mode', choices=MODES, default='wall',
        help='what the profile is about (default: %(default)s)')
    parser.add_argument(
        '--depth', metavar='FRAMES', type=whole(MAX_DEPTH_FRAMES),
        help='how many frames of a stack to keep (default: 512)')
    parser.add_argument(
        '--names', choices=NAMES,
        help='what to name beyond Python functions (default: all)')
