#!/bin/sh
# Brings generated files up to date: ours in place, upstream's in
# build/patchwork, where they become part of a patch.
#
# usage: PYTHON=build/release/python Tools/patches/regen.sh
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/patches/generated.sh

PYTHON=$(pwd)/$PYTHON

# Upstream's files are regular files in the tree, ours are links or new.
put_back() {
    if [ ! -e "build/src/$1" ] || [ -L "build/src/$1" ]; then
        mkdir -p "$(dirname "$1")"
        cp "$scratch/regen/$1" "$1"
        say "wrote $1"
    elif [ -d build/patchwork ]; then
        cp "$scratch/regen/$1" "build/patchwork/$1"
        say "wrote build/patchwork/$1: commit it there, in a patch with" \
            "\"generated\" in its subject, and run \"make patches-refresh\""
    else
        say "$1 is upstream's: run \"make patches-edit\", then this again"
    fi
}

lock_build
make_scratch
regenerate ||
    die "CPython's generators fail on the tree (the messages are above)."
stale_files >"$scratch/stale"
while read -r stale; do
    put_back "$stale"
done <"$scratch/stale"
