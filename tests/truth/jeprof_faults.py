#!/usr/bin/env python3
"""Where heapgauge's answer differs from jeprof's (or the Rust converter's) on purpose.

Each case knows the truth from the program itself: heapgauge must print it, and the other tool must be seen
to miss it (should a later version get it right, the case says so and is skipped).

usage: jeprof_faults.py HEAPGAUGE POPULATION LOADED_LIBRARY ODD ODD_STATIC CARGO_PROJECT WORK_DIRECTORY
"""
import json
import os
import re
import shutil
import subprocess
import sys
import types

import nm
import tap

BLOCK = 16384
DLOPENED = 50 * BLOCK       # odd.c
JIT = 70 * BLOCK
ROW = re.compile(r"^\s*(-?\d+)\s+\S+%\s+\S+%\s+(-?\d+)\s+\S+%\s?(.*)$")


def run(command, lg_sample, more=""):
    subprocess.run(command, check=True,
                   env=dict(os.environ, MALLOC_CONF="prof:true,lg_prof_sample:%d%s" % (lg_sample, more)))


def ours(options, *arguments):
    done = subprocess.run([options.heapgauge, "top", "--json", "-n", "0", "--symbols", "table", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return json.loads(done.stdout)


def rows(report, field="flat"):
    """Amounts by function name."""
    amount = "change" if report["diff"] else "value"
    return {row["name"]: row[field][amount] for row in report["rows"]}


def jeprof(*arguments, field="flat"):
    """Amounts by function name."""
    if not shutil.which("jeprof"):
        return None
    done = subprocess.run(["jeprof", "--text", "--show_bytes", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    found = [ROW.match(line) for line in done.stdout.splitlines()]
    return {m[3]: int(m[1 if field == "flat" else 2]) for m in found if m}


def misses(what, theirs, truth):
    """Their answer to the same question must differ from the truth."""
    if theirs is None:
        tap.skip(what, "not installed")
    elif theirs == truth:
        tap.skip(what, "this version gets it right")
    else:
        tap.check(True, what)
        tap.note("truth %s, theirs %s" % (truth, theirs))


def population(options, name, rate, lg, seed, more=""):
    """Dumps of the moments, and the truth: the sum of each tally over the populations of a leaf function."""
    prefix = options.work + "/" + name
    run([options.population, str(seed), str(rate), "400", "200", options.loaded, prefix], lg, more)
    truth = {"a": {}, "b": {}, "objects": 0, "linked": 0, "loaded": 0}
    with open(prefix + ".truth") as lines:
        for line in lines:
            words = line.split()
            lane, digit = words[0], int(words[1]) >> 8
            leaf = "%s_4_%d" % (lane, digit)
            for moment, column in ("a", 6), ("b", 9):
                truth[moment][leaf] = truth[moment].get(leaf, 0) + int(words[column])
            truth["objects"] += int(words[5])
            if lane in truth:
                truth[lane] += int(words[6])
    return prefix, truth


def c_lanes(amounts):
    """Of the lanes in C: jeprof has no right names for the leaves of the one in C++."""
    return {name: value for name, value in amounts.items() if re.match(r"(main|linked|loaded)_4_\d$", name)}


# --- the cases ---------------------------------------------------------------------

def two_runs(options):
    """Addresses differ between two runs of a position-independent program: frames must not be keyed by them."""
    one, truth_one = population(options, "run1", 1, 0, 1)
    two, truth_two = population(options, "run2", 1, 0, 2)
    truth = c_lanes({leaf: truth_two["b"].get(leaf, 0) - truth_one["b"].get(leaf, 0)
                     for leaf in truth_one["b"].keys() | truth_two["b"].keys()})
    truth = {leaf: change for leaf, change in truth.items() if change}
    base, now = one + ".b.heap", two + ".b.heap"
    mine = {name: value for name, value in c_lanes(rows(ours(options, "--base", base, now))).items() if value}
    tap.check(mine == truth and len(truth) >= 8, "diff of two runs of one PIE binary: the true growth, to the byte",
              "truth %s, ours %s" % (truth, mine))
    theirs = jeprof("--base=" + base, options.population, now)
    misses("diff of two runs: jeprof fails", theirs and c_lanes(theirs), truth)


def equal_offsets(options):
    """Two libraries of one source: their functions lie at equal offsets."""
    prefix, truth = population(options, "offsets", 1, 0, 3)
    amounts = rows(ours(options, prefix + ".a.heap"))
    mine = {lane: sum(v for name, v in amounts.items() if name.startswith(lane)) for lane in ("linked", "loaded")}
    tap.check(mine == {"linked": truth["linked"], "loaded": truth["loaded"]} and truth["linked"] != truth["loaded"],
              "equal offsets in two libraries stay apart", "%s %s" % (mine, truth))
    return prefix


def offsets_of_pprof(options, prefix):
    """The same in the file we write, as google/pprof reads it; and what the Rust converter makes of the dump."""
    dump, file = prefix + ".a.heap", prefix + ".pb.gz"
    subprocess.run([options.heapgauge, "convert", "--to", "pprof", "--symbols", "none", "-o", file, dump],
                   check=True, stderr=subprocess.DEVNULL)
    pprof = locations = None
    if shutil.which("go"):
        done = subprocess.run(["go", "tool", "-n", "pprof"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        pprof = done.stdout.strip() if done.returncode == 0 else None
    if not pprof:
        tap.skip("equal offsets in our pprof file", "no go tool pprof")
        return
    want = library_frames(dump)
    locations = pprof_locations(pprof, file)
    tap.check(locations == want and min(want.values()) > 10, "equal offsets stay apart in our pprof file",
              "in the dump %s, in the file %s" % (want, locations))
    peer = rust_converter(options)
    if not peer:
        tap.skip("the Rust converter merges equal offsets", "cargo can't build it")
        return
    subprocess.run([peer, dump, prefix + ".rust.pb.gz"], check=True)
    misses("the Rust converter merges equal offsets", pprof_locations(pprof, prefix + ".rust.pb.gz"), want)


def library_frames(dump):
    """How many distinct frames of either library the dump holds."""
    with open(dump, "rb") as file:
        stacks, maps = file.read().decode().split("MAPPED_LIBRARIES:\n")
    ranges = [(name, *(int(x, 16) for x in line.split()[0].split("-"))) for line in maps.splitlines()
              for name in ("linked", "loaded") if "lane_" + name in line]
    found = {"linked": set(), "loaded": set()}
    for word in re.findall(r"0x[0-9a-f]+", stacks):
        for name, start, end in ranges:
            if start <= int(word, 16) < end:
                found[name].add(word)
    return {name: len(frames) for name, frames in found.items()}


def pprof_locations(pprof, file):
    done = subprocess.run([pprof, "-raw", "-symbolize=none", file], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True, check=True)
    locations, maps = done.stdout.split("\nLocations\n")[1].split("\nMappings\n")
    ids = {name: set(re.findall(r"^(\d+): .*lane_%s" % name, maps, re.M)) for name in ("linked", "loaded")}
    used = re.findall(r"^\s*\d+: 0x[0-9a-f]+ M=(\d+)", locations, re.M)
    return {name: sum(number in ids[name] for number in used) for name in ids}


def rust_converter(options):
    if not shutil.which("cargo"):
        return None
    target = options.work + "/cargo"
    done = subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path",
                           options.cargo + "/Cargo.toml", "--target-dir", target], stderr=subprocess.DEVNULL,
                          env=dict(os.environ, CARGO_PROFILE_RELEASE_OPT_LEVEL="0", CARGO_PROFILE_RELEASE_LTO="off"))
    path = target + "/release/pprof_util_peer"
    return path if done.returncode == 0 and os.path.exists(path) else None


def accumulated(options):
    """Stacks whose blocks are all gone stand in a prof_accum dump with a count of 0."""
    prefix, truth = population(options, "accum", 1, 0, 4, ",prof_accum:true")
    dump = prefix + ".b.heap"
    with open(dump) as file:
        gone = file.read().count("t*: 0: 0 [")
    mine, want = c_lanes(rows(ours(options, dump))), c_lanes(truth["b"])
    tap.check({k: v for k, v in mine.items() if v} == {k: v for k, v in want.items() if v} and gone > 0,
              "a prof_accum dump with %d stacks of count 0: the true bytes" % gone, "%s %s" % (mine, want))
    done = subprocess.run([options.heapgauge, "convert", "--to", "pprof", "-o", prefix + ".pb.gz", dump],
                          stderr=subprocess.PIPE, text=True)
    tap.check(done.returncode == 0, "prof_accum dumps convert to pprof", done.stderr)
    peer = rust_converter(options)
    if not peer:
        tap.skip("the Rust converter panics on prof_accum", "cargo can't build it")
        return
    done = subprocess.run([peer, dump, prefix + ".rust.pb.gz"], stderr=subprocess.PIPE, text=True)
    misses("the Rust converter panics on prof_accum", "panics" if "panicked" in done.stderr else "converts", "converts")


def blanks(options):
    """A library in a folder whose name has a blank."""
    folder = options.work + "/with a blank"
    os.makedirs(folder, exist_ok=True)
    library = shutil.copy(options.loaded, folder)
    dump = options.work + "/blank"
    run([options.odd, "late", library, dump + ".first", dump], 0)
    report = ours(options, dump)
    found = [row["binary"] for row in report["rows"] if row["name"] == "loaded_4_0" and row["flat"]["value"] == DLOPENED]
    tap.check(found == [os.path.realpath(library)], "path with a blank: named, with the true bytes", str(found))
    theirs = jeprof(options.odd, dump)
    misses("path with a blank: jeprof loses the names", theirs and theirs.get("loaded_4_0", 0), DLOPENED)


def deleted(options):
    """A library whose file is gone: its frames keep its name, and a copy elsewhere gives them theirs."""
    library = shutil.copy(options.loaded, options.work + "/deleted.so")
    kept = options.work + "/kept"
    os.makedirs(kept, exist_ok=True)
    shutil.copy(options.loaded, kept + "/deleted.so")
    dump = options.work + "/deleted"
    run([options.odd, "gone", library, dump], 0)
    by_binary = {row["name"]: row["flat"]["value"] for row in ours(options, "--by", "binary", dump)["rows"]}
    tap.check(by_binary.get(os.path.realpath(options.work) + "/deleted.so", by_binary.get(library)) == DLOPENED,
              "(deleted): the true bytes under the library's name", str(by_binary))
    named = rows(ours(options, "--debug-dir", kept, dump))
    tap.check(named.get("loaded_4_0") == DLOPENED, "(deleted): named from a copy in --debug-dir", str(named))
    theirs = jeprof(options.odd, dump)
    if theirs is not None:
        theirs = sum(v for name, v in theirs.items() if "deleted" in name or name.startswith("loaded"))
    misses("(deleted): jeprof doesn't know where the frames were", theirs, DLOPENED)


def no_file(options):
    """Code in no file is never called by some function's name, and two pieces of it stay two."""
    dump = options.work + "/jit"
    run([options.odd, "jit", dump], 0)
    found = sorted(row["flat"]["value"] for row in ours(options, dump)["rows"] if row["name"].startswith("0x"))
    tap.check(found == [JIT, JIT + BLOCK], "code in no file: two functions, the true bytes each", str(found))


def neighbours(options):
    """jemalloc's insides have no symbols in Debian's library: they are trimmed, not named after a neighbour."""
    prefix, truth = population(options, "neighbours", 1, 0, 7)
    leaves = {}
    for name, value in rows(ours(options, prefix + ".a.heap")).items():
        match = re.search(r"cplusplus::step<4, (\d)>", name)
        if match and value:
            leaves["cplusplus_4_" + match[1]] = value
    want = {name: value for name, value in truth["a"].items() if name.startswith("cplusplus") and value}
    tap.check(leaves == want and want, "operator new's insides: the true bytes of each caller", "%s %s" % (leaves, want))
    theirs = jeprof(options.population, prefix + ".a.heap")
    misses("operator new's insides: jeprof blames a neighbour of theirs",
           theirs and sum(v for name, v in theirs.items() if "cplusplus::step" in name), sum(want.values()))


def static_allocator(options):
    """jemalloc linked in: its frames are trimmed by name, also those jeprof's list hasn't."""
    dump = options.work + "/static"
    run([options.odd_static, "deep", dump], 0)
    mine = rows(ours(options, dump))
    tap.check(mine.get("deep") == BLOCK, "jemalloc linked in: the caller has the bytes", str(mine))
    theirs = jeprof(options.odd_static, dump)
    misses("jemalloc linked in: jeprof leaves them in the allocator", theirs and theirs.get("deep", 0), BLOCK)


def snapshots_added(options):
    """Two dumps of one process are two views of the same blocks."""
    prefix, truth = population(options, "snapshots", 1, 0, 8)
    dumps = [prefix + ".a.heap", prefix + ".b.heap"]
    done = subprocess.run([options.heapgauge, "top", *dumps], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    tap.check(done.returncode != 0 and "diff" in done.stderr, "two dumps of one process aren't added up", done.stderr)
    theirs = jeprof(options.population, *dumps)
    misses("two dumps of one process: jeprof adds them up",
           theirs and sum(c_lanes(theirs).values()), sum(c_lanes(truth["b"]).values()))


def raw_counts(options):
    """Raw counts of a path that several threads used: each line is unsampled, then they are added."""
    errors = [0, 0]
    for seed in range(3):
        prefix, truth = population(options, "raw%d" % seed, 4096, 12, 40 + seed, ",prof_unbias:false")
        dump = prefix + ".a.heap"
        mine = ours(options, "--metric", "inuse_objects", dump)["total"]["value"]
        errors[0] += mine / truth["objects"] - 1
        theirs = None
        if shutil.which("jeprof"):
            done = subprocess.run(["jeprof", "--text", "--inuse_objects", options.population, dump],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            theirs = int(re.search(r"Total: (\d+)", done.stdout)[1])
            errors[1] += theirs / truth["objects"] - 1
    if theirs is None:
        tap.skip("raw counts of shared paths", "no jeprof")
        return
    tap.check(abs(errors[0]) <= abs(errors[1]), "raw counts: nearer to the true number of blocks than jeprof")
    tap.note("blocks in three runs: ours %+.1f %%, jeprof's %+.1f %%" % (100 * errors[0] / 3, 100 * errors[1] / 3))


def main():
    names = ("heapgauge", "population", "loaded", "odd", "odd_static", "cargo", "work")
    options = types.SimpleNamespace(**dict(zip(names, map(os.path.abspath, sys.argv[1:]))))
    os.makedirs(options.work, exist_ok=True)
    nm.begin(options.work)
    os.environ["JEPROF_TOOLS"] = nm.tools()
    two_runs(options)
    offsets_of_pprof(options, equal_offsets(options))
    for case in (accumulated, blanks, deleted, no_file, neighbours, static_allocator, snapshots_added, raw_counts):
        case(options)
    return tap.done()


sys.exit(main())
