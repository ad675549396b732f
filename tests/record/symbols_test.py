"""Names that come late: symbols_test.py API_DRIVER SOURCE_FOLDER; HEAPGAUGE names the program

A program is compiled and stripped here, and profiles of it are put in that know nothing but a build id and offsets. Then upload-symbols gives
the recorder what it has.
"""
import glob
import http.client
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

SOURCE = sys.argv[2]
sys.path[:0] = [os.path.join(SOURCE, "tests", "truth")]
import pprof
import tap
from driver import Driver

HEAPGAUGE = os.environ["HEAPGAUGE"]
T0 = 1790000000000
CODE = """
#include <stdlib.h>
static inline __attribute__((always_inline)) void *inner(int n) { void *p = malloc(n); __asm__ volatile("" : : "r"(p)); return p; }
__attribute__((noinline)) void *leaky(int n) { void *p = inner(n); __asm__ volatile("" ::: "memory"); return p; }
__attribute__((noinline)) int caller(int n) { int r = leaky(n) != 0; __asm__ volatile("" ::: "memory"); return r; }
int main(int c, char **v) { return caller(c + 5); }
"""


def run(*words):
    return subprocess.run(words, capture_output=True, text=True, timeout=60)


def build(folder):
    """app (all in it), app.symtab (no debug information), app.stripped, app.debug."""
    with open(folder + "/app.c", "w") as f:
        f.write(CODE)
    for words in (["cc", "-g", "-O1", "-Wl,--build-id", "-o", "app", "app.c"], ["objcopy", "--only-keep-debug", "app", "app.debug"],
                  ["strip", "-o", "app.stripped", "app"], ["strip", "-g", "-o", "app.symtab", "app"]):
        subprocess.run(words, cwd=folder, check=True)
    notes = run("readelf", "-n", folder + "/app").stdout
    build_id = notes.split("Build ID:")[1].split()[0]
    symbols = {w[2]: int(w[0], 16) for w in (line.split() for line in run("nm", folder + "/app").stdout.splitlines()) if len(w) == 3}
    # File offset of an address: that of its segment.
    segments = [line.split() for line in run("readelf", "-lW", folder + "/app").stdout.splitlines() if line.strip().startswith("LOAD")]

    def offset(address):
        for s in segments:
            o, v, n = int(s[1], 16), int(s[2], 16), int(s[4], 16)
            if v <= address < v + n:
                return address - v + o
    calls = {}
    current = None
    for line in run("objdump", "-d", folder + "/app").stdout.splitlines():
        if line.endswith(">:"):
            current = line.split("<")[1][:-2]
        elif "call" in line and current in ("leaky", "caller", "main"):
            calls.setdefault(current, offset(int(line.split(":")[0], 16)))
    return build_id, calls, symbols


def names(driver, series, by="function", **more):
    rows = driver.get("profile", series=series, at=T0 + 1000, format="top", by=by, **more).json()["rows"]
    return {r["name"]: r for r in rows}


def wait_for(driver, series, what, seconds=20):
    end = time.time() + seconds
    while time.time() < end:
        have = names(driver, series)
        if what(have):
            return have
        time.sleep(0.1)
    return have


def upload(driver, *words):
    return subprocess.run([HEAPGAUGE, "upload-symbols", "--to", driver.url, "--offline", *words], capture_output=True, text=True, timeout=60)


def check_refusals(driver, folder, build_id):
    def post(body, **params):
        return driver.request("POST", "symbols/upload", params, body=body)
    with open(folder + "/app.stripped", "rb") as f:
        binary = f.read()
    for what, answer, status in (
            ("another build id", post(binary, build_id="ab" * 20, kind="binary"), 400), ("garbage", post(b"x" * 5000, build_id=build_id, kind="binary"), 400),
            ("a debug file without anything", post(binary, build_id=build_id, kind="debug"), 400), ("no kind", post(binary, build_id=build_id), 400),
            ("a path as build id", post(binary, build_id="../../../etc/x", kind="binary"), 400), ("an empty body", post(b"", build_id=build_id, kind="binary"), 400),
            ("half a file", post(binary[:3000], build_id=build_id, kind="binary"), 400),
            ("more than a file may be", post(b"x" * (2 << 20), build_id=build_id, kind="binary"), 413)):
        tap.check(answer.status == status, "upload refused: %s" % what, (answer.status, answer.body[:200]))
    answer = driver.request("GET", "symbols").json()
    tap.check(answer["uploads"] == [] and answer["unnamed"] == [], "nothing of that is there", answer)
    # One that goes away in the middle.
    s = socket.create_connection(driver.host.split(":"))
    s.sendall(b"POST /api/v1/symbols/upload?build_id=%s&kind=binary HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" % build_id.encode() + b"x" * 20000)
    time.sleep(0.2)
    there = glob.glob(folder + "/symbols/.upload-*")
    s.close()
    time.sleep(0.3)
    tap.check(len(there) == 1 and not glob.glob(folder + "/symbols/.upload-*"), "of an upload that was broken off nothing stays", there)


def check_names(driver, folder, build_id, calls):
    stack = (calls["leaky"], calls["caller"], calls["main"])
    data = pprof.encode({stack: (10, 10240, 10, 10240)}, path="/nowhere/app", build_id=build_id)
    series = driver.series({"job": "app"}, 21, T0, build_id)
    driver.profile(series, T0, data)
    have = names(driver, series)
    tap.check(all("!" in n for n in have), "frames have no names at first", list(have))
    listed = driver.get("symbols").json()["unnamed"]
    tap.check(listed in ([], [{"build_id": build_id, "path": "/nowhere/app", "frames": 3}]), "symbols: it is listed, or was asked for in vain", listed)
    time.sleep(1.5)     # asked for in vain at least once
    check_refusals(driver, folder, build_id)
    missing = driver.get("symbols/missing", build_id=[build_id, "12" * 20]).json()["builds"]
    tap.check([(m["build_id"], m["binary"], m["debug"]) for m in missing] == [(build_id, True, True), ("12" * 20, True, True)], "missing: both", missing)
    r = upload(driver, "--debug-dir", folder + "/none", folder + "/app.symtab")
    tap.check(r.returncode == 0 and r.stdout.startswith("sent") and build_id in r.stdout, "a binary with a symbol table is sent", r.stdout + r.stderr)
    have = wait_for(driver, series, lambda h: "leaky" in h)
    tap.check({"leaky", "caller", "main"} <= set(have) and "inner" not in have, "old profiles have its names", list(have))
    missing = driver.get("symbols/missing", build_id=build_id).json()["builds"][0]
    tap.check(not missing["binary"] and missing["debug"], "missing: the debug file", missing)
    r = upload(driver, "--debug-dir", folder + "/app.debug", folder + "/app.stripped")
    tap.check(r.returncode == 0 and sorted(line.split()[0] + line.split()[2] for line in r.stdout.splitlines()) == ["sentdebug", "therebinary"],
              "the stripped program's debug file is found and sent, the binary is there", r.stdout + r.stderr)
    have = wait_for(driver, series, lambda h: "inner" in h)
    tap.check("inner" in have and have["inner"]["flat"]["value"] == 10240, "poor names become better ones: inlined functions", list(have))
    lines = names(driver, series, by="line")
    tap.check(any(r.get("file", "").endswith("app.c") and r.get("line") == 3 for r in lines.values()), "and lines", list(lines.values())[:3])
    r = upload(driver, "--debug-dir", folder + "/app.debug", folder + "/app.stripped")
    tap.check(r.returncode == 0 and "sent" not in r.stdout and r.stdout.count("there") == 2, "nothing is sent twice", r.stdout + r.stderr)
    r = upload(driver, "--force", folder + "/app")
    tap.check(r.returncode == 0 and r.stdout.startswith("sent"), "--force sends it again", r.stdout + r.stderr)
    found = driver.get("profile", series=series, at=T0, symbolize=0, format="top").json()["rows"]
    tap.check(all("!" in row["name"] for row in found), "symbolize=0 still has none")
    got = pprof.Profile(driver.get("profile", series=series, at=T0).body)
    tap.check(list(got.sums.values()) == [(10, 10240, 10, 10240)] and "inner" in next(iter(got.sums))[0], "pprof has them", list(got.sums))


def check_command(driver, folder):
    with open(folder + "/text", "w") as f:
        f.write("no program")
    subprocess.run(["cc", "-Wl,--build-id=none", "-o", folder + "/anonymous", folder + "/app.c"], check=True)
    for what, words, status, text in (
            ("no --to", [folder + "/app"], 2, "--to"), ("no ELF file", ["--to", driver.url, folder + "/text"], 1, "text"),
            ("no build id", ["--to", driver.url, folder + "/anonymous"], 1, "--build-id"),
            ("nobody there", ["--to", "http://127.0.0.1:1", folder + "/app"], 1, "cannot connect"),
            ("no such file", ["--to", driver.url, folder + "/absent"], 1, "No such file")):
        r = run(HEAPGAUGE, "upload-symbols", *words)
        first = r.stderr.splitlines()
        tap.check(r.returncode == status and text in r.stderr and len(first) == (2 if status == 2 else 1), "upload-symbols: " + what, r.stderr)


def check_limits(driver, folder):
    """As many as fit are taken; uploads are limited in number."""
    host, port = driver.host.split(":")
    waiting = []
    for _ in range(4):
        s = socket.create_connection((host, port))
        s.sendall(b"POST /api/v1/symbols/upload?build_id=" + b"cd" * 20 + b"&kind=binary HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n\r\n" + b"x" * 100)
        waiting.append(s)
    time.sleep(0.3)
    answer = driver.request("POST", "symbols/upload", {"build_id": "cd" * 20, "kind": "binary"}, body=b"x" * 5000)
    tap.check(answer.status == 429 and answer.headers["Retry-After"] == "1", "a fifth upload at a time is 429", (answer.status, answer.body))
    for s in waiting:
        s.close()
    time.sleep(0.3)
    lines = driver.command("metrics")
    tap.check("heapgauge_symbols_uploads_total 3" in lines, "metrics count uploads", [x for x in lines if "uploads" in x])


def main():
    for tool in ("cc", "objcopy", "strip", "readelf", "nm", "objdump"):
        if not shutil.which(tool):
            tap.skip("names that come late", tool + " is not installed")
            return tap.done()
    with tempfile.TemporaryDirectory() as folder:
        build_id, calls, _ = build(folder)
        driver = Driver(sys.argv[1], folder, folder=folder + "/symbols", poll_s=1, file_max_bytes=1 << 20)
        check_names(driver, folder, build_id, calls)
        check_command(driver, folder)
        check_limits(driver, folder)
        tap.check(driver.end() == 0, "the driver ends well")
        with open(folder + "/symbols/.upload-abc", "w") as f:
            f.write("left behind")
        driver = Driver(sys.argv[1], folder, folder=folder + "/symbols", poll_s=1)
        uploads = driver.get("symbols").json()["uploads"]
        tap.check({(u["build_id"], u["kind"]) for u in uploads} == {(build_id, "binary"), (build_id, "debug")} and
                  not os.path.exists(folder + "/symbols/.upload-abc"), "uploads are there the next time, left-overs are not", uploads)
        driver.end()
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
