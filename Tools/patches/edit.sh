#!/bin/sh
# Unfolds Patches/ into a git work tree, build/patchwork: upstream's source
# as the tag "base", then one commit per patch.  There the patches are changed
# by ordinary commits, amendments and rebases; refresh.sh writes them back.
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/build/tree.sh
. Tools/patches/patchwork.sh
. ./upstream.conf
[ -f build/sources.conf ] || die "run ./configure first."
# shellcheck source=/dev/null
. build/sources.conf

have git || die "git is missing. Install it with the system's package manager."
[ ! -e build/patchwork ] ||
    die "build/patchwork exists. Go on working there; or, to unfold Patches/" \
        "afresh, run \"make patches-refresh\" to keep what you did, then" \
        "remove build/patchwork."

make_scratch
unpack_pristine "$scratch"
fresh=$scratch/$upstream_topdir
if [ -n "$debian_tarball" ]; then
    unpack_security_patches "$scratch/security"
    apply_security_patches "$fresh" "$scratch/security"
fi
start_patchwork "$fresh"
if unfold_series "$fresh"; then
    mv "$fresh" build/patchwork
    say "$(series | wc -l) patches are commits in build/patchwork, on the" \
        "tag \"base\""
else
    # The half-way state is what a rebase on a new upstream starts from.
    patchwork_git "$fresh" am --abort 2>/dev/null || :
    mv "$fresh" build/patchwork
    die "Patches/$ours does not apply (git's messages are above). The" \
        "patches before it are commits in build/patchwork; go on there with" \
        "\"git am --reject ../../Patches/$ours\"; CONTRIBUTING.md says how."
fi
