#!/bin/sh
# Checks what the interpreter shows to extension modules: the functions,
# variables and types of its public ABI are those of the stock interpreter but
# for what ours.suppr lists, it exports no name that is not Python's, and our
# files have no C variable but those that upstream's own list knows by patch 0021.
#
# usage: PYTHON=build/release/python Tools/abi/check.sh
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh

built_python=$(pwd)/${PYTHON:-build/release/python}
build_dir=${built_python%/*}
[ -x build/abi/python ] ||
    die "there is no build/abi/python to compare with. Run \"make abi\"."

faults=0
fault() {
    printf '%s: %s\n' "$program" "$*" >&2
    faults=$((faults + 1))
}

# How well they are optimised is nothing that the two could differ in.
check_abi() {
    have abidiff || {
        fault "there is no abidiff here. \"./configure --install-deps\" as" \
            "root installs it on Debian."
        return
    }
    abidiff --suppressions Tools/abi/ours.suppr build/abi/python \
        "$built_python" >"$scratch/abidiff" || {
        fault "the public ABI is not the stock interpreter's:"
        cut -c 1-200 "$scratch/abidiff" | head -n 60 >&2
    }
}

check_names() {
    make -s -C "$build_dir" smelly >"$scratch/smelly" 2>&1 || {
        fault "names that do not start with Py or _Py are exported:"
        grep -i smelly "$scratch/smelly" >&2 || tail "$scratch/smelly" >&2
    }
}

# Our files only: upstream's other ones take the tool many minutes and need the
# headers of all libraries, and patches add calls, not variables.
check_globals() {
    # Upstream's own target does not know of a build outside the source.
    (
        CPATH=$build_dir
        export CPATH
        cd build/src
        "$built_python" -B Tools/c-analyzer/c-analyzer.py check \
            --format summary Python/sampling/*.c Python/sampling/*/*.c \
            Modules/_profile/*.c
    ) >"$scratch/globals" 2>&1 || {
        fault "there are new C variables, or a file cannot be parsed:"
        grep -v '^ *$' "$scratch/globals" | cut -c 1-200 | head -n 40 >&2
    }
}

make_scratch
check_abi
check_names
check_globals
[ "$faults" -eq 0 ] || die "$faults faults (see above)."
say "the public ABI is the stock interpreter's"
