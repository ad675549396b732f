#!/bin/bash
# doctor, and the same reasons as other commands meet them: every way in which profiling can be off has its own words.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
jobs_started=()
trap 'kill "${jobs_started[@]}" 2>/dev/null; wait 2>/dev/null; chmod -R u+rwX "$scratch"; rm -rf "$scratch"' EXIT

# started COMMAND… : in the background, until it says "ready"; its number in $pid.
started() {
	"$@" >ready 2>started-err &
	pid=$!
	jobs_started+=("$pid")
	for _ in $(seq 200); do grep -q ready ready && break; sleep 0.05; done
}

# says NAME ANSWER PATTERN : a line of doctor's table in ./out.
says() {
	grep -qE -e "^$1 +$2 +.*($3)" out
	ok $? "  $1: $2, $3" || head -n 30 out | diagnose
}

# todo TEXT… : whole lines under "To do:".
todo() {
	local line bad=0
	for line in "$@"; do
		sed -n '/^To do:/,/^Also:/p' out | grep -qF -e "$line" || bad=1
	done
	ok $bad "  to do: ${*: -1}" || head -n 30 out | diagnose
}

# --- programs ---

runs 0 "a program linked with jemalloc" heapgauge doctor "$GROW_JEMALLOC"
says allocator yes 'jemalloc 5\.[0-9.]+-.* in .*libjemalloc.so.2, reads MALLOC_CONF'
says "compiled in" yes "heap profiling"
says unwinder yes "libgcc|libunwind"
says "function names" yes "lines and inlined"
says "build id" yes "[0-9a-f]{40}"
says readers "(yes|no)" "Landlock"
like "  how" out "^    heapgauge run -- $GROW_JEMALLOC$"
like "  the variable, without heapgauge" out '^    MALLOC_CONF=prof:true,prof_active:true,lg_prof_sample:19$'
FORBID_CALL=444 "$FORBID" "$HEAPGAUGE" doctor "$GROW_JEMALLOC" >out 2>err
is "a kernel without Landlock" "$?" 0
says readers no "this kernel has no Landlock"
runs 0 "a program on glibc's malloc" heapgauge doctor "$GROW_GLIBC"
says allocator yes "glibc's malloc; 'heapgauge run' puts jemalloc"
if [ -n "${GROW_STATIC:-}" ]; then
	runs 0 "a program with jemalloc inside" heapgauge doctor "$GROW_STATIC"
	says allocator yes "in $GROW_STATIC, reads MALLOC_CONF"
fi
printf '#!/bin/sh\nexec "%s" 10 500\n' "$GROW_GLIBC" >script && chmod +x script
runs 0 "a script" heapgauge doctor ./script
says script yes "read by /.*sh"
cp "$GROW_JEMALLOC" stripped && strip -s -R .note.gnu.build-id stripped
runs 0 "a stripped program" heapgauge doctor ./stripped
says "function names" no "only exported functions"
says "build id" no "has none"
like "  how to get a build id" out '^    -Wl,--build-id$'
fails "no such program" "qqqq: no such program" heapgauge doctor qqqq
fails "no program" "plain: .*not an executable" heapgauge doctor "$( : >plain; echo ./plain)"
runs 0 "--json" heapgauge doctor --json "$GROW_JEMALLOC"
json "--json: as a program reads it" out 'd["can_be_profiled"] and d["how"].startswith("heapgauge run -- /") and d["pid"] is None and any(f["name"] == "compiled in" and f["answer"] is True for f in d["findings"]) and all(not t["needed"] for t in d["to_do"])'
if command -v cc >/dev/null && echo 'int main(void) { return 0; }' | cc -static -x c -o static - 2>/dev/null; then
	runs 1 "a static program without jemalloc" heapgauge doctor ./static
	todo "linked statically and has no jemalloc inside"
else
	skip "a static program without jemalloc" "no static C library"
fi

# The Rust project's own compiler runs on a jemalloc without profiling.
rustc=$(rustup which rustc 2>/dev/null || command -v rustc)
if [ -n "$rustc" ] && LC_ALL=C grep -q 'dirty_decay_ms' "$rustc"; then
	runs 1 "jemalloc built without profiling" heapgauge doctor "$rustc"
	says "compiled in" no "built without heap profiling"
	todo 'features = ["profiling"] }'
	mkfifo source
	"$rustc" - <source >/dev/null 2>&1 &
	pid=$!
	jobs_started+=("$pid")
	exec 9>source
	for _ in $(seq 100); do [ "$(readlink "/proc/$pid/exe")" = "$rustc" ] && break; sleep 0.05; done
	sleep 0.3
	runs 1 "a process of it" heapgauge doctor "$pid"
	says "compiled in" no "built without heap profiling"
	todo 'features = ["profiling"] }'
	fails "a profile of it" "pid $pid|process $pid|without.*profiling" heapgauge top "pid:$pid"
	exec 9>&-
else
	skip "jemalloc built without profiling" "no rustc on jemalloc"
fi

# --- processes ---

MALLOC_CONF=prof:true,lg_prof_sample:10 started "$GROW_JEMALLOC" 10 500 wait
sampled=$pid
runs 0 "a process that can be profiled" heapgauge doctor "$pid"
says allocator yes 'jemalloc 5\.[0-9.]+-.* in .*libjemalloc.so.2, reads MALLOC_CONF'
says enabled yes "opt.prof"
says active yes "being sampled"
says rate yes "every 1024 bytes .*lg_prof_sample:10"
says endpoint no "none in it"
says attach yes "ptrace is permitted"
says asked yes "stopped one thread for [0-9.]+ ms"
like "  how" out "^    heapgauge top pid:$pid$"
runs 0 "the command it gives" heapgauge top --json "pid:$pid"
json "the command it gives: grow_here is there" out 'row("grow_here")["flat"]["value"] > 0'
json "the command it gives: the source" out 'd["sources"][0]["pid"] == '"$pid"' and d["sources"][0]["name"] == "pid '"$pid"' (grow_jemalloc)"'
runs 0 "pid:N" heapgauge doctor --json "pid:$pid"
json "pid:N: as a program reads it" out 'd["pid"] == '"$pid"' and d["how"] == "heapgauge top pid:'"$pid"'"'
runs 1 "--no-attach" heapgauge doctor --no-attach "$pid"
says enabled '[?]' "its environment asks for it"
todo "without --no-attach"
fails "a query without an endpoint" "has no endpoint that could understand" heapgauge top "pid:$pid?seconds=1"

started "$GROW_JEMALLOC" 10 500 wait
runs 1 "opt.prof is off" heapgauge doctor "$pid"
says enabled no "can only be set when the program starts"
todo "heapgauge run -- $GROW_JEMALLOC …" MALLOC_CONF=prof:true,prof_active:true,lg_prof_sample:19
fails "opt.prof is off: a profile" "MALLOC_CONF" heapgauge top "pid:$pid"

_RJEM_MALLOC_CONF=prof:true started "$GROW_JEMALLOC" 10 500 wait
runs 1 "the variable of another prefix" heapgauge doctor "$pid"
todo "its environment has _RJEM_MALLOC_CONF, but this jemalloc reads MALLOC_CONF: rename"

MALLOC_CONF=prof:true,prof_active:false started "$GROW_JEMALLOC" 10 500 wait
runs 1 "not active" heapgauge doctor "$pid"
says active no "nothing is being sampled"
todo "heapgauge attach $pid activate"

started "$GROW_GLIBC" 10 500 wait
runs 1 "no jemalloc" heapgauge doctor "$pid"
says allocator no "glibc's: no jemalloc"
todo "heapgauge run -- $GROW_GLIBC …"
fails "no jemalloc: a profile" "jemalloc" heapgauge top "pid:$pid"

fails "no such process" "4194305|no such process" heapgauge doctor 4194305
misused "process 0" "give the number of a process" heapgauge doctor 0

# --- what is forbidden ---

# The check for leaks is done by ptrace.
export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0

"$FORBID" "$HEAPGAUGE" doctor "$sampled" >out 2>err
is "ptrace forbidden by seccomp" "$?" 1
says attach no "forbidden here .seccomp"
todo "docker run --cap-add=SYS_PTRACE"
fails "ptrace forbidden by seccomp: a profile" "$sampled" "$FORBID" "$HEAPGAUGE" top "pid:$sampled"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	cp "$HEAPGAUGE" ./copy && chmod 755 . copy
	fails "another user's process" "belongs to user 0.* as root" "${nobody[@]}" ./copy doctor "$sampled"
	fails "another user's process: a profile" "user 0|permitted" "${nobody[@]}" ./copy top "pid:$sampled"
else
	skip "another user's process" "needs root and setpriv"
fi

# elsewhere COMMAND : in a mount namespace of its own.
elsewhere() {
	unshare --mount --propagation private sh -c "$@"
}
if ! elsewhere true 2>/dev/null; then
	skip "no /proc, and a read-only file system" "mount namespaces are not permitted"
else
	if [ "$SANITIZER" != none ]; then
		skip "no /proc" "the sanitizers need it"
	else
		fails "no /proc" "/proc is not there.*mount -t proc" elsewhere 'mount -t tmpfs none /proc && exec "$0" doctor "$1"' "$HEAPGAUGE" "$sampled"
		fails "no /proc: a profile" "/proc" elsewhere 'mount -t tmpfs none /proc && exec "$0" top "pid:$1"' "$HEAPGAUGE" "$sampled"
		runs 0 "no /proc: run" elsewhere 'mount -t tmpfs none /proc && exec "$0" run -d noproc --rate 1 -- "$1" 10 500' "$HEAPGAUGE" "$GROW_JEMALLOC"
		is "no /proc: run leaves a dump" "$(ls noproc | grep -c 'f\.heap$')" 1
	fi
	mkdir readonly
	fails "a read-only file system" "cannot make this folder: Read-only file system .choose another with -d" \
		elsewhere 'mount -t tmpfs -o ro none readonly && cd readonly && exec "$0" run -- "$1" 1 1' "$HEAPGAUGE" "$GROW_JEMALLOC"
	library=$(ldconfig -p | sed -n 's/.*libjemalloc\.so\.2 .*=> //p' | head -n 1)
	elsewhere 'mount --bind /dev/null "$2" && exec "$0" doctor "$1"' "$HEAPGAUGE" "$GROW_GLIBC" "$library" >out 2>err
	is "libjemalloc is not installed" "$?" 1
	todo "apt install libjemalloc2"
fi
done_testing
