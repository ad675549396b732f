#!/bin/bash
# Series: exact ones whose growth is known, made of pprof files that tell their times, and dumps of a real process.
. "$(dirname "$0")/lib.sh"

# write NAME COUNT RATE timed|untimed ADDRESS EXPRESSION… : NAME.<k>.pb.gz for k from 0, ten minutes apart from T0 on; each
# expression is a stack, a blank, and bytes by k. The address tells processes apart.
cat >write.py <<'PYTHON'
import gzip, os, sys

def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytearray([n]))

def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value

def profile(stacks, k, rate, timed, start):
    strings, body, functions = [""], b"", {}
    def text(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)
    for name, unit in (("inuse_objects", "count"), ("inuse_space", "bytes")):
        body += field(1, field(1, text(name)) + field(2, text(unit)))
    for stack, value in stacks:
        ids = []
        for name in stack.split(";"):
            ids.append(functions.setdefault(name, len(functions) + 1))
        if value:
            body += field(2, b"".join(field(1, i) for i in ids) + field(2, value // 64) + field(2, value))
    body += field(3, field(1, 1) + field(2, 0x560000001000 + start) + field(3, 0x560000101000 + start) + field(5, text("/bin/app")))
    for name, i in functions.items():
        body += field(4, field(1, i) + field(2, 1) + field(3, 0x560000001000 + start + i) + field(4, field(1, i)))
        body += field(5, field(1, i) + field(2, text(name)))
    if timed:
        body += field(9, int(os.environ.get("T0", 1700000000)) * 10**9 + k * 600 * 10**9)
    body += field(11, field(1, text("space")) + field(2, text("bytes"))) + field(12, rate)
    for s in strings:
        body += field(6, s.encode())
    return gzip.compress(body, mtime=0)

name, count, rate, timed, start = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4] == "timed", int(sys.argv[5])
for k in range(count):
    stacks = [(a.split(" ")[0], int(eval(a.split(" ", 1)[1], {"k": k}))) for a in sys.argv[6:]]
    open("%s.%d.pb.gz" % (name, k), "wb").write(profile(stacks, k, rate, timed, start))
PYTHON
write() {
	python3 write.py "$@" || exit 1
}

M='1048576'
# 6 MiB an hour is 1 MiB in ten minutes.
write app 13 1 timed 0 "leak_it;handler;main 1000000 + $M * k" "fill;cache;main $M * [0,9,14,17,19,20,20,20,20,20,20,20,20][k]" \
	"saw;main $M * (1 + k % 4 * 4)" "load;main 40 * $M" "burst;main $M * (30 if k > 5 else 2)"
runs 0 "a series" heapgauge leaks app.*.pb.gz
like "it says how much over how long" out '^Series: +13 snapshots over 2\.00 h$'
like "shells don't sort by number: it is put in order" out '^Note: +the profiles were put in order by time$'
like "the leak, exactly" out '^ *\+6\.00 MiB/h +\+12\.0 MiB .* steady .*leak_it ← handler ← main'
[ "$(grep -nE 'leak_it|fill|burst|saw' out | head -1 | grep -c leak_it)" = 1 ]
ok $? "the leak is first"
like "a cache that filled" out 'plateau .*fill ← cache'
like "a step" out 'step .*burst ← main'
like "a saw-tooth" out 'saw-tooth .*saw ← main'
like "what stood is counted" out '^\(1 more stack: 1 flat\)'
runs 0 "as JSON" heapgauge leaks --json --limit 1G app.*.pb.gz
json "JSON: keys and the rate" out 'd["report"] == "leaks" and d["per"] == "hour" and len(d["times"]) == 13 and d["times"][12] == 7200 and d["rows"][0]["frames"][0]["name"] == "leak_it" and abs(d["rows"][0]["rate"]["value"] / (6 * 1048576) - 1) < 1e-4 and d["rows"][0]["steady"] and len(d["rows"][0]["values"]) == 13'
json "JSON: when the limit is reached" out 'abs(d["rows"][0]["to_limit"]["value"] - 3600 * (2**30 - d["total"]["values"][-1]) / (6 * 1048576)) < 60'
json "JSON: no sum over time" out 'd["total"]["values"][0] == 1000000 + 43 * 1048576'
runs 0 "with a limit" heapgauge leaks --limit 100M app.*.pb.gz
like "the total has reached it" out '^Total: .*100 MiB is reached|^Total: .*100 MiB in '
runs 0 "by function with callees" heapgauge leaks --json --by function --sort cum app.*.pb.gz
json "handler grows with what it calls" out 'row("handler")["change"] == 12 * 1048576 and row("handler")["shape"] == "steady"'
runs 0 "objects" heapgauge leaks --json --metric inuse_objects app.*.pb.gz
json "objects: their rate" out 'd["unit"] == "count" and abs(d["rows"][0]["rate"]["value"] / 98304 - 1) < 1e-3'
runs 0 "filters" heapgauge leaks --json --all --focus cache app.*.pb.gz
json "filters: only what matches" out '[r["frames"][0]["name"] for r in d["rows"]] == ["fill"]'
runs 0 "-n" heapgauge leaks -n 1 app.*.pb.gz
like "-n: the rest is counted" out '^\(4 more stacks: 3 grew, 1 flat\)'

# The gate.
runs 3 "the gate trips" heapgauge leaks --fail-above 5M/h app.*.pb.gz
like "the gate says why" out '^Gate: +FAILED: 1 stack grows steadily by more than 5M/h$'
runs 0 "above the rate it holds" heapgauge leaks --fail-above 7M/h app.*.pb.gz
like "it says that it held" out '^Gate: +passed'
runs 3 "per minute" heapgauge leaks --fail-above 90k/min app.*.pb.gz
runs 3 "per snapshot" heapgauge leaks --fail-above 1000k/snapshot app.*.pb.gz
runs 0 "caches, steps and saw-teeth don't trip it" heapgauge leaks --fail-above 1k/h --ignore leak_it app.*.pb.gz
runs 3 "as Markdown into a file" heapgauge leaks --fail-above 5M/h --markdown -o comment.md app.*.pb.gz
like "Markdown: a table with the leak" comment.md '^\| \+6\.00 MiB/h \|.*\*\*failed\*\* \| <code>leak&#95;it ← handler'
like "Markdown: the verdict" comment.md '^### Memory growth: FAILED'
runs 3 "as JSON" heapgauge leaks --fail-above 5M/h --json app.*.pb.gz
json "JSON: the gate" out 'd["gate"]["tripped"] and d["gate"]["exceeding"] == 1 and d["rows"][0]["exceeds"] and abs(d["gate"]["rate"] - 5 * 1048576) < 1'

# Names in Markdown are text and nothing else.
write evil 6 1 timed 0 'a|b<script>`@all[x](http://y);main 1000000*k'
runs 0 "a name that means something in Markdown" heapgauge leaks --markdown evil.*.pb.gz
unlike "it has no markup left" out '<script|`|\|b|@all|\[x\]'

# What can be wrong.
misused "two profiles and a gate" "at least 5 snapshots" heapgauge leaks --fail-above 1M/h app.0.pb.gz app.1.pb.gz
misused "one profile" "at least 2" heapgauge leaks app.0.pb.gz
misused "a rate without time" "size per time" heapgauge leaks --fail-above 1M app.*.pb.gz
misused "a rate that is none" "size per time" heapgauge leaks --fail-above fast/h app.*.pb.gz
misused "an interval that is none" "--interval takes a time" heapgauge leaks --interval soon app.*.pb.gz
misused "merge" "one process at a time" heapgauge leaks --merge app.*.pb.gz
fails "a file that isn't there" "none.pb.gz" heapgauge leaks app.0.pb.gz none.pb.gz
runs 0 "four are not five" heapgauge leaks app.[0-3].pb.gz
like "four are not five: said" out 'Note: +4 snapshots tell what grew, but not whether it goes on'

# A restart: another address space, whose stacks were small again.
T0=1700100000 write again 4 1 timed 4096000 "leak_it;handler;main 1000000 + $M * k"
runs 0 "a restart" heapgauge leaks app.*.pb.gz again.*.pb.gz
like "a restart: the longest part" out '^Note: +the process changed .* of 17 profiles, 1 to 13 are looked at'
like "a restart: the same rate" out '\+6\.00 MiB/h .*leak_it'
runs 2 "processes that differ" heapgauge leaks again.0.pb.gz app.0.pb.gz
like "processes that differ: said" err "no 2 that follow each other are of one process"

# Without times.
write bare 8 1 untimed 0 "leak_it;main $M * k"
touch -d 2024-01-01 bare.*.pb.gz
runs 0 "no times" heapgauge leaks bare.*.pb.gz
like "no times: per snapshot, and said" out '\+1\.00 MiB/snapshot'
like "no times: a note" out "^Note: .*don't tell when they were taken"
misused "no times, and a gate per hour" "--interval" heapgauge leaks --fail-above 1M/h bare.*.pb.gz
runs 3 "no times, and a gate per snapshot" heapgauge leaks --fail-above 1000k/snapshot bare.*.pb.gz
runs 3 "times by --interval" heapgauge leaks --interval 10min --fail-above 5M/h bare.*.pb.gz
like "times by --interval: the rate" out '\+6\.00 MiB/h'

# Sampled, and too little to tell: advice.
write few 8 524288 timed 0 "leak_it;main 524288 * (k // 3)"
runs 0 "too few samples" heapgauge leaks few.*.pb.gz
like "too few samples: what would tell" out '^No stack grows steadily beyond doubt.*\. .*(more|finer)'

# A real process' dumps.
if [ -n "${GROW_JEMALLOC:-}" ]; then
	runs 0 "a run with dumps on the way" heapgauge run -q -d moments --rate 1 --every 1m -- "$GROW_JEMALLOC" 100 5000
	runs 0 "its dumps are a series" heapgauge leaks --json moments/*.heap
	json "in order, of one process, and growing" out 'len(d["times"]) >= 8 and d["rows"][0]["frames"][0]["name"] == "grow_here" and d["rows"][0]["values"] == sorted(d["rows"][0]["values"])'
	misused "top of a series points here" "heapgauge leaks" heapgauge top moments/*.heap
else
	skip "a real process' dumps" "there is no libjemalloc to link with"
fi
done_testing
