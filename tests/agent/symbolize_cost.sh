#!/bin/bash
# symbolize_cost.sh HOST: what names for its profile cost a program on jemalloc that records every allocation: less than a
# MiB, and nothing on its heap. (bench/symbolize_cost.py does it with 400 MB of debug information and a peer.)
set -u
host=$1
unset LD_PRELOAD MALLOC_CONF
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
n=0
result() {
	n=$((n + 1))
	if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

MALLOC_CONF=prof:true,lg_prof_sample:0 "$host" 3 folded "$folder/named" >"$folder/out" 2>"$folder/err"
result $? "the profile gets names"
sed 's/^/# /' "$folder/out" "$folder/err"
grep -qE '(^|;)main;units_run;unit_keep [0-9]+$' "$folder/named"
result $? "those of the program"
[ "$(grep -c '^round' "$folder/out")" -eq 3 ]
result $? "three times"
# round: ms without names and with; resident before, between, after, at the peak of each; anonymous before, after; same
while read -r _ _ _ _ between after _ peak _ _ same; do
	[ "$same" -eq 1 ]
	result $? "its next dump has the same stacks and counts"
	[ $((after - between)) -le 1024 ]
	result $? "resident memory: at most 1 MiB more with names than without (now $((after - between)) KiB, peak $((peak - between)) KiB)"
done < <(grep '^round' "$folder/out")
# What unpacks to more than the symbolizer's readers may have (128 MiB) is named by its symbols, without files and lines.
if command -v objcopy >/dev/null; then
	head -c 120000000 /dev/zero >"$folder/zeros"
	objcopy --add-section .debug_types="$folder/zeros" "$host" "$folder/large" &&
		objcopy --compress-debug-sections=zlib "$folder/large" "$folder/packed"
	rm -f "$folder/zeros" "$folder/large"
	library=$(ldd "$host" | awk '/libheapgauge/ { print $3 }')
	export LD_LIBRARY_PATH=${library%/*}
	for program in "$host" "$folder/packed"; do
		MALLOC_CONF=prof:true,lg_prof_sample:0 "$program" 1 pprof "$folder/$(basename "$program").gz" >"$folder/out" 2>"$folder/err"
		result $? "$(basename "$program"): a profile with names"
		sed 's/^/# /' "$folder/err"
		gzip -dc "$folder/$(basename "$program").gz" >"$folder/$(basename "$program").pb"
		grep -qa unit_keep "$folder/$(basename "$program").pb"
		result $? "$(basename "$program"): its functions"
	done
	grep -qa cost_units.c "$folder/$(basename "$host").pb"
	result $? "files, where debug information fits into the limit"
	! grep -qa cost_units.c "$folder/packed.pb"
	result $? "none, where it doesn't"
else
	n=$((n + 1))
	echo "ok $n - debug information past the limit # SKIP objcopy is not installed"
fi
echo "1..$n"
