# shellcheck shell=sh
# Messages, digests and temporary trees: what configure and every script
# under Tools/ share.  To be sourced with the repository's root as the
# current directory.  Knows nothing of CPython.

program=${0##*/}

say() {
    printf '%s\n' "$*"
}

note() {
    printf '%s: note: %s\n' "$program" "$*" | fold -s -w 79 >&2
}

die() {
    printf '%s: error: %s\n' "$program" "$*" | fold -s -w 79 >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

sha256_of() {
    sha256sum "$1" | cut -d ' ' -f 1
}

# One argument, quoted so that "eval set --" gives it back unchanged.
quote() {
    printf "'%s'\n" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"
}

make_build() {
    if ! mkdir -p build 2>/dev/null || [ ! -w build ]; then
        die "cannot write $(pwd)/build: make the checkout writable, or" \
            "clone it to a place that is."
    fi
}

# A scratch directory inside build/, so that a rename from it into place
# cannot cross file systems.  It is gone when the script ends, however it
# ends.  Sets $scratch.
make_scratch() {
    make_build
    scratch=$(pwd)/build/tmp.$$
    trap remove_scratch EXIT
    trap 'exit 129' HUP
    trap 'exit 130' INT
    trap 'exit 143' TERM
    rm -rf "$scratch"
    mkdir "$scratch" ||
        die "cannot create $scratch: free some disk space or make build/" \
            "writable, then try again."
}

remove_scratch() {
    rm -rf "$scratch"
    # Only an empty build/ goes: a first run that failed leaves nothing.
    rmdir build 2>/dev/null || :
}

# The prepared build/ belongs to one command at a time.  The lock is
# inherited by child scripts, which must not take it again.
lock_build() {
    if [ -n "${SAMPLEPROF_BUILD_LOCKED:-}" ] || ! have flock; then
        return
    fi
    make_build
    exec 9>build/.lock
    flock -n 9 || {
        say "waiting for another build in $(pwd)/build to finish"
        flock 9
    }
    SAMPLEPROF_BUILD_LOCKED=1
    export SAMPLEPROF_BUILD_LOCKED
}
