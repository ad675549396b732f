#!/usr/bin/env python3
"""What programs do at the worst moment, each in a process of its own: torture.py HEAPGAUGE TORTURE TORTURE_STATIC BIG_LOCALS FAIL_CALLS"""
import os
import subprocess
import sys

from harness import check, done

heapgauge, torture, torture_static, big_locals, fail_calls = sys.argv[1:6]
ACTIVE, IDLE = "prof:true,lg_prof_sample:9", "prof:true,prof_active:false,lg_prof_sample:9"


def run(name, conf=ACTIVE, program=torture, env=None, what=""):
    environment = {k: v for k, v in os.environ.items() if k not in ("MALLOC_CONF", "LD_PRELOAD")}
    environment.update({"MALLOC_CONF": conf}, **(env or {}))
    p = subprocess.run([program, name], capture_output=True, text=True, errors="replace", env=environment, timeout=150)
    for line in p.stdout.splitlines():
        word, _, text = line.partition(" ")
        check(word == "good", name + what + ": " + text, p.stderr)
    check(p.returncode == 0, "%s%s ended" % (name, what), (p.returncode, p.stderr[-2000:]))


run("forks")
run("fork-in-span", IDLE)
# Its jemalloc has not been called before the agent starts, and so puts its handlers of forks behind ours.
run("fork-in-span", IDLE, torture_static, what=", prefixed")
run("exit")
run("start-stop")
run("two-dumps")
run("small-stack")
run("descriptors")
run("no-descriptors")
run("no-memory")
run("cancel")
run("use-mallctl")
run("sampling", IDLE)
run("reset-in-span")
run("start-stop", env={"LD_PRELOAD": big_locals}, what=", a megabyte of thread-local variables")
run("faults", env={"LD_PRELOAD": fail_calls})
sys.exit(done())
