#!/usr/bin/env python3
"""Does the truth lie within the printed 95 % intervals as often as 95 % says?

Runs `population` many times, at rates of 4, 64 and 512 KiB, with and without accumulated counts, asks
heapgauge what each call path holds, and counts how often the truth lies within the interval. A path without any
sample counts as [0, 3 R]. Both sides can fail: too low is a wrong promise, too high (where the dump says
enough to be exact) a useless one. At R = 1 all must agree to the byte.

usage: coverage.py HEAPGAUGE POPULATION LOADED_LIBRARY WORK_DIRECTORY
"""
import argparse
import concurrent.futures
import json
import math
import os
import re
import statistics
import subprocess
import sys

import tap

Z95 = 1.959963984540054
KIB = 1024
RATES = {4 * KIB: 12, 64 * KIB: 16, 512 * KIB: 19}
BUDGET_MIB = {1: 64, 4 * KIB: 1024, 64 * KIB: 3072, 512 * KIB: 4096}     # address space, not memory
SITES = 800

ONE_MANY = "one size, 10 samples or more"
ONE_FEW = "one size, fewer samples"
MIXED = "mixed sizes"
SHARED = "path shared by two threads"
RAW_ONE = "raw counts, one size, 10 samples or more"
ALLOCATED = "allocated in all (prof_accum)"
FUNCTIONS = "functions, cumulative (top)"
CHANGE = "change in one process"
CHANGE_ACCUM = "change in one process, prof_accum"
CHANGE_OTHER = "change between two processes"

# What share of the truths must lie within: at least, at most. Only where a dump says all there is to know can
# the second be asked for.
LIMITS = {
    ONE_MANY: (0.93, 0.97),
    ONE_FEW: (0.93, 1),
    MIXED: (0.93, 1),
    SHARED: (0.93, 1),
    RAW_ONE: (0.93, 0.97),
    ALLOCATED: (0.93, 1),
    FUNCTIONS: (0.93, 1),
    CHANGE: (0.93, 1),
    CHANGE_ACCUM: (0.93, 1),
    CHANGE_OTHER: (0.93, 1),
}
PAIRS_WANTED = 2000


class Pair:
    """One truth beside what was printed for it."""

    def __init__(self, category, rate, truth, printed, ideal_variance):
        self.category = category
        self.rate = rate
        self.truth = truth
        self.value, self.low, self.high = printed
        self.ideal_width = 2 * Z95 * math.sqrt(ideal_variance)

    def covered(self):
        return self.low - 1 <= self.truth <= self.high + 1      # printed in whole bytes

    def changed(self, **values):
        other = object.__new__(Pair)
        other.__dict__.update(self.__dict__, **values)
        return other


class Population:
    """A line of the truth (population.c tells what it holds)."""

    def __init__(self, words):
        self.key = (words[0], int(words[1]), words[2].replace("_", " "))
        self.size = int(words[4])
        tallies = [tuple(map(float, words[i:i + 3])) for i in range(5, len(words), 3)]
        self.a, self.b, self.came, self.went, self.allocated = tallies


class Run:
    def __init__(self, prefix, rate, seed, accum=False, unbias=True):
        self.prefix, self.rate, self.seed, self.accum, self.unbias = prefix, rate, seed, accum, unbias
        self.a, self.b = prefix + ".a.heap", prefix + ".b.heap"
        self.truth = {}

    def make(self, options):
        conf = "prof:true,lg_prof_sample:%d,prof_accum:%s,prof_unbias:%s" % (
            int(math.log2(self.rate)), str(self.accum).lower(), str(self.unbias).lower())
        subprocess.run([options.population, str(self.seed), str(self.rate), str(SITES),
                        str(BUDGET_MIB[self.rate]), options.loaded, self.prefix],
                       env=dict(os.environ, MALLOC_CONF=conf), check=True)
        with open(self.prefix + ".truth") as lines:
            for line in lines:
                population = Population(line.split())
                self.truth[population.key] = population
        paths = [key[:2] for key in self.truth]
        self.shared = {path for path in paths if paths.count(path) > 1}


# --- what heapgauge prints ---------------------------------------------------

STEP = re.compile(r"\b(main|linked|loaded)_(\d)_(\d)$|\b(cplusplus)::step<(\d), (\d)>")
THREAD = re.compile(r"worker \d$")


def heapgauge(options, *arguments):
    done = subprocess.run([options.heapgauge, *arguments], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def lane_and_path(names):
    """The lane and number of a stack of function names, or None when it is none of ours."""
    lanes, digits = set(), {}
    for name in names:
        match = STEP.search(name)
        if match:
            lane, level, digit = match.groups()[:3] if match[1] else match.groups()[3:]
            lanes.add(lane)
            digits[int(level)] = int(digit)
    if len(lanes) != 1 or len(digits) != 5:
        return None
    return lanes.pop(), sum(digit << 2 * level for level, digit in digits.items())


def amount(row, field="amount"):
    value = row[field]
    return value["change"] if "change" in value else value["value"], value["low"], value["high"]


def stacks(options, *arguments):
    """(lane, path, thread) -> (value, low, high) as printed."""
    found = {}
    for row in heapgauge(options, "traces", "--json", "-n", "0", "--symbols", "table", *arguments)["stacks"]:
        place = lane_and_path(frame["name"] for frame in row["frames"])
        if place:
            key = (*place, THREAD.search(row["thread"])[0])
            if key in found:
                raise SystemExit("two rows for %s %d in %s" % key)
            found[key] = amount(row)
    return found


def unseen(run):
    return 0, 0, 3 * run.rate


# --- the comparisons -----------------------------------------------------------

def category_of(run, population, value):
    if population.key[:2] in run.shared:
        return SHARED if run.unbias else None
    if not population.size:
        return MIXED if run.unbias else None
    samples = value / population.size * -math.expm1(-population.size / run.rate)
    if samples < 9.5:
        return ONE_FEW if run.unbias else None
    return ONE_MANY if run.unbias else RAW_ONE


def compare_moment(options, run, moment):
    printed = stacks(options, getattr(run, moment))
    for key, population in run.truth.items():
        objects, truth, variance = getattr(population, moment)
        if objects:
            row = printed.get(key, unseen(run))
            category = category_of(run, population, row[0])
            if category:
                yield Pair(category, run.rate, truth, row, variance)


def compare_allocated(options, run):
    printed = stacks(options, "--metric", "alloc_space", run.b)
    for key, population in run.truth.items():
        _, truth, variance = population.allocated
        yield Pair(ALLOCATED, run.rate, truth, printed.get(key, unseen(run)), variance)


def compare_functions(options, run):
    """One function of a level is on the stacks of a quarter of its lane's paths."""
    truths = {}
    for (lane, path, _), population in run.truth.items():
        for level in range(5):
            sums = truths.setdefault((lane, level, path >> 2 * level & 3), [0, 0])
            sums[0] += population.b[1]
            sums[1] += population.b[2]
    for row in heapgauge(options, "top", "--json", "-n", "0", "--symbols", "table", run.b)["rows"]:
        match = STEP.search(row["name"])
        if match:
            lane, level, digit = match.groups()[:3] if match[1] else match.groups()[3:]
            truth, variance = truths[lane, int(level), int(digit)]
            yield Pair(FUNCTIONS, run.rate, truth, amount(row, "cum"), variance)


def compare_change(options, run):
    """Between the two moments of one process. Where nothing came or went the change must be exactly 0, unless
    the dump's rounding of a path's sum moves when another thread's part of it changes."""
    printed = stacks(options, "--base", run.a, run.b)
    category = CHANGE_ACCUM if run.accum else CHANGE
    for key, population in run.truth.items():
        row = printed.get(key, (0, -3 * run.rate, 3 * run.rate))
        if population.came[0] or population.went[0]:
            pair = Pair(category, run.rate, population.came[1] - population.went[1], row,
                        population.came[2] + population.went[2])
            pair.survives = population.went[0] + population.came[0] < 0.1 * population.a[0]
            pair.key = run.seed, key
            yield pair
        elif row[0] and key[:2] not in run.shared:
            raise SystemExit("%s: a change of %d bytes is printed where nothing changed" % (key, row[0]))


def compare_processes(options, run, other):
    printed = stacks(options, "--base", run.b, other.a)
    for key in run.truth.keys() & other.truth.keys():
        base, now = run.truth[key].b, other.truth[key].a
        row = printed.get(key, (0, -3 * run.rate, 3 * run.rate))
        yield Pair(CHANGE_OTHER, run.rate, now[1] - base[1], row, base[2] + now[2])


def compare_exact(options, run):
    """At R = 1 every number is the truth: returns the sentences about those that are not."""
    wrong = []
    views = {
        "at A": ((run.a,), lambda p: p.a[1]),
        "at B": ((run.b,), lambda p: p.b[1]),
        "the change": (("--base", run.a, run.b), lambda p: p.b[1] - p.a[1]),
        "objects at B": (("--metric", "inuse_objects", run.b), lambda p: p.b[0]),
        "allocated": (("--metric", "alloc_space", run.b), lambda p: p.allocated[1]),
    }
    for what, (arguments, truth_of) in views.items():
        printed = stacks(options, *arguments)
        for key, population in run.truth.items():
            truth = truth_of(population)
            row = printed.get(key, (0, 0, 0))
            if row != (truth, truth, truth):
                wrong.append("%s of %s: truth %d, printed %s" % (what, key, truth, row))
    return wrong


# --- judging ---------------------------------------------------------------------

class Category:
    def __init__(self, name, pairs):
        self.name, self.n = name, len(pairs)
        self.coverage = sum(pair.covered() for pair in pairs) / len(pairs) if pairs else 0
        ratios = [(pair.high - pair.low) / pair.ideal_width for pair in pairs
                  if pair.value and pair.ideal_width > 1]
        self.width = statistics.median(ratios) if ratios else math.nan

    def verdict(self):
        """None, or what is wrong."""
        low, high = LIMITS[self.name]
        if self.n < PAIRS_WANTED:
            return "%d pairs, wanted %d" % (self.n, PAIRS_WANTED)
        if self.coverage < low:
            return "covered %.2f %%, less than %.2f %%" % (100 * self.coverage, 100 * low)
        if self.coverage > high:
            return "covered %.2f %%, more than %.2f %%" % (100 * self.coverage, 100 * high)
        return None


def by_category(pairs):
    found = {name: [] for name in LIMITS}
    for pair in pairs:
        found[pair.category].append(pair)
    return {name: Category(name, of_it) for name, of_it in found.items()}


def check_categories(pairs):
    for category in by_category(pairs).values():
        low, high = LIMITS[category.name]
        tap.note("%-42s %6d pairs  %6.2f %% covered (%.0f-%.0f)  width %.2f of ideal" %
                 (category.name, category.n, 100 * category.coverage, 100 * low, 100 * high, category.width))
        tap.check(category.verdict() is None, category.name, category.verdict())
    for rate in sorted(RATES):
        for category in by_category(pair for pair in pairs if pair.rate == rate).values():
            tap.note("  at %3d KiB: %-40s %6d pairs  %6.2f %% covered  width %.2f" %
                     (rate // KIB, category.name, category.n, 100 * category.coverage, category.width))


def check_can_fail(pairs):
    """The same judgement on numbers spoiled on purpose must not pass."""
    def scaled(pair, factor):
        middle = pair.value
        return pair.changed(low=middle - (middle - pair.low) * factor, high=middle + (pair.high - middle) * factor)

    def missing(pair, number):
        return pair.changed(value=0, low=0, high=3 * pair.rate) if number % 10 == 0 else pair

    spoilt = {
        "intervals twice as wide": (lambda p, i: scaled(p, 2), (ONE_MANY, RAW_ONE)),
        "intervals too narrow": (lambda p, i: scaled(p, 0.75), (ONE_MANY, RAW_ONE)),
        "intervals of a third": (lambda p, i: scaled(p, 1 / 3), LIMITS),
        "estimates not unsampled": (lambda p, i: p.changed(low=p.low * 0.6, high=p.high * 0.6), (ONE_MANY, RAW_ONE)),
        "every tenth stack lost": (missing, (ONE_MANY, RAW_ONE, FUNCTIONS)),
    }
    for what, (spoil, names) in spoilt.items():
        categories = by_category(spoil(pair, i) for i, pair in enumerate(pairs))
        passed = [name for name in names if categories[name].verdict() is None]
        tap.check(not passed, "the check fails on " + what, "passed: " + ", ".join(passed))


def check_narrower(pairs):
    """With accumulated counts the same populations' changes are known better, where most blocks survive."""
    plain = {pair.key: pair for pair in pairs if pair.category == CHANGE and pair.survives}
    accum = {pair.key: pair for pair in pairs if pair.category == CHANGE_ACCUM and pair.survives}
    ratios = [(accum[key].high - accum[key].low) / (plain[key].high - plain[key].low)
              for key in plain.keys() & accum.keys()
              if plain[key].value and accum[key].value and plain[key].high > plain[key].low]
    ratio = statistics.median(ratios) if ratios else math.nan
    tap.note("interval of a change with prof_accum: %.2f of that without (%d paths, most blocks survive)" %
             (ratio, len(ratios)))
    tap.check(len(ratios) >= 100 and ratio < 0.7, "prof_accum makes changes clearly surer")


def check_unbiased(pairs):
    """Errors of independent stacks cancel: their sum must stay within four standard errors of zero."""
    for rate in sorted(RATES):
        chosen = [p for p in pairs if p.rate == rate and p.category in (ONE_MANY, ONE_FEW, MIXED)]
        error = sum(p.value - p.truth for p in chosen)
        deviation = math.sqrt(sum((p.ideal_width / 2 / Z95) ** 2 for p in chosen))
        total = sum(p.truth for p in chosen)
        tap.note("at %d KiB the estimates add up to %+.3f %% of the truth (standard error %.3f %%)" %
                 (rate // KIB, 100 * error / total, 100 * deviation / total))
        tap.check(abs(error) < 4 * deviation, "no bias at %d KiB" % (rate // KIB))


def check_independent(runs, moments):
    """Two runs of one seed have the same populations; their errors must not be the same."""
    both = {}
    for run in runs:
        both.setdefault((run.rate, run.seed), []).append(moments[run])
    errors = [(one[key], other[key]) for one, other in (b[:2] for b in both.values() if len(b) > 1)
              for key in one.keys() & other.keys()]
    r = statistics.correlation(*zip(*errors))
    tap.note("errors of two runs with the same populations: correlation %.3f (%d populations)" % (r, len(errors)))
    tap.check(abs(r) < max(0.1, 4 / math.sqrt(len(errors))), "runs are independent")


def standard_errors(pairs, run):
    """Of the single-size populations with samples enough, by place: (printed - truth) in standard errors."""
    return {i: (p.value - p.truth) * 2 * Z95 / p.ideal_width for i, p in enumerate(pairs)
            if p.category in (ONE_MANY, MIXED) and p.ideal_width > 1}


# --- the check ---------------------------------------------------------------------

def plan(options):
    """Every seed at a rate is run without and with accumulated counts; some also with raw counts."""
    seeds = {4 * KIB: 7, 64 * KIB: 11, 512 * KIB: 10}
    for rate, n in seeds.items():
        for seed in range(1, n + 1):
            for accum in (False, True):
                yield Run("%s/%d.%d.%s" % (options.work, rate, seed, accum), rate, seed, accum)
            yield Run("%s/%d.%d.raw" % (options.work, rate, seed), rate, seed, unbias=False)


def ask(options, run, number):
    moment = "ab"[number % 2]
    here = list(compare_moment(options, run, moment))
    errors = standard_errors(here, run)
    if run.unbias:
        here += compare_functions(options, run)
        here += compare_change(options, run)
    if run.accum:
        here += compare_allocated(options, run)
    return here, errors


def main():
    parser = argparse.ArgumentParser()
    for name in ("heapgauge", "population", "loaded", "work"):
        parser.add_argument(name)
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)

    exact = Run(options.work + "/exact", 1, 1, accum=True)
    exact.make(options)
    wrong = compare_exact(options, exact)
    tap.check(not wrong, "R = 1 is exact to the byte (%d paths)" % len(exact.truth), "\n".join(wrong[:5]))
    some = next(iter(exact.truth.values()))
    some.a = (some.a[0], some.a[1] + 1, 0)
    tap.check(compare_exact(options, exact), "and one byte more would be noticed")

    runs = list(plan(options))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        list(pool.map(lambda run: run.make(options), runs))
        asked = list(pool.map(lambda item: ask(options, item[1], item[0] // 3), enumerate(runs)))
        pairs = [pair for here, _ in asked for pair in here]
        unbiased = [run for run in runs if run.unbias]
        twos = [(one, two) for i, one in enumerate(unbiased) for two in unbiased[i + 1:i + 4]
                if one.rate == two.rate and one.seed != two.seed]
        for here in pool.map(lambda two: list(compare_processes(options, *two)), twos):
            pairs += here
    check_categories(pairs)
    check_narrower(pairs)
    check_unbiased(pairs)
    check_independent(runs, {run: errors for run, (_, errors) in zip(runs, asked)})
    check_can_fail(pairs)
    return tap.done()


sys.exit(main())
