#!/bin/bash
# view: the page and its data over HTTP, what changes while it runs, and who may ask.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
command -v curl >/dev/null || skip_all "curl is not installed"
unset DISPLAY WAYLAND_DISPLAY HEAPGAUGE_TOKEN_FILE http_proxy
started=()
trap 'kill "${started[@]}" 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT

dump before 0 ,prof_accum:true 2000 700
before=$dumped
if [ "$PAGE" = no ]; then
	fails "a program without the page says so" "built without the web page.*flame --to svg" heapgauge view "$before"
	done_testing
	exit 0
fi
dump after 0 ,prof_accum:true 2000 900
after=$dumped

# views OPTION… : a view in the background, its address in $url, its number in $view.
views() {
	: >url
	"$HEAPGAUGE" view --no-browser "$@" >url 2>said </dev/null &
	view=$!
	started+=("$view")
	for _ in $(seq 300); do [ ! -s url ] || break; sleep 0.05; done
	url=$(cat url)
}

# ends NAME : by SIGTERM, at once, with 0.
ends() {
	kill -TERM "$view"
	wait "$view"
	is "$1: it ends with 0" $? 0
	! curl -s -o got --max-time 5 "$url"
	ok $? "$1: and doesn't answer any more"
}

# asks NAME STATUS PATH CURL-OPTION… : below the address; what came is in ./got, the head in ./head.
asks() {
	local name=$1 wanted=$2 path=$3
	shift 3
	is "$name" "$(curl -s -D head -o got -w '%{http_code}' --max-time 30 "$@" "$url$path")" "$wanted"
}

# newer THAN : waits for a version above that.
newer() {
	for _ in $(seq 200); do
		[ "$(curl -s "${url}version")" -le "$1" ] || return 0
		sleep 0.05
	done
	return 1
}

# --- what is there ---
views "$before"
like "the address" url '^http://127\.0\.0\.1:[0-9]+/[0-9a-f]{32}/$'
is "nothing else is said" "$(cat said)" ""
asks "the page" 200 ""
like "the page: it knows where its data are" got '<meta name="heapgauge-data" content="data">'
unlike "the page: no data in it" got 'id="heapgauge-data"'
like "the page: it may fetch, from here only" head "^Content-Security-Policy: default-src 'none';.* connect-src 'self';"
is "the page: one policy" "$(grep -ci '^content-security-policy' head)" 1
asks "the data" 200 data
cp got data.gz
block data.gz >block.json
json "the data: what grow_here holds" block.json 'd["flat"]["grow_here"] == 700 * 3072 and d["header"]["rest"] is None'
json "the data: the command line" block.json "d['header']['command'] == ['heapgauge', '$before']"
asks "complete data" 200 "data?all=1"
cmp -s got data.gz
ok $? "complete data: the same, when nothing was left out"
asks "the version" 200 version
is "the version: a number" "$(cat got)" 1
asks "only known parameters" 400 "data?some=1"
asks "nothing else" 404 "index.html"
asks "no writing" 405 data -X POST
source=$(heapgauge top --json --by line "$before" | python3 -c 'import json, sys
print(next(r["file"] for r in json.load(sys.stdin)["rows"] if r["name"] == "grow_here"))')
asks "a source file" 200 source -G --data-urlencode "path=$source"
cmp -s got "$SOURCE/tests/cli/grow.c"
ok $? "a source file: its text"
like "a source file: as text" head '^Content-Type: text/plain'
asks "a file that is no source of it" 404 "source?path=/etc/passwd"
asks "no file" 404 "source"

# --- who may ask ---
port=${url#http://127.0.0.1:} port=${port%%/*}
is "no path" "$(curl -s -o got -w '%{http_code}' "http://127.0.0.1:$port/")" 404
is "another token" "$(curl -s -o got -w '%{http_code}' "http://127.0.0.1:$port/$(tr '0-9a-f' '1-9a-f0' <<<"${url: -33:32}")/data")" 404
is "no page without its slash" "$(curl -s -o got -w '%{http_code}' "${url%/}")" 404
asks "another host" 421 data -H "Host: example.net"
asks "localhost" 200 data -H "Host: localhost:$port"
asks "a page of somebody else" 403 data -H "Origin: http://example.net"
asks "a page of somebody else, fetched across sites" 403 data -H "Sec-Fetch-Site: cross-site"
first=${url: -33:32}
ends "a file"
views "$before"
[ "${url: -33:32}" != "$first" ]
ok $? "each time another token"
ends "another one"
misused "not on other machines' networks" "" heapgauge view --no-browser --listen unix:sock "$before"
fails "no other addresses" "" heapgauge view --no-browser --listen 192.0.2.1:0 "$before"
fails "a file that isn't there" "nowhere" heapgauge view --no-browser nowhere
misused "an expression that is none" "\[" heapgauge view --no-browser --focus '[' "$before"
misused "a metric it hasn't" "cpu" heapgauge view --no-browser --metric cpu "$before"

# --- snapshots and their order ---
touch -d '2026-01-02 03:04:05' "$before"
touch -d '2026-01-02 04:04:05' "$after"
views --metric inuse_objects --by line --focus grow "$after" "$before"
asks "two snapshots" 200 data
block got >block.json
json "two snapshots: the older one first" block.json \
	'[f["grow_here"] for f in d["flats"]] == [700 * 3072, 900 * 3072] and [s["name"] for s in d["header"]["snapshots"]] == ["'"$before"'", "'"$after"'"]'
json "two snapshots: an hour apart" block.json \
	'd["header"]["snapshots"][1]["time_ms"] - d["header"]["snapshots"][0]["time_ms"] == 3600000 and d["header"]["base"] is None'
json "the view's options are how it begins" block.json \
	'd["header"]["view"]["metric"] == "inuse_objects" and d["header"]["view"]["by"] == "line" and d["header"]["view"]["focus"] == "grow"'
ends "two snapshots"
heapgauge flame -o base.html --base "$before" "$after"
block base.html >block.json
json "flame --base: one more snapshot, which is subtracted" block.json \
	'd["header"]["base"] == 0 and [f["grow_here"] for f in d["flats"]] == [700 * 3072, 900 * 3072]'
json "flame --base: in the command line" block.json "d['header']['command'] == ['heapgauge', '--base', '$before', '$after']"
heapgauge flame -o merged.html --merge "$before" "$after"
block merged.html >block.json
json "flame --merge: of different processes, one" block.json 'len(d["flats"]) == 1 and d["flat"]["grow_here"] == 1600 * 3072'
misused "flame --merge: not of one process" "one process" heapgauge flame -o x.html --merge "$before" "$before"

# --- files change ---
cp "$before" watched.heap
views watched.heap
cp "$after" new.heap && mv new.heap watched.heap
newer 1
ok $? "a file that was replaced: a new version"
asks "a file that was replaced: data" 200 data
block got >block.json
json "a file that was replaced: what grow_here holds now" block.json 'd["flat"]["grow_here"] == 900 * 3072 and len(d["flats"]) == 1'
version=$(curl -s "${url}version")
head -c 600 "$before" >watched.heap
newer "$version"
ok $? "a file that is cut: a new version, for its note"
asks "a file that is cut: data" 200 data
block got >block.json
json "a file that is cut: the numbers stay" block.json 'd["flat"]["grow_here"] == 900 * 3072'
json "a file that is cut: a note says so" block.json 'any("watched.heap" in n and "is shown" in n for n in d["header"]["notes"])'
like "a file that is cut: it is said" said '^heapgauge: warning: watched\.heap:.*still shown$'
is "a file that is cut: once" "$(sleep 1.5; wc -l <said)" 1
version=$(curl -s "${url}version")
rm watched.heap
sleep 1.5
is "a file that is gone: nothing happens" "$(curl -s "${url}version")" "$version"
cp "$before" watched.heap
newer "$version"
asks "a file that is back" 200 data
block got >block.json
json "a file that is back: its numbers, no note" block.json 'd["flat"]["grow_here"] == 700 * 3072 and not d["header"]["notes"]'
ends "files that change"

# --- a process that lives ---
MALLOC_CONF=prof:true,lg_prof_sample:0 "$GROW_JEMALLOC" 10 500 wait >ready 2>&1 </dev/null &
grow=$!
started+=("$grow")
for _ in $(seq 200); do grep -q ready ready && break; sleep 0.05; done
if heapgauge top "pid:$grow" >out 2>err; then
	views --refresh 1 "pid:$grow"
	newer 2
	ok $? "a process: asked again"
	asks "a process: data" 200 data
	block got >block.json
	json "a process: each time a snapshot" block.json \
		'len(d["flats"]) >= 2 and all(f["grow_here"] == 500 * 3072 for f in d["flats"])'
	json "a process: in the order of time" block.json \
		'[s["time_ms"] for s in d["header"]["snapshots"]] == sorted(s["time_ms"] for s in d["header"]["snapshots"])'
	json "a process: one process" block.json 'len({s["process"] for s in d["header"]["sources"]}) == 1 and d["header"]["sources"][0]["process"]'
	kill "$grow"
	wait "$grow" 2>/dev/null
	for _ in $(seq 100); do [ ! -s said ] || break; sleep 0.05; done
	like "a process that ended: it is said" said "still shown"
	asks "a process that ended: what there was stays" 200 data
	block got >block.json
	json "a process that ended: with its numbers" block.json 'd["flat"]["grow_here"] == 500 * 3072'
	ends "a process"
else
	skip "a process" "attach does not work here: $(head -n 1 err)"
fi

# --- the browser ---
mkdir bin
printf '#!/bin/sh\necho "$1" >>"%s/opened"\n' "$scratch" >bin/xdg-open
chmod +x bin/xdg-open
: >url
PATH=$scratch/bin:$PATH DISPLAY=:99 "$HEAPGAUGE" view "$before" >url 2>said </dev/null &
view=$!
started+=("$view")
for _ in $(seq 200); do [ ! -s opened ] || break; sleep 0.05; done
is "with a display the browser gets the address" "$(cat opened 2>/dev/null)" "$(cat url)"
url=$(cat url)
ends "with a browser"
rm opened
PATH=$scratch/bin:$PATH DISPLAY=:99 views "$before"
ends "--no-browser"
[ ! -e opened ]
ok $? "--no-browser: none is opened"
done_testing
