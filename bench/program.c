/*
 * The program whose dumps the benchmark reads: STACKS different stacks of 5 to 64 frames in four threads, every
 * fourth stack in two of them.
 *
 *   program STACKS FIRST_DUMP SECOND_DUMP [MEASURE ROUNDS]
 *
 * Between the dumps a third of the stacks lose a block and a sixth gain one. Run it with
 * MALLOC_CONF=prof:true,lg_prof_sample:10: blocks are 8-16 KiB, two a stack, so none goes unseen. They are
 * never touched and cost address space only. MEASURE is a library whose measure() is called in between (agent_cost.c).
 */
#include "walk.h"

#include <dlfcn.h>
#include <jemalloc/jemalloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { THREADS = 4, MOST_CALLS = 54 };

static size_t stacks;
static void **blocks;           /* two a stack */
static pthread_barrier_t barrier;

/* The one place from where the walks start: what follows it is the stack. */
static __attribute__((noinline)) void *allocate(size_t i, unsigned salt)
{
	struct walk w = { .number = i, .random = i * 0x9e3779b97f4a7c15u };
	unsigned least = 0;

	for (size_t n = i; n; n /= 3)
		least++;
	w.random ^= w.random >> 31;
	walk_choice(&w);
	walk_choice(&w);
	w.left = least + (unsigned)(w.random >> 40) % (MOST_CALLS - least + 1);
	w.size = 8192 + ((i * 7919 + salt * 104729) & 8191);
	void *p = engine_function_000(&w);
	__asm__ volatile("" : "+r"(p));
	return p;
}

/* The next two are not inlined: worker() would get a call site, and so a stack, of its own for each salt. */

/* Whether thread self makes that allocation of stack i. */
static __attribute__((noinline)) int is_mine(size_t self, size_t i, unsigned salt)
{
	size_t owner = salt == 1 ? (i + (i % 16 < 4)) % THREADS : i % THREADS;
	return owner == self && (salt != 2 || i % 6 == 1);
}

/* Turn k of a worker: first two blocks a stack, then (after the first dump) some more. */
static __attribute__((noinline)) size_t turn(size_t k, unsigned *ret_salt)
{
	*ret_salt = k < stacks * 2 ? k % 2 : 2;
	return k < stacks * 2 ? k / 2 : k - stacks * 2;
}

static void *worker(void *argument)
{
	size_t self = (size_t)(uintptr_t)argument;

	for (size_t k = 0; k < stacks * 3; k++) {
		unsigned salt;
		size_t i = turn(k, &salt);
		if (k == stacks * 2) {
			pthread_barrier_wait(&barrier);
			pthread_barrier_wait(&barrier);
			for (size_t gone = self * 3; gone < stacks; gone += THREADS * 3)
				free(blocks[2 * gone]);
		}
		if (is_mine(self, i, salt)) {
			void *p = allocate(i, salt);
			if (salt < 2)
				blocks[2 * i + salt] = p;
		}
	}
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

static void dump(const char *path)
{
	if (mallctl("prof.dump", NULL, NULL, &path, sizeof path)) {
		fprintf(stderr, "program: can't dump to %s; is profiling on?\n", path);
		exit(1);
	}
}

static void measure(const char *library, const char *rounds)
{
	void *handle = dlopen(library, RTLD_NOW);
	void (*function)(int) = handle ? (void (*)(int))dlsym(handle, "measure") : NULL;
	if (!function) {
		fprintf(stderr, "program: %s\n", dlerror());
		exit(1);
	}
	function((int)strtol(rounds, NULL, 10));
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if ((argc != 4 && argc != 6) || sscanf(argv[1], "%zu", &stacks) != 1) {
		fprintf(stderr, "usage: program STACKS FIRST_DUMP SECOND_DUMP [MEASURE ROUNDS]\n");
		return 2;
	}
	blocks = mmap(NULL, stacks * 2 * sizeof *blocks, PROT_READ | PROT_WRITE,
	              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (blocks == MAP_FAILED)
		return 1;
	pthread_barrier_init(&barrier, NULL, THREADS + 1);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, worker, (void *)(uintptr_t)i))
			return 1;
	pthread_barrier_wait(&barrier);
	dump(argv[2]);
	if (argc == 6)
		measure(argv[4], argv[5]);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	dump(argv[3]);
	pthread_barrier_wait(&barrier);
	for (size_t i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
