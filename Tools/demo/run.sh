#!/bin/sh
# Profiles two programs of the standard library at work, shows the reports,
# and says which files it wrote.  Called by "make demo".
#
# json.tool reads a large file and writes it anew: Python code, C code,
# collections, files.  http.server serves the standard library to several
# clients: a thread per request, sockets, waits for the GIL.
set -eu
cd "$(dirname "$0")/../.."
. Tools/build/common.sh

# What make has just built, unless the caller names another interpreter.
python=${PYTHON:-./python}
if [ -z "${PYTHON:-}" ] && [ -n "${VARIANT:-}" ]; then
    python=build/$VARIANT/python
fi
[ -x "$python" ] || die "$python does not exist. Run \"make\" first."
# The programs are to see no setting of the caller's own.
for name in $(env | sed -n 's/^\(PYTHON[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done

demo=build/demo
log=$demo/log.txt
serve_seconds=5
mkdir -p "$demo"
rm -f "$demo"/json.* "$demo"/http.*

# run TITLE COMMAND...: shows nothing but the profiler's own line.
run() {
    say ""
    say "== $1"
    shift
    if ! "$@" >"$log" 2>&1; then
        cat "$log" >&2
        die "the demo failed (its messages are above)."
    fi
    grep '^sampleprof: ' "$log" || :
}

# show NAME TOP: the report on screen, and the same profile in other formats.
show() {
    [ -s "$demo/$1.pb.gz" ] ||
        die "$demo/$1.pb.gz was not written; see $log."
    "$python" -m profile_sampling report "$demo/$1.pb.gz" \
        -o "$demo/$1.txt"
    "$python" -m profile_sampling report "$demo/$1.pb.gz" \
        -o "$demo/$1.collapsed"
    "$python" -m profile_sampling report "$demo/$1.pb.gz" \
        -o "$demo/$1.html"
    say ""
    "$python" -m profile_sampling report --top "$2" "$demo/$1.pb.gz"
}

json_tool() {
    "$python" -X "sampleprof=wall,out=$demo/json.pb.gz" \
        -m json.tool "$demo/big.json" "$demo/out.json"
}

http_server() {
    lib=$("$python" -c 'import os; print(os.path.dirname(os.__file__))') &&
    "$python" Tools/demo/browse.py "$serve_seconds" "$demo/access.log" \
        "$python" -u -X "sampleprof=wall,out=$demo/http.pb.gz" \
        -m http.server --bind 127.0.0.1 --directory "$lib" 0 &&
    grep '^sampleprof: ' "$demo/access.log"
}

"$python" Tools/demo/make_json.py "$demo/big.json"
run "$python -X sampleprof=wall,out=$demo/json.pb.gz -m json.tool" json_tool
show json 12
run "$python -X sampleprof=wall,out=$demo/http.pb.gz -m http.server" \
    http_server
show http 20
rm -f "$demo/big.json" "$demo/out.json"

say ""
say "== Files written"
for name in json http; do
    say "  $demo/$name.pb.gz       the profile, in pprof's format"
    say "  $demo/$name.collapsed   the same as collapsed stacks"
    say "  $demo/$name.txt         the report as text"
    say "  $demo/$name.html        the page for browsers"
done
cat <<LOOK

== How to look at them
  $python -m profile_sampling report $demo/http.pb.gz
                          the report again (--help: other formats)
  go tool pprof -http=:8080 $demo/http.pb.gz
                          graph, flame graph and source in the browser;
                          "go tool pprof -top -lines" without one
  speedscope.app          drop one of the .pb.gz or .collapsed files on it
  flamegraph.pl $demo/http.collapsed >http.svg
                          a picture (weights are microseconds)

== And your own program
  $python -m profile_sampling record -o profile.html your_program.py

== The page of http.server's profile: open it in a browser
  file://$(pwd)/$demo/http.html
LOOK
