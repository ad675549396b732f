#!/usr/bin/env python3
"""Times heapgauge and its peers on the same inputs, in turns, and writes the figures as Markdown.

The inputs are dumps of 1,024, 16,384 and 131,072 stacks by a real jemalloc program (generate_program.py,
program.c) and a synthetic pprof file (synthetic.py). Every command of a task is run in each round, one after the
other, files in the cache for all; the best round counts. A command that has taken ENOUGH seconds in all is not run again,
and one is killed after the limit.

usage: bench.py [--build DIR] [--work DIR] [--results FILE] [--quick]
BENCH_LIMIT (seconds, default 900) is the most a single command may take.
"""
import argparse
import contextlib
import datetime
import math
import os
import re
import shutil
import subprocess
import sys

import agent_cost
import page
import store
import symbolize_cost
import synthetic

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = (1024, 16384, 131072)
ROUNDS = {1024: 15, 16384: 11, 131072: 11}
ENOUGH = 20
LIMIT = int(os.environ.get("BENCH_LIMIT", "900"))
LIBRARIES = ("parser", "storage", "network")


def run(*command, **more):
    return subprocess.run(command, check=True, **more)


def output(*command, **more):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


# --- inputs ------------------------------------------------------------------------

def build_program(work):
    run(sys.executable, HERE + "/generate_program.py", work)
    flags = ["-g", "-O2", "-D_GNU_SOURCE", "-I" + work, "-I" + HERE]
    for name in LIBRARIES:
        run("cc", *flags, "-fPIC", "-shared", "-o", "%s/lib%s.so" % (work, name), "%s/%s.c" % (work, name))
    # The libraries call each other and the program, which must therefore give them its symbols.
    run("cc", *flags, "-o", work + "/program", HERE + "/program.c", work + "/engine.c", "-rdynamic", "-L" + work,
        *("-l" + name for name in LIBRARIES), "-ljemalloc", "-lpthread", "-ldl", "-Wl,-rpath,$ORIGIN")
    run("cc", "-O2", "-D_GNU_SOURCE", "-o", work + "/measure", HERE + "/measure.c")


def make_inputs(options):
    work = options.work
    os.makedirs(work, exist_ok=True)
    say("building the program and its dumps in " + work)
    build_program(work)
    environment = dict(os.environ, MALLOC_CONF="prof:true,lg_prof_sample:10")
    for size in options.sizes:
        run(work + "/program", str(size), "%s/%d.a.heap" % (work, size), "%s/%d.b.heap" % (work, size), env=environment)
        for moment in "ab":
            name = "%s/%d.%s" % (work, size, moment)
            run(options.heapgauge, "convert", "--to", "pprof", "-o", name + ".pb.gz", name + ".heap",
                stderr=subprocess.DEVNULL)
    if not os.path.exists(work + "/synthetic.pb.gz"):
        synthetic.write(work + "/synthetic.pb.gz")


def count_stacks(path):
    with open(path, "rb") as file:
        return sum(line.startswith(b"@") for line in file)


# --- peers -------------------------------------------------------------------------

def find_pprof():
    """google/pprof itself: the go command would look for changes each time."""
    path = output("go", "tool", "-n", "pprof")
    return path if path and os.path.exists(path) else None


def find_pprof_util(work):
    if not shutil.which("cargo"):
        return None
    done = subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path",
                           HERE + "/pprof_util/Cargo.toml", "--target-dir", work + "/cargo"])
    return work + "/cargo/release/pprof_util_peer" if done.returncode == 0 else None


def tasks(options, peers):
    """(title, [(who, command)]) with {a} {b} for the dumps, {pa} {pb} for the pprof files. Ours come first."""
    hg, program, out = options.heapgauge, options.work + "/program", options.work + "/out"
    pprof, converter, jeprof = peers
    quiet = ["-symbolize=none"]

    def of(tool, who, *command):
        return [(who, list(command))] if tool else []

    yield "dump to pprof.gz, unnamed", \
        [("heapgauge", [hg, "convert", "--to", "pprof", "--symbols", "none", "-o", out + ".gz", "{a}"])] + \
        of(converter, "pprof_util", converter, "{a}", out + ".peer")
    yield "dump to pprof.gz, with names, lines and inlined calls (pprof_util: unnamed)", \
        [("heapgauge", [hg, "convert", "--to", "pprof", "-o", out + ".gz", "{a}"])] + \
        of(converter, "pprof_util", converter, "{a}", out + ".peer")
    yield "dump to folded, with names", \
        [("heapgauge", [hg, "convert", "--to", "folded", "-o", out, "{a}"])] + \
        of(jeprof, "jeprof", "jeprof", "--collapsed", program, "{a}")
    yield "top of a dump", \
        [("heapgauge", [hg, "top", "-n", "0", "{a}"])] + of(jeprof, "jeprof", "jeprof", "--text", program, "{a}")
    yield "diff of two dumps", \
        [("heapgauge", [hg, "diff", "-n", "0", "{a}", "{b}"])] + \
        of(jeprof, "jeprof", "jeprof", "--text", "--base={a}", program, "{b}")
    yield "top of a pprof file", \
        [("heapgauge", [hg, "top", "-n", "0", "{pa}"])] + \
        of(pprof, "pprof", pprof, "-top", "-nodecount=0", *quiet, "{pa}")
    yield "diff of two pprof files", \
        [("heapgauge", [hg, "diff", "-n", "0", "{pa}", "{pb}"])] + \
        of(pprof, "pprof", pprof, "-top", "-nodecount=0", *quiet, "-diff_base={pa}", "{pb}")
    yield "pprof to pprof", \
        [("heapgauge", [hg, "convert", "--to", "pprof", "-o", out + ".gz", "{pa}"])] + \
        of(pprof, "pprof", pprof, "-proto", *quiet, "-output=" + out + ".peer", "{pa}")


# --- measuring -----------------------------------------------------------------------

class Figure:
    """The best of several runs of one command."""

    def __init__(self):
        self.seconds, self.processor, self.kib, self.status, self.spent = math.inf, math.inf, 0, "", 0

    def add(self, line):
        wall, processor, kib, self.status = line.split()
        self.seconds = min(self.seconds, float(wall))
        self.processor = min(self.processor, float(processor))
        self.kib = max(self.kib, int(kib))
        self.spent += float(wall)

    @property
    def good(self):
        return self.status == "0"

    def __str__(self):
        if self.status == "timeout":
            return "> %d s" % LIMIT
        return "%s, %.0f MB" % (time_text(self.seconds), self.kib / 1024) if self.good else "fails (%s)" % self.status


def time_text(seconds):
    return "%.0f ms" % (seconds * 1000) if seconds < 1 else "%.2f s" % seconds if seconds < 10 else "%.0f s" % seconds


def measure(options, commands, rounds, **names):
    """One Figure for each command."""
    figures = [Figure() for _ in commands]
    for number in range(rounds):
        for figure, (_, command) in zip(figures, commands):
            if number and (not figure.good or figure.spent > ENOUGH):
                continue
            command = [word.format(**names) for word in command]
            figure.add(run(options.work + "/measure", str(LIMIT), "/dev/null", *command, stdout=subprocess.PIPE,
                           text=True).stdout)
    return figures


def ratios(ours, peer):
    """Texts: how much faster ours was, with how much less processor time, and memory."""
    if peer and ours.good and peer.good:
        return tuple("%.1f" % ratio for ratio in (peer.seconds / ours.seconds, peer.processor / max(ours.processor, 0.001),
                                                  peer.kib / ours.kib))
    if peer and ours.good and peer.status == "timeout":
        return "> %.0f" % (LIMIT / ours.seconds), "-", "-"
    return "-", "-", "-"


def exponent(figures, stacks):
    """t grows like stacks^x from the least to the greatest size, or None."""
    if len(figures) < 2 or not all(figure.good for figure in figures):
        return None
    return math.log(figures[-1].seconds / figures[0].seconds) / math.log(stacks[-1] / stacks[0])


# --- the tables ----------------------------------------------------------------------

def say(text):
    print(text, file=sys.stderr, flush=True)


def task_tables(options, peers):
    stacks = [count_stacks("%s/%d.a.heap" % (options.work, size)) for size in options.sizes]
    lines = ["| task | stacks | heapgauge | peer | peer's | times faster | less processor time | less memory |",
             "|---|--:|--:|---|--:|--:|--:|--:|"]
    growth = ["| task | who | growth exponent |", "|---|---|--:|"]
    for title, commands in tasks(options, peers):
        by_size = []
        for size, count in zip(options.sizes, stacks):
            say("%s, %d stacks" % (title, count))
            name = "%s/%d." % (options.work, size)
            figures = measure(options, commands, ROUNDS[size], a=name + "a.heap", b=name + "b.heap",
                              pa=name + "a.pb.gz", pb=name + "b.pb.gz")
            by_size.append(figures)
            for (who, _), figure in list(zip(commands, figures))[1:] or [(("-", None), None)]:
                lines.append("| %s | %s | %s | %s | %s | %s | %s | %s |" %
                             (title, format(count, ","), figures[0], who, figure or "-", *ratios(figures[0], figure)))
        for i, (who, _) in enumerate(commands):
            x = exponent([figures[i] for figures in by_size], stacks)
            growth.append("| %s | %s | %s |" % (title, who, "-" if x is None else "%.2f" % x))
    return lines + ["", "Time grows like stacks^x from the smallest to the largest dump:", ""] + growth


def synthetic_table(options, pprof):
    say("top of the synthetic pprof file")
    path = options.work + "/synthetic.pb.gz"
    commands = [("heapgauge", [options.heapgauge, "top", "-n", "0", path])]
    if pprof:
        commands.append(("pprof", [pprof, "-top", "-nodecount=0", "-symbolize=none", path]))
    figures = measure(options, commands, 5)
    lines = ["`top` of a pprof file of %s stacks, %s functions, depth %d-%d (%.1f MB compressed): heapgauge %s" %
             (format(synthetic.STACKS, ","), format(synthetic.FUNCTIONS, ","), synthetic.LEAST, synthetic.MOST,
              os.path.getsize(path) / 1e6, figures[0])]
    if pprof:
        lines[0] += "; pprof %s: %s times faster, %s times less processor time and %s times less memory" % \
            (figures[1], *ratios(*figures))
    return [lines[0] + "."]


def page_lines(options, pprof):
    """The web page as a file. In a program without the page there is nothing to measure."""
    say("the web page of the synthetic pprof file")
    path, out = options.work + "/synthetic.pb.gz", options.work + "/out.html"
    figure = measure(options, [("heapgauge", [options.heapgauge, "flame", "-o", out, path])], 7)[0]
    if not figure.good:
        return ["The web page: this heapgauge has none, or failed."]
    size = os.path.getsize(out)
    lines = ["`flame -o x.html` of that file, reading it included: %s; a page of %.2f MB" % (figure, size / 1e6)]
    with page.pprof_server(pprof, path) if pprof else contextlib.nullcontext() as peer:
        if peer:
            lines[0] += ". `pprof -http`: its flame graph is handed out after %s and has %.0f MB: %.0f times as long, %.0f times as large" % \
                (time_text(peer[1]), peer[2] / 1e6, peer[1] / figure.seconds, peer[2] / size)
        paints = page.first_paints(options, out, peer and peer[0], path)
    lines[0] += "."
    ours = paints.get("ours")
    if isinstance(ours, float):
        lines.append("From opening it to the flame graph on the screen, in Chromium without a GPU: %s" % time_text(ours) +
                     "".join("; %s %s" % (name, "%s, %.0f times as long" % (time_text(other), other / ours)
                                          if isinstance(other, float) else other)
                             for name, other in paints.items() if name != "ours") + ".")
    else:
        lines.append("First paint: not measured (%s)." % (ours or "no Chromium, or no Node"))
    for row in page.frames(options):
        lines.append("- %s: laid out in %d ms, a frame while moving %.1f ms, 95 %% below %.1f ms (on a processor %.1f and %.1f ms)" %
                     (row["name"], row["layout_ms"], row["p50"], row["p95"], row["cpu_p50"], row["cpu_p95"]))
    return lines


def reader_lines(options):
    readers = options.build + "/bench/bench_readers"
    if not os.path.exists(readers):
        return []
    say("the readers alone")
    lines = []
    core = {max(os.sched_getaffinity(0))}

    def on_one_core():
        os.sched_setaffinity(0, core)

    largest = "%s/%d.a" % (options.work, options.sizes[-1])
    for what, path in ("heap_v2", largest + ".heap"), ("pprof.gz", largest + ".pb.gz"):
        best, size, samples = output(readers, "read", path, "7", preexec_fn=on_one_core).split()
        lines.append("- reading %s from memory, one core: %.0f MB/s (%.1f MB, %s samples, %s)" %
                     (what, float(size) / 1e6 / float(best), float(size) / 1e6, format(int(samples), ","),
                      time_text(float(best))))
    best, size, written = output(readers, "stream", largest + ".heap", "7", preexec_fn=on_one_core).split()
    lines.append("- heap_v2 to pprof.gz while it is read, one core, as inside a process: %.0f MB/s (%.1f MB to %.1f MB, %s)" %
                 (float(size) / 1e6 / float(best), float(size) / 1e6, float(written) / 1e6, time_text(float(best))))
    took, size, stacks = output(readers, "model", "1000000").split()
    lines.append("- a profile of %s stacks of 5-64 frames: %.0f MB (%s to build)" %
                 (format(int(stacks), ","), float(size) / 1e6, time_text(float(took))))
    return lines


def machine_lines(options, peers):
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    with open("/proc/meminfo") as file:
        memory = int(re.search(r"MemTotal:\s*(\d+)", file.read())[1]) / 1048576
    pprof, converter, jeprof = peers
    with open(HERE + "/pprof_util/Cargo.lock") as file:
        util = re.search(r'name = "pprof_util"\nversion = "(.*)"', file.read())[1]
    release = output("sh", "-c", ". /etc/os-release && echo $PRETTY_NAME")
    versions = [output(options.heapgauge, "--version").splitlines()[0] if output(options.heapgauge, "--version") else "heapgauge"]
    if jeprof:
        versions.append("jeprof of jemalloc " + (re.search(r"jemalloc (\d[^-\s)]*)", output("jeprof", "--version")) or "  ")[1])
    if pprof:
        versions.append("pprof of " + output("go", "version").replace("go version ", "").split()[0])
    if converter:
        versions.append("pprof_util " + util)
    return ["%s, %s, %d cores, %.0f GB, %s (load average at the start %.1f)." %
            (datetime.date.today(), model[1] if model else "unknown processor", os.cpu_count(), memory, release,
             options.load), "", "Versions: " + "; ".join(versions) + "."]


def recorder_lines(options):
    """What record.py prints, as it is."""
    seconds = 180 if options.quick else 1800
    say("a recorder with 1,000 simulated targets, for %d minutes" % (seconds / 60))
    report = output(sys.executable, HERE + "/record.py", options.heapgauge, "1000", str(seconds), "2000")
    return ["## Recorder", "", "```"] + report.splitlines() + ["```"]


def write_results(options, lines):
    path = options.results or "%s/results/%s.md" % (HERE, datetime.date.today())
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path + ".new", "w") as out:
        out.write("\n".join(lines) + "\n")
    os.replace(path + ".new", path)
    print("\n".join(lines))
    say("written to " + path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.dirname(HERE) + "/build")
    parser.add_argument("--work", default=HERE + "/work")
    parser.add_argument("--results", help="Markdown file to write (default bench/results/DATE.md)")
    parser.add_argument("--quick", action="store_true", help="without the largest dump")
    options = parser.parse_args()
    options.build, options.work = os.path.abspath(options.build), os.path.abspath(options.work)
    options.heapgauge = options.build + "/src/cli/heapgauge"
    options.sizes = SIZES[:-1] if options.quick else SIZES
    options.load = os.getloadavg()[0]
    make_inputs(options)
    peers = find_pprof(), find_pprof_util(options.work), shutil.which("jeprof")
    for name, peer in zip(("go tool pprof", "pprof_util (cargo)", "jeprof"), peers):
        if not peer:
            say("without %s: not installed" % name)
    lines = ["# heapgauge and its peers", ""] + machine_lines(options, peers) + [""]
    lines += ["Best of several rounds in which all commands of a task took turns, files in the cache; memory is the peak of "
              "the command's largest process. A peer that took more than %d s was stopped." % LIMIT, ""]
    lines += task_tables(options, peers) + [""] + synthetic_table(options, peers[0]) + [""]
    lines += page_lines(options, peers[0]) + [""] + reader_lines(options) + [""]
    say("dumps inside the program")
    lines += agent_cost.table(options.work, options.build, options.sizes) + [""]
    say("the store")
    lines += ["", "## Store", ""] + store.table(options.work + "/store", options.build, options.heapgauge, 1 if options.quick else 24) + [""]
    lines += recorder_lines(options) + [""]
    say("names in a child process and inside of the program")
    lines += symbolize_cost.table(options.build, options.work, 10 if options.quick else symbolize_cost.COPIES,
                                  symbolize_cost.ROUNDS)[0]
    write_results(options, lines)


main()
