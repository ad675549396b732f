"""Limits of the query API: time, memory, how many at a time, clients that go away, cancelling. limits_test.py API_DRIVER SOURCE_FOLDER"""
import os
import random
import socket
import sys
import tempfile
import threading
import time

SOURCE = sys.argv[2]
sys.path[:0] = [os.path.join(SOURCE, "tests", "truth")]
import pprof
import tap
from driver import Driver

T0 = 1790000000000 // 3600000 * 3600000
STEP = 10000
N = 240


def fill(driver):
    """A profile of many stacks, so that the growth of all its moments takes a while."""
    r = random.Random(5)
    stacks = [tuple(16 * r.randint(1, 20000) for _ in range(12)) for _ in range(6000)]
    series = driver.series({"job": "big"}, 31, T0, "ee" * 10)
    some = [pprof.encode({s: (0, 0, 5, 1000 + (k * 7919 + i) % 977) for i, s in enumerate(stacks)}, build_id="ee" * 10, size=1 << 20) for k in range(4)]
    for k in range(N):
        driver.profile(series, T0 + k * STEP, some[k % 4])
    return series


SLOW = {"view": "growth", "from": T0, "to": T0 + N * STEP, "moments": 200, "all": 1}


class Asking(threading.Thread):
    def __init__(self, driver, path, params):
        super().__init__()
        self.driver, self.path, self.params, self.answer = driver, path, params, None
        self.start()

    def run(self):
        begin = time.time()
        self.answer = self.driver.request("GET", self.path, self.params, timeout=60)
        self.seconds = time.time() - begin


def wait_until(what, seconds=10):
    end = time.time() + seconds
    while time.time() < end and not what():
        time.sleep(0.005)
    return what()


def queries(driver):
    return driver.get("queries").json()["queries"]


def metric(driver, name):
    lines = [x for x in driver.command("metrics") if x.startswith("heapgauge_api_" + name + " ")]
    return int(lines[0].split()[1])


def check_cancel(driver):
    begin = time.time()
    whole = driver.request("GET", "page", SLOW, timeout=60)
    seconds = time.time() - begin
    tap.check(whole.status == 200 and seconds > 0.3, "the slow question is slow: %.2f s" % seconds, whole.body[:100])
    one = Asking(driver, "page", dict(SLOW, id="mine"))
    tap.check(wait_until(lambda: any(q["id"] == "mine" and q["running"] for q in queries(driver))), "it is listed while it runs")
    answer = driver.request("POST", "cancel", {"id": "mine"}, body=b"")
    one.join()
    tap.check(answer.json() == {"cancelled": 1} and one.answer.status == 503 and one.answer.error() == "cancelled", "cancelled by its name", one.answer.body)
    tap.check(one.seconds < seconds * 0.8, "and it ended before its time: %.2f s" % one.seconds)
    tap.check(driver.request("POST", "cancel", {"id": "mine"}, body=b"").json() == {"cancelled": 0}, "nothing is left to cancel")
    tap.check(driver.request("POST", "cancel", body=b"").status == 400 and driver.request("GET", "cancel").status == 405, "cancel wants an id, and a POST")
    for when in ("after a while", "at once"):
        before = metric(driver, "queries_abandoned_total")
        s = socket.create_connection(driver.host.split(":"))
        query = "&".join("%s=%s" % item for item in SLOW.items())
        s.sendall(("GET /api/v1/page?%s&id=gone HTTP/1.1\r\nHost: localhost\r\n\r\n" % query).encode())
        if when == "after a while":
            wait_until(lambda: any(q["id"] == "gone" and q["running"] for q in queries(driver)))
        s.close()
        tap.check(wait_until(lambda: metric(driver, "queries_abandoned_total") == before + 1), "a client that goes away %s is noticed" % when)
        tap.check(wait_until(lambda: not queries(driver), seconds * 0.8), "and its query given up")


def check_crowd(driver):
    """Two threads, one of them for short questions; eight may wait."""
    crowd = [Asking(driver, "page", dict(SLOW, id="crowd%d" % i)) for i in range(20)]
    tap.check(wait_until(lambda: sum(q["running"] for q in queries(driver)) == 1 and len(queries(driver)) >= 8), "a crowd waits, one is worked on", queries(driver))
    begin = time.time()
    answer = driver.get("labels")
    tap.check(answer.status in (200, 429), "a short question meanwhile: %d in %.3f s" % (answer.status, time.time() - begin))
    for i in range(20):
        driver.request("POST", "cancel", {"id": "crowd%d" % i}, body=b"")
    for c in crowd:
        c.join()
    statuses = [c.answer.status for c in crowd]
    refused = [c.answer for c in crowd if c.answer.status == 429]
    tap.check(set(statuses) <= {200, 503, 429} and len(refused) >= 8, "who is too much is refused: %s" % sorted(statuses))
    tap.check(all(a.headers["Retry-After"] == "1" and a.error() for a in refused), "with a time to come again")
    tap.check(driver.get("labels").status == 200 and metric(driver, "queries_refused_total") == len(refused) + (answer.status == 429), "and afterwards all is as before")


def check_short_beside_long(driver):
    long = Asking(driver, "page", SLOW)
    wait_until(lambda: any(q["running"] for q in queries(driver)))
    worst = 0
    n = 0
    while long.is_alive():
        begin = time.time()
        assert driver.get("series").status == 200
        worst, n = max(worst, time.time() - begin), n + 1
    tap.check(n > 3 and worst < 0.5, "short questions don't wait for a long one: the worst of %d took %.3f s" % (n, worst))


def main():
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(sys.argv[1], folder, waiting=8)
        fill(driver)
        driver.command("maintain", T0 + N * STEP)
        check_cancel(driver)
        check_crowd(driver)
        check_short_beside_long(driver)
        tap.check(driver.end() == 0, "the driver ends well")
        driver = Driver(sys.argv[1], folder, timeout_ms=100)
        answer = driver.request("GET", "page", SLOW)
        tap.check(answer.status == 408 and "shorter" in answer.error(), "over the time limit", answer.body[:200])
        tap.check(driver.get("labels").status == 200, "what is quick still works")
        driver.end()
        driver = Driver(sys.argv[1], folder, max_bytes=3 << 20)
        for path, params in (("page", SLOW), ("leaks", {"from": T0, "to": T0 + N * STEP, "moments": 100}), ("totals", {"from": T0, "to": T0 + 10000 * STEP, "step": 10})):
            answer = driver.request("GET", path, params)
            tap.check(answer.status == (413 if path != "totals" else 200), "over the memory limit: %s" % path, (answer.status, answer.body[:200]))
        tap.check(driver.get("labels").status == 200, "what is small still works")
        one = Asking(driver, "labels", {})
        one.join()
        tap.check(driver.end() == 0, "the driver ends well")
        # The end comes while somebody is at work.
        driver = Driver(sys.argv[1], folder)
        asking = [threading.Thread(target=lambda: try_to_ask(driver)) for _ in range(4)]
        for a in asking:
            a.start()
        wait_until(lambda: any(q["running"] for q in queries(driver)))
        begin = time.time()
        tap.check(driver.end() == 0 and time.time() - begin < 1, "it ends at once in the middle of work: %.2f s" % (time.time() - begin))
        for a in asking:
            a.join()
    return tap.done()


def try_to_ask(driver):
    try:
        driver.request("GET", "page", SLOW)
    except OSError:
        pass
    except Exception as e:      # http.client's own, of a connection that ends without an answer
        if type(e).__module__ != "http.client":
            raise


if __name__ == "__main__":
    sys.exit(main())
