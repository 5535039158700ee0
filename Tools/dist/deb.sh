#!/bin/sh
# Makes a .deb of a tarball, beside it: the same files below /opt, and no
# file anywhere else but the copyright.
#
# usage: Tools/dist/deb.sh ARCHIVE
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/dist/date.sh
. Tools/dist/dist.conf
. ./upstream.conf

archive=$1
[ -f "$archive" ] || die "there is no $archive: run \"make dist\" first."

write_control() {
    cat >"$1/DEBIAN/control" <<CONTROL
Package: $dist_name
Version: $upstream_version+$(release_date)
Architecture: $(dpkg --print-architecture)
Maintainer: The authors of $dist_name <$dist_name@localhost>
Section: python
Priority: optional
Installed-Size: $(du -sk --apparent-size "$1/opt" | cut -f 1)
Depends: libc6 (>= $dist_glibc_floor)
Recommends: ca-certificates, tzdata
Description: CPython with a sampling profiler inside
 The interpreter $dist_prefix/bin/python3, its standard
 library and pip. Takes nothing from the system's Python and gives it
 nothing; make virtual environments with it.
CONTROL
}

make_deb() {
    package=$scratch/package
    to=$package$dist_prefix
    mkdir -p "$to" "$package/DEBIAN" "$package/usr/share/doc/$dist_name"
    tar -xzf "$archive" --strip-components=1 -C "$to"
    cp "$to/share/licenses/$dist_name/CPython.txt" \
        "$package/usr/share/doc/$dist_name/copyright"
    write_control "$package"
    # What was made here and not unpacked has today's date and our mask.
    find "$package" -newermt "@$SOURCE_DATE_EPOCH" \
        -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    find "$package" -type d -exec chmod 755 {} +
    dpkg-deb --root-owner-group -Zxz -b "$package" "$1" >/dev/null
}

make_scratch
set_source_date
deb=build/dist/${dist_name}_$upstream_version+$(release_date)_$(
    dpkg --print-architecture).deb
make_deb "$deb"
say "$deb: $(wc -c <"$deb") bytes"
