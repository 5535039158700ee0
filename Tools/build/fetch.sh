# shellcheck shell=sh disable=SC2154,SC2034
# Where upstream's tarball and Debian's fixes come from.  Sourced by
# configure.  Each route either sets $pristine_tarball (and, if it can,
# $debian_tarball) or adds a line to $routes_tried saying why it could not.

pristine_tarball=
debian_tarball=
routes_tried=

route_failed() {
    routes_tried="$routes_tried $1: $2."
}

is_pristine() {
    [ -f "$1" ] && [ "$(sha256_of "$1")" = "$upstream_sha256" ]
}

# Debian's tarball of patches has no digest of ours: a new one appears with
# every security update.  Its .dsc carries one, and apt has checked the .dsc
# against the archive's signature.
matches_dsc() {
    dsc_file=${1%.debian.tar.xz}.dsc
    [ -f "$dsc_file" ] || return 1
    wanted=$(awk -v name="${1##*/}" '
        /^Checksums-Sha256:/ { inside = 1; next }
        /^[^ ]/ { inside = 0 }
        inside && $3 == name { print $1 }' "$dsc_file")
    [ -n "$wanted" ] && [ "$(sha256_of "$1")" = "$wanted" ]
}

# The newest of the directory's Debian tarballs that its .dsc vouches for.
find_debian_tarball() {
    find "$1" -maxdepth 1 -name "$debian_patches_glob" -print 2>/dev/null |
        sort -V |
        while read -r candidate; do
            if matches_dsc "$candidate"; then
                printf '%s\n' "$candidate"
            else
                note "$candidate is left aside: no .dsc beside it has its" \
                    "SHA-256"
            fi
        done | tail -n 1
}

# Copies files into the cache under a temporary name first, so that a copy
# cut short is never mistaken for the file.
store() {
    if ! mkdir -p "$cache_dir" 2>/dev/null || [ ! -w "$cache_dir" ]; then
        die "the cache directory $cache_dir cannot be written. Name another" \
            "one with --cache-dir=DIR."
    fi
    for stored_file; do
        if ! cp "$stored_file" "$cache_dir/.part.$$" ||
            ! mv "$cache_dir/.part.$$" "$cache_dir/${stored_file##*/}"
        then
            rm -f "$cache_dir/.part.$$"
            die "cannot copy ${stored_file##*/} to $cache_dir. Free some disk" \
                "space there, or name another directory with --cache-dir=DIR."
        fi
    done
}

store_debian_tarball() {
    store "$1" "${1%.debian.tar.xz}.dsc"
    debian_tarball=$cache_dir/${1##*/}
}

# A path that was asked for is never silently replaced by another source.
from_given_path() {
    if [ -d "$1" ]; then
        given_dir=$1
        for given_file in "$1/$upstream_tarball" "$1/$debian_orig_tarball"; do
            [ ! -f "$given_file" ] || break
        done
    else
        given_dir=$(dirname "$1")
        given_file=$1
    fi
    [ -f "$given_file" ] ||
        die "--with-upstream=$1 names neither a tarball nor a directory with" \
            "$upstream_tarball or $debian_orig_tarball in it."
    is_pristine "$given_file" ||
        die "$given_file has SHA-256 $(sha256_of "$given_file"), but" \
            "upstream.conf pins $upstream_sha256. Fetch $upstream_tarball" \
            "again, from $upstream_url for instance."
    pristine_tarball=$given_file
    debian_tarball=$(find_debian_tarball "$given_dir")
}

from_cache() {
    for cached in "$cache_dir/$upstream_tarball" \
            "$cache_dir/$debian_orig_tarball"; do
        if is_pristine "$cached"; then
            pristine_tarball=$cached
            break
        elif [ -f "$cached" ]; then
            note "$cached is damaged (wrong SHA-256) and will be replaced"
        fi
    done
    debian_tarball=$(find_debian_tarball "$cache_dir")
}

# The archive this machine already uses, whatever mirror that is.  A machine
# that has never run "apt-get update" has no ORIGIN to select by; then the
# configured URIs are read instead.
debian_archive_uri() {
    # The literal $(REPO_URI) is apt's own format language.
    # shellcheck disable=SC2016
    uri=$(apt-get indextargets --format '$(REPO_URI)|$(ORIGIN)|$(LABEL)' \
            2>/dev/null | sed -n 's/|Debian|Debian$//p' | sort -u | head -n 1)
    if [ -z "$uri" ]; then
        uri=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list \
                /etc/apt/sources.list.d/*.sources 2>/dev/null |
            sed -n '/^[[:space:]]*\(deb\|URIs:\)/p' | tr -s '[:blank:]' '\n' |
            sed -n '\,^[a-z+]*:.*/debian/*$,p' | head -n 1)
    fi
    printf '%s\n' "$uri"
}

# apt with every directory of its state moved into the scratch directory:
# the machine's own lists are neither read nor changed, while its proxies
# and certificates still hold.
private_apt() {
    apt-get -q -o Dir::Etc::sourcelist="$scratch/apt/sources.list" \
        -o Dir::Etc::sourceparts=/dev/null \
        -o Dir::State::lists="$scratch/apt/lists" \
        -o Dir::Cache="$scratch/apt/cache" \
        -o APT::Get::List-Cleanup=0 \
        -o APT::Update::Error-Mode=any \
        -o Acquire::Languages=none \
        -o Acquire::Retries=2 \
        "$@" >>"$scratch/apt/log" 2>&1
}

fetch_debian_source() {
    mkdir -p "$scratch/apt/lists/partial" \
        "$scratch/apt/cache/archives/partial" "$scratch/apt/download"
    signed_by=
    for keyring in /usr/share/keyrings/debian-archive-keyring.*; do
        if [ -f "$keyring" ]; then
            signed_by="[signed-by=$keyring] "
            break
        fi
    done
    printf 'deb-src %s%s %s main\n' "$signed_by" "$1" "$debian_suite" \
        >"$scratch/apt/sources.list"
    private_apt update || return 1
    (
        cd "$scratch/apt/download" &&
            private_apt source --download-only "$debian_source"
    )
}

from_debian() {
    if ! have apt-get; then
        route_failed "Debian's source package" "there is no apt-get here"
        return
    fi
    archive_uri=$(debian_archive_uri)
    if [ -z "$archive_uri" ]; then
        route_failed "Debian's source package" \
            "this machine's apt sources name no Debian archive"
        return
    fi
    say "fetching Debian's source package $debian_source from $archive_uri"
    if ! fetch_debian_source "$archive_uri"; then
        grep '^[EW]:' "$scratch/apt/log" | head -n 5 | sed 's/^/    /' >&2
        route_failed "Debian's source package" "apt-get could not fetch it"
        return
    fi
    fetched=$scratch/apt/download/$debian_orig_tarball
    if [ -z "$pristine_tarball" ]; then
        if is_pristine "$fetched"; then
            store "$fetched"
            pristine_tarball=$cache_dir/$debian_orig_tarball
        else
            route_failed "Debian's source package" \
                "it holds no $debian_orig_tarball with the pinned SHA-256"
        fi
    fi
    fetched=$(find_debian_tarball "$scratch/apt/download")
    [ -z "$fetched" ] || store_debian_tarball "$fetched"
}

from_python_org() {
    say "fetching $upstream_url"
    fetched=$scratch/$upstream_tarball
    if have curl; then
        curl -fsSL --connect-timeout 20 --retry 2 -o "$fetched" \
            "$upstream_url" || fetched=
    elif have wget; then
        wget -q -T 20 -t 3 -O "$fetched" "$upstream_url" || fetched=
    else
        route_failed "python.org" "neither curl nor wget is installed"
        return
    fi
    if [ -z "$fetched" ]; then
        route_failed "python.org" "the download failed"
    elif ! is_pristine "$fetched"; then
        route_failed "python.org" "the file has SHA-256 $(sha256_of \
            "$fetched") and not $upstream_sha256"
    else
        store "$fetched"
        pristine_tarball=$cache_dir/$upstream_tarball
    fi
}

count_security_patches() {
    tar -xJOf "$debian_tarball" debian/patches/series |
        security_series | wc -l
}

# Sets $pristine_tarball, $debian_tarball (may stay empty) and
# $security_state, a sentence for people.
find_sources() {
    if [ -n "$with_upstream" ]; then
        from_given_path "$with_upstream"
    else
        from_cache
        if [ -z "$pristine_tarball" ] ||
            { [ -z "$debian_tarball" ] && [ "$security_patches" = yes ]; }
        then
            from_debian
        fi
        [ -n "$pristine_tarball" ] || from_python_org
    fi
    [ -n "$pristine_tarball" ] ||
        die "no route gave CPython's source with the pinned SHA-256." \
            "$routes_tried Check the network, or fetch $upstream_tarball on" \
            "another machine and pass --with-upstream=PATH."
    if [ "$security_patches" = no ]; then
        debian_tarball=
        security_state="without Debian's security patches: turned off by \
--without-security-patches"
    elif [ -z "$debian_first_security_patch" ]; then
        debian_tarball=
        security_state="to which Debian has added no fixes yet"
    elif [ -z "$debian_tarball" ]; then
        security_state="without Debian's security patches: no verified \
Debian tarball was found"
    else
        security_state="with $(count_security_patches) security patches from \
Debian (${debian_tarball##*/})"
    fi
}
