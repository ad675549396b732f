#!/bin/bash
# symbolize: names for a profile that has none, in every form, by readers without rights, and from the cache.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
dump exact 0 '' 2000 700
grown=$((700 * 3072))
heapgauge convert --raw -o raw.pb.gz "$dumped"
heapgauge top --symbols none raw.pb.gz >out
unlike "the profile has no names before" out grow_here

runs 0 "pprof is the default" heapgauge symbolize raw.pb.gz
cp out named.pb.gz
heapgauge top --symbols none --json named.pb.gz >out
json "pprof: named, with the same figures" out "row('grow_here')['flat']['value'] == $grown"
heapgauge top --symbols none --by line named.pb.gz >out
like "pprof: with lines" out 'grow\.c:[0-9]+'
heapgauge symbolize -o file.pb.gz raw.pb.gz
cmp -s file.pb.gz named.pb.gz
ok $? "-o: the same bytes"
heapgauge symbolize "$dumped" >out && cmp -s out <(heapgauge convert "$dumped")
ok $? "a dump is a profile, too: what convert makes of it"

html=html
[ "$PAGE" != no ] || html=
for format in pprof folded svg $html text json; do
	heapgauge symbolize --no-cache --to $format - <raw.pb.gz >plain.$format 2>err
	ok $? "--to $format, from standard input" || diagnose err
	[ ! -s err ]
	ok $? "--to $format: no warning" || diagnose err
	heapgauge symbolize --to $format - <raw.pb.gz | cmp -s plain.$format -
	ok $? "--to $format: the same bytes from the cache"
done
for format in folded svg text json; do
	like "--to $format: with names" plain.$format grow_here
done
for format in folded svg $html json; do
	heapgauge convert --to $format - <raw.pb.gz | cmp -s - plain.$format
	ok $? "--to $format: as convert has it"
done
heapgauge top - <raw.pb.gz | cmp -s - plain.text
ok $? "--to text: as top has it"
heapgauge symbolize --to folded <(cat raw.pb.gz) | cmp -s - plain.folded
ok $? "from a pipe by name"
heapgauge symbolize --to folded raw.pb.gz | cmp -s - plain.folded
ok $? "from a file"
runs 0 "filters apply to the forms that are views" heapgauge symbolize --to folded --focus stay_here raw.pb.gz
unlike "filters apply to the forms that are views: only those" out grow_here
misused "filters have no meaning for pprof" "--focus has no meaning for pprof" heapgauge symbolize --focus x raw.pb.gz

# The page: nothing from elsewhere, its policy before anything that acts, no text of ours outside of the data.
if [ "$PAGE" = no ]; then
	fails "html: a program without the page says so" "built without the web page.*flame --to svg" heapgauge symbolize --to html raw.pb.gz
else
	heapgauge symbolize --to html --title '<script>x</script>' raw.pb.gz >page.html
	like "html: a page" <(head -n 1 page.html) '^<!doctype html>$'
	like "html: its policy" page.html "Content-Security-Policy.*default-src 'none'"
	[ "$(grep -n Content-Security-Policy page.html | cut -d: -f1 | head -n 1)" -lt "$(grep -n '<script' page.html | cut -d: -f1 | head -n 1)" ]
	ok $? "html: its policy comes first"
	unlike "html: the title is not in the markup" page.html '<script>x'
	block page.html >block.json
	json "html: the data have the title" block.json 'd["header"]["title"] == "<script>x</script>"'
	heapgauge top --json raw.pb.gz >top.json
	is "html: and what was profiled" "$(python3 -c 'import json; print(json.load(open("block.json"))["flat"]["grow_here"])')" \
		"$(python3 -c 'import json
print(next(r["flat"]["value"] for r in json.load(open("top.json"))["rows"] if r["name"] == "grow_here"))')"
	heapgauge flame --to html - <raw.pb.gz | cmp -s - plain.html
	ok $? "flame --to html: the same page"
	heapgauge flame -o flame.html - <raw.pb.gz && cmp -s flame.html plain.html
	ok $? "flame -o: a file's suffix .html means html"
fi

# The cache.
rm -r cache
runs 0 "--no-cache" heapgauge symbolize --no-cache raw.pb.gz
[ ! -e cache ]
ok $? "--no-cache: none is made"
HEAPGAUGE_CACHE=off heapgauge symbolize raw.pb.gz >out && [ ! -e cache ] && cmp -s out named.pb.gz
ok $? "HEAPGAUGE_CACHE=off: none is made"
heapgauge symbolize raw.pb.gz >out && ls cache/heapgauge/*.names >/dev/null && cmp -s out named.pb.gz
ok $? "otherwise there is one"
[ "$(stat -c %a cache/heapgauge)" = 700 ]
ok $? "the cache is nobody else's"
for file in cache/heapgauge/*; do
	head -c 100 "$file" >cut && cat cut >"$file"
done
heapgauge symbolize raw.pb.gz 2>&1 | cmp -s - named.pb.gz
ok $? "a damaged cache: the same, without a word"
chmod 500 cache/heapgauge && rm -f cache/heapgauge/* 2>/dev/null
heapgauge symbolize raw.pb.gz 2>&1 | cmp -s - named.pb.gz
ok $? "a cache that can't be written: the same, without a word"
chmod 700 cache/heapgauge

# Readers.
fails "a damaged profile" "truncated|ends|corrupt|cut" heapgauge symbolize <(head -c 300 raw.pb.gz)
fails "no such file" "nowhere: cannot open" heapgauge symbolize nowhere
if nm -D "$HEAPGAUGE" 2>/dev/null | grep -q __asan; then
	skip "too little memory" "not under a sanitizer"
else
	runs 0 "too little memory" heapgauge symbolize --no-cache --memory-limit 64K --to folded raw.pb.gz
	like "too little memory: a warning says so" err "ran out of memory .limit|could be read"
	[ "$(grep -c . out)" -eq "$(grep -c . plain.folded)" ]
	ok $? "too little memory: everything else is there"
fi

# Under strace: whoever opens files maps no answer of a stranger, and whoever reads them has no rights.
if command -v strace >/dev/null && strace -f -o trace true 2>/dev/null; then
	ASAN_OPTIONS=detect_leaks=0 strace -f -o trace "$HEAPGAUGE" symbolize --no-cache raw.pb.gz >out 2>err
	like "readers give up their rights" trace 'PR_SET_SECCOMP'
	unlike "none of them does what is forbidden" trace 'killed by SIGSYS'
	awk '/PR_SET_SECCOMP/ { inside[$1] = 1; next } inside[$1] && /open|socket|fork|clone3/ && / = [0-9]+$/ { bad = 1 } END { exit bad }' trace
	ok $? "readers open nothing"
else
	skip "readers give up their rights" "strace is not installed, or may not trace"
fi
done_testing
