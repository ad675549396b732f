"""Drives tests/agent/host: a program with the library in it, told what to do line by line."""
import gzip
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
from tap import check, done, note, skip  # noqa: E402,F401

JEMALLOC_NAMES = ("libjemalloc.so.2",)


class Host:
    """conf: MALLOC_CONF, or None for none. preload: libraries in front of everything."""

    def __init__(self, program, conf="prof:true,lg_prof_sample:12", preload=(), env=None, wrapper=()):
        environment = {k: v for k, v in os.environ.items() if k not in ("MALLOC_CONF", "LD_PRELOAD", "_RJEM_MALLOC_CONF")}
        if conf is not None:
            environment["MALLOC_CONF"] = conf
        if preload:
            environment["LD_PRELOAD"] = ":".join(preload)
        environment.update(env or {})
        self.process = subprocess.Popen(list(wrapper) + [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=environment)
        self.url = None

    def tell(self, line):
        """The answer's first word is stripped; an error is raised as RuntimeError with its text."""
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if answer == "ok" or answer.startswith("ok "):
            return answer[3:]
        raise RuntimeError(answer or "the program is gone: %s" % self.process.poll())

    def refused(self, line):
        """The error's text of a line that must be refused."""
        try:
            answer = self.tell(line)
        except RuntimeError as error:
            return str(error)
        return "was not refused: " + answer

    def start(self, listen="127.0.0.1:0", words=""):
        self.url = self.tell(("start %s %s" % (listen, words)).strip())
        return self.url

    @property
    def pid(self):
        return self.process.pid

    def end(self):
        if self.process.poll() is None:
            try:
                self.process.stdin.write("quit\n")
                self.process.stdin.close()
                self.process.wait(20)
            except (OSError, subprocess.TimeoutExpired):
                self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.end()


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout=60):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def connection(url, timeout=60):
    if url.startswith("unix:"):
        return UnixConnection(url[5:], timeout)
    return http.client.HTTPConnection(url[len("http://"):], timeout=timeout)


def ask(url, path, method="GET", body=None, headers=None, timeout=60):
    """(status, headers, body)"""
    c = connection(url, timeout)
    try:
        c.request(method, path, body=body, headers=headers or {})
        answer = c.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        c.close()


def status(url):
    return json.loads(ask(url, "/heapgauge/status")[2])


def top(heapgauge, path, *options):
    """The report of a profile as JSON; path may be bytes of a profile."""
    name = path
    if isinstance(path, bytes):
        with tempfile.NamedTemporaryFile(delete=False) as f:
            f.write(path)
        name = f.name
    try:
        p = subprocess.run([heapgauge, "top", "--json", "-n", "1000", *options, name], capture_output=True, text=True)
    finally:
        if isinstance(path, bytes):
            os.unlink(name)
    if p.returncode:
        raise RuntimeError(p.stderr)
    return json.loads(p.stdout)


def flat(report, function):
    """Bytes that the function has allocated itself; 0 when it isn't there."""
    for row in report["rows"]:
        if row["name"] == function:
            return row["flat"]["value"] if isinstance(row["flat"], dict) else row["flat"]
    return 0


def near(value, wanted, part):
    return abs(value - wanted) <= part * wanted


def is_gzip(body):
    return body[:2] == b"\x1f\x8b" and len(gzip.decompress(body)) > 0
