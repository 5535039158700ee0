"""What upstream.conf, build/sources.conf and dist.conf say, for Python.

The three are shell assignments, and the shell reads them: nothing here
guesses what it would make of a quote.
"""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = ['upstream.conf', 'build/sources.conf', 'Tools/dist/dist.conf']


def read():
    """Every variable that the files set, by name."""
    script = ''.join(f'. ./{name}\n' for name in FILES) + 'set'
    output = subprocess.run(['env', '-i', 'sh', '-ec', script], cwd=ROOT,
                            check=True, text=True, stdout=subprocess.PIPE)
    settings = {}
    for line in output.stdout.splitlines():
        name, found, value = line.partition('=')
        if found and name.isidentifier():
            settings[name] = value.strip("'")
    return settings
