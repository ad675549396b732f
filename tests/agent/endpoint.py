#!/usr/bin/env python3
"""The endpoint in a real program: each line of its table, asked as its users ask.

endpoint.py HEAPGAUGE HOST
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../report"))
import page_block
from harness import Host, ask, check, connection, done, flat, is_gzip, near, skip, status, top

heapgauge, host = sys.argv[1:3]
scratch = tempfile.mkdtemp()
ACTIVE, IDLE = "prof:true,lg_prof_sample:12", "prof:true,prof_active:false,lg_prof_sample:12"


def go_environment():
    """A home of its own, but the pprof that Go has built before: it takes minutes to build, and would be built each time."""
    cache = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True).stdout.strip()
    return dict(os.environ, HOME=scratch, GOCACHE=cache, PPROF_TMPDIR=scratch, GOFLAGS="-mod=mod", PPROF_BINARY_PATH="/nonexistent")


def check_page(url):
    """The page with the profile in it; a heapgauge without the page says so."""
    code, headers, body = ask(url, "/debug/pprof/heap?format=html")
    if b"built without the web page" in body:
        check(code >= 500, "format=html is refused without the page", (code, body))
        skip("format=html has names", "heapgauge was built without the web page")
        return
    block = page_block.of_page(body) if code == 200 else None
    check(block and any("planted_leak" in frame[0] for frame in block.frames), "format=html is a page with names", (code, body[:200]))
    check(headers["Content-Type"] == "text/html; charset=utf-8", "format=html is HTML", headers)


def profiles():
    with Host(host, ACTIVE) as h:
        url = h.start("127.0.0.1:0", "symbolizer=" + heapgauge)
        h.tell("leak 3000 4096")
        code, headers, body = ask(url, "/debug/pprof/heap")
        check(code == 200 and is_gzip(body) and headers["Connection"] == "close", "heap is gzipped pprof")
        check(near(flat(top(heapgauge, body), "planted_leak"), 3000 * 4096, 0.1), "and holds what was planted")
        code, _, body = ask(url, "/debug/pprof/heap?format=jeheap")
        check(code == 200 and body.startswith(b"heap_v2/4096\n") and b"MAPPED_LIBRARIES" in body, "format=jeheap is jemalloc's dump")
        for form, start in (("folded", None), ("svg", b"<"), ("text", None), ("json", b"{")):
            code, headers, body = ask(url, "/debug/pprof/heap?format=" + form)
            check(code == 200 and b"planted_leak" in body and (not start or body.lower().lstrip().startswith(start.lower())),
                  "format=%s has names" % form, (code, body[:200]))
            if form == "json":
                json.loads(body)
        check_page(url)
        code, _, body = ask(url, "/debug/pprof/heap?debug=1")
        check(code == 200 and b"planted_leak" in body and b"File:     pid %d (host)" % h.pid in body, "debug=1 is text, about this process")
        code, _, body = ask(url, "/debug/pprof/heap?symbolize=1")
        check(code == 200 and is_gzip(body) and flat(top(heapgauge, body, "--symbols", "none"), "planted_leak") > 0,
              "symbolize=1 puts names into the file", code)
        code, _, body = ask(url, "/debug/pprof/heap?format=folded&symbolize=0")
        check(code == 200 and b"planted_leak" not in body and b"host!0x" in body, "symbolize=0 leaves them out", body[:200])
        code, _, body = ask(url, "/debug/pprof/allocs")
        check(code == 200 and is_gzip(body), "allocs")
        for path, word in (("/debug/pprof/heap?format=xml", b"format"), ("/debug/pprof/heap?seconds=x", b"seconds"),
                           ("/debug/pprof/heap?seconds=99999", b"seconds"), ("/debug/pprof/heap?format=jeheap&seconds=1", b"seconds"),
                           ("/debug/pprof/heap?second=1", b"second"), ("/debug/pprof/survivors?activate=0", b"activate"),
                           ("/heapgauge/status?x", b"x")):
            code, _, body = ask(url, path)
            check(code == 400 and word in body, "%s is 400 and says why" % path, (code, body))
        check(ask(url, "/debug/pprof/goroutine")[0] == 404, "what there is not is 404")
        check(ask(url, "/heapgauge/status", "POST")[0] == 405, "POST where only GET goes is 405")
        check(ask(url, "/debug/pprof/heap", "HEAD")[0] == 200, "HEAD")
        code, _, body = ask(url, "/")
        check(code == 200 and b"/debug/pprof/survivors" in body, "/ lists what there is")


def control():
    with Host(host, IDLE) as h:
        url = h.start()
        code, _, body = ask(url, "/debug/pprof/heap")
        check(code == 403 and b"POST /heapgauge/activate" in body, "inactive: 403 with what to do", (code, body))
        s = status(url)
        check(s["jemalloc"]["active"] is False and s["can_profile"] is True and s["pid"] == h.pid and "activate" in s["advice"],
              "the status says so", s)
        check(ask(url, "/heapgauge/activate")[0] == 405, "GET doesn't activate")
        check(ask(url, "/heapgauge/activate", "POST", body=b"x")[0] == 413, "a body where there is none to be is refused")
        code, _, body = ask(url, "/heapgauge/activate", "POST")
        check(code == 200 and json.loads(body)["jemalloc"]["active"] is True, "activate")
        h.tell("leak 1000 4096")
        check(flat(top(heapgauge, ask(url, "/debug/pprof/heap")[2]), "planted_leak") > 0, "then there is a profile")
        code, _, body = ask(url, "/heapgauge/deactivate", "POST")
        check(code == 200 and json.loads(body)["jemalloc"]["active"] is False, "deactivate")
        check(ask(url, "/debug/pprof/heap")[0] == 200, "what was sampled is still served")
        code, _, body = ask(url, "/heapgauge/reset?lg_sample=15", "POST")
        check(code == 200 and json.loads(body)["jemalloc"]["lg_sample"] == 15, "reset")
        check(ask(url, "/heapgauge/reset?lg_sample=63", "POST")[0] == 400, "a rate that makes no sense")
        check(ask(url, "/debug/pprof/heap")[0] == 403, "reset forgets")
        code, headers, body = ask(url, "/metrics")
        text = body.decode()
        check(code == 200 and "\nprocess_resident_memory_bytes " in text and "\nheapgauge_dumps_total 2" in text and
              "\nheapgauge_profiling_active 0" in text and "jemalloc_allocated_bytes " in text, "metrics", text)
        began = [float(line.split()[1]) for line in text.splitlines() if line.startswith("process_start_time_seconds ")]
        check(len(began) == 1 and abs(began[0] - time.time()) < 120, "when the process started", text)


def spans():
    with Host(host, ACTIVE) as h:
        url = h.start()
        h.tell("cache 1000 8192")
        begin = time.time()
        answers = []
        t = threading.Thread(target=lambda: answers.append(ask(url, "/debug/pprof/heap?seconds=2")))
        t.start()
        time.sleep(0.5)
        h.tell("leak 1000 4096")
        code, headers, body = ask(url, "/debug/pprof/heap?seconds=1")
        check(code == 429 and headers["Retry-After"], "a second span meanwhile is 429 with Retry-After", code)
        check(ask(url, "/debug/pprof/heap")[0] == 200, "a plain dump goes on meanwhile")
        t.join()
        took = time.time() - begin
        report = top(heapgauge, answers[0][2])
        check(answers[0][0] == 200 and 1.9 < took < 6, "seconds=2 takes that long: %.1f" % took)
        check(near(flat(report, "planted_leak"), 1000 * 4096, 0.2) and flat(report, "planted_cache") == 0,
              "it shows what was allocated in them, and not what was there before", report["rows"])
        check(status(url)["jemalloc"]["active"] is True, "sampling goes on as before")
    with Host(host, IDLE) as h:
        url = h.start()
        answers = []
        t = threading.Thread(target=lambda: answers.append(ask(url, "/debug/pprof/survivors?activate=2&wait=2")))
        h.tell("leak 1000 4096")        # start-up
        t.start()
        time.sleep(0.7)
        check(status(url)["jemalloc"]["active"] is True, "survivors switches sampling on")
        h.tell("leak 500 4096")
        h.tell("cache 1000 8192")
        time.sleep(2)
        check(status(url)["jemalloc"]["active"] is False, "then off")
        h.tell("leak 700 4096")
        h.tell("drop")
        t.join()
        report = top(heapgauge, answers[0][2])
        check(answers[0][0] == 200 and near(flat(report, "planted_leak"), 500 * 4096, 0.3) and flat(report, "planted_cache") == 0,
              "and finds the leak of those seconds: not start-up, not what was freed, not what came later", report["rows"])
        check(status(url)["jemalloc"]["active"] is False, "sampling is off as before")
        # A client that leaves.
        c = connection(url)
        c.request("GET", "/debug/pprof/heap?seconds=60")
        time.sleep(0.5)
        check(status(url)["jemalloc"]["active"] is True, "on for seconds=60")
        c.close()
        for _ in range(50):
            time.sleep(0.1)
            if not status(url)["jemalloc"]["active"]:
                break
        check(status(url)["jemalloc"]["active"] is False, "off again when the client has gone")
        c = connection(url)
        c.request("GET", "/debug/pprof/survivors")
        time.sleep(0.5)
        check(ask(url, "/heapgauge/activate", "POST")[0] == 200, "activating meanwhile")
        c.close()
        time.sleep(1)
        check(status(url)["jemalloc"]["active"] is True, "is what it comes back to")
        h.tell("deactivate")
        c = connection(url)
        c.request("GET", "/debug/pprof/heap?seconds=60")
        time.sleep(0.5)
        h.tell("stop")
        c.close()
        check(h.tell("status").startswith("1 1 1 0"), "stopping the agent puts it back, too", h.tell("status"))


def symbols():
    with Host(host, ACTIVE) as h:
        url = h.start()
        h.tell("leak 1000 4096")
        check(ask(url, "/debug/pprof/symbol")[2].strip() == b"num_symbols: 1", "GET symbol: there are some")
        dump = ask(url, "/pprof/heap")[2].decode()
        frames = sorted({word for line in dump.split("\n") if line.startswith("@") for word in line.split()[1:]})
        for path in ("/pprof/symbol", "/debug/pprof/symbol"):
            code, _, body = ask(url, path, "POST", body="+".join(frames))
            names = dict(line.split("\t") for line in body.decode().strip().split("\n"))
            check(code == 200 and any(n == "planted_leak" for n in names.values()) and any("malloc" in n for n in names.values()),
                  "POST %s names frames" % path, names)
        check(ask(url, "/pprof/symbol", "POST", body="0x1+zz")[0] == 400, "what is no address is 400")
        check(ask(url, "/pprof/symbol", "POST", body="")[0] == 400, "no address is 400")
        code, _, body = ask(url, "/pprof/symbol", "POST", body="+".join(["0x10"] * 200000))
        check(code == 200 and body == b"", "a body of a megabyte, nothing known in it", (code, len(body)))
        check(ask(url, "/pprof/symbol", "POST", body="+".join(["0x10"] * 300000))[0] == 413, "more than a megabyte is 413")
        code, _, body = ask(url, "/pprof/cmdline")
        check(code == 200 and os.path.realpath(body.decode()) == os.path.realpath(host), "cmdline is the program's path only", body)


def tools():
    with Host(host, ACTIVE) as h:
        url = h.start()
        h.tell("leak 3000 4096")
        if shutil.which("jeprof"):
            p = subprocess.run(["jeprof", "--text", url + "/pprof/heap"], capture_output=True, text=True, cwd=scratch,
                               env=dict(os.environ, HOME=scratch, JEPROF_TMPDIR=scratch))
            check("planted_leak" in p.stdout, "jeprof fetches and prints names", p.stdout + p.stderr)
        else:
            skip("jeprof fetches and prints names", "no jeprof")
        if shutil.which("go"):
            env = go_environment()
            for query in ("", "?seconds=2"):
                for how in ("local", "remote"):
                    if query and how == "local":
                        continue
                    done = threading.Event()

                    def leak_on():          # when the span begins is not known: go may have to start, and the machine be busy
                        while not done.wait(0.5):
                            h.tell("leak 500 4096")

                    leaking = threading.Thread(target=leak_on)
                    if query:
                        leaking.start()
                    p = subprocess.run(["go", "tool", "pprof", "-symbolize=" + how, "-top", url + "/debug/pprof/heap" + query],
                                       capture_output=True, text=True, cwd=scratch, env=env)
                    done.set()
                    if query:
                        leaking.join()
                    check("planted_leak" in p.stdout and "je_prof_backtrace" not in p.stdout and "prof_backtrace_impl" not in p.stdout,
                          "go tool pprof heap%s, names %s" % (query, how), p.stdout[:2000] + p.stderr)
        else:
            skip("go tool pprof", "no go")


def access():
    with Host(host, ACTIVE) as h:
        url = h.start("unix:%s/deep/a.sock" % scratch)
        check(url == "unix:%s/deep/a.sock" % scratch and oct(os.stat(url[5:]).st_mode)[-3:] == "600", "a unix socket, mode 0600")
        check(ask(url, "/heapgauge/status")[0] == 200, "answers there")
        links = [os.readlink("/proc/%d/fd/%s" % (h.pid, fd)) for fd in os.listdir("/proc/%d/fd" % h.pid)]
        check(any(link.startswith("/memfd:heapgauge:" + url) for link in links), "its address can be seen from outside", links)
        check("error -10" in h.refused("start 127.0.0.1:0"), "a second agent is refused")
        h.tell("stop")
        check(not os.path.exists(url[5:]), "the socket is gone afterwards")
        text = h.refused("start 0.0.0.0:0")
        check("error -9" in text and "token" in text, "an address of others is refused", text)
        token = os.path.join(scratch, "token")
        with open(token, "w") as f:
            f.write("0123456789abcdef0123\n")
        os.chmod(token, 0o644)
        text = h.refused("start 127.0.0.1:0 token_file=" + token)
        check("error -" in text and "600" in text, "a token file that others can read is refused", text)
        os.chmod(token, 0o600)
        url = h.start("127.0.0.1:0", "arguments=1;token_file=" + token)
        good = {"Authorization": "Bearer 0123456789abcdef0123"}
        check(ask(url, "/heapgauge/status")[0] == 401 and ask(url, "/heapgauge/status", headers=good)[0] == 200, "a token is asked for")
        # Who takes nothing but an address gives the token in it.
        if shutil.which("go"):
            p = subprocess.run(["go", "tool", "pprof", "-symbolize=none", "-raw", url.replace("//", "//any:0123456789abcdef0123@") + "/debug/pprof/heap"],
                               capture_output=True, text=True, cwd=scratch, env=go_environment())
            check(p.returncode == 0 and "inuse_space/bytes" in p.stdout, "go tool pprof gives a token", p.stdout[:500] + p.stderr)
        else:
            skip("go tool pprof gives a token", "no go")
        check(ask(url, "/pprof/cmdline", headers=good)[2].split(b"\0")[0] == host.encode(), "arguments when the program allows it")
        check(ask(url, "/heapgauge/status", headers=dict(good, Host="evil.example"))[0] in (403, 421), "a foreign Host is refused")
        check(ask(url, "/heapgauge/status", headers=dict(good, Origin="http://evil.example"))[0] == 403, "a foreign Origin is refused")
    with Host(host, ACTIVE, env={"XDG_RUNTIME_DIR": scratch}) as h:
        url = h.start("default")
        check(url == "unix:%s/heapgauge/%d.sock" % (scratch, h.pid), "the default is a socket in the runtime folder", url)


try:
    profiles()
    control()
    spans()
    symbols()
    tools()
    access()
finally:
    shutil.rmtree(scratch)
sys.exit(done())
