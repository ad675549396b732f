#!/usr/bin/env python3
"""The library's functions in a real program: what they see, what they say when it can't be, and that nothing of them is in the picture.

library.py HEAPGAUGE HOST HOST_PLAIN HOST_STATIC COUNT_MALLOC [--reduced]
"""
import os
import shutil
import subprocess
import sys
import tempfile

from harness import Host, check, done, flat, near, skip, top

heapgauge, host, host_plain, host_static, count_malloc = sys.argv[1:6]
reduced = "--reduced" in sys.argv
DUMPS = 200 if reduced else 1000
scratch = tempfile.mkdtemp()


def saved(h, what="save"):
    path = os.path.join(scratch, "profile")
    h.tell("%s %s" % (what, path))
    return path


def states():
    with Host(host_plain, None) as h:
        check(h.tell("status").startswith("0 0 0 0"), "without jemalloc the status says so")
        text = h.refused("dump 1")
        check("error -1" in text and "heapgauge run" in text, "a dump without jemalloc names what to do", text)
    with Host(host, None) as h:
        check(h.tell("status").startswith("1 1 0 0"), "profiling that wasn't enabled is seen")
        text = h.refused("dump 1")
        check("error -3" in text and " MALLOC_CONF=prof:true" in text, "opt.prof off names the variable", text)
        text = h.refused("activate")
        check("error -3" in text, "and can't be activated", text)
    with Host(host, "prof:true,prof_active:false,lg_prof_sample:12") as h:
        check(h.tell("status").startswith("1 1 1 0 12 5."), "inactive is seen, with rate and version", h.tell("status"))
        h.tell("leak 1000 4096")
        text = h.refused("save " + os.path.join(scratch, "none"))
        check("error -4" in text and "hg_activate" in text, "a dump with nothing sampled is refused", text)
        h.tell("activate")
        h.tell("leak 1000 8192")
        h.tell("deactivate")
        found = flat(top(heapgauge, saved(h)), "planted_leak")
        check(near(found, 8192000, 0.15), "samples stay when sampling stops, and only they are there", found)
        check(h.tell("status").startswith("1 1 1 0"), "deactivated")
        h.tell("reset 14")
        check(h.tell("status").startswith("1 1 1 0 14"), "reset changes the rate", h.tell("status"))
        check("error -4" in h.refused("dump 1"), "reset forgets all samples")
        check("error -8" in h.refused("reset 63"), "a rate that makes no sense is refused")
    with Host(host_static, None) as h:
        text = h.tell("status")
        check(text.startswith("1 1 0 0") and '"hgt_"' in text and " HGT_MALLOC_CONF" in text,
              "a jemalloc inside the program under a prefix of its own is found", text)


def pictures():
    for name, program, env in (("linked", host, {}), ("static, prefixed", host_static, {}),
                               ("preloaded", host_plain, {"LD_PRELOAD": "libjemalloc.so.2"})):
        with Host(program, "prof:true,lg_prof_sample:12", env=env) as h:
            h.tell("leak 3000 4096")
            h.tell("cache 500 16384")
            report = top(heapgauge, saved(h))
            leak, cache = flat(report, "planted_leak"), flat(report, "planted_cache")
            check(near(leak, 3000 * 4096, 0.1) and near(cache, 500 * 16384, 0.1), "%s: both functions with what they hold" % name,
                  (leak, cache))
            text = top(heapgauge, saved(h, "save-jeheap"))
            check(near(flat(text, "planted_leak"), leak, 0.01), "%s: jemalloc's text tells the same" % name)
            h.tell("drop")
            report = top(heapgauge, saved(h))
            check(flat(report, "planted_cache") == 0 and flat(report, "planted_leak") == leak, "%s: what was freed is gone" % name)
            child = os.path.join(scratch, "child")
            h.tell("fork " + child)
            check(near(flat(top(heapgauge, child), "planted_leak"), leak, 0.01), "%s: a forked child dumps and starts an agent" % name)
            check(near(flat(top(heapgauge, saved(h)), "planted_leak"), leak, 0.01), "%s: and so does its parent afterwards" % name)


def through_the_loader():
    loader = next((p for p in ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1") if os.path.exists(p)), None)
    if not loader:
        skip("started through ld.so", "no loader of a known name")
        return
    with Host(host, wrapper=[loader]) as h:
        h.tell("leak 3000 4096")
        check(near(flat(top(heapgauge, saved(h)), "planted_leak"), 3000 * 4096, 0.1), "started through ld.so")


def own_traces():
    """At R = 1 every allocation is in the profile."""
    with Host(host, "prof:true,lg_prof_sample:0") as h:
        h.start("127.0.0.1:0")
        h.tell("leak 100 1000")
        h.tell("dump 2")
        before = top(heapgauge, saved(h, "save-jeheap"))
        h.tell("dump %d" % DUMPS)
        after = top(heapgauge, saved(h, "save-jeheap"))
        check(before["total"]["value"] == after["total"]["value"], "%d dumps leave the profile at R = 1 as it was, to the byte" % DUMPS,
              (before["total"], after["total"]))
        h.end()
    with Host(host, "prof:true,lg_prof_sample:0,prof_accum:true") as h:
        h.start("127.0.0.1:0")
        h.tell("dump 2")
        rows = [top(heapgauge, saved(h, "save-jeheap"), "--metric", "alloc_space")["total"]["value"]]
        h.tell("dump %d" % DUMPS)
        rows.append(top(heapgauge, saved(h, "save-jeheap"), "--metric", "alloc_space")["total"]["value"])
        check(rows[0] == rows[1], "not one byte was allocated and freed again in %d dumps" % DUMPS, rows)


def figures(path):
    with open(path) as f:
        return [int(word) for word in f.read().split()]


def interposed():
    path = os.path.join(scratch, "counts")
    with Host(host, preload=[count_malloc, "libjemalloc.so.2"], env={"COUNT_MALLOC": path}) as h:
        h.start("127.0.0.1:0")
        h.tell("leak 100 1000")
        h.tell("dump 2")
        before = figures(path)
        h.tell("dump %d" % DUMPS)
        h.tell("dump-jeheap 50")
        after = figures(path)
        check(before == after, "nobody asked malloc for anything during %d dumps" % DUMPS, (before, after))
        check(before[1] > 100 and before[0] == 0, "(and it would have been counted)", before)
        h.tell("leak 10 1000")
        check(figures(path)[1] == after[1] + 10, "(each call counts)")


def nothing_grows():
    with Host(host) as h:
        h.start("127.0.0.1:0")
        h.tell("leak 1000 1000")
        h.tell("dump 20")
        fds, threads, rss = h.tell("fds"), h.tell("threads"), int(h.tell("rss").split()[0])
        h.tell("dump %d" % DUMPS)
        grown = int(h.tell("rss").split()[0]) - rss
        check(h.tell("fds") == fds and h.tell("threads") == threads, "descriptors and threads stay as many")
        check(grown <= 512 * 1024, "resident memory stays within 512 KiB: %d KiB" % (grown // 1024))
        h.tell("stop")
        check(int(h.tell("threads")) == int(threads) - 2, "stop ends the agent's threads; the one that dumps stays", h.tell("threads"))


def named():
    with Host(host) as h:
        h.start("none", "symbolizer=" + heapgauge)
        h.tell("leak 3000 4096")
        path = os.path.join(scratch, "named")
        h.tell("named folded " + path)
        with open(path) as f:
            check("planted_leak" in f.read(), "folded text with names")
        h.tell("named svg " + path)
        with open(path) as f:
            text = f.read()
            check("<svg" in text and "planted_leak" in text, "a flame graph")
        check("error -8" in h.refused("named nonsense " + path), "an unknown form is refused")
    with Host(host) as h:
        h.start("none", "symbolizer=/nonexistent/heapgauge")
        text = h.refused("named folded " + path)
        check("error -11" in text and "install" in text, "without a heapgauge program the error says so", text)


def exports():
    for library in sys.argv[6:]:
        if not library.endswith(".so") and ".so." not in library:
            continue
        names = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True).stdout.split("\n")
        names = [line.split()[-1] for line in names if line]
        check(0 < len(names) <= 20 and all(n.startswith("hg_") for n in names), "%s exports at most 20 names, all hg_" %
              os.path.basename(library), names)
        needed = subprocess.run(["readelf", "-d", library], capture_output=True, text=True).stdout
        needed = {word.split("[")[1].split("]")[0].split(".so")[0] for word in needed.split("\n") if "NEEDED" in word}
        check(needed <= {"libc", "libz", "libm", "libpthread", "libdl", "ld-linux-x86-64", "ld-linux-aarch64"},
              "%s needs libc, pthread and zlib only" % os.path.basename(library), needed)


try:
    states()
    pictures()
    through_the_loader()
    own_traces()
    interposed()
    nothing_grows()
    named()
    exports()
finally:
    shutil.rmtree(scratch)
sys.exit(done())
