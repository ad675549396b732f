"""What the query API says against plain arithmetic over the profiles that were put in: api_test.py API_DRIVER SOURCE_FOLDER

Three targets over half an hour: one restarts in the middle with another build, one is there all the time and leaks, one comes later and goes
earlier. Every number of every route is computed here once more.
"""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

SOURCE = sys.argv[2]
sys.path[:0] = [os.path.join(SOURCE, "tests", "truth"), os.path.join(SOURCE, "tests", "report")]
import page_block
import pprof
import tap
from driver import Driver

T0 = 1790000000000 // 3600000 * 3600000
STEP = 10000
N = 180
AO, AB, IO, IB = range(4)
NAMES = {16 * i: "function_%d" % i for i in range(1, 40)}


class Process:
    def __init__(self, labels, identity, build_id, first, last, seed):
        self.labels, self.identity, self.build_id = labels, identity, build_id
        self.first, self.last, self.random = first, last, random.Random(seed)
        self.profiles = {}          # time: {stack: values}
        self.id = None

    def make(self, leak):
        stacks = [tuple(16 * self.random.randint(1, 39) for _ in range(self.random.randint(1, 6))) for _ in range(25)]
        allocated = {s: [0, 0] for s in stacks}
        for k in range(self.first, self.last):
            now = {}
            for s in set(stacks):
                if self.random.random() < 0.1:
                    continue
                n = self.random.randint(1, 1000)
                allocated[s][0] += n
                allocated[s][1] += n * 64
                now[s] = (*allocated[s], n, n * self.random.randint(16, 4096))
            if leak:
                size = 20000000 + (k - self.first) * leak
                now[(0x270, 0x260)] = (size // 100, size, size // 100, size)
            self.profiles[T0 + k * STEP] = now

    def at(self, time):
        times = [t for t in self.profiles if t <= time]
        return max(times) if times else None

    def within(self, start, end):
        return [t for t in sorted(self.profiles) if start <= t < end]


def fill(driver):
    a, b, c = ({"job": "web", "instance": "a"}, {"job": "web", "instance": "b"}, {"job": "db", "instance": "c"})
    processes = [Process(a, 11, "aa" * 10, 0, N // 2, 1), Process(a, 12, "bb" * 10, N // 2, N, 2), Process(b, 13, "aa" * 10, 0, N, 3),
                 Process(c, 14, "cc" * 10, 30, 120, 4)]
    for i, p in enumerate(processes):
        p.make(170000 if i == 2 else 0)
        p.id = driver.series(p.labels, p.identity, T0 + p.first * STEP, p.build_id)
    for k in range(N):
        for p in processes:
            t = T0 + k * STEP
            if t in p.profiles:
                driver.profile(p.id, t, pprof.encode(p.profiles[t], build_id=p.build_id, time_ms=t, names=NAMES))
                driver.command("gauges", p.id, t, "rss=%d" % rss(p, t))
    return processes


def rss(p, t):
    return sum(v[IB] for v in p.profiles[t].values()) + 1000000 * p.id


def named(stacks):
    """As answers have them: by names, columns added up where names are the same."""
    sums = {}
    for stack, values in stacks.items():
        key = tuple(NAMES[o] for o in stack)
        sums[key] = tuple(x + y for x, y in zip(sums.get(key, (0, 0, 0, 0)), values))
    return sums


def added(parts):
    sums = {}
    for part in parts:
        for stack, values in part.items():
            sums[stack] = tuple(x + y for x, y in zip(sums.get(stack, (0, 0, 0, 0)), values))
    return {s: v for s, v in sums.items() if any(v)}


def close(got, wanted, slack):
    """Of two {stack: values}; slack: how far numbers may be off, as each of the parts was rounded."""
    return all(abs(x - y) <= slack for s in set(got) | set(wanted)
               for x, y in zip(got.get(s, (0, 0, 0, 0)), wanted.get(s, (0, 0, 0, 0))))


def differing(got, wanted):
    return [(s, got.get(s), wanted.get(s)) for s in set(got) | set(wanted) if got.get(s) != wanted.get(s)][:3]


def read(answer):
    if answer.status != 200:
        raise AssertionError("%d %s" % (answer.status, answer.body[:300]))
    return pprof.Profile(answer.body)


# --- what a range comes to ---

def over_range(p, start, end, mode):
    """In use by mode, allocated as increase; of one process."""
    times = p.within(start, end)
    if not times:
        return {}
    sums = {}
    before = [t for t in p.profiles if t < start]
    base = p.profiles[max(before)] if before else {}
    last = p.profiles[times[-1]]
    for stack in {s for t in times for s in p.profiles[t]} | set(last):
        values = [p.profiles[t].get(stack, (0, 0, 0, 0)) for t in times]
        pick = {"last": lambda c: values[-1][c], "max": lambda c: max(v[c] for v in values),
                "average": lambda c: sum(v[c] for v in values) / len(values)}[mode]
        sums[stack] = (None, None, pick(IO), pick(IB))
    return {s: (0, 0, v[IO], v[IB]) for s, v in sums.items() if v[IO] or v[IB]}


def in_use(profile):
    return {s: (0, 0, v[IO], v[IB]) for s, v in profile.sums.items() if v[IO] or v[IB]}


def check_moments(driver, processes):
    a1, a2, b, c = processes
    t = T0 + 40 * STEP + 3000
    got = read(driver.get("profile", at=t))
    wanted = named(added([p.profiles[p.at(t)] for p in (a1, b, c)]))
    tap.check(got.sums == wanted, "profile: at a moment, three processes", differing(got.sums, wanted))
    got = read(driver.get("profile", at=t, match='{job="web",instance!="b"}'))
    tap.check(got.sums == named(a1.profiles[a1.at(t)]), "profile: one process as it was received, counters too")
    # Right after the restart both of target a's processes are recent, and only the new one is there.
    t = T0 + (N // 2) * STEP + 1000
    got = read(driver.get("profile", at=t, match='{instance="a"}'))
    tap.check(got.sums == named(a2.profiles[a2.at(t)]), "profile: after a restart the process before isn't added")
    got = read(driver.get("profile", at=T0 + 150 * STEP, match=['{job="db"}', '{instance="b"}']))
    tap.check(got.sums == named(b.profiles[T0 + 150 * STEP]), "profile: who has gone isn't there, and matches are a union")
    answer = driver.get("profile", at=T0 + 150 * STEP, match='{job="db"}')
    tap.check(answer.status == 404 and "at=%d" % (T0 + 119 * STEP) in answer.error(), "profile: when there was one is told", answer.body)
    got = read(driver.get("profile", at=T0 + 50 * STEP, series=b.id))
    tap.check(got.sums == named(b.profiles[T0 + 50 * STEP]), "profile: by the series' number")
    got = read(driver.get("profile", at=T0 + 50 * STEP, series=b.id, symbolize=0))
    tap.check(got.sums == {s: v for s, v in b.profiles[T0 + 50 * STEP].items()}, "profile: symbolize=0 has no names")
    tap.check(got.build_ids[0] == b.build_id, "profile: build ids stay")


def check_ranges(driver, processes):
    a1, a2, b, c = processes
    whole = {"from": T0, "to": T0 + N * STEP}
    start, end = T0 + 60 * STEP, T0 + 80 * STEP
    for mode in ("last", "max", "average"):
        got = in_use(read(driver.request("GET", "profile", {"from": start, "to": end, "mode": mode})))
        wanted = named(added([over_range(p, start, end, mode) for p in (a1, b, c)]))
        tap.check(close(got, wanted, 8), "profile: %s of a range, three processes" % mode, differing(got, wanted))
        # Over the restart: half of the time one, half of the time the other; the larger of both; the later one.
        got = in_use(read(driver.request("GET", "profile", dict(whole, mode=mode, match='{instance="a"}'))))
        x, y = (named(over_range(p, T0, T0 + N * STEP, mode)) for p in (a1, a2))
        if mode == "last":
            wanted = y
        elif mode == "average":
            wanted = {s: tuple((u + v) / 2 for u, v in zip(x.get(s, (0,) * 4), y.get(s, (0,) * 4))) for s in set(x) | set(y)}
        else:
            # Of stacks of addresses, before names make some of them one.
            x, y = (over_range(p, T0, T0 + N * STEP, mode) for p in (a1, a2))
            wanted = named({s: tuple(max(u, v) for u, v in zip(x.get(s, (0,) * 4), y.get(s, (0,) * 4))) for s in set(x) | set(y)})
        tap.check(close(got, wanted, 60 if mode == "average" else 8), "profile: %s over a restart adds nothing up" % mode, differing(got, wanted))
    got = read(driver.request("GET", "profile", {"from": start, "to": end, "match": '{instance="b"}'}))
    wanted = {}
    for stack in b.profiles[end - STEP]:
        before, last = b.profiles[start - STEP].get(stack), b.profiles[end - STEP][stack]
        if stack == (0x270, 0x260):
            wanted[tuple(NAMES[o] for o in stack)] = last[AB] - before[AB]
    tap.check(all(abs(got.sums[s][AB] - v) <= 170000 for s, v in wanted.items()) and wanted, "profile: of a range, allocated is the increase",
              [(got.sums.get(s), v) for s, v in wanted.items()])


def check_differences(driver, processes):
    a1, a2, b, c = processes
    early, late = T0 + 20 * STEP, T0 + 160 * STEP
    got = read(driver.get("profile", match='{instance="b"}', at=late, base_at=early))
    now, base = named(b.profiles[late]), named(b.profiles[early])
    change = lambda s: now.get(s, (0,) * 4)[IB] - base.get(s, (0,) * 4)[IB]
    merged = {s: got.sums.get(s, (0,) * 4)[IB] + got.bases.get(s, (0,) * 4)[IB] for s in set(got.sums) | set(got.bases)}
    tap.check({s: v for s, v in merged.items() if v} == {s: change(s) for s in set(now) | set(base) if change(s)},
              "profile: difference of two moments", list(merged.items())[:2])
    d = driver.get("profile", match='{instance="b"}', at=late, base_at=early, format="top", n=0).json()
    tap.check(d["diff"] and d["total"]["change"] == sum(change(s) for s in set(now) | set(base)), "profile: difference as a report", d["total"])
    tap.check(d["same_process"] is True, "profile: both moments are known to be of one process")
    d = driver.get("profile", match='{instance="b"}', base_match='{instance="a"}', at=early, format="top").json()
    total = lambda p, t: sum(v[IB] for v in p.profiles[t].values())
    tap.check((d["total"]["new"], d["total"]["base"]) == (total(b, early), total(a1, early)), "profile: difference of two label sets", d["total"])
    answer = driver.request("GET", "profile", {"match": '{instance="b"}', "from": T0 + 160 * STEP, "to": T0 + 170 * STEP, "base_from": T0,
                                               "base_to": T0 + 10 * STEP, "format": "top"})
    mean = lambda x, y: sum(total(b, T0 + k * STEP) for k in range(x, y)) / (y - x)
    d = answer.json()["total"]
    tap.check(abs(d["new"] - mean(160, 170)) < 30 and abs(d["base"] - mean(0, 10)) < 30, "profile: difference of two ranges", (d, mean(160, 170)))


def check_joining(driver):
    """What both moments have cancels, whichever other frames one of them has: its error doesn't count."""
    series = driver.series({"job": "joined"}, 77, T0, "dd" * 10)
    big = (100000, 500000000, 100000, 500000000)
    driver.profile(series, T0, pprof.encode({(16, 32, 48): big}, build_id="dd" * 10, size=1 << 24))
    driver.profile(series, T0 + STEP, pprof.encode({(16, 32, 48): big, (0x800000, 32): (1, 2, 3, 1000)}, build_id="dd" * 10, size=1 << 24))
    for at, base in ((T0 + STEP, T0), (T0, T0 + STEP)):
        d = driver.get("profile", series=series, at=at, base_at=base, format="top").json()
        tap.check(d["total"]["high"] - d["total"]["low"] < 8 * 524288, "profile: blocks in both moments cancel, %+d s" % ((at - base) // 1000), d["total"])


def check_formats(driver, processes, folder):
    b = processes[2]
    t = T0 + 100 * STEP
    wanted = sum(v[IB] for v in b.profiles[t].values())
    get = lambda f, **more: driver.get("profile", at=t, series=b.id, format=f, **more)
    tap.check(sum(int(line.rsplit(" ", 1)[1]) for line in get("folded").body.decode().splitlines()) == wanted, "profile: folded")
    tap.check(get("top", n=0).json()["total"]["value"] == wanted, "profile: top")
    tap.check(sum(r["value"] for r in get("json").json()["rows"]) == wanted, "profile: json")
    for f, begin in (("csv", b""), ("text", b"File:"), ("speedscope", b"{"), ("callgrind", b"#"), ("svg", b"<"), ("dot", b"digraph")):
        answer = get(f)
        tap.check(answer.status == 200 and answer.body.startswith(begin) and b"function_" in answer.body, "profile: " + f, answer.body[:80])
    tap.check(get("top", metric="inuse_objects", by="line").json()["metric"] == "inuse_objects", "profile: metric and granularity")
    path = os.path.join(folder, "go.pb.gz")
    if subprocess.call(["sh", "-c", "command -v go >/dev/null"]) == 0:
        url = driver.url + "/api/v1/profile?series=%d&at=%d" % (b.id, t)
        r = subprocess.run(["go", "tool", "pprof", "-top", "-unit=B", "-sample_index=inuse_space", url], capture_output=True, text=True,
                           env=dict(os.environ, PPROF_TMPDIR=folder), timeout=100)
        tap.check(r.returncode == 0 and "%dB total" % wanted in r.stdout, "go tool pprof reads it from the address", r.stdout[:400] + r.stderr[:400])
    else:
        tap.skip("go tool pprof reads it from the address", "go is not installed")
    url = driver.url + "/api/v1/profile?match=%7Binstance%3D%22b%22%7D&at=" + str(t)
    r = subprocess.run([os.environ["HEAPGAUGE"], "top", "--json", url], capture_output=True, text=True, timeout=60)
    tap.check(r.returncode == 0 and json.loads(r.stdout)["total"]["value"] == wanted, "heapgauge top reads it from the address", r.stderr)


# --- over time ---

def there(p, start, end):
    """The part of start .. end in which the process was there, as its scrapes say."""
    first, last = T0 + p.first * STEP, T0 + p.last * STEP
    return max(0, min(end, last) - max(start, first)) / (end - start)


def check_values(driver, processes, answer, numbers, what):
    """answer: of a chart in steps of a minute; numbers(process, time): what was put in."""
    by_id = {s["id"]: s for s in answer["series"]}
    wrong = []
    for i, t in enumerate(answer["times"]):
        end = t + answer["step"]
        mean = most = last = 0
        any_there = False
        places = {}
        for p in processes:
            values = [numbers(p, x) for x in p.within(t, end)]
            one = by_id[p.id]
            if not values:
                wrong += [(p.id, i)] if one["mean"][i] is not None else []
                continue
            any_there = True
            w = (sum(values) / len(values), max(values), values[-1])
            got = (one["mean"][i], one["max"][i], one["last"][i])
            if abs(got[0] - w[0]) > 1 or got[1:] != w[1:]:
                wrong.append((p.id, i, got, w))
            mean += w[0] * there(p, t, end)
            place = places.setdefault(p.labels["instance"], [0, 0])
            place[0] = max(place[0], w[1])
            place[1] = w[2] if p.last * STEP + T0 >= end else 0
        total = answer["total"]
        if not any_there:
            wrong += [i] if total["mean"][i] is not None else []
            continue
        most, last = sum(x for x, _ in places.values()), sum(x for _, x in places.values())
        # At a place where somebody was nearly all of the bucket he counts whole.
        if abs(total["mean"][i] - mean) > 0.34 * mean or (total["max"][i], total["last"][i]) != (most, last):
            wrong.append((i, total["mean"][i], mean, total["max"][i], most, total["last"][i], last))
    tap.check(not wrong, what, wrong[:3])


def chart(d, of=None):
    one = of or d
    return {"times": d["times_ms"], "step": d["step_ms"], "series": one["series"], "total": one["total"]}


def check_charts(driver, processes):
    a1, a2, b, c = processes
    size = lambda p, t: sum(v[IB] for v in p.profiles[t].values())
    d = driver.request("GET", "totals", {"from": T0, "to": T0 + N * STEP, "step": "1m"}).json()
    tap.check(d["times_ms"] == [T0 + k * 60000 for k in range(30)] and d["kind"] == "gauge" and d["series_total"] == 4, "totals: the grid")
    check_values(driver, processes, chart(d), size, "totals: every number, and the total over a restart")
    # In the middle of a bucket the restarted target is there once, not twice.
    d = driver.request("GET", "totals", {"from": T0, "to": T0 + N * STEP, "step": 300, "match": '{instance="a"}'}).json()
    for i, t in enumerate(d["times_ms"]):
        values = [size(p, x) for p in (a1, a2) for x in p.within(t, t + 300000)]
        tap.check(abs(d["total"]["mean"][i] - sum(values) / len(values)) < 3 and d["total"]["max"][i] == max(values),
                  "totals: bucket %d of a restarting target" % i, (d["total"]["mean"][i], sum(values) / len(values)))
    d = driver.request("GET", "totals", {"from": T0, "to": T0 + N * STEP, "step": 1800, "match": '{instance="a"}'}).json()
    values = [size(p, x) for p in (a1, a2) for x in p.profiles]
    tap.check(abs(d["total"]["mean"][0] - sum(values) / len(values)) < 3 and d["total"]["max"] == [max(values)] and
              d["total"]["last"] == [size(a2, max(a2.profiles))], "totals: a restart inside of a bucket adds nothing up", d["total"])
    d = driver.request("GET", "totals", {"from": T0, "to": T0 + N * STEP, "step": 60, "metric": "alloc_space"}).json()
    by_id = {s["id"]: s for s in d["series"]}
    counted = lambda p, t: sum(v[AB] for v in p.profiles[t].values())
    wrong = []
    for p in processes:
        lasts = {t: counted(p, max(p.within(t, t + 60000))) for t in d["times_ms"] if p.within(t, t + 60000)}
        for i, t in enumerate(d["times_ms"]):
            rate = by_id[p.id]["rate"][i]
            more = lasts[t] - lasts[t - 60000] if t in lasts and t - 60000 in lasts else None
            if more is None or more < 0:
                wrong += [(p.id, i, rate)] if rate is not None else []
            elif rate is None or abs(rate - more / 60) > 1e-4 * abs(rate):
                wrong.append((p.id, i, rate, more / 60))
    tap.check(d["kind"] == "counter" and "mean" not in d["total"] and not wrong, "totals: counters are rates", wrong[:3])
    d = driver.request("GET", "totals", {"from": T0, "to": T0 + N * STEP, "limit": 1}).json()
    tap.check(len(d["series"]) == 1 and d["series"][0]["id"] == b.id and d["series_total"] == 4, "totals: the largest series first")
    tap.check(d["step_ms"] == STEP, "totals: no step finer than the scrapes", d["step_ms"])
    d = driver.request("GET", "gauges", {"from": T0, "to": T0 + N * STEP, "step": "60s", "name": "rss"}).json()
    check_values(driver, processes, chart(d, d["gauges"][0]), rss, "gauges: every number")
    tap.check([g["name"] for g in d["gauges"]] == ["rss"], "gauges: names")


def check_lists(driver, processes):
    a1, a2, b, c = processes
    get = lambda path, **p: driver.get(path, **p).json()
    tap.check(get("labels") == {"labels": ["instance", "job"]}, "labels")
    tap.check(get("label_values", name="instance")["values"] == [{"value": "a", "series": 2}, {"value": "b", "series": 1}, {"value": "c", "series": 1}],
              "label values")
    s = {x["id"]: x for x in get("series")["series"]}
    wanted = {p.id: (p.labels, min(p.profiles), max(p.profiles), p.build_id, hex(p.identity), len(p.profiles)) for p in processes}
    have = {i: (x["labels"], x["first_ms"], x["last_ms"], x["build_id"], x["process"], x["profiles"]) for i, x in s.items()}
    tap.check(have == wanted, "series", have)
    tap.check([x["id"] for x in get("series", from_=T0 + 125 * STEP)["series"]] == [b.id, a2.id], "series: only those of the range")
    events = get("builds")["events"]
    tap.check([(e["kind"], e["series"], e["before"]) for e in events if e["time_ms"] > T0] == [("start", c.id, None), ("deploy", a2.id, a1.id)],
              "builds: a deploy where the build id changes", events)
    tap.check([e["kind"] for e in get("builds", from_=T0 + 60 * STEP)["events"]] == ["deploy"], "builds: what was before the range is known")
    times = get("moments", series=a1.id)["times_ms"]
    tap.check(times == sorted(a1.profiles), "moments: all of them")
    times = get("moments", series=b.id, limit=7)["times_ms"]
    tap.check(len(times) == 7 and times[0] == T0 and times[-1] == max(b.profiles) and set(times) <= set(b.profiles), "moments: some, evenly", times)


SELECTORS = [('{job="web"}', (0, 1, 2)), ('{job=~"w.*"}', (0, 1, 2)), ('{job!="web"}', (3,)), ('{instance!~"a|b"}', (3,)),
             ("{ job = 'web' , instance = `b` , }", (2,)), ('{job="we\\u0062"}', (0, 1, 2)), ('{zone=""}', (0, 1, 2, 3)), ("{}", (0, 1, 2, 3)),
             ('{zone!=""}', ()), ('{job=~"we"}', ()), ('{instance=~"[ab]",instance!="a"}', (2,)), ('{job="w\\145b"}', (0, 1, 2)), ('{job=~"(?:web|db)",instance=~`[^\\d]`}', (0, 1, 2, 3)), ('{instance=~`\\d`}', ())]
BAD_SELECTORS = ["job", "{", "{job", '{job="', '{job="a"', '{job="a"}x', '{job=="a"}', '{1job="a"}', '{job="a" job="b"}', '{job=~"("}', '{job=~"a{99999}"}',
                 '{job=~"(a{1,200}){1,200}"}', '{job=~"(a)\\\\1"}', '{job="\\q"}', '{job="\\ud800"}', "{" + "a='b'," * 40 + "}", "{," + "}", '{job="a",,}',
                 "{job=\"" + "x" * 5000 + "\"}"]


def check_selectors(driver, processes):
    for text, wanted in SELECTORS:
        s = driver.get("series", match=text)
        have = {x["id"] for x in s.json().get("series", [])}
        tap.check(s.status == 200 and have == {processes[i].id for i in wanted}, "selector %s" % text, s.body[:200])
    for text in BAD_SELECTORS:
        s = driver.get("series", match=text)
        tap.check(s.status == 400 and s.error(), "bad selector %.40s" % text, s.body[:200])


def check_growth(driver, processes):
    a1, a2, b, c = processes
    d = driver.request("GET", "leaks", {"from": T0, "to": T0 + N * STEP, "match": '{instance="b"}', "limit": "1G", "fail_above": "10M/h"}).json()
    first = d["rows"][0]
    rate = 170000 * 360
    tap.check([f["name"] for f in first["frames"]] == ["function_39", "function_38"], "leaks: the planted one ranks first", first)
    tap.check(first["steady"] and first["shape"] == "steady" and first["rate"]["low"] <= rate <= first["rate"]["high"], "leaks: its interval holds the true rate",
              first["rate"])
    tap.check(d["gate"]["tripped"] and first["exceeds"] and first["to_limit"]["value"] > 0, "leaks: gate and limit")
    times = [T0 + round(x * 1000) for x in d["times"]]
    tap.check(len(times) == 24 and all(t in b.profiles for t in times), "leaks: moments are whole profiles", times)
    tap.check(first["values"] == [b.profiles[t][(0x270, 0x260)][IB] for t in times], "leaks: values are those at the moments, nothing is averaged")
    d = driver.request("GET", "leaks", {"from": T0, "to": T0 + N * STEP, "n": 0, "every": 1}).json()
    tap.check(d["total"]["values"] == [sum(v[IB] for v in b.profiles[T0 + round(x * 1000)].values()) for x in d["times"]] and
              any("left out" in n for n in d["notes"]), "leaks: who was not there all the time is left out, and that is said", d["notes"])
    d = driver.request("GET", "leaks", {"from": T0 + 40 * STEP, "to": T0 + 80 * STEP, "moments": 10}).json()
    wanted = [sum(v[IB] for p in (a1, b, c) for v in p.profiles[T0 + 40 * STEP + round(x * 1000)].values()) for x in d["times"]]
    tap.check(d["total"]["values"] == wanted, "leaks: several processes, moment by moment", (d["total"]["values"], wanted))
    tap.check([s["name"] for s in d["sources"]] == ["3 processes"] * 10, "leaks: as if they were one", d["sources"])
    block = page_block.Block(driver.request("GET", "page", {"view": "growth", "from": T0 + 40 * STEP, "to": T0 + 80 * STEP, "moments": 10}).body)
    tap.check(block_totals(block) == wanted and len(block.header["sources"]) == 10, "page: the same", block.header["sources"])
    answer = driver.request("GET", "leaks", {"from": T0, "to": T0 + STEP, "series": b.id})
    tap.check(answer.status == 404, "leaks: one profile is none", answer.body)
    text = driver.request("GET", "leaks", {"from": T0, "to": T0 + N * STEP, "series": b.id, "format": "markdown"})
    tap.check(text.status == 200 and b"|" in text.body, "leaks: markdown")


def check_rates(driver, folder):
    """Profiles of another sampling rate are another series for the command, too."""
    heapgauge = os.environ["HEAPGAUGE"]
    series = driver.series({"job": "rates", "instance": "r"}, 99)
    for k in range(12):
        driver.profile(series, T0 + k * STEP, pprof.encode({(16, 32): (0, 0, 10 + k, 1000 * (10 + k))}, build_id="ee" * 10, rate=524288 if k < 4 else 65536))
    r = subprocess.run([heapgauge, "leaks", "--json", "--all", "--symbols", "none", "store:%s/store?job=rates" % folder], capture_output=True, text=True, check=False)
    d = json.loads(r.stdout) if r.returncode == 0 else {}
    tap.check(d and len(d["sources"]) == 8 and d["total"]["values"] == [1000 * (10 + k) for k in range(4, 12)] and
              any("of 12 profiles, 5 to 12" in n for n in d["notes"]), "leaks of a store: another rate begins another series", r.stdout[:500] + r.stderr)


def block_totals(block):
    i = block.header["metric"]["inuse_space"]
    sums = {}
    for r in block.rows:
        snapshot = block.header["sources"][r.source]["snapshot"]
        sums[snapshot] = sums.get(snapshot, 0) + r.values[i]
    return [sums.get(k, 0) for k in range(len(block.header["snapshots"]))]


def check_pages(driver, processes):
    a1, a2, b, c = processes
    total = lambda p, t: sum(v[IB] for v in p.profiles[t].values())
    early, late = T0 + 20 * STEP, T0 + 160 * STEP
    block = page_block.Block(driver.get("page", series=b.id, at=late, all=1).body)
    tap.check(block_totals(block) == [total(b, late)] and block.header["base"] is None, "page: a moment")
    url = block.header["command"][-1]
    tap.check(url.startswith(driver.url + "/api/v1/profile?") and str(late) in url, "page: the command that gives the same", block.header["command"])
    block = page_block.Block(driver.get("page", series=b.id, at=late, base_at=early).body)
    tap.check(block_totals(block) == [total(b, early), total(b, late)] and block.header["base"] == 0, "page: a difference, the base first")
    block = page_block.Block(driver.request("GET", "page", {"view": "growth", "from": T0, "to": T0 + N * STEP, "series": b.id, "moments": 12}).body)
    times = [s["time_ms"] for s in block.header["snapshots"]]
    tap.check(len(times) == 12 and block_totals(block) == [total(b, t) for t in times], "page: moments of a range, none added to another", times)
    pruned = page_block.Block(driver.request("GET", "page", {"from": T0, "to": T0 + N * STEP, "max_bytes": 20000, "mode": "max"}).body)
    tap.check(pruned.header["rest"] is None or pruned.header["rest"]["rows"] > 0, "page: pruned")
    answer = driver.request("GET", "page", {"view": "growth", "from": T0, "to": T0 + N * STEP, "mode": "max"})
    tap.check(answer.status == 400, "page: growth has no mode", answer.body)


BAD = [("series", "from=x"), ("series", "from=2026-13-01T00:00:00Z"), ("series", "from=now&from=now"), ("series", "to=0"), ("series", "nonsense=1"),
       ("series", "series=-1"), ("totals", "metric=rss"), ("totals", "step=0"), ("totals", "step=-5"), ("totals", "from=0&to=now&step=1s"),
       ("totals", "limit=100000"), ("profile", "at=1&from=1"), ("profile", "mode=sum"), ("profile", "format=xls"), ("profile", "base_at=1&base_from=1"),
       ("profile", "at=-5"), ("profile", "id=a%20b"), ("profile", "at=%00"), ("page", "view=table"), ("page", "max_bytes=5"), ("leaks", "moments=1"),
       ("leaks", "fail_above=1M"), ("leaks", "limit=much"), ("leaks", "metric=alloc_space"), ("moments", ""), ("label_values", ""), ("symbols/missing", ""),
       ("symbols/missing", "build_id=xyz")]


def check_bad(driver):
    for path, query in BAD:
        answer = driver.request("GET", path + ("?" + query if query else ""))
        tap.check(answer.status == 400 and answer.error() and answer.headers["Content-Type"] == "application/json", "refused: %s?%s" % (path, query),
                  (answer.status, answer.body[:200]))
    for path in ("profile", "page", "leaks"):
        answer = driver.get(path, match='{job="none"}')
        tap.check(answer.status == 404 and answer.error(), "404: %s of nobody" % path, answer.body)


def check_documented(driver):
    """docs/openapi.yaml and the routes have the same parameters."""
    try:
        import yaml
    except ImportError:
        tap.skip("the documented parameters are those there are", "python3-yaml is not installed")
        return
    with open(os.path.join(SOURCE, "docs", "openapi.yaml")) as f:
        d = yaml.safe_load(f)
    with open(os.path.join(SOURCE, "src", "record", "query_routes.c")) as f:
        code = f.read()
    macros = {m[0]: m[1] for m in re.findall(r"#define (\w+) (.*)", code)}
    wrong = []
    routes = re.findall(r'\{ "/api/v1(/[a-z/_]+)",\s+(.*?query_\w+)', code, re.S)
    for path, rest in routes:
        text = rest
        for _ in range(4):
            for name in ("SNAPSHOT", "RANGE", "SELECTION"):
                text = re.sub(r"\b%s\b" % name, lambda _: macros[name], text)
        have = set(re.findall(r'"(\w+)"', text)) | {"id"}
        listed = d["paths"].get(path, {}).get("get", {}).get("parameters", [])
        names = {(d["components"]["parameters"][p["$ref"].rsplit("/", 1)[1]] if "$ref" in p else p)["name"] for p in listed} | {"id"}
        if have != names:
            wrong.append((path, have ^ names))
    tap.check(len(routes) == 13 and not wrong, "the documented parameters are those there are", (len(routes), wrong))


def main():
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(sys.argv[1], folder, chunk=20)
        processes = fill(driver)
        for sealed in (False, True):
            if sealed:
                driver.command("maintain", T0 + N * STEP)
            tap.note("chunks are sealed" if sealed else "nothing is sealed yet")
            check_moments(driver, processes)
            check_ranges(driver, processes)
            check_differences(driver, processes)
            check_charts(driver, processes)
            check_growth(driver, processes)
        check_formats(driver, processes, folder)
        check_lists(driver, processes)
        check_selectors(driver, processes)
        check_pages(driver, processes)
        check_rates(driver, folder)
        check_bad(driver)
        check_documented(driver)
        check_joining(driver)
        tap.check(driver.end() == 0, "the driver ends well")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
