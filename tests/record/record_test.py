#!/usr/bin/env python3
"""record_test.py HEAPGAUGE: targets good and bad, restarts, reloads, pushes, over the recorder's own interface."""
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "truth"))
import tap  # noqa: E402
from bad_targets import Recorder, Targets, dump  # noqa: E402

HEAPGAUGE = os.path.abspath(sys.argv[1])
scratch = tempfile.mkdtemp(prefix="heapgauge-record-")
targets = Targets()

BAD = {
    "/garbage": r"no(t a| known)|known format|field|profile",
    "/page": r"HTML",
    "/empty": r"empty",
    "/inactive": r"403: nothing is being sampled: activate it$",
    "/cut": r"gzip|ends|trunc",
    "/short": r"closed the connection before",
    "/half": r"ends|MAPPED_LIBRARIES|trunc",
    "/bomb": r"unpacks to more",
    "/huge": r"larger than body_size_limit",
    "/endless": r"larger than body_size_limit",
    "/drip": r"no whole answer in time",
    "/hang": r"no whole answer in time",
    "/loop": r"redirects more than 3 times",
    "/off": r"another host or port",
    "/nowhere": r"404",
    "/token": r"401: it wants a password or token",
}


def config(extra=""):
    jobs = "".join("  - job_name: %s\n    profile_path: %s\n    metrics_path: ''\n    static_configs: [{targets: ['%s']}]\n" %
                   (path[1:], path, targets.address) for path in list(BAD) + ["/gz", "/coded", "/moved"])
    return """
global: {scrape_interval: 1s, scrape_timeout: 700ms, body_size_limit: 1MB, external_labels: {site: here}}
scrape_configs:
  - job_name: good
    profile_path: /good
    params: {debug: ["0"]}
    static_configs: [{targets: ['%s'], labels: {tier: front}}]
  - job_name: refused
    static_configs: [{targets: ['127.0.0.1:1']}]
  - job_name: twins
    profile_path: /good
    static_configs: [{targets: ['%s', 'http://%s/gz']}]
    relabel_configs: [{regex: instance, action: labeldrop}]
  - job_name: few
    target_limit: 1
    static_configs: [{targets: ['127.0.0.1:2', '127.0.0.1:3']}]
  - job_name: samples
    profile_path: /good
    sample_limit: 0
    static_configs: [{targets: ['%s']}]
  - job_name: found
    profile_path: /good
    file_sd_configs: [{files: ['sd/*.json']}]
    relabel_configs:
      - {source_labels: [drop], regex: 'yes', action: drop}
      - {source_labels: [__address__], regex: '(.*):\\d+', target_label: host}
%s%s""" % (targets.address, targets.address, targets.address, targets.address, jobs, extra)


def write_sd(name, content):
    folder = os.path.join(scratch, "sd")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "." + name), "w", encoding="utf-8") as f:
        f.write(content if isinstance(content, str) else json.dumps(content))
    os.rename(os.path.join(folder, "." + name), os.path.join(folder, name))


def check_bad(r):
    state = {t["job"]: t for t in r.targets()}
    for path, why in BAD.items():
        t = state[path[1:]]
        tap.check(t["health"] == "down" and re.search(why, t["error"]) and "\n" not in t["error"], "bad target %s says why" % path, t)
    tap.check("Connection refused" in state["refused"]["error"], "nobody listens: it says so", state["refused"])
    for job in ("gz", "coded", "moved"):
        tap.check(state[job]["health"] == "up" and state[job]["samples"] == 1, "%s: a profile" % job, state[job])
    tap.check(sorted(t["health"] for t in r.targets() if t["job"] == "twins") == ["down", "up"], "of two targets with the same labels one is scraped")
    twin = [t for t in r.targets() if t["job"] == "twins" and t["health"] == "down"]
    tap.check(twin and "same labels" in twin[0]["error"] and twin[0]["scrapes"] == 0, "and the other says why", twin)
    tap.check(all("target_limit" in t["error"] for t in r.targets() if t["job"] == "few"), "target_limit: none of too many is scraped")


def check_good(r):
    before = r.target(job="good")["scrapes"]
    time.sleep(5)
    t = r.target(job="good")
    tap.check(4 <= t["scrapes"] - before <= 6, "the good one has its turns among the bad ones", (before, t))
    tap.check(t["failures"] == 0 and t["health"] == "up" and t["error"] == "", "and none of them failed", t)
    tap.check(t["labels"] == {"instance": targets.address, "job": "good", "site": "here", "tier": "front"}, "its labels", t)
    m = r.metrics()
    tap.check(m["process_resident_memory_bytes"] < (2000e6 if os.environ.get("SANITIZED") else 200e6), "bad ones cost no memory", m["process_resident_memory_bytes"])
    tap.check(m["heapgauge_scrape_late_seconds_max"] < 1, "no scrape is late", m["heapgauge_scrape_late_seconds_max"])
    tap.check(m['heapgauge_scrape_failures_total{reason="timeout"}'] >= 4 and m['heapgauge_scrape_failures_total{reason="too_large"}'] >= 4 and
              m['heapgauge_scrape_failures_total{reason="format"}'] >= 4, "failures are counted by reason")
    up = [n for n in m if n.startswith("heapgauge_target_up{") and 'job="good"' in n]
    tap.check(len(up) == 1 and m[up[0]] == 1, "heapgauge_target_up", up)
    prometheus = r.json("/api/v1/targets")
    active = [t for t in prometheus["data"]["activeTargets"] if t["scrapePool"] == "good"]
    tap.check(prometheus["status"] == "success" and len(active) == 1 and active[0]["health"] == "up" and
              active[0]["discoveredLabels"]["__address__"] == targets.address and active[0]["scrapeUrl"].endswith("/good?debug=0"),
              "targets as Prometheus lists them", active)
    gauges = r.json("/api/v1/gauges?match=%7Bjob%3D%22good%22%7D")
    text = json.dumps(gauges)
    tap.check('"rss"' in text and "jemalloc_allocated" in text, "gauges of its metrics are in the store", text[:400])


def check_restart(r):
    tap.check(len([s for s in r.series() if s["labels"]["job"] == "good"]) == 1, "one process is one series")
    targets.state["base"] += 0x10000000
    targets.state["started"] += 60
    t = r.wait(lambda: (r.target(job="good") or {}).get("restarts") == 1 and r.target(job="good"))
    tap.check(t, "a restart is seen", r.target(job="good"))
    two = [s for s in r.series() if s["labels"]["job"] == "good"]
    tap.check(len(two) == 2 and two[0]["process"] != two[1]["process"] and two[0]["labels"] == two[1]["labels"], "and begins a series", two)
    time.sleep(2.2)
    tap.check(r.target(job="good")["restarts"] == 1, "once")


def check_discovery(r):
    write_sd("a.json", [{"targets": [targets.address], "labels": {"from": "a"}},
                        {"targets": ["127.0.0.1:4"], "labels": {"drop": "yes"}}])
    t = r.wait(lambda: r.target(job="found", **{"from": "a"}))
    tap.check(t and t["labels"]["host"] == "127.0.0.1", "a file of targets: found and relabelled", t)
    tap.check(r.json("/api/v1/targets")["dropped"] == 1, "what relabelling drops is counted")
    tap.check(r.wait(lambda: r.target(job="found")["health"] == "up"), "and scraped")
    scrapes = r.target(job="found")["scrapes"]
    write_sd("a.json", "[{\"targets\": [\"x:1\"], \"lables\": {}}]")
    r.wait(lambda: "lables" in r.log())
    tap.check(re.search(r"a\.json:1:\d+: .*'lables': is 'labels' meant", r.log()), "a damaged file: said with its place", r.log()[-500:])
    tap.check(r.wait(lambda: r.target(job="found")["scrapes"] > scrapes), "its targets stay as they were")
    os.remove(os.path.join(scratch, "sd", "a.json"))
    tap.check(r.wait(lambda: not [t for t in r.targets() if t["job"] == "found"]), "a file that is gone: so are its targets")


def check_reload(r):
    path = os.path.join(scratch, "heapgauge.yml")
    before = r.target(job="good")
    with open(path, "w", encoding="utf-8") as f:
        f.write(config("  - job_name: good\n"))
    status, body, _ = r.ask("/-/reload", b"", "POST")
    tap.check(status == 500 and re.search(rb"heapgauge\.yml:\d+:\d+: .*'good'.*from before holds", body), "a bad configuration is refused, with its place",
              (status, body))
    tap.check(r.wait(lambda: r.target(job="good")["scrapes"] > before["scrapes"]), "what was there goes on")
    with open(path, "w", encoding="utf-8") as f:
        f.write(config("  - {job_name: more, profile_path: /gz, static_configs: [{targets: ['%s']}]}\n" % targets.address))
    next_ms = r.target(job="good")["next_ms"]
    status, body, _ = r.ask("/-/reload", b"", "POST")
    tap.check(status == 200, "a good one is taken", (status, body))
    t = r.target(job="good")
    tap.check(t["scrapes"] >= before["scrapes"] and (t["next_ms"] - next_ms) % 1000 in (0, 1, 2, 998, 999),
              "a target that stays keeps its state and its turn", (before, t, next_ms))
    tap.check(r.wait(lambda: (r.target(job="more") or {}).get("health") == "up"), "a new one is scraped")
    with open(path, "w", encoding="utf-8") as f:
        f.write(config())
    r.process.send_signal(signal.SIGHUP)
    tap.check(r.wait(lambda: r.target(job="more") is None), "SIGHUP: the same")
    tap.check(r.wait(lambda: r.metrics()["heapgauge_reloads_total"] == 2 and r.metrics()["heapgauge_reload_failures_total"] == 1),
              "reloads are counted")
    tap.check([s for s in r.series() if s["labels"]["job"] == "more"], "what it recorded is still there")


def push(r, query, body):
    return r.ask("/api/v1/push" + query, body, "POST")


def check_push(r):
    text = dump(0x56aa00000000, 7)
    for what, body in (("jemalloc's text", text), ("gzipped", gzip.compress(text))):
        status, answer, _ = push(r, "?job=pushed&instance=a%20b", body)
        tap.check(status == 204 and not answer, "push: %s" % what, (status, answer))
    mine = [s for s in r.series() if s["labels"].get("job") == "pushed"]
    tap.check(len(mine) == 1 and mine[0]["profiles"] == 2 and mine[0]["labels"] == {"instance": "a b", "job": "pushed", "site": "here"},
              "push: it is there when 204 is", mine)
    for query, body, status, why in (
            ("?job=x", b"", 400, "empty"), ("?job=x", b"nonsense\n", 400, "known format"), ("", text, 400, "labels"),
            ("?__a__=x", text, 400, "no name of a label"), ("?a=1&a=2", text, 400, "twice"), ("?a=%zz", text, 400, "malformed"),
            ("?a=%4", text, 400, "malformed"), ("?a=%00", text, 400, "malformed"), ("?9=1", text, 400, "no name"),
            ("?job=x", gzip.compress(text)[:-9], 400, "gzip|end"),
            ("?" + "&".join("l%d=1" % i for i in range(70)), text, 400, "more than 64")):
        got, answer, _ = push(r, query, body)
        tap.check(got == status and re.search(why, answer.decode()), "push refused: %s %s" % (query[:20], why), (got, answer))
    got, answer, _ = r.ask("/api/v1/push?job=x")
    tap.check(got == 405, "push: POST only", got)
    with socket.create_connection(r.url[7:].split(":"), 10) as s:
        s.sendall(b"POST /api/v1/push?job=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n")
        tap.check(b" 413 " in s.recv(100), "push: too large is refused before it is sent")


def check_states(r):
    tap.check(r.ask("/-/ready")[0] == 200 and r.ask("/-/healthy")[0] == 200, "ready and healthy")
    tap.check(r.ask("/-/ready?x=1")[0] == 400, "no parameters there")
    tap.check(r.ask("/api/v1/targets", headers={"Host": "evil.example"})[0] == 421, "another host's name is refused")


def check_again(r):
    """A recorder that starts again knows its processes."""
    series = {(s["id"], s["profiles"]) for s in r.series() if s["labels"]["job"] == "good"}
    tap.check(r.end() == 0, "SIGTERM: ends with 0", r.log()[-300:])
    again = Recorder(HEAPGAUGE, scratch, "--store", os.path.join(scratch, "s.db"), config=config())
    tap.check(again.wait(lambda: (again.target(job="good") or {}).get("scrapes", 0) >= 2), "started again")
    now = {(s["id"], s["profiles"]) for s in again.series() if s["labels"]["job"] == "good"}
    tap.check({i for i, _ in now} == {i for i, _ in series} and sum(n for _, n in now) > sum(n for _, n in series),
              "a process that was there goes on in its series", (series, now))
    return again


def check_access():
    """Who may ask the recorder, and as whom it asks."""
    folder = os.path.join(scratch, "access")
    os.mkdir(folder)
    with open(os.path.join(folder, "secret"), "w", encoding="utf-8") as f:
        f.write("from-a-file\n")
    targets.state["tokens"] = {"Bearer from-a-file", "Basic dTpwOjE=", "Token given"}
    made = subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2",
                           "-subj", "/CN=app.example", "-addext", "subjectAltName=DNS:app.example"], cwd=folder, capture_output=True, check=False)
    job = "  - {job_name: %s, profile_path: /token, static_configs: [{targets: ['%s']}], %s}\n"
    jobs = "".join(job % (name, targets.address, how) for name, how in (
        ("file", "authorization: {credentials_file: secret}"), ("basic", "basic_auth: {username: u, password: 'p:1'}"),
        ("other", "authorization: {type: Token, credentials: given}"), ("wrong", "bearer_token: no"),
        ("nofile", "bearer_token_file: missing")))
    if made.returncode == 0:
        secure = Targets((os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")))
        job = "  - {job_name: %s, scheme: https, profile_path: /good, static_configs: [{targets: ['%s']}], tls_config: {%s}}\n"
        jobs += job % ("tls", secure.address, "ca_file: cert.pem, server_name: app.example") + job % ("tlsname", secure.address, "ca_file: cert.pem")
        jobs += job % ("tlsany", secure.address, "insecure_skip_verify: true") + job % ("tlsunknown", secure.address, "server_name: app.example")
    jobs += "  - {job_name: many, scrape_interval: 100ms, profile_path: /other, metrics_path: '', static_configs: [{targets: ['%s']}]}\n" % targets.address
    r = Recorder(HEAPGAUGE, folder, config="global: {scrape_interval: 1s}\nweb: {token: 0123456789abcdef0123}\nscrape_configs:\n" + jobs)
    try:
        tap.check(r.ask("/api/v1/targets")[0] == 401 and r.ask("/api/v1/push?job=x", dump(), "POST")[0] == 401, "a token is asked for", r.log())
        headers = {"Authorization": "Bearer 0123456789abcdef0123"}

        def states():
            status, body, _ = r.ask("/api/v1/targets", headers=headers)
            return {t["job"]: t for t in json.loads(body)["targets"]} if status == 200 else {}

        tap.check(states(), "and the right one lets in")
        r.wait(lambda: all(t["health"] != "unknown" for t in states().values()) and states()["many"]["restarts"] >= 20 and
               states()["many"]["health"] == "down", 30)
        state = states()
        for name in ("file", "basic", "other"):
            tap.check(state[name]["health"] == "up", "asks with %s" % name, state[name])
        tap.check("401" in state["wrong"]["error"], "a wrong token: 401", state["wrong"])
        tap.check("missing: No such file" in state["nofile"]["error"], "a token's file that isn't there", state["nofile"])
        tap.check(state["many"]["health"] == "down" and "load balancer" in state["many"]["error"] and state["many"]["restarts"] <= 21,
                  "one who is another process each time costs some series, and then none", state["many"])
        if made.returncode == 0:
            tap.check(state["tls"]["health"] == "up" and state["tlsany"]["health"] == "up", "TLS: with its authority, and without looking", state["tls"])
            tap.check(state["tlsname"]["health"] == state["tlsunknown"]["health"] == "down" and "certificate" in state["tlsunknown"]["error"],
                      "TLS: another name, or nobody's word for it", (state["tlsname"], state["tlsunknown"]))
        else:
            tap.skip("TLS", "openssl makes no certificate here")
    finally:
        r.end()


def main():
    r = Recorder(HEAPGAUGE, scratch, "--store", os.path.join(scratch, "s.db"), config=config())
    if not tap.check(r.url.startswith("http://127.0.0.1:"), "it prints its address", r.log()):
        return tap.done()
    try:
        time.sleep(2.5)
        check_bad(r)
        check_good(r)
        check_restart(r)
        check_discovery(r)
        check_reload(r)
        check_push(r)
        check_states(r)
        r = check_again(r)
        check_access()
        tap.check(not [line for line in r.log().splitlines() if not line.startswith("heapgauge: warning: ")], "the log is whole lines", r.log())
    finally:
        r.end()
    return tap.done()


try:
    status = main()
finally:
    shutil.rmtree(scratch, ignore_errors=True)
sys.exit(status)
