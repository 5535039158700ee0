"""Write what lets other tools install a tarball.

usage: offers.py ARCHIVE URL

URL is the directory that the tarball will be fetched from, such as
https://example.org/downloads or file:///srv/downloads.  Writes beside
ARCHIVE:

  downloads.json       for uv, named by UV_PYTHON_DOWNLOADS_JSON_URL
  VERSION-sampleprof   a definition for pyenv
  docker/              all that `docker build` needs
"""

import json
import os
import pathlib
import shutil
import sys
import urllib.parse

import settings

PYENV = '''\
# {name} {version}: installed as it is, nothing is compiled.
install_package "python" "{url}#{digest}" copy
'''


def digest_of(archive):
    """The digest that pack.py wrote, of the very file that is there."""
    return archive.with_name(archive.name + '.sha256').read_text().split()[0]


def uv_downloads(version, machine, build, url, digest):
    major, minor, patch = map(int, version.split('.'))
    return {f'cpython-{version}-linux-{machine}-gnu': {
        'name': 'cpython',
        'arch': {'family': machine, 'variant': None},
        'os': 'linux',
        'libc': 'gnu',
        'major': major,
        'minor': minor,
        'patch': patch,
        'prerelease': '',
        'url': url,
        'sha256': digest,
        'variant': None,
        'build': build,
    }}


def write_docker(archive, version):
    """A directory whose only file that is not ours is the tarball."""
    to = archive.parent / 'docker'
    shutil.rmtree(to, ignore_errors=True)
    to.mkdir()
    text = (settings.ROOT / 'Tools/dist/docker/Dockerfile').read_text()
    (to / 'Dockerfile').write_text(text.replace('@VERSION@', version))
    os.link(archive, to / 'python.tar.gz')


def main():
    archive, base = pathlib.Path(sys.argv[1]), sys.argv[2].rstrip('/')
    conf = settings.read()
    version = conf['upstream_version']
    machine = os.uname().machine
    build = archive.name.partition('+')[2].partition('-')[0]
    # "+" means a space in some places.
    url = f'{base}/{urllib.parse.quote(archive.name)}'
    digest = digest_of(archive)
    (archive.parent / 'downloads.json').write_text(json.dumps(
        uv_downloads(version, machine, build, url, digest), indent=1) + '\n')
    (archive.parent / f'{version}-sampleprof').write_text(PYENV.format(
        name=conf['dist_name'], version=version, url=url, digest=digest))
    write_docker(archive, version)


if __name__ == '__main__':
    main()
