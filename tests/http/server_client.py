"""The server of serve.c, and clients that send exactly what they are told."""
import json
import os
import re
import signal
import socket
import subprocess

TOKEN = "0123456789abcdef0123456789abcdef"


class Server:
    """http_serve, and ways to talk to it."""

    def __init__(self, program, listen="127.0.0.1:0", *settings, **popen):
        self.process = subprocess.Popen([program, listen, *settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, **popen)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            raise RuntimeError("the server did not start")
        self.path = self.url[5:] if self.url.startswith("unix:") else None
        self.port = None if self.path else int(self.url.rsplit(":", 1)[1])

    def connect(self, small_buffer=False):
        s = socket.socket(socket.AF_UNIX if self.path else socket.AF_INET)
        if small_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.settimeout(20)
        s.connect(self.path or ("127.0.0.1", self.port))
        return s

    def ask(self, data, half_close=False):
        """What comes back for these bytes, until the other side closes."""
        with self.connect() as s:
            s.sendall(data)
            if half_close:
                s.shutdown(socket.SHUT_WR)
            return read_all(s)

    def get(self, target, method="GET", headers="", version="1.1"):
        return self.ask(head(target, method, headers, version))

    def state(self, headers=""):
        answer = self.get("/state", headers=headers)
        return json.loads(body(answer))

    def descriptors(self):
        return len(os.listdir("/proc/%d/fd" % self.process.pid))

    def rss_kib(self):
        with open("/proc/%d/status" % self.process.pid) as f:
            return int(re.search(r"VmRSS:\s+(\d+)", f.read()).group(1))

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.pid) as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        """Its last line and its exit status: 0 when nothing was allocated and every exchange was ended."""
        self.process.send_signal(signal.SIGTERM)
        try:
            out, _ = self.process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return "it does not stop", -1
        return out.strip(), self.process.returncode


def head(target, method="GET", headers="", version="1.1"):
    return ("%s %s HTTP/%s\r\nHost: localhost\r\n%s\r\n" % (method, target, version, headers)).encode("latin-1")


def read_all(s):
    parts = []
    while True:
        try:
            part = s.recv(1 << 16)
        except ConnectionResetError:
            return b"".join(parts) + b"<reset>"
        if not part:
            return b"".join(parts)
        parts.append(part)


def status(answer):
    found = re.match(rb"HTTP/1\.1 (\d{3}) [A-Z]", answer)
    return int(found.group(1)) if found else answer[:60]


def header(answer, name):
    found = re.search(rb"\r\n" + name.encode() + rb": ([^\r\n]*)\r\n", answer.split(b"\r\n\r\n")[0] + b"\r\n")
    return found.group(1).decode() if found else None


def body(answer):
    return answer.split(b"\r\n\r\n", 1)[1]
