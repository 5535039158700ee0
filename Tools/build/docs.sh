#!/bin/sh
# Builds Doc/ with Sphinx, in an environment of its own made from the
# interpreter that was just built.
#
# usage: PYTHON=build/release/python Tools/build/docs.sh
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/build/venv.sh

[ -f Doc/conf.py ] || die "there is no Doc/conf.py to build from."
make_venv build/docs-venv Doc/requirements.txt
build/docs-venv/bin/python -m sphinx -W --keep-going -q -b html Doc build/html
say "the documentation is in build/html/index.html"
