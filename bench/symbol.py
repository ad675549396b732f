#!/usr/bin/env python3
"""Times heapgauge addr and its peers on the same addresses of the same binaries, in turns, and writes the figures as Markdown.

The binaries are those of symbol_binaries.sh. The addresses are drawn from .text, uniformly, which hits nearly every unit: the worst case (a
profile's are fewer and closer to each other). All read them from standard input, demangle, and write to /dev/null, with the files in the cache
of the system; the best round counts. Then each binary's answers are compared with llvm-symbolizer's, 20,000 addresses each.

usage: symbol.py [--build DIR] [--work DIR] [--results FILE] [--quick] [--only NAME]... [--no-build]
BENCH_LIMIT (seconds, default 120) is the most a single command may take; LIBBACKTRACE a directory with its source.
"""
import argparse
import datetime
import math
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = int(os.environ.get("BENCH_LIMIT", "120"))
MEMORY_LIMIT = 8192                       # MiB of address space; binutils takes 15 GB where dwz has been
ENOUGH = 15                               # seconds a command may take in all rounds
ROUNDS = 7
N = 20000
GIMLI = "0.27.1"                          # crates.io: the newest that the measured machine could get
GROWTH = (1, 1000, 20000, 200000)
# Those with most debug information, and the forms that make peers slow.
TIMED = ("z3", "z3-dwz", "z3-zlib", "z3-zstd", "cargo", "cargo-dwz", "rg", "rg-lto", "rg-dwz", "mid-gcc5.so", "mid-gcc4.so", "mid-clang5.so", "mid-clang4.so",
         "mid-gcc5-lto.so", "mid-clang5-thin.so", "mid-gcc5-split.so", "mid-clang5-split.so", "mid-gcc5-dwp.so", "mid-gcc5-dwz.so", "mid-gcc5-zstd.so",
         "mid-gcc5-link.so")
GROWN = ("z3", "cargo", "mid-gcc5.so", "rg")
TALKERS = ("no cache", "from cache", "llvm-symbolizer")     # their answers can be told apart as they come
TALK = 2000
# What llvm-symbolizer 14 can't read is compared with what it says of the same code before.
SAME_CODE = (("-zstd", ""), ("-dwzm", ""), ("-id", ""))


def say(text):
    print(text, file=sys.stderr, flush=True)


def output(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **more)
    return done.stdout if done.returncode == 0 else ""


# --- who ---------------------------------------------------------------------------

def find_gimli(work):
    root = "%s/addr2line-%s" % (work, GIMLI)
    if not os.path.exists(root + "/bin/addr2line") and shutil.which("cargo"):
        subprocess.run(["cargo", "install", "--quiet", "--locked", "--no-track", "--jobs", os.environ.get("JOBS", "1"), "--root", root, "addr2line",
                        "--version", GIMLI, "--features", "bin"], env=dict(os.environ, CARGO_TARGET_DIR=root + "/target"), check=False)
        shutil.rmtree(root + "/target", ignore_errors=True)
    return root + "/bin/addr2line" if os.path.exists(root + "/bin/addr2line") else None


def find_libbacktrace(work):
    """From LIBBACKTRACE, or from GitHub."""
    source, built, driver = os.environ.get("LIBBACKTRACE", work + "/libbacktrace"), work + "/libbacktrace.built", work + "/libbacktrace.driver"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "check": False}
    if os.path.exists(driver):
        return driver
    if not os.path.exists(source) and shutil.which("git"):
        subprocess.run(["git", "clone", "--quiet", "--depth", "1", "https://github.com/ianlancetaylor/libbacktrace", source], **quiet)
    if not os.path.exists(source + "/configure"):
        return None
    os.makedirs(built, exist_ok=True)
    subprocess.run([os.path.abspath(source) + "/configure", "--disable-shared", "CFLAGS=-O2"], cwd=built, **quiet)
    subprocess.run(["make"], cwd=built, **quiet)
    subprocess.run(["cc", "-O2", "-I" + source, "-o", driver, HERE + "/symbol_peers/libbacktrace.c", built + "/.libs/libbacktrace.a", "-liberty"],
                   check=False)
    return driver if os.path.exists(driver) else None


class Who:
    """One column: its command for a binary; most: of addresses it is asked."""

    def __init__(self, name, command, most=math.inf, version="", prepare=None):
        self.name, self.command, self.most, self.version, self.prepare = name, command, most, version, prepare


def ours(options):
    heapgauge, cache = options.build + "/src/cli/heapgauge", options.work + "/cache"
    flags = ["-f", "-i", "-C", "-a", "--offline"]
    one = str(max(os.sched_getaffinity(0)))

    def forget():
        shutil.rmtree(cache, ignore_errors=True)
        os.makedirs(cache)

    def with_cache(binary):
        return ["env", "XDG_CACHE_HOME=" + cache, heapgauge, "addr", "-e", binary, *flags]

    return [Who("no cache", lambda b: [heapgauge, "addr", "-e", b, *flags, "--no-cache"]),
            Who("no cache, 1 core", lambda b: ["taskset", "-c", one, heapgauge, "addr", "-e", b, *flags, "--no-cache"]),
            Who("empty cache", with_cache, prepare=forget),
            Who("from cache", with_cache)]


def peers(options):
    """Those that there are; the others are named."""
    found, missing = [], []

    def add(name, path, command, version="", **more):
        if path:
            found.append(Who(name, command, version=version, **more))
        else:
            missing.append(name)

    llvm = shutil.which("llvm-symbolizer-14") or shutil.which("llvm-symbolizer")
    gimli, backtrace, eu, binutils = find_gimli(options.work), find_libbacktrace(options.work), shutil.which("eu-addr2line"), shutil.which("addr2line")
    add("llvm-symbolizer", llvm, lambda b: [llvm, "--obj", b, "--inlines", "--demangle"],
        (re.search(r"version (\S+)", output(llvm, "--version") if llvm else "") or "??")[1])
    add("gimli addr2line", gimli, lambda b: [gimli, "-e", b, "-f", "-i", "-C", "-a"], GIMLI)
    add("libbacktrace", backtrace, lambda b: [backtrace, b], "its public interface, names by libiberty")
    add("binutils", binutils, lambda b: [binutils, "-e", b, "-f", "-i", "-C", "-a"],
        (re.search(r"(\S+)$", output(binutils or "true", "--version").splitlines()[0] if binutils else "?"))[1])
    add("eu-addr2line", eu, lambda b: [eu, "-e", b, "-f", "-i", "-C", "-a"], (re.search(r"\) (\S+)", output(eu, "--version") if eu else ") ?"))[1], most=1000)
    for name in missing:
        say("without %s: it is not here and could not be built" % name)
    return found


# --- what ----------------------------------------------------------------------------

def addresses(options, path, n):
    """A file with n of them."""
    name = "%s/%s.%d.txt" % (options.work, os.path.basename(path), n)
    text = output("readelf", "-SW", path)
    section = re.search(r"\s\.text\s+PROGBITS\s+(\w+)\s+\w+\s+(\w+)", text)
    first, size = int(section[1], 16), int(section[2], 16)
    draw = random.Random(1)
    with open(name, "w") as out:
        out.writelines("0x%x\n" % (first + draw.randrange(size)) for _ in range(n))
    return name


class Figure:
    """The best of several runs of one command."""

    def __init__(self):
        self.seconds, self.processor, self.kib, self.anonymous, self.status, self.spent = math.inf, math.inf, 0, None, "", 0

    @property
    def good(self):
        return self.status == "0"

    def time(self):
        return time_text(self.seconds) if self.good else "> %d s" % LIMIT if self.status == "timeout" else "fails"

    def __str__(self):
        if not self.good:
            return self.time()
        anonymous = "" if self.anonymous is None else " (%.0f)" % (self.anonymous / 1024)
        return "%s, %s CPU, %.0f MB%s" % (time_text(self.seconds), time_text(self.processor), self.kib / 1024, anonymous)


def time_text(seconds):
    return "%.1f ms" % (seconds * 1000) if seconds < 0.1 else "%.0f ms" % (seconds * 1000) if seconds < 1 else "%.2f s" % seconds


def run_once(options, who, path, queries, watched=False):
    if who.prepare:
        who.prepare()
    command = [options.work + "/measure", "-i", queries, *(["-a"] if watched else []), *([] if who in options.ours else ["-l", str(MEMORY_LIMIT)]),
               str(LIMIT), "/dev/null", *who.command(path)]
    return output(*command).split()


def measure(options, columns, path, queries):
    figures = [Figure() for _ in columns]
    for number in range(options.rounds):
        for figure, who in zip(figures, columns):
            if number and (not figure.good or figure.spent > ENOUGH):
                continue
            wall, processor, kib, figure.status = run_once(options, who, path, queries)
            figure.seconds = min(figure.seconds, float(wall))
            figure.processor = min(figure.processor, float(processor))
            figure.kib = max(figure.kib, int(kib))
            figure.spent += float(wall)
    for figure, who in zip(figures, columns):
        if figure.good and figure.spent < ENOUGH:
            figure.anonymous = int(run_once(options, who, path, queries, watched=True)[4])
    return figures


# --- tables ----------------------------------------------------------------------------

def time_table(options, binaries):
    """Twenty thousand addresses of each."""
    columns = options.ours + [who for who in options.peers if who.most >= N]
    lines = ["| binary | " + " | ".join(who.name for who in columns) + " |", "|---|" + "--:|" * len(columns)]
    ratios = ["| binary | first run, times faster than " + " | ".join(who.name for who in columns[4:]) + " | from cache, than " +
              " | ".join(who.name for who in columns[4:]) + " |", "|---|" + "--:|" * (2 * len(columns[4:]))]
    for path in binaries:
        name = os.path.basename(path)
        say("%s, %d addresses" % (name, N))
        figures = measure(options, columns, path, addresses(options, path, N))
        lines.append("| %s | %s |" % (name, " | ".join(map(str, figures))))
        cells = ["%.1f" % (peer.seconds / own.seconds) if peer.good and own.good else "> %.0f" % (LIMIT / own.seconds)
                 if peer.status == "timeout" and own.good else "-" for own in (figures[0], figures[3]) for peer in figures[4:]]
        ratios.append("| %s | %s |" % (name, " | ".join(cells)))
    return lines + [""] + ratios


def growth_table(options, binaries):
    columns = options.ours + options.peers
    lines = ["| binary | addresses | " + " | ".join(who.name for who in columns) + " |", "|---|--:|" + "--:|" * len(columns)]
    for path in binaries:
        for n in GROWTH:
            say("%s, %d addresses" % (os.path.basename(path), n))
            asked = [who for who in columns if who.most >= n]
            figures = dict(zip(asked, measure(options, asked, path, addresses(options, path, n))))
            lines.append("| %s | %s | %s |" % (os.path.basename(path), format(n, ","),
                                               " | ".join(figures[who].time() if who in figures else "" for who in columns)))
    return lines


def converse(command, queries, ended):
    """Seconds for each answer, when the next question is asked only then; or None."""
    took = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p, open(queries, "rb") as lines:
        for line in lines:
            began, answer = time.perf_counter(), b""
            os.write(p.stdin.fileno(), line)
            while not ended(answer):
                piece = os.read(p.stdout.fileno(), 1 << 16)
                if not piece:
                    return None
                answer += piece
            took.append(time.perf_counter() - began)
    return took


def talk_table(options, binaries):
    """One address after the other, each answer waited for."""
    columns = [who for who in options.ours + options.peers if who.name in TALKERS]
    lines = ["| binary | " + " | ".join(who.name for who in columns) + " |", "|---|" + "--:|" * len(columns)]
    for path in binaries:
        say("%s, a conversation" % os.path.basename(path))
        cells = []
        for who in columns:
            # The address's own line, a function and a place; or an empty line behind all of them.
            took = converse(who.command(path), addresses(options, path, TALK),
                            (lambda a: a.endswith(b"\n") and a.count(b"\n") >= 3) if who in options.ours else lambda a: a.endswith(b"\n\n"))
            cells.append("fails" if not took else "%.1f ms, then %.3f ms (median %.3f)" %
                         (1000 * took[0], 1000 * statistics.mean(took[1:]), 1000 * statistics.median(took[1:])))
        lines.append("| %s | %s |" % (os.path.basename(path), " | ".join(cells)))
    return lines


def agreement_table(options, folder):
    """How many of 20,000 addresses have the answer that llvm-symbolizer gives."""
    compare, llvm = options.build + "/bench/bench_compare", shutil.which("llvm-symbolizer-14") or shutil.which("llvm-symbolizer")
    if not llvm or not os.path.exists(compare):
        return ["(Not compared with llvm-symbolizer: it is not installed, or bench/bench_compare is not built.)"], True
    lines, good = [], True
    for name in sorted(os.listdir(folder)):
        path = folder + "/" + name
        if not os.path.isfile(path) or name.endswith((".dwp", ".debug", ".common")) or (options.only and name not in options.only):
            continue
        more = ["-d", folder + "/debug"]
        for part, instead in SAME_CODE:
            plain = folder + "/" + name.replace(part, instead)
            if part in name and os.path.exists(plain):
                more += ["-r", plain]
        counts = output(compare, "-n", str(N), *more, llvm, path)
        words = counts.split()
        value = dict(zip(words[::2], map(int, words[1::2])))
        if not lines:
            lines = ["| binary | equal | " + " | ".join(words[::2]) + " |", "|---|--:|" + "--:|" * (len(words) // 2)]
        if not value:
            lines.append("| %s | fails |" % name)
            good = False
            continue
        wrong = sum(value[kind] for kind in ("extra", "missed", "chain", "name", "file", "line"))
        good = good and wrong * 1000 <= value["addresses"]
        lines.append("| %s | %.3f %% | %s |" % (name, 100 - 100 * wrong / value["addresses"], " | ".join(words[1::2])))
    return lines, good


def machine_line():
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    with open("/proc/meminfo") as file:
        memory = int(re.search(r"MemTotal:\s*(\d+)", file.read())[1]) / 1048576
    release = output("sh", "-c", ". /etc/os-release && echo $PRETTY_NAME").strip()
    return "%s, %s, %d cores, %.0f GB, %s (load average at the start %.1f)." % \
        (datetime.date.today(), model[1] if model else "unknown processor", os.cpu_count(), memory, release, os.getloadavg()[0])


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.dirname(HERE) + "/build")
    parser.add_argument("--work", default=HERE + "/work-symbol")
    parser.add_argument("--results", help="Markdown file to write (default bench/results/DATE-symbol.md)")
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", action="append", help="just this binary of WORK/bin; may be repeated")
    parser.add_argument("--no-build", action="store_true", help="with the binaries that there are")
    options = parser.parse_args()
    options.build, options.work = os.path.abspath(options.build), os.path.abspath(options.work)
    options.rounds = 3 if options.quick else ROUNDS
    return options


def main():
    options = parse()
    folder = options.work + "/bin"
    os.makedirs(options.work, exist_ok=True)
    machine = machine_line()
    if not options.no_build:
        say("building what is missing in %s (hours, the first time)" % options.work)
        subprocess.run([HERE + "/symbol_binaries.sh", options.work], check=True)
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-o", options.work + "/measure", HERE + "/measure.c"], check=True)
    options.ours, options.peers = ours(options), peers(options)

    def present(names):
        return [folder + "/" + n for n in options.only or names if os.path.exists(folder + "/" + n)]

    lines = ["# Names for addresses: heapgauge and its peers", "", machine, "",
             "Peers: " + "; ".join("%s %s" % (who.name, who.version) for who in options.peers) + ".", "",
             "Best of %d rounds in which all took turns. Memory: the peak of the largest process; in brackets what of all its processes is not memory of "
             "files. A peer may take %d s and %d GB of address space." % (options.rounds, LIMIT, MEMORY_LIMIT // 1024), "",
             "%s random addresses of .text:" % format(N, ","), ""]
    lines += time_table(options, present(TIMED))
    lines += ["", "From one address to 200,000:", ""] + growth_table(options, present(GROWN))
    lines += ["", "%s addresses one after the other, each answer waited for: the first, and the mean of the others:" % format(TALK, ","), ""]
    lines += talk_table(options, present(GROWN))
    say("answers")
    table, good = agreement_table(options, folder)
    lines += ["", "Answers beside llvm-symbolizer's, %s addresses each (tests/symbol/compare.c says what the kinds are):" % format(N, ","), ""] + table
    path = options.results or "%s/results/%s-symbol.md" % (HERE, datetime.date.today())
    with open(path + ".new", "w") as out:
        out.write("\n".join(lines) + "\n")
    os.replace(path + ".new", path)
    print("\n".join(lines))
    say("written to " + path)
    sys.exit(0 if good else "not equal to llvm-symbolizer for 99.9 % of the addresses of each binary")


if __name__ == "__main__":
    main()
