#!/bin/bash
# run: the endpoint of the program while it runs, found and asked; and programs that can have none.
. "$(dirname "$0")/lib.sh"
[ -n "${GROW_JEMALLOC:-}" ] || skip_all "there is no libjemalloc to link with"
ldconfig -p 2>/dev/null | grep -q 'libcurl[-a-z]*\.so\.4' || skip_all "libcurl is not installed"
unset HEAPGAUGE_TOKEN_FILE HEAPGAUGE_AGENT
export XDG_RUNTIME_DIR=$scratch/runtime
mkdir -m 700 runtime
job=
trap '[ -z "$job" ] || kill "$job" 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT

# running OPTION… -- PROGRAM… : under run, until run has said where the endpoint is ($url, $pid) or that there is none.
running() {
	: >said
	"$HEAPGAUGE" run -d dumps "$@" >ready 2>said </dev/null &
	job=$!
	for _ in $(seq 200); do grep -qE 'profiles at|no endpoint' said && grep -q ready ready && break; sleep 0.05; done
	url=$(sed -n 's/.*profiles at \([^ ]*\) .*/\1/p' said)
	pid=$(sed -n 's/^heapgauge: .* (process \([0-9]*\)).*/\1/p' said | head -n 1)
}

ended() {
	kill -TERM "$job"
	wait "$job"
	is "$1: SIGTERM is passed on, and the exit status" "$?" 3
	job=
	like "$1: a dump at exit" said "$2.*at exit"
}

# asked NAME PROFILE [OPTION…] : that profile is the running program's.
asked() {
	local name=$1 profile=$2
	shift 2
	runs 0 "$name" heapgauge top --json "$@" "$profile"
	cp out top.json
	json "$name: what grow_here holds" top.json 'row("grow_here")["flat"]["value"] == 500 * 3072'
}

for program in "$GROW_JEMALLOC" "$GROW_GLIBC" ${GROW_STATIC:+"$GROW_STATIC"}; do
	name=$(basename "$program")
	running --rate 1 -- "$program" 10 500 wait-term
	like "$name: where it listens" said "^heapgauge: $name .process $pid.: profiles at unix:$scratch/runtime/.* .heapgauge top pid:$pid.$"
	asked "$name: pid:N" "pid:$pid"
	json "$name: its number and name" top.json 'd["sources"][0]["pid"] == '"$pid"' and "pid '"$pid ($(cut -c1-15 <<<"$name"))"'" == d["sources"][0]["name"]'
	asked "$name: its socket" "$url"
	runs 0 "$name: doctor" heapgauge doctor "$pid"
	like "$name: doctor asks the endpoint" out "^endpoint +yes +$url"
	like "$name: doctor: every allocation" out "^rate +yes +every allocation"
	unlike "$name: doctor doesn't stop it" out "stopped"
	ended "$name" "$name"
	[ ! -e "${url#unix:}" ]
	ok $? "$name: the socket is gone"
done

printf '#!/bin/sh\n"%s" 10 500 wait-term &\nchild=$!\ntrap "kill $child; wait $child; exit 3" TERM\nwait\n' "$GROW_GLIBC" >script
chmod +x script
running --rate 1 -- ./script
child=$(pgrep -P "$pid" grow_glibc)
asked "a process that a script started" "pid:$child"
ended "a script" script

running --rate 1 --listen 127.0.0.1:0 -- "$GROW_JEMALLOC" 10 500 wait-term
like "--listen on a port" said "profiles at http://127.0.0.1:[1-9][0-9]* "
asked "a port" "$url"
asked "a port, by process" "pid:$pid"
ended "a port" grow_jemalloc

running --rate 1 --listen "unix:$scratch/own" -- "$GROW_JEMALLOC" 10 500 wait-term
is "--listen on a socket" "$url" "unix:$scratch/own"
asked "a socket" "unix:$scratch/own"
ended "a socket" grow_jemalloc

printf '0123456789abcdef0123\n' >token && chmod 600 token
running --rate 1 --listen localhost:0 --token-file token -- "$GROW_JEMALLOC" 10 500 wait-term
fails "no token" "$url: answers 401: .*" heapgauge top "$url"
asked "a token" "$url" --token-file token
HEAPGAUGE_TOKEN_FILE=token asked "a token, by process" "pid:$pid"
printf '9999456789abcdef0123\n' >other && chmod 600 other
fails "a wrong token" "answers 401" heapgauge top --token-file other "$url"
ended "a token" grow_jemalloc

running --rate 1 --inactive --snapshots shots -- "$GROW_JEMALLOC" 10 500 wait-term
fails "--inactive" "pid:$pid|answers 403: " heapgauge top "pid:$pid"
runs 1 "--inactive: doctor" heapgauge doctor "$pid"
like "--inactive: doctor says so" out "^active +no"
[ -d shots ]
ok $? "--snapshots makes its folder"
ended "--inactive" grow_jemalloc

# ClickHouse and daemons of old begin with closing every descriptor they don't know.
cat >closes <<'S'
for fd in /proc/$$/fd/*; do
	[ "${fd##*/}" -le 2 ] || eval "exec ${fd##*/}>&-"
done
exec 3<>mine3 4<>mine4 5<>mine5 6<>mine6
trap 'exit 3' TERM
echo ready
while :; do sleep 0.05; done
S
running --rate 1 -- bash closes
for _ in $(seq 100); do heapgauge top "pid:$pid" >out 2>err && break; sleep 0.05; done
runs 0 "a program that closes all descriptors" heapgauge top --json "$url"
json "a program that closes all descriptors: its profile" out 'd["total"]["value"] > 0 and d["program"].endswith("bash")'
runs 0 "a program that closes all descriptors: doctor" heapgauge doctor "$pid"
like "a program that closes all descriptors: the endpoint is found again" out "^endpoint +yes +$url"
is "a program that closes all descriptors: what it opened is its own" "$(cat mine3 mine4 mine5 mine6 | wc -c)" 0
ended "a program that closes all descriptors" bash

# What the program gets to see.
LD_PRELOAD=/dev/null runs 0 "the environment" heapgauge run -q -d dumps -- env
like "jemalloc comes before the agent, and what the user has stays" out "^LD_PRELOAD=[^:]*libjemalloc[^:]*:[^:]*/libheapgauge_preload.so:/dev/null$"
like "the agent's settings" out "^HEAPGAUGE_AGENT=.*symbolizer=$HEAPGAUGE"
runs 0 "--listen none" heapgauge run -q -d dumps --listen none -- env
unlike "--listen none: no agent" out "HEAPGAUGE_AGENT|libheapgauge_preload"
runs 0 "a short program" heapgauge run -d dumps -- true
unlike "a short program: nothing is said of an endpoint" err "endpoint"
runs 0 "-q" heapgauge run -q -d dumps -- sleep 0.3
is "-q: nothing is said" "$(cat err)" ""

# Programs without.
if command -v cc >/dev/null && cc -static -g -o static "$SOURCE/tests/cli/grow.c" -ljemalloc_pic -lm -lstdc++ 2>/dev/null; then
	# (Its malloc is called before libgcc can unwind.)
	runs 134 "a static program of glibc" heapgauge run -d dumps -- ./static 10 500
	like "a static program: says so" err "no endpoint, only dumps: it is linked statically"
	like "a static program: why it aborts" err "aborts if profiling is on: link the program dynamically"
	fails "a static program and --listen" "needs the agent in the program, but it is linked statically" \
		heapgauge run -d dumps --listen 127.0.0.1:0 -- ./static 1 1
	fails "a static program and --snapshots" "snapshots needs the agent" heapgauge run -d dumps --snapshots s -- ./static 1 1
else
	skip "a static program" "no static C library, or no static jemalloc"
fi
# A program of another C library, as far as its loader's name tells.
loader=$(readelf -lW "$GROW_JEMALLOC" 2>/dev/null | sed -n 's/.*interpreter: \(.*\)\]/\1/p')
if [ -n "$loader" ] && command -v cc >/dev/null &&
	cc -g -Wl,--dynamic-linker="$scratch/ld-musl-x86_64.so.1" -o musl "$SOURCE/tests/cli/grow.c" -ljemalloc_pic -lm -lstdc++ -ldl -lpthread 2>/dev/null; then
	ln -s "$loader" ld-musl-x86_64.so.1
	running --rate 1 -- ./musl 10 500 wait-term
	like "a program with musl's loader: says so" said "no endpoint, only dumps: its loader is not glibc's"
	ended "a program with musl's loader" musl
else
	skip "a program with musl's loader" "no compiler, or no static jemalloc"
fi

misused "--listen for everybody" "0.0.0.0:1: give unix:/path, 127.0.0.1:PORT" heapgauge run --listen 0.0.0.0:1 -- true
misused "--listen on no address" "give unix:/path" heapgauge run --listen 6060 -- true
misused "--listen with a semicolon" "must not hold ';'" heapgauge run --listen 'unix:/a;b' -- true
fails "--snapshots that cannot be made" "nowhere/s: cannot make this folder" heapgauge run --snapshots nowhere/s -- true
fails "--token-file that is not there" "token-file nowhere: No such file" heapgauge run --token-file nowhere -- true

# --on-exit
runs 0 "--on-exit" heapgauge run -q -d dumps --rate 1 --on-exit heap.pb.gz -- "$GROW_GLIBC" 10 500
heapgauge top --symbols none --json heap.pb.gz >top.json
json "--on-exit: a named profile" top.json 'row("grow_here")["flat"]["value"] == 500 * 3072'
runs 7 "--on-exit: the program's own status" heapgauge run -q -d dumps --on-exit seven.pb.gz -- "$GROW_GLIBC" 10 500 status:7
runs 0 "--on-exit: that profile, too" heapgauge top seven.pb.gz
runs 1 "--on-exit without a dump" heapgauge run -q -d dumps --on-exit none.pb.gz -- "$GROW_GLIBC" 10 500 _exit
like "--on-exit without a dump: why" err "none.pb.gz: not written, .*exit handlers"
[ ! -e none.pb.gz ]
ok $? "--on-exit without a dump: no file"
fails "--on-exit where nothing can be written is found out first" "nowhere/x: cannot create" heapgauge run --on-exit nowhere/x -- touch ran
[ ! -e ran ]
ok $? "--on-exit where nothing can be written: the program did not run"
is "nothing runs on" "$(jobs -r)" ""
done_testing
