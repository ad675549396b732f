#!/bin/bash
# Differences: two runs of one position-independent program, two moments of one process.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
readelf -h "$GROW_JEMALLOC" 2>/dev/null | grep -q 'DYN'
ok $? "the program is position-independent"

dump before 0 '' 3000 500
before=$dumped
dump after 0 '' 3000 2500
after=$dumped
[ "$(grep -m1 grow_jemalloc "$before")" != "$(grep -m1 grow_jemalloc "$after")" ]
ok $? "the two runs lie at different addresses"
runs 0 "diff of two runs, exact" heapgauge diff --json -n 0 "$before" "$after"
json "grow_here grew by 2000 blocks" out 'row("grow_here")["flat"]["change"] == 2000 * 3072'
json "stay_here did not change" out 'not any(r["name"] == "stay_here" for r in d["rows"])'
json "and nothing else to speak of" out 'abs(d["total"]["change"] - 2000 * 3072) < 4096'
runs 0 "the other way round" heapgauge diff --json -n 0 "$after" "$before"
json "it shrank by as much" out 'row("grow_here")["flat"]["change"] == -2000 * 3072'
runs 0 "as text" heapgauge diff "$before" "$after"
like "as text: growth with its sign" out '\+5\.86 MiB .* grow_here'
runs 0 "without names" heapgauge diff --symbols none --json -n 0 "$before" "$after"
json "without names: matched by offset all the same" out \
	'any(r["flat"]["change"] == 2000 * 3072 and "grow_jemalloc!0x" in r["name"] for r in d["rows"])'
heapgauge convert --raw -o before.pb.gz "$before"
runs 0 "a pprof base" heapgauge diff --json before.pb.gz "$after"
json "a pprof base: the same growth" out 'row("grow_here")["flat"]["change"] == 2000 * 3072'
runs 0 "diff with itself" heapgauge diff --json "$before" "$before"
json "diff with itself: nothing" out 'd["rows"] == [] and d["total"]["change"] == 0'

# Sampled: the interval, three times as wide (more than five sigma), holds the truth.
dump sampled-before 16 '' 30000 5000
sampled=$dumped
dump sampled-after 16 '' 30000 15000
runs 0 "diff of two runs, sampled" heapgauge diff --json -n 0 "$sampled" "$dumped"
json "growth is significant and right within its error" out \
	'row("grow_here")["significant"] and abs(row("grow_here")["flat"]["change"] - 10000 * 3072) < 1.5 * (row("grow_here")["flat"]["high"] - row("grow_here")["flat"]["low"])'
json "what stayed did not grow, within its error" out \
	'all(abs(r["flat"]["change"]) < 1.5 * (r["flat"]["high"] - r["flat"]["low"]) for r in d["rows"] if r["name"] == "stay_here")'
json "these are two processes" out 'not d["same_process"]'

# Two moments of one process, by interval dumps.
runs 0 "a run with dumps on the way" heapgauge run -q -d moments --rate 1 --every 4m -- "$GROW_JEMALLOC" 3000 3000
mapfile -t moments < <(ls moments | sort -t. -k3n)
[ "${#moments[@]}" -ge 3 ]
ok $? "there are several dumps"
runs 0 "diff of two moments" heapgauge diff --json "moments/${moments[0]}" "moments/${moments[-1]}"
json "they are known to be one process" out 'd["same_process"]'
json "it grew" out 'row("grow_here")["flat"]["change"] > 1000000 and row("grow_here")["significant"]'
runs 0 "in the wrong order" heapgauge diff "moments/${moments[-1]}" "moments/${moments[0]}"
like "in the wrong order: a warning" err '^heapgauge: warning: the base .* was written after .*shrinking$'

# jemalloc numbers threads as they first allocate: the worker of another run may have another number.
run_of() { # FILE THREAD-NUMBER PAGE BLOCKS
	local bytes=$((64 * $4))
	printf '%s\n' 'heap_v2/1' "  t*: $4: $bytes [0: 0]" "  t$2: $4: $bytes [0: 0] worker" "@ 0x$3010 0x$3020" "  t*: $4: $bytes [0: 0]" \
		"  t$2: $4: $bytes [0: 0]" '' 'MAPPED_LIBRARIES:' "$3000-$3fff r-xp 00000000 08:01 77 /srv/app" >"$1"
}
run_of worker-1 1 7f0000400 100
run_of worker-9 9 7f0000800 150
runs 0 "traces of a diff of two runs with threads" heapgauge traces --symbols none --base worker-1 --json worker-9
json "one stack of the worker, whatever its number" out \
	'[(s["thread"], s["amount"]["base"], s["amount"]["new"], s["objects"]["base"], s["objects"]["new"]) for s in d["stacks"]] == [("worker", 6400, 9600, 100, 150)]'

for view in top tree traces 'flame --to svg' 'peek grow' 'convert --to folded' 'convert --to svg' 'convert --to json'; do
	runs 0 "$view --base" heapgauge $view --base "$before" "$after"
	like "$view --base: it is there" out grow_here
done
runs 0 "top --base --json" heapgauge top --base "$before" --json "$after"
json "top --base: the change" out 'd["diff"] and row("grow_here")["flat"]["change"] == 2000 * 3072'
heapgauge convert --to folded --base "$before" "$after" >out
like "folded --base: two numbers" out "grow_here $((500 * 3072)) $((2500 * 3072))\$"
done_testing
