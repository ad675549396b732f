#!/usr/bin/env python3
"""What a dump to pprof.gz costs the program it is taken of, against jemalloc's own dump, in turns in one process.

usage: agent_cost.py WORK BUILD SIZE...     (WORK with bench.py's program; by itself, for a closer look)
"""
import os
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def build(work, build_directory):
    subprocess.run(["cc", "-O2", "-D_GNU_SOURCE", "-fPIC", "-shared", "-I" + HERE + "/../include", "-o", work + "/agent_cost.so",
                    HERE + "/agent_cost.c", "-L" + build_directory + "/src/agent", "-lheapgauge", "-lpthread",
                    "-Wl,-rpath," + build_directory + "/src/agent"], check=True)


def measure(work, size, rounds):
    """(wall and processor times in ms of jemalloc, then of the library; bytes of the profile; of memory beside the text)"""
    environment = dict(os.environ, MALLOC_CONF="prof:true,lg_prof_sample:10")
    text = subprocess.run([work + "/program", str(size), os.devnull, os.devnull, work + "/agent_cost.so", str(rounds)], env=environment,
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    rows = [line.split() for line in text.split("begin\n")[1].splitlines()]
    times = {who: [(float(row[1]), float(row[2])) for row in rows if row[0] == who] for who in ("jemalloc", "heapgauge")}
    memory = next(row for row in rows if row[0] == "memory")
    return times["jemalloc"], times["heapgauge"], int(memory[1]), int(memory[2])


def table(work, build_directory, sizes, rounds=15):
    build(work, build_directory)
    lines = ["A dump taken inside the program (bench/agent_cost.c), best and median of rounds in turns; memory is what the process has beside "
             "the text, at its peak, the answer included:", "",
             "| stacks | prof.dump alone | to pprof.gz | more time (best, median) | more processor time | profile | memory |",
             "|--:|--:|--:|--:|--:|--:|--:|"]
    for size in sizes:
        theirs, ours, profile, memory = measure(work, size, rounds)
        wall = [[time[0] for time in times] for times in (theirs, ours)]
        processor = [min(time[1] for time in times) for times in (theirs, ours)]
        best, median = [min(w) for w in wall], [statistics.median(w) for w in wall]
        lines.append("| %s | %.1f ms | %.1f ms | %+.0f %%, %+.0f %% | %+.0f %% | %.1f MB | %.1f MB |" %
                     (format(size, ","), best[0], best[1], 100 * (best[1] / best[0] - 1), 100 * (median[1] / median[0] - 1),
                      100 * (processor[1] / processor[0] - 1), profile / 1e6, memory / 1e6))
    return lines


if __name__ == "__main__":
    print("\n".join(table(os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), [int(size) for size in sys.argv[3:]])))
