/*
 * A process whose live heap is known. It allocates many populations of blocks, each from a call
 * path of its own (lane.h) in one of several named threads, dumps the heap, frees and allocates
 * some more, dumps again, and writes down what is really there:
 *
 *   population SEED RATE SITES BUDGET_MIB LOADED_LIBRARY PREFIX
 *     -> PREFIX.a.heap PREFIX.b.heap PREFIX.truth
 *
 * RATE is what MALLOC_CONF's lg_prof_sample says, in bytes; it only shapes the populations: their
 * expected numbers of samples are spread evenly over the logarithm from 0.5 to thousands. SEED decides them,
 * but not what jemalloc samples: that differs from run to run.
 *
 * The truth, one line per population: lane path thread kind size, then at A: objects bytes variance, at B:
 * the same, then what was allocated and what freed between them: objects bytes variance each, then
 * allocated in all: objects bytes variance. size is 0 for a mixed population; variance is that of an ideal
 * estimate, the sum of s^2 (1 - p)/p over the blocks. Bytes are malloc_usable_size's.
 *
 * All bookkeeping lies in memory of mmap, so the heap holds nothing of it, and blocks are never touched.
 */
#include "lane.h"

#include <dlfcn.h>
#include <errno.h>
#include <jemalloc/jemalloc.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

enum { THREADS = 4, MAX_CLASSES = 5, LANES = 4, MOST_BLOCKS = 80000 };

struct tally {
	double objects, bytes, variance;
};

enum fate { SURVIVES, GROWS, SHRINKS, CHURNS, APPEARS, FATES };

struct population {
	unsigned lane, path, thread;
	bool mixed;
	unsigned n_classes;
	size_t size[MAX_CLASSES];
	double share[MAX_CLASSES];  /* of the blocks, summed up: the last is 1 */
	enum fate fate;
	uint64_t random;            /* state of its own generator */
	size_t planned;             /* blocks at A, or at B when it APPEARS then */
	void **blocks;
	size_t n, capacity;
	struct tally a, b, came, went, allocated;
};

static const char *const lane_names[LANES] = { "main", "linked", "cplusplus", "loaded" };
static lane_function *lanes[LANES] = { main_allocate, linked_allocate, cplusplus_allocate, NULL };
static double rate;
static struct population *populations;
static size_t n_populations;
static pthread_barrier_t started;       /* of a new thread and main: jemalloc numbers them in order */
static pthread_barrier_t barrier;       /* of all */

static void die(const char *what)
{
	fprintf(stderr, "population: %s: %s\n", what, strerror(errno));
	_exit(1);
}

static void *map(size_t bytes)
{
	void *p = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		die("mmap");
	return p;
}

/* --- the populations ----------------------------------------------------- */

/* splitmix64 */
static uint64_t random_u64(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15u;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static double random_unit(uint64_t *state)
{
	return (double)(random_u64(state) >> 11) * 0x1p-53;
}

static double random_log(uint64_t *state, double low, double high)
{
	return low * pow(high / low, random_unit(state));
}

static double sampled(double size)
{
	return rate > 1 ? -expm1(-size / rate) : 1;
}

/* Of the estimate of one block. Few sizes are asked for again and again, and expm1 is slow. */
static double variance(double size)
{
	static _Thread_local struct { double size, variance; } known[64];
	size_t place = (uint64_t)size * 0x9e3779b97f4a7c15u >> 58;
	if (known[place].size != size) {
		double p = sampled(size);
		known[place].size = size;
		known[place].variance = size * size * (1 - p) / p;
	}
	return known[place].variance;
}

static void tally_add(struct tally *t, double size)
{
	t->objects += 1;
	t->bytes += size;
	t->variance += variance(size);
}

static void tally_sum(struct tally *t, const struct tally *more)
{
	t->objects += more->objects;
	t->bytes += more->bytes;
	t->variance += more->variance;
}

/* How many samples the biggest populations get: what fits in memory at that rate. */
static double most_samples(void)
{
	if (rate <= 1)
		return 60;
	return rate < 16384 ? 2000 : rate < 131072 ? 1000 : 150;
}

/*
 * Chooses what the population will be; returns the bytes it needs, at most limit or one block. Sizes are
 * spread evenly over the logarithm from 16 B to 6 RATE (sometimes to 4 MiB), and in a mixture each has its
 * part of the samples.
 */
static double population_plan(struct population *p, double limit, uint64_t *random)
{
	double samples = random_log(random, 0.5, most_samples());
	double weights = 0, weighted_p = 0, weighted_size = 0;
	double largest = random_unit(random) < 0.05 ? 4 << 20 : rate > 1 ? fmin(4 << 20, 6 * rate) : 65536;

	p->mixed = random_u64(random) & 1;
	p->n_classes = p->mixed ? 2 + (unsigned)(random_u64(random) % (MAX_CLASSES - 1)) : 1;
	for (unsigned i = 0; i < p->n_classes; i++) {
		p->size[i] = nallocx((size_t)random_log(random, 16, largest), 0);
		double weight = (0.1 + random_unit(random)) / sampled((double)p->size[i]);
		weights += weight;
		weighted_p += weight * sampled((double)p->size[i]);
		weighted_size += weight * (double)p->size[i];
		p->share[i] = weights;
	}
	for (unsigned i = 0; i < p->n_classes; i++)
		p->share[i] /= weights;
	double fate = random_unit(random);
	p->fate = fate < 0.6 ? SURVIVES : fate < 0.72 ? GROWS : fate < 0.84 ? SHRINKS : fate < 0.94 ? CHURNS : APPEARS;
	p->random = random_u64(random);
	double n = fmin(samples * weights / weighted_p, limit * weights / weighted_size);
	n = fmin(n, MOST_BLOCKS);
	p->planned = (size_t)fmax(1, round(n));
	p->capacity = p->planned * 3 + 16;
	p->blocks = map(p->capacity * sizeof *p->blocks);
	return (double)p->planned * weighted_size / weights;
}

static size_t population_size(struct population *p)
{
	double u = random_unit(&p->random);
	unsigned i = 0;
	while (i + 1 < p->n_classes && u >= p->share[i])
		i++;
	return p->size[i];
}

/*
 * Which population has which path is the same for every SEED, so that processes can be compared. Every eighth
 * path is used by two populations, in different threads.
 */
static void populations_plan(uint64_t seed, size_t sites, double budget)
{
	static bool used[LANES][LANE_PATHS];
	uint64_t random = seed, places = 1;
	double limit = budget / 32;

	populations = map(sites * sizeof *populations);
	while (n_populations < sites && budget > 0) {
		struct population *p = &populations[n_populations];
		if (n_populations % 8 == 7) {
			p->lane = p[-1].lane;
			p->path = p[-1].path;
			p->thread = (p[-1].thread + 1) % THREADS;
		} else {
			do {
				p->lane = (unsigned)(random_u64(&places) % LANES);
				p->path = (unsigned)(random_u64(&places) % LANE_PATHS);
			} while (used[p->lane][p->path]);
			used[p->lane][p->path] = true;
			p->thread = (unsigned)(random_u64(&places) % THREADS);
		}
		budget -= population_plan(p, limit, &random);
		n_populations++;
	}
}

/* --- their lives --------------------------------------------------------- */

static __attribute__((noinline)) void population_grow(struct population *p, size_t n, struct tally *came)
{
	struct tally sum = { 0 };

	for (; n && p->n < p->capacity; n--) {
		size_t size = population_size(p);
		/* Ask for a bit less, as long as it stays the same class. */
		size_t asked = size - (size >= 128 ? random_u64(&p->random) % (size / 16) : 0);
		void *block = lanes[p->lane](p->path, asked);
		if (!block)
			die("allocating");
		size = malloc_usable_size(block);
		p->blocks[p->n++] = block;
		tally_add(&sum, (double)size);
	}
	tally_sum(came, &sum);
	tally_sum(&p->allocated, &sum);
}

static void population_shrink(struct population *p, size_t n, struct tally *went)
{
	for (; n && p->n; n--) {
		size_t i = random_u64(&p->random) % p->n;
		tally_add(went, (double)malloc_usable_size(p->blocks[i]));
		free(p->blocks[i]);
		p->blocks[i] = p->blocks[--p->n];
	}
}

/* What happens to it before the first dump (phase 0) and between the two (phase 1). */
static void population_fate(struct population *p, unsigned phase, size_t *ret_went, size_t *ret_came)
{
	double n = (double)p->n, u = random_unit(&p->random), v = random_unit(&p->random);

	*ret_went = *ret_came = 0;
	if (phase == 0) {
		*ret_came = p->fate == APPEARS ? 0 : p->planned;
		return;
	}
	switch (p->fate) {
	case SURVIVES:
		*ret_went = (size_t)(n * 0.05 * u);
		*ret_came = (size_t)(n * 0.05 * v);
		break;
	case GROWS:
		*ret_came = (size_t)(n * 2 * u) + 1;
		break;
	case SHRINKS:
		*ret_went = (size_t)(n * (0.2 + 0.8 * u)) + 1;
		break;
	case CHURNS:
		*ret_went = *ret_came = p->n;
		break;
	default:
		*ret_came = p->planned;
	}
}

/* Not inlined and called from one place, so that both phases allocate with the same stacks. */
static __attribute__((noinline)) void population_live(struct population *p, unsigned phase)
{
	struct tally first = { 0 };
	size_t went, came;

	population_fate(p, phase, &went, &came);
	population_shrink(p, went, phase ? &p->went : &first);
	population_grow(p, came, phase ? &p->came : &first);
}

static void population_count(const struct population *p, struct tally *ret)
{
	for (size_t i = 0; i < p->n; i++)
		tally_add(ret, (double)malloc_usable_size(p->blocks[i]));
}

/*
 * jemalloc seeds a thread's sampling by an address. Some samples, as many as the kernel's random numbers say, are
 * used up first, so that runs differ even where addresses don't.
 */
static void shake(void)
{
	uint32_t turns;
	if (getrandom(&turns, sizeof turns, 0) != sizeof turns)
		die("getrandom");
	size_t block = rate > 16384 ? (size_t)rate : 16384;
	for (turns %= 200; turns; turns--) {
		void *volatile p = malloc(block);
		free(p);
	}
}

static void *worker(void *argument)
{
	unsigned self = (unsigned)(uintptr_t)argument;
	char name[16];
	const char *given = name;

	snprintf(name, sizeof name, "worker %u", self);
	if (mallctl("thread.prof.name", NULL, NULL, &given, sizeof given))
		die("thread.prof.name");
	shake();
	pthread_barrier_wait(&started);
	for (volatile unsigned phase = 0; phase < 2; phase++) {
		for (size_t i = 0; i < n_populations; i++)
			if (populations[i].thread == self)
				population_live(&populations[i], phase);
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);     /* meanwhile a dump is made */
	}
	return NULL;
}

/* --- the record ---------------------------------------------------------- */

static void dump(const char *prefix, const char *suffix)
{
	char path[4096];
	const char *given = path;

	snprintf(path, sizeof path, "%s%s", prefix, suffix);
	if (mallctl("prof.dump", NULL, NULL, &given, sizeof given))
		die("prof.dump");
}

static void tally_print(FILE *out, const struct tally *t)
{
	fprintf(out, " %.0f %.0f %.17g", t->objects, t->bytes, t->variance);
}

static void truth_write(const char *prefix)
{
	char path[4096];
	snprintf(path, sizeof path, "%s.truth", prefix);
	FILE *out = fopen(path, "we");
	if (!out)
		die(path);
	for (size_t i = 0; i < n_populations; i++) {
		struct population *p = &populations[i];
		fprintf(out, "%s %u worker_%u %s %zu", lane_names[p->lane], p->path, p->thread,
		        p->mixed ? "mixed" : "one", p->mixed ? 0 : p->size[0]);
		tally_print(out, &p->a);
		tally_print(out, &p->b);
		tally_print(out, &p->came);
		tally_print(out, &p->went);
		tally_print(out, &p->allocated);
		fputc('\n', out);
	}
	if (fclose(out))
		die(path);
}

int main(int argc, char **argv)
{
	double seed, budget;
	size_t sites;
	if (argc != 7 || sscanf(argv[1], "%lf", &seed) != 1 || sscanf(argv[2], "%lf", &rate) != 1 ||
	    sscanf(argv[3], "%zu", &sites) != 1 || sscanf(argv[4], "%lf", &budget) != 1) {
		fprintf(stderr, "usage: population SEED RATE SITES BUDGET_MIB LOADED_LIBRARY PREFIX\n");
		return 2;
	}
	void *library = dlopen(argv[5], RTLD_NOW | RTLD_LOCAL);
	if (!library || !(*(void **)&lanes[3] = dlsym(library, "loaded_allocate"))) {
		fprintf(stderr, "population: %s\n", dlerror());
		return 1;
	}
	populations_plan((uint64_t)seed, sites, budget * 0x1p20);

	pthread_t threads[THREADS];
	pthread_barrier_init(&started, NULL, 2);
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (unsigned i = 0; i < THREADS; i++) {
		if (pthread_create(&threads[i], NULL, worker, (void *)(uintptr_t)i))
			die("pthread_create");
		pthread_barrier_wait(&started);
	}
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < n_populations; i++)
		population_count(&populations[i], &populations[i].a);
	dump(argv[6], ".a.heap");
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < n_populations; i++)
		population_count(&populations[i], &populations[i].b);
	dump(argv[6], ".b.heap");
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	truth_write(argv[6]);
	return 0;
}
