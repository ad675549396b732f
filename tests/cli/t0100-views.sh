#!/bin/bash
# top, tree, peek, traces, flame on an exact dump, whose figures are known.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
dump exact 0 ,prof_accum:true 2000 700

runs 0 "top" heapgauge top "$dumped"
like "top: what grow_here holds, to the byte" out '^ *2\.05 MiB .* grow_here'
like "top: what stay_here holds" out '^ *1\.95 MiB .* stay_here'
unlike "top: the allocator's frames are cut" out 'prof_backtrace|imalloc|libjemalloc'
unlike "into a pipe: no colours" out $'\e'
is "top: nothing on standard error" "$(cat err)" ""
runs 0 "top --json" heapgauge top --json "$dumped"
json "top --json: exact bytes" out \
	'row("grow_here")["flat"]["value"] == 700 * 3072 and row("stay_here")["flat"]["value"] == 2000 * 1024'
json "top --json: pid of the file's name" out "d['sources'][0]['pid'] == $(cut -d. -f2 <<<"$dumped")"
runs 0 "top by objects" heapgauge top --json --metric inuse_objects "$dumped"
json "top by objects: blocks" out 'row("grow_here")["flat"]["value"] == 700'
runs 0 "jeprof's name for it" heapgauge top --json --inuse_objects "$dumped"
json "jeprof's name: blocks" out 'row("grow_here")["flat"]["value"] == 700'
runs 0 "pprof's name for it" heapgauge top --json --sample_index=alloc_space "$dumped"
json "pprof's name: bytes" out 'row("grow_here")["flat"]["value"] == 700 * 3072'
misused "a metric it hasn't" "--metric cpu: the profile has only .*inuse_space" heapgauge top --metric cpu "$dumped"
runs 0 "top by line" heapgauge top --by line "$dumped"
like "top by line: the line" out "grow\.c:$(grep -n 'malloc(3000)' "$SOURCE/tests/cli/grow.c" | cut -d: -f1)"
runs 0 "top by binary" heapgauge top --by binary --json "$dumped"
json "top by binary: the program" out 'row(d["program"])["flat"]["value"] >= 700 * 3072 + 2000 * 1024'
runs 0 "top without names" heapgauge top --symbols none "$dumped"
like "top without names: binary and offset" out 'grow_jemalloc!0x[0-9a-f]+'
runs 0 "top from symbol tables" heapgauge top --symbols table "$dumped"
like "top from symbol tables: names" out 'grow_here$'
runs 0 "top without symbols" heapgauge top --symbols none "$dumped"
like "top without symbols: says how much has no name" out '^Note: +[0-9.]+% lie in frames without a name'
runs 0 "top -n 1" heapgauge top -n 1 --json "$dumped"
json "top -n 1: one row" out 'len(d["rows"]) == 1 and d["rows"][0]["name"] == "grow_here"'
runs 0 "--focus" heapgauge top --focus stay_here --json "$dumped"
json "--focus: only that" out 'd["total"]["value"] == 2000 * 1024'
runs 0 "--ignore" heapgauge top --ignore stay_here --json -n 0 "$dumped"
json "--ignore: not that" out 'not any(r["name"] == "stay_here" for r in d["rows"])'
runs 0 "--show-allocator" heapgauge top --show-allocator -n 0 "$dumped"
like "--show-allocator: it is shown" out 'libjemalloc|malloc'
misused "a bad regular expression" "--focus.*\(" heapgauge top --focus '(' "$dumped"

runs 0 "colours on demand" heapgauge top --colour always "$dumped"
like "colours on demand: they are there" out $'\e\\['
runs 0 "--color is the same" heapgauge top --color=always "$dumped"
like "--color: they are there" out $'\e\\['
if can_have_a_terminal; then
	script -qec "$HEAPGAUGE top $dumped" /dev/null >out </dev/null
	like "on a terminal: colours" out $'\e\\['
	NO_COLOR=1 script -qec "$HEAPGAUGE top $dumped" /dev/null >out </dev/null
	unlike "on a terminal with NO_COLOR: none" out $'\e\\['
	script -qec "$HEAPGAUGE flame --to svg $dumped" /dev/null >out </dev/null
	like "flame on a terminal: names its file" out 'heapgauge-flame.svg'
	like "flame on a terminal: the file is there" heapgauge-flame.svg '<svg'
	script -qec "{ head -c 300 $dumped; sleep 1.5; tail -c +301 $dumped; } | $HEAPGAUGE top - >/dev/null" /dev/null \
		>out </dev/null
	like "a slow input on a terminal: what it is doing" out 'reading standard input …'
	like "a slow input on a terminal: the line is wiped" out $'\\\r\e\\[K$'
	script -qec "$HEAPGAUGE top - <$dumped >/dev/null" /dev/null >out </dev/null
	is "a quick one: nothing" "$(cat out)" ""
else
	skip "on a terminal" "no terminal can be made: there is no script(1), or no /dev/pts"
fi
runs 0 "a narrow width" heapgauge top --width 60 "$dumped"
[ "$(sed '1,/^$/d' out | wc -L)" -le 60 ]
ok $? "a narrow width: rows fit"

runs 0 "tree" heapgauge tree "$dumped"
like "tree: main above grow_here" out 'main'
like "tree: grow_here" out 'grow_here'
runs 0 "tree --invert" heapgauge tree --invert --json "$dumped"
json "tree --invert: leaves at the root" out 'any(n["depth"] == 1 and n["name"] == "grow_here" for n in d["nodes"][1:])'
runs 0 "peek" heapgauge peek '^grow_here$' "$dumped"
like "peek: the caller" out 'main'
runs 0 "peek --json" heapgauge peek --json '^grow_here$' "$dumped"
json "peek --json" out 'd["entries"][0]["name"] == "grow_here"'
misused "peek with a bad expression" "\[" heapgauge peek '[' "$dumped"
runs 0 "traces" heapgauge traces -n 1 "$dumped"
like "traces: the biggest stack" out 'grow_here'
runs 0 "traces --json" heapgauge traces -n 1 --json "$dumped"
json "traces --json: one stack, leaf first" out 'd["stacks"][0]["frames"][0]["name"] == "grow_here" and len(d["stacks"]) == 1'
runs 0 "flame into a pipe" heapgauge flame --to svg "$dumped"
like "flame: a picture" out '<svg.*'
like "flame: with names" out 'grow_here'
python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse("out")'
ok $? "flame: well-formed XML"
if [ "$PAGE" = no ]; then
	heapgauge flame "$dumped" | cmp -s - out
	ok $? "flame: a picture is what a program without the page makes"
	fails "flame -o x.html without the page" "built without the web page" heapgauge flame -o x.html "$dumped"
else
	runs 0 "flame: the page, unless something else is asked for" heapgauge flame "$dumped"
	like "flame: a page" out '^<!doctype html>'
	block out >block.json
	json "flame: its numbers" block.json 'd["flat"]["grow_here"] == 700 * 3072'
	json "flame: complete" block.json 'd["header"]["rest"] is None'
	misused "flame: a page of 1,000 bytes" "--max-size" heapgauge flame --to html --max-size 1000 "$dumped"
fi

heapgauge top --json "$dumped" >plain
heapgauge top --json - <"$dumped" >out
json "standard input: same figures" out 'row("grow_here")["flat"]["value"] == 700 * 3072'
json "standard input: no time is made up" out 'not d["sources"][0].get("time")'
gzip -k "$dumped"
heapgauge top --json "$dumped.gz" >out
json "gzip: same figures" out 'row("grow_here")["flat"]["value"] == 700 * 3072'
gzip -c "$dumped" | heapgauge top --json - >out
json "gzip on standard input" out 'row("grow_here")["flat"]["value"] == 700 * 3072'
mkfifo pipe
cat "$dumped" >pipe &
heapgauge top --json pipe >out
json "a FIFO" out 'row("grow_here")["flat"]["value"] == 700 * 3072'
wait
touch -d '2026-01-02 03:04:05 UTC' "$dumped"
heapgauge top --json "$dumped" >out
json "time of the file" out 'd["sources"][0]["time"].startswith("2026-01-02T03:04:05")'

runs 0 "-o" heapgauge top -o report.txt "$dumped"
like "-o: the file" report.txt 'grow_here'
is "-o: nothing on standard output" "$(cat out)" ""
cp "$GROW_JEMALLOC" moved
cp "$dumped" elsewhere.heap
sed -i "s|$GROW_JEMALLOC|/nonexistent/program|" elsewhere.heap
runs 0 "a program that is gone: still a report" heapgauge top elsewhere.heap
like "a program that is gone: frames by offset" out 'program!0x'
like "a program that is gone: one warning" err '^heapgauge: warning: .*program'
runs 0 "--binary" heapgauge top --binary moved elsewhere.heap
like "--binary: names again" out 'grow_here'
mkdir symbols && cp moved symbols/program
runs 0 "--debug-dir" heapgauge top --debug-dir symbols elsewhere.heap
like "--debug-dir: names again" out 'grow_here'
runs 0 "--symbol-path: its older name" heapgauge top --symbol-path symbols elsewhere.heap
like "--symbol-path: its older name" out 'grow_here'
done_testing
