#!/bin/sh
# Makes Lib/profile_sampling/_page/page.js of Tools/page/src: checks the types,
# and puts all modules into one file.  That one is committed, so that nobody
# needs node to build the interpreter.
#
# usage: Tools/page/build.sh [OUTPUT]
set -eu
output=${1:-Lib/profile_sampling/_page/page.js}
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/build/node.sh
make_node_tools
# The states are those of the library.
python3 Tools/page/states.py Lib/profile_sampling/_data/states.py \
    >Tools/page/src/states.json
tools=$(pwd)/$NODE_TOOLS/node_modules/.bin
"$tools/tsc" -p Tools/page
"$tools/esbuild" Tools/page/src/main.ts --bundle --format=esm \
    --target=es2022 --minify --charset=utf8 --legal-comments=none \
    --log-level=warning --outfile="$output" --allow-overwrite
