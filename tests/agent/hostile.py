#!/usr/bin/env python3
"""
A thousand hostile connections to the agent in a program that is at work, while a good client keeps asking: hostile.py HOST COUNT_MALLOC.
Every good request has to be answered 200, if need be after 429 and as long a wait as that asked for; and at the end the
program is what it was: descriptors, threads, memory, sampling, and not one malloc by a thread of ours. HEAPGAUGE_HOSTILE_SECONDS: how long (20).
"""
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

from harness import Host, ask, check, done, note

CONNECTIONS = 1000
TOKEN = "0123456789abcdef0123456789abcdef"
GOOD = {"Authorization": "Bearer " + TOKEN}
HEAD = "Host: localhost\r\nAuthorization: Bearer %s\r\n" % TOKEN


def request(what, headers=HEAD, body=b""):
    return ("%s HTTP/1.1\r\n%s\r\n" % (what, headers)).encode() + body


class Hostile:
    """Clients that are generators, and yield whenever they wait."""

    def __init__(self, port, seed):
        self.port = port
        self.random = random.Random(seed)
        self.answers = {}

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            yield

    def open(self):
        while True:
            s = socket.socket()
            s.setblocking(False)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            try:
                s.connect(("127.0.0.1", self.port))
            except BlockingIOError:
                pass
            except OSError:
                s.close()
                yield from self.wait(0.05)
                continue
            return s

    def send(self, s, data, piece=1 << 16, pause=0.0):
        while data:
            try:
                data = data[s.send(data[:piece]):]
            except BlockingIOError:
                pass
            yield from self.wait(pause)
            yield

    def read(self, s, seconds):
        until, got = time.monotonic() + seconds, b""
        while time.monotonic() < until:
            try:
                part = s.recv(1 << 16)
                if not part:
                    break
                got = (got + part)[:64]
            except BlockingIOError:
                pass
            yield
        code = got[9:12].decode("latin-1") if got else "none"
        self.answers[code] = self.answers.get(code, 0) + 1

    def live(self, act):
        while True:
            s = yield from self.open()
            try:
                yield from act(s)
                if self.random.random() < 0.3:
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            except OSError:
                pass
            s.close()
            yield

    # --- what they do ---

    def silent(self, s):
        yield from self.read(s, 30)

    def slow(self, s):
        yield from self.send(s, request("GET /debug/pprof/heap", HEAD + "X: " + "y" * 3000 + "\r\n"), 1, 0.05)
        yield from self.read(s, 1)

    def garbage(self, s):
        yield from self.send(s, self.random.randbytes(self.random.choice((1, 100, 10000))))
        yield from self.read(s, 5)

    def half_open(self, s):
        whole = request("GET /debug/pprof/heap?seconds=30")
        yield from self.send(s, whole[:self.random.randrange(len(whole))])
        s.shutdown(socket.SHUT_WR)
        yield from self.read(s, 5)

    def huge(self, s):
        yield from self.send(s, self.random.choice((request("GET /" + "a" * 300000), request("GET /debug/pprof/heap?" + "gc=1&" * 50000),
                                                    request("GET /debug/pprof/symbol?" + "0x10+" * 50000),
                                                    request("GET /metrics", HEAD + "X: y\r\n" * 9000))))
        yield from self.read(s, 5)

    def wrong(self, s):
        yield from self.send(s, self.random.choice((
            request("GET /debug/pprof/heap", "Host: localhost\r\n"),
            request("GET /debug/pprof/heap", HEAD.replace(TOKEN, "%032x" % self.random.getrandbits(128))),
            request("GET /debug/pprof/heap", HEAD.replace("localhost", "evil.example")),
            request("GET /debug/pprof/heap", HEAD + "Origin: http://evil.example\r\n"),
            request("POST /heapgauge/activate", HEAD + "Content-Length: 5\r\n", b"hello"),
            request("POST /heapgauge/activate", HEAD + "Transfer-Encoding: chunked\r\n"),
            request("GET /debug/pprof/heap?seconds=4000"), request("GET /debug/pprof/heap?format=../../etc/passwd"),
            request("GET /debug/pprof/survivors?activate=-1"), request("POST /heapgauge/reset?lg_sample=64"))))
        yield from self.read(s, 5)

    def never_reads(self, s):
        """Has the token, asks for much, and leaves it there."""
        yield from self.send(s, request("GET /debug/pprof/heap?format=jeheap"))
        yield from self.wait(20)

    def never_leaves(self, s):
        yield from self.send(s, request(self.random.choice(("GET /debug/pprof/heap?seconds=3", "GET /debug/pprof/survivors?activate=2&wait=2",
                                                            "GET /debug/pprof/heap?seconds=30"))))
        yield from self.wait(self.random.choice((5, 40)))

    def leaves(self, s):
        yield from self.send(s, request(self.random.choice(("GET /debug/pprof/heap?seconds=30", "GET /debug/pprof/survivors",
                                                            "GET /debug/pprof/heap?format=jeheap", "GET /debug/pprof/heap?format=text"))))
        yield from self.wait(self.random.random() * 0.1)

    def symbols(self, s):
        body = b"+".join(b"0x%x" % (0x7f0000000000 + self.random.getrandbits(40)) for _ in range(self.random.choice((1, 1000, 30000))))
        body = self.random.choice((body, body, body[:len(body) // 2], b"0xzz" + body))
        length = self.random.choice((len(body), len(body), len(body) + 1000, 3 << 20))
        yield from self.send(s, request("POST /pprof/symbol", HEAD + "Content-Length: %d\r\n" % length, body))
        yield from self.read(s, 5)

    def all(self, n):
        kinds = [self.silent] * 6 + [self.slow] * 4 + [self.garbage] * 2 + [self.half_open] * 2 + [self.huge] * 2 + [self.wrong] * 3 + \
                [self.never_reads] + [self.symbols]
        # These cost the program's time, not only ours: as many as a few bad neighbours have.
        few = [self.never_leaves] * 3 + [self.leaves] * 3
        return [self.live(few[i] if i < len(few) else kinds[i % len(kinds)]) for i in range(n)]


def be_hostile(port, seed, n):
    """Until standard input ends."""
    h = Hostile(port, seed)
    clients = h.all(n)
    os.set_blocking(0, False)
    while True:
        try:
            if os.read(0, 1) == b"":
                break
        except BlockingIOError:
            pass
        for c in clients:
            next(c)
        time.sleep(0.005)
    print(dict(sorted(h.answers.items())))


# --- the good client ---

ASKED = (("GET", "/debug/pprof/heap", b"\x1f\x8b"), ("GET", "/heapgauge/status", b"{"), ("GET", "/pprof/heap", b"heap_v2/"),
         ("GET", "/metrics", b"# HELP"), ("POST", "/pprof/symbol", b""), ("GET", "/debug/pprof/allocs", b"\x1f\x8b"))


def ask_until_200(url, i):
    """(whether it was right, how often it was 429)."""
    method, path, start = ASKED[i % len(ASKED)]
    body = "0x1000+0x2000" if method == "POST" else None
    for refused in range(60):
        code, headers, answer = ask(url, path, method, body, GOOD, 30)
        if code != 429:
            return code == 200 and answer.startswith(start), refused, (path, code, answer[:100])
        wait = headers["Retry-After"]
        if not wait or int(wait) > 5:
            return False, refused, (path, code, "Retry-After", wait)
        time.sleep(int(wait))
    return False, refused, (path, code, "again and again")


def be_good(url, seconds):
    profiles, others, wrong, refusals = [], [], [], 0
    until, i = time.monotonic() + seconds, 0
    while time.monotonic() < until or i < 30:
        begin = time.monotonic()
        try:
            good, refused, why = ask_until_200(url, i)
        except OSError as error:
            good, refused, why = False, 0, repr(error)
        (profiles if "/heap" in ASKED[i % len(ASKED)][1] or "allocs" in ASKED[i % len(ASKED)][1] else others).append(time.monotonic() - begin)
        refusals += refused
        if not good:
            wrong.append(why)
        i += 1
        time.sleep(0.01)
    return sorted(profiles), sorted(others), wrong, refusals


def say(what, times):
    n = len(times)
    note("%s: %d answered, p50 %.1f ms, p99 %.1f ms, slowest %.1f ms" % (what, n, times[n // 2] * 1e3, times[n * 99 // 100] * 1e3, times[-1] * 1e3))


class Figures:
    def __init__(self, h):
        self.fds, self.threads, self.private = h.tell("fds"), h.tell("threads"), int(h.tell("rss").split()[1])
        self.active = h.tell("status").split()[3]

    def __repr__(self):
        return "%s descriptors, %s threads, %d KiB, active %s" % (self.fds, self.threads, self.private >> 10, self.active)


def at_rest(h):
    """Nothing has come or gone for three seconds: an answered connection is held for two."""
    before, since = Figures(h), time.monotonic()
    while time.monotonic() - since < 3:
        time.sleep(0.1)
        now = Figures(h)
        if (now.fds, now.threads) != (before.fds, before.threads):
            before, since = now, time.monotonic()
    return settled(h, before)


def settled(h, before):
    """What it is when it is at rest: those who linger have gone."""
    for _ in range(100):
        now = Figures(h)
        if now.fds == before.fds and now.threads == before.threads and now.private <= before.private + (512 << 10):
            break
        time.sleep(0.1)
    return now


def siege(h, url, seconds):
    hostile = [subprocess.Popen([sys.executable, __file__, "--hostile", url.rsplit(":", 1)[1], str(k), str(CONNECTIONS // 2)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for k in range(2)]
    time.sleep(1)
    work = threading.Thread(target=lambda: h.tell("churn %d" % (seconds * 1000)))
    work.start()
    results = be_good(url, seconds)
    work.join()
    seen = [p.communicate()[0].strip() for p in hostile]
    for text in seen:
        note("hostile clients saw " + text)
    check(all(p.returncode == 0 for p in hostile) and all("'401'" in text and "'400'" in text and "'200'" in text for text in seen),
          "they were at it, all the time", seen)
    return results


def main(host, count_malloc):
    seconds = float(os.environ.get("HEAPGAUGE_HOSTILE_SECONDS", "20"))
    scratch = tempfile.mkdtemp()
    token, counts = os.path.join(scratch, "token"), os.path.join(scratch, "counts")
    with open(token, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as f:
        f.write(TOKEN)
    conf = "prof:true,prof_active:false,lg_prof_sample:10,dirty_decay_ms:0,muzzy_decay_ms:0"
    with Host(host, conf, preload=[count_malloc, "libjemalloc.so.2"], env={"COUNT_MALLOC": counts}) as h:
        url = h.start("127.0.0.1:0", "token_file=" + token)
        h.tell("activate")
        h.tell("leak 3000 4096")
        h.tell("stacks 5000 512")
        h.tell("churn 500")
        h.tell("deactivate")
        for i in range(30):
            ask_until_200(url, i)
        before = at_rest(h)
        profiles, others, wrong, refusals = siege(h, url, seconds)
        say("good requests for profiles", profiles)
        say("good requests for what is at hand", others)
        note("429 before 200: %d times" % refusals)
        check(not wrong, "all %d good requests were answered" % (len(profiles) + len(others)), wrong[:5])
        check(others[len(others) // 2] < 1, "without waiting long")
        after = settled(h, before)
        note("before: %r; after: %r" % (before, after))
        check(after.fds == before.fds and after.threads == before.threads, "descriptors and threads are as many as before")
        check(after.private <= before.private + (512 << 10), "memory is what it was, to 512 KiB: %+d KiB" %
              ((after.private - before.private) >> 10))
        check(after.active == before.active == "0", "sampling is off, as before")
        with open(counts) as f:
            ours, all_calls = (int(word) for word in f.read().split())
        check(ours == 0 and all_calls > 10000, "no thread of ours asked malloc for anything; the program did, %d times" % all_calls, ours)
        code, _, body = ask(url, "/metrics", headers=GOOD)
        note("; ".join(line for line in body.decode().splitlines() if line.startswith("heapgauge_")))
    shutil.rmtree(scratch)
    return done()


if sys.argv[1] == "--hostile":
    be_hostile(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
else:
    sys.exit(main(*sys.argv[1:3]))
