#!/bin/bash
# convert: every format, by name and by suffix, on an exact dump.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
dump exact 0 '' 2000 700
grown=$((700 * 3072))

runs 0 "pprof" heapgauge convert -o heap.pb.gz "$dumped"
is "pprof: gzip" "$(head -c 2 heap.pb.gz | od -An -tx1 | tr -d ' ')" "1f8b"
runs 0 "pprof is the default into a pipe" heapgauge convert "$dumped"
cmp -s out heap.pb.gz
ok $? "pprof into a pipe: the same bytes"
runs 0 "what we wrote, we read" heapgauge top --json heap.pb.gz
json "what we wrote, we read: the same figures" out "row('grow_here')['flat']['value'] == $grown"
runs 0 "pprof without names" heapgauge convert --raw -o raw.pb.gz "$dumped"
runs 0 "pprof without names, named later" heapgauge top --json raw.pb.gz
json "pprof without names, named later: the same figures" out "row('grow_here')['flat']['value'] == $grown"
if command -v go >/dev/null; then
	go tool pprof -top -sample_index=inuse_space -unit=B -nodecount=4 heap.pb.gz >out 2>err
	like "go tool pprof reads it: our figure" out "^ *${grown}B .* grow_here"
	go tool pprof -raw heap.pb.gz >out 2>err
	like "go tool pprof: the main program comes first, with its build id" out "^1: .*grow_jemalloc [0-9a-f]{40}"
	unlike "go tool pprof: the allocator is trimmed" out 'prof_backtrace|libjemalloc.*F='
	heapgauge convert --show-allocator -o whole.pb.gz "$dumped"
	go tool pprof -raw whole.pb.gz >out 2>err
	[ "$(wc -l <out)" -gt "$(go tool pprof -raw heap.pb.gz 2>err | wc -l)" ]
	ok $? "--show-allocator: more frames"
	if [ -n "${GROW_STATIC:-}" ]; then
		MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:0,prof_prefix:inside "$GROW_STATIC" 20 70
		heapgauge convert --show-allocator -o inside.pb.gz inside.*.heap
		go tool pprof -traces inside.pb.gz >out 2>err
		like "--show-allocator: go tool pprof shows it" out 'malloc|prof_'
		# The same frames, with the expression that is written without the option.
		python3 - heap.pb.gz inside.pb.gz <<-'END'
			import gzip, sys
			def varint(data, at):
			    value = shift = 0
			    while True:
			        byte = data[at]
			        value |= (byte & 127) << shift
			        at, shift = at + 1, shift + 7
			        if byte < 128:
			            return value, at
			def number(value):
			    return bytes([value & 127 | 128]) + number(value >> 7) if value > 127 else bytes([value])
			def read(path):
			    data = gzip.open(path).read()
			    strings, drop, at = [], 0, 0
			    while at < len(data):
			        tag, at = varint(data, at)
			        value, at = varint(data, at)
			        if tag & 7 == 2:
			            if tag >> 3 == 6:
			                strings.append(data[at:at + value])
			            at += value
			        elif tag >> 3 == 7:
			            drop = value
			    return data, strings, drop
			_, strings, drop = read(sys.argv[1])
			data, others, none = read(sys.argv[2])
			assert drop and not none
			expression = strings[drop]
			data += b"\x32" + number(len(expression)) + expression + b"\x38" + number(len(others))
			gzip.open(sys.argv[2], "wb").write(data)
		END
		go tool pprof -traces inside.pb.gz >out 2>err
		like "go tool pprof takes our drop_frames: the caller is the leaf" out '^ +[0-9.]+kB +grow_here$'
		unlike "go tool pprof takes our drop_frames: no allocator" out 'malloc|prof_'
	fi
else
	skip "go tool pprof reads it" "go is not installed"
fi
misused "a filter on pprof" "--focus has no meaning for pprof" heapgauge convert --focus x "$dumped"
if can_have_a_terminal; then
	script -qec "$HEAPGAUGE convert $dumped; echo status \$?" /dev/null >out </dev/null
	like "no binary on a terminal" out 'binary and standard output is a terminal'
	like "no binary on a terminal: wrong usage" out 'status 2'
else
	skip "no binary on a terminal" "no terminal can be made: there is no script(1), or no /dev/pts"
fi

html=html
[ "$PAGE" != no ] || html=
for format in folded json csv callgrind speedscope dot svg $html; do
	runs 0 "--to $format" heapgauge convert --to $format "$dumped"
	cp out "by-name.$format"
	[ $format != html ] || block by-name.html >out
	like "--to $format: with names" out 'grow_here'
done
for suffix in folded:folded collapsed:folded txt:folded json:json csv:csv callgrind:callgrind \
	speedscope.json:speedscope dot:dot gv:dot svg:svg ${html:+html:html htm:html}; do
	heapgauge convert -o "file.${suffix%:*}" "$dumped" && cmp -s "file.${suffix%:*}" "by-name.${suffix#*:}"
	ok $? "a file's suffix .${suffix%:*} means ${suffix#*:}"
done
heapgauge convert -o callgrind.out.1 "$dumped" && cmp -s callgrind.out.1 by-name.callgrind
ok $? "callgrind.out.1 means callgrind"
heapgauge convert --to csv -o other.json "$dumped" && cmp -s other.json by-name.csv
ok $? "--to wins over the suffix"

for format in callgrind speedscope; do
	heapgauge convert --to $format --by line "$dumped" | cmp -s - by-name.$format
	ok $? "$format: by line is the default"
	heapgauge convert --to $format --by function "$dumped" >out
	! cmp -s out by-name.$format
	ok $? "$format: --by function"
done
for format in folded json csv dot svg html; do
	heapgauge convert --to $format --by function "$dumped" | cmp -s - by-name.$format
	ok $? "$format: by function is the default"
done
json "speedscope: the source line of each frame" by-name.speedscope \
	"any(f['name'] == 'grow_here' and f.get('file', '').endswith('grow.c') and f.get('line') for f in d['shared']['frames'])"
if command -v callgrind_annotate >/dev/null; then
	callgrind_annotate by-name.callgrind >out 2>err
	like "callgrind_annotate: what a source line holds" out '^ *2,150,400 .*last = malloc\(3000\);'
else
	skip "callgrind_annotate: what a source line holds" "valgrind is not installed"
fi
like "folded: root first" by-name.folded "main;grow_here $grown\$"
like "folded: by thread" <(heapgauge convert --to folded --by thread "$dumped") '^t0.* [0-9]+$'
json "json" by-name.json
json "speedscope" by-name.speedscope '"speedscope" in d["$schema"]'
like "csv: a row" by-name.csv "^$grown,.*grow_here"
python3 -c 'import xml.dom.minidom; xml.dom.minidom.parse("by-name.svg")'
ok $? "svg: well-formed XML"
if command -v dot >/dev/null; then
	dot -Tplain by-name.dot >out 2>err
	like "dot: graphviz reads it" out 'grow_here'
else
	skip "dot: graphviz reads it" "graphviz is not installed"
fi
heapgauge convert --to folded --focus stay_here "$dumped" >out
unlike "filters apply to texts" out grow_here
heapgauge convert --to folded --metric inuse_objects "$dumped" >out
like "--metric applies to texts" out 'grow_here 700$'
heapgauge top --json by-name.folded >out
json "folded is read again" out "row('grow_here')['flat']['value'] == $grown"
done_testing
