#!/usr/bin/env python3
"""
kills_test.py HEAPGAUGE STORE_CLIENT: kill -9 of a recorder while it takes pushes and scrapes, folds, drops what is too old and reads its
configuration again. Whatever it acknowledged (204; a scrape that /api/v1/targets shows) is there afterwards, with its total: by itself as
long as raw profiles are kept, then in exactly one bucket whose number, mean, max and last are those of what was acknowledged.

Rounds take turns: in one, profiles of up to four days ago are pushed, each series' in their order; in the next only ones of now, and
meanwhile those of the round before are folded and dropped. In every fourth store, which may have no more than a megabyte, all are of now.

HEAPGAUGE_KILLS says how many (default 6), HEAPGAUGE_SEED which.
"""
import bisect
import collections
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import pprof  # noqa: E402
import tap  # noqa: E402
from bad_targets import Recorder, Targets, dump  # noqa: E402

HEAPGAUGE, CLIENT = [os.path.abspath(a) for a in sys.argv[1:3]]
KILLS = int(os.environ.get("HEAPGAUGE_KILLS", "6"))
SEED = int(os.environ.get("HEAPGAUGE_SEED", time.time()))
STORE_KILLS = 40         # then a new store
HOUR = 3600000
DAY = 24 * HOUR
KEPT_RAW, KEPT = 3 * HOUR, 2 * DAY
BUCKETS = (HOUR // 12, HOUR, DAY)
SMALL = 1 << 20
chance = random.Random(SEED)
scratch = tempfile.mkdtemp(prefix="heapgauge-kills-")
targets = Targets()


def now_ms():
    return int(time.time() * 1000)


class Pusher(threading.Thread):
    """
    Pushes under labels of its own. at: "old": profiles from some hours ago on; "now": which say when they were taken; "unknown": which don't.
    sent: time, if it said one, total, and when it was sent. acknowledged: how many of these; one after them may have been on its way.
    """

    def __init__(self, recorder, name, at):
        super().__init__(daemon=True)
        self.r, self.name, self.at, self.sent, self.acknowledged, self.stop, self.refused = recorder, name, at, [], 0, False, []
        self.chance = random.Random(chance.random())
        # The first of a round is folded for certain.
        self.time_ms = now_ms() - self.chance.choice([30, 20] if name.startswith("old-0") else [100, 60, 50, 30, 10, 4]) * HOUR

    def next_time(self):
        if self.at == "old":
            return self.time_ms + self.chance.choice([self.chance.randrange(1, 1000), self.chance.randrange(1000, HOUR // 6)])
        return max(now_ms(), self.time_ms + 1)

    def run(self):
        while not self.stop:
            stacks = {(self.chance.randrange(4096), 16 * i): (0, 0, 1, self.chance.randrange(1, 1 << 30)) for i in range(self.chance.randrange(1, 9))}
            self.time_ms = self.next_time()
            if self.time_ms > now_ms() - 60000 and self.at == "old":
                return
            own = None if self.at == "unknown" else self.time_ms
            self.sent.append((own, sum(v[3] for v in stacks.values()), now_ms()))
            status, answer, _ = self.r.ask("/api/v1/push?job=kill&instance=" + self.name, pprof.encode(stacks, rate=1, time_ms=own or 0), "POST",
                                           timeout=10)
            if status == 0:
                return
            if status == 204:
                self.acknowledged += 1
                continue
            self.refused.append((status, answer, self.sent.pop()))
            if len(self.refused) > 3:
                return


class Watcher(threading.Thread):
    """What /api/v1/targets says is stored; and asks for other things meanwhile."""

    def __init__(self, recorder):
        super().__init__(daemon=True)
        self.r, self.seen, self.stop = recorder, set(), False
        self.others = itertools.cycle(["/metrics", "/api/v1/totals", "/api/v1/profile?mode=average", "/api/v1/series", "/api/v1/gauges",
                                       "/api/v1/leaks", "/-/ready"])

    def run(self):
        while not self.stop:
            try:
                for t in self.r.targets():
                    if t["health"] == "up" and t["last_ms"]:
                        self.seen.add((t["job"], t["labels"]["instance"], t["last_ms"]))
                self.r.ask(next(self.others), timeout=5)
            except (RuntimeError, ValueError):
                return
            time.sleep(0.03)


class Reloader(threading.Thread):
    """Changes the configuration and says so, again and again; some of them are wrong."""

    def __init__(self, recorder, path, limit):
        super().__init__(daemon=True)
        self.r, self.path, self.limit, self.n, self.stop = recorder, path, limit, 0, False

    def run(self):
        while not self.stop:
            time.sleep(0.04)
            self.n += 1
            with open(self.path + ".new", "w", encoding="utf-8") as f:
                f.write(config(self.limit, self.n % 3) if self.n % 7 else "nonsense: [")
            os.rename(self.path + ".new", self.path)
            if self.n % 5 == 0:
                self.r.ask("/-/reload", b"", "POST", timeout=5)
            else:
                self.r.process.send_signal(signal.SIGHUP)


def config(limit, others):
    jobs = "".join("  - {job_name: other%d, profile_path: /gz, static_configs: [{targets: ['%s']}]}\n" % (i, targets.address) for i in range(others))
    return """global: {scrape_interval: 100ms}
store:
  retention: {raw: 3h, 5m: 4h, 1h: 26h, 1d: 2d}
%sscrape_configs:
  - {job_name: grows, profile_path: /grows, static_configs: [{targets: ['%s']}]}
%s""" % ("  max_size: 1MB\n" if limit else "", targets.address, jobs)


# --- what ought to be there ---

class Expected:
    """Of one series: times and totals, in their order; since when nothing may be missing."""

    def __init__(self):
        self.times, self.totals = [], []

    def add(self, time_ms, total):
        self.times.append(time_ms)
        self.totals.append(total)

    def between(self, begin, end):
        return range(bisect.bisect_left(self.times, begin), bisect.bisect_left(self.times, end))


class Listed:
    def __init__(self):
        self.profiles, self.points = 0, []


def listed(store, label=None):
    """{labels: Listed}, and series numbers of the labels."""
    out = subprocess.run([CLIENT, "list", store] + ([label] if label else []), capture_output=True, text=True, timeout=120)
    if out.returncode:
        raise RuntimeError(out.stdout[-300:] + out.stderr)
    series, numbers = {}, {}
    for line in out.stdout.splitlines():
        words = line.split(" ", 3)
        if words[0] == "series":
            numbers[words[1]] = words[3]
            series[words[3]] = Listed()
            series[words[3]].profiles = int(words[2])
        else:
            t, n, rest = int(words[2]), *words[3].split(" ", 1)
            series[numbers[words[1]]].points.append((t, int(n)) + tuple(float(v) for v in rest.split()))
    return series, {labels: n for n, labels in numbers.items()}


def fits(expected, which, point):
    """Is the point made of exactly these?"""
    totals = [expected.totals[i] for i in which]
    return len(totals) == point[1] and all(abs(a - b) <= 1e-9 * b for a, b in
                                           zip(point[2:], (sum(totals) / len(totals), max(totals), totals[-1])))


def compare(labels, expected, found, now, limited):
    """Sentences about what is wrong. Each profile belongs to one point; what no point has must have been too old for the last tier."""
    wrong, covered, by_itself = [], [False] * len(expected.times), 0
    for point in found.points:
        for length in (1,) + BUCKETS:
            which = expected.between(point[0], point[0] + length)
            if point[0] % length == 0 and fits(expected, which, point):
                break
        else:
            wrong.append("%s: nothing like %s was acknowledged" % (labels, point))
            continue
        if any(covered[i] for i in which):
            wrong.append("%s: counted twice: %s" % (labels, point))
        for i in which:
            covered[i] = True
        by_itself += length == 1
    if found.profiles != len(expected.times) and found.points:
        wrong.append("%s: %d were stored, it says %d" % (labels, len(expected.times), found.profiles))
    # A bucket goes by when it began.
    missing = [t for t, there in zip(expected.times, covered) if not there]
    if not limited:
        wrong += ["%s: %d is lost (%.1f h old)" % (labels, t, (now - t) / HOUR) for t in missing if t > now - KEPT + DAY]
    elif missing and found.points and missing[-1] > found.points[0][0]:
        wrong.append("%s: %d is gone, and not as the oldest" % (labels, missing[-1]))
    return wrong, by_itself


class Run:
    """One store and all that was done to it."""

    def __init__(self, name, limited):
        self.limited, self.folder = limited, os.path.join(scratch, name)
        os.mkdir(self.folder)
        self.store = os.path.join(self.folder, "kill.db")
        self.known, self.scraped, self.served = {}, set(), 0
        self.counts = collections.Counter()
        self.wrong = []

    def round(self, n, old):
        r = Recorder(HEAPGAUGE, self.folder, "--store", self.store, config=config(self.limited, 0))
        if not r.url:
            self.wrong.append("it doesn't start: %s" % r.log()[-400:])
            return
        kinds = ["old", "old", "now"] if old else ["now", "now", "now" if self.limited else "unknown"]
        pushers = [Pusher(r, "%s-%d%s" % (kind, i, "-%d" % n if kind == "old" else ""), kind) for i, kind in enumerate(kinds)]
        watcher, reloader = Watcher(r), Reloader(r, os.path.join(self.folder, "heapgauge.yml"), self.limited)
        threads = pushers + [watcher, reloader]
        for t in threads:
            t.start()
        # It begins to fold and drop after a second.
        time.sleep(chance.uniform(0, 0.1) if n % 6 == 5 else chance.uniform(0.05, 1.5) if old else chance.uniform(1.0, 3.0))
        r.end(signal.SIGKILL)
        for t in threads:
            t.stop = True
        for t in threads:
            t.join(20)
        self.scraped |= watcher.seen
        self.counts["reloads"] += reloader.n
        for p in pushers:
            self.settle(p)

    def settle(self, p):
        """What was on its way is there or not: from now on that is known."""
        name = "instance=%s,job=kill" % p.name
        expected = self.known.setdefault(name, Expected())
        found = listed(self.store, "instance=" + p.name)[0].get(name, Listed())
        if p.refused:
            self.wrong.append("%s: refused: %s" % (name, p.refused[0]))
        came = found.profiles - len(expected.times)
        if found.points and not p.acknowledged <= came <= len(p.sent):
            self.wrong.append("%s: %d sent, %d acknowledged, %d there" % (name, len(p.sent), p.acknowledged, came))
        on_its_way = len(p.sent) > p.acknowledged and came > p.acknowledged
        self.counts["acknowledged"] += p.acknowledged
        self.counts["on their way"] += on_its_way
        for own_ms, total, at_ms in p.sent[:p.acknowledged + on_its_way]:
            if own_ms is None:
                # Of when it came: only the store knows; each has its place, not before it was sent.
                k = len(expected.times)
                own_ms = found.points[k][0] if k < len(found.points) else 0
                if own_ms < at_ms - 5:
                    self.wrong.append("%s: profile %d is of %d, was sent at %d" % (name, k, own_ms, at_ms))
            expected.add(own_ms, total)
        self.wrong += compare(name, expected, found, now_ms(), self.limited)[0]

    def verify(self):
        got = subprocess.run([HEAPGAUGE, "store", "check", self.store], capture_output=True, text=True, timeout=300)
        if got.returncode:
            self.wrong.append("store check: " + (got.stdout + got.stderr)[-600:])
        series, numbers = listed(self.store)
        now, asked = now_ms(), {}
        folded = whole = known = 0
        for name, expected in self.known.items():
            found = series.get(name, Listed())
            wrong, by_itself = compare(name, expected, found, now, self.limited)
            self.wrong += wrong
            whole += by_itself
            known += len(expected.times)
            folded += sum(p[1] for p in found.points) - by_itself
            if name in numbers and not self.limited:
                asked.update({(numbers[name], t): v for t, v in zip(expected.times, expected.totals) if t > now - KEPT_RAW + 1000})
        self.counts.update({"by themselves": whole - self.counts["by themselves"], "in buckets": folded - self.counts["in buckets"],
                            "dropped": known - whole - folded - self.counts["dropped"]})
        self.read(asked)
        self.verify_scrapes(series)

    def read(self, asked):
        """All of the time in which raw profiles are kept, each as it was."""
        got = subprocess.run([CLIENT, "read", self.store], input="".join("%s %d\n" % a for a in asked), capture_output=True, text=True, timeout=300)
        there = {}
        for line in got.stdout.splitlines():
            words = line.split()
            if words[0] == "profile":
                there[words[1], int(words[2])] = float(words[3])
        lost = [(a, v, there.get(a)) for a, v in asked.items() if there.get(a) != v]
        if lost or got.returncode:
            self.wrong.append("%d profiles can't be read as they were, such as %s; %s" % (len(lost), lost[:2], got.stdout[-200:] if got.returncode else ""))

    def verify_scrapes(self, series):
        """The total is one that the target told then."""
        points = {}
        for name, found in series.items():
            labels = dict(pair.split("=", 1) for pair in name.split(","))
            if labels["job"] != "kill":
                points.setdefault((labels["job"], labels["instance"]), {}).update({p[0]: p for p in found.points if p[1] == 1})
        oldest = {key: min(p) for key, p in points.items() if p}
        grown = targets.state.get("grown", [])
        at = [g[0] * 1000 for g in grown]
        for job, instance, t in self.scraped:
            point = points.get((job, instance), {}).get(t)
            if not point:
                if not self.limited or t > oldest.get((job, instance), 0):
                    self.wrong.append("the scrape of %s at %d is lost" % (job, t))
            elif job == "grows":
                told = {g[1] * 1024 for g in grown[bisect.bisect_left(at, t - 20):bisect.bisect_left(at, t + 15000)]}
                if point[4] not in told:
                    self.wrong.append("the scrape of %s at %d has %g bytes; the target told %s" % (job, t, point[4], sorted(told)[:9]))
        self.counts["scrapes seen"] = len(self.scraped)

    def serves(self):
        """After all of it a recorder goes on with it."""
        r = Recorder(HEAPGAUGE, self.folder, "--store", self.store, config=config(self.limited, 0))
        if not r.url:
            return False
        status = r.ask("/api/v1/push?job=after&instance=kill", dump(), "POST")[0]
        good = status == 204 and sum(s["profiles"] for s in r.series()) > 0
        tidy = self.limited or r.wait(self.is_tidy, 60)
        return r.end() == 0 and good and tidy

    def is_tidy(self):
        """No profile is there by itself that is older than these are kept; of a series that goes on, a chunk of sixty goes as a whole."""
        before = now_ms() - KEPT_RAW
        for found in listed(self.store)[0].values():
            old = sum(p[0] < before and p[0] % BUCKETS[0] != 0 for p in found.points)
            if old and (old >= 60 or found.points[-1][0] < before - HOUR):
                return False
        return True


def check_run(number, rounds, counts):
    limited = number % 4 == 3
    run = Run("store-%d" % number, limited)
    for n in range(rounds):
        run.round(n, old=not limited and n % 2 == 0)
        if n % 10 == 9 or n == rounds - 1:
            run.verify()
        if run.wrong:
            break
    good = not run.wrong and run.serves()
    if good:
        run.verify()
    counts.update(run.counts)
    tap.note("%d kills; %s" % (n + 1, ", ".join("%d %s" % (v, k) for k, v in sorted(run.counts.items()))))
    tap.check(good and not run.wrong, "killed %d times%s: all that was acknowledged is there, the store is whole, the next one goes on" % (
        rounds, ", with little room" if limited else ""),
              "seed %d, after kill %d, %d findings\n%s" % (SEED, n + 1, len(run.wrong), "\n".join(str(w)[:600] for w in run.wrong[:20])))


def main():
    total, counts, number = KILLS, collections.Counter(), 0
    # Of few kills a quarter is for the second kind, too.
    while total > 0:
        rounds = min(total, STORE_KILLS)
        if KILLS <= STORE_KILLS:
            rounds, number = (KILLS - KILLS // 4, 0) if total == KILLS else (total, 3)
        check_run(number, rounds, counts)
        total -= rounds
        number += 1
    tap.note("in all: " + ", ".join("%d %s" % (v, k) for k, v in sorted(counts.items())))
    for what in ("acknowledged", "scrapes seen", "reloads", "by themselves", "in buckets"):
        tap.check(counts[what] > 0, "some: %s" % what, counts)
    return tap.done()


try:
    status = main()
finally:
    shutil.rmtree(scratch, ignore_errors=True)
sys.exit(status)
