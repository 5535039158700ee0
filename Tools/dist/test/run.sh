#!/bin/sh
# Tries the newest release tarball of build/dist; see run.py.
#
# usage: Tools/dist/test/run.sh [SYSTEM]...
#
# ARCHIVE=FILE: that one instead.
set -eu
cd "$(dirname "$0")/../../.."
. Tools/build/common.sh

if [ -z "${ARCHIVE:-}" ]; then
    . ./upstream.conf
    . Tools/dist/dist.conf
    . Tools/dist/date.sh
    set_source_date
    ARCHIVE=build/dist/$(
        # shellcheck disable=SC2154
        printf '%s-%s+%s-%s.tar.gz' "$dist_name" "$upstream_version" \
            "$(release_date)" "$(uname -m)-linux-gnu")
fi
[ -f "$ARCHIVE" ] || die "there is no $ARCHIVE. Run \"make dist\" first."
# What it tries, it unpacks anew; this copy only runs the test.
make_scratch
tar -xzf "$ARCHIVE" -C "$scratch"
"$scratch/python/bin/python3" -s -E -B Tools/dist/test/run.py "$ARCHIVE" "$@"
