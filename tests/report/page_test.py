"""The page's data block says what the profile says: page_test.py EXPORT_FIXTURE

Blocks are decoded by page_block.py and compared with convert's JSON of the same profile, stack by stack and type by type. What does not
fit into a limit is added up, and no total changes.
"""
import json
import subprocess
import sys

import flame
import page_block

TYPES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")
STACKS = 1500


def told(block, source=None):
    """{(stack as (name, file, line) from the leaf, thread, size): values}; as convert words what has no name."""
    sums = {}
    for r in block.rows:
        if source is not None and r.source != source:
            continue
        thread, size, _ = block.labels[r.labels]
        stack = tuple((name if name.strip() else "(unnamed)", file, line) for name, file, line, _, _ in block.stack(r.node)[::-1])
        key = stack or (("(no frames)", "", 0),), thread, size
        sums[key] = [a + b for a, b in zip(sums.get(key, (0,) * len(TYPES)), r.values)]
    return sums


def exported(fixture, kind, metric, amount="value"):
    d = json.loads(fixture.write(kind, "json", "line", metric))
    frames = [(f["name"], f.get("file", ""), f.get("line", 0)) for f in d["frames"]]
    sums = {}
    for r in d["rows"]:
        key = tuple(frames[i] for i in r["stack"]), r.get("thread", ""), r.get("block_size", 0)
        sums[key] = sums.get(key, 0) + r[amount]
    return {key: value for key, value in sums.items() if value}


def check_same(fixture, kind):
    block = page_block.Block(fixture.write(kind, "block"))
    have = told(block)
    for i, metric in enumerate(TYPES):
        wanted = exported(fixture, kind, metric)
        got = {key: values[i] for key, values in have.items() if values[i]}
        flame.check(got == wanted, "%s: %s of every stack" % (kind, metric), set(got.items()) ^ set(wanted.items()))
    flame.check(block.header["rest"] is None and not any(r.rest for r in block.rows), kind + ": nothing is left out")
    flame.check(block.header["title"] == "<title>" and block.header["command"] == ["heapgauge", '"x.heap"'], kind + ": texts")
    order = [(r.node, r.labels, r.source) for r in block.rows]
    flame.check(all(a <= b or r.new_stack for a, b, r in zip(order, order[1:], block.rows[1:])), kind + ": rows are in order")
    return block


def check_series(fixture):
    block = page_block.Block(fixture.write("series", "block"))
    flame.check([s["name"] for s in block.header["snapshots"]] == ["server.1.heap", "server.2.heap"] and
                [s["snapshot"] for s in block.header["sources"]] == [0, 1], "series: two snapshots")
    for source, amount in enumerate(("base", "new")):
        for i, metric in enumerate(TYPES):
            wanted = {}
            for (stack, _, _), value in exported(fixture, "diff", metric, amount).items():
                wanted[stack] = wanted.get(stack, 0) + value
            got = {}
            for (stack, _, _), values in told(block, source).items():
                if values[i]:
                    got[stack] = got.get(stack, 0) + values[i]
            flame.check(got == wanted, "series: %s of snapshot %d, as a diff has it" % (metric, source))


def weights(block):
    sums, column = {}, block.header["default_type"]
    for r in block.rows:
        if not r.rest:
            sums[r.node] = sums.get(r.node, 0) + r.values[column]
    return sums


def subtree_sums(block, column):
    sums = [0] * len(block.parent)
    for r in block.rows:
        sums[r.node] += r.values[column]
    for node in range(len(block.parent) - 1, 0, -1):
        sums[block.parent[node]] += sums[node]
    return sums


def check_folding(fixture, kind, limit):
    name = "%s in %d bytes" % (kind, limit)
    whole = page_block.Block(fixture.write(kind, "block"))
    data = fixture.write(kind, "block:%d" % limit)
    block = page_block.Block(data)
    flame.check(len(data) <= limit, name + ": fits", len(data))
    flame.check(len(data) > 0.6 * limit, name + ": uses it", len(data))
    flame.check(block.totals() == whole.totals(), name + ": totals are exact")
    rest, others = block.header["rest"], [r for r in block.rows if r.rest]
    flame.check(rest["rows"] == sum(r.rest for r in others) and rest["rows"] + len(block.rows) - len(others) == len(whole.rows),
                name + ": every row is told or counted", rest)
    column = block.header["default_type"]
    part = sum(r.values[column] for r in others) / sum(r.values[column] for r in block.rows)
    flame.check(abs(part - rest["part"]) < 1e-5, name + ": how much is left out", (part, rest))
    flame.check(all(block.labels[r.labels][1] == 0 for r in others), name + ": an (other) has no block size")
    # Nodes of the whole by the node above and their frame; each node of the block has to be one of them.
    known, places = {}, [0] * len(block.parent)
    for node in range(1, len(whole.parent)):
        known[whole.parent[node], whole.frames[whole.frame[node]]] = node
    for node in range(1, len(block.parent)):
        places[node] = known.get((places[block.parent[node]], block.frames[block.frame[node]]))
    flame.check(None not in places, name + ": all stacks are real")
    have = weights(block)
    least = min(have.values())
    lighter = [w for w in sorted(weights(whole).values(), reverse=True)[:len(have)] if w < least]
    flame.check(len(lighter) <= len(have) // 20, name + ": the heaviest are told", (len(lighter), len(have)))
    # What is below a node of the block is below it in the whole, too: no value went to a stranger.
    below, whole_below = subtree_sums(block, column), subtree_sums(whole, column)
    flame.check(all(below[n] <= whole_below[places[n]] for n in range(len(places))), name + ": no frame got more than it has")
    flame.check(below[0] == whole_below[0], name + ": the root has all")


def check_refusal(fixture, kind, limit):
    done = subprocess.run([fixture.program, kind, "block:%d" % limit], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    flame.check(done.returncode == 1 and not done.stdout and b"--max-size" in done.stderr, "%s in %d bytes: refused" % (kind, limit),
                done.stderr)


def main():
    fixture = flame.Fixture(sys.argv[1])
    for kind in ("server", "exact", "hostile", "deep", "wide", "folded", "long", "empty", "200"):
        check_same(fixture, kind)
    server = page_block.Block(fixture.write("server", "block"))
    binaries = {f[0]: f[3] for f in server.frames}
    flame.check(binaries["SSL_accept"] == "/usr/lib/x86_64-linux-gnu/libssl.so.3" and binaries["main"] == "/usr/local/bin/app-server",
                "server: binaries", binaries)
    flame.check(server.header["types"][3]["times"] == 2 and server.header["types"][1]["times"] == 0 and
                server.header["metric"]["inuse_space"] == 3, "server: bytes are told as objects times their size")
    check_series(fixture)
    for limit in (60000, 20000, 6000):
        check_folding(fixture, str(STACKS), limit)
    check_folding(fixture, "server", 4000)
    check_folding(fixture, "series", 6000)
    # One stack that alone is too much doesn't keep the others out.
    block = page_block.Block(fixture.write("long", "block:1100"))
    flame.check(block.totals() == page_block.Block(fixture.write("long", "block")).totals() and
                any(r.rest == 0 for r in block.rows) and block.header["rest"]["rows"] == 2, "long: a short stack is told in little room",
                block.header["rest"])
    check_refusal(fixture, "server", 100)
    return flame.done()


if __name__ == "__main__":
    sys.exit(main())
