# shellcheck shell=sh
# The one date that a distribution knows: that of the source it is made of.
# Sourced, after Tools/build/common.sh.

# Whoever builds from an archive has no commit to ask and gives the date.
set_source_date() {
    if [ -z "${SOURCE_DATE_EPOCH:-}" ]; then
        SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null) ||
            die "git is missing, or this is no checkout of it: say of when" \
                "the source is, by SOURCE_DATE_EPOCH=SECONDS."
    fi
    export SOURCE_DATE_EPOCH
}

release_date() {
    date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d
}
