#!/bin/sh
# gperf_live.sh FIXTURE SAMPLER PRINT CUT_TEST: profiles made by gperftools now; totals against google-pprof's, and each
# cut at every byte.
fixture=$1 sampler=$2 print=$3 cut=$4
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
mkdir "$dir/nm"
export NM_KEPT="$dir/nm" PPROF_TOOLS="nm:$(cd "$(dirname "$0")/../truth" && pwd)/nm_once.sh"
for tool in c++filt objdump addr2line; do
	PPROF_TOOLS=$PPROF_TOOLS,$tool:$(command -v $tool)
done
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

# The total that google-pprof finds for one metric: it cuts fractions off, we round.
reference() {
	google-pprof --text --show_bytes "--$2" "$3" "$1" 2> /dev/null | sed -n 's/^Total: \([0-9]*\) .*/\1/p'
}

# compare FILE PROGRAM METRIC...: our columns, in that order
compare() {
	file=$1 program=$2
	shift 2
	ours=$("$print" "$file" | sed -n 's/^total //p')
	for metric; do
		mine=${ours%% *}
		ours=${ours#* }
		theirs=$(reference "$file" "$metric" "$program")
		[ -n "$theirs" ] && [ -n "$mine" ] && [ $((mine - theirs)) -ge 0 ] && [ $((mine - theirs)) -le 1 ]
		check $? "$(basename "$file") $metric" "ours $mine, google-pprof $theirs"
	done
}

all="alloc_objects alloc_space inuse_objects inuse_space"
HEAPPROFILE="$dir/prof" LD_PRELOAD=libtcmalloc.so.4 "$fixture" - 3 10 2> /dev/null
for file in "$dir"/prof*; do
	compare "$file" "$fixture" $all
	cp "$file" "$dir/last"
done
for rate in 4096 262144; do
	TCMALLOC_SAMPLE_PARAMETER=$rate "$sampler" "$dir/sample-$rate" "$dir/growth-$rate"
	compare "$dir/sample-$rate" "$sampler" inuse_objects inuse_space
done
compare "$dir/growth-4096" "$sampler" $all
"$print" "$dir/last" | grep '^mapping' | head -n 1 | grep -q "$(readlink -f "$fixture")$"
check $? "main program" ""
said=$("$cut" "$dir/last" "$dir/sample-262144" 2>&1)
check $? "cut at every byte" "$(echo "$said" | grep -v RUN | head -5)"
echo "1..$n"
