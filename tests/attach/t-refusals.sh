#!/bin/bash
# Every reason for which attach does nothing has its own sentence, which says what to do; and what it does elsewhere: in other mount
# namespaces, without /proc, on read-only disks.
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib.sh"
may_trace
# A leak check of a sanitizer traces, too.
no_leak_check=(env "ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0")

# --- usage ---
misused "no number" "'redis' is no process number" heapgauge attach redis
misused "an unknown action" "not 'dmup': did you mean 'dump'" heapgauge attach 1 dmup
misused "a rate without reset" "--rate belongs to reset" heapgauge attach --rate 64k 1 activate
misused "a rate that is no power of two" "powers of two" heapgauge attach --rate 3 1 reset
misused "-o without dump" "-o belongs to dump" heapgauge attach -o x 1 status
misused "--json without status" "--json belongs to status" heapgauge attach --json 1 dump

# --- not such a process ---
fails "no such process" "there is no process 99999999: check the number" heapgauge attach 99999999
if [ -d /proc/2 ] && ! [ -s /proc/2/cmdline ] && [ "$(awk '/PPid/{print $2}' /proc/2/status)" = 0 ]; then
	fails "a kernel thread" "process 2 is a thread of the kernel" heapgauge attach 2
else
	skip "a kernel thread" "none is seen here"
fi
start "$HOLD" zombie
fails "a zombie" "process [0-9]* has ended already and only waits for its parent" heapgauge attach "$(awk '/ready/{print $2}' output)"
stop
fails "glibc's malloc" "process $$ \(.*bash\) runs on no jemalloc: start it with heapgauge run" heapgauge attach $$

# --- not such a program ---
printf '.globl _start\n_start: mov $29, %%eax\nint $0x80\njmp _start\n' >pause.s
if cc -m32 -nostdlib -static -o pause32 pause.s 2>/dev/null && { ./pause32 & pid=$!; sleep 0.2; kill -0 $pid 2>/dev/null; }; then
	fails "a 32-bit program" "process $pid runs a program of another architecture \(32-bit x86\)" heapgauge attach $pid
	kill -KILL $pid
	wait $pid 2>/dev/null
	pid=
else
	skip "a 32-bit program" "they are not built or run here"
fi
if [ -n "${BUSY_STATIC-}" ]; then
	strip -s -o stripped "$BUSY_STATIC"
	start ./stripped churn 1
	fails "a stripped program with jemalloc inside" "the jemalloc inside .*/stripped cannot be found, its symbols were stripped" heapgauge attach "$pid"
	stop
else
	skip "a stripped program with jemalloc inside" "libjemalloc_pic.a is not installed"
fi

# --- profiling is off ---
conf=prof:false start "$WAITS" epoll
runs 0 "opt.prof false: status says so" heapgauge attach "$pid"
like "and what to change" out '^profiling +off since the start \(start it with MALLOC_CONF=prof:true,prof_active:false\)'
runs 0 "and as JSON" heapgauge attach --json "$pid"
json "and as JSON: values" out 'd["profiling"]["built_in"] and not d["profiling"]["enabled"] and d["jemalloc"]["prefix"] == ""'
for action in activate deactivate reset dump; do
	fails "opt.prof false: no $action" "was started with heap profiling off \(opt.prof\).*start it with MALLOC_CONF=prof:true,prof_active:false" \
		heapgauge attach "$pid" $action
done
stop
ok $? "nothing of that was an EINTR"
start "$FAKE"
runs 0 "built without profiling: status says so" heapgauge attach "$pid"
like "and what has it" out '^profiling +not built in \(a jemalloc built with --enable-prof has it\)'
like "its version is asked" out '^jemalloc +5.3.0-fake in '
fails "built without profiling: no dump" "the jemalloc in .*attach_fake was built without heap profiling: build it with --enable-prof" heapgauge attach "$pid" dump
stop

# --- what it does ---
conf=prof:true,prof_active:false start "$BUSY" churn 2
runs 0 "status of an inactive one" heapgauge attach "$pid"
like "it is not active" out '^profiling +on, not active'
like "the thread and its stop are told" out '^thread [0-9]+ was stopped for [0-9.]+ ms (in a system call|at an entry of the allocator)$'
runs 0 "reset to another rate" heapgauge attach --rate 4k "$pid" reset
runs 0 "activate" heapgauge attach "$pid" activate
runs 0 "status again" heapgauge attach --json "$pid"
json "active, at the new rate" out 'd["profiling"]["active"] and d["profiling"]["rate"] == 4096 and d["stopped_ms"] > 0'
sleep 0.5
runs 0 "dump to standard output" heapgauge attach "$pid" dump
like "a dump" out '^heap_v2/4096'
runs 0 "dump to a file" heapgauge attach -o busy.heap "$pid" dump
like "what was done is told" err "process $pid: dump of [0-9]+ bytes; thread [0-9]+ was stopped for [0-9.]+ ms .*, and [0-9.]+ ms inside prof.dump"
runs 0 "top reads it" heapgauge top busy.heap
like "and names functions" out '(put_in|take)\(?'
runs 0 "top of the process" heapgauge top "pid:$pid"
like "names functions too" out '(put_in|take)\(?'
fails "a file that can't be made" "nowhere/x" heapgauge attach -o nowhere/x "$pid" dump
if can_have_a_terminal; then
	script -qec "$HEAPGAUGE attach $pid dump" /dev/null >out 2>&1 </dev/null
	like "a dump is not for a terminal" out "a dump is nothing for a terminal: give a file with -o"
else
	skip "a dump is not for a terminal" "no terminal can be made"
fi
runs 0 "deactivate" heapgauge attach "$pid" deactivate
heapgauge attach --json "$pid" >out
json "not active" out 'not d["profiling"]["active"]'
kill -STOP "$pid"
sleep 0.1
fails "a stopped process" "process $pid is stopped \(SIGSTOP or ctrl-Z\): let it go on first \(kill -CONT $pid\)" heapgauge attach "$pid"
kill -CONT "$pid"
stop
ok $? "it is none the worse"

# --- somebody else traces it ---
start "$WAITS" poll
mkfifo hold
"$HOLD" trace "$pid" <hold >holding &
other=$!
exec 8>hold
for i in $(seq 100); do grep -q ready holding && break; sleep 0.02; done
fails "traced already" "process $pid is traced by process $other \(attach_hold\) already" heapgauge attach "$pid"
exec 8>&-
wait $other
other=
fails "ptrace forbidden by a sandbox" "process $pid may not be traced" "${no_leak_check[@]}" "$HOLD" forbid "$HEAPGAUGE" attach "$pid"
stop
ok $? "and saw nothing"

# --- rights ---
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && cp "$HEAPGAUGE" "$HOLD" "$WAITS" . && chmod 755 . "$PWD"/*; then
	as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	if "${as_nobody[@]}" ./heapgauge version >/dev/null 2>&1; then
		start "$WAITS" poll
		fails "another user's" "process $pid belongs to user 0 and may not be looked into by user 65534: run heapgauge as that user" \
			"${as_nobody[@]}" ./heapgauge attach "$pid"
		stop
		start "${as_nobody[@]}" ./attach_hold hidden
		fails "one's own that hides" "process $pid may not be looked into, though it is of the same user" \
			"${as_nobody[@]}" ./heapgauge attach "$pid"
		stop
		start "${as_nobody[@]}" ./attach_waits poll
		runs 0 "one's own needs no root" "${as_nobody[@]}" ./heapgauge attach "$pid"
		runs 0 "nor does its dump" "${as_nobody[@]}" ./heapgauge attach "$pid" dump
		for scope in 1 2 3; do
			if unshare -m true 2>/dev/null; then
				fails "yama's ptrace_scope $scope" "kernel.yama.ptrace_scope is $scope, " unshare -m sh -c '
					mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama &&
					echo '$scope' >/proc/sys/kernel/yama/ptrace_scope && exec "$@"' sh \
					"${as_nobody[@]}" "${no_leak_check[@]}" ./attach_hold forbid ./heapgauge attach "$pid"
			else
				skip "yama's ptrace_scope $scope" "no mount namespace can be made"
			fi
		done
		stop
		ok $? "the process of the other user saw nothing"
	else
		skip "users" "nobody can't run programs here"
	fi
else
	skip "users" "needs root and setpriv"
fi

# --- other views of the file system ---
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	# Its own jemalloc, program and a read-only root, seen nowhere else; deleted, too.
	mkdir -p inside
	start unshare -m sh -c 'mount -t tmpfs none inside && cp "$1" inside/program && mount -o remount,ro inside && cd / &&
		exec "$2/inside/program" epoll' sh "$WAITS" "$PWD"
	runs 0 "in another mount namespace: status" heapgauge attach "$pid"
	runs 0 "in another mount namespace: dump" heapgauge attach -o ns.heap "$pid" dump
	runs 0 "in another mount namespace: top" heapgauge top "pid:$pid"
	like "and names functions" out 'main'
	stop
	cp "$WAITS" gone
	start ./gone epoll
	rm gone
	runs 0 "a deleted program: dump" heapgauge attach -o gone.heap "$pid" dump
	stop
	# Without /proc.
	mkdir -p root/tmp
	for file in "$WAITS" $(ldd "$WAITS" | grep -oE '/[^ ]+'); do
		mkdir -p "root$(dirname "$file")" && cp "$file" "root$file"
	done
	start chroot root "$WAITS" epoll
	runs 0 "without /proc: status" heapgauge attach "$pid"
	fails "without /proc: no dump" "process $pid sees no /proc .*mount it there" heapgauge attach "$pid" dump
	mkdir root/proc && mount --bind /proc root/proc
	runs 0 "with /proc mounted there: dump" heapgauge attach -o chroot.heap "$pid" dump
	umount root/proc
	stop
	ok $? "no EINTR"
	if grep -q __asan_init "$HEAPGAUGE"; then
		skip "no /proc here" "sanitizers need one"
	else
		fails "no /proc here" "/proc is not mounted here" unshare -m sh -c 'umount -l /proc; exec "$@"' sh "$HEAPGAUGE" attach 1
	fi
else
	skip "other views of the file system" "needs root and mount namespaces"
fi
done_testing
