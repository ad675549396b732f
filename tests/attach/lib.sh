# Sourced by the tests of attach, after tests/cli/lib.sh: programs that run while they are visited.
trap 'end_all; chmod -R u+rwX "$scratch" 2>/dev/null; rm -rf "$scratch"' EXIT
PROFILED=prof:true,lg_prof_sample:12

# start PROGRAM ARG… : it runs with its standard input open until stop; its number in $pid. Waits for its word "ready".
start() {
	rm -f input output
	mkfifo input
	MALLOC_CONF=${conf-$PROFILED} "$@" <input >output 2>output-err &
	pid=$!
	exec 7>input
	local i
	for i in $(seq 400); do
		grep -q ready output 2>/dev/null && break
		sleep 0.025
	done
	grep -q ready output
}

# stop : closes its standard input and waits for it; its exit status.
stop() {
	exec 7>&-
	wait "$pid"
	local status=$?
	pid=
	return $status
}

end_all() {
	[ -z "${pid-}" ] || kill -KILL "$pid" 2>/dev/null
	[ -z "${other-}" ] || kill -KILL "$other" 2>/dev/null
}

# may_trace : or all is skipped, when this machine forbids ptrace.
may_trace() {
	start "$WAITS" read || skip_all "programs on jemalloc do not start here"
	"$VISIT" "$pid" s 1 >visit 2>&1 || { grep -q 'may not be traced' visit && skip_all "ptrace is forbidden here"; }
	stop
}
