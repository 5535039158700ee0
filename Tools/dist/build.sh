#!/bin/sh
# Builds what a distribution is made of, in build/dist-FLAVOUR.
#
# usage: Tools/dist/build.sh FLAVOUR
#
#   release  optimised at link time and with a profile: the counts of a
#            training run, which "train" makes first
#   train    counts what it does
#   stock    as release, without our patches: the yardstick; and
#   stock-train
#   debug    with assertions and symbols
#   quick    as release, hardly optimised: to try the scripts with
#
# The counts are build/dist/FLAVOUR.gcda.tar.xz.  They are not quite the same
# after two runs, and they are made once: who has them, and the same source,
# makes the same bytes.  Counts of another source do not fit and are made anew.
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
# Which flavour counts for this one, of which source, and where the counts are.
trainer=train
tree=src
[ "${flavour#stock}" = "$flavour" ] || {
    trainer=stock-train
    tree=stock-src
}
profile=$root/build/dist/$trainer.gcda.tar.xz

# Names of functions that are linked in are nobody's but ours: another
# module may bring another version of the same library.
hidden_archives() {
    find "$sysroot/usr/lib" -name '*.a' -exec basename {} \; |
        grep -v -x -e 'libc.*nonshared.a' -e libpthread.a -e libc.a |
        LC_ALL=C sort | tr '\n' ':' | sed 's/:$//'
}

# common_options [FLAG]: of all flavours, with a flag of this one that those
# who compile an extension are not to see.
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
    quote "CFLAGS_NODIST=-ffile-prefix-map=$root/build=. ${1:-}"
    quote "LDFLAGS_NODIST=-static-libgcc -lpthread \
-Wl,--exclude-libs,$(hidden_archives) ${1:-}"
    # configure tries nice(), which says "broken" at the lowest priority.
    quote ac_cv_broken_nice=no
    # Newer than the oldest glibc; what they are for works without them.
    for newer in gettid sem_clockwait; do
        quote "ac_cv_func_$newer=no"
    done
}

# Both halves of an optimised build have to look alike to the compiler when
# it counts and when it uses the counts; optimising at link time comes after
# that, so that the first half can do without.
optimised_options() {
    quote --disable-test-modules
    quote "OPT=-DNDEBUG -O3 -Wall"
    case $1 in
    *train) ;;
    *)
        # Other counts make another build; configure keeps the name.
        quote "DIST_PROFILE=$(sha256_of "$profile")"
        quote --with-lto
        # As configure would have it, without symbols for a debugger.
        quote "LTOCFLAGS=-flto -ffat-lto-objects -flto-partition=none"
        ;;
    esac
    common_options -fno-semantic-interposition
}

# What make adds, as CPython's own Makefile does for a build with a profile:
# bootstrapping is linked with it, too.
set_profile_flags() {
    case $flavour in
    *train)
        CFLAGS_NODIST=-fprofile-generate
        LDFLAGS_NODIST=-fprofile-generate
        ;;
    release | stock)
        CFLAGS_NODIST="-fprofile-use -fprofile-correction -Wno-missing-profile"
        # configure asks for symbols when it optimises at link time.  They
        # name this directory, and the build ID, which strip(1) leaves, is
        # made of them, too.
        LDFLAGS_NODIST="-fprofile-use -g0"
        ;;
    *) return ;;
    esac
    export CFLAGS_NODIST LDFLAGS_NODIST
}

options_of() {
    case $1 in
    release | stock | *train) optimised_options "$1" ;;
    quick)
        quote --disable-test-modules
        quote 'OPT=-DNDEBUG -O1 -Wall'
        common_options
        ;;
    debug)
        quote --disable-test-modules
        quote --with-pydebug
        common_options
        ;;
    *) die "\"$1\" is no flavour: release, debug, stock, quick," \
        "train or stock-train." ;;
    esac
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

# What the counts are of.  Names that begin with the directory would differ
# from place to place.
counted() {
    {
        gcc --version | head -n 1
        cat "$sysroot/.recipe" Tools/dist/build.sh Tools/dist/dist.conf
        cd "build/$tree"
        find -L . -name '*.[chS]' -exec sha256sum {} + | LC_ALL=C sort
    } | sha256sum
}

have_profile() {
    [ -f "$profile" ] || return 1
    [ "$(tar -xJOf "$profile" ./counted 2>/dev/null)" != "$(counted)" ] ||
        return 0
    say "$profile is of another source, or was counted in another way"
    return 1
}

# Hashes, addresses and random numbers decide how often most of the code runs;
# here they are those of every run, ours or stock's.
steadily() {
    fixed="setarch -R"
    $fixed true 2>/dev/null || fixed=
    # SOURCE_DATE_EPOCH is where the tests take their random numbers from.
    PYTHONHASHSEED=0 SOURCE_DATE_EPOCH=1 $fixed "$@"
}

# No test profiles anything, and the compiler would take all of the profiler
# for code that never runs.  So a profiled program counts, too, but for our
# files only: how CPython's own are laid out is for programs without it, and
# as it is in stock.
count_ours() {
    out=$scratch/trained.pb.gz
    # Unquoted: one word per argument.
    # shellcheck disable=SC2086
    GCOV_PREFIX=$scratch/profiled \
        ./python -X "sampleprof=rate_hz=2000,out=$out" $dist_profiled_task &&
        ./python -m profile_sampling report "$out"
}

keep_ours() {
    for ours in Python/sampling Modules/_profile; do
        cp -R "$scratch/profiled/$(pwd -P)/$ours/." "$ours/" || return
    done
}

# The tests that most of an optimised CPython is trained with, run by the
# instrumented interpreter, one after the other.
train() {
    say "training (some minutes; messages go to build/$variant.train.log)"
    # "set -e" does not hold where a failure is waited for.
    # Unquoted: one word per argument.
    # shellcheck disable=SC2086
    (
        cd "build/$variant" &&
            { [ "$flavour" != train ] || count_ours; } &&
            find . -name '*.gcda' -exec rm {} + &&
            steadily ./python $dist_profile_task &&
            { [ "$flavour" != train ] || keep_ours; }
    ) >"build/$variant.train.log" 2>&1 ||
        die "the training run failed; what it said is in" \
            "build/$variant.train.log."
    keep_profile
}

keep_profile() {
    counted >"build/$variant/counted"
    (
        cd "build/$variant"
        find . -name '*.gcda' -o -path ./counted | LC_ALL=C sort |
            tar -cJf "$scratch/profile" --mtime="@$SOURCE_DATE_EPOCH" \
                --owner=0 --group=0 --numeric-owner --mode=a+r,u+w,go-w \
                --no-recursion -T -
    )
    mv "$scratch/profile" "$profile"
}

# One object says of when the interpreter is, and make does not see that the
# date is another one now.
renew_date() {
    [ "$(cat "build/$variant/.date" 2>/dev/null)" != "$SOURCE_DATE_EPOCH" ] ||
        return 0
    rm -f "build/$variant/Modules/getbuildinfo.o"
    echo "$SOURCE_DATE_EPOCH" >"build/$variant/.date"
}

# The compiler looks for the counts beside the object that it writes.
use_profile() {
    [ ! -x "build/$variant/python" ] || return 0
    tar -xJf "$profile" -C "build/$variant"
}

lock_build
make_scratch
sh Tools/dist/sysroot.sh
sh Tools/build/prepare.sh "$tree"
case $flavour in
release | stock) have_profile || sh Tools/dist/build.sh "$trainer" ;;
esac
mkdir -p build/args
options_of "$flavour" >"$scratch/args"
cmp -s "$scratch/args" "build/args/$variant" ||
    mv "$scratch/args" "build/args/$variant"
set_source_date
sh Tools/build/variant.sh "$variant" configure
renew_date
write_setup
case $flavour in
release | stock) use_profile ;;
esac
(
    set_profile_flags
    sh Tools/build/variant.sh "$variant"
)
case $flavour in
*train) have_profile || train ;;
esac
