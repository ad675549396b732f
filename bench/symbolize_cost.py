#!/usr/bin/env python3
"""What names for its heap profile cost a program: with libheapgauge, which has a child process look them up, and with the
jemalloc_pprof crate and its feature symbolize, which does it inside.

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


def build_host(units, build):
    library = build + "/src/agent"
    run("gcc", "-O2", "-g", "-D_GNU_SOURCE", "-I" + ROOT + "/include", "-o", units + "/host", HERE + "/symbolize_host.c",
        "-Wl,--no-as-needed", "-L" + units, "-lunits", "-L" + library, "-lheapgauge", "-ljemalloc", "-Wl,-rpath," + units + ":" + library)
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


def row(who, took, before, after, peak, anonymous, profile, path, heapgauge):
    part, functions, stacks = named_part(heapgauge, path)
    return "| %s | %.0f ms | %s | %s | %s | %s | %.1f %% (%d functions, %d stacks) |" % \
        (who, took, mib(after - before), mib(peak - before), mib(anonymous), profile, 100 * part, functions, stacks)


def rows_of_ours(heapgauge, host, out, what, lg_sample, rounds):
    lines = []
    for i, (plain, named, before, between, after, peak_plain, peak, anonymous, later, same) in \
            enumerate(rounds_of([host, str(rounds), "pprof", out], lg_sample)):
        lines.append("| libheapgauge, round %d%s, without names | %.0f ms | %s | %s | | | |" %
                     (i + 1, what, plain, mib(between - before), mib(peak_plain - before)))
        lines.append(row("libheapgauge, round %d%s, with names" % (i + 1, what), named, between, after, peak, later - anonymous,
                         "the same, byte for byte" if same else "differs", out, heapgauge))
    return lines


def table(build, work, copies, rounds):
    """Lines of Markdown, and how many bytes of DWARF there were."""
    heapgauge = build + "/src/cli/heapgauge"
    units = build_library(work, copies)
    size = dwarf_bytes(units + "/libunits.so")
    lines = ["Names for the own heap profile of a program with a library of %.0f MB of DWARF; resident memory of that program. "
             "Every round is shown, since the first is what a program pays that asks once:" % (size / 1e6), "",
             "| who | took | resident: more after | at the peak | anonymous: more after | heap profile | frames named |",
             "|---|--:|--:|--:|--:|---|--:|"]
    host = build_host(units, build)
    for what, lg_sample, times in ("", SAMPLED, rounds), (", every allocation", EVERYTHING, 1):
        lines += rows_of_ours(heapgauge, host, units + "/named.pb.gz", what, lg_sample, times)
    theirs = units + "/peer.pb.gz"
    peer = build_peer(units, work)
    if not peer:
        return lines + ["", "(Without the peer: there is no cargo.)"], size
    for i, (took, before, after, peak, anonymous, later, more) in enumerate(rounds_of([peer, str(rounds), theirs], SAMPLED)):
        lines.append(row("jemalloc_pprof, round %d, with names" % (i + 1), took, before, after, peak, later - anonymous,
                         "%+.1f MB" % (more / 1e6), theirs, heapgauge))
    return lines, size


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=ROOT + "/build")
    parser.add_argument("--work", default=HERE + "/work")
    parser.add_argument("--copies", type=int, default=COPIES)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    lines, size = table(os.path.abspath(options.build), os.path.abspath(options.work), options.copies, options.rounds)
    print("\n".join(lines))
    if size < WANTED:
        print("only %.0f MB of DWARF: for the real figure take more --copies" % (size / 1e6), file=sys.stderr)


if __name__ == "__main__":
    main()
