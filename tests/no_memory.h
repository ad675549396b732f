/*
 * No memory: the nth allocation of the program's own code, in whichever thread, fails, once or from then on. For
 * one file of a program that has the dependency no_memory (tests/meson.build: --wrap for the four functions).
 */
#ifndef TESTS_NO_MEMORY_H
#define TESTS_NO_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

static struct {
	atomic_long calls;          /* since it began */
	atomic_long succeed;        /* allocations before the first that fails; negative: none fails */
	atomic_bool for_good, failed;
} no_memory = { .succeed = -1 };

/* n more allocations succeed, and the next one fails, or for good all that come; with a negative n none fails. */
static inline void no_memory_begin(long n, bool for_good)
{
	no_memory.calls = 0;
	no_memory.failed = false;
	no_memory.for_good = for_good;
	no_memory.succeed = n;
}

/* None fails any more. Returns whether one has failed since it began; may be asked again. */
static inline bool no_memory_end(void)
{
	no_memory.succeed = -1;
	return no_memory.failed;
}

/* Allocations since it began. */
static inline long no_memory_calls(void)
{
	return no_memory.calls;
}

static bool no_memory_now(void)
{
	long call = atomic_fetch_add(&no_memory.calls, 1), succeed = no_memory.succeed;
	if (succeed < 0 || (no_memory.for_good ? call < succeed : call != succeed))
		return false;
	no_memory.failed = true;
	return true;
}

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
char *__wrap_strdup(const char *s);
void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
char *__real_strdup(const char *s);

void *__wrap_malloc(size_t n)
{
	return no_memory_now() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return no_memory_now() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
	return no_memory_now() ? NULL : __real_realloc(p, n);
}

char *__wrap_strdup(const char *s)
{
	return no_memory_now() ? NULL : __real_strdup(s);
}

#endif
