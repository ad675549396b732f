#!/bin/bash
# run: programs with jemalloc, without, with it inside; exit status, signals, folders, reasons.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"

dumps() {
	find "$1" -name '*.heap' | sort -t. -k3n
}

# what NAME PROGRAM : run it with exact sampling; the dump knows grow_here's bytes.
measured() {
	rm -rf folder
	runs 0 "$1" heapgauge run -d folder --rate 1 -- "$2" 10 500
	is "$1: one dump, at exit" "$(dumps folder | wc -l) $(dumps folder | grep -c '\.f\.heap$')" "1 1"
	heapgauge top --json "$(dumps folder)" >top.json
	json "$1: what grow_here holds" top.json 'row("grow_here")["flat"]["value"] == 500 * 3072'
	like "$1: the dump is named" err "$(basename "$(dumps folder)").*at exit"
	like "$1: what to type next" err "^  heapgauge top $(dumps folder)$"
	is "$1: nothing of ours on standard output" "$(cat out)" ""
}
measured "a program linked with jemalloc" "$GROW_JEMALLOC"
measured "a program of glibc's malloc" "$GROW_GLIBC"
[ -n "${GROW_STATIC:-}" ] && measured "a program with jemalloc inside" "$GROW_STATIC"
like "thread names are asked for" "$(dumps folder)" '^  t[0-9]+: .* grow_'

printf '#!/bin/sh\nexec "%s" 10 500\n' "$GROW_GLIBC" >script && chmod +x script
measured "a script" ./script
printf '#! /usr/bin/env bash\n"%s" 10 500\nexit 5\n' "$GROW_JEMALLOC" >script2 && chmod +x script2
runs 5 "a script that starts a program" heapgauge run -d started --rate 1 -- ./script2
like "a script that starts a program: its dumps are counted" err "left [0-9]+ dumps"

printf '#!/bin/sh\n"%s" 10 500\n"%s" 1 1\ntrue\n' "$GROW_GLIBC" "$GROW_GLIBC" >script3 && chmod +x script3
rm -rf three
runs 0 "a script that starts two" heapgauge run -d three --rate 1 -- ./script3
next=$(sed -n 's/^  heapgauge top //p' err)
heapgauge top --json "$next" >top.json
json "a script that starts two: the next command shows the greater one" top.json 'row("grow_here")["flat"]["value"] == 500 * 3072'

# Where jemalloc is inside nothing else allocates: with so few samples the last dump is empty.
if [ -n "${GROW_STATIC:-}" ]; then
	runs 0 "everything freed at the end" heapgauge run -d freed --rate 4m --every 16m -- "$GROW_STATIC" 0 0 churn
	like "everything freed at the end: says so" err '^Everything sampled was freed before the exit'
	like "everything freed at the end: the next command shows the dump before" err \
		"^  heapgauge top $(dumps freed | tail -n 2 | head -n 1)$"
fi

runs 7 "an exit status is passed on" heapgauge run -q -d status -- "$GROW_JEMALLOC" 1 1 status:7
is "-q: no list" "$(cat err)" ""
runs 137 "SIGKILL: 128 + 9" heapgauge run -- "$GROW_JEMALLOC" 1 1 signal:9
like "SIGKILL: why there is no dump" err 'ended by signal 9 .*left no dump: .*--every'
is "SIGKILL: no empty folder stays" "$(ls -d heapgauge.* 2>/dev/null)" ""
runs 134 "SIGABRT: 128 + 6" heapgauge run --rate 1 --every 1m -d aborted -- "$GROW_JEMALLOC" 1000 1000 signal:6
like "SIGABRT: dumps on the way are there, and it is said that the last is missing" err 'no dump of its exit'
[ "$(dumps aborted | grep -c '\.i[0-9]*\.heap$')" -ge 3 ]
ok $? "SIGABRT: dumps on the way"
like "SIGABRT: the next diff" err '^  heapgauge diff aborted/.* aborted/'
runs 0 "_exit" heapgauge run -- "$GROW_JEMALLOC" 1 1 _exit
like "_exit: why there is no dump" err 'left no dump: .*_exit'

# Signals reach the program.
"$HEAPGAUGE" run -d signalled -- "$GROW_JEMALLOC" 10 500 wait-term >ready 2>err &
job=$!
for _ in $(seq 200); do grep -q ready ready && break; sleep 0.05; done
kill -TERM "$job"
wait "$job"
is "a handled SIGTERM: the program's own status" $? 3
is "a handled SIGTERM: a dump at exit" "$(dumps signalled | grep -c '\.f\.heap')" 1
"$HEAPGAUGE" run -d signalled2 -- "$GROW_JEMALLOC" 10 500 wait >ready 2>err &
job=$!
for _ in $(seq 200); do grep -q ready ready && break; sleep 0.05; done
kill -TERM "$job"
wait "$job"
is "an unhandled SIGTERM: 128 + 15" $? 143

# Folders and settings.
runs 0 "a folder of its own" heapgauge run -- "$GROW_JEMALLOC" 1 1
is "a folder of its own: name" "$(ls -d heapgauge.grow_jemalloc.* | wc -l)" 1
runs 0 "the same folder again" heapgauge run -d folder --rate 1 -- "$GROW_JEMALLOC" 10 10
like "the same folder again: only the new dumps are listed" err 'left 1 dump in folder$'
fails "a folder that cannot be made" "nowhere/x: cannot make this folder" heapgauge run -d nowhere/x -- true
: >file
fails "a file for a folder" "file: cannot" heapgauge run -d file -- true
misused "a comma in the folder" "no path with a comma" heapgauge run -d a,b -- true
mkdir 'with space'
runs 0 "a blank in the folder" heapgauge run -d 'with space' -- "$GROW_JEMALLOC" 1 1
is "a blank in the folder: the dump" "$(find 'with space' -name '*.heap' | wc -l)" 1
runs 0 "--accum" heapgauge run -q -d accum --rate 1 --accum -- "$GROW_JEMALLOC" 10 500
runs 0 "--accum: alloc_space is there" heapgauge top --metric alloc_space "$(dumps accum)"
runs 0 "--inactive" heapgauge run -q -d inactive --rate 1 --inactive -- "$GROW_JEMALLOC" 10 500
unlike "--inactive: nothing was sampled" "$(dumps inactive)" '^@ '
runs 0 "--rate" heapgauge run -q -d rate --rate 64k -- "$GROW_JEMALLOC" 10 500
is "--rate: in the dump" "$(head -n 1 "$(dumps rate)")" "heap_v2/65536"
MALLOC_CONF=lg_prof_sample:10 runs 0 "the user's rate" heapgauge run -q -d own -- "$GROW_JEMALLOC" 10 500
is "the user's rate stays" "$(head -n 1 "$(dumps own)")" "heap_v2/1024"
MALLOC_CONF=lg_prof_sample:10 runs 0 "the user's rate and --rate" heapgauge run -q -d own2 --rate 4k -- "$GROW_JEMALLOC" 10 500
is "--rate wins" "$(head -n 1 "$(dumps own2)")" "heap_v2/4096"
runs 0 "options end at the program" heapgauge run -d ends "$GROW_JEMALLOC" 10 500 --every
PATH=$(dirname "$GROW_JEMALLOC"):$PATH runs 0 "a program found in PATH" heapgauge run -q -d path -- grow_jemalloc 10 10
is "a program found in PATH: its dump" "$(ls path | grep -c '^grow_jemalloc\.')" 1
echo 'in and out' | "$HEAPGAUGE" run -q -d cat -- cat >out 2>err
is "standard input and output are the program's" "$(cat out)" "in and out"

# What cannot be run this way.
fails "no such program" "qqqq: no such program in PATH" heapgauge run -- qqqq
fails "no such file" "./qqqq: cannot run: No such file" heapgauge run -- ./qqqq
fails "not executable" "file: cannot run: not an executable" heapgauge run -- ./file
printf 'not a program' >plain && chmod +x plain
fails "neither program nor script" "plain is neither a program" heapgauge run -- ./plain
fails "a preload that is none" "cannot be put under it|cannot open" heapgauge run --jemalloc "$scratch/file" -- "$GROW_GLIBC"
if command -v cc >/dev/null && echo 'int main(void) { return 0; }' | cc -static -x c -o static - 2>/dev/null; then
	fails "a static program without jemalloc" "static.* no jemalloc inside" heapgauge run -- ./static
else
	skip "a static program without jemalloc" "no static C library"
fi
if [ "$(id -u)" -ne 0 ]; then
	cp "$GROW_JEMALLOC" suid && chmod u+s suid
	skip "a set-user-ID program" "needs another user's file"
else
	cp "$GROW_JEMALLOC" suid && chown 65534 suid && chmod u+s suid
	fails "a set-user-ID program" "suid changes its user" heapgauge run -- ./suid
fi
is "nothing runs on" "$(jobs -r)" ""
done_testing
