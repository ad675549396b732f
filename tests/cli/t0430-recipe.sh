#!/bin/bash
# The jemalloc wiki's recipe for leaks, with nothing but curl: activate, wait, deactivate, wait, and what is left was allocated in steady state
# and stayed. On redis-server as it is shipped, with a heap from its start-up, keys that come and go, and a hash that only grows.
. "$(dirname "$0")/lib.sh"
for tool in redis-server redis-cli curl; do
	command -v $tool >/dev/null || skip_all "$tool is not installed"
done
unset HEAPGAUGE_TOKEN_FILE HEAPGAUGE_AGENT
job=
work=
trap 'rm -f at-work; wait $work 2>/dev/null; [ -z "$job" ] || kill "$job" 2>/dev/null; wait 2>/dev/null; rm -rf "$scratch"' EXIT

"$HEAPGAUGE" run --inactive --rate 256 --listen 127.0.0.1:0 -d dumps -- \
	redis-server --port 0 --unixsocket "$scratch/redis" --save '' --enable-debug-command local >server.log 2>said </dev/null &
job=$!
for _ in $(seq 300); do
	grep -q 'profiles at' said && [ "$(redis-cli -s redis ping 2>&1)" = PONG ] && break
	sleep 0.1
done
url=$(sed -n 's/.*profiles at \(http[^ ]*\) .*/\1/p' said)
redis-cli -s redis debug populate 40000 startup 500 >/dev/null

# Half of the requests leave nothing: what is set is deleted by the next. leak counts the others.
steady_state() {
	local i begin=1
	while [ -e at-work ]; do
		for i in $(seq $begin $((begin + 19))); do
			printf 'hset leak field%d %0400d\nset passing%d %02000d\ndel passing%d\n' $i 0 $i 0 $i
		done | redis-cli -s redis >/dev/null
		begin=$((begin + 20))
		sleep 0.05
	done
}

# found NAME FILE FIELDS : the profile holds the fields of the hash that came in that time, and neither start-up nor what went.
found() {
	runs 0 "$1: a profile" heapgauge top --json -n 0 "$2"
	python3 - "$3" <<'P'
import json, sys
d = json.load(open("out"))
held = {r["name"]: r["cum"]["value"] for r in d["rows"]}
leak, start, passing, least = held.get("hsetCommand", 0), held.get("debugCommand", 0), held.get("setCommand", 0), int(sys.argv[1]) * 400
print("# %d KiB below hsetCommand, %d KiB wanted; %d below debugCommand, %d below setCommand, %d in all" %
      (leak >> 10, least >> 10, start, passing >> 10, d["total"]["value"] >> 10))
sys.exit(not (least > 100 * 400 and leak >= 0.8 * least and leak >= 0.8 * d["total"]["value"] and start == 0 and passing <= leak / 10))
P
	ok $? "$1: the leak, neither start-up nor what came and went" || head -c 600 out | diagnose
}

fields() {
	redis-cli -s redis hlen leak
}

control() {
	curl -sf -X POST "$url/heapgauge/$1" | grep -qF "\"active\":$2"
	ok $? "POST $1"
}

is "inactive: 403 until it is activated" "$(curl -s -o said.403 -w '%{http_code}' "$url/debug/pprof/heap")" 403
like "and it says how" said.403 'POST /heapgauge/activate'
touch at-work
steady_state &
work=$!
sleep 0.5

before=$(fields)
control activate true
sleep 2
control deactivate false
during=$(($(fields) - before))
sleep 1.5
curl -sf -o recipe.pb.gz "$url/debug/pprof/heap"
ok $? "GET heap"
found "by hand" recipe.pb.gz "$during"

curl -sf -X POST "$url/heapgauge/reset" >/dev/null
ok $? "POST reset"
before=$(fields)
(sleep 2; fields >fields.during) &
curl -sf -o survivors.pb.gz "$url/debug/pprof/survivors?activate=2&wait=2"
ok $? "GET survivors"
found "in one request" survivors.pb.gz "$(($(cat fields.during) - before))"
curl -sf "$url/heapgauge/status" | grep -qF '"active":false'
ok $? "and sampling is off, as before"
[ "$(fields)" -gt "$during" ]
ok $? "(the server was at work all the time)"

rm at-work
wait $work
redis-cli -s redis shutdown nosave 2>/dev/null
wait "$job"
is "the server ends well" $? 0
job=
done_testing
