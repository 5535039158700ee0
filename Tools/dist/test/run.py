"""Try a tarball for real: in several places, as nobody, on other systems.

usage: run.py ARCHIVE [SYSTEM]...

Unpacks ARCHIVE in two places, one with a space in its path, makes it
read-only and lets inside.py look at it as nobody; then again in a Debian of
each SYSTEM (bullseye, bookworm, trixie and redhat, if none is named; `none`
for no system).  `redhat` is a Debian with certificates and terminals where
Red Hat has them; `image` builds the image for docker and uses it (image.py).
Needs root for all but the first, and mmdebstrap.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import debian
import image
from debian import must_run

HERE = pathlib.Path(__file__).resolve().parent
SYSTEMS = ['bullseye', 'bookworm', 'trixie', 'redhat']
REQUIREMENTS = HERE / 'requirements.txt'

# What inside.py wants of a system: a compiler, and what lies in known places.
PACKAGES = 'ca-certificates,gcc,libc6-dev,ncurses-base,tzdata'

# Wheels for the oldest glibc that the interpreter itself starts on; pip would
# choose by the glibc of this machine.
FOR_OLD_SYSTEMS = [f'--platform={tag}_x86_64' for tag in (
    'manylinux_2_28', 'manylinux_2_27', 'manylinux_2_24', 'manylinux2014')]

NOBODY = {'user': 65534, 'group': 65534, 'extra_groups': []}


def unpack(archive, place):
    """A read-only copy of the interpreter, and its path."""
    place.mkdir(parents=True)
    must_run('tar', '-xzf', archive, '-C', place)
    must_run('chmod', '-R', 'a-w', place / 'python')
    return place / 'python/bin/python3'


def prepare_wheels(python, scratch):
    """Wheels for inside.py, and the certificates of an authority."""
    wheels = scratch / 'wheels'
    wheels.mkdir()
    must_run(python, '-m', 'venv', scratch / 'venv')
    own = scratch / 'venv/bin/python'
    must_run(own, '-m', 'pip', 'download', '-q', '--only-binary', ':all:',
             '-d', wheels, '-r', REQUIREMENTS, *FOR_OLD_SYSTEMS)
    must_run(own, '-m', 'pip', 'install', '-q', '--no-index', '--find-links',
             wheels, 'cryptography')
    must_run(own, HERE / 'certificates.py', wheels)
    (wheels / 'SERVER.pem').chmod(0o644)
    return wheels


def as_nobody():
    if os.geteuid() == 0:
        return NOBODY
    print('run.py: note: not root, so this is tried as the present user',
          file=sys.stderr)
    return {}


def try_place(python, wheels, scratch):
    home = pathlib.Path(tempfile.mkdtemp(dir=scratch))
    home.chmod(0o777)
    tests = scratch / 'tests'
    if not tests.exists():
        shutil.copytree(HERE, tests)
    must_run(python, tests / 'inside.py', wheels, home, cwd='/',
             env={'PATH': '/usr/bin:/bin', 'LANG': 'C.UTF-8'}, **as_nobody())


def trust(system, certificate):
    """Add an authority as the system's administrator does."""
    to = system / 'usr/local/share/ca-certificates/test.crt'
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(certificate, to)
    must_run('chroot', system, 'update-ca-certificates',
             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def move_as_red_hat_has_it(system):
    """Certificates in /etc/pki only, terminals in /usr/share only."""
    bundle = system / 'etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem'
    bundle.parent.mkdir(parents=True)
    shutil.copyfile(system / 'etc/ssl/certs/ca-certificates.crt', bundle)
    shutil.rmtree(system / 'etc/ssl')
    must_run('cp', '-r', system / 'lib/terminfo', system / 'usr/share')
    shutil.rmtree(system / 'lib/terminfo')


def make_system(name, archive, wheels, scratch):
    system = scratch / name
    system.mkdir()
    suite = 'bookworm' if name == 'redhat' else name
    must_run('tar', '-xf',
             debian.make_archive(suite, suite, f'--include={PACKAGES}'),
             '-C', system, '--exclude=./dev/*')
    # A system of its own for the names, too.
    (system / 'etc/hosts').write_text('127.0.0.1 localhost\n')
    trust(system, wheels / 'CA.pem')
    if name == 'redhat':
        move_as_red_hat_has_it(system)
    unpack(archive, system / 'srv/it stands here')
    shutil.copytree(wheels, system / 'srv/wheels')
    shutil.copytree(HERE, system / 'srv/tests')
    (system / 'srv/home').mkdir()
    (system / 'srv/home').chmod(0o777)
    return system


# Mounts are seen by this command alone and go with it.
INSIDE = '''
mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" &&
exec chroot --userspec=65534:65534 "$1" /usr/bin/env -i INSIDE_TRUSTED=1 \\
    PATH=/usr/bin:/bin LANG=C.UTF-8 "/srv/it stands here/python/bin/python3" \\
    /srv/tests/inside.py /srv/wheels /srv/home
'''


def try_system(name, archive, wheels, scratch):
    system = make_system(name, archive, wheels, scratch)
    print(f'{name}: ', end='', flush=True)
    must_run('unshare', '--mount', '--propagation', 'private', 'sh', '-c',
             INSIDE, 'sh', system)


def try_all(archive, systems, scratch):
    python = unpack(archive, scratch / 'one')
    spaced = unpack(archive, scratch / 'two with spaces/ä')
    wheels = prepare_wheels(python, scratch)
    must_run('chmod', '-R', 'a+rX', wheels)
    for place in (python, spaced):
        try_place(place, wheels, scratch)
    for system in systems:
        if system == 'image':
            image.try_image(archive, wheels)
        else:
            try_system(system, archive, wheels, scratch)


def main():
    archive, *systems = sys.argv[1:]
    systems = systems or SYSTEMS
    if systems == ['none']:
        systems = []
    if systems and (os.geteuid() != 0 or not shutil.which('mmdebstrap')):
        raise SystemExit('run.py: error: other systems need root and '
                         'mmdebstrap ("./configure --install-deps"); "none" '
                         'as the last argument leaves them out')
    if 'image' in systems and not image.has_docker():
        raise SystemExit('run.py: error: image needs docker, and its daemon')
    with tempfile.TemporaryDirectory(prefix='dist-test-') as scratch:
        os.chmod(scratch, 0o755)
        try_all(pathlib.Path(archive).resolve(), systems,
                pathlib.Path(scratch))


if __name__ == '__main__':
    try:
        main()
    except subprocess.CalledProcessError as failed:
        raise SystemExit(f'run.py: error: {failed}')
