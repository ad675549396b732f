"""Targets as they are: a good one, and all kinds of bad ones, on one port. Also what the tests of the recorder share."""
import gzip
import http.client
import http.server
import json
import os
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.error
import urllib.request

DUMP = """heap_v2/1
  t*: {n}: {bytes} [0: 0]
  t0: {n}: {bytes} [0: 0]
@ 0x{a:x} 0x{b:x}
  t*: {n}: {bytes} [0: 0]
  t0: {n}: {bytes} [0: 0]

MAPPED_LIBRARIES:
{base:x}-{end:x} r-xp 00000000 00:00 1 /bin/{name}
"""


def dump(base=0x55d0c0000000, objects=4, name="app"):
    """jemalloc's text of a process whose program lies at base: another base is another process."""
    return DUMP.format(n=objects, bytes=objects * 1024, a=base + 0x1000, b=base + 0x2000, base=base, end=base + 0x100000,
                       name=name).encode()


BOMB = gzip.compress(b"heap_v2/1\n" + b"\n" * (80 << 20), 1)


class Targets(http.server.ThreadingHTTPServer):
    """state["base"]: the good one's process; state["seen"]: how often each path was asked;
    state["grown"]: when /grows was asked, and how many objects it told."""
    daemon_threads = True
    request_queue_size = 256
    allow_reuse_address = True

    def __init__(self, tls=None):
        self.state = {"base": 0x55d0c0000000, "started": 1700000000, "seen": {}, "tokens": set()}
        super().__init__(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.socket = context.wrap_socket(self.socket, server_side=True)
        self.address = "127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *arguments):
        pass

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name == "Content-Length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def pour(self, piece, pause=0.0):
        end = time.monotonic() + 30
        self.close_connection = True
        while time.monotonic() < end:
            self.wfile.write(piece)
            self.wfile.flush()
            time.sleep(pause)

    def do_GET(self):
        path, state = self.path.split("?")[0], self.server.state
        state["seen"][path] = state["seen"].get(path, 0) + 1
        state["query"] = self.path
        if path == "/good":
            self.answer(200, dump(state["base"]))
        elif path == "/grows":
            grown = state.setdefault("grown", [])
            grown.append((time.time(), len(grown) % 1000 + 1))
            self.answer(200, dump(state["base"], grown[-1][1]))
        elif path == "/other":
            self.answer(200, dump(0x560000000000 + state["seen"][path] * 0x1000000))
        elif path == "/gz":
            self.answer(200, gzip.compress(dump(0x55d0d0000000)))
        elif path == "/coded":
            self.answer(200, gzip.compress(dump(0x55d0e0000000)), [("Content-Encoding", "gzip")])
        elif path == "/metrics":
            self.answer(200, b"# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 12345678\n"
                        b"process_start_time_seconds %d\njemalloc_allocated_bytes 4096\nother{a=\"b\"} 1\n" % state["started"])
        elif path == "/moved":
            self.answer(302, b"", [("Location", "/good?moved")])
        elif path == "/loop":
            self.answer(302, b"", [("Location", "/loop")])
        elif path == "/off":
            self.answer(302, b"", [("Location", "http://localhost:1/debug/pprof/heap")])
        elif path == "/token":
            good = self.headers.get("Authorization") in state["tokens"]
            self.answer(200 if good else 401, dump(0x55d0f0000000) if good else b"")
        elif path == "/garbage":
            self.answer(200, os.urandom(5000))
        elif path == "/page":
            self.answer(200, b"<html><body>hello</body></html>", [("Content-Type", "text/html")])
        elif path == "/empty":
            self.answer(200, b"")
        elif path == "/inactive":
            self.answer(403, b"nothing is being sampled: activate it\nmore\n")
        elif path == "/cut":
            self.answer(200, gzip.compress(dump())[:-20])
        elif path == "/short":
            self.answer(200, dump()[:100], [("Content-Length", "100000")])
            self.close_connection = True
        elif path == "/half":
            self.answer(200, dump()[:90])
        elif path == "/bomb":
            self.answer(200, BOMB)
        elif path == "/huge":
            self.send_response(200)
            self.send_header("Content-Length", str(10 << 30))
            self.end_headers()
            self.pour(b"x" * 65536)
        elif path == "/endless":
            self.send_response(200)
            self.end_headers()
            self.pour(b"x" * 65536)
        elif path == "/drip":
            self.send_response(200)
            self.send_header("Content-Length", "100000")
            self.end_headers()
            self.pour(b"h", 0.05)
        elif path == "/hang":
            time.sleep(30)
        else:
            self.answer(404, b"")


class Recorder:
    """heapgauge record, in a folder of its own."""

    def __init__(self, program, folder, *options, config=None, before=None):
        self.folder, self.said = folder, os.path.join(folder, "said")
        words = [program, "record", "--listen", "127.0.0.1:0"]
        if config is not None:
            path = os.path.join(folder, "heapgauge.yml")
            with open(path, "w", encoding="utf-8") as f:
                f.write(config)
            words += ["--config", path]
        environment = {k: v for k, v in os.environ.items() if k not in ("DEBUGINFOD_URLS", "http_proxy")}
        self.process = subprocess.Popen(words + list(options), cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=open(self.said, "ab"), env=environment, preexec_fn=before)
        self.url = self.process.stdout.readline().decode().strip()

    def log(self):
        with open(self.said, encoding="utf-8") as f:
            return f.read()

    def ask(self, path, body=None, method=None, headers=None, timeout=20):
        """Status, body, headers; status 0: the connection broke."""
        request = urllib.request.Request(self.url + path, data=body, method=method, headers=headers or {})
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return answer.status, answer.read(), answer.headers
        except urllib.error.HTTPError as e:
            return e.code, e.read(), e.headers
        except (OSError, http.client.HTTPException):
            return 0, b"", {}

    def json(self, path):
        status, body, _ = self.ask(path)
        if status != 200:
            raise RuntimeError("%s: %d %s" % (path, status, body[:300]))
        return json.loads(body)

    def targets(self):
        return self.json("/api/v1/targets")["targets"]

    def target(self, **labels):
        found = [t for t in self.targets() if all(t["labels"].get(k) == v for k, v in labels.items())]
        return found[0] if len(found) == 1 else None

    def metrics(self):
        lines = self.ask("/metrics")[1].decode().splitlines()
        return {n: float(v) for n, v in (line.rsplit(" ", 1) for line in lines if line and line[0] != "#")}

    def series(self):
        return self.json("/api/v1/series")["series"]

    def wait(self, condition, seconds=10):
        end = time.monotonic() + seconds
        while True:
            try:
                got = condition()
            except (RuntimeError, ValueError):
                got = None
            if got or time.monotonic() > end:
                return got
            time.sleep(0.1)

    def end(self, how=signal.SIGTERM, seconds=20):
        """Its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return "did not end"
        finally:
            self.process.stdout.close()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
