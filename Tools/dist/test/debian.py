"""Small Debians to try things in.  Needs mmdebstrap, and root."""

import pathlib
import subprocess

ROOTS = pathlib.Path(__file__).resolve().parents[3] / 'build/dist/roots'


def must_run(*command, **more):
    subprocess.run(list(map(str, command)), check=True, **more)


def make_archive(name, suite, *options):
    """A tarball of a suite, by mmdebstrap's options; made once and kept."""
    archive = ROOTS / f'{name}.tar'
    if not archive.exists():
        ROOTS.mkdir(parents=True, exist_ok=True)
        part = archive.with_suffix('.part.tar')
        must_run('mmdebstrap', '-q', '--variant=minbase', *options, suite,
                 part, stdout=subprocess.DEVNULL)
        part.rename(archive)
    return archive
