#!/bin/sh
# jeheap_stream_live.sh FIXTURE PRINT CLIENT GROWTH.py SYMBOLZ.py: dumps made by jemalloc now, converted while they are read.
# They say what the model says; go tool pprof finds the names, in the files and over HTTP; a later dump less an earlier one.
fixture=$1 print=$2 client=$3 growth=$4 symbolz=$5
dir=$(mktemp -d) || exit 1
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$dir"' EXIT
PATH=$PATH:/usr/local/go/bin PPROF_TMPDIR=$dir LC_ALL=C
export PATH PPROF_TMPDIR LC_ALL
n=0

check() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		echo "$3" | head -n 20 | sed 's/^/# /'
	fi
}

# run OUT CONF THREADS TURNS
run() {
	LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF="prof:true,$2" "$fixture" "$dir/$1" "$3" "$4"
}

# Samples with their frames' mappings, the mappings, the sums: without what a dump says and pprof does not.
facts() {
	"$print" "$1" | sed -n 's/^mapping \([^ ]* [^ ]* [^ ]*\) [X-]\( deleted\)\{0,1\}/mapping \1/; /^rate/!p'
}

# compare NAME COUNTS
compare() {
	said=$("$client" convert "$2" "$dir/$1" 2>&1 >"$dir/$1.pb.gz") && facts "$dir/$1" >"$dir/model" &&
		facts "$dir/$1.pb.gz" >"$dir/stream" && grep -q '^sample' "$dir/model" &&
		said=$(diff "$dir/model" "$dir/stream")
	check $? "$1, $2" "$said"
}

for rate in 0 12 16; do
	for accum in false true; do
		for threads in 1 4; do
			run "bent-$rate-$accum-$threads" "lg_prof_sample:$rate,prof_accum:$accum" $threads 20
			compare "bent-$rate-$accum-$threads" unbiased
			compare "bent-$rate-$accum-$threads" header
			run "raw-$rate-$accum-$threads" "lg_prof_sample:$rate,prof_accum:$accum,prof_unbias:false" $threads 20
			compare "raw-$rate-$accum-$threads" raw
			[ $threads = 1 ] || compare "raw-$rate-$accum-$threads" header
		done
	done
done

# One process, dumped again and again.
LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF="prof:true,lg_prof_sample:12,lg_prof_interval:20,prof_prefix:$dir/series" \
	"$fixture" "$dir/last" 4 40
set -- "$dir"/series.*.i1.heap "$dir/last"
if "$client" convert unbiased "$dir/last" "$1" >"$dir/grown.pb.gz"; then
	"$print" "$1" >"$dir/base.txt" && "$print" "$dir/last" >"$dir/now.txt" && "$print" "$dir/grown.pb.gz" >"$dir/grown.txt"
	said=$(python3 "$growth" "$dir/base.txt" "$dir/now.txt" "$dir/grown.txt" 2>&1)
	check $? "what was allocated since an earlier dump" "$said"
else
	check 1 "what was allocated since an earlier dump" ""
fi

profile=$dir/bent-12-false-4.pb.gz
if go tool pprof -h >/dev/null 2>&1 || [ $? -eq 2 ]; then
	said=$(go tool pprof -symbolize=none -raw "$profile" 2>&1)
	check $? "go tool pprof reads it" "$said"
	# The program is position independent, and its functions are static: nothing but its own symbols has the names.
	said=$(go tool pprof -symbolize=local -top -nodecount=1000 -nodefraction=0 -cum "$profile" 2>&1)
	named=0
	for function in mixed large small thread; do
		echo "$said" | grep -Eq " $function( \(inline\))?\$" || named=1
	done
	check $named "go tool pprof names the program's functions from its file" "$said"

	python3 "$symbolz" "$profile" "$dir/port" "$dir/asked" 2>"$dir/server.log" &
	server=$!
	for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s "$dir/port" ] || sleep 0.5; done
	url=http://127.0.0.1:$(cat "$dir/port")/debug/pprof/heap
	said=$(go tool pprof -symbolize=remote -raw "$url" 2>&1)
	"$print" "$profile" | sed -n 's/^sample.*| //p' | tr ' ' '\n' | sed -n 's/^\([0-9a-f]*\):[0-9]*$/0x\1/p' | sort -u >"$dir/frames"
	sort -u "$dir/asked" >"$dir/sorted"
	[ -s "$dir/frames" ] && diff "$dir/frames" "$dir/sorted" >"$dir/diff"
	check $? "go tool pprof asks /debug/pprof/symbol for every frame that lies in a mapping" "$(cat "$dir/diff" "$dir/server.log")"
	named=$(echo "$said" | grep -c ' remote_0x')
	[ "$named" -ge "$(wc -l <"$dir/frames")" ]
	check $? "and takes its names" "$named names: $said"
else
	n=$((n + 1))
	echo "ok $n - go tool pprof # SKIP it is not installed"
fi
echo "1..$n"
