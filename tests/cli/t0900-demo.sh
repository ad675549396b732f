#!/bin/bash
# The demo: twice, and nothing stays behind but its folder.
. "$(dirname "$0")/lib.sh"
for tool in redis-benchmark redis-cli; do
	command -v $tool >/dev/null || skip_all "there is no $tool"
done

for time in first second; do
	begin=$SECONDS
	runs 0 "$time time: it works" "$SOURCE/scripts/demo" "$BUILD" "$scratch/demo"
	[ $((SECONDS - begin)) -lt 120 ]
	ok $? "$time time: in less than two minutes"
	like "$time time: redis' functions by name" out 'lpInsert|dictAddRaw|sdsnewlen'
	like "$time time: growth" out '\+[0-9.]+ MiB .*(lpInsert|dictAddRaw|sdsnewlen)'
	like "$time time: lines of a program with debug information" out "item_new .*leaky\.c:[0-9]+ \(inline\)"
	like "$time time: the leak is found" out '^#1 .*\+'
	sed -n 's/^  \(flame graph\|pprof profile\)  *//p' out >named
	is "$time time: four files are named" "$(wc -l <named)" 4
	is "$time time: all are there" "$(xargs ls 2>&1 <named | grep -vc 'No such file')" 4
	! redis-cli -s demo/redis.sock ping >/dev/null 2>&1
	ok $? "$time time: the server has stopped"
done
is "a folder of somebody else's is left alone" \
	"$(mkdir other; : >other/file; "$SOURCE/scripts/demo" "$BUILD" "$scratch/other" >/dev/null 2>&1; echo $?; ls other)" "1
file"
done_testing
