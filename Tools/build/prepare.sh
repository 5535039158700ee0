#!/bin/sh
# Makes build/src (pristine, security patches, our series, links to our
# files) or build/stock-src (the first two only) what it should be, and does
# nothing if it already is.
#
# usage: Tools/build/prepare.sh src|stock-src
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/build/tree.sh
. ./upstream.conf
[ -f build/sources.conf ] || die "run ./configure first."
# shellcheck source=/dev/null
. build/sources.conf

tree=$1

# Everything that decides what the tree holds, apart from the links.
recipe() {
    cat upstream.conf Tools/build/tree.sh
    printf '%s\n' "${debian_tarball##*/}"
    [ "$tree" = src ] || return 0
    series
    for ours in $(series); do
        cat "Patches/$ours" 2>/dev/null || :
    done
}

# tar restores upstream's dates, so a file that a patch no longer touches
# would look older than the object made from its patched text, and make
# would keep the object.  A file whose text changed gets today's date, one
# whose text did not keeps the date it had.
carry_dates_over() {
    { cat "$1/.patched" "$2/.patched" 2>/dev/null || :; } | sort -u |
        while read -r patched; do
            [ -f "$2/$patched" ] || continue
            if cmp -s "$1/$patched" "$2/$patched"; then
                touch -r "$1/$patched" "$2/$patched"
            else
                touch "$2/$patched"
            fi
        done
}

# Built aside and renamed: a tree under its final name is always complete.
make_tree() {
    make_scratch
    say "preparing build/$tree from ${pristine_tarball##*/}"
    unpack_pristine "$scratch"
    fresh=$scratch/$upstream_topdir
    if [ -n "$debian_tarball" ]; then
        unpack_security_patches "$scratch/security"
        apply_security_patches "$fresh" "$scratch/security"
        (
            cd "$scratch/security/patches"
            # Unquoted: one word per patch.
            # shellcheck disable=SC2046
            touched_by $(cat ../wanted)
        ) >"$fresh/.patched"
    fi
    if [ "$tree" = src ]; then
        apply_series "$fresh"
        for ours in $(series); do
            touched_by "Patches/$ours"
        done >>"$fresh/.patched"
    fi
    recipe | sha256sum >"$fresh/.recipe"
    if [ -d "build/$tree" ]; then
        carry_dates_over "build/$tree" "$fresh"
        mv "build/$tree" "$scratch/old"
    fi
    mv "$fresh" "build/$tree"
}

# Our files, as lists of paths that are the same here and in the tree.
our_files() {
    for top in Include Python Modules Lib; do
        [ ! -d "$top" ] || find "$top" -name __pycache__ -prune -o \
            -type f ! -name '.*' ! -name '*~' ! -name '*.orig' \
            ! -name '*.rej' ! -name '*.pyc' -print
    done | LC_ALL=C sort
}

# link_file PATH: the link is relative, so the checkout may be moved.
link_file() {
    if [ ! -L "build/src/$1" ] && [ -e "build/src/$1" ]; then
        die "$1 is a file of upstream's. Change it by a patch in Patches/" \
            "(CONTRIBUTING.md says how), not by a file of the same name."
    fi
    up=../../$(dirname "$1" | sed 's,[^/][^/]*,..,g')
    mkdir -p "build/src/$(dirname "$1")"
    ln -sfn "$up/$1" "build/src/$1"
}

# Links, so that an edit needs no copy; files and not directories, so that
# byte code and upstream's own files stay out of the checkout.
lay_our_files() {
    our_files >"build/src/.overlay.new"
    if cmp -s build/src/.overlay.new build/src/.overlay; then
        rm build/src/.overlay.new
        return
    fi
    if [ -f build/src/.overlay ]; then
        LC_ALL=C comm -13 build/src/.overlay.new build/src/.overlay |
            while read -r gone; do
                [ ! -L "build/src/$gone" ] || rm "build/src/$gone"
            done
    fi
    while read -r ours; do
        link_file "$ours"
    done <build/src/.overlay.new
    mv build/src/.overlay.new build/src/.overlay
}

lock_build
if [ "$(recipe | sha256sum)" != "$(cat "build/$tree/.recipe" 2>/dev/null)" ]
then
    make_tree
fi
[ "$tree" != src ] || lay_our_files
