"""The test suites of third parties: which there are, how one is run.

Each is a function that takes a directory to work in and returns the commands
of the suite, as arguments for the interpreter, by name.  They take
--junitxml=FILE besides.
"""

import importlib.metadata
import pathlib
import shutil
import subprocess
import sys
import sysconfig
import tarfile

import pybind11 as pybind11_package

TIMEOUT_S = 300
# ddtrace's plugin is installed for the suite of profilers.  Elsewhere it would
# import 370 modules, and greenlet's tests count all objects again and again.
PYTEST = ('-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'no:ddtrace',
          f'--timeout={TIMEOUT_S}')
HERE = pathlib.Path(__file__).parent

# gevent runs each of its test modules in a process of its own; these are the
# ones about switching, threads, processes and the loop.
GEVENT = ('ares_timeout', 'backdoor', 'close_backend_fd', 'contextvars',
          'core', 'core_async', 'core_callback', 'core_fork',
          'core_loop_run', 'core_timer', 'core_watcher', 'event', 'events',
          'exc_info', 'greenlet', 'greenletset', 'GreenletExit',
          'hub', 'hub_join', 'iwait',
          'joinall', 'local', 'lock', 'loop_callback',
          'monkey', 'order', 'os', 'pool', 'pywsgi', 'queue', 'real_greenlet',
          'refcount', 'select', 'selectors', 'semaphore', 'server', 'signal',
          'sleep0', 'socket', 'socket_close', 'ssl', 'subprocess',
          'subprocess_interrupted', 'systemerror', 'thread', 'threading',
          'threading_2', 'threadpool', 'timeout', 'util')


def greenlet(_):
    return {'tests': (*PYTEST, '--pyargs', 'greenlet.tests')}


def gevent(_):
    # As gevent runs them: a module patches the process that pytest would
    # be in.
    return {name: (str(HERE / 'unittest_junit.py'),
                   f'gevent.tests.test__{name}') for name in GEVENT}


def uvloop(directory):
    tests = directory / 'tests'
    unpack('uvloop', 'tests', tests)
    # About the sources' layout and style, not the extension module.
    (tests / 'test_sourcecode.py').unlink()
    # Tests that redirect the descriptors of stdout find pytest's else.
    return {'tests': (*PYTEST, '--capture=no', str(tests))}


def anyio(directory):
    tests = directory / 'tests'
    unpack('anyio', 'tests', tests)
    # As in the project's own settings; the network is other machines.
    (tests / 'pytest.ini').write_text(
        '[pytest]\n'
        'anyio_mode = auto\n'
        'addopts = -p no:asyncio -p no:trio -m "not network"\n'
        'markers = network\n')
    # Containers often have no IPv6.
    return {'tests': (*PYTEST, '-k', 'not ipv6', str(tests))}


def trio(_):
    # Without what is about the project's own sources, and what compares its
    # names with those that type checkers see.
    tools = pathlib.Path(sysconfig.get_path('purelib'), 'trio/_tests/tools')
    return {'tests': (*PYTEST, '-p', 'trio._tests.pytest_plugin',
                      '-m', 'not redistributors_should_skip',
                      f'--ignore={tools}', '--pyargs', 'trio._tests')}


def numpy(_):
    return {part: (*PYTEST, '-m', 'not slow', '--pyargs', f'numpy.{part}')
            for part in ('_core', 'lib', 'linalg', 'random', 'ma', 'fft')}


def lxml(directory):
    tests = directory / 'lxml_tests'
    unpack('lxml', 'src/lxml/tests', tests)
    # Classes that only others inherit from, and lists for lxml's own runner.
    (tests / 'conftest.py').write_text(
        'def pytest_collection_modifyitems(items):\n'
        '    items[:] = [item for item in items if "::_" not in item.nodeid\n'
        '                and item.name != "test_suite"]\n')
    return {'tests': (*PYTEST, str(tests))}


def pybind11(directory):
    """An extension module made here, with callbacks, threads and errors."""
    source = HERE / 'pybind11_module.cpp'
    tests = HERE / 'pybind11_module_tests.py'
    module = directory / 'pybind11_module.so'
    includes = (
        pybind11_package.get_include(),
        # An interpreter that is not installed has its headers in two places.
        pathlib.Path(sysconfig.get_config_h_filename()).parent,
        pathlib.Path(sysconfig.get_config_var('srcdir')) / 'Include')
    subprocess.run(['c++', '-O2', '-shared', '-fPIC', '-std=c++17',
                    *[f'-I{include}' for include in includes],
                    str(source), '-o', str(module)], check=True)
    shutil.copy(tests, directory)
    return {'tests': (*PYTEST, str(directory / tests.name))}


def profilers(_):
    """Profilers that read the interpreter's memory, beside our own."""
    return {'tests': (*PYTEST, str(HERE / 'profilers_tests.py'))}


SUITES = {suite.__name__: suite
          for suite in (greenlet, gevent, uvloop, anyio, trio, numpy, lxml,
                        pybind11, profilers)}


def unpack(project, folder, to):
    """Put a folder of a project's source distribution at *to*."""
    version = importlib.metadata.version(project)
    downloads = to.parent / 'sources'
    subprocess.run(
        [sys.executable, '-m', 'pip', 'download', '-q', '--no-deps',
         '--no-binary', ':all:', '--no-build-isolation', '-d', downloads,
         f'{project}=={version}'], check=True)
    [archive] = downloads.glob(f'{project}-*.tar.gz')
    with tarfile.open(archive) as tar:
        tar.extractall(downloads, filter='data')
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(downloads / archive.name.removesuffix('.tar.gz') / folder,
                    to)
