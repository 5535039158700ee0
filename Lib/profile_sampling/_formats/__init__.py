"""Which formats there are, and which one a file name asks for.

Each writer is imported only when it is used.
"""

import os

from profile_sampling import _files
from profile_sampling._data import checks

# Format: the extensions that ask for it, compared at the end of the name,
# without case.  The first is that of a file that the format alone names; of
# two that fit, the longer counts.
FORMATS = {
    'pprof': ('.pb.gz', '.pprof', '.pb'),
    'collapsed': ('.collapsed', '.folded'),
    'text': ('.txt',),
    'speedscope': ('.speedscope.json',),
    'pstats': ('.pstats', '.prof'),
    'svg': ('.svg',),
    'profile-json': ('.json',),
    'callgrind': ('.callgrind',),
    'dot': ('.dot', '.gv'),
    'gecko': ('.gecko.json',),
    'gecko-gz': ('.gecko.json.gz',),
    'html': ('.html', '.htm'),
}
# The same of what a report is for other programs.  A file that ends in .json
# has the whole profile.
REPORTS = {'json': (), 'tsv': ('.tsv',), 'markdown': ('.md',)}
# The same of what a difference is written in.
CHANGES = {'text': FORMATS['text'], 'json': ('.json',),
           'markdown': REPORTS['markdown'], 'tsv': REPORTS['tsv'],
           'html': FORMATS['html']}
PPROF = FORMATS['pprof']
# What a process writes itself when it ends; record makes the others afterwards.
AT_EXIT = 'pprof', 'collapsed', 'text'
# What can hold a time line.
WITH_TIMELINE = 'pprof', 'html', 'speedscope', 'gecko', 'gecko-gz'
# What shows threads that had nothing to do only if it is asked for; the others
# have all that there is.
WITHOUT_IDLE = ('collapsed', 'text', 'speedscope', 'pstats', 'svg',
                'callgrind', 'dot', 'gecko', 'gecko-gz')
# The modules of formats with other names.
_MODULES = {'pprof': 'pprof.writer', 'profile-json': 'json',
            'gecko-gz': 'gecko_gz'}
# What is no text.
BINARY = 'pprof', 'pstats', 'gecko-gz'


def choose(path, format=None, known=FORMATS):
    """Return the format for *path*, or *format* itself if it is given.

    The name of an open file, such as /dev/stdout, has no extension: pprof.
    Raise ValueError when it is not one of those *known*, with these.
    """
    if format is not None:
        if format not in known:
            raise ValueError(f'unknown format {format!r}; '
                             f'known formats: {", ".join(known)}')
        return format
    if _files.descriptor(path) is not None:
        return 'pprof'
    name = os.path.basename(os.fsdecode(path)).lower()
    asked_for = [(len(extension), format)
                 for extension, format in by_extension(known).items()
                 if name.endswith(extension)]
    if asked_for:
        return max(asked_for)[1]
    # What KCachegrind looks for; Callgrind puts the number of the process
    # at the end.
    if name.startswith('callgrind.out') and 'callgrind' in known:
        return 'callgrind'
    if os.path.isdir(path):
        raise ValueError(f'{os.fsdecode(path)!r} is a directory; give the '
                         'name of a file in it')
    raise ValueError(f'cannot tell the format from the name '
                     f'{os.fsdecode(path)!r}; known extensions: '
                     f'{", ".join(by_extension(known))}; or give a format: '
                     f'{", ".join(known)}')


def by_extension(known=FORMATS):
    """Return {extension: format}."""
    return {extension: format for format, extensions in known.items()
            for extension in extensions}


def extension(format):
    """Return the extension of a file that the format alone names."""
    return FORMATS[format][0]


def options_of(format, *, source=True, idle=False):
    """Return the options of encode() as a dict.

    *source* is whether a page has the text of
    functions, or a directory or several that it may be from; with *idle*,
    threads that had nothing to do are in files that leave them out.

    Raise ValueError for one that the format does not have.
    """
    options = {}
    if source is not True:
        if format != 'html':
            raise ValueError(f'only pages have sources, not {format}')
        roots = [source] if isinstance(source, os.PathLike) else (
            source and checks.texts('source', source))
        options |= ({'source_roots': list(map(os.fspath, roots))} if roots
                    else {'with_source': False})
    if idle and format in WITHOUT_IDLE:
        options['idle'] = True
    return options


def check_at_exit(format):
    """Raise ValueError if no process writes this format when it ends."""
    if format not in AT_EXIT:
        raise ValueError(
            f'a program that ends does not write {format}, but '
            f'{", ".join(AT_EXIT)}: write a .pb.gz file, and convert it by '
            'python -m profile_sampling report -o OUT FILE; or let record -o '
            'OUT do both')


def check_timeline(format):
    """Raise ValueError if files of this format have no time line."""
    if format not in WITH_TIMELINE:
        raise ValueError(f'a {format} file has no time line: choose one of '
                         + ', '.join(WITH_TIMELINE))


def encoder(format):
    """Return the function that makes bytes of tables in *format*."""
    encode = _encoder(format)
    if format not in WITHOUT_IDLE or format == 'text':
        return encode
    from profile_sampling._data.idle import shown

    def encode_busy(tables, *, idle=False, **options):
        return encode(shown(tables, idle), **options)
    return encode_busy


def _encoder(format):
    if format not in FORMATS:
        raise ValueError(f'unknown format {format!r}')
    name = _MODULES.get(format, format)
    return __import__(f'{__name__}.{name}', fromlist=['encode']).encode


def encode(tables, format, **options):
    """Return the bytes of a profile's *tables* in *format*."""
    return encoder(format)(tables, **options)


def write(tables, path, **options):
    """Write a profile's *tables* to a file; its name says in which format.

    It has no {pid} any more, but a directory may be called so.
    """
    _files.replace(path, encode(tables, choose(path), **options))


def fixed(path):
    """Return the function that returns *path* with_pid(), from the directory
    that is the current one now."""
    path = os.fspath(path)
    if os.path.isabs(path):
        return lambda: with_pid(path)
    here = os.getcwdb() if isinstance(path, bytes) else os.getcwd()
    return lambda: os.path.join(here, with_pid(path))


def with_pid(path):
    """Put the number of this process for '{pid}' in a file name."""
    path = os.fspath(path)
    if isinstance(path, bytes):
        return path.replace(b'{pid}', b'%d' % os.getpid())
    return path.replace('{pid}', str(os.getpid()))
