#!/bin/sh
# Makes build/dist/sysroot: the headers and libraries that a distribution is
# compiled with, from Debian's packages, none of which is installed.  The C
# library is an old one and shared, everything else is there as an archive
# only, so that the linker has no choice.  Does nothing if it is there.
#
# usage: Tools/dist/sysroot.sh
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. ./upstream.conf
. Tools/build/fetch.sh
. Tools/dist/dist.conf

cache_dir=${XDG_CACHE_HOME:-${HOME:-$(pwd)/build}/.cache}/cpython-sampleprof
debs=$cache_dir/dist
sysroot=build/dist/sysroot
multiarch=$(gcc -print-multiarch)

# Security updates are in an archive of their own, which apt knows if this
# machine takes updates from it; else it is beside the main one.
debian_security_uri() {
    # The literal $(REPO_URI) is apt's own format language.
    # shellcheck disable=SC2016
    uri=$(apt-get indextargets --format '$(REPO_URI)|$(LABEL)' 2>/dev/null |
        sed -n 's/|Debian-Security$//p' | sort -u | head -n 1)
    printf '%s\n' "${uri:-${1%/}-security/}"
}

write_sources_list() {
    keyring=/usr/share/keyrings/debian-archive-keyring.gpg
    [ -f "$keyring" ] ||
        die "$keyring is missing: install debian-archive-keyring."
    security_uri=$(debian_security_uri "$1")
    {
        echo "deb [signed-by=$keyring] $1 $dist_libc_suite main"
        echo "deb [signed-by=$keyring] $1 $dist_library_suite main"
        echo "deb [signed-by=$keyring] $1 $dist_library_suite-updates main"
        echo "deb [signed-by=$keyring] $security_uri" \
            "$dist_library_suite-security main"
    } >"$scratch/apt/sources.list"
}

# apt says what it downloads by name; what it checked is what is kept.
fetch_debs() {
    have apt-get ||
        die "\"make dist\" takes libraries from Debian's packages, and" \
            "there is no apt-get here."
    archive_uri=$(debian_archive_uri)
    [ -n "$archive_uri" ] ||
        die "this machine's apt sources name no Debian archive."
    mkdir -p "$scratch/apt/lists/partial" "$scratch/apt/debs" \
        "$scratch/apt/cache/archives/partial"
    write_sources_list "$archive_uri"
    say "fetching packages of Debian $dist_libc_suite and" \
        "$dist_library_suite from $archive_uri"
    wanted=$(for name in $dist_libc_packages; do
        printf '%s ' "$name/$dist_libc_suite"
    done)
    : >"$scratch/apt/status"
    # Unquoted: one word per package.
    # shellcheck disable=SC2086
    if ! private_apt update || ! (
        cd "$scratch/apt/debs" &&
            private_apt -o Dir::State::status="$scratch/apt/status" \
                download $wanted $dist_library_packages \
                $dist_licence_packages
    ); then
        grep '^[EW]:' "$scratch/apt/log" | head -n 5 | sed 's/^/    /' >&2
        die "apt-get could not fetch the packages named in" \
            "Tools/dist/dist.conf (its messages are above)."
    fi
}

have_all_debs() {
    for name in $dist_libc_packages $dist_library_packages \
            $dist_licence_packages; do
        grep -q " ${name}_" "$debs/SHA256SUMS" 2>/dev/null || return 1
    done
}

# All packages are of one moment: the directory appears complete or not at
# all.
store_debs() {
    (cd "$scratch/apt/debs" && sha256sum -- *.deb >SHA256SUMS)
    mkdir -p "$cache_dir"
    rm -rf "$debs"
    cp -r "$scratch/apt/debs" "$debs.part.$$"
    mv "$debs.part.$$" "$debs"
}

find_debs() {
    have_all_debs || {
        fetch_debs
        store_debs
    }
}

# In an old package a link may name an absolute path, which has to lead to
# the same place inside.
mend_links() {
    find "$1" -type l | while read -r link; do
        to=$(readlink "$link")
        case $to in
        /*) ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" \
            "$1$to")" "$link" ;;
        esac
    done
}

# What is not the C library's is linked in, so its shared form must not be
# found.
drop_shared_libraries() {
    dpkg-deb -c "$1" | sed -n 's,.* \./\([^ ]*\.so\)\( ->.*\)\?$,\1,p' |
        while read -r shared; do
            rm -f "$2/$shared"
        done
}

unpack_debs() {
    (cd "$debs" && sha256sum --quiet -c SHA256SUMS) >&2 ||
        die "a package in $debs is damaged. Remove that directory, then try" \
            "again."
    mkdir "$scratch/sysroot"
    for deb in "$debs"/*.deb; do
        dpkg-deb -x "$deb" "$scratch/sysroot"
    done
    mend_links "$scratch/sysroot"
    for deb in "$debs"/*.deb; do
        case ${deb##*/} in
        libc6_* | libc6-dev_*) ;;
        *) drop_shared_libraries "$deb" "$scratch/sysroot" ;;
        esac
    done
    # Debian's libffi.a cannot be part of a shared library, this one can.
    mv "$scratch/sysroot/usr/lib/$multiarch/libffi_pic.a" \
        "$scratch/sysroot/usr/lib/$multiarch/libffi.a"
    # None of these programs and documents is used, the licences are.
    rm -rf "$scratch/sysroot/usr/bin" "$scratch/sysroot/usr/sbin" \
        "$scratch/sysroot/sbin" "$scratch/sysroot/usr/share/man"
}

# OpenSSL's own answer to where certificates are holds for Debian only.
replace_ca_paths() {
    archive=$scratch/sysroot/usr/lib/$multiarch/libcrypto.a
    member=libcrypto-lib-x509_def.o
    ar t "$archive" | grep -qx "$member" ||
        die "libcrypto.a has no member $member any more, which says where" \
            "certificates are. Look for the one that has" \
            "X509_get_default_cert_file, and name it in $0."
    gcc --sysroot="$scratch/sysroot" -O2 -fPIC -Wall -Werror \
        -c Tools/dist/ca_paths.c -o "$scratch/$member"
    ar rD "$archive" "$scratch/$member"
}

# -lm finds a linker script; ours looks in our archive first.
put_old_libm_before_libm() {
    libraries=$scratch/sysroot/usr/lib/$multiarch
    grep -q '^GROUP ( ' "$libraries/libm.so" ||
        die "libm.so of Debian $dist_libc_suite is not the linker script" \
            "that $0 expects."
    gcc --sysroot="$scratch/sysroot" -O2 -fPIC -fno-builtin -Wall -Werror \
        -c Tools/dist/old_libm.c -o "$scratch/old_libm.o"
    ar rcD "$libraries/libold_libm.a" "$scratch/old_libm.o"
    sed -i 's,^GROUP ( ,GROUP ( libold_libm.a ,' "$libraries/libm.so"
}

# What decides what the directory holds.
recipe() {
    cat "$debs/SHA256SUMS" Tools/dist/sysroot.sh Tools/dist/*.c
}

lock_build
make_scratch
find_debs
if [ "$(recipe | sha256sum)" != "$(cat "$sysroot/.recipe" 2>/dev/null)" ]; then
    say "unpacking them to $sysroot"
    unpack_debs
    replace_ca_paths
    put_old_libm_before_libm
    cp "$debs/SHA256SUMS" "$scratch/sysroot/SHA256SUMS"
    recipe | sha256sum >"$scratch/sysroot/.recipe"
    mkdir -p build/dist
    rm -rf "$sysroot"
    mv "$scratch/sysroot" "$sysroot"
fi
