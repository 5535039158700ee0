#!/bin/sh
# Moves Patches/ to another version of CPython: fetches it, applies each patch
# by a merge of three versions, generates anew what is generated, builds and
# tests, and says what is left for a person.  What a person has done in
# between is kept: run it again to go on.
#
# usage: Tools/patches/rebase.sh VERSION
#
# REBASE_TEST="make test": the command that has to succeed in the end.
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh
. Tools/build/tree.sh
. Tools/build/fetch.sh
. Tools/patches/patchwork.sh
. ./upstream.conf

wanted=${1:-}
work=build/patchwork
# Where the merge came from and what it is for, between two runs.
state=$work/.git/rebase-upstream
cache_dir=${XDG_CACHE_HOME:-${HOME:-$(pwd)/build}/.cache}/cpython-sampleprof
log=build/rebase.log

usage() {
    die "$1 Say which version: \"make rebase UPSTREAM=3.13.x\" (now it is" \
        "$upstream_version)."
}

check_wanted() {
    case $wanted in
    '') usage "no version was given." ;;
    *[!0-9.]* | *..* | .* | *.) usage "\"$wanted\" is no version." ;;
    esac
    [ "${wanted%.*}" = "${upstream_version%.*}" ] ||
        usage "\"$wanted\" is not of the series ${upstream_version%.*}, for \
which the patches are."
    have git || die "git is missing."
    [ -f build/sources.conf ] || die "run ./configure first."
}

# Where two changes meet, what both began with is shown, too: the difference
# to it is what the patch wants.
work_git() {
    patchwork_git "$work" -c merge.conflictStyle=diff3 "$@"
}

# A tree of Debian's in which the wanted version is today; apt has checked
# its signature.  Sets $found_suite.
fetch_wanted() {
    debian_orig_tarball=${debian_source}_$wanted.orig.tar.xz
    archive_uri=$(debian_archive_uri)
    found_suite=
    have apt-get && [ -n "$archive_uri" ] ||
        die "$wanted is fetched as Debian's source package, and this" \
            "machine knows no Debian archive. Change upstream.conf by hand," \
            "as CONTRIBUTING.md says, and run this again."
    for debian_suite in "$debian_suite" testing unstable; do
        say "looking for $wanted in Debian $debian_suite"
        rm -rf "$scratch/apt"
        fetch_debian_source "$archive_uri" || continue
        if [ -f "$scratch/apt/download/$debian_orig_tarball" ]; then
            found_suite=$(sed -n 's/^Codename: //p' \
                "$scratch"/apt/lists/*Release | head -n 1)
            return
        fi
    done
    die "no suite of Debian has $debian_orig_tarball today."
}

# The fixes that Debian has added to this version, as far as they have a
# number; a new version may have none.
first_security_patch() {
    tar -xJOf "$1" debian/patches/series |
        sed -n 's/[[:space:]].*//; /^CVE-.*\.patch$/{p;q;}'
}

set_conf() {
    sed "s|^$1=.*|$1=$2|" upstream.conf >"$scratch/conf"
    cp "$scratch/conf" upstream.conf
}

write_conf() {
    downloaded=$scratch/apt/download
    store "$downloaded/$debian_orig_tarball"
    digest=$(sha256_of "$downloaded/$debian_orig_tarball")
    set_conf upstream_version "$wanted"
    set_conf upstream_sha256 "$digest"
    set_conf debian_suite "$found_suite"
    . ./upstream.conf
    fixes=$(find_debian_tarball "$downloaded")
    [ -n "$fixes" ] || die "Debian's package of $wanted has no patches."
    store_debian_tarball "$fixes"
    set_conf debian_first_security_patch "$(first_security_patch "$fixes")"
    . ./upstream.conf
    say "upstream.conf: CPython $wanted, sha256 $digest, Debian" \
        "$debian_suite, fixes from" \
        "\"${debian_first_security_patch:-none needed}\" on"
}

# unpack_to DIRECTORY: the version that upstream.conf names, with its fixes.
unpack_to() {
    mkdir -p "$1"
    unpack_pristine "$1"
    if [ -n "$debian_tarball" ] && [ -n "$debian_first_security_patch" ]; then
        rm -rf "$scratch/security"
        unpack_security_patches "$scratch/security"
        apply_security_patches "$1/$upstream_topdir" "$scratch/security"
    fi
}

# Both versions in one repository: the old one with our commits, and the new
# one, which becomes the tag "base".
unfold_both() {
    # shellcheck source=/dev/null
    . build/sources.conf
    unpack_to "$scratch/old"
    old=$scratch/old/$upstream_topdir
    start_patchwork "$old"
    unfold_series "$old" ||
        die "Patches/$ours does not apply to $upstream_version, for which" \
            "it is (git's messages are above). Mend that first."
    patchwork_git "$old" tag -f old-base base >/dev/null
    patchwork_git "$old" branch -q old
    was=$upstream_version
    fetch_wanted
    write_conf
    pristine_tarball=$cache_dir/$debian_orig_tarball
    unpack_to "$scratch/new"
    new=$scratch/new/$upstream_topdir
    mv "$old/.git" "$new/.git"
    patchwork_git "$new" checkout -q --orphan fresh
    patchwork_git "$new" add -A -f
    patchwork_git "$new" commit -q \
        -m "CPython $upstream_version, with the security patches in use"
    patchwork_git "$new" tag -f base >/dev/null
    echo "$was $wanted" >"$new/.git/rebase-upstream"
    mv "$new" "$work"
}

subject_of() {
    work_git log -1 --format=%s "$1"
}

# What a tool wrote is written anew afterwards: upstream's text will do.
leave_generated() {
    work_git checkout -q -f HEAD -- .
    work_git -c core.editor=true cherry-pick --skip >/dev/null 2>&1 ||
        [ -f "$work/.git/CHERRY_PICK_HEAD" ] ||
        die "git cannot go on in $work."
    left_generated="$left_generated
    $1"
}

# Files that a person has still to mend: those with git's marks in them, and
# those that one side removed, for which only "git add" or "git rm" can tell.
to_be_mended() {
    work_git status --porcelain --untracked-files=no | while read -r how file; do
        case $how in
        UU | AA) ! grep -q '^[<>]\{7\} ' "$work/$file" || echo "$file" ;;
        DD | AU | UD | UA | DU) echo "$file" ;;
        esac
    done
}

# With what a person has made of the files.  A patch of which nothing is left
# would keep git from going on.
take_mended() {
    work_git add -u
    if work_git diff --cached --quiet HEAD; then
        say "nothing is left of this patch: $1"
        set -- --skip
    else
        set -- --continue
    fi
    work_git -c core.editor=true cherry-pick "$1" >"$scratch/pick.log" 2>&1 ||
        [ -f "$work/.git/CHERRY_PICK_HEAD" ] || {
        tail -n 5 "$scratch/pick.log" | sed 's/^/    /' >&2
        die "git cannot go on in $work (its messages are above)."
    }
}

ask_a_person() {
    say "this patch needs a person: $1"
    to_be_mended | while read -r file; do
        say "" "$work/$file: this is the patch (what git has not marked" \
            "in the file has merged)"
        work_git show --format= CHERRY_PICK_HEAD -- "$file" |
            sed '1,/^+++/d; s/^/    /'
    done
    say ""
    die "mend these files: put the patch's lines where they belong now, and" \
        "take out git's marks. Then run \"make rebase UPSTREAM=$wanted\" again."
}

# Ends with every commit of ours on the new base, or says which one needs a
# person.
merge_all() {
    left_generated=
    while [ -f "$work/.git/CHERRY_PICK_HEAD" ]; do
        stuck=$(subject_of CHERRY_PICK_HEAD)
        case $stuck in
        *generated*) leave_generated "$stuck" ;;
        *)
            [ -z "$(to_be_mended)" ] || ask_a_person "$stuck"
            take_mended "$stuck"
            ;;
        esac
    done
    [ ! -d "$work/.git/sequencer" ] ||
        die "a cherry-pick is under way in $work. Finish it, then try again."
}

start_merge() {
    say "merging $(series | wc -l) patches"
    work_git cherry-pick old-base..old >"$scratch/pick.log" 2>&1 ||
        [ -f "$work/.git/CHERRY_PICK_HEAD" ] || {
        tail -n 5 "$scratch/pick.log" | sed 's/^/    /' >&2
        die "git cannot merge (its messages are above)."
    }
}

# step COMMAND...: everything it says goes to the log, the end of it to
# the reader if it fails.
step() {
    say "$*"
    "$@" >>"$log" 2>&1 || {
        tail -n 15 "$log" | sed 's/^/    /' >&2
        die "\"$*\" failed (its last messages are above, all of them in" \
            "$log). What is done so far is kept: mend it, then run \"make" \
            "rebase UPSTREAM=$wanted\" again."
    }
}

configure_again() {
    (
        eval "set -- $(tr '\n' ' ' <build/args/release)"
        ./configure "$@"
    )
}

# The patch that holds what a tool made of a file: the last with "generated"
# in its subject that touches it, in the old series.
generated_patch_of() {
    work_git log --format='%H %s' old-base..old -- "$1" |
        grep generated | head -n 1 | cut -d ' ' -f 1
}

# A commit of the old series, found again in the new one by its subject; one
# that was left out is made anew, with its message.
commit_generated() {
    from=$(generated_patch_of "$1")
    [ -n "$from" ] || {
        left_over="$left_over
    $1"
        return 0
    }
    work_git add "$1"
    here=$(work_git log --format='%H %s' base..HEAD |
        grep -F " $(subject_of "$from")" | head -n 1 | cut -d ' ' -f 1)
    if [ -n "$here" ]; then
        work_git commit -q --fixup "$here"
    else
        work_git commit -q -C "$from"
    fi
}

# Generated files can need each other, so this goes round until none changes.
regenerate_all() {
    left_over=
    for round in 1 2 3; do
        step make regen
        work_git status --porcelain --untracked-files=no |
            cut -c 4- >"$scratch/changed"
        [ -s "$scratch/changed" ] || return 0
        say "round $round: $(wc -l <"$scratch/changed") generated files"
        while read -r changed; do
            commit_generated "$changed"
        done <"$scratch/changed"
        [ -z "$left_over" ] ||
            die "these files are generated and in no patch:$left_over"
        GIT_SEQUENCE_EDITOR=true work_git rebase -q -i --autosquash base \
            >>"$log" 2>&1 || die "git cannot put generated files into their" \
            "patches; finish the rebase in $work, then run this again."
        step sh Tools/patches/refresh.sh
        step make
    done
    die "generated files still change after three rounds: \"make regen\"" \
        "says which."
}

report() {
    rm -f "$state"
    say "" "Patches/ is for CPython $wanted now. What is left:"
    say "  * read \"git diff upstream.conf Patches\" and commit it"
    say "  * read what is new in $wanted about threads, signals, the eval" \
        "loop and the collector; the hooks merged by text alone"
    [ -z "$debian_first_security_patch" ] ||
        say "  * see whether debian_first_security_patch is the first one" \
            "that fixes something"
    say "  * \"make bench\" against stock, and \"make dist\""
}

check_wanted
if [ -f "$state" ] && [ "$(cut -d ' ' -f 2 "$state")" = "$wanted" ]; then
    say "going on with what is in $work"
    make_scratch
elif [ -e "$work" ]; then
    die "$work exists. Run \"make patches-refresh\" to keep what you did" \
        "there, then remove it."
elif [ "$wanted" = "$upstream_version" ]; then
    die "the patches are for $wanted already."
else
    make_scratch
    : >"$log"
    unfold_both
    start_merge
fi
merge_all
[ -z "$left_generated" ] ||
    say "to be generated anew:$left_generated"
step sh Tools/patches/refresh.sh
step configure_again
step make
regenerate_all
step sh -c "${REBASE_TEST:-make patches-check && make test}"
report
