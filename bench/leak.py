#!/usr/bin/env python3
"""A slow leak under much churn, found by the recorder: leak.py BUILD [MINUTES [LEAK [CHURN]]]  (10 minutes, 1 and 100 MiB a minute)

redis-server under `heapgauge run` at jemalloc's default sampling rate, `heapgauge record` asking it every 10 s with no configuration. One
client sets values of many sizes that expire within seconds (the churn), another makes values that stay (the leak). What those
take, redis says itself. In the end: is the leak the first of the ranking, and does its interval hold what was leaked a minute? 0 when
both the API and `heapgauge leaks store:FILE` say so."""
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import urllib.request

MIB = 1 << 20
PLANTED = "setrangeCommand"     # the function that only the leak comes through


class Redis:
    """A connection that sends many commands and reads as many answers."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.answers = self.socket.makefile("rb")

    def send(self, *commands):
        words = []
        for command in commands:
            words.append(b"*%d\r\n" % len(command))
            words += [b"$%d\r\n%s\r\n" % (len(w), w) for w in command]
        self.socket.sendall(b"".join(words))
        return [self.answer() for _ in commands]

    def answer(self):
        line = self.answers.readline()
        if line[:1] == b"-" or not line:
            raise RuntimeError("redis: " + line.decode(errors="replace"))
        return int(line[1:]) if line[:1] == b":" else line


def paced(seconds_a_step, until, step):
    """Steps at their times, whatever one of them takes."""
    due = time.monotonic()
    while due < until:
        time.sleep(max(0, due - time.monotonic()))
        step()
        due += seconds_a_step


def churn(path, bytes_a_minute, until, done):
    redis, rng, page = Redis(path), random.Random(1), os.urandom(1 << 16)

    def step():
        left, commands = bytes_a_minute / 60 / 5, []
        while left > 0:
            size = min(int(rng.paretovariate(0.7) * 200), len(page))
            commands.append((b"SET", b"cache:%d" % rng.randrange(100000), page[:size], b"PX", b"%d" % rng.randrange(500, 20000)))
            done["churned"] += size
            left -= size
        redis.send(*commands)
    paced(0.2, until, step)


def leak(path, bytes_a_minute, until, done):
    """SETRANGE makes its values itself, at a place of its own; keys and dictionary entries are 1 % of that."""
    redis, rng, page = Redis(path), random.Random(2), os.urandom(20000)
    kept, left = 0, 0

    def step():
        nonlocal kept, left
        left += bytes_a_minute / 60
        while left > 0:
            size, key = rng.randrange(2000, 20000), b"session:%d" % kept
            kept += 1
            left -= size
            done["leaked"] += redis.send((b"SETRANGE", key, b"0", page[:size]), (b"MEMORY", b"USAGE", key))[1]
        done["held"].append((time.time(), done["leaked"]))
    paced(1, until, step)


def wait_for(condition, what, seconds=20):
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            sys.exit("leak: %s: not within %d s" % (what, seconds))
        time.sleep(0.1)


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def leaked_a_minute(held, began, ended):
    inside = [(t, n) for t, n in held if began <= t <= ended]
    (t0, n0), (t1, n1) = inside[0], inside[-1]
    return (n1 - n0) / (t1 - t0) * 60


def utc(seconds):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def judge(name, answer, truth):
    """Whether the first row is the leak, and its interval holds the truth."""
    rows = answer["rows"]
    print("%s: %d moments, %d places, %d steady; true rate %.3f MiB/min" %
          (name, len(answer["times"]), answer["rows_total"], answer["rows_steady"], truth / MIB))
    for i, row in enumerate(rows[:5]):
        rate = {k: v / 60 / MIB for k, v in row["rate"].items()}
        print("  %d. %-9s %.3f MiB/min (%.3f to %.3f), p %.2g  %s" % (i + 1, row["shape"], rate["value"], rate["low"], rate["high"],
              row["p_value"], " < ".join(f["name"] for f in row["frames"][:8])))
    first = any(f["name"] == PLANTED for f in rows[0]["frames"]) if rows else False
    holds = first and rows[0]["rate"]["low"] / 60 <= truth <= rows[0]["rate"]["high"] / 60
    print("  the leak is %sfirst, its interval %s the true rate" % ("" if first else "NOT ", "holds" if holds else "DOES NOT hold"))
    return holds


def main():
    heapgauge = os.path.abspath(os.path.join(sys.argv[1], "src/cli/heapgauge"))
    minutes, leak_mib, churn_mib = (float(sys.argv[i]) if len(sys.argv) > i else d for i, d in ((2, 10), (3, 1), (4, 100)))
    folder = tempfile.mkdtemp(prefix="heapgauge-leak-")
    agent, path, log = (os.path.join(folder, name) for name in ("agent", "redis", "log"))
    processes = []

    def start(*words):
        with open(log, "ab") as out:
            processes.append(subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out))
    try:
        start(heapgauge, "run", "-q", "--every", "0", "--dir", folder + "/dumps", "--listen", "unix:" + agent, "--",
              "redis-server", "--port", "0", "--unixsocket", path, "--save", "")
        wait_for(lambda: os.path.exists(agent) and os.path.exists(path), "redis-server under heapgauge run")
        store = os.path.join(folder, "heapgauge.db")
        start(heapgauge, "record", "--listen", "127.0.0.1:0", "--store", store, "--interval", "10s", "unix:" + agent)
        wait_for(lambda: b"http://" in open(log, "rb").read(), "heapgauge record")
        url = "http://" + open(log, "rb").read().split(b"http://")[1].split()[0].decode().rstrip("/")
        done = {"churned": 0, "leaked": 0, "held": []}
        until = time.monotonic() + minutes * 60
        threads = [threading.Thread(target=churn, args=(path, churn_mib * MIB, until, done)),
                   threading.Thread(target=leak, args=(path, leak_mib * MIB, until, done))]
        began = time.time()
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        ended = time.time()
        print("churned %.1f MiB/min" % (done["churned"] / MIB / (ended - began) * 60))
        truth = leaked_a_minute(done["held"], began, ended)
        query = urllib.parse.urlencode({"from": utc(began), "to": utc(ended)})
        with urllib.request.urlopen(url + "/api/v1/leaks?" + query, timeout=60) as answer:
            good = judge("/api/v1/leaks", json.load(answer), truth)
        end(processes[1])
        command = subprocess.run([heapgauge, "leaks", "--json", "store:%s?%s" % (store, query)], check=False, capture_output=True, text=True)
        if command.returncode:
            sys.exit("leak: heapgauge leaks: " + command.stderr)
        good = judge("heapgauge leaks", json.loads(command.stdout), truth) and good
    finally:
        for process in reversed(processes):
            end(process)
        if "KEEP" in os.environ:
            print("kept: " + folder)
        else:
            shutil.rmtree(folder, ignore_errors=True)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
