"""The store beside the simplest things one could do: a row per sample in SQLite, and a pprof file per profile.

Real profiles are dumps of a server under load, taken by `heapgauge attach PID dump`: ClickHouse while tables are filled, Redis
under redis-benchmark; whichever is installed. What can't be had is said, not guessed.
"""
import glob
import itertools
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request

CLICKHOUSE = """<yandex><logger><level>none</level></logger><http_port>%d</http_port><listen_host>127.0.0.1</listen_host>
<path>%s/</path><tmp_path>%s/tmp/</tmp_path><users_config>%s/users.xml</users_config><mark_cache_size>100000000</mark_cache_size></yandex>"""
CLIENTS = 3
USERS = """<yandex><profiles><default/></profiles><users><default><password></password><networks><ip>::/0</ip></networks>
<profile>default</profile><quota>default</quota></default></users><quotas><default/></quotas></yandex>"""


def wait_for(url):
    for _ in range(100):
        try:
            return urllib.request.urlopen(url, timeout=1).read()
        except OSError:
            time.sleep(0.1)
    raise OSError("no answer from " + url)


def take_dumps(heapgauge, pid, directory, n, seconds, work):
    """n dumps, seconds apart, while CLIENTS threads do work(number of the client, how many-th time) without a pause."""
    os.makedirs(directory, exist_ok=True)
    ended, failures = threading.Event(), []

    def client(number):
        for i in itertools.count():
            if ended.is_set():
                return
            try:
                work(number, i)
            except (OSError, subprocess.CalledProcessError) as why:
                failures.append(why)
                return

    clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in clients:
        thread.start()
    try:
        time.sleep(3)
        for i in range(n):
            time.sleep(seconds)
            subprocess.run([heapgauge, "attach", "-o", "%s/%04d.heap" % (directory, i), str(pid), "dump"], check=True,
                           stderr=subprocess.DEVNULL)
    finally:
        ended.set()
        for thread in clients:
            thread.join()
    if failures:
        raise failures[0]
    return sorted(glob.glob(directory + "/*.heap"))


def clickhouse_dumps(heapgauge, directory, n):
    home, port = directory + ".home", 18123
    shutil.rmtree(home, ignore_errors=True)
    os.makedirs(home + "/tmp")
    with open(home + "/config.xml", "w") as f:
        f.write(CLICKHOUSE % (port, home, home, home))
    with open(home + "/users.xml", "w") as f:
        f.write(USERS)
    env = dict(os.environ, MALLOC_CONF="prof:true,lg_prof_sample:9")
    server = subprocess.Popen([shutil.which("clickhouse-server"), "--config-file=" + home + "/config.xml"], env=env, cwd=home,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = "http://127.0.0.1:%d/" % port

    def ask(sql):
        return urllib.request.urlopen(url, sql.encode(), timeout=60).read()

    try:
        wait_for(url + "ping")
        for t in range(8):
            ask("CREATE TABLE t%d (d Date, k UInt64, s String, v Array(Float64)) ENGINE = MergeTree PARTITION BY d ORDER BY k" % t)

        def work(number, i):
            t = (number + i * 3) % 8
            ask("INSERT INTO t%d SELECT toDate(17000 + number %% 3), rand(), toString(rand()), [number / 3] "
                "FROM system.numbers LIMIT %d" % (t, 2000 * (1 + i % 20)))
            if i % 3 == 0:
                ask("SELECT s, count(), quantile(0.9)(k) FROM t%d GROUP BY s ORDER BY count() DESC LIMIT 10" % t)

        return take_dumps(heapgauge, server.pid, directory, n, 1, work)
    finally:
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        shutil.rmtree(home, ignore_errors=True)


def redis_dumps(heapgauge, directory, n):
    port = 16399
    env = dict(os.environ, MALLOC_CONF="prof:true,lg_prof_sample:9")
    server = subprocess.Popen([shutil.which("redis-server"), "--port", str(port), "--save", "", "--bind", "127.0.0.1"], env=env,
                              stdout=subprocess.DEVNULL)
    kinds = ["set,lpush", "hset,zadd", "sadd,lpop", "incr,rpush", "mset,spop"]
    try:
        time.sleep(0.5)

        def work(number, i):
            subprocess.run(["redis-benchmark", "-p", str(port), "-q", "-n", "20000", "-r", "50000", "-d", str(16 << i % 8), "-t",
                            kinds[(number + i) % len(kinds)]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        return take_dumps(heapgauge, server.pid, directory, n, 1, work)
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def samples_of(path):
    """{stack and thread: (objects, bytes)} of a dump, as printed."""
    found, stack = {}, None
    with open(path, errors="replace") as file:
        for line in file:
            if line.startswith("@"):
                stack = line.strip()
            elif line.startswith("MAPPED"):
                break
            elif stack and ": " in line:
                thread, rest = line.split(": ", 1)
                numbers = rest.replace(":", " ").replace("[", " ").split()
                if not thread.strip().startswith("t*") and len(numbers) >= 2:
                    found[stack + thread] = (int(numbers[0]), int(numbers[1]))
    return found


def changed(dumps):
    """Which part of the samples is new or another than in the dump before."""
    all_samples = others = 0
    before = None
    for path in dumps:
        now = samples_of(path)
        if before is not None:
            all_samples += len(now)
            others += sum(before.get(k) != v for k, v in now.items())
        before = now
    return others / all_samples if all_samples else 0


def rows_in_sqlite(dumps, path):
    """Bytes and samples of one row per sample: time, stack, objects, bytes."""
    if os.path.exists(path):
        os.unlink(path)
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE samples(series INTEGER, stack INTEGER, t INTEGER, objects INTEGER, bytes INTEGER, "
               "PRIMARY KEY(series, t, stack)) WITHOUT ROWID")
    numbers, n, began = {}, 0, time.process_time()
    for i, dump in enumerate(dumps):
        rows = [(1, numbers.setdefault(k, len(numbers)), 1760000000000 + i * 10000, o, b) for k, (o, b) in samples_of(dump).items()]
        db.executemany("INSERT INTO samples VALUES(?, ?, ?, ?, ?)", rows)
        n += len(rows)
    db.commit()
    db.close()
    return os.path.getsize(path), n, time.process_time() - began


def pprof_files(heapgauge, dumps):
    total = 0
    for dump in dumps:
        out = dump + ".pb.gz"
        subprocess.run([heapgauge, "convert", "--symbols", "none", "--to", "pprof", "-o", out, dump], check=True, stderr=subprocess.DEVNULL)
        total += os.path.getsize(out)
    return total


def figures(command):
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return {name: float(value) for name, value in (line.split() for line in text.splitlines())}


def fresh(path):
    for ending in ("", "-wal", "-shm", "-lock"):
        if os.path.exists(path + ending):
            os.unlink(path + ending)
    return path


def real_table(work, build, heapgauge, n):
    lines = ["| %d dumps of | samples | changed | store | row per sample, SQLite | pprof.gz files |" % n, "|---|---|---|---|---|---|"]
    for name, program, take in (("ClickHouse", "clickhouse-server", clickhouse_dumps), ("Redis", "redis-server", redis_dumps)):
        if not shutil.which(program):
            lines.append("| %s | not installed | | | | |" % name)
            continue
        dumps = sorted(glob.glob("%s/%s/*.heap" % (work, program)))
        try:
            dumps = dumps if len(dumps) >= n else take(heapgauge, "%s/%s" % (work, program), n)
        except (OSError, subprocess.CalledProcessError) as why:
            lines.append("| %s | no dumps: %s | | | | |" % (name, str(why).replace("|", " ")[:80]))
            continue
        ours = figures([build + "/bench/bench_store", "dumps", fresh(work + "/real.db")] + dumps)
        rows, row_samples, _ = rows_in_sqlite(dumps, work + "/rows.db")
        files = pprof_files(heapgauge, dumps)
        lines.append("| %s | %d | %.0f %% | %.2f B | %.1f B | %.1f B |" % (name, ours["samples"], 100 * changed(dumps),
                     ours["sealed_bytes"] / ours["samples"], rows / max(row_samples, 1), files / ours["samples"]))
    return lines


def table(work, build, heapgauge, hours):
    os.makedirs(work, exist_ok=True)
    lines = ["Bytes a sample on the disk, of sealed chunks; changed: samples that are new or other than ten seconds before.", ""]
    lines += real_table(work, build, heapgauge, 60) + [""]
    f = figures([build + "/bench/bench_store", "synthetic", fresh(work + "/synthetic.db"), str(hours)])
    lines += ["10 targets, every 10 s for %g h, 2,000 stacks, a fifth changes (%.1f M samples), one core:" % (hours, f["samples"] / 1e6), "",
              "| | |", "|---|---|",
              "| appended, with its transaction | %.1f M samples/s |" % (f["samples"] / f["append_cpu"] / 1e6),
              "| appended, sealed, rolled up to all tiers | %.1f M samples/s |" % (f["samples"] / (f["append_cpu"] + f["maintain_cpu"]) / 1e6),
              "| raw chunks read and added up | %.0f M samples/s |" % (f["merge_raw_per_second"] / 1e6),
              "| raw | %.2f B a sample |" % (f["tier_raw_bytes"] / f["tier_raw_samples"])]
    for mode in ("last", "average", "max"):
        lines.append("| 24 h of all targets merged, %s | %.0f ms of one core |" % (mode, 1000 * f["merge_day_" + mode]))
    return lines


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: store.py BUILD WORK HOURS")
    print("\n".join(table(sys.argv[2], sys.argv[1], sys.argv[1] + "/src/cli/heapgauge", float(sys.argv[3]))))
