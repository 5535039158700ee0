#!/bin/sh
# Checks Patches/: the series is complete, every patch says why and is small,
# all of it applies with no fuzz with and without the security patches and
# under "git am", and whatever is generated from the tree is up to date.
# Reports every fault it finds and fails if there was one.
#
# usage: PYTHON=build/release/python Tools/patches/check.sh
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/build/tree.sh
. Tools/patches/generated.sh
. Tools/patches/patchwork.sh
. ./upstream.conf
[ -f build/sources.conf ] || die "run ./configure first."
# shellcheck source=/dev/null
. build/sources.conf

PYTHON=$(pwd)/${PYTHON:-build/release/python}

# A hook is a few lines; what needs more belongs in a file of ours.
most_changed_lines=60

faults=0
fault() {
    printf '%s: %s\n' "$program" "$*" >&2
    faults=$((faults + 1))
}

check_series() {
    [ -f Patches/series ] || {
        fault "there is no Patches/series"
        return
    }
    for ours in $(series); do
        [ -f "Patches/$ours" ] ||
            fault "Patches/series names $ours, which does not exist"
    done
    for file in Patches/*.patch; do
        [ -f "$file" ] || continue
        series | grep -Fqx "${file##*/}" ||
            fault "$file is not in Patches/series"
    done
    [ -z "$(series | sort | uniq -d)" ] ||
        fault "Patches/series names a patch twice"
}

# The body ends where the diff or its summary starts.
body_of() {
    sed '1,/^$/d; /^---/,$d; /^diff --git/,$d' "$1"
}

check_header() {
    sed '/^$/q' "$1" | grep -q '^From: .' || fault "$1 has no From: line"
    sed '/^$/q' "$1" | grep -q '^Subject: .' || fault "$1 has no Subject: line"
    # One sentence: some words and a full stop.
    body_of "$1" | tr '\n' ' ' |
        grep -Eq '([^ ]+ +){4,}[^ ]*[.]' ||
        fault "$1 does not say why: its message has no sentence after the" \
            "subject"
}

check_size() {
    case $1 in
    *generated*) return ;;
    esac
    changed=$(sed '1,/^diff --git/d' "$1" | grep -v '^+++ \|^--- ' |
        grep -c '^[-+]' || :)
    [ "$changed" -le "$most_changed_lines" ] ||
        fault "$1 changes $changed lines, more than $most_changed_lines: move" \
            "logic into a file of ours, or, if a tool wrote it, name it" \
            "\"generated\""
}

check_patches() {
    for ours in $(series); do
        if [ -f "Patches/$ours" ]; then
            check_header "Patches/$ours"
            check_size "Patches/$ours"
        fi
    done
}

# touched_tree DIRECTORY: pristine upstream, but only the files that any
# patch of ours or of Debian's touches; the rest cannot matter.
touched_tree() {
    mkdir -p "$1"
    tar -tJf "$pristine_tarball" | LC_ALL=C sort >"$scratch/members"
    {
        for ours in $(series); do
            touched_by "Patches/$ours"
        done
        [ -z "$debian_tarball" ] || touched_by "$scratch"/security/patches/*
    } | sed "s,^,$upstream_topdir/," | LC_ALL=C sort -u |
        LC_ALL=C comm -12 - "$scratch/members" >"$scratch/touched"
    unpack_pristine "$1" -T "$scratch/touched"
}

check_applies() {
    apply_to=$1
    for ours in $(series); do
        apply_patch "$apply_to" "Patches/$ours" || {
            fault "Patches/$ours does not apply with no fuzz to $2:"
            sed 's/^/    /' "$scratch/patch.log" >&2
            return
        }
    done
}

check_git_am() {
    have git || {
        note "there is no git here, so \"git am\" was not tried"
        return
    }
    start_patchwork "$1"
    unfold_series "$1" || fault "\"git am\" refuses Patches/$ours"
}

check_all_apply() {
    if [ -n "$debian_tarball" ]; then
        unpack_security_patches "$scratch/security"
    fi
    touched_tree "$scratch/plain"
    cp -a "$scratch/plain" "$scratch/am"
    if [ -n "$debian_tarball" ]; then
        cp -a "$scratch/plain" "$scratch/secured"
        apply_security_patches "$scratch/secured/$upstream_topdir" \
            "$scratch/security"
        check_applies "$scratch/secured/$upstream_topdir" \
            "upstream with the security patches"
    else
        note "no security patches are at hand, so ours were tried on" \
            "pristine upstream only"
    fi
    check_git_am "$scratch/am/$upstream_topdir"
    check_applies "$scratch/plain/$upstream_topdir" "pristine upstream"
}

make_scratch
check_series
check_patches
if [ "$faults" -eq 0 ]; then
    check_all_apply
fi
if [ "$faults" -eq 0 ]; then
    check_generated
fi
if [ "$faults" -gt 0 ]; then
    die "the patch series is not sound, faults: $faults (listed" \
        "above). CONTRIBUTING.md, \"Changing a patch\", says how to mend them."
fi
say "the patch series is sound: $(series | wc -l) patches"
