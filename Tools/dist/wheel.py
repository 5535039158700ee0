"""Pack the library as a wheel that reads profiles on any Python.

usage: wheel.py DIRECTORY

Writes profile_sampling-VERSION-py3-none-any.whl there: Lib/profile_sampling
as it is, and the command profile-sampling.  The version is that of CPython
with the date of the source, SOURCE_DATE_EPOCH, by which the same files always
give the same bytes.
"""

import base64
import hashlib
import os
import pathlib
import re
import sys
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'Lib' / 'profile_sampling'
METADATA = '''\
Metadata-Version: 2.1
Name: profile-sampling
Version: {version}
Summary: Reads, reports and converts profiles that CPython takes of itself
License: PSF-2.0
Requires-Python: >=3.11
Description-Content-Type: text/plain

Profiles of CPython {upstream} with the sampling profiler inside are read,
reported, compared, merged and converted by this package, on any system and
any Python from 3.11 on:

    profile-sampling report sampleprof.4711.pb.gz

Recording takes that interpreter, which has the package already.
'''
WHEEL = '''\
Wheel-Version: 1.0
Generator: wheel.py
Root-Is-Purelib: true
Tag: py3-none-any
'''
SCRIPTS = '''\
[console_scripts]
profile-sampling = profile_sampling._cli.main:main
'''


def main(directory):
    upstream = re.search(r'(?m)^upstream_version=(\S+)$',
                         (ROOT / 'upstream.conf').read_text())[1]
    date = time.gmtime(int(os.environ['SOURCE_DATE_EPOCH']))
    version = f'{upstream}.post{time.strftime("%Y%m%d", date)}'
    info = f'profile_sampling-{version}.dist-info'
    files = {
        path.relative_to(PACKAGE.parent).as_posix(): path.read_bytes()
        for path in sorted(PACKAGE.rglob('*'))
        if path.is_file() and '__pycache__' not in path.parts}
    files |= {
        f'{info}/METADATA': METADATA.format(
            version=version, upstream=upstream).encode(),
        f'{info}/WHEEL': WHEEL.encode(),
        f'{info}/entry_points.txt': SCRIPTS.encode(),
        f'{info}/licenses/LICENSE': (ROOT / 'LICENSE').read_bytes()}
    record = f'{info}/RECORD'
    files[record] = ''.join([
        f'{name},sha256={digest(data)},{len(data)}\n'
        for name, data in files.items()] + [f'{record},,\n']).encode()
    target = pathlib.Path(directory,
                          f'profile_sampling-{version}-py3-none-any.whl')
    target.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(target, 'w', zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, date[:6])
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    print(target)


def digest(data):
    found = hashlib.sha256(data).digest()
    return base64.urlsafe_b64encode(found).rstrip(b'=').decode()


if __name__ == '__main__':
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
