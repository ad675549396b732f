#!/usr/bin/env python3
"""record.py HEAPGAUGE [TARGETS [SECONDS [STACKS]]]: a recorder with many simulated targets every 15 s, while one client asks what the page asks.

Targets are two small servers under many labels, which answer from memory, and a fifth of each profile's stacks changes from one answer to the
next. Prints lateness, memory and CPU of the recorder, how long the page's questions took, and what the rest of the machine did.
"""
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

program = sys.argv[1]
n_targets = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
seconds = int(sys.argv[3]) if len(sys.argv) > 3 else 180
n_stacks = int(sys.argv[4]) if len(sys.argv) > 4 else 2000
VERSIONS = 8            # different answers, handed round


def dump(version):
    """jemalloc's text, made once. Stacks are those of one program; a fifth of the counts is of this version."""
    rng, own = random.Random(1), random.Random(version)
    lines = ["heap_v2/524288\n  t*: 10: 10000 [0: 0]\n"]
    # Stacks share their outer frames with another one, as those of a program do.
    stacks = [[0x55d0c0001000]]
    while len(stacks) <= n_stacks:
        before = stacks[rng.randrange(len(stacks))]
        stacks.append([0x55d0c0001000 + rng.randrange(3000) * 64 for _ in range(rng.randrange(1, 6))] + before[-rng.randrange(1, 24):])
    for stack in stacks[1:]:
        frames = " ".join("0x%x" % a for a in stack)
        n = rng.randrange(1, 200)
        size = rng.choice((32, 64, 512, 4096, 65536))
        if own.random() < 0.2:
            n += own.randrange(1, 50)
        lines.append("@ %s\n  t*: %d: %d [0: 0]\n  t0: %d: %d [0: 0]\n" % (frames, n, n * size, n, n * size))
    lines.append("\nMAPPED_LIBRARIES:\n55d0c0000000-55d0c0200000 r-xp 00000000 00:00 1 /bin/app\n")
    return "".join(lines).encode()


def as_pprof(folder, text):
    path = os.path.join(folder, "x.heap")
    with open(path, "wb") as f:
        f.write(text)
    out = os.path.join(folder, "x.pb.gz")
    subprocess.run([program, "convert", "--to", "pprof", "--offline", "-o", out, path], check=True, capture_output=True)
    with open(out, "rb") as f:
        return f.read()


def serve(listener, answers):
    """One process: reads a request, answers it, closes. Targets are told apart by their labels, not here."""
    turn = 0
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n"
    metrics = b"process_resident_memory_bytes 1e8\nprocess_start_time_seconds 1700000000\njemalloc_allocated_bytes 9e7\n"
    while True:
        connection, _ = listener.accept()
        try:
            request = connection.recv(4096)
            if b"/metrics" in request[:100]:
                connection.sendall(head % (b"text/plain", len(metrics)) + metrics)
            else:
                turn += 1
                body = answers[turn % VERSIONS]
                connection.sendall(head % (b"application/octet-stream", len(body)) + body)
        except OSError:
            pass
        connection.close()


def questions(began):
    """What the page asks of a target and of the fleet now: (name, route, parameters)."""
    now = int(time.time() * 1000)
    lately = max(now - 900000, began)
    half = (lately + now) // 2
    one, some = {"match": '{instance="t3"}', "from": lately, "to": now}, {"match": '{instance=~"t1.?"}', "from": lately, "to": now}
    return [("series", "series", {}), ("totals of one", "totals", one), ("totals of all", "totals", {"from": lately, "to": now, "limit": 20}),
            ("page at a moment", "page", {"match": one["match"], "at": now - 20000}), ("page, average", "page", one),
            ("page, average of 11", "page", some), ("page, two ranges", "page", dict(one, base_from=lately, base_to=half, **{"from": half})),
            ("page, growth", "page", dict(one, view="growth")), ("leaks", "leaks", one),
            ("pprof at a moment", "profile", {"match": one["match"], "at": now - 20000})]


def rank(sorted_times, part):
    return sorted_times[min(len(sorted_times) - 1, int(len(sorted_times) * part))] * 1000


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def machine_seconds():
    with open("/proc/stat") as f:
        fields = [int(x) for x in f.readline().split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


def main():
    folder = tempfile.mkdtemp(prefix="heapgauge-bench-")
    answers = [as_pprof(folder, dump(v)) for v in range(VERSIONS)]
    children, ports = [], []
    for _ in range(2):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        ports.append(listener.getsockname()[1])
        pid = os.fork()
        if pid == 0:
            serve(listener, answers)
        listener.close()
        children.append(pid)
    config = os.path.join(folder, "c.yml")
    with open(config, "w") as f:
        f.write("global: {scrape_interval: 15s}\nscrape_configs:\n- job_name: bench\n  static_configs:\n")
        for i in range(n_targets):
            f.write("  - {targets: ['127.0.0.1:%d'], labels: {instance: t%d}}\n" % (ports[i % 2], i))
    r = subprocess.Popen([program, "record", "--listen", "127.0.0.1:0", "--store", os.path.join(folder, "s.db"), "-c", config],
                         stdout=subprocess.PIPE)
    url = r.stdout.readline().decode().strip()
    most, rows, times = 0, [], {}

    def metrics():
        with urllib.request.urlopen(url + "/metrics", timeout=30) as a:
            return {n: float(v) for n, v in (x.rsplit(" ", 1) for x in a.read().decode().splitlines() if x and x[0] != "#")}

    try:
        began, cpu, machine = time.monotonic(), cpu_seconds(r.pid), machine_seconds()
        began_ms, turn = int(time.time() * 1000), 0
        while time.monotonic() - began < seconds:
            time.sleep(0.5)
            if time.monotonic() - began < 60:
                continue # there is nothing to look at yet
            if turn % 10 == 0:
                m = metrics()
                most = max(most, m["process_resident_memory_bytes"])
                rows.append((time.monotonic() - began, m["process_resident_memory_bytes"]))
            asked = questions(began_ms)
            name, route, parameters = asked[turn % len(asked)]
            turn += 1
            at = time.monotonic()
            try:
                with urllib.request.urlopen("%s/api/v1/%s?%s" % (url, route, urllib.parse.urlencode(parameters)), timeout=30) as a:
                    a.read()
            except urllib.error.HTTPError as why:
                sys.exit("%s: %s %s" % (name, why, why.read().decode(errors="replace")))
            times.setdefault(name, []).append(time.monotonic() - at)
        took, cpu, machine = time.monotonic() - began, cpu_seconds(r.pid) - cpu, machine_seconds() - machine
        m = metrics()
    finally:
        r.terminate()
        r.wait()
        for pid in children:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
        size = sum(os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder) if n.startswith("s.db"))
        shutil.rmtree(folder, ignore_errors=True)
    failures = {n: v for n, v in m.items() if n.startswith("heapgauge_scrape_failures_total") and v}
    half = [x[1] for x in rows if x[0] > took / 2]
    print("%d targets every 15 s, %d stacks (%.0f KB gzipped pprof), for %.0f s" % (n_targets, n_stacks, len(answers[0]) / 1e3, took))
    print("scrapes            %d (%.1f/s), stored %d, samples %.1f M" % (m["heapgauge_scrapes_total"], m["heapgauge_scrapes_total"] / took,
                                                                        m["heapgauge_profiles_stored_total"], m["heapgauge_samples_stored_total"] / 1e6))
    print("failures           %s" % (failures or "none"))
    print("latest beginning   %.3f s after its turn; turns missed %d" % (m["heapgauge_scrape_late_seconds_max"], m["heapgauge_missed_turns_total"]))
    print("recorder's RSS     %.0f MB at most, %.0f to %.0f MB in the second half" % (most / 1e6, min(half) / 1e6, max(half) / 1e6))
    print("recorder's CPU     %.1f %% of one core (%.2f ms a scrape)" % (100 * cpu / took, 1000 * cpu / max(1, m["heapgauge_scrapes_total"])))
    print("machine            %.1f of %d cores busy in all, load %.1f" % (machine / took, os.cpu_count(), os.getloadavg()[0]))
    print("store              %.1f MB" % (size / 1e6))
    print("%-20s %6s %10s %8s %9s" % ("question", "n", "median ms", "p99 ms", "worst ms"))
    every = sorted(t for some in times.values() for t in some)
    for name, some in list(times.items()) + [("all", every)]:
        some = sorted(some)
        print("%-20s %6d %10.1f %8.1f %9.1f" % (name, len(some), rank(some, 0.5), rank(some, 0.99), some[-1] * 1000))


main()
