# shellcheck shell=sh disable=SC2154
# The programs and headers that a build needs: checking them, and installing
# Debian's packages for them.  Sourced by configure.

# Each package is here for a reason: the compiler and the tools that unpack
# and patch, then one header package per extension module of the standard
# library, then what the tests and benchmarks run (abidiff, valgrind,
# dot, a browser, other Debians).
debian_packages() {
    cat <<'PACKAGES'
abigail-tools
autoconf
build-essential
ca-certificates
ccache
chromium
chromium-driver
graphviz
libbz2-dev
libffi-dev
libgdbm-dev
liblzma-dev
libncurses-dev
libreadline-dev
libsqlite3-dev
libssl-dev
mmdebstrap
patch
pkgconf
uuid-dev
valgrind
xz-utils
zlib1g-dev
PACKAGES
}

missing_packages() {
    for package in $(debian_packages); do
        # The literal ${Status} is dpkg-query's own format language.
        # shellcheck disable=SC2016
        dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null |
            grep -q '^install ok installed$' || printf '%s ' "$package"
    done
    # Other viewers, for the tests.  Packages of node that are not Debian's
    # bring npm with them.
    have npm || printf 'npm '
    # A keyring older than the suite we fetch from cannot verify it.
    for keyring in /usr/share/keyrings/debian-archive-"$debian_suite"-*; do
        [ -e "$keyring" ] || printf 'debian-archive-keyring '
        break
    done
}

install_deps() {
    if ! have apt-get || ! have dpkg-query; then
        die "--install-deps knows Debian's packages only, and there is no" \
            "apt-get here. Install a C compiler, make, patch, xz and the" \
            "headers of zlib, OpenSSL, libffi, SQLite, bzip2, liblzma," \
            "readline, ncurses, gdbm and libuuid with this system's package" \
            "manager, then run ./configure without --install-deps."
    fi
    missing=$(missing_packages)
    if [ -z "$missing" ]; then
        say "every package the build needs is installed"
        return
    fi
    if [ "$(id -u)" -ne 0 ]; then
        die "--install-deps has to install $missing and needs root for it." \
            "Run \"sudo ./configure --install-deps\", or have these packages" \
            "installed and run ./configure without --install-deps."
    fi
    say "installing: $missing"
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    apt-get -qq -o DPkg::Lock::Timeout=300 update ||
        die "apt-get update failed (its messages are above). Check the" \
            "network and the machine's apt sources, then run this again."
    # Unquoted: one word per package.
    # shellcheck disable=SC2086
    apt-get -qq -y -o DPkg::Lock::Timeout=300 \
        -o Dpkg::Use-Pty=0 --no-install-recommends install $missing \
        >/dev/null ||
        die "apt-get could not install $missing (its messages are above)." \
            "Repair the machine's package state, then run this again."
}

check_tools() {
    for tool in make tar xz patch sed find sort cmp sha256sum df; do
        have "$tool" ||
            die "the program \"$tool\" is missing. On Debian run" \
                "\"./configure --install-deps\" as root; elsewhere install it" \
                "with the system's package manager."
    done
}

# Compiling and running beats looking for a name: a compiler without libc's
# headers, or one for another machine, fails here and not ten minutes later.
check_compiler() {
    cat >"$scratch/probe.c" <<'PROBE'
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

int
main(void)
{
    atomic_int ready = 1;
    return atomic_load(&ready) == 1 && puts("ready") >= 0 ? 0 : 1;
}
PROBE
    # Unquoted: CC may carry options, as in CC="gcc -m64".
    # shellcheck disable=SC2086
    if ! ${CC:-cc} -o "$scratch/probe" "$scratch/probe.c" -pthread \
            >"$scratch/probe.log" 2>&1 || ! "$scratch/probe" >/dev/null 2>&1
    then
        sed 's/^/    /' "$scratch/probe.log" >&2
        die "the C compiler \"${CC:-cc}\" cannot build and run a small C11" \
            "program with threads (its messages are above). On Debian run" \
            "\"./configure --install-deps\" as root; elsewhere install a C" \
            "compiler, or name one with ./configure CC=..."
    fi
}

# Two unpacked trees take 0.4 GB, a release build 0.3 GB, and the sanitizers
# want the rest.
check_disk() {
    needed_kb=1500000
    [ ! -x "build/$1/python" ] || needed_kb=200000
    free_kb=$(df -Pk build | awk 'NR == 2 { print $4 }')
    [ "$free_kb" -ge "$needed_kb" ] ||
        die "$((free_kb / 1000)) MB are free where $(pwd)/build lives, and" \
            "a build needs $((needed_kb / 1000)) MB. Free some space, or" \
            "make build/ a link to a directory on a larger disk."
}

# Without these CPython builds, but leaves a module out; saying so now saves
# a puzzled look at an ImportError.
note_missing_headers() {
    while read -r header module; do
        printf '#include <stdio.h>\n#include <%s>\n' "$header" \
            >"$scratch/header.c"
        # shellcheck disable=SC2086
        ${CC:-cc} ${CPPFLAGS:-} -E "$scratch/header.c" >/dev/null 2>&1 ||
            note "<$header> is missing, so the module $module will not be" \
                "built. \"./configure --install-deps\" as root installs it" \
                "on Debian."
    done <<'HEADERS'
zlib.h zlib
openssl/ssl.h ssl
ffi.h ctypes
sqlite3.h sqlite3
bzlib.h bz2
lzma.h lzma
readline/readline.h readline
HEADERS
}
