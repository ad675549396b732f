#!/bin/bash
# Several profiles: different processes add up when asked; moments of one process never.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
dump one 0 '' 100 200
one=$dumped
dump two 0 '' 100 300
two=$dumped
dump three 0 '' 100 400
three=$dumped

misused "two processes without --merge" "2 profiles were given: --merge .*diff" heapgauge top "$one" "$two"
runs 0 "three processes with --merge" heapgauge top --merge --json "$one" "$two" "$three"
json "bytes add up" out 'row("grow_here")["flat"]["value"] == 900 * 3072 and row("stay_here")["flat"]["value"] == 300 * 1024'
json "all three are named" out 'len(d["sources"]) == 3'
runs 0 "converted together" heapgauge convert --merge -o sum.pb.gz "$one" "$two"
runs 0 "and read again" heapgauge top --json sum.pb.gz
json "the sum is in the file" out 'row("grow_here")["flat"]["value"] == 500 * 3072'
runs 0 "diff of one against two" heapgauge diff --merge --json "$one" "$two" "$three"
json "diff of one against two: the sum minus the base" out 'row("grow_here")["flat"]["change"] == 500 * 3072'

heapgauge run -q -d moments --rate 1 --every 1m -- "$GROW_JEMALLOC" 2000 2000
mapfile -t moments < <(printf '%s\n' moments/*.heap | sort -t. -k3n)
for command in top tree traces 'flame --to svg' 'peek x' 'convert --to folded'; do
	misused "$command of several dumps of one process" "one process.*heapgauge diff.*leaks" \
		heapgauge $command "${moments[0]}" "${moments[1]}"
done
misused "the same with --merge" "one process.*heapgauge diff.*leaks" heapgauge top --merge "${moments[0]}" "${moments[1]}"
misused "the same among others" "one process" heapgauge top --merge "$one" "${moments[0]}" "$two" "${moments[1]}"
misused "one file twice" "one process" heapgauge top --merge "$one" "$one"
misused "also under other names" "one process" heapgauge top --merge <(cat "${moments[0]}") <(cat "${moments[1]}")
heapgauge convert --raw -o moment.pb.gz "${moments[0]}"
misused "also as pprof" "one process" heapgauge top --merge moment.pb.gz "${moments[1]}"
done_testing
