#!/usr/bin/env python3
"""
A thousand hostile connections of every kind, while a good client keeps asking: hostile_test.py HTTP_SERVE. Every good answer has to
come, and the server's descriptors and memory have to be what they were. HEAPGAUGE_HOSTILE_SECONDS: how long (12).
"""
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import tap  # noqa: E402
from server_client import TOKEN, Server, body, head, header, read_all, status  # noqa: E402

CONNECTIONS = 1000
LEAST = 40              # good requests, however slow the machine is
AUTHORIZED = "Authorization: Bearer %s\r\n" % TOKEN


# --- hostile clients: generators that yield whenever they wait ---

class Hostile:
    def __init__(self, address, seed):
        self.address = address
        self.random = random.Random(seed)
        self.answers = {}

    def open(self):
        while True:
            s = socket.socket(socket.AF_UNIX if isinstance(self.address, str) else socket.AF_INET)
            s.setblocking(False)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            try:
                s.connect(self.address)
            except BlockingIOError:
                if isinstance(self.address, str):       # its queue is full
                    s.close()
                    yield from self.wait(0.02)
                    continue
            except OSError:
                s.close()
                yield from self.wait(0.05)
                continue
            return s

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            yield

    def send(self, s, data, piece=1 << 16, pause=0.0):
        """False when the other side has had enough."""
        while data:
            try:
                n = s.send(data[:piece])
                data = data[n:]
            except BlockingIOError:
                pass
            except OSError:
                return False
            if pause:
                yield from self.wait(pause)
            else:
                yield
        return True

    def drain(self, s, seconds):
        """Reads until the end, or for so long; the status is counted."""
        until = time.monotonic() + seconds
        got = b""
        while time.monotonic() < until:
            try:
                part = s.recv(1 << 16)
                if not part:
                    break
                got = (got + part)[:64]
            except BlockingIOError:
                pass
            except OSError:
                break
            yield
        code = got[9:12].decode("latin-1") if got else "none"
        self.answers[code] = self.answers.get(code, 0) + 1

    def close(self, s):
        if self.random.random() < 0.3:
            try:
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            except OSError:
                pass
        s.close()

    def live(self, act):
        while True:
            s = yield from self.open()
            try:
                yield from act(s)
            except OSError:
                pass
            self.close(s)
            yield

    def silent(self, s):
        yield from self.drain(s, 30)

    def slow(self, s):
        yield from self.send(s, head("/hello", headers=AUTHORIZED + "X: " + "y" * 3000 + "\r\n"), 1, 0.05)
        yield from self.drain(s, 1)

    def garbage(self, s):
        yield from self.send(s, self.random.randbytes(self.random.choice((1, 100, 10000))))
        yield from self.drain(s, 5)

    def half_open(self, s):
        whole = head("/hello", headers=AUTHORIZED)
        yield from self.send(s, whole[:self.random.randrange(len(whole) + 1)])
        s.shutdown(socket.SHUT_WR)
        yield from self.drain(s, 5)

    def huge(self, s):
        yield from self.send(s, self.random.choice((b"GET /" + b"a" * 300000, b"GET /hello?" + b"x=1&" * 50000,
                                                    head("/hello", headers="X: y\r\n" * 9000))))
        yield from self.drain(s, 5)

    def wrong(self, s):
        yield from self.send(s, self.random.choice((
            head("/hello"), head("/hello", headers="Authorization: Bearer %032x\r\n" % self.random.getrandbits(128)),
            head("/hello", headers=AUTHORIZED + "Origin: http://evil.example\r\n"),
            head("/hello", headers=AUTHORIZED).replace(b"localhost", b"evil.example"),
            head("/hello", headers=AUTHORIZED + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"))))
        yield from self.drain(s, 5)

    def pipelined(self, s):
        yield from self.send(s, head("/hello", headers=AUTHORIZED) * 200)
        yield from self.drain(s, 5)

    def stalled(self, s):
        """Has the token, and never reads the 100 MiB it asks for."""
        yield from self.send(s, head("/big", headers=AUTHORIZED))
        yield from self.wait(20)

    def half_body(self, s):
        yield from self.send(s, head("/upload", "POST", AUTHORIZED + "Content-Length: 1000000\r\n") + b"x" * self.random.randrange(9999))
        yield from self.drain(s, 30)

    def vanishing(self, s):
        yield from self.send(s, head("/park", headers=AUTHORIZED))
        yield from self.wait(self.random.random() * 0.05)

    def hit_and_run(self, s):
        yield from self.send(s, head("/big", headers=AUTHORIZED))

    def all(self, n):
        kinds = [self.silent] * 5 + [self.slow] * 4 + [self.garbage] * 2 + [self.half_open] * 2 + [self.huge] * 2 + [self.wrong] * 3 + \
                [self.pipelined, self.stalled, self.half_body, self.half_body, self.hit_and_run]
        # Parked ones keep their places, so there are few.
        return [self.live(kinds[i % len(kinds)]) for i in range(n - 4)] + [self.live(self.vanishing) for _ in range(4)]


def be_hostile(address, seed, n):
    """Until standard input ends."""
    h = Hostile(address, seed)
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
    print(dict(sorted(h.answers.items())))


# --- the good client ---

def good_request(s, i):
    """The answer's first lines when it is wrong, None when it is right."""
    kind = i % 10
    if kind == 3:
        data = b"x" * 100000
        a = s.ask(head("/upload", "POST", AUTHORIZED + "Content-Length: %d\r\n" % len(data)) + data)
        good = body(a).startswith(b"100000 ")
    elif kind == 5:
        a = s.get("/park?ms=5", headers=AUTHORIZED)
        good = body(a) == b"parked\n"
    elif kind == 7:
        a = s.get("/hello", "HEAD", headers=AUTHORIZED)
        good = a.endswith(b"\r\n\r\n")
    elif i % 200 == 9:
        with s.connect() as c:
            c.sendall(head("/big", headers=AUTHORIZED))
            n = 0
            while True:
                part = c.recv(1 << 20)
                if not part:
                    break
                n += len(part)
        return None if n > 100 << 20 else b"%d bytes" % n
    else:
        a = s.get("/echo?text=%d" % i, headers=AUTHORIZED)
        good = body(a) == b"%d" % i
    return None if good and status(a) == 200 and header(a, "Connection") == "close" else a[:200]


def be_good(s, seconds):
    """How long the answers took (those of 100 MiB apart), what was wrong, and the most descriptors seen."""
    times, large, wrong, most_descriptors, i = [], [], [], 0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end or i < LEAST:
        started = time.monotonic()
        try:
            answer = good_request(s, i)
        except OSError as e:
            answer = repr(e)
        except IndexError:
            answer = "an answer without an end"
        (large if i % 200 == 9 else times).append(time.monotonic() - started)
        if answer is not None:
            wrong.append((i, answer))
        most_descriptors = max(most_descriptors, s.descriptors())
        i += 1
        time.sleep(0.002)
    return sorted(times), sorted(large), wrong, most_descriptors


def siege(program, listen, seconds, what):
    s = Server(program, listen, "token=" + TOKEN)
    for i in range(20):
        good_request(s, i)
    time.sleep(0.1)
    descriptors, rss = s.descriptors(), s.rss_kib()
    address = s.path or ["127.0.0.1", s.port]
    hostile = [subprocess.Popen([sys.executable, __file__, "--hostile", str(address if s.path else s.port), str(k), str(CONNECTIONS // 2)],
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for k in range(2)]
    time.sleep(1)
    times, large, wrong, most = be_good(s, seconds)
    cpu = s.cpu_s()
    for h in hostile:
        out, _ = h.communicate()
        tap.note("hostile clients saw " + out.strip())
        tap.check(h.returncode == 0 and "'401'" in out and "'400'" in out, "%s: they were at it" % what, out)
    n = len(times)
    tap.check(not wrong, "%s: all %d good requests were answered" % (what, n + len(large)), wrong[:5])
    tap.note("good requests: p50 %.1f ms, p99 %.1f ms, slowest %.1f ms; 100 MiB in %.1f ms at most" %
             (times[n // 2] * 1e3, times[n * 99 // 100] * 1e3, times[-1] * 1e3, large[-1] * 1e3 if large else 0))
    tap.check(times[n // 2] < 1 and times[-1] < 15, "%s: without waiting long" % what, times[-5:])
    time.sleep(3)           # those who linger
    state = s.state(AUTHORIZED)
    tap.note("server: %s, CPU %.1f s, at most %d descriptors" % (state, cpu, most))
    tap.check(s.descriptors() == descriptors, "%s: as many descriptors as before" % what, (descriptors, s.descriptors()))
    tap.check(most <= descriptors + 2 * 64, "%s: never more than its places need" % what, most)
    # A sanitizer remembers what it has seen in memory of its own.
    more = 512 if not os.environ.get("SANITIZED") else 16384
    tap.check(s.rss_kib() <= rss + more, "%s: as much memory as before (%+d KiB)" % (what, s.rss_kib() - rss))
    tap.check(state["engaged"] == state["over"], "%s: every exchange was ended" % what, state)
    last, code = s.stop()
    tap.check(code == 0 and last.startswith("allocations 0 "), "%s: nothing was allocated" % what, last)


def main():
    seconds = float(os.environ.get("HEAPGAUGE_HOSTILE_SECONDS", "12"))
    siege(sys.argv[1], "127.0.0.1:0", seconds, "loopback")
    with tempfile.TemporaryDirectory(prefix="heapgauge-http-") as folder:
        siege(sys.argv[1], "unix:%s/socket" % folder, seconds / 3, "unix socket")
    return tap.done()


if sys.argv[1] == "--hostile":
    be_hostile(("127.0.0.1", int(sys.argv[2])) if sys.argv[2].isdigit() else sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
else:
    sys.exit(main())
