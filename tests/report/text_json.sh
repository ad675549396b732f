#!/bin/bash
# The JSON of every report, read by Python's parser and compared with what the profiles hold.
# Usage: text_json.sh PROGRAM (text_json_print)
set -u
print=$1
n=0
failed=0

# check NAME PROFILE SCRIPT : r is a dictionary from report name to its object.
check() {
	n=$((n + 1))
	if "$print" "$2" | python3 -c "
import json, sys
r = {}
for line in sys.stdin:
    o = json.loads(line)
    r[o['report']] = o
def row(report, name, key='rows'):
    return next(x for x in r[report][key] if x.get('name') == name)
$3"; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		failed=1
	fi
}

check "all reports say what they are" plain '
assert sorted(r) == ["peek", "top", "traces", "tree"], sorted(r)
for o in r.values():
    assert o["version"] == 1 and o["metric"] == "inuse_space" and o["unit"] == "bytes" and o["by"] == "function"
    assert o["diff"] is False and o["program"] == "/usr/bin/server" and o["notes"] == []
    s, = o["sources"]
    assert s["name"] == "server.42.0.heap" and s["rate"] == 65536 and s["pid"] == 42 and not s["base"]
    assert s["time"] == "2026-11-21T03:30:00.000000000Z" and int(s["process"], 16) > 0
    assert o["total"]["value"] == 100 << 20 and o["total"]["low"] < 100 << 20 < o["total"]["high"]
    assert 1600 < o["samples"] < 1700'

check "top: amounts are plain bytes" plain '
t = r["top"]
assert t["sort"] == "flat" and t["rows_total"] == len(t["rows"]) == 8
assert [x["name"] for x in t["rows"]][:3] == ["parse", "cache_put", "load"]
p = row("top", "parse")
assert p["flat"] == p["cum"] and p["flat"]["value"] == 64 << 20 and p["binary"] == "/usr/bin/server"
assert abs(p["flat"]["high"] + p["flat"]["low"] - 2 * p["flat"]["value"]) <= 1
assert row("top", "main")["flat"] == {"value": 0, "low": 0, "high": 0}'

check "tree: a list of nodes that name their parents" plain '
nodes = r["tree"]["nodes"]
assert [x["id"] for x in nodes] == list(range(len(nodes))) and nodes[0]["parent"] is None
below = {}
for x in nodes[1:]:
    assert x["parent"] < x["id"] and x["depth"] == nodes[x["parent"]]["depth"] + 1
    below[x["parent"]] = below.get(x["parent"], 0) + x["total"]["value"]
for i, sum in below.items():
    assert nodes[i]["total"]["value"] == nodes[i]["self"]["value"] + sum, nodes[i]
hidden, = [x for x in nodes if "hidden" in x]
assert hidden["hidden"] == 1 and hidden["total"]["value"] == 1 << 20'

check "peek: callers and callees add up" plain '
e = row("peek", "handle", "entries")
assert [x["name"] for x in e["callers"]] == ["run"] and [x["name"] for x in e["callees"]] == ["parse", "cache_put"]
assert sum(x["amount"]["value"] for x in e["callees"]) == e["cum"]["value"] == 88 << 20
assert row("peek", "main", "entries")["callers"] == []'

check "traces: whole stacks with labels" plain '
s = r["traces"]["stacks"]
assert len(s) == r["traces"]["stacks_total"] == 4
assert [f["name"] for f in s[0]["frames"]] == ["parse", "handle", "run", "main"]
assert s[0]["thread"] == "worker" and s[0]["block_size"] == 1024 and s[0]["objects"]["value"] == 65536
assert "block_size" not in s[2]'

check "diff: both sides, the change and its interval" diff '
for o in r.values():
    assert o["diff"] and o["same_process"] and [s["base"] for s in o["sources"]] == [True, False]
d = r["diff"]
assert [x["name"] for x in d["rows"]] == ["parse", "load", "session", "cache_put"]
assert [x["status"] for x in d["rows"]] == ["grown", "gone", "new", "grown"]
assert [x["significant"] for x in d["rows"]] == [True, True, True, False]
assert (d["rows_significant"], d["rows_noise"], d["rows_unchanged"]) == (3, 1, 1) and d["advice"] is None
for x in d["rows"]:
    f = x["flat"]
    assert f["change"] == f["new"] - f["base"] and f["low"] <= f["change"] <= f["high"]
    assert (f["low"] <= 0 <= f["high"]) == (x["p_value"] > 0.05)
t = {x["frames"][0]["name"]: x for x in r["traces"]["stacks"]}
assert t["load"]["objects"] == {"base": 1024, "new": 0} and t["load"]["amount"]["change"] == -11 << 20'

check "diff: advice when everything is noise" noise '
d = r["diff"]
assert d["rows_significant"] == 0 and d["advice"].startswith("Not enough samples yet: ")'

check "names survive whatever their bytes" hostile '
s = r["traces"]["stacks"][0]
assert [f["name"] for f in s["frames"]] == ["\"quote\\\n\x1b[2J", "\ufffd\ufffd", "</script>", "\u202e"], s
assert s["thread"] == "thread\t\"1\"" and r["top"]["sources"][0]["name"] == "na\"me\n.heap"
assert r["traces"]["stacks"][1]["labels"] == [{"key": "request\"", "value": "a\0b"}]'

check "the deepest stack nests nothing" deep '
assert len(r["tree"]["nodes"]) == 65537 and r["tree"]["nodes"][-1]["depth"] == 65536
assert r["tree"]["nodes"][-1]["self"]["value"] == 9000
assert len(r["traces"]["stacks"][0]["frames"]) == 65536'

check "no error is null" cpu '
t = r["top"]
assert t["unit"] == "nanoseconds" and t["total"] == {"value": 1230000000, "low": None, "high": None}
assert t["sources"][0]["rate"] is None and t["sources"][0]["time"] is None and t["sources"][0]["process"] is None
assert "samples" not in t and "program" not in t'

echo "1..$n"
exit $failed
