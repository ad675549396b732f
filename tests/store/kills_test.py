"""
kill -9 at random moments of filling a store: whatever was acknowledged is there afterwards, equal, and the store is sound.

HEAPGAUGE_KILLS says how many (default 25).
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

client = sys.argv[1]
kills = int(os.environ.get("HEAPGAUGE_KILLS", "25"))
chance = random.Random(4711)
directory = tempfile.mkdtemp(prefix="heapgauge-kills-")
store = os.path.join(directory, "store.db")
acknowledged = []
lost = 0
try:
    for n in range(kills):
        # To a file: what is in a pipe when its reader is late must not hold the client up.
        with open(os.path.join(directory, "acks"), "w+b") as acks:
            child = subprocess.Popen([client, "fill", store, str(n), "0"], stdout=acks)
            time.sleep(chance.uniform(0, 0.15) if n % 4 else chance.uniform(0, 0.02))
            child.send_signal(signal.SIGKILL)
            child.wait()
            acks.seek(0)
            lines = acks.read().decode().splitlines(keepends=True)
        said = [line for line in lines if line.endswith("\n") and not line.startswith("ack ")]
        if said:
            lost += 1
            print("# kill %d: the client said: %s" % (n, said[0].rstrip()))
        acknowledged += [line for line in lines if line.startswith("ack ") and line.endswith("\n")]
        if n % 10 == 9 or n == kills - 1:
            answer = subprocess.run([client, "verify", store], input="".join(acknowledged), capture_output=True, text=True)
            if answer.returncode != 0:
                lost += 1
                print("# after %d kills: %s%s" % (n + 1, answer.stdout, answer.stderr[:2000]))
                break
    print("# %d kills, %d profiles acknowledged; %s" % (n + 1, len(acknowledged), answer.stdout.strip()))
    print("%sok 1 - after each kill all acknowledged profiles are there, and the store is sound" % ("not " if lost else ""))
    print("%sok 2 - there were some" % ("" if len(acknowledged) > kills else "not "))
    print("1..2")
finally:
    shutil.rmtree(directory)
