#!/usr/bin/env python3
"""The same answers as jeprof and google/pprof, on varied real dumps.

jeprof is asked by address, where its naming of unknown functions plays no part, and by function where all have
symbols; what it gets wrong is in jeprof_faults.py. pprof is asked about the files we write: it must print our
own figures for every function.

usage: references.py [--reduced] HEAPGAUGE POPULATION LOADED_LIBRARY ODD ODD_FIXED ODD_STATIC WORK_DIRECTORY
"""
import json
import os
import re
import shutil
import subprocess
import sys
import types

import dumps
import nm
import tap

# A line's object count is rounded to an integer before it is written, which moves the estimate of a line of few
# samples and of blocks about as large as R by up to 1 %. Where all blocks have one size heapgauge undoes
# that; jeprof doesn't. R = 1 has no such rounding. Raw counts neither, but there jeprof unsamples the sum of a
# path's threads, heapgauge each thread's line (jeprof_faults.py says who is right).
ROUNDING = 0.012
SUMMED_FIRST = 0.06
ROUNDING_OF_TOTAL = 0.003

ALLOCATOR = re.compile(r"^(je_|prof_|imalloc|iralloc|malloc|calloc|realloc|aligned_alloc|posix_memalign|memalign|"
                       r"operator new|_ZN|arena_|tcache_|large_|newImpl|fallback|void\* fallback)")
ROW = re.compile(r"^\s*(-?\d+)\s+\S+%\s+\S+%\s+(-?\d+)\s+\S+%\s?(.*)$")


JEPROF_TOOLS = nm.tools(addr2line="/bin/false")


def ours(options, *arguments):
    done = subprocess.run([options.heapgauge, *arguments, "--json", "-n", "0"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def jeprof(dump, *arguments):
    """Total, and rows of (flat, cum, name). Names from symbol tables only, as --symbols table has them."""
    done = subprocess.run(["jeprof", "--text", "--show_bytes", *arguments, dump.program, dump.path],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=dict(os.environ, JEPROF_TOOLS=JEPROF_TOOLS))
    lines = done.stdout.splitlines()
    total = next((int(line.split()[1]) for line in lines if line.startswith("Total: ")), 0)
    if done.returncode or not lines:
        tap.note("jeprof fails: " + done.stderr)
    rows = [(int(m[1]), int(m[2]), m[3]) for m in map(ROW.match, lines) if m]
    return total, rows


def mappings(path):
    with open(path, "rb") as file:
        text = file.read().split(b"MAPPED_LIBRARIES:\n")[1].decode()
    found = []
    for line in text.splitlines():
        words = line.split(None, 5)
        start, end = (int(x, 16) for x in words[0].split("-"))
        found.append((start, end, int(words[2], 16), words[5] if len(words) > 5 else ""))
    return found


def close(a, b, dump, scale=ROUNDING):
    if dump.exact:
        return abs(a - b) <= 1
    if dump.raw:
        scale = SUMMED_FIRST
    return abs(a - b) <= scale * max(abs(a), abs(b)) + 1


# --- jeprof ----------------------------------------------------------------------

def place_of(address, maps):
    for start, end, offset, path in maps:
        if start <= address < end:
            return (path, address - start + offset) if path else ("", address)
    return "", address


def check_addresses(options, dump):
    """Flat and cum of every address. What jeprof's list of names fails to trim is cost that we give to the caller."""
    total, rows = jeprof(dump, "--addresses")
    report = ours(options, "top", "--by", "address", "--symbols", "table", dump.path)
    mine = {(row.get("binary", ""), int(row["address"], 16)): row for row in report["rows"]}
    maps = mappings(dump.path)
    wrong, left, given, compared = [], 0, 0, 0
    for flat, cum, name in rows:
        address, _, name = name.partition(" ")
        place = place_of(int(address, 16), maps)
        if place not in mine:
            if "libjemalloc" not in place[0] and not ALLOCATOR.match(name):
                wrong.append("%s %s: jeprof %d %d, not among ours" % (*place, flat, cum))
            left += flat
            continue
        row = mine.pop(place)
        compared += 1
        my_flat, my_cum = row["flat"]["value"], row["cum"]["value"]
        if not close(my_cum, cum, dump):
            wrong.append("%s %s cum: jeprof %d, ours %d" % (*place, cum, my_cum))
        if flat == 0 and my_flat > 0:
            given += my_flat
        elif not close(my_flat, flat, dump):
            wrong.append("%s %s flat: jeprof %d, ours %d" % (*place, flat, my_flat))
    wrong += ["%s %#x: not among jeprof's" % place for place, row in mine.items() if row["cum"]["value"] > 1]
    if not close(left, given, dump):
        wrong.append("jeprof left %d in the allocator, we gave %d to its callers" % (left, given))
    mine_total = report["total"]["value"]
    tap.check(close(mine_total, total, dump, ROUNDING_OF_TOTAL), dump.name + ": jeprof's total",
              "jeprof %d, ours %d" % (total, mine_total))
    tap.check(not wrong and compared > 1, dump.name + ": jeprof's flat and cum of %d addresses" % compared,
              "\n".join(wrong[:8]))


def short_name(name):
    """As jeprof's ShortFunctionName: no arguments, no template arguments, no type in front."""
    name = re.sub(r"@@?[A-Z].*$", "", name)
    for pattern in r"\([^()]*\)(\s*const)?", r"<[^<>]*>":
        while True:
            shorter = re.sub(pattern, "", name)
            if shorter == name:
                break
            name = shorter
    return re.sub(r"^.*\s+(\w+::)", r"\1", name)


OWN = re.compile(r"^(main|linked|loaded)_|^(deep|worker|population_\w+|main|allocate_all)$")


def check_functions(options, dump):
    """Flat and cum of every function of our own test programs that isn't C++ (whose leaves jeprof misplaces)."""
    _, rows = jeprof(dump, "--functions")
    theirs = {short_name(name): (flat, cum) for flat, cum, name in rows}
    wrong, compared = [], 0
    for row in ours(options, "top", "--symbols", "table", dump.path)["rows"]:
        if not OWN.match(row["name"]):
            continue
        flat, cum = theirs.get(row["name"], (0, 0))
        compared += 1
        if not close(row["cum"]["value"], cum, dump) or \
           not (close(row["flat"]["value"], flat, dump) or (flat == 0 and "static" in dump.name)):
            wrong.append("%s: jeprof %d %d, ours %d %d" % (row["name"], flat, cum, row["flat"]["value"], row["cum"]["value"]))
    tap.check(not wrong and compared, dump.name + ": jeprof's flat and cum of %d functions" % compared,
              "\n".join(wrong[:8]))


def check_metric(options, dump, number):
    """The total of one of the other three metrics."""
    metrics = ["inuse_objects", "alloc_space", "alloc_objects"]
    metric = metrics[number % 3] if dump.accum else metrics[0]
    if dump.raw:
        return
    total, _ = jeprof(dump, "--" + metric)
    mine = ours(options, "top", "--metric", metric, "--symbols", "none", dump.path)["total"]["value"]
    # jemalloc counts objects in eighths of a sample's worth: up to 6 % off for large blocks.
    allowed = 0.07 if metric.endswith("objects") else ROUNDING_OF_TOTAL
    tap.check(total > 0 and close(mine, total, dump, allowed), "%s: jeprof's %s" % (dump.name, metric),
              "jeprof %d, ours %d" % (total, mine))


# --- google/pprof ------------------------------------------------------------------

def go_pprof():
    """The program itself, not the go command, which would look for changes each time."""
    if not shutil.which("go"):
        return None
    done = subprocess.run(["go", "tool", "-n", "pprof"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    path = done.stdout.strip()
    if done.returncode or not os.path.exists(path):
        return None
    return path


PPROF_ROW = re.compile(r"^\s*(-?\d+)B\s+\S+%\s+\S+%\s+(-?\d+)B\s+\S+%\s{2}(.*?)( \(inline\)| \(partial-inline\))?$")


def pprof_top(pprof, file, *arguments):
    done = subprocess.run([pprof, "-top", "-nodecount=0", "-nodefraction=0", "-edgefraction=0", "-unit=B",
                           "-symbolize=none", *arguments, file], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        return None, done.stderr
    total = re.search(r"of (-?\d+)B total|accounting for (-?\d+)B,", done.stdout)
    rows = {}
    for line in done.stdout.splitlines():
        match = PPROF_ROW.match(line.replace(" 0 ", " 0B ").replace(" 0  ", " 0B  "))
        if match:
            rows[match[3]] = int(match[1]), int(match[2])
    return (int(total[1] or total[2]) if total else 0), rows


def compare_pprof(pprof, file, report, what, *arguments):
    total, rows = pprof_top(pprof, file, *arguments)
    if total is None:
        tap.check(False, what, rows)
        return
    mine = {}
    for row in report["rows"]:
        flat, cum = mine.get(row["name"], (0, 0))
        field = "change" if report["diff"] else "value"
        mine[row["name"]] = flat + row["flat"][field], cum + row["cum"][field]
    mine = {name: amounts for name, amounts in mine.items() if amounts != (0, 0)}
    rows = {name: amounts for name, amounts in rows.items() if amounts != (0, 0)}
    wrong = ["%s: pprof %s, ours %s" % (name, rows.get(name), mine.get(name))
             for name in rows.keys() | mine.keys() if rows.get(name) != mine.get(name)]
    tap.check(not wrong and len(mine) > 0, "%s (%d functions)" % (what, len(mine)), "\n".join(wrong[:8]))


def check_pprof(options, pprof, dump):
    file = dump.path + ".pb.gz"
    subprocess.run([options.heapgauge, "convert", "--to", "pprof", "-o", file, dump.path], check=True,
                   stderr=subprocess.DEVNULL)
    metrics = ["inuse_space", "inuse_objects"]
    if dump.accum:
        metrics += ["alloc_space", "alloc_objects"]
    for metric in metrics:
        for source, path in ("dump", dump.path), ("converted file", file):
            report = ours(options, "top", "--metric", metric, path)
            compare_pprof(pprof, file, report, "%s: pprof -top prints our %s of the %s" % (dump.name, metric, source),
                          "-sample_index=" + metric)


def check_pprof_diff(options, pprof, found):
    by_name = {dump.name: dump for dump in found}
    for name, base in by_name.items():
        now = by_name.get(name[:-1] + "b")
        if name.endswith(", a") and now:
            report = ours(options, "top", "--base", base.path, now.path)
            compare_pprof(pprof, now.path + ".pb.gz", report, "pprof -diff_base prints our change: " + name[:-3],
                          "-diff_base=" + base.path + ".pb.gz")


def main():
    names = ("heapgauge", "population", "loaded", "odd", "odd_fixed", "odd_static", "work")
    reduced = sys.argv[1] == "--reduced"
    options = types.SimpleNamespace(**dict(zip(names, sys.argv[1 + reduced:])))
    found = dumps.make(options, options.work)
    nm.begin(options.work)
    tap.check(len(found) >= 20, "%d dumps to compare" % len(found))
    if reduced:
        found = found[:2] + found[2::4]      # jeprof's time is the same however slow we are
    for number, dump in enumerate(found):
        if not shutil.which("jeprof"):
            tap.skip(dump.name, "no jeprof")
            continue
        check_addresses(options, dump)
        if dump.own:
            check_functions(options, dump)
        check_metric(options, dump, number)
    pprof = go_pprof()
    if not pprof:
        tap.skip("google/pprof prints our numbers", "no go tool pprof")
        return tap.done()
    for dump in found:
        check_pprof(options, pprof, dump)
    check_pprof_diff(options, pprof, found)
    return tap.done()


sys.exit(main())
