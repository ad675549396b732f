#!/usr/bin/env python3
"""A real leak under a hundred times as much churn: does `heapgauge leaks` rank it first, with the true rate in its interval?

`leaker` counts what it leaks. Several run at once, at jemalloc's default rate, and one that doesn't leak. An interval
of 95 % misses once in twenty: of four runs two may. The ranking may not be wrong in any.

usage: leaks.py HEAPGAUGE LEAKER WORK_DIRECTORY
"""
import json
import os
import shutil
import subprocess
import sys

import tap

SECONDS = 20
SNAPSHOTS = 21
BYTES_PER_SECOND = 3000000      # some 115 samples
RUNS = 4


def start(leaker, directory, name, rate):
    # jemalloc reads only the variable: whatever was in the environment is not meant for this.
    env = dict(os.environ, MALLOC_CONF="prof:true,lg_prof_sample:19")
    env.pop("LD_PRELOAD", None)
    return subprocess.Popen([leaker, str(SECONDS), str(SNAPSHOTS), str(rate), os.path.join(directory, name)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def dumps(directory, name):
    return [os.path.join(directory, f) for f in os.listdir(directory) if f.startswith(name + ".")]


def leaks(heapgauge, files, *options):
    answer = subprocess.run([heapgauge, "leaks", "--json", "--offline", "--no-cache", *options, *files],
                            capture_output=True, text=True, timeout=100)
    if answer.returncode not in (0, 3):
        raise RuntimeError(answer.stderr)
    return answer.returncode, json.loads(answer.stdout)


def leaf(row):
    return row["frames"][0]["name"] if row["frames"] else ""


def true_rate(printed):
    """Bytes per hour from the first dump to the last."""
    lines = [[float(x) for x in line.split()] for line in printed.splitlines()]
    (t0, b0), (t1, b1) = lines[0], lines[-1]
    return (b1 - b0) / (t1 - t0) * 3600


def look_at_leak(heapgauge, files, printed, name):
    truth = true_rate(printed)
    status, report = leaks(heapgauge, files, "--fail-above", "1G/h", "--all", "-n", "0")
    rows = report["rows"]
    tap.check(rows and leaf(rows[0]) == "leak_here" and rows[0]["steady"], "%s: the leak ranks first" % name,
              [(leaf(r), r["shape"], r["rate"]) for r in rows[:4]])
    tap.check(status == 3 and rows[0]["exceeds"], "%s: the gate trips on it" % name, report["gate"])
    others = [leaf(r) for r in rows[1:] if r["exceeds"]]
    tap.check(not others, "%s: and on nothing else" % name, others)
    low, high = rows[0]["rate"]["low"], rows[0]["rate"]["high"]
    tap.note("true rate %.0f MB/h, interval %.0f to %.0f MB/h" % (truth / 1e6, low / 1e6, high / 1e6))
    return low <= truth <= high


def main():
    heapgauge, leaker, work = sys.argv[1:4]
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    processes = {"run%d" % i: start(leaker, work, "run%d" % i, BYTES_PER_SECOND) for i in range(RUNS)}
    processes["clean"] = start(leaker, work, "clean", 0)
    held = 0
    for name, process in processes.items():
        printed, errors = process.communicate(timeout=SECONDS + 60)
        if not tap.check(process.returncode == 0 and len(dumps(work, name)) == SNAPSHOTS, "%s ran and was dumped" % name,
                         errors):
            continue
        if name == "clean":
            status, report = leaks(heapgauge, dumps(work, name), "--fail-above", "1k/h", "--all", "-n", "0")
            tap.check(status == 0, "without a leak the gate holds, at 1 KiB/h",
                      [(leaf(r), r["shape"], r["rate"]) for r in report["rows"] if r["exceeds"]])
            shapes = {leaf(r): r["shape"] for r in report["rows"]}
            tap.check(shapes.get("cache_here") in ("plateau", "slowing"), "the cache stands after it grew", shapes)
            tap.check(shapes.get("saw_here") == "saw-tooth", "the saw-tooth is one", shapes)
        else:
            held += look_at_leak(heapgauge, dumps(work, name), printed, name)
    tap.check(held >= RUNS - 2, "intervals hold the true rate", "%d of %d" % (held, RUNS))
    shutil.rmtree(work, ignore_errors=True)
    return tap.done()


sys.exit(main())
