"""The web page beside others': how long until a flame graph can be seen in Chromium, and what its frames cost while it is moved."""
import contextlib
import http.client
import json
import os
import shutil
import socket
import subprocess
import time

LIMIT = 300
HERE = os.path.dirname(os.path.abspath(__file__))


@contextlib.contextmanager
def pprof_server(pprof, path):
    """Of `go tool pprof -http`: (address, seconds from its start until its flame graph was handed out, bytes of that), or None."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = time.monotonic()
    server = subprocess.Popen([pprof, "-http=127.0.0.1:%d" % port, "-no_browser", "-symbolize=none", path],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        size = None
        while server.poll() is None and time.monotonic() - start < LIMIT:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
                connection.request("GET", "/ui/flamegraph")
                answer = connection.getresponse()
                size = len(answer.read()) if answer.status == 200 else None
                break
            except ConnectionRefusedError:
                time.sleep(0.05)
            except (OSError, http.client.HTTPException):
                break
        yield ("http://127.0.0.1:%d/ui/flamegraph" % port, time.monotonic() - start, size) if size else None
    finally:
        server.kill()
        server.wait()


def node(options, script, *arguments):
    """What a script of web/bench prints; None with what is missing said."""
    work = options.build + "/web/work"
    if not shutil.which("node") or not os.path.isdir(work + "/node_modules/playwright-core"):
        return None
    done = subprocess.run(["node", HERE + "/../web/bench/" + script, *arguments], stdout=subprocess.PIPE, text=True,
                          env=dict(os.environ, HEAPGAUGE_WEB_WORK=os.path.abspath(work)))
    return done.stdout if done.returncode == 0 else None


def first_paints(options, own, url, profile):
    """{"ours": seconds, "pprof": seconds, "speedscope": seconds}, a sentence where it failed; {} without Chromium or Node."""
    arguments = ["ours=" + os.path.abspath(own)] + (["pprof=" + url] if url else []) + ["speedscope=" + os.path.abspath(profile)]
    figures = {}
    for line in (node(options, "first_paint.mjs", *arguments) or "").splitlines():
        name, text = line.split(" ", 1)
        figures[name] = text if text.startswith("failed") else float(text)
    return figures


def frames(options):
    """Rows of web/bench/flame.mjs, [] without Chromium or Node."""
    out = options.work + "/frames.json"
    if node(options, "flame.mjs", out) is None:
        return []
    with open(out, encoding="utf-8") as file:
        return json.load(file)["results"]
