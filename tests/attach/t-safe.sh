#!/bin/bash
# Where a thread is called from, and where not: the allocator's own moments are never chosen, and never a deadlock.
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib.sh"
may_trace
visits=${ATTACH_VISITS:-60}

# visits NAME WAY N : all of them succeed.
visits() {
	"$VISIT" "$pid" "$2" "$3" >visit
	ok $? "$1"
	diagnose visit
}

# refuses NAME WAY : the one visit finds no safe place, and the process is none the worse.
refuses() {
	VISIT_WAIT_MS=400 "$VISIT" "$pid" "$2" 1 >visit
	[ $? -eq 1 ] && grep -q 'no thread came to a place where it can safely be called from within 0.4 s' visit
	ok $? "$1" || diagnose visit
}

# With jemalloc inside, also when the names of its sources were stripped.
if [ -n "${BUSY_STATIC-}" ]; then
	strip -g -o busy_strip_g "$BUSY_STATIC"
	BUSY_STRIPPED=$PWD/busy_strip_g
fi
for program in "$BUSY" ${BUSY_STATIC:+"$BUSY_STATIC" "$BUSY_STRIPPED" "$BUSY_PREFIXED"}; do
	name=${program##*/}
	start "$program" churn 3
	visits "$name: all threads allocate, one waits" s "$visits"
	visits "$name: at the allocator's entries" b "$visits"
	visits "$name: dumps" d 20
	visits "$name: dumps at the entries" bd 20
	visits "$name: dumps, home without the C library's help" dp 20
	visits "$name: off and on, a new look each time" to 20
	stop
	ok $? "$name: its memory is as it left it"
	diagnose output
done
[ -n "${BUSY_STATIC-}" ] || skip "jemalloc inside a program" "libjemalloc_pic.a is not installed"

# A program without a loader; its jemalloc cannot unwind there, so it is only asked.
if [ -n "${BUSY_ALONE-}" ]; then
	conf= start "$BUSY_ALONE" churn 3
	visits "a static program" s 20
	visits "a static program, at the allocator's entries" b 20
	visits "a static program, home without the C library's help" p 20
	stop
	ok $? "its memory is as it left it"
	diagnose output
else
	skip "a static program" "none can be linked here"
fi

start "$BUSY" forks 3
visits "a thread forks all the time" s "$visits"
visits "a thread forks all the time, at the entries" b 50
stop
ok $? "no child came to harm"
diagnose output

# Threads that wait are refused when their stack leads into the allocator: in one of its frames, ...
for mode in parked handler aside; do
	start "$BUSY" $mode
	refuses "$mode: not called while it waits" w
	refuses "$mode: nor in any other way" s
	stop
	ok $? "$mode: goes on afterwards"
done
# ... and none of them is refused for any other reason: the same wait outside is fine.
start "$WAITS" read
visits "the same wait outside the allocator" w 1
stop
start "$BUSY" spin 1
refuses "no thread waits, none allocates" s
stop
ok $? "spin: goes on"

# prof.dump waits for a lock that somebody keeps: given up, and the thread comes back by itself.
mkfifo fifo
export BUSY_FIFO=$PWD/fifo
start "$BUSY" held 2
sleep 0.2
VISIT_LIMIT_MS=300 "$VISIT" "$pid" wd 1 >visit
grep -q 'jemalloc has not answered within 0 s (something in the process holds one of its locks); the thread [0-9]* that was asked goes on' visit
ok $? "a lock that is kept: given up" || diagnose visit
cat fifo >/dev/null &
reader=$!
visits "and when the lock is free, all goes on" w 20
visits "with dumps" d 5
stop
ok $? "the process lives"
kill $reader 2>/dev/null

# heapgauge is killed at any moment of its visits: the process lives on, and does what it did.
for mode in epoll nanosleep futex; do
	start "$WAITS" $mode
	for i in $(seq 25); do
		"$VISIT" "$pid" wdt 1000 >/dev/null 2>&1 &
		visitor=$!
		sleep "0.0$((RANDOM % 90 + 10))"
		kill -KILL $visitor
		wait $visitor 2>/dev/null
	done
	visits "$mode: can be visited after visitors were killed" w 5
	stop
	[ $? -le 1 ] && grep -q "^$mode waits=" output
	ok $? "$mode: goes on to its end after visitors were killed in the middle"
	diagnose output
done
done_testing
