#!/bin/sh
# Runs everything that must pass, goes on after a failure, and ends with a
# line "N passed, N failed" that counts the steps, after one that counts the
# files that ran again.
#
# usage: PYTHON=build/release/python Tools/test/run.sh
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/build/node.sh
. Tools/build/venv.sh

built_python=${PYTHON:-build/release/python}
# The tests are to see no setting of the caller's own.
for name in $(env | sed -n 's/^\(PYTHON[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
PYTHON=$(pwd)/$built_python
[ -x "$PYTHON" ] || die "$PYTHON does not exist. Run \"make\" first."

# A shell may start what it runs in the background with SIGINT ignored, which
# no shell can undo, and tests of interrupts would wait for ever.
if [ -z "${SIGINT_IS_RESET:-}" ]; then
    PYTHON=$built_python SIGINT_IS_RESET=1 exec "$PYTHON" -c '
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp("sh", ["sh", "Tools/test/run.sh"])'
fi

# Where the hooks run: start and end, threads, signals, forks, collections,
# frames of every kind, tasks, and the command line.  All but the last run
# while they are sampled, too.  The longest come first, so that no CPU waits
# for the last.
cpython_tests='test_threading test_signal test_asyncio.test_tasks
    test_asyncio.test_eager_task_factory test_asyncio.test_futures
    test_asyncio.test_taskgroups test_asyncio.test_threads test_embed
    test_capi test_cmd_line test_sys test_fork1 test_gc test_generators
    test_tools'

# Tests sleep a lot: more at once than there are CPUs.  0 is two more, as
# regrtest has it; ours measure time.
jobs=${JOBS:-0}
own_jobs=${JOBS:-$(($(nproc) + 1))}
passed=0
failed=0
failures=

# step TITLE COMMAND...: a subshell, so that "die" ends the step only.
step() {
    title=$1
    shift
    say ""
    say "== $title"
    started=$(date +%s)
    if ("$@"); then
        passed=$((passed + 1))
        verdict=passed
    else
        failed=$((failed + 1))
        failures="$failures
    $title"
        verdict=FAILED
    fi
    say "== $title: $verdict, $(($(date +%s) - started)) s"
}

# beside FUNCTION...: all at once, since each keeps one CPU busy.  What they
# say is for "said".
beside() {
    for function in "$@"; do
        ("$function" >"$scratch/$function" 2>&1 &&
            touch "$scratch/$function.passed") &
    done
    wait
}

said() {
    cat "$scratch/$1"
    [ -e "$scratch/$1.passed" ]
}

# Each file is a test of its own to regrtest: it can run beside another, and
# again without the others.
own_tests() {
    (cd Lib/test && ls test_profile_sampling/*/test_*.py) |
        sed 's,/,.,g; s/\.py$//'
}

# A file that is gone and still listed fails there.
own_tests_alone() {
    sed '/^#/d; /^$/d; s/^/test_profile_sampling./' Tools/test/alone.txt
}

# Other people's viewers, which read what the profiler writes.
make_viewers() {
    if have npm; then
        make_node_tools
    else
        say "there is no npm: tests that need other viewers are skipped"
    fi
}

# run_own_tests JOBS TEST...: with what some need beside the standard library.
run_own_tests() {
    make_venv build/venv Tools/test/requirements.txt
    make_viewers
    at_once=$1
    shift
    PATH=$(pwd)/build/venv/bin:$(pwd)/build/viewers/node_modules/.bin:$PATH \
        build/venv/bin/python Tools/test/own.py -j"$at_once" \
        --fail-env-changed --rerun "$@"
}

# Unquoted: one word per test.
# shellcheck disable=SC2046
own_tests_together() {
    run_own_tests "$own_jobs" $(own_tests | grep -Fvx "$(own_tests_alone)")
}

# shellcheck disable=SC2046
own_tests_one_by_one() {
    run_own_tests 1 $(own_tests_alone)
}

# That pytest finds all and can run some is enough: regrtest ran them.
own_tests_by_pytest() {
    make_venv build/venv Tools/test/requirements.txt
    run_pytest . --collect-only -q && run_pytest profiles
}

# run_pytest FOLDER OPTION...: by the path in the build tree, so that pytest
# imports the modules under the names that regrtest gives them.
run_pytest() {
    folder=$1
    shift
    build/venv/bin/python -m pytest -q -p no:cacheprovider "$@" \
        "build/src/Lib/test/test_profile_sampling/$folder"
}

cpython_tests_off() {
    # Unquoted: one word per test.
    # shellcheck disable=SC2086
    "$PYTHON" -m test -j"$jobs" $cpython_tests
}

# A tenth of CPython's tests; "make regrtest" runs them all.
cpython_tests_sampled() {
    sampled_dir=$(pwd)/build/test
    rm -rf "$sampled_dir"
    mkdir -p "$sampled_dir/profiles"
    sed -n '/^#/d; s/^\([^	]*\)	.*/\1/p' Tools/regrtest/under_sampling.txt \
        >"$sampled_dir/skipped"
    # Unquoted: one word per test.
    # shellcheck disable=SC2046
    PYTHONSAMPLEPROF="wall,rate_hz=5000,quiet=1,out=$sampled_dir/profiles/{pid}.pb.gz" \
        "$PYTHON" Tools/test/own.py -j"$jobs" --rerun -u walltime \
        --ignorefile "$sampled_dir/skipped" \
        $(sed '/^#/d' Tools/regrtest/tenth.txt) || return 1
    say "the profiles:"
    "$PYTHON" Tools/regrtest/profiles.py "$sampled_dir/profiles"
}

# It builds, says what is missing, and is a Python.  Of ours each folder is a
# test: most files are skipped, and to start a process for each takes longer.
# How Tools/ judges has nothing to do with the build.
without_profiler() {
    sh Tools/build/variant.sh stub || return 1
    stub=$(pwd)/build/stub/python
    "$stub" -c '
import sysconfig
assert sysconfig.get_config_var("WITH_SAMPLING_PROFILER") == 0' || return 1
    # Unquoted: one word per test.
    # shellcheck disable=SC2046
    "$stub" -m test -j"$jobs" test_embed test_sys \
        $(own_tests | sed '/\.tools\./d; s/\.[^.]*$//' | sort -u)
}

patches() {
    PYTHON=$built_python sh Tools/patches/check.sh
}

layers() {
    "$PYTHON" Tools/layers/check.py
}

abi() {
    sh Tools/build/variant.sh abi || return 1
    PYTHON=$built_python sh Tools/abi/check.sh
}

make_scratch
# Where own.py says what ran again.
RETRIES=$scratch/retries
export RETRIES
: >"$RETRIES"
step "our tests that need a quiet machine, one by one" own_tests_one_by_one
step "our other tests, some at once" own_tests_together
step "CPython's tests, sampling off" cpython_tests_off
step "CPython's tests, sampled at 5000 Hz" cpython_tests_sampled
step "a build without the profiler" without_profiler
# Sanitizers and assertions export names of their own.
abi=
[ "$built_python" != build/release/python ] || abi=abi
say ""
say "== what takes one CPU, at once"
# Unquoted: nothing, or one word.
# shellcheck disable=SC2086
beside layers own_tests_by_pytest patches $abi
step "which files use each other" said layers
step "our tests, by pytest" said own_tests_by_pytest
step "the patch series" said patches
[ -z "$abi" ] || step "the public ABI" said abi

say ""
[ "$failed" -eq 0 ] || say "failed:$failures"
again=$(paste -sd, "$RETRIES" | sed 's/,/, /g')
say "retries: $(wc -l <"$RETRIES") files ran again${again:+: $again}"
say "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
