"""Checks that files use each other one way: see layers.txt.

usage: python Tools/layers/check.py [--plan FILE] [--top DIRECTORY]

A fault is an arrow that runs up or to a neighbour, a circle of files, or a
file in no package.  All are printed; the exit status is 1 if there is one.
"""

import argparse
import pathlib
import sys

import c_arrows
import plan
import python_arrows

ENDINGS = {'python': ('.py',), 'c': ('.c', '.h')}


def sources_of(section, top):
    """Return the texts of a section's files, by path."""
    sources = {}
    for file in sorted({file for pattern in section.files
                        for file in top.glob(_as_glob(pattern))}):
        if file.suffix in ENDINGS[section.language] and file.is_file():
            sources[file.relative_to(top).as_posix()] = (
                file.read_text(encoding='utf-8'))
    return sources


def _as_glob(pattern):
    return f'{pattern}**/*' if pattern.endswith('/') else pattern


def faults_of(section, top):
    """Return what is wrong in a section, and how many files it has."""
    sources = sources_of(section, top)
    if not sources:
        return [f'no file is like {" ".join(section.files)}'], 0
    if section.language == 'c':
        arrows = c_arrows.arrows(sources, section.is_stand_in)
    else:
        arrows = python_arrows.arrows(sources)
    try:
        arrows = list(arrows)
    except ValueError as exc:
        return [str(exc)], len(sources)
    faults = _homeless(section, sources)
    unknown = [arrow for arrow in arrows
               if (arrow[0], arrow[2]) not in section.known]
    faults += _wrong_ways(section, unknown)
    faults += _circles(unknown)
    drawn = {(user, used) for user, _, used, _ in arrows}
    faults += [f'{user} -> {used} is known as wrong, but it is gone: take '
               'that line out of the plan'
               for user, used in sorted(section.known - drawn)]
    return faults, len(sources)


def _homeless(section, sources):
    faults = []
    for path in sources:
        packages = section.packages_of(path)
        if not packages:
            faults.append(f'{path} is in no package')
        elif len(packages) > 1:
            names = ' and '.join([name for _, name in packages])
            faults.append(f'{path} is in several packages: {names}')
    return faults


def _wrong_ways(section, arrows):
    faults = []
    for user, line, used, what in arrows:
        above = section.packages_of(user)[:1]
        below = section.packages_of(used)[:1]
        if not above or not below or above == below:
            continue
        [(layer, package)], [(its_layer, its_package)] = above, below
        if layer >= its_layer:
            where = 'above' if its_layer < layer else 'beside'
            faults.append(f'{user}:{line} -> {used} ({what}): "{its_package}" '
                          f'is {where} "{package}"')
    return faults


def _circles(arrows):
    """Return a fault for each knot of files that use each other."""
    why = {}
    for user, line, used, what in arrows:
        why.setdefault(user, {}).setdefault(
            used, f'{user}:{line} -> {used} ({what})')
    faults = []
    seen = set()
    for start in sorted(why):
        if start not in seen and (way := _way_back(start, why)):
            seen.update(way)
            faults.append('a circle:\n    ' + '\n    '.join(
                [why[user][used] for user, used
                 in zip(way, [*way[1:], start])]))
    return faults


def _way_back(start, why):
    """Return the shortest way from a file to itself, or None."""
    ways = {start: [start]}
    queue = [start]
    while queue:
        at = queue.pop(0)
        for used in why.get(at, ()):
            if used == start:
                return ways[at]
            if used not in ways:
                ways[used] = [*ways[at], used]
                queue.append(used)
    return None


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('--plan', type=pathlib.Path, metavar='FILE',
                        default=here / 'layers.txt')
    parser.add_argument('--top', type=pathlib.Path, metavar='DIRECTORY',
                        default=here.parents[1])
    options = parser.parse_args()
    n_faults = n_files = 0
    for section in plan.read(options.plan.read_text(encoding='utf-8')):
        faults, n = faults_of(section, options.top)
        for fault in faults:
            print(fault)
        n_faults += len(faults)
        n_files += n
    print(f'{n_files} files, {n_faults} faults')
    return 1 if n_faults else 0


if __name__ == '__main__':
    sys.exit(main())
