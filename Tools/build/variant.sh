#!/bin/sh
# Configures and builds one variant in build/<variant>, as far as it is not
# up to date.
#
# usage: Tools/build/variant.sh VARIANT [configure]
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh

variant=$1
stop_after=${2:-build}
[ -f "build/args/$variant" ] || die "run ./configure first."
args_file=$(pwd)/build/args/$variant

source_tree=src
targets=
# What a distribution installs; the rest is for tests of embedding.
installed_targets="python platform sharedmods scripts gdbhooks"
# What freezes modules runs while this is built, and never again: to optimise
# it at link time would take as long as the interpreter.
freeze_plainly=--eval=Programs/_freeze_module:LDFLAGS_NODIST+=-fno-lto
case $variant in
stock) source_tree=stock-src ;;
dist-stock*)
    source_tree=stock-src
    targets="$freeze_plainly $installed_targets"
    ;;
dist-debug) ;;
dist-*) targets="$freeze_plainly $installed_targets" ;;
abi)
    # Only its names and types are looked at, which are in the one file.
    source_tree=stock-src
    targets=python
    ;;
esac

# ccache takes the compiler's place on PATH and not in CC: what sysconfig
# records must also compile extensions where there is no ccache.
use_ccache() {
    if [ -d /usr/lib/ccache ] && have ccache; then
        PATH=/usr/lib/ccache:$PATH
        case $variant in
        # Relative paths would show, in what a debugger reads, that it was
        # there.
        dist-*) CCACHE_BASEDIR= ;;
        *) CCACHE_BASEDIR=${CCACHE_BASEDIR:-$(pwd)} ;;
        esac
        export PATH CCACHE_BASEDIR
    fi
}

# The build runs the half-built interpreter.  It leaves memory to the system
# at exit, which is no error here.
set_sanitizer_options() {
    case $variant in
    asan)
        ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1
        UBSAN_OPTIONS=print_stacktrace=1
        export ASAN_OPTIONS UBSAN_OPTIONS
        ;;
    tsan)
        TSAN_OPTIONS=report_bugs=0
        export TSAN_OPTIONS
        ;;
    esac
}

# Variants that differ from another in what is left out, or in how much the
# compiler optimises, take over what the other's configure found out of this
# machine, from its log: to ask again takes half a minute each.  Two answers
# are left out: configure uses the one before it asks and does more than to
# remember the other, so that with them it would not come to the same.  Which
# modules there are is left to the arguments, which the answers would overrule.
use_answers() {
    case $variant in
    stub | abi) answered=release ;;
    dist-release | dist-stock-train | dist-stock) answered=dist-train ;;
    *) return ;;
    esac
    if [ -f "build/$answered/config.log" ]; then
        CONFIG_SITE=$(pwd)/build/$variant/config.site
        export CONFIG_SITE
        sed -n '/^ac_cv_env_/d
            /^ac_cv_gcc_asm_for_x64=/d; /^ac_cv_wl_no_as_needed=/d
            /^py_cv_module_/d
            /^[a-z]*_cv_[A-Za-z0-9_]*=/p' \
            "build/$answered/config.log" >"$CONFIG_SITE"
    fi
}

# A build directory made with other arguments starts anew: make cannot know
# that every object is stale.  ccache makes that cheap.
# shellcheck disable=SC2120
configure_variant() {
    if cmp -s "$args_file" "build/$variant/.args"; then
        return
    fi
    say "configuring $variant in build/$variant"
    rm -rf "build/$variant"
    mkdir "build/$variant"
    use_answers
    if ! (
        eval "set -- $(tr '\n' ' ' <"$args_file")"
        cd "build/$variant"
        "../$source_tree/configure" -q --enable-option-checking=fatal "$@"
    ) >"build/$variant.configure.log" 2>&1; then
        grep -v '^configure: WARNING' "build/$variant.configure.log" |
            tail -n 20 | sed 's/^/    /' >&2
        rm -rf "build/$variant"
        die "upstream's configure failed for $variant with the arguments" \
            "in build/args/$variant (its last messages are above, all of" \
            "them in build/$variant.configure.log). Correct the arguments, or run" \
            "\"./configure --install-deps\" as root if a library is missing."
    fi
    cp "$args_file" "build/$variant/.args"
}

# Upstream's own warnings are many and not ours to mend; those about our
# files are shown.
show_our_warnings() {
    [ -f "build/$source_tree/.overlay" ] || return 0
    grep -F -f "build/$source_tree/.overlay" "$log" | grep 'warning:' >&2 || :
}

build_variant() {
    log=build/$variant.build.log
    [ -x "build/$variant/python" ] ||
        say "building $variant in build/$variant (some minutes; the" \
            "compiler's messages go to $log)"
    # configure has made folders for objects; there may be new ones since.
    find Python/sampling -type d | sed "s|^|build/$variant/|" | xargs mkdir -p
    # The jobs are ours to count, not those of a make above.
    unset MAKEFLAGS MFLAGS MAKELEVEL
    # Unquoted: none, and "make" builds all.
    # shellcheck disable=SC2086
    if ! make -s -C "build/$variant" -j"${JOBS:-$(nproc)}" $targets \
        >"$log" 2>&1
    then
        grep -A 5 -E 'error:|undefined reference' "$log" | head -n 40 >&2
        tail -n 10 "$log" >&2
        die "building $variant failed (what matters of the compiler's" \
            "messages is above, all of them are in $log). What is built so" \
            "far is kept: \"make\" goes on from there."
    fi
    show_our_warnings
}

lock_build
sh Tools/build/prepare.sh "$source_tree"
use_ccache
set_sanitizer_options
# shellcheck disable=SC2119
configure_variant
[ "$stop_after" = configure ] || build_variant
