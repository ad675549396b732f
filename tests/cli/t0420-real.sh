#!/bin/bash
# Programs as they are shipped, unchanged: under run (asked at their endpoint) and, started by themselves with profiling
# on, through attach. Names must be those of their functions. TARGET is where cargo may build.
. "$(dirname "$0")/lib.sh"
ldconfig -p 2>/dev/null | grep -q 'libjemalloc\.so\.2' || skip_all "libjemalloc is not installed"
ldconfig -p 2>/dev/null | grep -q 'libcurl[-a-z]*\.so\.4' || skip_all "libcurl is not installed"
unset HEAPGAUGE_TOKEN_FILE HEAPGAUGE_AGENT
export XDG_RUNTIME_DIR=$scratch/runtime
mkdir -m 700 runtime
job=
trap '[ -z "$job" ] || kill "$job" 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT
conf=prof:true,prof_active:true,lg_prof_sample:16

# profiled NAME PID FUNCTION BYTES : its profile has at least so many, of which such functions hold half.
profiled() {
	runs 0 "$1: a profile" heapgauge top --json -n 0 "pid:$2"
	cp out top.json
	python3 - "$3" "$4" <<'P'
import json, re, sys
d = json.load(open("top.json"))
held = max((r["cum"]["value"] for r in d["rows"] if re.search(sys.argv[1], r["name"])), default=0)
total = d["total"]["value"]
print("# %.1f MiB, of which %.1f below %s" % (total / 2**20, held / 2**20, sys.argv[1]))
sys.exit(not (total >= int(sys.argv[2]) and held >= total / 2))
P
	ok $? "$1: functions have names" || python3 -c '
import json
for r in json.load(open("top.json"))["rows"][:20]: print("#", r["name"])'
}

# doctored NAME PID : doctor finds nothing to do.
doctored() {
	runs 0 "$1: doctor" heapgauge doctor "$2"
	like "$1: doctor gives the command" out "heapgauge top pid:$2"
}

# both NAME FUNCTION BYTES VARIABLE [PRELOAD] : by way of NAME_start (which gets the words to put before it), _pid, _load, _end.
both() {
	"$1_start" "$HEAPGAUGE" run -q -d dumps --rate 64k --
	local pid
	pid=$("$1_pid" run)
	"$1_load"
	profiled "$1, run" "$pid" "$2" "$3"
	is "$1, run: its endpoint was asked" "$(heapgauge doctor "$pid" | grep -c '^endpoint  *yes')" 1
	"$1_end" "$1, run"
	"$1_start" env "$4=$conf" ${5:+LD_PRELOAD=$5}
	pid=$("$1_pid" alone)
	"$1_load"
	profiled "$1, attach" "$pid" "$2" "$3"
	doctored "$1, attach" "$pid"
	"$1_end" "$1, attach"
}

wait_until() {
	for _ in $(seq 300); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
	return 1
}

# --- redis-server: linked with jemalloc ---
redis_start() {
	"$@" redis-server --port 0 --unixsocket "$scratch/redis" --save '' --enable-debug-command local >server.log 2>&1 </dev/null &
	job=$!
	wait_until redis-cli -s redis ping
}
redis_pid() {
	redis-cli -s redis info server | tr -d '\r' | sed -n 's/^process_id://p'
}
redis_load() {
	redis-cli -s redis debug populate 60000 key 500 >/dev/null
}
redis_end() {
	is "$1: all keys are there" "$(redis-cli -s redis dbsize)" 60000
	redis-cli -s redis shutdown nosave 2>/dev/null
	wait "$job"
	is "$1: it ends well" $? 0
	job=
}
if command -v redis-server >/dev/null && command -v redis-cli >/dev/null; then
	both redis '^(debugCommand|processCommand|call|main|aeMain)' 30000000 MALLOC_CONF
else
	skip "redis-server" "not installed"
fi

# --- python3: on glibc's malloc ---
python_start() {
	rm -f go && mkfifo go
	PYTHONMALLOC=malloc "$@" /usr/bin/python3 -c '
import os
kept = [bytes(1000 + i % 500) for i in range(40000)]
print(os.getpid(), flush=True)
input()
print(len(kept))' <>go >server.log 2>&1 &
	job=$!
	wait_until grep -q '^[0-9]' server.log
}
python_pid() {
	grep -m 1 '^[0-9]' server.log
}
python_load() {
	sleep 0.2
}
python_end() {
	echo >go
	wait "$job"
	is "$1: it ends well" "$? $(tail -n 1 server.log)" "0 40000"
	job=
}
if [ -x /usr/bin/python3 ]; then
	both python '^_?Py' 30000000 MALLOC_CONF libjemalloc.so.2
else
	skip "python3" "not installed"
fi

# --- Rust: jemalloc inside, with a prefix ---
shop_start() {
	rm -f go && mkfifo go
	"$@" "$TARGET/checked/shop" <>go >server.log 2>&1 &
	job=$!
	wait_until grep -q ready server.log
}
shop_pid() {
	if [ "$1" = run ]; then pgrep -P "$job"; else echo "$job"; fi
}
shop_load() {
	sleep 0.2
}
shop_end() {
	echo >go
	wait "$job"
	is "$1: it ends well" "$? $(tail -n 1 server.log)" "0 5000"
	job=
}
if [ -z "${TARGET:-}" ] || ! command -v cargo >/dev/null; then
	skip "a Rust program on tikv-jemallocator" "cargo is not installed"
elif (
	cd "$SOURCE/bindings/rust" && . "$SOURCE/tests/rust/packages.sh" && rust_build
) >cargo.log 2>&1; then
	both shop 'shop::remember' 30000000 _RJEM_MALLOC_CONF
	shop_start env MALLOC_CONF=prof:true
	runs 1 "the variable without the prefix" heapgauge doctor "$job"
	like "the variable without the prefix: says so" out "its environment has MALLOC_CONF, but this jemalloc reads _RJEM_MALLOC_CONF"
	like "the variable without the prefix: the right one" out "^    _RJEM_MALLOC_CONF=prof:true,prof_active:true,lg_prof_sample:19$"
	fails "the variable without the prefix: a profile" "_RJEM_MALLOC_CONF" heapgauge top "pid:$job"
	shop_end "the variable without the prefix"
else
	skip "a Rust program on tikv-jemallocator" "cargo could not build it: $(tail -n 1 cargo.log)"
fi

# --- ClickHouse, which closes all descriptors when it begins ---
clickhouse() {
	clickhouse-client --port "$clickhouse_port" "$@"
}
clickhouse_start() {
	rm -rf data && mkdir data
	clickhouse_port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
	cat >config.xml <<X
<yandex>
 <logger><level>warning</level><console>0</console><log>$scratch/data/log</log><errorlog>$scratch/data/errors</errorlog></logger>
 <listen_host>127.0.0.1</listen_host><tcp_port>$clickhouse_port</tcp_port>
 <path>$scratch/data/</path><tmp_path>$scratch/data/tmp/</tmp_path><users_config>users.xml</users_config>
 <mark_cache_size>1000000</mark_cache_size><default_profile>default</default_profile><default_database>default</default_database>
</yandex>
X
	cat >users.xml <<X
<yandex><profiles><default><max_threads>2</max_threads></default></profiles><quotas><default/></quotas>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks><profile>default</profile><quota>default</quota></default></users>
</yandex>
X
	"$@" clickhouse-server --config-file="$scratch/config.xml" >server.log 2>&1 </dev/null &
	job=$!
	wait_until clickhouse -q 'select 1'
}
clickhouse_pid() {
	local number
	if [ "$1" = run ]; then number=$(pgrep -P "$job"); else number=$job; fi
	wait_until heapgauge top "pid:$number"
	echo "$number"
}
clickhouse_load() {
	clickhouse -q 'create table m (k UInt64, s String) engine = Memory'
	clickhouse -q 'insert into m select number, toString(number * 1234567) from numbers(2000000)'
}
clickhouse_end() {
	is "$1: it answers" "$(clickhouse -q 'select count() from m')" 2000000
	kill -TERM "$job"
	wait "$job"
	is "$1: it ends well" $? 0
	job=
}
if command -v clickhouse-server >/dev/null && command -v clickhouse-client >/dev/null; then
	both clickhouse '^DB::' 30000000 MALLOC_CONF
else
	skip "ClickHouse" "clickhouse-server is not installed"
fi
is "nothing runs on" "$(jobs -r)" ""
done_testing
