#!/usr/bin/env python3
"""faults_test.py HEAPGAUGE: what was acknowledged is there: after SIGTERM, after a full disk. After kill -9: kills_test.py."""
import os
import resource
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

HEAPGAUGE = os.path.abspath(sys.argv[1])
scratch = tempfile.mkdtemp(prefix="heapgauge-faults-")


class Pusher(threading.Thread):
    """Pushes until it is told to end; counts what was acknowledged and what else came."""

    def __init__(self, recorder, number):
        super().__init__(daemon=True)
        self.r, self.number, self.acknowledged, self.sent, self.statuses, self.stop = recorder, number, 0, 0, {}, False

    def run(self):
        while not self.stop:
            body = dump(0x56aa00000000, 1 + self.sent % 5)
            status = self.r.ask("/api/v1/push?job=kill&instance=%d" % self.number, body, "POST", timeout=10)[0]
            self.sent += 1
            self.statuses[status] = self.statuses.get(status, 0) + 1
            self.acknowledged += status == 204
            if status == 0:
                return


def stored(r):
    counts = {}
    for s in r.series():
        if s["labels"].get("job") == "kill":
            i = int(s["labels"]["instance"])
            counts[i] = counts.get(i, 0) + s["profiles"]
    return counts


def check_end(folder):
    store = os.path.join(folder, "end.db")
    r = Recorder(HEAPGAUGE, folder, "--store", store)
    pushers = [Pusher(r, i) for i in range(8)]
    for p in pushers:
        p.start()
    time.sleep(0.7)
    began = time.monotonic()
    status = r.end(signal.SIGTERM)
    took = time.monotonic() - began
    for p in pushers:
        p.stop = True
        p.join(15)
    tap.check(status == 0 and took < 5, "SIGTERM under load: ends with 0, soon", (status, took))
    tap.check(all(set(p.statuses) <= {204, 503, 0} for p in pushers), "nobody gets anything but a yes, a no or nothing", [p.statuses for p in pushers])
    r = Recorder(HEAPGAUGE, folder, "--store", store)
    counts = stored(r)
    tap.check(all(p.acknowledged <= counts.get(p.number, 0) <= p.sent for p in pushers) and sum(p.acknowledged for p in pushers) > 20,
              "SIGTERM: each acknowledged profile is there", ([(p.acknowledged, p.sent) for p in pushers], counts))
    r.end()


def check_folded(folder):
    """A queue of old profiles is being sent; the recorder ends, and the next one folds what it has before the rest comes."""
    store = os.path.join(folder, "folded.db")
    began = int(time.time() * 1000) - 48 * 3600000

    def push(r, i):
        return r.ask("/api/v1/push?job=queue", pprof.encode({(1, 2): (0, 0, 1, 100 + i)}, time_ms=began + i * 60000), "POST")[:2]

    r = Recorder(HEAPGAUGE, folder, "--store", store)
    before = [push(r, i) for i in range(3)]
    r.end(signal.SIGKILL)
    r = Recorder(HEAPGAUGE, folder, "--store", store, config="scrape_configs: []\n")
    folded = r.wait(lambda: r.metrics()["heapgauge_maintenance_steps_total"] >= 3)
    after = [push(r, i) for i in range(3, 6)]
    tap.check(folded and before + after == [(204, b"")] * 6, "what comes too late for its bucket is stored all the same", before + after)
    mine = [s for s in r.series() if s["labels"]["job"] == "queue"]
    tap.check(len(mine) == 1 and mine[0]["profiles"] == 6 and mine[0]["last_ms"] > time.time() * 1000 - 60000, "as of when it came", mine)
    r.end()


def fill(r, number, status, most=20000):
    """Pushes ever other profiles until that status comes; how many were acknowledged, and the answer."""
    acknowledged = 0
    for i in range(most):
        got, answer, headers = r.ask("/api/v1/push?job=full&instance=%d&n=%d" % (number, i), dump(0x56aa00000000 + i * 0x1000000, 3), "POST")
        if got == status:
            return acknowledged, answer.decode(), headers
        acknowledged += got == 204
        if got not in (204, status):
            return acknowledged, "%d: %s" % (got, answer), headers
    return acknowledged, "", {}


def check_full(name, folder, r, targets, give_room):
    t = r.wait(lambda: (r.target(job="default") or {}).get("health") == "up")
    tap.check(t, "%s: at first all is well" % name, r.log())
    acknowledged, answer, headers = fill(r, 1, 503)
    tap.check(acknowledged > 0 and answer and "\n" not in answer.strip() and headers.get("Retry-After"),
              "%s: a push is answered 503 and why" % name, (acknowledged, answer))
    tap.check(r.wait(lambda: r.target(job="default")["health"] == "down"), "%s: scrapes say so" % name, r.targets())
    m = r.metrics()
    tap.check(m["heapgauge_store_failing"] == 1 and m['heapgauge_scrape_failures_total{reason="store"}'] >= 1 and
              m['heapgauge_push_failures_total{reason="store"}'] >= 1, "%s: the loss is counted" % name, m)
    tap.check(r.ask("/-/ready")[0] == 503 and r.ask("/-/healthy")[0] == 200 and r.ask("/api/v1/series")[0] == 200,
              "%s: it says it is not ready, and goes on to serve" % name)
    give_room()
    tap.check(r.wait(lambda: r.target(job="default")["health"] == "up"), "%s: with room again scrapes are stored" % name, r.targets())
    tap.check(r.ask("/api/v1/push?job=full&instance=2", dump(), "POST")[0] == 204, "%s: and pushes" % name)
    tap.check(r.ask("/-/ready")[0] == 200 and r.metrics()["heapgauge_store_failing"] == 0, "%s: and it is ready" % name)
    got = sum(s["profiles"] for s in r.series() if s["labels"].get("job") == "full" and s["labels"]["instance"] == "1")
    tap.check(got == acknowledged, "%s: what was acknowledged before is there" % name, (got, acknowledged))
    tap.check(r.end() == 0, "%s: and it ends well" % name, r.log()[-400:])


def check_limit(folder):
    """RLIMIT_FSIZE: EFBIG at each write past it."""
    targets = Targets()

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (600 << 10, resource.RLIM_INFINITY))

    r = Recorder(HEAPGAUGE, folder, "--interval", "300ms", "--store", os.path.join(folder, "limit.db"), "http://%s/good" % targets.address,
                 before=limit)
    check_full("files are limited", folder, r, targets, lambda: resource.prlimit(
        r.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))


def check_disk(folder):
    place = os.path.join(folder, "disk")
    os.mkdir(place)
    if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", place], capture_output=True).returncode:
        tap.skip("a full disk", "only root may mount a small one, and not everywhere")
        return
    try:
        targets = Targets()
        r = Recorder(HEAPGAUGE, folder, "--interval", "300ms", "--store", os.path.join(place, "full.db"), "http://%s/good" % targets.address)
        check_full("the disk is full", folder, r, targets, lambda: subprocess.run(
            ["mount", "-o", "remount,size=64m", place], check=True))
    finally:
        subprocess.run(["umount", place], check=False)


try:
    check_end(scratch)
    check_folded(scratch)
    check_limit(scratch)
    check_disk(scratch)
finally:
    shutil.rmtree(scratch, ignore_errors=True)
sys.exit(tap.done())
