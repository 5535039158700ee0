# shellcheck shell=sh disable=SC2154
# What CPython's own tools generate from the tree: Argument Clinic's headers,
# the interpreter's cases, the static strings, configure.  Sourced; needs
# common.sh, a built interpreter in $PYTHON, and make_scratch.

# Generates into a copy in $scratch/regen, with links followed, because the
# tools write in place.  Doc/ and the tests hold nothing that matters here.
regenerate() {
    [ -x "$PYTHON" ] || die "$PYTHON does not exist. Run \"make\" first."
    mkdir "$scratch/regen"
    tar -chf - -C build/src --exclude=./Doc --exclude=./Lib/test \
        --exclude=__pycache__ . | tar -xf - -C "$scratch/regen"
    unset MAKEFLAGS MFLAGS MAKELEVEL
    make -s -C "$(dirname "$PYTHON")" regen-cases regen-global-objects \
        srcdir="$scratch/regen" PYTHON_FOR_REGEN="$PYTHON" \
        >"$scratch/regen.log" 2>&1 || {
        tail -n 20 "$scratch/regen.log" | sed 's/^/    /' >&2
        return 1
    }
    # CPython's releases are made with this version; another one writes
    # another configure.
    case $(autoconf --version 2>/dev/null) in
    *2.71*) (cd "$scratch/regen" && autoconf && autoheader) \
        >"$scratch/regen.log" 2>&1 ;;
    *) note "there is no autoconf 2.71 here, so configure was not looked at" ;;
    esac
}

# The paths, below the tree's top directory, that regenerate() wrote
# differently or anew.
stale_files() {
    diff -rq --exclude=__pycache__ --exclude='.*' "$scratch/regen" build/src |
        sed -n "s,^Files $scratch/regen/\(.*\) and .* differ\$,\1,p
                s,^Only in $scratch/regen/\(.*\): \(.*\)\$,\1/\2,p"
}

check_generated() {
    regenerate || {
        fault "CPython's generators fail on the tree"
        return
    }
    stale_files >"$scratch/stale"
    while read -r stale; do
        fault "$stale is not what CPython's generators make of its source;" \
            "\"make regen\" writes it anew"
    done <"$scratch/stale"
}
