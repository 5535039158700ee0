#!/bin/sh
# Builds what a distribution is made of, in build/dist-FLAVOUR.
#
# usage: Tools/dist/build.sh release|debug|stock|quick
#
#   release  optimised with a profile and at link time
#   debug    with assertions and symbols
#   stock    as release, without our patches: the yardstick
#   quick    as release, hardly optimised: to try the scripts with
#
# DIST_PROFILE=FILE: the counts that an earlier build kept, FLAVOUR.gcda.tar.xz
# in build/dist, in place of a training run; with them the same source gives
# the same bytes.
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/dist/date.sh
. Tools/dist/dist.conf

flavour=$1
variant=dist-$flavour
root=$(pwd)
sysroot=$root/build/dist/sysroot
multiarch=$(gcc -print-multiarch)
profile=$root/build/dist/$flavour.gcda.tar.xz

# Names of functions that are linked in are nobody's but ours: another
# module may bring another version of the same library.
hidden_archives() {
    find "$sysroot/usr/lib" -name '*.a' -exec basename {} \; |
        grep -v -x -e 'libc.*nonshared.a' -e libpthread.a -e libc.a |
        LC_ALL=C sort | tr '\n' ':' | sed 's/:$//'
}

common_options() {
    quote "--prefix=$dist_prefix"
    quote --with-readline=editline
    quote --with-dbmliborder=
    quote --with-system-libmpdec=no
    # A compiler looks beside itself first, if it is not told otherwise.
    quote "CC=gcc --sysroot=$sysroot -B$sysroot/usr/lib/$multiarch/"
    # An archive does not know which others it needs, its .pc does.
    quote "PKG_CONFIG=pkg-config --static"
    quote "PKG_CONFIG_LIBDIR=$sysroot/usr/lib/$multiarch/pkgconfig"
    quote "PKG_CONFIG_SYSROOT_DIR=$sysroot"
    quote "CFLAGS_NODIST=-ffile-prefix-map=$root/build=."
    quote "LDFLAGS_NODIST=-static-libgcc -lpthread \
-Wl,--exclude-libs,$(hidden_archives)"
    # Newer than the oldest glibc; what they are for works without them.
    for newer in gettid sem_clockwait; do
        quote "ac_cv_func_$newer=no"
    done
}

options_of() {
    case $1 in
    release | stock)
        quote --enable-optimizations
        quote --with-lto
        quote --disable-test-modules
        quote "PROFILE_TASK=$dist_profile_task"
        ;;
    quick)
        quote --disable-test-modules
        quote 'OPT=-DNDEBUG -O1 -Wall'
        ;;
    debug)
        quote --with-pydebug
        ;;
    *) die "\"$1\" is no flavour: release, debug, stock or quick." ;;
    esac
    common_options
}

# Debian compiles some archives for programs only, so that what uses them has
# to be in the interpreter.
write_setup() {
    cat >"$scratch/Setup.local" <<'SETUP'
*static*
_bz2 _bz2module.c
_curses_panel _curses_panel.c
_curses _cursesmodule.c
_uuid _uuidmodule.c
readline readline.c
SETUP
    cmp -s "$scratch/Setup.local" "build/$variant/Modules/Setup.local" ||
        cp "$scratch/Setup.local" "build/$variant/Modules/Setup.local"
}

use_profile() {
    [ -f "$DIST_PROFILE" ] || die "there is no file $DIST_PROFILE."
    [ ! -f "build/$variant/profile-run-stamp" ] || return 0
    tar -xJf "$DIST_PROFILE" -C "build/$variant"
    touch "build/$variant/profile-run-stamp"
}

# Counts of the training run are not the same twice, so they are kept: they
# are what a build is made from, like the source.
keep_profile() {
    (
        cd "build/$variant"
        find . -name '*.gcda' | LC_ALL=C sort |
            tar -cJf "$profile" --mtime="@$SOURCE_DATE_EPOCH" --owner=0 \
                --group=0 --numeric-owner --no-recursion -T -
    )
}

lock_build
make_scratch
sh Tools/dist/sysroot.sh
mkdir -p build/args
options_of "$flavour" >"$scratch/args"
cmp -s "$scratch/args" "build/args/$variant" ||
    mv "$scratch/args" "build/args/$variant"
set_source_date
sh Tools/build/variant.sh "$variant" configure
write_setup
[ -z "${DIST_PROFILE:-}" ] || use_profile
sh Tools/build/variant.sh "$variant"
case $flavour in
release | stock) keep_profile ;;
esac
