/*
 * leaker SECONDS SNAPSHOTS BYTES_PER_SECOND PREFIX: a server with a slow leak (0: none) under a hundred times as much
 * churn, beside a cache that warms up and a saw-tooth, that dumps its profile SNAPSHOTS times. Prints a line for each:
 * seconds, and the bytes leaked until then.
 */
#include <jemalloc/jemalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CHURN_SLOTS 8192        /* of 4 KiB on average: 32 MiB live */
#define CHURN_TIMES 100
#define BLOCK 1024

static void *volatile kept;

__attribute__((noinline)) static void leak_here(void)
{
	kept = malloc(BLOCK);
}

__attribute__((noinline)) static void *churn_here(size_t size)
{
	return malloc(size);
}

__attribute__((noinline)) static void cache_here(void)
{
	kept = malloc(2 * BLOCK);
}

__attribute__((noinline)) static void *saw_here(void)
{
	return malloc(8 * BLOCK);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static uint64_t random_state;

static uint64_t random_next(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static int dump(const char *prefix, unsigned number)
{
	char path[4096];
	snprintf(path, sizeof path, "%s.%ld.%u.m%u.heap", prefix, (long)getpid(), number, number);
	const char *name = path;
	return mallctl("prof.dump", NULL, NULL, &name, sizeof name);
}

static void *churned[CHURN_SLOTS], *saw[4096];

/* So many bytes came and went. */
static void churn(double bytes)
{
	while (bytes > 0) {
		size_t slot = random_next() % CHURN_SLOTS, size = 64 + random_next() % 8128;
		free(churned[slot]);
		churned[slot] = churn_here(size);
		bytes -= (double)size;
	}
}

/* Fills up to so many of its 32 MiB, and is emptied four times in the run. */
static void move_saw(double part)
{
	static size_t n;
	size_t wanted = (size_t)((part * 4.3 - (double)(int)(part * 4.3)) * 4096);
	if (wanted < n)
		while (n > 0)
			free(saw[--n]);
	while (n < wanted)
		saw[n++] = saw_here();
}

int main(int argc, char **argv)
{
	double seconds = argc > 4 ? strtod(argv[1], NULL) : 0, rate = argc > 4 ? strtod(argv[3], NULL) : 0;
	unsigned snapshots = argc > 4 ? (unsigned)strtoul(argv[2], NULL, 10) : 0, taken = 0;
	if (snapshots < 2 || !(seconds > 0))
		return 2;
	double start = now(), leaked = 0, came = 0, cached = 0;
	random_state = (uint64_t)getpid() * 0x9e3779b97f4a7c15u + (uint64_t)(start * 1e9);
	churn(rate > 0 ? CHURN_SLOTS * 4096.0 : 1);
	while (taken < snapshots) {
		double at = now() - start;
		for (; leaked < at * rate; leaked += BLOCK)
			leak_here();
		churn((at - came) * (rate > 0 ? rate : 1e6) * CHURN_TIMES);
		came = at;
		/* Half of what is left every tenth of the run, of 32 MiB. */
		for (double fill = 0x1p25 * (1 - __builtin_exp2(-at / seconds * 10)); cached < fill; cached += 2 * BLOCK)
			cache_here();
		move_saw(at / seconds);
		if (at >= seconds * taken / (snapshots - 1)) {
			if (dump(argv[4], taken++))
				return 1;
			printf("%.6f %.0f\n", now() - start, leaked);
			fflush(stdout);
		}
		usleep(2000);
	}
	return 0;
}
