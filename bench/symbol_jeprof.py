#!/usr/bin/env python3
"""Times jeprof as a whole on a dump of a big program, with binutils' addr2line and with heapgauge addr in its place, and compares the reports.

The dump is written by hand: STACKS stacks of random addresses of .text, and the mapping of the binary. jeprof itself takes seconds whoever names
its addresses (Perl, and nm for every symbol), so what it asks is also measured by itself: the addresses that it puts into addr2line's
standard input, with its options. The reports are compared line by line. They differ where binutils has a plain name and we its scope as well
(linearise_core, compiler::linearise_core), where it takes a function's file from the symbol table, and where it has the wrong inlined calls.

usage: symbol_jeprof.py [--build DIR] [--work DIR] [--stacks N] [--rounds N] [--only NAME]...
The binaries are those of symbol_binaries.sh. LIMIT (seconds, default 600) is the most a report may take. As Markdown to standard output.
"""
import argparse
import collections
import os
import random
import re
import shutil
import subprocess
import sys
import time

from symbol import HERE, output, say, time_text

LIMIT = int(os.environ.get("LIMIT", "600"))
BINARIES = ("z3", "z3-part", "cargo", "rg", "mid-gcc5.so")
WAYS = (("--text",), ("--text", "--lines"))
TOOLS = ("binutils", "first run", "from cache")
DEPTH = 8
BASE = 0x555555554000


def executable_segment(path):
    """Offset, address, and bytes."""
    for line in output("readelf", "-lW", path).splitlines():
        words = line.split()
        if words[:1] == ["LOAD"] and "E" in "".join(words[6:-1]):
            return int(words[1], 16), int(words[2], 16), int(words[5], 16)
    return sys.exit(path + ": no executable segment")


def text_section(path):
    found = re.search(r"\s\.text\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", output("readelf", "-SW", path))
    return int(found[1], 16), int(found[2], 16)


def write_dump(path, name, stacks):
    first, size = text_section(path)
    offset, address, size_of_segment = executable_segment(path)
    begin = BASE + address & ~0xfff
    end = BASE + address + size_of_segment + 0xfff & ~0xfff
    draw = random.Random(2)
    with open(name, "w") as out:
        out.write("heap_v2/1\n  t*: %d: %d [0: 0]\n" % (stacks, stacks * 1024))
        for i in range(stacks):
            frames = " ".join("%#x" % (BASE + first + draw.randrange(size)) for _ in range(DEPTH))
            # Bytes that no two stacks share: lines of a report are in one order only.
            out.write("@ %s\n  t*: 1: %d [0: 0]\n" % (frames, 1024 + (i << 11)))
        out.write("\nMAPPED_LIBRARIES:\n%x-%x r-xp %08x 00:00 1 %s\n" % (begin, end, offset & ~0xfff, path))


def tool(options, name, script):
    """A directory of its own with an addr2line that is that script, and the other tools."""
    folder = "%s/jeprof-%s" % (options.work, name)
    os.makedirs(folder, exist_ok=True)
    with open(folder + "/addr2line", "w") as out:
        out.write("#!/bin/bash\n" + script + "\n")
    os.chmod(folder + "/addr2line", 0o755)
    return "addr2line:%s/addr2line,%s/" % (folder, os.path.dirname(shutil.which("nm")))


def ask(options, name, path, questions):
    """Seconds of the tool alone."""
    before = time.monotonic()
    with open(questions) as asked:
        subprocess.run([options.work + "/jeprof-" + name + "/addr2line", "-f", "-C", "-e", path, "-i"], stdin=asked, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=False, env=dict(os.environ, XDG_CACHE_HOME=options.work + "/cache"))
    return time.monotonic() - before


def report(options, tools, way, path, dump):
    """Seconds, and the lines; None: it took too long."""
    cache = options.work + "/cache"
    before = time.monotonic()
    try:
        done = subprocess.run(["jeprof", *way, "--tools=" + tools, path, dump], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=LIMIT,
                              check=False, env=dict(os.environ, XDG_CACHE_HOME=cache))
    except subprocess.TimeoutExpired:
        return LIMIT, None
    return time.monotonic() - before, done.stdout.decode("utf-8", "replace").splitlines()


def as_we_do(lines):
    """What the manual says is left out; the columns of sums go, lines with the same numbers come in any order, and no line is line 0."""
    shown = (re.sub(r" \(discriminator \d+\)|\.cold\b| \[clone \.cold\]", "", line) for line in lines or ())
    return sorted(re.sub(r":\?", ":0", re.sub(r"^( *[\d.]+ +[\d.]+%) +[\d.]+%", r"\1", line)) for line in shown)


def same_lines(ours, theirs):
    """How many lines both have, and how many the longer one has."""
    both = collections.Counter(as_we_do(ours)) & collections.Counter(as_we_do(theirs))
    return sum(both.values()), max(len(ours or ()), len(theirs or ()))


def forget(options):
    shutil.rmtree(options.work + "/cache", ignore_errors=True)
    os.makedirs(options.work + "/cache")


def show(options, theirs, ours):
    """Lines that only one of the reports has."""
    theirs, ours = as_we_do(theirs), as_we_do(ours)
    for sign, lines, others in (("<", theirs, set(ours)), (">", ours, set(theirs))):
        for line in [line for line in lines if line not in others][:options.show]:
            print(sign + " " + line)


def row(options, path, way, dump, tools):
    whole, alone, lines = {}, {}, {}
    questions = "%s/jeprof-questions" % options.work
    report(options, tools["none"], way, path, dump)
    os.replace(options.work + "/jeprof-none/asked", questions)
    for _ in range(options.rounds):
        for name in TOOLS:
            folder = "ours" if name != "binutils" else name
            if name == "first run":
                forget(options)
            seconds, lines[name] = report(options, tools[folder], way, path, dump)
            whole[name] = min(whole.get(name, LIMIT), seconds)
            if name == "first run":
                forget(options)
            alone[name] = min(alone.get(name, LIMIT), ask(options, folder, path, questions))
    show(options, lines["binutils"], lines["from cache"])
    cells = [os.path.basename(path), " ".join(way)]
    for times in (whole, alone):
        cells += [time_text(times[name]) for name in TOOLS]
        cells.append("%.1f, %.1f" % (times["binutils"] / times["first run"], times["binutils"] / times["from cache"]))
    cells.append("%d of %d" % same_lines(lines["from cache"], lines["binutils"]))
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.dirname(HERE) + "/build")
    parser.add_argument("--work", default=HERE + "/work-symbol")
    parser.add_argument("--stacks", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", help="just this binary of WORK/bin; may be repeated")
    parser.add_argument("--show", type=int, default=0, help="of lines that only binutils' report has (<) or only ours (>), print so many")
    options = parser.parse_args()
    options.build, options.work = os.path.abspath(options.build), os.path.abspath(options.work)
    if not shutil.which("jeprof"):
        sys.exit("jeprof is not installed (package libjemalloc-dev)")
    heapgauge = options.build + "/src/cli/heapgauge"
    tools = {
        "binutils": tool(options, "binutils", 'exec %s "$@"' % shutil.which("addr2line")),
        "ours": tool(options, "ours", 'exec %s addr --offline "$@"' % heapgauge),
        "none": tool(options, "none", 'case " $* " in *" --help "*) ;; *) cat >%s/jeprof-none/asked ;; esac' % options.work),
    }
    print("| binary | jeprof | with binutils | with heapgauge, first run | from cache | times faster | its questions alone: binutils | heapgauge, first run | from cache "
          "| times faster | same lines |\n|---|---|" + "--:|" * 9)
    for name in options.only or BINARIES:
        path = "%s/bin/%s" % (options.work, name)
        if not os.path.exists(path):
            continue
        dump = "%s/%s.%d.heap" % (options.work, name, options.stacks)
        write_dump(path, dump, options.stacks)
        for way in WAYS:
            say("%s, jeprof %s" % (name, " ".join(way)))
            print(row(options, path, way, dump, tools), flush=True)


if __name__ == "__main__":
    main()
