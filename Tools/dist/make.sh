#!/bin/sh
# Builds the tarballs of a distribution in build/dist, with a digest and a
# list of what is in them beside each.
#
# usage: Tools/dist/make.sh [FLAVOUR]...      (release and debug, if none)
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/dist/date.sh
. Tools/dist/dist.conf
. ./upstream.conf

root=$(pwd)
machine=$(uname -m)-linux-gnu

# What is left of a tree when the next step fails is of no use.
stage() {
    python=$root/build/dist-$flavour/python
    say "installing $flavour to build/dist/$flavour/python"
    rm -rf "$scratch/root" "build/dist/$flavour"
    mkdir -p "build/dist/$flavour"
    (
        unset MAKEFLAGS MFLAGS MAKELEVEL
        # Byte code and pip are stage.py's: what install would do about
        # them is left to true(1).  Nor does it link the program that tests
        # embedding, which is not installed.
        make -s -C "build/dist-$flavour" -o Programs/_testembed \
            install ENSUREPIP=no PYTHON_FOR_BUILD=true \
            DESTDIR="$scratch/root" >"build/dist/$flavour.install.log" 2>&1
    ) || {
        tail -n 10 "build/dist/$flavour.install.log" >&2
        die "\"make install\" of $flavour failed (its last messages are" \
            "above)."
    }
    mv "$scratch/root$dist_prefix" "build/dist/$flavour/python"
    # The order of a set shows in byte code.
    PYTHONHASHSEED=0 "$python" -s -B Tools/dist/stage.py \
        "build/dist/$flavour/python" "$dist_prefix" "$root/build" \
        "$root/build/dist/sysroot" "$flavour"
    "$python" -s -E -B Tools/dist/check.py "build/dist/$flavour/python" \
        "$root/build" "$dist_glibc_floor"
}

archive_name() {
    case $flavour in
    release) suffix= ;;
    *) suffix=-$flavour ;;
    esac
    printf '%s-%s+%s-%s%s.tar.gz\n' "$dist_name" "$upstream_version" \
        "$(release_date)" "$machine" "$suffix"
}

# What uv, pyenv, Docker and apt install is the release.
offer() {
    "$python" -s -E -B Tools/dist/offers.py "$archive" \
        "${DIST_URL:-file://$root/build/dist}"
    if have dpkg-deb; then
        sh Tools/dist/deb.sh "$archive"
    else
        note "there is no dpkg-deb here, so no .deb was made"
    fi
}

make_flavour() {
    sh Tools/dist/build.sh "$flavour"
    stage
    archive=build/dist/$(archive_name)
    "$python" -s -E -B Tools/dist/pack.py "build/dist/$flavour/python" "$archive"
    "$python" -s -E -B Tools/dist/sbom.py "$archive" "build/dist/$flavour/python"
    [ "$flavour" != release ] || offer
    say "$archive: $(wc -c <"$archive") bytes," \
        "sha256 $(cut -c 1-64 "$archive.sha256")"
}

lock_build
make_scratch
set_source_date
[ $# -gt 0 ] || set -- release debug
for flavour; do
    make_flavour
done
