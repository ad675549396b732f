#!/usr/bin/env python3
"""
outages_test.py HEAPGAUGE STORE_CLIENT PRELOAD: the store's disk fails under a running recorder. PRELOAD (tests/store/faults.c) has system
calls on its files fail while a file says so. Meanwhile the recorder serves what it has and counts what it loses; afterwards it goes on by
itself, and all that was acknowledged is there.
"""
import collections
import errno
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import pprof  # noqa: E402
import tap  # noqa: E402
from bad_targets import Recorder, Targets  # noqa: E402

HEAPGAUGE, CLIENT, PRELOAD = [os.path.abspath(a) for a in sys.argv[1:4]]
scratch = tempfile.mkdtemp(prefix="heapgauge-outages-")
targets = Targets()
PUSH = "/api/v1/push?job=push&instance=a"
STORE_LOST = 'heapgauge_push_failures_total{reason="store"}'


class Disk:
    """What its calls answer."""

    def __init__(self, folder):
        self.plan = os.path.join(folder, "plan")
        self.environment = {"LD_PRELOAD": PRELOAD, "HEAPGAUGE_FAULT_FILE": "faulty.db", "HEAPGAUGE_FAULT_PLAN": self.plan}
        self.n = 0
        self.works()

    def felt(self):
        """{call: how often it failed}"""
        try:
            with open(self.plan + ".felt", encoding="utf-8") as f:
                return collections.Counter(f.read().split())
        except FileNotFoundError:
            return collections.Counter()

    def say(self, text):
        # Another text each time: the same one again would not begin anew.
        self.n += 1
        with open(self.plan + ".new", "w", encoding="utf-8") as f:
            f.write("%s %d\n" % (text, self.n))
        os.rename(self.plan + ".new", self.plan)

    def works(self):
        self.say("none 0 0 0")

    def fails(self, call, error, after=0, count=1000000):
        self.say("%s %d %d %d" % (call, error, after, count))


class Pushes:
    """
    One after the other, each with a total that no other has, and many stacks, so that the log becomes full now and then and goes into the store.
    what: {total: status}.
    """

    def __init__(self, r, stacks=60):
        self.r, self.what, self.answer, self.stacks, self.chance = r, {}, "", stacks, random.Random(4711)

    def push(self):
        total = 1000 + len(self.what)
        stacks = {(self.chance.randrange(1 << 16), self.chance.randrange(1 << 16)): (0, 0, 1, 1) for _ in range(self.stacks)}
        stacks[1, 1] = (0, 0, 1, total - len(stacks))
        status, answer, headers = self.r.ask(PUSH, pprof.encode(stacks, rate=1), "POST")
        self.what[total] = status
        if status == 503:
            self.answer = answer.decode()
            if not headers.get("Retry-After") or "\n" in self.answer.strip() or "faulty" not in self.answer:
                self.what[total] = "an odd answer: %s" % self.answer
        return self.what[total]

    def count(self, status):
        return sum(s == status for s in self.what.values())


def begin(name):
    folder = os.path.join(scratch, name)
    os.mkdir(folder)
    disk = Disk(folder)
    os.environ.update(disk.environment)
    try:
        r = Recorder(HEAPGAUGE, folder, "--store", os.path.join(folder, "faulty.db"), config="""global: {scrape_interval: 200ms}
scrape_configs:
  - {job_name: grows, profile_path: /grows, static_configs: [{targets: ['%s']}]}
""" % targets.address)
    finally:
        for key in disk.environment:
            del os.environ[key]
    return r, disk, os.path.join(folder, "faulty.db")


def stored(store):
    out = subprocess.run([CLIENT, "list", store, "job=push"], capture_output=True, text=True, timeout=60).stdout
    return [int(line.split()[4]) for line in out.splitlines() if line.startswith("point")]


def check_stored(name, r, pushes, store):
    """Acknowledged: once. Refused, or without an answer: at most once. Nothing else, and nothing broken."""
    tap.check(r.end() == 0, "%s: it ends well" % name, r.log()[-500:])
    totals = stored(store)
    lost = [t for t, s in pushes.what.items() if s == 204 and totals.count(t) != 1]
    tap.check(not lost and pushes.count(204) > 0 and set(totals) <= set(pushes.what) and len(set(totals)) == len(totals),
              "%s: each of %d that were acknowledged is there, once" % (name, pushes.count(204)), (lost[:5], len(totals)))
    got = subprocess.run([HEAPGAUGE, "store", "check", store], capture_output=True, text=True, timeout=60)
    tap.check(got.returncode == 0, "%s: the store is whole" % name, got.stdout + got.stderr)


def serves(r, moment_ms):
    """All but writing."""
    answers = {path: r.ask(path, timeout=10) for path in (
        "/-/healthy", "/api/v1/targets", "/api/v1/series", "/metrics", "/api/v1/totals?match=%7Bjob%3D%22push%22%7D",
        "/api/v1/profile?match=%%7Bjob%%3D%%22push%%22%%7D&at=%.3f" % (moment_ms / 1000))}
    wrong = [(path, a[0], a[1][:200]) for path, a in answers.items() if a[0] != 200]
    if not wrong:
        total = pprof.Profile(list(answers.values())[-1][1]).total("inuse_space")
        if total < 1000:
            wrong = ["the profile of before has %d bytes" % total]
    return wrong


def crowd(r):
    """Many who ask at once, more than there are connections to the store; the answers that are neither a yes nor a no and why."""
    answers = []

    def ask(path):
        for _ in range(5):
            answers.append(r.ask(path, timeout=20)[:2])

    paths = ["/api/v1/profile?mode=average", "/api/v1/totals", "/metrics", "/api/v1/series"]
    threads = [threading.Thread(target=ask, args=(paths[i % 4],), daemon=True) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    return [a for a in answers if a[0] not in (200, 503) and not (a[0] == 500 and b"faulty" in a[1])]


def check_outage(call, error):
    """From some moment on each such call fails, until it is mended."""
    name = "%s: %s" % (call, errno.errorcode[error])
    r, disk, store = begin("%s-%d" % (call, error))
    pushes = Pushes(r, 150 if call == "main" else 60)
    # Of more than a chunk, so that there is something to fold; and a query, which opens what is needed for reading.
    while len(pushes.what) < 70:
        pushes.push()
    before = time.time() * 1000
    tap.check(pushes.count(204) == 70 and not serves(r, before) and r.wait(lambda: r.target(job="grows")["health"] == "up"), "%s: at first all is well" % name,
              (pushes.what, r.log()[-300:]))
    disk.fails(call, error)
    for _ in range(70):
        pushes.push()
    fatal = call in ("write", "sync", "change")
    if fatal:
        tap.check(pushes.count(503) == 70, "%s: pushes are answered 503 and why" % name, pushes.what)
        tap.check(r.wait(lambda: r.target(job="grows")["health"] == "down" and "faulty" in r.target(job="grows")["error"]), "%s: scrapes say so" % name, r.targets())
        time.sleep(1.2)
    else:
        # What such a call is needed for can be put off; a connection more is opened when two ask at the same moment.
        crowds = 0
        tap.check(pushes.count(204) == 140, "%s: pushes are stored all the same" % name, pushes.what)
        odd = crowd(r)
        while not disk.felt() and not odd and crowds < 20:
            odd = crowd(r)
            crowds += 1
        tap.check(not odd, "%s: many at once are answered" % name, odd[:3])
    if call == "open" and not disk.felt():
        tap.skip("%s: it was felt" % name, "all connections that are needed were open already")
    else:
        tap.check(disk.felt(), "%s: it was felt" % name)
    tap.check(not serves(r, before), "%s: it goes on to serve" % name, serves(r, before))
    m = r.metrics()
    tap.check(m[STORE_LOST] == pushes.count(503) and m["heapgauge_pushes_total"] == pushes.count(204), "%s: each loss is counted" % name,
              (m[STORE_LOST], pushes.count(503), m["heapgauge_pushes_total"]))
    if fatal:
        tap.check(m["heapgauge_store_failing"] == 1 and r.ask("/-/ready")[0] == 503 and m['heapgauge_scrape_failures_total{reason="store"}'] > 0 and
                  (m["heapgauge_maintenance_failures_total"] > 0 or m["heapgauge_store_open_profiles"] < 60), "%s: it says that the store fails" % name, m)
    disk.works()
    tap.check(r.wait(lambda: pushes.push() == 204 and r.ask("/-/ready")[0] == 200), "%s: afterwards pushes are stored, by the same process" % name,
              (pushes.answer, r.log()[-300:]))
    for _ in range(70):
        pushes.push()
    tap.check(r.wait(lambda: r.target(job="grows")["health"] == "up" and r.metrics()["heapgauge_store_open_profiles"] < 140),
              "%s: so are scrapes, and chunks are made" % name, (r.targets(), r.metrics()["heapgauge_store_open_profiles"]))
    check_stored(name, r, pushes, store)


def check_single(error, occasions):
    """Each call of the first ones, once; meanwhile others push and are scraped."""
    name = "one call fails: " + errno.errorcode[error]
    r, disk, store = begin("single-%d" % error)
    pushes = Pushes(r, 150)
    end = threading.Event()

    def scrape_and_ask():
        while not end.is_set():
            r.ask("/api/v1/totals")
            time.sleep(0.02)

    asker = threading.Thread(target=scrape_and_ask, daemon=True)
    asker.start()
    odd = []
    for call in ("write", "sync", "truncate", "open", "change", "main"):
        for after in range(occasions):
            disk.fails(call, error, after, 1)
            for _ in range(4):
                status = pushes.push()
                if status not in (204, 503):
                    odd.append((call, after, status))
    disk.works()
    end.set()
    asker.join(10)
    tap.check(not odd and pushes.push() == 204, "%s: each push is answered yes, or no and why" % name, odd)
    felt = disk.felt()
    tap.check(pushes.count(503) >= occasions and felt["write"] >= occasions and felt["sync"] > 0, "%s: faults were felt" % name, (felt, pushes.what))
    tap.check(r.metrics()[STORE_LOST] == pushes.count(503), "%s: each loss is counted" % name)
    check_stored(name, r, pushes, store)


def check_read_only():
    """A file system that can only be read: nothing can be recorded there, and what is there can be read."""
    place = os.path.join(scratch, "ro")
    os.mkdir(place)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place], capture_output=True).returncode:
        tap.skip("a read-only file system", "only root may mount one, and not everywhere")
        return
    try:
        for how in ("SIGTERM", "kill -9"):
            store = os.path.join(place, "%s.db" % how.split()[0])
            r = Recorder(HEAPGAUGE, scratch, "--store", store, config="scrape_configs: []\n")
            pushes = Pushes(r)
            for _ in range(5):
                pushes.push()
            r.end(9 if how == "kill -9" else 15)
            subprocess.run(["mount", "-o", "remount,ro", place], check=True)
            before = sorted((n, os.stat(os.path.join(place, n)).st_size) for n in os.listdir(place))
            r = Recorder(HEAPGAUGE, scratch, "--store", store, config="scrape_configs: []\n")
            said = r.log().strip().splitlines()[-1:]
            tap.check(not r.url and r.end() == 1 and said and store in said[0] and "ead-only" in said[0], "read-only, after %s: a recorder says so and ends" % how,
                      said)
            got = subprocess.run([HEAPGAUGE, "store", "check", store], capture_output=True, text=True, timeout=60)
            tap.check(got.returncode == 0, "read-only, after %s: it can be checked" % how, got.stdout + got.stderr)
            tap.check(stored(store) == [t for t, s in pushes.what.items() if s == 204], "read-only, after %s: and read" % how, stored(store))
            tap.check(before == sorted((n, os.stat(os.path.join(place, n)).st_size) for n in os.listdir(place)), "read-only: nothing changed")
            subprocess.run(["mount", "-o", "remount,rw", place], check=True)
    finally:
        subprocess.run(["umount", place], check=False)


try:
    for call, error in (("write", errno.EIO), ("write", errno.ENOSPC), ("sync", errno.EIO), ("change", errno.EROFS), ("main", errno.ENOSPC),
                        ("truncate", errno.EIO), ("open", errno.EIO)):
        check_outage(call, error)
    check_single(errno.EIO, 8)
    check_read_only()
finally:
    shutil.rmtree(scratch, ignore_errors=True)
sys.exit(tap.done())
