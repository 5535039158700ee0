#!/bin/sh
# Writes Patches/ and its series back from the commits in build/patchwork.
# The same commits always give the same bytes.
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh

tree=build/patchwork
[ -d "$tree/.git" ] ||
    die "there is no build/patchwork. \"make patches-edit\" makes it from" \
        "Patches/."
[ -z "$(git -C "$tree" status --porcelain --untracked-files=no)" ] ||
    die "build/patchwork has changes that are in no commit. Commit or amend" \
        "them, then try again."
[ ! -d "$tree/.git/rebase-apply" ] && [ ! -d "$tree/.git/rebase-merge" ] ||
    die "a rebase or \"git am\" is under way in build/patchwork. Finish it," \
        "then try again."

make_scratch
mkdir "$scratch/patches"
# Whatever could differ from one user's git settings to another's is spelled.
git -C "$tree" -c diff.noprefix=false -c diff.mnemonicPrefix=false \
    -c diff.context=3 -c format.useAutoBase=false -c format.pretty=email \
    format-patch -q --zero-commit --no-signature -N --abbrev=7 --stat=79 \
    --no-attach --no-thread --no-signoff --no-cover-letter --no-from \
    --no-renames --no-ext-diff --diff-algorithm=myers \
    -o "$scratch/patches" base

(
    cd "$scratch/patches"
    find . -name '*.patch' | sed 's,^\./,,' | LC_ALL=C sort
) >"$scratch/series"
mkdir -p Patches
find Patches -maxdepth 1 -name '*.patch' | while read -r old; do
    [ -f "$scratch/patches/${old##*/}" ] || rm "$old"
done
while read -r new; do
    cmp -s "$scratch/patches/$new" "Patches/$new" ||
        cp "$scratch/patches/$new" "Patches/$new"
done <"$scratch/series"
cmp -s "$scratch/series" Patches/series || cp "$scratch/series" Patches/series
say "Patches/ holds $(wc -l <Patches/series) patches; \"make\" builds with" \
    "them, \"git diff Patches\" shows what changed"
