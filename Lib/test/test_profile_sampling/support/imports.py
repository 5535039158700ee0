"""What importing costs."""

import subprocess
import sys
import textwrap

HEAVY = {'re', 'typing', 'dataclasses', 'argparse', 'json', 'inspect',
         'functools', 'collections', 'enum', 'gzip', 'contextlib',
         'tempfile', 'struct', 'threading', 'signal', 'logging'}


def modules_loaded_by(code):
    """Return the names of the modules that code imports."""
    code = textwrap.dedent(f'''
        import sys
        sys.path[:0] = {sys.path!r}
        before = set(sys.modules)
        {code}
        print(*set(sys.modules) - before)
    ''')
    # Without site, which may have imported anything.
    result = subprocess.run([sys.executable, '-S', '-E', '-c', code],
                            check=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
    return set(result.stdout.split())
