#!/usr/bin/env python3
"""The server as its clients see it, over real sockets: server_test.py HTTP_SERVE."""
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import tap  # noqa: E402
from server_client import TOKEN, Server, body, head, header, read_all, status  # noqa: E402

BIG = 100 << 20


def wait_for(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def expect(answer, wanted, what):
    """An answer of that status that is whole and was not cut by a reset."""
    good = status(answer) == wanted and not answer.endswith(b"<reset>")
    if good and b"\r\n\r\n" in answer:
        good = int(header(answer, "Content-Length")) == len(body(answer))
    tap.check(good, what, answer[:300])


def plain_requests(s):
    a = s.get("/hello")
    expect(a, 200, "a GET")
    tap.check(body(a) == b"hello\n", "its body")
    names = [line.split(b":")[0] for line in a.split(b"\r\n\r\n")[0].split(b"\r\n")[1:]]
    tap.check(names == [b"Content-Type", b"Content-Length", b"Connection", b"Cache-Control", b"X-Content-Type-Options",
                        b"Content-Security-Policy"], "its headers", names)
    tap.check(header(a, "Connection") == "close" and header(a, "X-Content-Type-Options") == "nosniff" and
              header(a, "Cache-Control") == "no-store" and
              header(a, "Content-Security-Policy").startswith("default-src 'none'; "), "what they say", a)
    h = s.get("/hello", "HEAD")
    tap.check(h == a.split(b"\r\n\r\n")[0] + b"\r\n\r\n", "HEAD is the same without the body", h)
    expect(s.get("/hello", version="1.0"), 200, "HTTP/1.0")
    expect(s.ask(b"GET /hello HTTP/1.0\r\n\r\n"), 400 if not s.path else 200, "HTTP/1.0 without Host")
    e = s.get("/echo?text=a%20b%26c")
    tap.check(body(e) == b"a b&c" and header(e, "X-Echo") == "yes", "a parameter, and a header of the handler", e)
    expect(s.get("/echo?text=a&text=b"), 400, "a parameter twice")
    u = s.get("/echo?txt=1")
    tap.check(status(u) == 400 and b"'txt'" in body(u), "an unknown parameter is named", u)
    expect(s.get("/hello?a"), 400, "a parameter where there are none")
    tap.check(body(s.get("/raw?0x1+0x2")) == b"0x1+0x2\n", "a query for the handler alone")
    for path in "/", "/hell", "/hello/", "/HELLO", "/hell%6f", "//hello", "/../hello":
        expect(s.get(path), 404, "nothing at " + path)
    p = s.get("/hello", "POST", "Content-Length: 0\r\n")
    tap.check(status(p) == 405 and header(p, "Allow") == "GET, HEAD", "POST where it is not taken", p)
    p = s.get("/act")
    tap.check(status(p) == 405 and header(p, "Allow") == "POST", "GET where it is not taken", p)
    tap.check(status(s.get("/act", "HEAD")) == 405, "HEAD where it is not taken")
    p = s.get("/hello", "PUT")
    tap.check(status(p) == 405 and header(p, "Allow") == "GET, HEAD, POST", "PUT", p)
    expect(s.get("/act", "POST"), 200, "a POST without a body")
    expect(s.get("/forget"), 500, "a handler that forgets to answer")
    tap.check(body(s.get("/twice")) == b"first\n", "the first of several answers counts")
    expect(s.get("/too-long"), 500, "an answer that is too long")
    a = s.get("/longest")
    tap.check(body(a) == b"x" * 4096, "the longest short answer", len(a))


def cut_in_pieces(s):
    data = head("/echo?text=pieces", headers="X-A: b\r\n")
    with s.connect() as c:
        c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1) if not s.path else None
        for i in range(len(data)):
            c.sendall(data[i:i + 1])
            time.sleep(0.001)
        tap.check(body(read_all(c)) == b"pieces", "a head byte by byte")
    a = s.ask(head("/hello") * 3)
    tap.check(a.count(b"HTTP/1.1 ") == 1 and not a.endswith(b"<reset>"), "pipelined: the first is answered, then it closes", a)
    a = s.ask(head("/big", "HEAD") + b"x" * 100000)
    tap.check(status(a) == 200 and not a.endswith(b"<reset>"), "rubbish behind a request does not destroy the answer", a[:80])


def bad_heads(s):
    for data, wanted, what in (
            (b"\x16\x03\x01\x02\x00\x01\x00\x01", 400, "TLS"),
            (b"\0" * 20000, 400, "zeros"),
            (b"GET / HTTP/1.1\nHost: localhost\n\n", 400, "bare newlines"),
            (head("/hello", headers="A: b\r\n c\r\n"), 400, "a folded header"),
            (head("/hello", headers="Host: localhost\r\n"), 400, "two Hosts"),
            (head("/upload", "POST", "Content-Length: 3\r\nContent-Length: 3\r\n") + b"abc", 400, "two Content-Lengths"),
            (head("/upload", "POST", "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n") + b"abc", 400, "CL and TE"),
            (head("/upload", "POST", "Transfer-Encoding: chunked\r\n") + b"1\r\na\r\n0\r\n\r\n", 501, "chunked"),
            (head("http://localhost/hello"), 400, "absolute form"),
            (head("/hello", "BREW"), 501, "BREW"),
            (head("/hello", version="1.2"), 505, "HTTP/1.2"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 501, "HTTP/2"),
            (b"GET /" + b"a" * 8187, 414, "8 KiB of address"),
            (b"GET /" + b"a" * 1000000, 414, "a megabyte of address"),
            (head("/hello", headers="A: " + "b" * 9000 + "\r\n"), 431, "a header of 9 KB"),
            (head("/hello", headers="A: b\r\n" * 100), 431, "a hundred headers"),
            (head("/hello", headers="A: %s\r\n" % ("b" * 20000) * 100), 431, "two megabytes of headers")):
        try:
            expect(s.ask(data), wanted, "%s: %d" % (what, wanted))
        except (BrokenPipeError, ConnectionResetError) as e:
            # What is sent in one go may outlast the time the rest is read; not here.
            tap.check(False, "%s: %d" % (what, wanted), repr(e))
    most = 8192 - len(head("/hello", headers="A: \r\n"))
    expect(s.get("/hello", headers="A: %s\r\n" % ("b" * most)), 200, "a head of exactly 8 KiB")
    expect(s.get("/hello", headers="A: %s\r\n" % ("b" * (most + 1))), 431, "a head of one byte more")
    expect(s.ask(b"GET / HTT", half_close=True), 400, "half a head, then nothing more")
    tap.check(s.ask(b"", half_close=True) == b"", "nothing at all is answered with nothing")


def names_and_pages(s):
    for text, wanted in (("Host: evil.example", 421), ("Host: evil.example:%s" % s.port, 421), ("Host:", 400),
                         ("Host: 127.0.0.1:%s" % s.port, 200), ("Host: [::1]", 200), ("Host: localhost:1", 200)):
        expect(s.ask(("GET /hello HTTP/1.1\r\n%s\r\n\r\n" % text).encode()), wanted, "%s: %d" % (text.replace(str(s.port), "PORT"), wanted))
    for text, wanted in (("Origin: http://evil.example", 403), ("Origin: null", 403), ("Origin: http://localhost", 200),
                         ("Sec-Fetch-Site: cross-site", 403), ("Sec-Fetch-Site: same-origin", 200)):
        expect(s.get("/hello", headers=text + "\r\n"), wanted, "%s: %d" % (text, wanted))
    expect(s.ask(b"GET /nothing HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421, "a foreign name does not learn what is here")


def uploads(s):
    def sum_of(data):
        n = 0
        for b in data:
            n = (n * 31 + b) & 0xffffffff
        return n

    data = bytes(i * i & 0xff for i in range(1 << 20))
    said = b"%d %d\n" % (len(data), sum_of(data))
    length = "Content-Length: %d\r\n" % len(data)
    a = s.ask(head("/upload", "POST", length) + data)
    tap.check(body(a) == said, "a POST of 1 MiB", a)
    with s.connect() as c:
        c.sendall(head("/upload", "POST", length + "Expect: 100-continue\r\n"))
        go_on = c.recv(100)
        tap.check(go_on == b"HTTP/1.1 100 Continue\r\n\r\n", "Expect: 100-continue is told to go on", go_on)
        for i in range(0, len(data), 99991):
            c.sendall(data[i:i + 99991])
        tap.check(body(read_all(c)) == said, "and its body in pieces arrives")
    a = s.ask(head("/upload", "POST", "Content-Length: 3\r\nExpect: 100-continue\r\n") + b"abc")
    tap.check(status(a) == 200, "who expects it but does not wait is not told", a)
    a = s.get("/upload", "POST", "Content-Length: 8388609\r\nExpect: 100-continue\r\n")
    expect(a, 413, "a body that is too large is refused before it is sent")
    expect(s.ask(head("/upload", "POST", "Content-Length: 9000000\r\n") + b"x" * 9000000), 413,
           "and when all of it is sent at once, the answer still arrives")
    expect(s.ask(head("/early", "POST", "Content-Length: 3000000\r\n") + b"x" * 3000000), 400,
           "a handler may refuse in the middle")
    expect(s.ask(head("/act", "POST", "Content-Length: 1\r\n") + b"x"), 413, "a body where there is none")
    expect(s.ask(head("/hello", "GET", "Content-Length: 1\r\n") + b"x"), 413, "a GET with a body")
    expect(s.get("/upload", "POST"), 411, "a POST without a length")
    expect(s.get("/upload", "POST", "Content-Length: 0\r\n"), 200, "a POST of nothing")
    expect(s.get("/upload"), 200, "a GET there")
    expect(s.ask(head("/upload", "POST", "Content-Length: 10\r\n") + b"x", half_close=True), 400, "a body that ends early")
    a = s.ask(head("/upload", "POST", "Content-Length: 3\r\n") + b"abc" + head("/hello"))
    tap.check(body(a).startswith(b"3 ") and a.count(b"HTTP/1.1") == 1, "what follows a body is not part of it", a)


def descriptors(s):
    with s.connect() as c:
        c.sendall(head("/big"))
        n, started = 0, time.monotonic()
        chunk = bytearray(1 << 20)
        first = c.recv(4096)
        at = first.index(b"\r\n\r\n") + 4
        n = len(first) - at
        while True:
            k = c.recv_into(chunk)
            if not k:
                break
            n += k
        tap.check(n == BIG and header(first, "Content-Length") == str(BIG), "100 MiB from a descriptor", n)
        tap.note("%.0f MiB/s" % (n / (1 << 20) / (time.monotonic() - started)))
    h = s.get("/big", "HEAD")
    tap.check(header(h, "Content-Length") == str(BIG) and body(h) == b"", "HEAD of it", h[:200])
    with s.connect() as c:
        c.sendall(head("/cut"))
        n = 0
        while True:
            k = c.recv(1 << 20)
            if not k:
                break
            n += len(k)
        tap.check(BIG < n < BIG + 1000, "a file shorter than promised ends the connection early", n)
    # One that stops reading, while others are served.
    with s.connect(small_buffer=True) as c:
        c.sendall(head("/big"))
        c.recv(1000)
        expect(s.get("/hello"), 200, "others are served while one does not read")
    before = s.state()["over"]
    clients = [s.connect() for _ in range(5)]
    for c in clients:
        c.sendall(head("/big"))
        c.recv(10)
        c.close()
    tap.check(wait_for(lambda: s.state()["over"] >= before + 5), "clients that leave in the middle of an answer are noticed")


def parked(s):
    a = s.get("/park?ms=50")
    tap.check(body(a) == b"parked\n", "an answer from another thread", a)
    a = s.get("/park?ms=50&fd=1")
    tap.check(len(body(a)) == 1000, "a descriptor from another thread", a[:200])
    a = s.get("/park?ms=20", "HEAD")
    tap.check(header(a, "Content-Length") == "7" and body(a) == b"", "HEAD of it", a)
    for version in "1.0", "1.1":
        a = s.ask(head("/park?ms=300", version=version), half_close=True)
        go_on = b"HTTP/1.1 100 Continue\r\n\r\n" if version == "1.1" and not s.path else b""
        tap.check(a.startswith(go_on + b"HTTP/1.1 200 OK") and a.endswith(b"parked\n"),
                  "HTTP/%s: who shuts down his half waits for his answer and gets it" % version, a)
    # Who is gone altogether is noticed.
    before = s.state()["gone"]
    clients = [s.connect() for _ in range(10)]
    for c in clients:
        c.sendall(head("/park?fd=1"))
    time.sleep(0.1)
    started = time.monotonic()
    for i, c in enumerate(clients):
        if i % 2:
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        c.close()
    good = wait_for(lambda: s.state()["gone"] == before + 10)
    tap.check(good, "who closes or resets while parked is noticed", s.state())
    tap.note("after %.0f ms" % ((time.monotonic() - started) * 1000))
    # Also one that was thought to be still reading.
    c = s.connect()
    c.sendall(head("/park"))
    c.shutdown(socket.SHUT_WR)
    time.sleep(0.2)
    good = s.state()["gone"] == before + 10
    c.close()
    if not s.path:
        # Its reset comes with the next byte; the one that was probed with has been acknowledged.
        tap.check(good, "half closed is not gone")
        c = s.connect()
        c.sendall(head("/park?ms=1000"))
        c.shutdown(socket.SHUT_WR)
        c.recv(100)
        c.close()
    else:
        tap.check(good and wait_for(lambda: s.state()["gone"] == before + 11), "half closed is not gone, closed is")


def many_clients(s):
    """Threads of good clients at once."""
    failed = []

    def work(k):
        for i in range(100):
            text = "%d-%d" % (k, i)
            a = s.get("/echo?text=" + text)
            if body(a) != text.encode():
                failed.append(a)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    tap.check(not failed, "800 requests of 8 clients at once", failed[:1])


def ends_well(s, what):
    last, code = s.stop()
    tap.check(code == 0 and last.startswith("allocations 0 "), what + ": nothing allocated, every exchange ended", last)


def tokens(program):
    s = Server(program, "127.0.0.1:0", "token=" + TOKEN)
    a = s.get("/hello")
    tap.check(status(a) == 401 and header(a, "WWW-Authenticate").startswith("Bearer"), "no token: 401", a)
    expect(s.get("/nothing"), 401, "nor what is not there")
    right = "Authorization: Bearer %s\r\n" % TOKEN
    expect(s.get("/hello", headers=right), 200, "the token")
    answers = [s.get("/hello", headers="Authorization: Bearer x\r\n") for _ in range(12)]
    tap.check([status(a) for a in answers] == [401] * 10 + [429] * 2 and header(answers[11], "Retry-After"),
              "ten wrong ones, then 429", [status(a) for a in answers])
    expect(s.get("/hello", headers=right), 200, "the right one still")
    ends_well(s, "with a token")


def deadlines(program):
    s = Server(program, "127.0.0.1:0", "head_ms=300", "idle_ms=500", "connections=20")
    quiet, slow, poster, full = s.connect(), s.connect(), s.connect(), s.connect(small_buffer=True)
    full.sendall(head("/big"))
    poster.sendall(head("/upload", "POST", "Content-Length: 100\r\n"))
    started = time.monotonic()
    stop = threading.Event()

    def drip():
        try:
            for b in head("/hello", headers="A: " + "b" * 1000 + "\r\n"):
                if stop.wait(0.05):
                    return
                slow.sendall(bytes([b]))
        except OSError:
            pass

    thread = threading.Thread(target=drip)
    thread.start()
    expect(read_all(slow).replace(b"<reset>", b""), 408, "a head that drips: 408")
    stop.set()
    thread.join()
    tap.check(0.25 < time.monotonic() - started < 2, "at its time", time.monotonic() - started)
    expect(read_all(poster), 408, "a body that does not come: 408")
    tap.check(read_all(quiet) == b"", "silence is ended without a word")
    ended = wait_for(lambda: s.state()["timeouts"] == 4)
    tap.check(ended, "who does not take his answer is dropped", s.state())
    # 25 of those that never read again are 20 at most, and others come through.
    stalled = [s.connect(small_buffer=True) for _ in range(25)]
    for c in stalled:
        c.sendall(head("/big"))
    started = time.monotonic()
    expect(s.get("/hello"), 200, "more stalled readers than places: still served")
    tap.note("after %.0f ms" % ((time.monotonic() - started) * 1000))
    for c in [quiet, slow, poster, full] + stalled:
        c.close()
    ends_well(s, "after deadlines")


def crowds(program):
    """More connections than places: the silent make way."""
    s = Server(program, "127.0.0.1:0", "connections=8")
    silent = [s.connect() for _ in range(100)]
    for c in silent[::2]:
        c.sendall(b"GET /hello HT")
    times = []
    for _ in range(20):
        started = time.monotonic()
        expect(s.get("/hello"), 200, "served among silent ones")
        times.append(time.monotonic() - started)
    tap.note("slowest %.0f ms" % (max(times) * 1000))
    state = s.state()
    tap.check(state["evicted"] >= 92, "the silent ones made way", state)
    a = read_all(silent[0])
    tap.check(status(a) == 503 and header(a, "Retry-After"), "and were told so", a)
    # The oldest go first: the newest may still ask.
    silent[-1].sendall(head("/hello"))
    expect(read_all(silent[-1]), 200, "the last comer still has his place")
    for c in silent:
        c.close()
    ends_well(s, "after a crowd")


def no_descriptors(program):
    """As many descriptors as are open already: accepting waits without burning time, and goes on later."""
    import resource
    s = Server(program)
    base = s.descriptors()
    resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, (base + 3, base + 3))
    held = [s.connect() for _ in range(10)]
    time.sleep(0.3)
    cpu = s.cpu_s()
    time.sleep(1)
    cpu = s.cpu_s() - cpu
    tap.check(s.descriptors() == base + 3 and cpu < 0.1, "out of descriptors: it waits", (s.descriptors(), base, cpu))
    for c in held:
        c.close()
    expect(s.get("/hello"), 200, "and goes on when there are some")
    # Fewer than are open: even poll refuses.
    held = [s.connect() for _ in range(3)]
    time.sleep(0.3)
    resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, (3, base + 3))
    for c in held:
        c.sendall(head("/hello"))
    time.sleep(0.3)
    cpu = s.cpu_s()
    time.sleep(0.5)
    cpu = s.cpu_s() - cpu
    resource.prlimit(s.process.pid, resource.RLIMIT_NOFILE, (base + 3, base + 3))
    tap.check(cpu < 0.1, "fewer descriptors allowed than there are: no spinning", cpu)
    tap.check(all(status(read_all(c)) == 200 for c in held), "and nobody is forgotten")
    ends_well(s, "without descriptors")


def sockets_of_others(program, folder):
    path = os.path.join(folder, "socket")
    s = Server(program, "unix:" + path)
    tap.check(os.stat(path).st_mode & 0o777 == 0o600, "the socket is its owner's")
    if os.geteuid() == 0:
        os.chmod(folder, 0o755)
        os.chmod(path, 0o666)
        child = os.fork()
        if child == 0:
            os.setuid(65534)
            os._exit(0 if status(s.get("/hello")) == 403 else 1)
        tap.check(os.waitpid(child, 0)[1] == 0, "another user is refused, even when the file would let him in")
    else:
        tap.skip("another user is refused", "only root can be another user")
    plain_requests(s)
    cut_in_pieces(s)
    uploads(s)
    descriptors(s)
    parked(s)
    ends_well(s, "on a unix socket")
    tap.check(not os.path.exists(path), "its file is gone")


def no_sigpipe(program):
    """SIGPIPE, which sendfile raises, is not left to the program: it has the default action here, which is to die."""
    s = Server(program, "127.0.0.1:0", preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    for _ in range(30):
        c = s.connect(small_buffer=True)
        c.sendall(head("/big"))
        c.recv(10)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        c.close()
    expect(s.get("/hello"), 200, "clients that reset do not kill it")
    ends_well(s, "after resets")


def main():
    program = sys.argv[1]
    s = Server(program)
    plain_requests(s)
    before = s.descriptors()
    cut_in_pieces(s)
    bad_heads(s)
    names_and_pages(s)
    uploads(s)
    descriptors(s)
    parked(s)
    many_clients(s)
    tap.check(wait_for(lambda: s.descriptors() <= before + 1), "no descriptor is left", (before, s.descriptors()))
    ends_well(s, "on loopback")
    tokens(program)
    deadlines(program)
    crowds(program)
    no_descriptors(program)
    no_sigpipe(program)
    with tempfile.TemporaryDirectory(prefix="heapgauge-http-") as folder:
        sockets_of_others(program, folder)
    # A client whose connection is open while the server is stopped.
    s = Server(program)
    c = s.connect()
    c.sendall(head("/park"))
    time.sleep(0.1)
    ends_well(s, "stopped with somebody waiting")
    tap.check(select.select([c], [], [], 5)[0], "who sees it end")
    c.close()
    return tap.done()


sys.exit(main())
