"""
Every writing system call on a store's files fails, once and for good, at each of its first occasions: the error says so, what was acknowledged
stays, nothing half appears, and the next call after the fault works.

HEAPGAUGE_FAULTS says how many occasions of each kind (default 6).
"""
import errno
import os
import shutil
import subprocess
import sys
import tempfile

client, preload = sys.argv[1:3]
occasions = int(os.environ.get("HEAPGAUGE_FAULTS", "6"))
directory = tempfile.mkdtemp(prefix="heapgauge-faults-")
plan = os.path.join(directory, "plan")
store = os.path.join(directory, "faulty", "store.db")
n = 0
failures_seen = 0


def result(good, name, note=""):
    global n
    n += 1
    if not good and note:
        print("# " + "\n# ".join(note.strip().splitlines()[-12:]))
    print("%sok %d - %s" % ("" if good else "not ", n, name))


def set_plan(text):
    with open(plan + ".new", "w") as f:
        f.write(text)
    os.rename(plan + ".new", plan)


class Client:
    def __init__(self):
        set_plan("none 0 0 0\n")
        env = dict(os.environ, LD_PRELOAD=preload, HEAPGAUGE_FAULT_FILE="faulty", HEAPGAUGE_FAULT_PLAN=plan)
        self.process = subprocess.Popen([client, "torment", store], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        self.acks = []

    def round(self, word):
        """One round; True: all of it worked. The sentence of what failed otherwise."""
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        said = ""
        for line in self.process.stdout:
            if line.startswith("ack "):
                self.acks.append(line)
            elif line == "done\n":
                return said or True
            elif line.startswith("failed open"):
                return line
            else:
                said += line
        return "the client ended: %s" % self.process.poll()

    def end(self):
        self.process.stdin.close()
        self.process.stdout.read()
        return self.process.wait()


# A page that can't be read is sometimes damage in SQLite's words.
words = {errno.ENOSPC: "o space left", errno.EIO: "nput/output error", errno.EROFS: "ead-only"}
try:
    for call in ["write", "sync", "truncate", "open", "read", "change"]:
        for error in [errno.ENOSPC, errno.EIO, errno.EROFS]:
            if call in ("read", "sync") and error != errno.EIO:
                continue
            for count in [1, 1000000]:
                name = "%s fails with %s%s" % (call, errno.errorcode[error], "" if count == 1 else " until it is mended")
                os.makedirs(os.path.dirname(store), exist_ok=True)
                c = Client()
                notes = ""
                good = c.round("a") is True and c.round("j") is True
                failed = 0
                for after in range(occasions):
                    set_plan("%s %d %d %d\n" % (call, error, after, count))
                    for word in ["a", "j", "c", "a"]:
                        said = c.round(word)
                        if said is not True:
                            failed += 1
                            # A sentence of one line for each, with the file and why.
                            for line in said.strip().splitlines():
                                if "store.db" not in line or not any(w in line for w in list(words.values()) + ["unable to open", "disk I/O", "no room"] + ["damaged"] * (call == "read")):
                                    good = False
                                    notes += "odd words: %s\n" % line
                    set_plan("none %d 0 0\n" % after)
                    # The next call works.
                    for word in ["a", "j", "c", "a"]:
                        said = c.round(word)
                        if said is not True:
                            good = False
                            notes += "after fault %d: %s\n" % (after, said)
                status = c.end()
                if status != 0:
                    good = False
                    notes += "the client ended with %d\n" % status
                failures_seen += failed
                answer = subprocess.run([client, "verify", store], input="".join(c.acks), capture_output=True, text=True)
                if answer.returncode != 0:
                    good = False
                    notes += answer.stdout + answer.stderr
                result(good, name, notes)
                shutil.rmtree(os.path.dirname(store))
    print("# %d calls failed" % failures_seen)
    result(failures_seen > 20 * occasions / 6, "faults were felt")
    print("1..%d" % n)
finally:
    shutil.rmtree(directory)
