# Sourced by the tests of the command line: TAP, a scratch folder that goes away, real dumps.
# HEAPGAUGE is the binary; GROW_JEMALLOC, GROW_GLIBC and GROW_STATIC are grow.c linked with jemalloc,
# without, and with jemalloc inside; SOURCE is the top of the source tree.
set -u
export LC_ALL=C.UTF-8 TERM=xterm
unset NO_COLOR MALLOC_CONF _RJEM_MALLOC_CONF LD_PRELOAD DEBUGINFOD_URLS HEAPGAUGE_CACHE
scratch=$(mktemp -d)
# Go keeps there what it has compiled, which takes it a minute (go tool pprof).
[ -n "${GOCACHE:-}" ] || ! command -v go >/dev/null || GOCACHE=$(go env GOCACHE)
export GOCACHE
export XDG_CACHE_HOME="$scratch/cache"
trap 'chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1
count=0

heapgauge() {
	"$HEAPGAUGE" "$@"
}

# ok STATUS NAME : 0 is a pass.
ok() {
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; fi
	return "$1"
}

skip() {
	count=$((count + 1))
	echo "ok $count - $1 # SKIP $2"
}

skip_all() {
	echo "1..0 # SKIP $1"
	exit 0
}

done_testing() {
	echo "1..$count"
}

# Can script(1) make a terminal? Not where /dev/pts is missing.
can_have_a_terminal() {
	command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1 </dev/null
}

diagnose() {
	sed 's/^/# /' "$@"
}

# is NAME GOT WANTED
is() {
	[ "$2" = "$3" ]
	ok $? "$1" || printf '# got:    %s\n# wanted: %s\n' "$2" "$3"
}

# like NAME FILE PATTERN : an extended regular expression found in the file.
like() {
	grep -qE -e "$3" "$2"
	ok $? "$1" || { echo "# not found: $3"; head -n 30 "$2" | diagnose; }
}

unlike() {
	! grep -qE -e "$3" "$2"
	ok $? "$1" || { echo "# found: $3"; head -n 30 "$2" | diagnose; }
}

# runs STATUS NAME COMMAND… : its output in ./out, its messages in ./err; both stay for like.
runs() {
	local wanted=$1 name=$2 got
	shift 2
	"$@" >out 2>err </dev/null
	got=$?
	[ "$got" -eq "$wanted" ]
	ok $? "$name" || { echo "# exit status $got, wanted $wanted: $*"; head -n 20 err | diagnose; }
}

# fails NAME PATTERN COMMAND… : exit 1, nothing on standard output, one line on standard error that
# begins with "heapgauge: " and matches.
fails() {
	local name=$1 pattern=$2
	shift 2
	"$@" >out 2>err </dev/null
	complains $? 1 1 "$name" "$pattern"
}

# misused NAME PATTERN COMMAND… : exit 2, the line and a hint.
misused() {
	local name=$1 pattern=$2
	shift 2
	"$@" >out 2>err </dev/null
	complains $? 2 2 "$name" "$pattern"
}

# complains STATUS WANTED LINES NAME PATTERN : about ./out and ./err.
complains() {
	local bad=''
	[ "$1" -eq "$2" ] || bad="exit status $1, wanted $2"
	[ ! -s out ] || bad="$bad; something on standard output"
	[ "$(wc -l <err)" -eq "$3" ] || bad="$bad; $(wc -l <err) lines on standard error, wanted $3"
	head -n 1 err | grep -qE -e "^heapgauge: .*($5)" || bad="$bad; the message does not match $5"
	[ "$3" -ne 2 ] || tail -n 1 err | grep -q "^Try 'heapgauge help" || bad="$bad; no hint"
	[ -z "$bad" ]
	ok $? "$4" || { echo "# $bad"; head -n 10 err | cut -c1-300 | diagnose; }
}

# block FILE : what a page (or a bare data block) tells, as JSON: its header, and the default type's flat amounts by function, by snapshot
# (flats) and of the last one (flat).
block() {
	PYTHONPATH=$SOURCE/tests/report python3 -B -c 'import json, sys, page_block
data = open(sys.argv[1], "rb").read()
b = page_block.Block(data) if data[:2] == b"\x1f\x8b" else page_block.of_page(data)
flats = [{} for _ in b.header["snapshots"]]
for r in b.rows:
    flat = flats[b.header["sources"][r.source]["snapshot"]]
    name = b.frames[b.frame[r.node]][0] if r.node else ""
    flat[name] = flat.get(name, 0) + r.values[b.header["default_type"]]
json.dump({"header": b.header, "flats": flats, "flat": flats[-1]}, sys.stdout)' "$1"
}

# json NAME FILE [EXPRESSION] : the file is JSON, and the Python expression over it (d) is true.
json() {
	python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert eval(sys.argv[2], {"d": d, "abs": abs, "row": lambda name: next(r for r in d["rows"] if r["name"] == name)})' \
		"$2" "${3:-True}" 2>json-err
	ok $? "$1" || { tail -n 2 json-err | diagnose; { head -c 600 "$2"; echo; } | diagnose; }
}

# dump NAME LG_SAMPLE OPTIONS STAY GROW : a real dump of grow.c at its exit, as NAME.<pid>.0.f.heap; its
# name in $dumped.
dump() {
	MALLOC_CONF="prof:true,prof_final:true,lg_prof_sample:$2,prof_prefix:$1$3" "$GROW_JEMALLOC" "$4" "$5"
	dumped=$(ls "$1".*.0.f.heap)
}
