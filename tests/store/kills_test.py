"""
kill -9 at random moments of filling a store: whatever was acknowledged is there afterwards, equal, and the store is sound.

HEAPGAUGE_KILLS says how many (default 25).
"""
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

client = sys.argv[1]
kills = int(os.environ.get("HEAPGAUGE_KILLS", "25"))
chance = random.Random(4711)
directory = tempfile.mkdtemp(prefix="heapgauge-kills-")
store = os.path.join(directory, "store.db")


def kill(word, n):
    """What a client acknowledged until it was killed, and what else it said."""
    # To a file: what is in a pipe when its reader is late must not hold the client up.
    with open(os.path.join(directory, "acks"), "w+b") as acks:
        child = subprocess.Popen([client, word, store, str(n), "0"], stdout=acks)
        time.sleep(chance.uniform(0, 0.15) if n % 4 else chance.uniform(0, 0.02))
        child.send_signal(signal.SIGKILL)
        child.wait()
        acks.seek(0)
        lines = [line for line in acks.read().decode().splitlines(keepends=True) if line.endswith("\n")]
    return [line for line in lines if line.startswith("ack ")], [line for line in lines if not line.startswith("ack ")]


def still_there(lines):
    """Those of the last two hours: the others may be gone."""
    times = [int(line.split()[3]) for line in lines]
    return [line for line, t in zip(lines, times) if t > times[-1] - 2 * 3600000]


def run(word, wanted):
    """Kills; the names of what was lost, and how many were acknowledged."""
    acknowledged, lost, answer = [], 0, None
    for n in range(kills):
        acks, said = kill(word, n)
        if said:
            lost += 1
            print("# kill %d: the client said: %s" % (n, said[0].rstrip()))
        acknowledged += acks
        if n % 10 == 9 or n == kills - 1:
            answer = subprocess.run([client, "verify", store], input="".join(wanted(acknowledged)), capture_output=True, text=True)
            if answer.returncode != 0:
                lost += 1
                print("# after %d kills: %s%s" % (n + 1, answer.stdout, answer.stderr[:2000]))
                break
    print("# %d kills, %d profiles acknowledged; %s" % (n + 1, len(acknowledged), answer.stdout.strip()))
    return lost, len(acknowledged)


try:
    lost, acknowledged = run("fill", lambda lines: lines)
    print("%sok 1 - after each kill all acknowledged profiles are there, and the store is sound" % ("not " if lost else ""))
    print("%sok 2 - there were some" % ("" if acknowledged > kills else "not "))
    store += ".swept"
    lost, acknowledged = run("churn", still_there)
    print("%sok 3 - also where stacks of no use are swept up all the time" % ("not " if lost else ""))
    db = sqlite3.connect(store)
    first, n = db.execute("SELECT min(id), count(*) FROM rows").fetchone()
    print("# %d rows are left, the first is number %d" % (n, first))
    print("%sok 4 - some were" % ("" if first > 1 and acknowledged > 10 else "not "))
    print("1..4")
finally:
    shutil.rmtree(directory)
