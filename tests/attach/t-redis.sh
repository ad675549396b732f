#!/bin/bash
# Debian's redis-server, unchanged, under load: ATTACH_REDIS (100) visits of each kind, and no request fails or is lost.
. "$(dirname "$0")/../cli/lib.sh"
. "$(dirname "$0")/lib.sh"
may_trace
command -v redis-server >/dev/null && command -v redis-benchmark >/dev/null || skip_all "redis-server and redis-tools are not installed"
n=${ATTACH_REDIS:-100}
ask() { redis-cli -s "$PWD/redis.sock" "$@"; }

MALLOC_CONF=prof:true,lg_prof_sample:14 redis-server --port 0 --unixsocket "$PWD/redis.sock" --save '' --appendonly no \
	--maxmemory 400mb --maxmemory-policy allkeys-lru >redis.log 2>&1 &
pid=$!
for i in $(seq 200); do [ "$(ask ping 2>/dev/null)" = PONG ] && break; sleep 0.05; done
is "redis-server runs" "$(ask ping)" PONG

# The load goes on until it is stopped: a fixed list of requests by many connections, over and over; each counts what came back.
load() {
	python3 - "$PWD/redis.sock" 7<&- <<-'E'
	import os, socket, sys, threading
	done, counts = threading.Event(), []
	def client(number):
	    s = socket.socket(socket.AF_UNIX)
	    s.settimeout(20)
	    s.connect(sys.argv[1])
	    f = s.makefile('rb')
	    asked = answered = wrong = 0
	    while not done.is_set():
	        key, value = f'k{number}:{asked % 5000}', f'{asked}:' + 'v' * (asked % 700)
	        s.sendall(f'SET {key} {value}\r\nGET {key}\r\nINCR n{number}\r\n'.encode())
	        asked += 3
	        ok = f.readline()
	        head = f.readline()
	        got = f.read(int(head[1:]) + 2)[:-2].decode() if head[:1] == b'$' and head[1:2] != b'-' else None
	        n = f.readline()
	        answered += 3
	        wrong += (ok != b'+OK\r\n') + (got != value) + (n != b':%d\r\n' % (asked // 3))
	    counts.append((asked, answered, wrong))
	threads = [threading.Thread(target=client, args=(i,)) for i in range(8)]
	for t in threads: t.start()
	open('loading', 'w').close()
	while not os.path.exists('enough'):
	    done.wait(0.1)
	done.set()
	for t in threads: t.join()
	print('clients=%d asked=%d answered=%d wrong=%d' % ((len(counts),) + tuple(map(sum, zip(*counts)))))
	sys.exit(len(counts) != 8 or any(a != b or w for a, b, w in counts))
	E
}
load >load.out 2>&1 &
other=$!
for i in $(seq 100); do [ -e loading ] && break; sleep 0.05; done
redis-benchmark -s "$PWD/redis.sock" -n 100000000 -c 20 -P 4 -d 300 -r 100000 -q -t set,get,lpush,lpop >bench.out 2>&1 &
bench=$!
sleep 1

# visits NAME WAY N
visits() {
	"$VISIT" "$pid" "$2" "$3" >visit
	ok $? "$1: $3 visits"
	diagnose visit
}
visits "status" s "$n"
median=$(sed -n 's/.*stopped: median \([0-9.]*\) .*/\1/p' visit)
awk -v m="$median" 'BEGIN { exit !(m > 0 && m <= 2) }'
ok $? "the median stop is at most 2 ms" || echo "# it is $median ms"
visits "dump" d "$n"
visits "switching" t "$((n / 4))"
visits "at the allocator's entries" b "$((n / 4))"
visits "dump, by a new process each time" do 10
kill -0 $bench 2>/dev/null
ok $? "redis-benchmark was there all the time"
kill $bench
wait $bench 2>/dev/null
! tr '\r' '\n' <bench.out | grep -iE 'error|refused|reset|closed' | head -n 3 | grep .
ok $? "and had no failure"
touch enough
wait $other
ok $? "every request was answered, and rightly"
other=
diagnose load.out
is "redis answers" "$(ask ping)" PONG
is "no descriptor stayed" "$(find "/proc/$pid/fd" -lname '*heapgauge*' | wc -l)" 0
runs 0 "top of it" heapgauge top --symbols table "pid:$pid"
like "names functions" out '[a-z]+[A-Z_][A-Za-z_]+|zmalloc|sds'
! grep -iE 'crash|bug report|assert|Interrupted' redis.log
ok $? "nothing in its log"
ask shutdown nosave
wait "$pid"
ok $? "it ends as it should"
pid=
done_testing
