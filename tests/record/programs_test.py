#!/usr/bin/env python3
"""programs_test.py HEAPGAUGE: real programs: redis with the agent, and one without it that is attached to."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import tap  # noqa: E402
from bad_targets import Recorder  # noqa: E402

HEAPGAUGE = os.path.abspath(sys.argv[1])
scratch = tempfile.mkdtemp(prefix="heapgauge-programs-")
started = []


def start(*words, **environment):
    p = subprocess.Popen(words, cwd=scratch, stdin=subprocess.DEVNULL, stdout=open(os.path.join(scratch, "out"), "ab"),
                         stderr=subprocess.STDOUT, env=dict(os.environ, **environment))
    started.append(p)
    return p


def end(p):
    if p.poll() is None:
        p.send_signal(signal.SIGTERM)
        try:
            p.wait(10)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


def wait_for(condition, seconds=15):
    until = time.monotonic() + seconds
    while not condition() and time.monotonic() < until:
        time.sleep(0.1)
    return condition()


def redis(agent, socket):
    p = start(HEAPGAUGE, "run", "--dir", os.path.join(scratch, "dumps"), "--rate", "4k", "--every", "0", "--listen", "unix:" + agent, "--",
              "redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--enable-debug-command", "yes")
    wait_for(lambda: os.path.exists(agent) and os.path.exists(socket))
    return p


def check_redis():
    agent, socket = os.path.join(scratch, "agent.sock"), os.path.join(scratch, "redis.sock")
    p = redis(agent, socket)
    subprocess.run(["redis-cli", "-s", socket, "debug", "populate", "50000", "key", "100"], capture_output=True, check=False)
    r = Recorder(HEAPGAUGE, scratch, "--interval", "500ms", "--job", "redis", "--store", os.path.join(scratch, "redis.db"), "unix:" + agent)
    t = r.wait(lambda: r.target(job="redis")["scrapes"] >= 3 and r.target(job="redis"))
    tap.check(t and t["health"] == "up" and t["failures"] == 0 and t["samples"] > 5, "redis: scraped through its socket", (t, r.log()))
    profile = r.ask("/api/v1/profile?match=%7Bjob%3D%22redis%22%7D")[1]
    with open(os.path.join(scratch, "got.pb.gz"), "wb") as f:
        f.write(profile)
    top = subprocess.run([HEAPGAUGE, "top", "--json", "--offline", os.path.join(scratch, "got.pb.gz")], capture_output=True, text=True, timeout=60)
    tap.check(top.returncode == 0 and "redis-" in top.stdout, "redis: a profile comes back", top.stderr + top.stdout[:500])
    gauges = r.ask("/api/v1/gauges?match=%7Bjob%3D%22redis%22%7D")[1].decode()
    for name in ("rss", "jemalloc_allocated", "jemalloc_resident", "profile_inuse"):
        tap.check('"%s"' % name in gauges, "redis: the gauge " + name, gauges[:300])
    series = [s for s in r.series() if s["labels"]["job"] == "redis"]
    tap.check(len(series) == 1 and series[0]["started_ms"] and abs(series[0]["started_ms"] / 1000 - time.time()) < 60 and series[0]["build_id"],
              "redis: its start and its build are known", series)
    end(p)
    tap.check(r.wait(lambda: r.target(job="redis")["health"] == "down"), "redis ended: its target is down")
    tap.check("connect" in r.target(job="redis")["error"], "and says why", r.target(job="redis"))
    p = redis(agent, socket)
    t = r.wait(lambda: r.target(job="redis")["restarts"] == 1 and r.target(job="redis"))
    tap.check(t and t["health"] == "up", "redis again: another process", (t, r.log()))
    tap.check(len([s for s in r.series() if s["labels"]["job"] == "redis"]) == 2, "another series")
    tap.check(r.end() == 0, "it ends")
    end(p)


def check_attached():
    grow = os.environ.get("GROW_JEMALLOC")
    if not grow:
        tap.skip("a process without an endpoint", "there is no libjemalloc to link with")
        return
    p = start(grow, "10", "500", "wait", MALLOC_CONF="prof:true,lg_prof_sample:0")
    time.sleep(0.5)
    got = subprocess.run([HEAPGAUGE, "top", "pid:%d" % p.pid], capture_output=True, text=True, timeout=60)
    if got.returncode:
        tap.skip("a process without an endpoint", "attach does not work here: " + got.stderr.strip())
        end(p)
        return
    r = Recorder(HEAPGAUGE, scratch, "--interval", "500ms", "--store", os.path.join(scratch, "pid.db"), "pid:%d" % p.pid)
    t = r.wait(lambda: r.target(job="default")["scrapes"] >= 2 and r.target(job="default"))
    tap.check(t and t["health"] == "up" and t["failures"] == 0, "pid: without an endpoint is attached to", (t, r.log()))
    tap.check('"rss"' in r.ask("/api/v1/gauges?match=%7Bjob%3D%22default%22%7D")[1].decode(), "its resident size comes from /proc")
    end(p)
    tap.check(r.wait(lambda: r.target(job="default")["health"] == "down"), "when it has ended its target is down", r.log())
    tap.check(r.metrics()['heapgauge_scrape_failures_total{reason="process"}'] >= 1, "that is counted as the process'")
    tap.check(r.end() == 0, "it ends")


try:
    if shutil.which("redis-server") and shutil.which("redis-cli"):
        check_redis()
    else:
        tap.skip("redis", "redis is not installed")
    check_attached()
finally:
    for process in started:
        end(process)
    shutil.rmtree(scratch, ignore_errors=True)
sys.exit(tap.done())
