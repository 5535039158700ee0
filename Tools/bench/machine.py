"""Where a measurement was made: facts without which numbers mean little."""

import gzip
import os
import pathlib
import platform
import subprocess
import sys
import sysconfig
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def facts():
    """Facts by name, all of them strings."""
    return {
        'date': time.strftime('%Y-%m-%d %H:%M:%S %z'),
        'commit': _commit(),
        'python': sys.version.replace('\n', ' '),
        'flags': sysconfig.get_config_var('PY_CFLAGS') or 'unknown',
        'cpu': f'{os.cpu_count()} x {_cpu_model()}',
        'kernel': f'{platform.release()} {platform.version()}',
        'kernel HZ': _kernel_hz(),
        'load': load(),
    }


def load():
    try:
        return ' '.join([f'{x:.2f}' for x in os.getloadavg()])
    except OSError:
        return 'unknown'


def is_busy():
    """Does something else keep a core busy?  Timings say less then."""
    return os.getloadavg()[0] > os.cpu_count() / 2


def _commit():
    try:
        commit = _git('rev-parse', '--short=12', 'HEAD')
        return commit + ('+changes' if _git('status', '--porcelain') else '')
    except (OSError, subprocess.CalledProcessError):
        return 'unknown'


def _git(*args):
    return subprocess.run(['git', '-C', str(ROOT), *args], check=True,
                          capture_output=True, text=True).stdout.strip()


def _cpu_model():
    try:
        with open('/proc/cpuinfo') as lines:
            for line in lines:
                if line.startswith(('model name', 'Model', 'uarch')):
                    return line.split(':', 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _kernel_hz():
    """CONFIG_HZ, where the kernel tells its configuration."""
    for path, opener in (('/proc/config.gz', gzip.open),
                         (f'/boot/config-{platform.release()}', open)):
        try:
            with opener(path, 'rt') as lines:
                for line in lines:
                    if line.startswith('CONFIG_HZ='):
                        return line.partition('=')[2].strip()
        except OSError:
            continue
    return 'unknown'
