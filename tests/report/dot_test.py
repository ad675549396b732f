"""
Call graphs: what is drawn is compared with the same graph made here from folded text, and
Graphviz has to draw it.

  dot_test.py EXPORT_FIXTURE
"""
import collections
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET

import flame
from flame import check


def text(quoted):
    """What a dot string says."""
    return re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m.group(1), m.group(1)), quoted).replace("&amp;", "&")


def size(value, sign=False):
    out = "-" if value < 0 else "+" if sign and value > 0 else ""
    value = abs(value)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if value < 1023.5 or unit == "TiB":
            break
        value /= 1024
    if unit == "B":
        return out + "%d B" % value
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return out + "%d%s %s" % (int(value * 10 ** digits + 0.5) // 10 ** digits,
                              "." + str(int(value * 10 ** digits + 0.5))[-digits:] if digits else "", unit)


class Dot:
    def __init__(self, source):
        self.nodes, self.edges = {}, {}
        for line in source.split("\n"):
            node = re.match(r'N(\d+) \[label="((?:[^"\\]|\\.)*)".*tooltip="((?:[^"\\]|\\.)*)"(.*)\]$', line)
            edge = re.match(r'N(\d+) -> N(\d+) \[label="((?:[^"\\]|\\.)*)"(.*)\]$', line)
            if node:
                self.nodes[node.group(1)] = (text(node.group(3)).split("\n")[0], text(node.group(2)), node.group(4))
            elif edge:
                self.edges[edge.group(1), edge.group(2)] = (text(edge.group(3)).strip(), "dashed" in edge.group(4))
        self.names = {number: n[0] for number, n in self.nodes.items()}


def expected(stacks, kept):
    """cum, flat by name; weight and whether residual by pair of kept names."""
    cum, flat, edges, residual = (collections.Counter() for _ in range(4))
    for frames, base, now in stacks:
        value = now - base
        for name in set(frames):
            cum[name] += value
        if frames:
            flat[frames[-1]] += value
        caller, between, seen = None, False, set()
        for name in frames:
            if name not in kept:
                between = True
                continue
            if caller is not None and not (between and caller == name):
                residual[caller, name] += between
                if (caller, name) not in seen:
                    seen.add((caller, name))
                    edges[caller, name] += value
            caller, between = name, False
    return cum, flat, edges, residual


def reachable(edges, start, goal, without):
    seen, pile = {start}, [start]
    while pile:
        at = pile.pop()
        for a, b in edges:
            if a != at or (a, b) == without or b in seen:
                continue
            if b == goal:
                return True
            seen.add(b)
            pile.append(b)
    return False


def check_graph(fixture, kind, diff=False):
    source = fixture.write(kind, "dot").decode()
    d, stacks = Dot(source), fixture.stacks(kind)
    kept = set(d.names.values())
    cum, flat, edges, residual = expected(stacks, kept)
    whole = sum(abs(now - base) for _, base, now in stacks)
    heavy = {n for n, v in cum.items() if v and abs(v) >= 0.005 * whole}
    check(kept == heavy if len(heavy) <= 80 else len(kept) == 80 and kept < heavy,
          "%s: %d of the %d functions over 0.5 %% are shown" % (kind, len(kept), len(heavy)))
    wrong = [(name, label) for name, label, _ in d.nodes.values()
             if size(flat[name], diff) not in label or (flat[name] != cum[name] and "of " + size(cum[name], diff) not in label)]
    check(not wrong, kind + ": nodes say what their functions hold", wrong[:2])
    shown = {(d.names[a], d.names[b]): e for (a, b), e in d.edges.items()}
    wrong = [(pair, e, size(edges[pair], diff), residual[pair]) for pair, e in shown.items()
             if e[0] != size(edges[pair], diff) or e[1] != bool(residual[pair])]
    check(not wrong, "%s: %d edges say what goes over them, dashed where frames are missing" % (kind, len(shown)), wrong[:3])
    check(all(abs(edges[p]) >= 0.001 * whole for p in shown), kind + ": no edge is below 0.1 %")
    missing = [p for p, v in edges.items() if abs(v) >= 0.001 * whole and p not in shown]
    check(all(residual[p] and reachable(shown, p[0], p[1], p) for p in missing),
          "%s: the %d left out are residual, and there is another way" % (kind, len(missing)), missing[:3])
    check(source == fixture.write(kind, "dot").decode(), kind + ": the same again")
    return d


def check_drawn(fixture, kind):
    if not shutil.which("dot"):
        check(True, "%s: dot draws it # SKIP graphviz is not installed" % kind)
        return
    source = fixture.write(kind, "dot")
    done = subprocess.run(["dot", "-Tsvg"], input=source, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    check(done.returncode == 0 and not done.stderr, "%s: dot draws it without complaint" % kind, done.stderr.decode())
    root, svg = ET.fromstring(done.stdout), "{http://www.w3.org/2000/svg}"
    groups = [g for g in root.iter(svg + "g") if g.get("class") == "node"]
    drawn = sorted("".join(t.text or "" for t in g.iter(svg + "text")) for g in groups)
    said = sorted(re.sub("\n", "", n[1]) for n in Dot(source.decode()).nodes.values())
    legend = [t for t in drawn if t.startswith("inuse_space")]
    check(sorted(drawn) == sorted(said + legend) and len(legend) == 1, "%s: names arrive as they are" % kind,
          [p for p in zip(drawn, said) if p[0] != p[1]][:3])


def main():
    fixture = flame.Fixture(sys.argv[1])
    for kind in ("server", "exact", "3000", "deep"):
        check_graph(fixture, kind)
    d = check_graph(fixture, "diff", diff=True)
    check(any("dashed" in n[2] and "d4d4d4" in n[2] for n in d.nodes.values()), "diff: noise is grey and dashed")
    check(not Dot(fixture.write("same", "dot").decode()).nodes, "same: nothing changed, nothing is drawn")
    for kind in ("hostile", "diff", "empty", "exact"):
        check_drawn(fixture, kind)
    return flame.done()


sys.exit(main())
