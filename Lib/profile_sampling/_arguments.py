"""The options of a session as arguments of a command line."""

import argparse

from profile_sampling._data.allocations import MODE as ALLOC
from profile_sampling._data.values import MODES, NAMES
from profile_sampling._options import (
    MAX_DEPTH_FRAMES, MAX_RATE_HZ, size_bytes)


def whole(largest):
    """Return the type of an argument that is a number from 1."""
    def number(text):
        if not (text.isascii() and text.isdigit()
                and 1 <= int(text) <= largest):
            raise argparse.ArgumentTypeError(
                f'expected a whole number from 1 to {largest}, not {text!r}')
        return int(text)
    return number


def _size(text):
    size = size_bytes(text)
    if size is None:
        raise argparse.ArgumentTypeError(
            f'expected a size such as 512K or 1M, not {text!r}')
    return size


DEFAULT_RATE_HZ = 1000


def add_rate(parser):
    parser.add_argument(
        '-r', '-F', '--rate', metavar='HZ', type=whole(MAX_RATE_HZ),
        default=DEFAULT_RATE_HZ,
        help='samples per second of each thread (default: '
             f'{DEFAULT_RATE_HZ})')


def add_kind(parser):
    """Add what the samples are of."""
    parser.add_argument(
        '--mode', choices=(*MODES, ALLOC), default='wall',
        help='what the profile is about (default: %(default)s)')
    parser.add_argument(
        '--alloc', action='store_const', const=ALLOC, dest='mode',
        help='the same as --mode alloc: memory alone')
    parser.add_argument(
        '--alloc-bytes', metavar='SIZE', type=_size,
        help='sample allocations, too: a block for each so many bytes, such '
             'as 64K (of memory alone: 512K)')
    parser.add_argument(
        '--depth', metavar='FRAMES', type=whole(MAX_DEPTH_FRAMES),
        help='how many frames of a stack to keep (default: 512)')
    parser.add_argument(
        '--names', choices=NAMES,
        help='what to name beyond Python functions (default: all)')
