#!/bin/bash
# server.sh PROGRAM : the five lines at the top of examples/server.c or server.cc, and what it says without profiling.
. "$SOURCE/tests/cli/lib.sh"
command -v curl >/dev/null || skip_all "curl is not installed"
name=${1##*/}
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$scratch"' EXIT

# begin CONF : starts it on ports of its own: $url, and $profile, where its heap profile is.
begin() {
	case $name in
	server) MALLOC_CONF=$1 "$program" 0 127.0.0.1:0 >said 2>&1 & ;;
	*) MALLOC_CONF=$1 "$program" 0 >said 2>&1 & ;;
	esac
	server=$!
	for _ in $(seq 100); do
		url=$(sed -n 's/^listening on //p' said)
		[ -z "$url" ] || break
		sleep 0.1
	done
	profile=$(sed -n 's/^heap profiles at //p' said)
	: "${profile:=$url/debug/pprof/heap}"
	[ -n "$url" ]
}

end() {
	kill "$server"
	wait "$server" 2>/dev/null
	server=
}

# fetch FILE URL : prints the status.
fetch() {
	curl -s -m 20 -o "$1" -w '%{http_code}' "$2"
}

case $name in
server) program=$1 leak=/visit leaker=remember_visit bytes=$((2000 * 16384)) flame='?format=svg' ;;
*) program=$1 leak=/search leaker='Searches::find' bytes=$((2000 * (100 * 96 + 4096))) flame=/flamegraph ;;
esac

begin ''
ok $? "$name: starts" || diagnose said
curl -s -m 30 "$url$leak/[1-2000]" >answers
ok $? "$name: answers 2000 requests"
like "$name: remembers them all" answers '\b2000\b'
is "$name: serves a profile" "$(fetch heap.pb.gz "$profile")" 200
heapgauge top --json heap.pb.gz >top.json
ok $? "$name: heapgauge reads it" || diagnose heap.pb.gz
python3 - "$leaker" "$bytes" <<'END'
import json, sys
rows = json.load(open('top.json'))['rows']
held = [r['cum'] for r in rows if sys.argv[1] in r['name']][0]
print('#', held, 'of', sys.argv[2])
sys.exit(not 0.7 < held["value"] / int(sys.argv[2]) < 1.4)
END
ok $? "$name: $leaker holds what was leaked"
is "$name: draws a flame graph" "$(fetch heap.svg "$profile$flame")" 200
like "$name: $leaker is in it" heap.svg "${leaker##*:}"
end

begin prof:false
is "$name: 403 when profiling is off" "$(fetch why "$profile")" 403
like "$name: says what to set" why 'MALLOC_CONF=.*prof:true'
end
done_testing
