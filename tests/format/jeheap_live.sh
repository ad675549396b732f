#!/bin/sh
# jeheap_live.sh FIXTURE PRINT CUT_TEST REFERENCE.py: dumps made by jemalloc now, in every mode, against a calculation
# of their own; then each small one is cut at every byte.
fixture=$1 print=$2 cut=$3 reference=$4
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
n=0

check() {
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		echo "# $3"
	fi
}

# dump NAME CONF THREADS TURNS
dump() {
	LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF="prof:true,$2" "$fixture" "$dir/$1" "$3" "$4"
}

# compare NAME raw|unbiased
compare() {
	if "$print" "$dir/$1" > "$dir/out" 2> "$dir/err" && [ ! -s "$dir/err" ]; then
		said=$(python3 "$reference" "$dir/$1" "$dir/out" "$(readlink -f "$fixture")" "$2" 2>&1)
		check $? "$1" "$said"
	else
		check 1 "$1" "$(cat "$dir/err")"
	fi
}

for rate in 0 12 16 19; do
	for accum in false true; do
		for threads in 1 4; do
			dump "bent-$rate-$accum-$threads" "lg_prof_sample:$rate,prof_accum:$accum" $threads 40
			compare "bent-$rate-$accum-$threads" unbiased
			dump "raw-$rate-$accum-$threads" "lg_prof_sample:$rate,prof_accum:$accum,prof_unbias:false" $threads 40
			mode=raw
			# Where nothing is sampled there is nothing to tell apart.
			[ $rate = 0 ] && mode=unbiased
			compare "raw-$rate-$accum-$threads" $mode
		done
	done
done

# A dump that a full disk cut short must not pass for a whole one.
said=$("$cut" "$dir/bent-12-true-4" "$dir/raw-12-false-4" "$dir/bent-19-true-1" 2>&1)
check $? "cut at every byte" "$(echo "$said" | grep -v RUN | head -5)"

# Paths with blanks, and a binary that was replaced since.
mkdir "$dir/a b" && cp "$fixture" "$dir/a b/my program"
LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=prof:true,lg_prof_sample:12 "$dir/a b/my program" "$dir/blanks" 2 5
"$print" "$dir/blanks" | grep -q "^mapping [0-9a-f]* [0-9a-f]* [0-9a-f]* X $dir/a b/my program$"
check $? "path with blanks" ""
sed 's|/my program$|/my program (deleted)|' "$dir/blanks" > "$dir/deleted"
"$print" "$dir/deleted" | grep -q "^mapping [0-9a-f]* [0-9a-f]* [0-9a-f]* X deleted $dir/a b/my program$"
check $? "deleted binary" ""

# Started through the loader, the program is not the first executable in the list.
loader=$(sed -n 's|.* \(/[^ ]*/ld-linux[^ ]*\)$|\1|p' "$dir/blanks" | head -n 1)
LD_PRELOAD=libjemalloc.so.2 MALLOC_CONF=prof:true,lg_prof_sample:12 "$loader" "$(readlink -f "$fixture")" "$dir/loader" 2 5
"$print" "$dir/loader" | grep "^mapping" | head -n 1 | grep -q "$(readlink -f "$fixture")$"
check $? "main program behind the loader" "$("$print" "$dir/loader" | grep '^mapping' | head -n 3)"

# The same, compressed.
gzip -c "$dir/bent-12-true-4" > "$dir/zipped"
"$print" "$dir/bent-12-true-4" > "$dir/out" && "$print" "$dir/zipped" | cmp -s - "$dir/out"
check $? "gzip" ""

echo "1..$n"
