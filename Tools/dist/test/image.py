"""The image that takes the place of python:3.13-slim, built and used.

Needs root, docker with a daemon, and mmdebstrap.  The Debian that the image
begins with is made here, as Debian makes the slim ones that it publishes: no
other registry is asked.
"""

import pathlib
import shutil
import subprocess

import debian
from debian import must_run

BASE, IMAGE = 'dist-test-debian-slim', 'dist-test-python'

# Left out of a slim Debian; copyrights stay.
LEFT_OUT = [f'--dpkgopt=path-exclude=/usr/share/{path}/*'
            for path in ('doc', 'info', 'locale', 'man')]
KEPT = ['--dpkgopt=path-include=/usr/share/doc/*/copyright',
        '--dpkgopt=path-include=/usr/share/locale/locale.alias']

# What has to be fetched for python:3.13-slim-trixie of 5 August 2026 (3.13.14),
# and how much more ours may take.
PUBLISHED_BYTES = 42_961_458
MOST = 1.1

# Run in the image as a user that has no name, who can write to /tmp only.
USES = '''
set -e
test "$(command -v python3)" = /usr/local/bin/python3
pip --version
python3 -c 'import ssl, zoneinfo
assert len(ssl.create_default_context().get_ca_certs()) > 100
zoneinfo.ZoneInfo("Europe/Berlin")'
python3 -m venv /tmp/venv
/tmp/venv/bin/pip install -q --no-index --find-links /wheels numpy
/tmp/venv/bin/python -X sampleprof=wall,out=/tmp/p.pb.gz -c '
import numpy as np
for _ in range(100):
    np.linalg.inv(np.random.rand(200, 200))'
/tmp/venv/bin/python -m profile_sampling report /tmp/p.pb.gz | grep -q inv
'''


def has_docker():
    return shutil.which('docker') is not None and subprocess.run(
        ['docker', 'version'], capture_output=True).returncode == 0


def make_base(suite):
    """A slim Debian as a base image."""
    archive = debian.make_archive(f'{suite}-slim', suite, *LEFT_OUT, *KEPT)
    must_run('docker', 'import', archive, BASE, stdout=subprocess.DEVNULL)


def bytes_to_fetch(image):
    """As a registry keeps it: packed by gzip."""
    count = 0
    with subprocess.Popen(['docker', 'save', image],
                          stdout=subprocess.PIPE) as saving, \
            subprocess.Popen(['gzip', '-6'], stdin=saving.stdout,
                             stdout=subprocess.PIPE) as packing:
        while block := packing.stdout.read(1 << 20):
            count += len(block)
    if saving.returncode or packing.returncode:
        raise SystemExit(f'image.py: error: cannot save {image}')
    return count


def try_image(archive, wheels):
    """`archive`: the tarball, beside which "make dist" put docker/."""
    make_base('trixie')
    context = pathlib.Path(archive).parent / 'docker'
    must_run('docker', 'build', '-q', '--network=host', '--build-arg',
             f'BASE={BASE}', '-t', IMAGE, context, stdout=subprocess.DEVNULL)
    must_run('docker', 'run', '--rm', '--network=none', '--read-only',
             '--tmpfs=/tmp:exec', '--env=HOME=/tmp', '--user=65534:65534',
             '-v', f'{wheels}:/wheels:ro', IMAGE, 'sh', '-c', USES,
             stdout=subprocess.DEVNULL)
    count = bytes_to_fetch(IMAGE)
    ratio = count / PUBLISHED_BYTES
    print(f'image: pip, certificates, time zones, NumPy in a virtual '
          f'environment, a profile: ok; {count:,} bytes to fetch, '
          f'{ratio:.3f} of what python:3.13-slim takes')
    if ratio > MOST:
        raise SystemExit(f'image.py: error: that is more than {MOST}')
