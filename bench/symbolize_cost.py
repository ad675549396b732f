#!/usr/bin/env python3
"""What names for its heap profile cost a program: by a child process, as the agent does it, and inside of it, as the
jemalloc_pprof crate does with its feature symbolize.

Both programs run the same library with at least WANTED bytes of DWARF: symbolize_unit.cc, compiled once and linked COPIES times.
Resident memory is the kernel's figure (VmRSS, its peak reset before each round), the profile's growth jemalloc's own. Both sample as jemalloc
does by itself (every 512 KiB); ours is run once more with every allocation recorded, so that nothing could hide.

usage: symbolize_cost.py [--build DIR] [--work DIR] [--copies N] [--rounds N]
"""
import argparse
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
COPIES = 120
WANTED = 400e6
ROUNDS = 3
SAMPLED, EVERYTHING = 19, 0     # lg_prof_sample


def run(*command, **more):
    return subprocess.run(command, check=True, **more)


def dwarf_bytes(path):
    sizes = run("size", "-A", path, stdout=subprocess.PIPE, text=True).stdout
    return sum(int(n) for n in re.findall(r"^\.debug_\w+\s+(\d+)", sizes, re.M))


def build_library(work, copies):
    """work/units/libunits.so: linked anew only when the number of copies or the source is another."""
    folder = work + "/units"
    library, source = folder + "/libunits.so", HERE + "/symbolize_unit.cc"
    stamp = "%d %d" % (copies, os.stat(source).st_mtime_ns)
    if os.path.exists(library) and open(folder + "/stamp").read() == stamp:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    run("g++", "-std=c++17", "-g", "-O1", "-fPIC", "-DDEPTH=20", "-c", "-o", folder + "/unit.o", source)
    with open(folder + "/all.c", "w") as out:
        for i in range(copies):
            out.write("int unit_run_%d(int);\n" % i)
        out.write("void units_run(int seed)\n{\n")
        for i in range(copies):
            out.write("\tunit_run_%d(seed);\n" % i)
        out.write("}\n")
    run("gcc", "-g", "-fPIC", "-c", "-o", folder + "/all.o", folder + "/all.c")
    objects = [folder + "/all.o"]
    for i in range(copies):
        objects.append("%s/unit.%d.o" % (folder, i))
        run("objcopy", "--redefine-sym", "unit_run=unit_run_%d" % i, folder + "/unit.o", objects[-1])
    run("g++", "-shared", "-o", library, *objects)
    for name in objects + [folder + "/unit.o"]:
        os.remove(name)
    with open(folder + "/stamp", "w") as out:
        out.write(stamp)
    return folder


def build_host(units):
    run("gcc", "-O2", "-g", "-D_GNU_SOURCE", "-I" + ROOT + "/src", "-o", units + "/host", HERE + "/symbolize_host.c",
        ROOT + "/src/agent/child.c", ROOT + "/src/base/error.c", "-L" + units, "-lunits", "-ljemalloc", "-ldl", "-lpthread",
        "-Wl,--no-as-needed,-rpath,$ORIGIN")
    return units + "/host"


def build_peer(units, work):
    if not shutil.which("cargo"):
        return None
    flags = "-L %s -C link-arg=-Wl,-rpath,%s" % (units, units)
    done = subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path",
                           HERE + "/symbolize_peer/Cargo.toml", "--target-dir", work + "/cargo-symbolize"],
                          env=dict(os.environ, RUSTFLAGS=flags))
    return work + "/cargo-symbolize/release/symbolize_peer" if done.returncode == 0 else None


def rounds_of(command, lg_sample):
    conf = "prof:true,prof_active:true,lg_prof_sample:%d" % lg_sample
    done = run(*command, stdout=subprocess.PIPE, text=True, env=dict(os.environ, MALLOC_CONF=conf, _RJEM_MALLOC_CONF=conf))
    return [[float(x) for x in line.split()[1:]] for line in done.stdout.splitlines() if line.startswith("round")]


def named_part(heapgauge, path):
    """Of the frames of a profile's stacks, how many have a name, and how many functions there are."""
    text = run(heapgauge, "convert", "--symbols", "none", "--to", "folded", path, stdout=subprocess.PIPE, text=True,
               stderr=subprocess.DEVNULL).stdout
    frames = [f for line in text.splitlines() for f in line.rsplit(" ", 1)[0].split(";")]
    return sum("!0x" not in f for f in frames) / max(len(frames), 1), len(set(frames)), text.count("\n")


def mib(kib):
    return "%.1f MiB" % (kib / 1024)


def row(who, seconds, before, after, peak, anonymous, profile, named):
    return "| %s | %s | %s | %s | %s | %s | %s |" % \
        (who, seconds, mib(after - before), mib(peak - before), mib(anonymous), profile, named)


def rows_of_ours(heapgauge, host, out, what, lg_sample, rounds):
    lines = []
    results = rounds_of([host, heapgauge, str(rounds), "pprof", out], lg_sample)
    for i, (dump, names, before, after, peak, anonymous, later, same) in enumerate(results):
        part, functions, stacks = named_part(heapgauge, out)
        lines.append(row("heapgauge's child, round %d%s" % (i + 1, what), "%.0f + %.0f ms" % (dump, names), before, after, peak,
                         later - anonymous, "the same, byte for byte" if same else "differs",
                         "%.1f %% (%d functions, %d stacks)" % (100 * part, functions, stacks)))
    return lines


def table(heapgauge, work, copies, rounds):
    """Lines of Markdown."""
    units = build_library(work, copies)
    size = dwarf_bytes(units + "/libunits.so")
    lines = ["Names for the own heap profile of a program with a library of %.0f MB of DWARF; resident memory of that program. "
             "Every round is shown, since the first is what a program pays that asks once:" % (size / 1e6), "",
             "| who | dump and names | resident: more after | at the peak | anonymous: more after | heap profile | frames named |",
             "|---|--:|--:|--:|--:|---|--:|"]
    host = build_host(units)
    for what, lg_sample, times in ("", SAMPLED, rounds), (", every allocation", EVERYTHING, 1):
        lines += rows_of_ours(heapgauge, host, units + "/named.pb.gz", what, lg_sample, times)
    theirs = units + "/peer.pb.gz"
    peer = build_peer(units, work)
    if not peer:
        return lines + ["", "(Without the peer: there is no cargo.)"], size
    for i, (took, before, after, peak, anonymous, later, more) in enumerate(rounds_of([peer, str(rounds), theirs], SAMPLED)):
        part, functions, stacks = named_part(heapgauge, theirs)
        lines.append(row("jemalloc_pprof, round %d" % (i + 1), "%.0f ms" % took, before, after, peak, later - anonymous,
                         "%+.1f MB" % (more / 1e6), "%.1f %% (%d functions, %d stacks)" % (100 * part, functions, stacks)))
    return lines, size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=ROOT + "/build")
    parser.add_argument("--work", default=HERE + "/work")
    parser.add_argument("--copies", type=int, default=COPIES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    lines, size = table(os.path.abspath(options.build) + "/src/cli/heapgauge", os.path.abspath(options.work), options.copies,
                        options.rounds)
    print("\n".join(lines))
    if size < WANTED:
        print("only %.0f MB of DWARF: for the real figure take more --copies" % (size / 1e6), file=sys.stderr)


if __name__ == "__main__":
    main()
