#!/usr/bin/env python3
"""jeheap_reference.py DUMP PRINTED PROGRAM [raw|unbiased]

Reads a heap_v2 dump with a parser of its own, applies the formula line by line, and compares with what
jeheap_print printed: every stack, every thread, every mapping. Counts of a dump that is not raw were rounded by
jemalloc, so an estimate may lie anywhere between the formula's values at both ends of the rounding.
"""
import math
import re
import sys


def estimate(n, b, rate):
    if n <= 0 or b <= 0:
        return 0.0, 0.0
    if rate <= 1:
        return float(n), float(b)
    k = 1 / -math.expm1(-(b / n) / rate)
    return n * k, b * k


COUNTS = re.compile(r"^\s+t(\*|\d+): (\d+): (\d+) \[(\d+): (\d+)\](?: (.*))?$")
MAPS = re.compile(r"^([0-9a-f]+)-([0-9a-f]+) (\S+) ([0-9a-f]+) \S+ \d+ *(.*)$")


def parse(path):
    names, header, stacks, maps = {}, None, [], []
    rate, section = None, "header"
    for line in open(path, encoding="latin-1", newline="\n"):
        line = line.rstrip("\n")
        if rate is None:
            rate = int(line.split("/")[1])
        elif line.startswith("@"):
            stacks.append((tuple(int(a, 16) for a in line.split()[1:]), []))
            section = "stacks"
        elif line == "MAPPED_LIBRARIES:":
            section = "maps"
        elif section == "maps":
            m = MAPS.match(line)
            if m:
                maps.append((int(m[1], 16), int(m[2], 16), int(m[4], 16), m[3], m[5]))
        elif line:
            m = COUNTS.match(line)
            counts = tuple(int(x) for x in m.groups()[1:5])
            if section == "stacks":
                stacks[-1][1].append((m[1], counts))
            elif m[1] == "*":
                header = counts
            else:
                names[m[1]] = m[6]
    return rate, header, names, stacks, maps


def fail(text):
    print("not ok: " + text)
    sys.exit(1)


def span(n, b, rate, raw):
    """Least and greatest that one pair of counts may stand for: (objects, bytes), with room for rounding to integers."""
    if n == 0:
        return (0, 0), (0, 0)
    half = 0 if raw or rate <= 1 else 0.5
    corners = [estimate(n + dn, b + db, rate) for dn in (-half, half) for db in (-half, half)]
    low = tuple(min(c[i] for c in corners) for i in (0, 1))
    high = tuple(max(c[i] for c in corners) for i in (0, 1))
    # jemalloc keeps counts in eighths: up to 1/16 a block; and rounds bytes of a size class
    slack = 0 if half == 0 else n * (1 / 16) / 1.0
    return (low[0] - slack - 1, low[1] - n - 1), (high[0] + slack + 1, high[1] + n + 1)


def within(what, value, low, high):
    if not low <= value <= high:
        fail("%s is %d, expected %.1f to %.1f" % (what, value, low, high))


def main():
    dump, printed, program = sys.argv[1:4]
    raw = sys.argv[4] == "raw"
    rate, header, names, stacks, maps = parse(dump)
    accum = any(c[2] or c[3] for _, lines in stacks for _, c in lines)
    got, mappings, total = {}, [], None
    for line in open(printed, encoding="latin-1"):
        if line.startswith("rate"):
            words = line.split()
            if float(words[1]) != rate or int(words[3]) != raw or int(words[5]) != (4 if accum else 2):
                fail("source: " + line)
        elif line.startswith("mapping"):
            words = line.split(" ", 5)
            mappings.append((int(words[1], 16), int(words[2], 16), int(words[3], 16), words[4], words[5].strip("\n")))
        elif line.startswith("sample"):
            values, thread, frames = line.split("|", 2)
            values = [int(v) for v in values.split()[2:]]
            if not accum:
                values = [0, 0] + values
            frames = [f.split(":") for f in frames.split()]
            key = tuple(int(f[0], 16) + 1 for f in frames), thread.strip(" ")
            if key in got:
                values = [a + b for a, b in zip(values, got[key])]
            got[key] = values
            for address, mapping in frames:
                a = int(address, 16)
                want = [m for m in maps if m[0] <= a < m[1]]
                if int(mapping) < 0:
                    if want:
                        fail("frame %x has no mapping but lies in %s" % (a, want))
                elif not want or not mappings[int(mapping)][0] <= a < mappings[int(mapping)][1]:
                    fail("frame %x in the wrong mapping" % a)
                else:
                    m = mappings[int(mapping)]
                    if a - m[0] + m[2] != a - want[0][0] + want[0][2]:
                        fail("frame %x has another offset in its file" % a)
        elif line.startswith("total"):
            total = [int(v) for v in line.split()[1:]]
    if mappings and mappings[0][4] != program:
        fail("mapping 0 is %s, not %s" % (mappings[0][4], program))

    label = {t: "t" + t + (" " + n if n else "") for t, n in names.items()}
    sums = [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]
    formula = [0.0, 0.0]
    seen = set()
    for frames, lines in stacks:
        star = [c for t, c in lines if t == "*"][0]
        threads = [(t, c) for t, c in lines if t != "*"]
        stack_got = [0, 0, 0, 0]
        for t, c in threads:
            key = frames, label.get(t, "t" + t)
            values = got.get(key, [0, 0, 0, 0])
            if key not in seen:
                stack_got = [a + b for a, b in zip(stack_got, values)]
            seen.add(key)
            if raw or len(threads) == 1:
                for first, pair in ((2, c[0:2]), (0, c[2:4])):
                    low, high = span(pair[0], pair[1], rate, raw)
                    within("objects of %s" % (key,), values[first], low[0], high[0])
                    within("bytes of %s" % (key,), values[first + 1], low[1], high[1])
        for first, pair in ((2, star[0:2]), (0, star[2:4])):
            if raw:
                parts = [span(c[2 - first], c[3 - first], rate, True) for _, c in threads]
                low = [sum(p[0][i] for p in parts) for i in (0, 1)]
                high = [sum(p[1][i] for p in parts) for i in (0, 1)]
            else:
                low, high = span(pair[0], pair[1], rate, False)
            within("objects of stack", stack_got[first], low[0], high[0])
            within("bytes of stack", stack_got[first + 1], low[1], high[1])
        lines_used = [c for _, c in threads] if raw else [star]
        for c in lines_used:
            o, b = estimate(c[0], c[1], rate)
            formula[0] += o
            formula[1] += b
    if set(k for k, v in got.items() if any(v)) - seen:
        fail("samples that the dump has not")
    if abs(total[-1] - formula[1]) > 0.01 * formula[1] + 2 or (raw and abs(total[-1] - formula[1]) > len(stacks) + len(got)):
        fail("total %d, by the formula %.0f" % (total[-1], formula[1]))
    print("ok: %d stacks, %d samples, %d bytes (formula %.0f), %d objects (formula %.0f)" %
          (len(stacks), len(got), total[-1], formula[1], total[-2], formula[0]))


main()
