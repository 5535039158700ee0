#!/bin/sh
# Installs a variant: where ./configure was told, or, with a directory, there,
# which may be moved afterwards.
#
# usage: Tools/dist/install.sh VARIANT [PREFIX]
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh

variant=$1
prefix=${2:-}
python=$(pwd)/build/$variant/python
unset MAKEFLAGS MFLAGS MAKELEVEL

if [ -z "$prefix" ]; then
    exec make -s -C "build/$variant" install
fi
case $prefix in
/*) ;;
*) die "PREFIX=$prefix is not an absolute path." ;;
esac
mkdir -p "$prefix" 2>/dev/null && [ -w "$prefix" ] ||
    die "$prefix cannot be written. Name a directory of yours, or do this" \
        "as a user who may write there."

lock_build
make_scratch
built_for=$(sed -n 's/^prefix=[[:space:]]*//p' "build/$variant/Makefile")
log=build/$variant.install.log
make -s -C "build/$variant" install DESTDIR="$scratch/root" >"$log" 2>&1 || {
    tail -n 10 "$log" >&2
    die "installing $variant failed (its last messages are above, all of" \
        "them are in $log)."
}
"$python" -s -E -B Tools/dist/relocate.py "$scratch/root$built_for" \
    "$built_for" "$(pwd)/build"
cp -a "$scratch/root$built_for/." "$prefix/"
say "installed: $prefix/bin/python3"
