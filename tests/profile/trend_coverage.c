/*
 * Does the 95 % interval of a growth hold the true rate as often as it says, and does the gate leave alone what does
 * not leak? Processes are simulated block by block and sampled as jemalloc samples, each with four stacks; the series is
 * then what `heapgauge leaks` makes of the profiles. Prints a table (docs/arithmetic.md has one of more) and
 * fails when a promise is broken.
 *
 * usage: trend_coverage [PROCESSES_PER_FAMILY [SEED]]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/series.h"

#define RATE 524288.0
#define SNAPSHOTS_MOST 40
#define STACKS 4
#define FOREVER 1e300
#define MINUTE 60e9

/* --- chance ----------------------------------------------------------------- */

static uint64_t state = 88172645463325252;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (double)(state >> 11) * 0x1p-53;
}

static double exponential(double mean)
{
	return -mean * log1p(-uniform());
}

/* Evenly in its logarithm. */
static double between(double low, double high)
{
	return low * pow(high / low, uniform());
}

static unsigned poisson(double mean)
{
	unsigned n = 0;
	for (double t = exponential(1); t < mean; t += exponential(1))
		n++;
	return n;
}

/* --- a process -------------------------------------------------------------- */

struct process {
	unsigned n;                         /* snapshots, a minute apart give or take a tenth */
	double times[SNAPSHOTS_MOST];
	struct stack_life {
		double size, chance;        /* of its blocks: bytes, and to be sampled */
		unsigned counts[SNAPSHOTS_MOST];
	} stacks[STACKS];
};

static double span(const struct process *p)
{
	return p->times[p->n - 1];
}

static void process_init(struct process *p)
{
	memset(p, 0, sizeof *p);
	p->n = 6 + (unsigned)(uniform() * (SNAPSHOTS_MOST - 5));
	for (unsigned k = 1; k < p->n; k++)
		p->times[k] = p->times[k - 1] + 0.9 + 0.2 * uniform();
	for (int i = 0; i < STACKS; i++) {
		p->stacks[i].size = floor(between(64, 4 * RATE));
		p->stacks[i].chance = -expm1(-p->stacks[i].size / RATE);
	}
}

/* A sampled block lives from then until then. */
static void lives(const struct process *p, struct stack_life *s, double from, double to)
{
	for (unsigned k = 0; k < p->n; k++)
		s->counts[k] += p->times[k] >= from && p->times[k] < to;
}

/* So many sampled blocks a minute, at random times: the sampled part of a Poisson process is one. */
static void leak_at_random(const struct process *p, struct stack_life *s, double samples)
{
	for (double t = exponential(1 / samples); t < span(p); t += exponential(1 / samples))
		lives(p, s, t, FOREVER);
}

/* Like a clock, each block with its own chance. */
static void leak_evenly(const struct process *p, struct stack_life *s, double samples)
{
	double step = s->chance / samples;
	for (double t = step * uniform(); t < span(p); t += step)
		if (uniform() < s->chance)
			lives(p, s, t, FOREVER);
}

/* Blocks that come at random and live for an exponential time; so many sampled ones are there at any time. */
static void churn(const struct process *p, struct stack_life *s, double samples, double life)
{
	if (life < 0.05) {          /* none is seen twice */
		for (unsigned k = 0; k < p->n; k++)
			s->counts[k] += poisson(samples);
		return;
	}
	for (unsigned n = poisson(samples); n > 0; n--)
		lives(p, s, -1, exponential(life));
	for (double t = exponential(life / samples); t < span(p); t += exponential(life / samples))
		lives(p, s, t, t + exponential(life));
}

static void warm_up(const struct process *p, struct stack_life *s)
{
	double life = span(p) * between(0.03, 0.4);
	for (unsigned n = poisson(between(10, 1000)); n > 0; n--)
		lives(p, s, exponential(life), FOREVER);
	if (uniform() < 0.5)
		churn(p, s, between(3, 100), between(0.01, span(p)));
}

static void saw(const struct process *p, struct stack_life *s)
{
	double period = span(p) * between(0.1, 0.45), samples = between(10, 1000);
	for (double from = -period * uniform(); from < span(p); from += period)
		for (unsigned n = poisson(samples); n > 0; n--)
			lives(p, s, from + period * uniform(), from + period);
}

static void burst(const struct process *p, struct stack_life *s)
{
	for (int n = 1 + (int)(uniform() * 6); n > 0; n--) {
		double from = span(p) * uniform(), life = span(p) * between(0.02, 0.3);
		for (unsigned k = poisson(between(5, 300)); k > 0; k--)
			lives(p, s, from + 0.2 * life * uniform(), from + life);
	}
	if (uniform() < 0.5)
		churn(p, s, between(3, 100), between(0.01, span(p)));
}

/* --- families --------------------------------------------------------------- */

enum family {
	LEAK_BARE, LEAK_FAST, LEAK_MIDDLE, LEAK_SLOW, STEADY_FAST, STEADY_MIDDLE, STEADY_SLOW, CACHE, SAW, BURST, FAMILIES
};

static const char *const names[FAMILIES] = {
	"leak alone", "leak, short-lived churn", "leak, churn of some intervals", "leak, churn longer than the range",
	"no leak, short-lived churn", "no leak, churn of some intervals", "no leak, churn longer than the range",
	"cache that warms up", "saw-tooth", "bursts",
};

static bool leaks(enum family f)
{
	return f <= LEAK_SLOW;
}

static bool has_rate(enum family f)
{
	return f <= STEADY_SLOW;
}

/* The stack's true rate: sampled blocks a minute. */
static double live(const struct process *p, struct stack_life *s, enum family f)
{
	double rate = 0;
	if (leaks(f)) {
		rate = between(5, 300) / span(p);
		if (uniform() < 0.5)
			leak_evenly(p, s, rate);
		else
			leak_at_random(p, s, rate);
	}
	if (f == LEAK_FAST || f == STEADY_FAST)
		churn(p, s, between(3, 300), between(0.001, 0.3));
	else if (f == LEAK_MIDDLE || f == STEADY_MIDDLE)
		churn(p, s, between(3, 300), between(0.3, span(p)));
	else if (f == LEAK_SLOW || f == STEADY_SLOW)
		churn(p, s, between(3, 300), span(p) * between(1, 30));
	else if (f == CACHE)
		warm_up(p, s);
	else if (f == SAW)
		saw(p, s);
	else if (f == BURST)
		burst(p, s);
	return rate;
}

struct tally {
	unsigned cases, below, above, processes, tripped;
	unsigned clear, clear_tripped;      /* of leaks of 100 samples and more, alone */
};

static struct profile *profile_of(const struct process *p)
{
	struct profile *profile = profile_new(0);
	profile_add_heap_types(profile, false);
	for (unsigned k = 0; k < p->n; k++) {
		struct source s = { .rate = RATE, .snapshot = k, .header_objects = -1, .header_bytes = -1,
			            .time_nanos = (int64_t)(1e18 + p->times[k] * MINUTE) };
		profile_add_source(profile, &s);
	}
	for (int i = 0; i < STACKS; i++) {
		const struct stack_life *s = &p->stacks[i];
		uint32_t location = profile_intern_location(profile, PROFILE_NONE, 4096u + (unsigned)i);
		uint32_t stack = profile_intern_stack(profile, &location, 1);
		uint32_t labels = profile_intern_heap_labels(profile, 0, (uint64_t)s->size);
		for (unsigned k = 0; k < p->n; k++) {
			double objects = s->counts[k] / s->chance;
			int64_t values[2] = { llrint(objects), llrint(objects * s->size) };
			if (s->counts[k])
				profile_add_sample(profile, stack, labels, k, values);
		}
	}
	return profile_finish(profile, NULL) ? NULL : profile;
}

/* The place of stack number i; NULL when it never was there. */
static const struct growth *place_of(const struct series *s, int i)
{
	for (size_t k = 0; k < s->n_places; k++)
		if (s->view->entries[s->places[k].first_frame].address == 4096u + (unsigned)i)
			return &s->places[k];
	return NULL;
}

static bool judge(const struct process *p, enum family f, const double rates[STACKS], struct tally *t)
{
	struct view_options vo = { .column = -1, .by = BY_ADDRESS };
	struct series_options so = { .by_stack = false };
	struct profile *profile = profile_of(p);
	struct view *v = NULL;
	struct series *s = NULL;
	bool ok = profile && !view_new(profile, &vo, &v, NULL) && !series_new(v, &vo, &so, &s, NULL), tripped = false;
	for (int i = 0; ok && i < STACKS; i++) {
		const struct growth *g = place_of(s, i);
		/* Of a process that leaks, the first stack does. */
		if (!g || (leaks(f) && i > 0) || !has_rate(f))
			continue;
		double rate = rates[i] / p->stacks[i].chance * p->stacks[i].size / 60;
		t->cases++;
		t->below += rate < g->trend.slope.interval.low;
		t->above += rate > g->trend.slope.interval.high;
		if (f == LEAK_BARE && rates[i] * span(p) >= 100 && p->n >= 10) {
			t->clear++;
			t->clear_tripped += growth_exceeds(g, 0);
		}
	}
	for (size_t k = 0; ok && k < s->n_places; k++)
		tripped = tripped || growth_exceeds(&s->places[k], 0);
	tripped = tripped || (ok && growth_exceeds(&s->total, 0));
	t->processes++;
	t->tripped += tripped;
	series_free(s);
	view_free(v);
	profile_free(profile);
	return ok;
}

static void print_tally(const char *name, const struct tally *t)
{
	printf("| %-37s |", name);
	if (t->cases)
		printf(" %5.1f %% | %4.1f / %4.1f %% |", 100.0 * (t->cases - t->below - t->above) / t->cases,
		       100.0 * t->below / t->cases, 100.0 * t->above / t->cases);
	else
		printf("         |               |");
	printf(" %5.1f %% |\n", 100.0 * t->tripped / t->processes);
}

static int check(bool holds, const char *what)
{
	if (!holds)
		printf("FAILED: %s\n", what);
	return !holds;
}

int main(int argc, char **argv)
{
	unsigned processes = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 150;
	struct tally all[FAMILIES] = { { 0 } }, rates = { 0 }, leak_free = { 0 };
	int failed = 0;
	state += argc > 2 ? strtoul(argv[2], NULL, 10) * 0x9e3779b97f4a7c15u : 0;
	printf("| %-37s | covered | too high / low |  trips  |\n|---|---:|---:|---:|\n", "workload");
	for (enum family f = 0; f < FAMILIES; f++) {
		/* A leak-free process has four stacks of its kind, a leaking one only one. */
		unsigned wanted = leaks(f) ? 2 * processes : processes;
		for (unsigned i = 0; i < wanted; i++) {
			struct process p;
			double rate[STACKS];
			process_init(&p);
			for (int k = 0; k < STACKS; k++)
				rate[k] = live(&p, &p.stacks[k], leaks(f) && k > 0 ? STEADY_FAST + (f + k) % 3 : f);
			failed |= check(judge(&p, f, rate, &all[f]), "out of memory");
		}
		print_tally(names[f], &all[f]);
		rates.cases += all[f].cases;
		rates.below += all[f].below;
		rates.above += all[f].above;
		leak_free.processes += leaks(f) ? 0 : all[f].processes;
		leak_free.tripped += leaks(f) ? 0 : all[f].tripped;
		if (has_rate(f))
			failed |= check(all[f].below + all[f].above <= 0.1 * all[f].cases, "one kind is covered in less than 90 %");
	}
	double covered = 1 - (double)(rates.below + rates.above) / rates.cases;
	printf("%u rates, covered: %.1f %%; %u leak-free processes, tripped: %.2f %%; %u clear leaks, tripped: %.1f %%\n",
	       rates.cases, 100 * covered, leak_free.processes, 100.0 * leak_free.tripped / leak_free.processes,
	       all[LEAK_BARE].clear, 100.0 * all[LEAK_BARE].clear_tripped / all[LEAK_BARE].clear);
	failed |= check(rates.cases >= 500 && leak_free.processes >= 500, "there are too few to tell");
	failed |= check(covered >= 0.93 && covered <= 0.97, "the interval does not cover the true rate in 93 to 97 %");
	failed |= check(leak_free.tripped <= 0.01 * leak_free.processes, "the gate trips on more than 1 % of what doesn't leak");
	failed |= check(all[LEAK_BARE].clear_tripped >= 0.8 * all[LEAK_BARE].clear, "the gate misses clear leaks");
	return failed;
}
