#!/bin/sh
# Runs test suites of third parties under the profiler; see run.py.
#
# usage: PYTHON=build/release/python Tools/third_parties/run.sh [SUITE...]
#
# PYTHON may be any that has the profiler, such as that of a tarball.
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/build/venv.sh

PYTHON=${PYTHON:-build/release/python}
case $PYTHON in
/*) ;;
*) PYTHON=$(pwd)/$PYTHON ;;
esac
[ -x "$PYTHON" ] || die "$PYTHON does not exist. Run \"make\" first."
make_venv build/third_parties/venv Tools/third_parties/requirements.txt
exec build/third_parties/venv/bin/python Tools/third_parties/run.py "$@"
