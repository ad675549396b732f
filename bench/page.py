"""How long `go tool pprof -http` takes to hand out its flame graph of a profile, and how large that is: it reads the profile first, then makes the
page anew for each request."""
import http.client
import socket
import subprocess
import time

LIMIT = 300


def of_pprof(pprof, path):
    """(seconds from the start until the page is there, its bytes), or None."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    start = time.monotonic()
    server = subprocess.Popen([pprof, "-http=127.0.0.1:%d" % port, "-no_browser", "-symbolize=none", path],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while server.poll() is None and time.monotonic() - start < LIMIT:
            try:
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=LIMIT)
                connection.request("GET", "/ui/flamegraph")
                answer = connection.getresponse()
                size = len(answer.read())
                return (time.monotonic() - start, size) if answer.status == 200 else None
            except ConnectionRefusedError:
                time.sleep(0.05)
            except (OSError, http.client.HTTPException):
                return None
        return None
    finally:
        server.kill()
        server.wait()
