# shellcheck shell=sh disable=SC2154
# Turns tarballs and patches into a source tree.  Sourced by prepare.sh and
# by the scripts under Tools/patches/.  Needs common.sh, upstream.conf and
# build/sources.conf.

# A comment or an empty line in the series is no patch.
series() {
    [ ! -f Patches/series ] || sed 's/[[:space:]]*#.*//; /^[[:space:]]*$/d' \
        Patches/series
}

# The paths a patch touches, below the tree's top directory.
touched_by() {
    sed -n 's,^[-+]\{3\} [^/[:space:]]*/\([^[:space:]]*\).*,\1,p' "$@" | sort -u
}

# apply_patch TREE PATCH: no fuzz, no reversed patch taken for a new one, no
# question asked.  What patch said is in $scratch/patch.log.
apply_patch() {
    patch -d "$1" -p1 -F0 -N --no-backup-if-mismatch -r - \
        <"$2" >"$scratch/patch.log" 2>&1
}

# unpack_pristine DIRECTORY [MEMBER...]: the whole tree or some of its files.
unpack_pristine() {
    unpack_dir=$1
    shift
    if [ ! -f "$pristine_tarball" ] ||
        [ "$(sha256_of "$pristine_tarball")" != "$upstream_sha256" ]
    then
        die "$pristine_tarball is gone or no longer has the pinned SHA-256." \
            "Run ./configure again."
    fi
    tar -xJf "$pristine_tarball" -C "$unpack_dir" "$@" \
        2>"$scratch/tar.log" || {
        tail -n 3 "$scratch/tar.log" | sed 's/^/    /' >&2
        die "cannot unpack $pristine_tarball in $(pwd)/build (tar's last" \
            "messages are above). If the disk is full, free some space; then" \
            "run ./configure again."
    }
}

# From Debian's series on standard input, the patches that we want.
security_series() {
    sed "s/[[:space:]].*//; /^#/d; /^$/d" |
        sed -n "/^$debian_first_security_patch\$/,\$p"
}

# unpack_security_patches DIRECTORY: the patches, and their order in a file
# "wanted".
unpack_security_patches() {
    mkdir -p "$1"
    tar -xJf "$debian_tarball" -C "$1" --strip-components=1 debian/patches ||
        die "cannot unpack $debian_tarball. Run ./configure again, or pass" \
            "--without-security-patches."
    security_series <"$1/patches/series" >"$1/wanted"
    [ -s "$1/wanted" ] ||
        die "${debian_tarball##*/} has no $debian_first_security_patch in its" \
            "series. Correct debian_first_security_patch in upstream.conf, or" \
            "pass --without-security-patches."
}

# apply_security_patches TREE DIRECTORY
apply_security_patches() {
    while read -r fix; do
        apply_patch "$1" "$2/patches/$fix" || {
            sed 's/^/    /' "$scratch/patch.log" >&2
            die "Debian's $fix does not apply to CPython $upstream_version" \
                "(patch's messages are above). Pass" \
                "--without-security-patches to build without these fixes."
        }
    done <"$2/wanted"
}

# apply_series TREE
apply_series() {
    for ours in $(series); do
        [ -f "Patches/$ours" ] ||
            die "Patches/series names $ours, which does not exist. Restore" \
                "it or take its line out."
        apply_patch "$1" "Patches/$ours" || {
            sed 's/^/    /' "$scratch/patch.log" >&2
            die "Patches/$ours does not apply (patch's messages are above)." \
                "CONTRIBUTING.md, \"Changing a patch\", says how to rebase" \
                "it; the tree in build/ is as it was before."
        }
    done
}
