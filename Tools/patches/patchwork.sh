# shellcheck shell=sh disable=SC2154
# A git work tree with upstream's source and our series on top.  Sourced;
# needs common.sh and tree.sh, which set the variables that are not set here.

# patchwork_git TREE COMMAND...: commits in a scratch tree need some author
# and none of the user's settings, signatures or hooks.
patchwork_git() {
    work_tree=$1
    shift
    git -C "$work_tree" -c user.name=patchwork \
        -c user.email=patchwork@localhost -c commit.gpgsign=false \
        -c core.hooksPath=/dev/null -c core.autocrlf=false \
        -c gc.auto=0 "$@"
}

# start_patchwork TREE: what the directory holds becomes the tag "base".
start_patchwork() {
    patchwork_git "$1" init -q -b patchwork
    # Forced: upstream's .gitignore names files that its tarball contains.
    patchwork_git "$1" add -A -f
    patchwork_git "$1" commit -q --allow-empty \
        -m "CPython $upstream_version, with the security patches in use"
    patchwork_git "$1" tag base
}

# unfold_series TREE: one commit per patch, none of them applied loosely.
unfold_series() {
    root=$(pwd)
    for ours in $(series); do
        patchwork_git "$1" am -q "$root/Patches/$ours" \
            >"$scratch/am.log" 2>&1 </dev/null || {
            sed 's/^/    /' "$scratch/am.log" >&2
            return 1
        }
    done
}
