#!/bin/sh
# Checks what the interpreter shows to extension modules: the functions,
# variables and types of its public ABI are those of the stock interpreter but
# for what ours.suppr lists, it exports no name that is not Python's, and our
# files have no C variable but those that upstream's own list knows by patch 0022.
#
# usage: PYTHON=build/release/python Tools/abi/check.sh
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh

built_python=$(pwd)/${PYTHON:-build/release/python}
build_dir=${built_python%/*}
[ -x build/abi/python ] ||
    die "there is no build/abi/python to compare with. Run \"make abi\"."

# Returns 1: it ends the check that found the fault.
fault() {
    printf '%s: %s\n' "$program" "$*" >&2
    return 1
}

# How well they are optimised is nothing that the two could differ in.
check_abi() {
    have abidiff || {
        fault "there is no abidiff here. \"./configure --install-deps\" as" \
            "root installs it on Debian."
        return 1
    }
    abidiff --suppressions Tools/abi/ours.suppr build/abi/python \
        "$built_python" >"$scratch/abidiff" || {
        cut -c 1-200 "$scratch/abidiff" | head -n 60 >&2
        fault "the public ABI is not the stock interpreter's (see above)"
    }
}

check_names() {
    make -s -C "$build_dir" smelly >"$scratch/smelly" 2>&1 || {
        grep -i smelly "$scratch/smelly" >&2 || tail "$scratch/smelly" >&2
        fault "names that do not start with Py or _Py are exported (see above)"
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
        grep -v '^ *$' "$scratch/globals" | cut -c 1-200 | head -n 40 >&2
        fault "there are new C variables, or a file cannot be parsed (see" \
            "above)"
    }
}

make_scratch
check_abi &
abi=$!
check_globals &
globals=$!
failed=0
check_names || failed=1
wait "$abi" || failed=1
wait "$globals" || failed=1
[ "$failed" -eq 0 ] || die "the checks above failed."
say "the public ABI is the stock interpreter's"
