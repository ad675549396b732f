"""What the tests of flame graphs share: making them, reading their data, results as TAP."""
import json
import subprocess
import sys

count = failures = 0


def check(good, what, why=None):
    global count, failures
    count += 1
    print("%s %d - %s" % ("ok" if good else "not ok", count, what), flush=True)
    if not good:
        failures += 1
        if why is not None:
            note(str(why)[:600])
    return bool(good)


def note(text):
    for line in text.splitlines():
        print("# " + line, flush=True)


def done():
    print("1..%d" % count, flush=True)
    return 1 if failures else 0


def skip_all(why):
    print("1..0 # SKIP " + why)
    sys.exit(0)


class Fixture:
    """The program that makes profiles and writes them."""

    def __init__(self, program):
        self.program = program
        self.said = ""

    def write(self, kind, form, *by):
        done = subprocess.run([self.program, kind, form, *by], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              check=False)
        self.said = done.stderr.decode(errors="replace")
        if done.returncode:
            raise RuntimeError("%s %s: %s" % (kind, form, self.said))
        return done.stdout

    def stacks(self, kind):
        """[(frames root first, base, now)] of the folded text."""
        result = []
        for line in self.write(kind, "folded").decode().splitlines():
            words = line.rsplit(" ", 2 if kind.startswith("diff") or kind == "same" else 1)
            frames = words[0].split(";")
            if frames == ["(no frames)"]:
                frames = []
            base = int(words[1]) if len(words) == 3 else 0
            result.append((frames, base, int(words[-1])))
        return result


def data(root):
    for e in root.iter("{http://www.w3.org/2000/svg}script"):
        if e.get("id") == "data":
            return json.loads(e.text)
    raise RuntimeError("no data")


def parents(d):
    last, result = {}, []
    for i, depth in enumerate(d["depth"]):
        result.append(last.get(depth - 1, 0))
        last[depth] = i
    return result


def starts(d):
    """Where each box begins, in units of width: behind its parent's beginning and the siblings before it."""
    width, result, filled = d.get("width", d["now"]), [], []
    for i, parent in enumerate(parents(d)):
        result.append(result[parent] + filled[parent] if i else 0)
        if i:
            filled[parent] += width[i]
        filled.append(0)
    return result


class Tree:
    """A calling-context tree by name. Nodes are numbers, 0 the root: no node holds its whole path."""

    def __init__(self):
        self.child = {}
        self.name = [""]
        self.parent = [0]
        self.amount = [[0, 0, 0]]    # base, now, width

    def find(self, parent, name, add=False):
        node = self.child.get((parent, name))
        if node is None and add:
            node = self.child[parent, name] = len(self.name)
            self.name.append(name)
            self.parent.append(parent)
            self.amount.append([0, 0, 0])
        return node

    def add(self, frames, base, now):
        at, nodes = 0, [0]
        for name in frames:
            at = self.find(at, name, True)
            nodes.append(at)
        for node in nodes:
            amount = self.amount[node]
            amount[0] += base
            amount[1] += now
            amount[2] += max(base, now)


def nodes(d, tree):
    """The tree's node of each box, -1 when there is none; None for a remainder."""
    result = []
    for i, parent in enumerate(parents(d)):
        if i == 0:
            result.append(0)
        elif d["frame"][i] < 0:
            result.append(None)
        else:
            node = tree.find(result[parent], d["frames"][d["frame"][i]][0])
            result.append(-1 if node is None else node)
    return result


def columns(character):
    c = ord(character)
    return 2 if c >= 0x1100 and not 0x2000 <= c <= 0x2fff else 1
