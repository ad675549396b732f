#!/usr/bin/env python3
"""The watch in real programs that leak until they are killed, that are killed while it writes, and that do nothing at all.

watch.py memory|snapshots HEAPGAUGE HOST SNAPSHOT_LOOP COUNT_MALLOC [--reduced]
"""
import gzip
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

from cgroup import memory_group
from harness import Host, ask, check, done, flat, note, skip, status, top

part, heapgauge, host, snapshot_loop, count_malloc = sys.argv[1:6]
reduced = "--reduced" in sys.argv
MIB = 1 << 20
scratch = tempfile.mkdtemp()
folders = 0


def new_folder():
    global folders
    folders += 1
    return os.path.join(scratch, "snapshots%d" % folders)


def files(folder):
    """Paths, oldest first."""
    return [os.path.join(folder, name) for name in sorted(os.listdir(folder))] if os.path.isdir(folder) else []


def wait_for(what, seconds=20):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = what()
        if found:
            return found
        time.sleep(0.02)
    return None


def snapshots(url):
    return status(url)["snapshots"]


# --- out of memory ------------------------------------------------------------------


def leaked_bytes(path):
    with open(path, "rb") as f:
        return struct.unpack("Q", f.read(8))[0]


def judge(what, folder, leaked):
    """The last snapshot names the leak, with at least 80 % of what was leaked at the end. Its part of that."""
    final, left = leaked_bytes(leaked), files(folder)
    if not check(left and not [p for p in left if not p.endswith(".pb.gz")], "%s: there are snapshots, and nothing else" % what, left):
        return 0
    report = top(heapgauge, left[-1])
    part = flat(report, "planted_leak") / final
    check(0.8 <= part <= 1.1 and report["rows"][0]["name"] == "planted_leak",
          "%s: the last of %d shows planted_leak first, with %.1f %% of the %d MiB it had at the end" % (what, len(left), 100 * part, final // MIB),
          report["rows"][:3])
    for path in left[:-1]:
        top(heapgauge, path)
    return part


def die_in(group, limit, speed, block):
    """The part of the final bytes that its last snapshot shows."""
    what = "%d MB/s in %d MiB" % (speed // 1000000, limit // MIB)
    folder, leaked = new_folder(), os.path.join(scratch, "leaked")
    group.limit(limit)
    with Host(host, "prof:true,lg_prof_sample:16", wrapper=group.wrapper()) as h:
        h.start("none", "snapshots=" + folder)
        h.tell("leak-forever %d %d %s" % (speed, block, leaked))
        h.process.wait(120)
        check(h.process.returncode == -9, "%s: the kernel kills it" % what, h.process.returncode)
    return judge(what, folder, leaked)


def killed_in_cgroup():
    with memory_group() as group:
        if isinstance(group, str):
            skip("programs that run out of memory in a cgroup", group)
            return
        note("a memory cgroup, v%d" % group.version)
        rounds = 1 if reduced else 3
        slow = [die_in(group, 64 * MIB, 20000000, 4096) for _ in range(rounds)]
        fast = [die_in(group, 512 * MIB, 500000000, 65536) for _ in range(rounds)]
        note("part of the final bytes in the last snapshot: slow %s, fast %s" % tuple(
            " ".join("%.3f" % part for part in parts) for parts in (slow, fast)))


def limited_address_space():
    """malloc fails in the end, and the program is killed by whoever notices."""
    what = "100 MB/s with RLIMIT_AS"
    folder, leaked = new_folder(), os.path.join(scratch, "leaked")
    with Host(host, "prof:true,lg_prof_sample:16", wrapper=["/bin/sh", "-c", 'ulimit -v 600000 && exec "$0"']) as h:
        h.start("none", "snapshots=" + folder)
        h.tell("leak-forever 100000000 65536 " + leaked)
        last = -1
        while last != leaked_bytes(leaked):
            last = leaked_bytes(leaked)
            time.sleep(1)
        h.process.kill()
    check(last > 300 * MIB, "%s: it leaks until there is no more" % what, last)
    note("RLIMIT_AS: %.3f" % judge(what, folder, leaked))


def many_stacks():
    """A snapshot of a hundred thousand stacks where next to nothing is left must not be what kills the program."""
    n = 131072 if not reduced else 16384
    what = "%d stacks" % n
    with memory_group() as group:
        if isinstance(group, str):
            skip(what + " in a tight cgroup", group)
            return
        folder = new_folder()
        with Host(host, "prof:true,lg_prof_sample:0", wrapper=group.wrapper()) as h:
            h.tell("stacks %d 64" % n)
            used = group.usage()
            room = 16 * MIB
            group.limit(used + room)
            url = h.start(words="snapshots=" + folder)
            s = wait_for(lambda: (lambda s: s if s["taken"] + s["failed"] else None)(snapshots(url)), 60)
            check(s and s["taken"] == 1 and s["limit"] == "cgroup", "%s with %d MiB left: a snapshot is taken, and it lives" % (what, room // MIB), s)
            found = flat(top(heapgauge, files(folder)[-1]), "planted_leak") if s else 0
            check(found == n * 64, "%s: all of them are in it" % what, found)
            note("%s: %.0f ms, %d MiB used before" % (what, s["last_ms"] if s else 0, used // MIB))
            # Nor one whose text, twice as much as is left, goes to memory that can't be written out: it is given back while it is read.
            group.limit(group.usage() + 2 * room)
            h.tell("dump 1")
            check(h.process.poll() is None, "%s: and a dump in memory" % what)


# --- triggers -----------------------------------------------------------------------


def fires(what, words, act, conf="prof:true,lg_prof_sample:12"):
    folder = new_folder()
    with Host(host, conf) as h:
        url = h.start(words="limit_percent=101;interval=1;snapshots=%s;%s" % (folder, words))
        h.tell("leak 1000 4096")
        time.sleep(1.5)
        before = snapshots(url)
        check(before["taken"] == 0 and before["failed"] == 0 and not files(folder), "%s: nothing without need" % what, before)
        act(h)
        s = wait_for(lambda: (lambda s: s if s["taken"] else None)(snapshots(url)))
        check(s and s["last_reason"] == what and s["last"] == files(folder)[-1], "%s: a snapshot" % what, s)
        check(flat(top(heapgauge, files(folder)[-1]), "planted_leak") > 3000000, "%s: it is one of this program" % what)


def triggers():
    with Host(host) as h:
        resident = int(h.tell("rss").split()[0])
    fires("rss", "rss=%d" % (resident + 100 * MIB), lambda h: h.tell("map %d" % (120 * MIB)))
    fires("growth", "growth=%d" % (64 * MIB), lambda h: h.tell("leak 20000 4096"))


def squeeze(group):
    """A process that reads more than its cgroup holds, over and over."""
    big = os.path.join(scratch, "big")
    with open(big, "wb") as f:
        for _ in range(96):
            f.write(os.urandom(MIB))
        f.flush()
        os.fsync(f.fileno())
        # Else its pages stay ours.
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    group.limit(16 * MIB)
    return subprocess.Popen(group.wrapper() + ["/bin/sh", "-c", 'while :; do cat "%s" "%s" > /dev/null; done' % (big, big)])


def pressure():
    if not os.path.exists("/proc/pressure/memory"):
        skip("pressure", "this kernel doesn't tell it")
        return
    with memory_group() as group:
        if isinstance(group, str):
            skip("pressure", group)
            return
        folder = new_folder()
        readers = []
        with Host(host) as h:
            url = h.start(words="limit_percent=101;interval=1;psi=5;snapshots=" + folder)
            h.tell("leak 1000 4096")
            try:
                readers = [squeeze(group), squeeze(group)]
                s = wait_for(lambda: (lambda s: s if s["taken"] else None)(snapshots(url)), 20)
            finally:
                for reader in readers:
                    reader.kill()
                    reader.wait()
            check(s and s["last_reason"] == "pressure" and files(folder), "pressure: a snapshot", s)


# --- when it can't be --------------------------------------------------------------


def failing():
    folder = new_folder()
    with Host(host, "prof:true,prof_active:false") as h:
        url = h.start(words="rss=1;interval=1;limit_percent=101;snapshots=" + folder)
        time.sleep(3.5)
        s = snapshots(url)
        check(s["taken"] == 0 and 2 <= s["failed"] <= 5, "inactive: each try is counted, one an interval", s)
        check("/heapgauge/activate" in s["last_error"] and s["last"] == "", "inactive: the status says what to do", s)
        check(not files(folder), "inactive: nothing is left in the folder", files(folder))
        text = ask(url, "/metrics")[2].decode()
        check("\nheapgauge_snapshots_failed_total %d\n" % s["failed"] in text or "\nheapgauge_snapshots_failed_total %d\n" % (s["failed"] + 1) in text,
              "inactive: and the metrics, too", text)
        h.tell("activate")
        h.tell("leak 1000 4096")
        s = wait_for(lambda: (lambda s: s if s["taken"] else None)(snapshots(url)), 5)
        check(s and s["last_error"] == "" and len(files(folder)) == 1, "once activated it is made up for", s)
    with Host(host, None) as h:
        url = h.start(words="rss=1;interval=1;limit_percent=101;snapshots=" + new_folder())
        s = wait_for(lambda: (lambda s: s if s["failed"] else None)(snapshots(url)), 5)
        check(s and "MALLOC_CONF=prof:true" in s["last_error"], "profiling off: the status says what to set", s)
    with Host(host) as h:
        for folder, words in (("/proc/none", "cannot make this folder"), (heapgauge, "cannot be written there")):
            text = h.refused("start 127.0.0.1:0 snapshots=" + folder)
            check("error -7" in text and folder in text and words in text, "a folder that can't be is refused at the start", text)
    folder = new_folder()
    with Host(host) as h:
        url = h.start(words="rss=1;interval=1;limit_percent=101;snapshots=" + folder)
        h.tell("leak 1000 4096")
        wait_for(lambda: files(folder), 5)
        shutil.rmtree(folder)
        h.tell("map %d" % (64 * MIB))
        s = wait_for(lambda: (lambda s: s if s["failed"] else None)(snapshots(url)), 5)
        check(s and "no snapshot can be written there: No such file" in s["last_error"], "a folder that went away is named", s)


def ring():
    folder = new_folder()
    with Host(host) as h:
        h.start("none", "growth=1000000;interval=1;count=2;limit_percent=101;snapshots=" + folder)
        h.tell("leak 1000 4096")
        h.tell("fork " + os.path.join(scratch, "child"))
        seen = set()
        until = time.monotonic() + 8
        while time.monotonic() < until and len(seen) < 4:
            h.tell("leak 1000 4096")
            seen.update(files(folder))
            check_count = len(files(folder))
            if check_count > 3:
                break
            time.sleep(0.2)
        check(len(seen) >= 4 and check_count <= 3, "a ring: the oldest goes", (sorted(seen), check_count))
        h.tell("stop")
        check(len(files(folder)) == 2, "as many stay as were asked for", files(folder))
        parts = os.path.basename(files(folder)[-1]).split(".")
        check(parts[0] == os.path.basename(host) and int(parts[1]) == h.pid and abs(int(parts[2]) - time.time()) < 100,
              "named after program, process and time", parts)
        report = top(heapgauge, files(folder)[-1])
        text = subprocess.run([heapgauge, "top", files(folder)[-1]], capture_output=True, text=True).stdout
        check("pid %d" % h.pid in text and time.strftime("%Y-%m-%d", time.gmtime()) in text, "top says which process, and when", text[:400])
        check(report["rows"][0]["name"] == "planted_leak", "with names from the program on disk", report["rows"][:2])


# --- kill -9 -------------------------------------------------------------------------


def whole(path):
    with open(path, "rb") as f:
        return len(gzip.decompress(f.read())) > 100


def killed(form, kills):
    folder = new_folder()
    seen, damaged, hidden = 0, [], 0
    random.seed(7)
    for _ in range(kills):
        p = subprocess.Popen([snapshot_loop, folder, "4", form], stdout=subprocess.PIPE,
                             env={**os.environ, "MALLOC_CONF": "prof:true,lg_prof_sample:12"})
        p.stdout.read(1)
        time.sleep(random.random() * 0.03)
        p.kill()
        p.wait()
        p.stdout.close()
        for path in files(folder):
            if os.path.basename(path).startswith("."):
                hidden += 1
                continue
            seen += 1
            try:
                if not whole(path):
                    damaged.append(path)
            except Exception as error:
                damaged.append((path, error))
    what = "%d times killed at any moment of writing (%s files)" % (kills, form)
    check(seen > kills and not damaged, "%s: every one of %d files found was whole" % (what, seen), damaged[:3])
    check(hidden == 0 if form == "unnamed" else hidden > 0, "%s: unfinished ones %s" % (what, "are nowhere" if form == "unnamed" else "are hidden"),
          hidden)
    subprocess.run([snapshot_loop, folder, "0", form], stdout=subprocess.DEVNULL, check=True,
                   env={**os.environ, "MALLOC_CONF": "prof:true"})
    left = files(folder)
    check(left and all(p.endswith(".pb.gz") for p in left) and len(left) <= 8, "%s: the next start leaves no litter" % what, left)
    for path in left:
        check(flat(top(heapgauge, path), "planted_leak") > 0, "%s: %s is a profile" % (what, os.path.basename(path)))


# --- cost ------------------------------------------------------------------------------


def thread_seconds(pid, name):
    """CPU time of a thread."""
    for task in os.listdir("/proc/%d/task" % pid):
        base = "/proc/%d/task/%s/" % (pid, task)
        with open(base + "comm") as f:
            if f.read().strip() != name:
                continue
        with open(base + "schedstat") as f:
            return int(f.read().split()[0]) / 1e9
    return None


def watched(words, wrapper=()):
    """A host with a watch, and what it had of its own before that one began."""
    h = Host(host, wrapper=wrapper)
    h.start("none")
    h.tell("stop")
    before = int(h.tell("rss").split()[1])
    h.start("none", "snapshots=%s;%s" % (new_folder(), words))
    return h, before


def idle_cost():
    with memory_group() as group:
        hosts = {"all triggers": watched("rss=%d;growth=%d;psi=90" % (1 << 40, 1 << 40))}
        if isinstance(group, str):
            skip("cost near a limit", group)
        else:
            group.limit(64 * MIB)
            hosts["in 64 MiB"] = watched("", group.wrapper())
        time.sleep(0.5)
        # A machine with more to do than it can takes its caches away from who wakes up.
        most = 0.001 if os.getloadavg()[0] < os.cpu_count() and not reduced else 0.003
        least = {}
        for _ in range(4):      # what others did to it meanwhile is not its own
            begin, at = {what: thread_seconds(h.pid, "heapgauge-watch") for what, (h, _) in hosts.items()}, time.monotonic()
            time.sleep(3 if reduced else 10)
            for what, (h, _) in hosts.items():
                used = (thread_seconds(h.pid, "heapgauge-watch") - begin[what]) / (time.monotonic() - at)
                least[what] = min(used, least.get(what, used))
            if max(least.values()) < most:
                break
        for what, (h, before) in hosts.items():
            used = least[what]
            grown = (int(h.tell("rss").split()[1]) - before) // 1024
            check(used < most, "%s: %.4f %% of a core when idle" % (what, 100 * used))
            check(grown <= 256, "%s: %d KiB of memory" % (what, grown))
            h.end()


def nothing_from_the_host():
    path, folder = os.path.join(scratch, "counts"), new_folder()
    with Host(host, preload=[count_malloc, "libjemalloc.so.2"], env={"COUNT_MALLOC": path}) as h:
        url = h.start(words="growth=1;rss=1;psi=1;interval=1;snapshots=" + folder)
        for _ in range(3):
            h.tell("leak 100 1000")
            taken = snapshots(url)["taken"]
            wait_for(lambda: snapshots(url)["taken"] > taken, 5)
        s = snapshots(url)
        with open(path) as f:
            ours, everybody = (int(word) for word in f.read().split())
        check(s["taken"] >= 2 and ours == 0 and everybody >= 300, "the watch and %d snapshots ask the host's malloc for nothing" % s["taken"],
              (s, ours, everybody))


try:
    if part == "memory":
        killed_in_cgroup()
        limited_address_space()
        many_stacks()
        idle_cost()
        nothing_from_the_host()
    else:
        triggers()
        pressure()
        failing()
        ring()
        killed("unnamed", 30 if reduced else 200)
        killed("named", 30 if reduced else 100)
finally:
    shutil.rmtree(scratch)
sys.exit(done())
