"""
The text formats written from a view. Small cases against what stands here; larger ones against each
other, each read by its own rules; callgrind also by callgrind_annotate.

  export_test.py EXPORT_FIXTURE
"""
import collections
import csv
import functools
import io
import json
import re
import shutil
import subprocess
import sys
import tempfile

count = failures = 0


def check(good, what, why=None):
    global count, failures
    count += 1
    print("%s %d - %s" % ("ok" if good else "not ok", count, what), flush=True)
    if not good:
        failures += 1
        if why is not None:
            print("# " + str(why).replace("\n", "\n# ")[:1000])


def write_again(kind, form, *by):
    done = subprocess.run([sys.argv[1], kind, form, *by], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.decode())
    return done.stdout


write = functools.lru_cache(maxsize=None)(write_again)


# --- folded: what the others are compared with ---

@functools.lru_cache(maxsize=None)
def folded(kind, *by):
    """stack (root first, joined by ;) -> [numbers]"""
    diff = kind.startswith("diff") or kind == "same"
    stacks = collections.OrderedDict()
    for line in write(kind, "folded", *by).decode().split("\n")[:-1]:
        words = line.rsplit(" ", 2 if diff else 1)
        assert words[0] not in stacks, "twice: " + line
        stacks[words[0]] = [int(w) for w in words[1:]]
    return stacks


def check_folded():
    want = "(no frames) 32\nmain;f 200\nmain;f;f;f 50\nmain;f;g 1700\nmain;g 3000\n"
    check(write("exact", "folded").decode() == want, "folded: root first, equal stacks merged, in order")
    lines = "(no frames) 32\nmain a.c:3;f a.c:10 200\nmain a.c:3;f a.c:10;g b.c:20 1700\n" \
            "main a.c:3;f a.c:12;f a.c:10;f a.c:12 50\nmain a.c:3;g b.c:20 3000\n"
    check(write("exact", "folded", "line").decode() == lines, "folded by line", write("exact", "folded", "line"))
    threads = "(no thread) 3032\nt1 1200\nt2 \"x\" 750\n"
    check(write("exact", "folded", "thread").decode() == threads, "folded by thread", write("exact", "folded", "thread"))
    text = write("hostile", "folded")
    check(b"\0" not in text and b"\r" not in text and b"\x1b" not in text, "folded: no control characters")
    names = [n for stack in folded("hostile") for n in stack.split(";")]
    check(len(names) == 2 * 23 + 1 and all(n.strip() for n in names), "folded: ; and newlines in names split nothing", len(names))
    check("(unnamed)" in names and "(no frames)" in names, "folded: no name is empty")
    check(write("empty", "folded") == b"", "folded: nothing for nothing")
    diff = folded("diff")
    check(any(b and not n for b, n in diff.values()) and any(n and not b for b, n in diff.values()),
          "folded: a diff has what is gone and what is new")
    deep = folded("deep")
    check(sorted(s.count(";") + 1 for s in deep) == [2000, 65536], "folded: stacks of 65,536 frames")
    check(all(b == n for b, n in folded("same").values()), "folded: two equal columns when nothing changed")


# --- JSON and CSV ---

def json_name(frame, by):
    name = re.sub(r"[\x00-\x1f\x7f]", " ", frame["name"].replace(";", ":"))
    if by == "line" and "line" in frame:
        name += " %s:%d" % (frame.get("file", "").rsplit("/", 1)[-1], frame["line"])
    return name


def check_json(kind, by="function"):
    text = write(kind, "json", by)
    d = json.loads(text)
    diff = d["diff"]
    keys = ["base", "new"] if diff else ["value"]
    sums = collections.Counter()
    got = {}
    for row in d["rows"]:
        stack = ";".join(json_name(d["frames"][i], by) for i in reversed(row["stack"]))
        total = got.setdefault(stack, [0] * len(keys))
        for k, key in enumerate(keys):
            total[k] += row[key]
            sums[key] += row[key]
        if diff and row["change"] != row["new"] - row["base"]:
            sums["wrong"] += 1
        middle = row["change"] if diff else row["value"]
        if "low" in row and not row["low"] <= middle <= row["high"]:
            sums["wrong"] += 1
    check(got == folded(kind, by), "json %s %s: the same stacks as folded" % (kind, by))
    check(not sums["wrong"] and all(d["total"][k] == sums[k] for k in keys), "json %s %s: rows add up" % (kind, by), sums)
    used = {i for row in d["rows"] for i in row["stack"]}
    check(used == set(range(len(d["frames"]))), "json %s %s: all frames are used" % (kind, by))
    check(text == write_again(kind, "json", by), "json %s %s: the same again" % (kind, by))
    return d


def check_csv(kind):
    text = write(kind, "csv").decode()
    rows = list(csv.reader(io.StringIO(text, newline="")))
    head, body = rows[0], rows[1:]
    diff = kind.startswith("diff") or kind == "same"
    want = ["inuse_space_base", "inuse_space_new", "change"] if diff else ["inuse_space"]
    check(head == want + ["low", "high", "thread", "block_size", "stack"], "csv %s: header" % kind, head)
    check(all(len(r) == len(head) for r in body), "csv %s: every row has all columns" % kind)
    got = {}
    for row in body:
        r = dict(zip(head, row))
        stack = r["stack"][1:] if re.match("'[=+@-]", r["stack"]) else r["stack"]
        numbers = [int(r[k]) for k in (want[:2] if diff else want)]
        total = got.setdefault(stack, [0] * len(numbers))
        for k, n in enumerate(numbers):
            total[k] += n
    # Marks that turn the direction of writing are kept by folded text only.
    want = {re.sub("[\u202e\u2066]", "\ufffd", k): v for k, v in folded(kind).items()}
    check(got == want, "csv %s: the same stacks as folded" % kind, sorted(set(got) ^ set(want))[:4])
    d = json.loads(write(kind, "json"))
    labels = collections.Counter((r["thread"], r["block_size"]) for r in (dict(zip(head, row)) for row in body))
    of_json = collections.Counter((r.get("thread", ""), str(r.get("block_size", ""))) for r in d["rows"])
    if kind != "hostile":
        check(labels == of_json, "csv %s: threads and block sizes as in JSON" % kind)
    check(not any(re.match("[=+@]", field) for row in body for field in row), "csv %s: no field is a formula" % kind)


# --- speedscope ---

def check_speedscope(kind):
    text = write(kind, "speedscope")
    d = json.loads(text)
    frames, stacks = d["shared"]["frames"], folded(kind)
    good = d["$schema"] == "https://www.speedscope.app/file-format-schema.json" and \
        all(isinstance(f["name"], str) and f["name"] and set(f) <= {"name", "file", "line", "col"} for f in frames)
    diff = len(d["profiles"]) > 1
    names = [p["name"] for p in d["profiles"]]
    check(names == (["inuse_space: " + c for c in ("grew", "shrank", "base", "new")]
                    if kind.startswith("diff") or kind == "same" else ["inuse_space"]), "speedscope %s: profiles" % kind, names)
    values = {"grew": lambda b, n: max(0, n - b), "shrank": lambda b, n: max(0, b - n),
              "base": lambda b, n: b, "new": lambda b, n: n}
    for p in d["profiles"]:
        good = good and p["type"] == "sampled" and p["unit"] == "bytes" and p["startValue"] == 0 and \
            len(p["samples"]) == len(p["weights"]) and all(isinstance(w, int) and w > 0 for w in p["weights"]) and \
            p["endValue"] == sum(p["weights"]) and \
            all(0 <= i < len(frames) for s in p["samples"] for i in s)
        got = collections.Counter()
        for s, w in zip(p["samples"], p["weights"]):
            got[";".join(json_name(frames[i], "") for i in s)] += w
        value = values[p["name"].split(": ")[1]] if diff else lambda n: n
        want = collections.Counter({s: value(*v) for s, v in stacks.items() if value(*v)})
        check(got == want, "speedscope %s: %s has the same stacks as folded" % (kind, p["name"]))
    check(good, "speedscope %s: follows the schema" % kind)


# --- callgrind ---

class Callgrind:
    """By the format's description: name compression, position lines, calls."""

    def __init__(self, text):
        self.names = {"ob": {}, "fl": {}, "fn": {}}
        self.self_cost, self.calls = collections.defaultdict(lambda: None), []
        self.events, self.summary = [], []
        at, called, expect_call = {}, {}, None
        for line in text.split("\n"):
            if line == "" or line[0] == "#" or re.match(r"(version|creator|cmd|positions):", line):
                continue
            if line.startswith("events:"):
                self.events = line.split()[1:]
            elif line.startswith("summary:"):
                self.summary = [int(w) for w in line.split()[1:]]
            elif re.match(r"(ob|fl|fn|cob|cfi|cfn)=", line):
                key, value = line.split("=", 1)
                kind = {"cob": "ob", "cfi": "fl", "cfn": "fn"}.get(key, key)
                (called if key in ("cob", "cfi", "cfn") else at)[kind] = self.resolve(kind, value)
            elif line.startswith("calls="):
                calls, _target = line[6:].split()
                expect_call = int(calls)
            else:
                numbers = [int(w) for w in line.split()]
                cost = numbers[1:]
                assert len(cost) == len(self.events) and min(cost) >= 0, line
                if expect_call is not None:
                    assert expect_call > 0
                    self.calls.append(((at["ob"], at["fl"], at["fn"]), (called["ob"], called["fl"], called["fn"]),
                                       numbers[0], cost))
                    expect_call = None
                else:
                    self.self_cost[at["ob"], at["fl"], at["fn"], numbers[0]] = cost

    def resolve(self, kind, value):
        number, name = re.fullmatch(r"\((\d+)\)(?: (.*))?", value).groups()
        if name is not None:
            assert number not in self.names[kind], "named twice: " + value
            self.names[kind][number] = name
        return number, self.names[kind][number]


def callgrind_expected(stacks, column):
    """self by name, inclusive by (caller, callee), both once a stack."""
    own, calls = collections.Counter(), collections.Counter()
    for stack, values in stacks.items():
        frames, value = stack.split(";"), column(*values)
        own[frames[-1]] += value
        for pair in set(zip(frames, frames[1:])):
            calls[pair] += value
    return +own, +calls


def check_callgrind(kind):
    c = Callgrind(write(kind, "callgrind").decode())
    diff = kind.startswith("diff")
    columns = [lambda b, n: max(0, n - b), lambda b, n: max(0, b - n), lambda b, n: b, lambda b, n: n] if diff else [lambda n: n]
    check(c.events == (["inuse_space_" + x for x in ("grew", "shrank", "base", "new")] if diff else ["inuse_space"]),
          "callgrind %s: events" % kind, c.events)
    for k, event in enumerate(c.events):
        own, calls = collections.Counter(), collections.Counter()
        for (_, _, fn, _), cost in c.self_cost.items():
            own[fn[1]] += cost[k]
        for caller, callee, _, cost in c.calls:
            calls[caller[2][1], callee[2][1]] += cost[k]
        want_own, want_calls = callgrind_expected(folded(kind), columns[k])
        check(+own == want_own and sum(own.values()) == c.summary[k], "callgrind %s: %s by function" % (kind, event))
        check(+calls == want_calls, "callgrind %s: %s by call" % (kind, event), list((calls - want_calls).items())[:3])


def check_callgrind_lines():
    c = Callgrind(write("exact", "callgrind", "line").decode())
    own = {(fl[1], fn[1], line): cost[0] for (_, fl, fn, line), cost in c.self_cost.items()}
    check(own == {("???", "(no frames)", 0): 32, ("a.c", "f", 10): 200, ("a.c", "f", 12): 50, ("b.c", "g", 20): 4700},
          "callgrind: costs by line", own)
    calls = sorted((a[2][1], line, b[2][1], cost[0]) for a, b, line, cost in c.calls)
    check(calls == [("f", 10, "f", 50), ("f", 10, "g", 1700), ("f", 12, "f", 50), ("main", 3, "f", 1950), ("main", 3, "g", 3000)],
          "callgrind: calls by line", calls)
    # callee named "(1) compressed": the parentheses are the name's.
    hostile = Callgrind(write("hostile", "callgrind").decode())
    check("(1) compressed" in hostile.names["fn"].values() and "fn=(1) x" in hostile.names["fn"].values(),
          "callgrind: names that look like references stay names")


def check_annotate():
    tool = shutil.which("callgrind_annotate")
    if not tool:
        check(True, "callgrind_annotate reads it # SKIP it is not installed")
        return
    for kind in ("server", "diff", "hostile"):
        with tempfile.NamedTemporaryFile(suffix=".callgrind") as f:
            f.write(write(kind, "callgrind", "line"))
            f.flush()
            done = subprocess.run([tool, "--threshold=100", "--show-percs=no", f.name], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        text = done.stdout.decode(errors="replace")
        diff = kind == "diff"
        totals = [sum(col) for col in zip(*folded(kind).values())]
        shown = re.search(r"^\s*([\d,. ]+?)\s+PROGRAM TOTALS", text, re.M)
        numbers = [int(w.replace(",", "")) for w in shown.group(1).split()] if shown else []
        check(done.returncode == 0 and (numbers[2:] if diff else numbers) == totals, "callgrind_annotate: %s has our totals" % kind, text[:600])
        if kind == "server":
            own, _ = callgrind_expected(folded(kind), lambda n: n)
            wrong = [n for n, v in own.most_common(5)
                     if not re.search(r"^\s*%s\s+.*%s" % (re.escape(format(v, ",")), re.escape(n)), text, re.M)]
            check(not wrong, "callgrind_annotate: and our functions' costs", wrong)


def main():
    check_folded()
    for kind in ("exact", "server", "diff", "same", "deep", "empty", "2000"):
        check_json(kind)
    check_json("exact", "line")
    frames = check_json("exact", "line")["frames"]
    check({(f["name"], f.get("file"), f.get("line")) for f in frames} >= {("f", "a.c", 10), ("f", "a.c", 12), ("g", "b.c", 20)},
          "json: files and lines", frames)
    rows = json.loads(write("exact", "json"))["rows"]
    check({"value": 50, "low": 50, "high": 50, "thread": "t2 \"x\"", "block_size": 50, "stack": [1, 1, 1, 3]} in rows,
          "json: a row has thread, block size and the stack leaf first", rows)
    json.loads(write("hostile", "json"))
    for kind in ("exact", "server", "diff", "hostile", "empty"):
        check_csv(kind)
    for kind in ("exact", "server", "diff", "same", "deep", "empty"):
        check_speedscope(kind)
    json.loads(write("hostile", "speedscope"))
    for kind in ("exact", "server", "diff", "2000"):
        check_callgrind(kind)
    check_callgrind_lines()
    check_annotate()
    print("1..%d" % count)
    return 1 if failures else 0


sys.exit(main())
