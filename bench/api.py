"""How long the web page's questions take while profiles are written: api.py API_DRIVER [TARGETS [SECONDS]]

A store of TARGETS processes (default 50), half an hour of profiles of 2,000 stacks each at one in 15 s, sealed; then profiles go on arriving at the
rate of 1,000 targets every 15 s, as fast as the writer keeps up with that, while one client asks what the page asks.
"""
import os
import random
import sys
import tempfile
import threading
import time

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "record")]
import pprof
from driver import Driver

T0 = 1790000000000 // 3600000 * 3600000
STEP = 15000
STACKS = 2000
RATE = 1000 / 15


def variants():
    r = random.Random(1)
    stacks = [tuple(16 * r.randint(1, 3000) for _ in range(r.randint(8, 24))) for _ in range(STACKS)]
    names = {16 * i: "namespace_%d::function_%d" % (i % 50, i) for i in range(1, 3001)}
    out = []
    for k in range(8):
        values = {s: (0, 0, n := 1 + (i * 31 + (k if i % 5 == 0 else 0)) % 500, n * 640) for i, s in enumerate(stacks)}
        out.append(pprof.encode(values, build_id="ab" * 20, size=1 << 20, names=names))
    return out


def main():
    targets = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 20
    with tempfile.TemporaryDirectory() as folder:
        driver = Driver(sys.argv[1], folder, max_bytes=128 << 20)
        paths = []
        for i, data in enumerate(variants()):
            paths.append(os.path.join(folder, "variant%d" % i))
            with open(paths[-1], "wb") as f:
                f.write(data)
        series = [driver.series({"job": "job%d" % (i % 10), "instance": "host%d" % i}, 1000 + i, T0, "ab" * 20) for i in range(targets)]
        begin = time.time()
        profiles = 120
        for k in range(profiles):
            for i, s in enumerate(series):
                driver.command("profile", s, T0 + k * STEP, paths[(k + i) % 8])
        print("filled: %d profiles in %.1f s" % (profiles * targets, time.time() - begin))
        driver.command("maintain", T0 + profiles * STEP)
        stop = threading.Event()
        written = [0]

        def write():
            start, k = time.time(), profiles
            while not stop.is_set():
                for i, s in enumerate(series):
                    late = start + written[0] / RATE - time.time()
                    if late > 0:
                        time.sleep(late)
                    if stop.is_set():
                        return
                    driver.command("profile", s, T0 + k * STEP, paths[(k + i) % 8])
                    written[0] += 1
                k += 1

        end = T0 + profiles * STEP
        one = {"match": '{instance="host3"}', "from": end - 900000, "to": end}
        job = {"match": '{job="job3"}', "from": end - 900000, "to": end}
        questions = [("series", "series", {}), ("totals of one", "totals", one), ("totals of all", "totals", {"from": T0, "to": end, "limit": 20}),
                     ("page at a moment", "page", {"match": one["match"], "at": end - STEP}), ("page, average of 15 min", "page", one),
                     ("page, average of a job", "page", job),
                     ("page, two ranges", "page", dict(one, base_from=T0, base_to=T0 + 600000)), ("page, growth of one", "page", dict(one, view="growth")),
                     ("leaks of one, 24 moments", "leaks", one), ("pprof at a moment", "profile", {"match": one["match"], "at": end - STEP})]
        writer = threading.Thread(target=write)
        writer.start()
        times = {q[0]: [] for q in questions}
        begin = time.time()
        while time.time() - begin < seconds:
            for name, path, params in questions:
                at = time.time()
                answer = driver.request("GET", path, params)
                times[name].append(time.time() - at)
                assert answer.status == 200, (name, answer.status, answer.body[:300])
        stop.set()
        writer.join()
        print("written meanwhile: %.1f profiles/s (of %.1f asked for), %.2f M samples/s" % (written[0] / (time.time() - begin), RATE,
                                                                                       written[0] * STACKS / (time.time() - begin) / 1e6))
        print("%-28s %6s %9s %9s %9s" % ("question", "n", "median ms", "p99 ms", "worst ms"))
        for name, all_times in times.items():
            s = sorted(all_times)
            print("%-28s %6d %9.1f %9.1f %9.1f" % (name, len(s), s[len(s) // 2] * 1000, s[min(len(s) - 1, int(len(s) * 0.99))] * 1000, s[-1] * 1000))
        with open("/proc/%d/status" % driver.process.pid) as f:
            print("peak memory:", [x.split(":")[1].strip() for x in f if x.startswith("VmHWM")][0])
        driver.end()


if __name__ == "__main__":
    main()
