"""The plan of packages in layers, as layers.txt has it."""

import fnmatch

LANGUAGES = ('python', 'c')


class Section:
    """The packages of one language.

    language   one of LANGUAGES
    files      patterns of paths: the files that have to be in a package
    layers     list of lists of packages, from the top to the ground
    stand_ins  patterns of files whose definitions another file has, too
    known      set of (path, path): arrows that are wrong and to go
    """

    def __init__(self, language, files):
        self.language = language
        self.files = files
        self.base = files[0] if files[0].endswith('/') else ''
        self.layers = []
        self.stand_ins = []
        self.known = set()

    def is_stand_in(self, path):
        return any([_matches(path, self.whole(pattern))
                    for pattern in self.stand_ins])

    def whole(self, path):
        """A path of the plan as one from the repository's top."""
        return path[1:] if path.startswith('/') else self.base + path

    def packages_of(self, path):
        """Return the (layer, name) of each package that a file is in."""
        return [(layer, name)
                for layer, packages in enumerate(self.layers)
                for name, patterns in packages
                if any([_matches(path, self.whole(pattern))
                        for pattern in patterns])]


def _matches(path, pattern):
    """A pattern that ends in '/' is a folder with all that is below."""
    if pattern.endswith('/'):
        return path.startswith(pattern)
    return (path.count('/') == pattern.count('/')
            and fnmatch.fnmatchcase(path, pattern))


def read(text):
    """Return the sections of a plan; raise ValueError for a bad line."""
    sections = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.partition('#')[0].strip()
        if not line:
            continue
        try:
            _take(line, sections)
        except (ValueError, IndexError):
            raise ValueError(f'line {number} of the plan makes no sense: '
                             f'{line}') from None
    return sections


def _take(line, sections):
    if line.startswith('['):
        language, _, files = line[1:].partition(']')
        if language not in LANGUAGES:
            raise ValueError
        sections.append(Section(language, files.split()))
        return
    section = sections[-1]
    word, _, rest = line.partition(':')
    if word == 'stand-ins':
        section.stand_ins += rest.split()
    elif word == 'known':
        user, used = rest.split('->')
        section.known.add((section.whole(user.strip()),
                           section.whole(used.strip())))
    else:
        section.layers.append([_package(part) for part in line.split('|')])


def _package(text):
    name, colon, patterns = text.partition(':')
    if not (colon and name.strip() and patterns.split()):
        raise ValueError
    return name.strip(), patterns.split()
