"""Which files of a package import which, also in functions."""

import ast


def arrows(sources):
    """Yield (path, line, path, what) for each import of a file by another.

    *sources* is a dict of texts by path.
    """
    files = {_module(path): path for path in sources}
    for path, text in sources.items():
        package = _module(path)
        if not path.endswith('/__init__.py'):
            package = package.rpartition('.')[0]
        for node in ast.walk(ast.parse(text, path)):
            for name in _imported(node, package, files):
                used = files.get(name)
                if used not in (None, path):
                    yield path, node.lineno, used, 'imports it'


def _module(path):
    """Lib/a/b.py is a.b, and Lib/a/__init__.py is a."""
    parts = path.removesuffix('.py').split('/')
    if 'Lib' in parts:
        parts = parts[parts.index('Lib') + 1:]
    if parts[-1] == '__init__':
        parts.pop()
    return '.'.join(parts)


def _imported(node, package, files):
    """Yield the names of modules that a statement imports."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.name
    elif isinstance(node, ast.ImportFrom):
        module = node.module or ''
        if node.level:
            above = package.split('.')[:len(package.split('.'))
                                       - node.level + 1]
            module = '.'.join([*above, *filter(None, [module])])
        for alias in node.names:
            # A module of the package, or a name in it.
            inner = f'{module}.{alias.name}'
            yield inner if inner in files else module
