"""Write down what a tarball is made of, as SPDX 2.3 in JSON.

usage: sbom.py ARCHIVE TREE

Writes ARCHIVE.spdx.json: the interpreter, CPython's source and its security
fixes, the parts of others that CPython's source holds, the libraries that are
linked in with the Debian packages they are from, the compiler, and pip.  The
same archive always gives the same text.
"""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import time
import urllib.parse

import settings

# These are compiled with, and none of their code is in the archive.
NOT_LINKED = ('libc6', 'linux-libc-dev', 'libtinfo6', 'libbz2-1.0')


def spdx_id(*words):
    return 'SPDXRef-' + re.sub(r'[^A-Za-z0-9.-]+', '-', '-'.join(words))


def package(name, version, **more):
    return {
        'SPDXID': spdx_id('Package', name, version),
        'name': name,
        'versionInfo': version,
        'downloadLocation': 'NOASSERTION',
        'filesAnalyzed': False,
        'licenseConcluded': 'NOASSERTION',
        'licenseDeclared': 'NOASSERTION',
        'copyrightText': 'NOASSERTION',
    } | more


def sha256(digest):
    return [{'algorithm': 'SHA256', 'checksumValue': digest}]


def digest_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def purl(kind, name, version):
    return [{
        'referenceCategory': 'PACKAGE-MANAGER',
        'referenceType': 'purl',
        'referenceLocator':
            f'pkg:{kind}/{name}@{urllib.parse.quote(version)}',
    }]


def cpython(conf):
    return package(
        'CPython', conf['upstream_version'],
        downloadLocation=conf['upstream_url'], licenseDeclared='PSF-2.0',
        checksums=sha256(conf['upstream_sha256']))


def applied_fixes(conf):
    """From Debian's series, the part that Tools/build/tree.sh applies."""
    with tarfile.open(conf['debian_tarball']) as tar:
        text = tar.extractfile('debian/patches/series').read().decode()
    names = [line.split()[0] for line in text.splitlines()
             if line.strip() and not line.startswith('#')]
    first = names.index(conf['debian_first_security_patch'])
    return [name.removesuffix('.patch') for name in names[first:]]


def security_fixes(conf):
    tarball = pathlib.Path(conf['debian_tarball'])
    if not tarball.name:
        return []
    version = tarball.name.split('_')[1].removesuffix('.debian.tar.xz')
    return [package(
        conf['debian_source'], version, checksums=sha256(digest_of(tarball)),
        externalRefs=purl('deb/debian', conf['debian_source'], version),
        comment='applied to CPython: ' + ', '.join(applied_fixes(conf)))]


def bundled_by_cpython():
    """What CPython's own list says its source holds of others."""
    listed = json.loads(
        (settings.ROOT / 'build/src/Misc/sbom.spdx.json').read_text())
    for found in listed['packages']:
        more = {key: found[key] for key in (
            'checksums', 'downloadLocation', 'externalRefs',
            'licenseConcluded') if key in found}
        yield package(found['name'], found['versionInfo'], **more)


def debian_packages():
    """(whether its code is in the archive, package), for each of them."""
    sums = settings.ROOT / 'build/dist/sysroot/SHA256SUMS'
    for line in sums.read_text().splitlines():
        digest, file = line.split()
        name, version, _ = urllib.parse.unquote(file).split('_')
        yield not name.startswith(NOT_LINKED), package(
            name, version, checksums=sha256(digest),
            externalRefs=purl('deb/debian', name, version))


def pip(tree):
    info, = tree.glob('lib/python3.*/site-packages/pip-*.dist-info')
    version = info.name.removeprefix('pip-').removesuffix('.dist-info')
    return package('pip', version, licenseDeclared='MIT',
                   externalRefs=purl('pypi', 'pip', version))


def compiler():
    version = subprocess.run(['gcc', '-dumpfullversion'], check=True,
                             text=True, stdout=subprocess.PIPE).stdout
    return package('gcc', version.strip())


def related(first, relation, second):
    return {'spdxElementId': first['SPDXID'], 'relationshipType': relation,
            'relatedSpdxElement': second['SPDXID']}


def parts(conf, tree):
    """(relationship, package), for all that the archive is made of."""
    for part in [cpython(conf), *security_fixes(conf)]:
        yield 'GENERATED_FROM', part
    for part in bundled_by_cpython():
        yield 'CONTAINS', part
    for linked, part in debian_packages():
        yield 'STATIC_LINK' if linked else 'BUILD_DEPENDENCY_OF', part
    yield 'CONTAINS', pip(tree)
    yield 'BUILD_TOOL_OF', compiler()


def document(archive, tree):
    conf = settings.read()
    digest = digest_of(archive)
    whole = package(
        conf['dist_name'], conf['upstream_version'],
        packageFileName=archive.name, licenseDeclared='PSF-2.0',
        checksums=sha256(digest))
    packages = {}
    relationships = [{'spdxElementId': 'SPDXRef-DOCUMENT',
                      'relationshipType': 'DESCRIBES',
                      'relatedSpdxElement': whole['SPDXID']}]
    for relation, part in parts(conf, tree):
        packages.setdefault(part['SPDXID'], part)
        ends = (part, whole) if relation.endswith('_OF') else (whole, part)
        relationships.append(related(ends[0], relation, ends[1]))
    created = time.gmtime(int(os.environ['SOURCE_DATE_EPOCH']))
    return {
        'spdxVersion': 'SPDX-2.3',
        'dataLicense': 'CC0-1.0',
        'SPDXID': 'SPDXRef-DOCUMENT',
        'name': archive.name,
        'documentNamespace': f'urn:sha256:{digest}',
        'creationInfo': {
            'created': time.strftime('%Y-%m-%dT%H:%M:%SZ', created),
            'creators': ['Tool: Tools/dist/sbom.py'],
        },
        'packages': [whole, *packages.values()],
        'relationships': relationships,
    }


def main():
    archive, tree = map(pathlib.Path, sys.argv[1:])
    text = json.dumps(document(archive, tree), indent=1) + '\n'
    archive.with_name(archive.name + '.spdx.json').write_text(text)


if __name__ == '__main__':
    main()
