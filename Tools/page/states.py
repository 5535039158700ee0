"""Print the table of states for the page's script, as JSON.

usage: states.py Lib/profile_sampling/_data/states.py
"""

import json
import runpy
import sys

print(json.dumps({state.name: {
    'name': state.word, 'css': state.css, 'tip': state.tip}
    for state in runpy.run_path(sys.argv[1])['SHOWN']}, indent=2))
