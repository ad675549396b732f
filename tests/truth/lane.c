/*
 * A lane in C; LANE (main, linked, loaded) names it. The libraries of "linked" and "loaded" are the
 * same source and their names are equally long, so that their functions lie at equal offsets: only the
 * file tells them apart.
 */
#include "lane.h"

#include <malloc.h>
#include <stdlib.h>

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)
#define NAME(rest) JOIN(LANE, rest)

/* Not inlined, no tail call, and (by the number) not merged with a function of the same body. */
#define FUNCTION(rest) \
	static __attribute__((noinline)) void *NAME(rest)(unsigned path, size_t size)
#define RETURN(p, number)                                                 \
	do {                                                              \
		__asm__ volatile("# %c1" : "+r"(p) : "i"(number));        \
		return p;                                                 \
	} while (0)

FUNCTION(4_0)
{
	(void)path;
	void *p = malloc(size);
	RETURN(p, 40);
}

FUNCTION(4_1)
{
	(void)path;
	void *p = calloc(1, size);
	RETURN(p, 41);
}

FUNCTION(4_2)
{
	(void)path;
	void *p = realloc(NULL, size);
	RETURN(p, 42);
}

FUNCTION(4_3)
{
	(void)path;
	void *p = aligned_alloc(16, size);
	RETURN(p, 43);
}

#define STEP(level, digit, next)                              \
	FUNCTION(level##_##digit)                             \
	{                                                     \
		void *p = next[path & 3](path >> 2, size);    \
		RETURN(p, level##digit);                      \
	}
#define LEVEL(level, next)      \
	STEP(level, 0, next)    \
	STEP(level, 1, next)    \
	STEP(level, 2, next)    \
	STEP(level, 3, next)
#define TABLE(level)                                                                                \
	{                                                                                           \
		NAME(level##_0), NAME(level##_1), NAME(level##_2), NAME(level##_3)                   \
	}

static lane_function *const level4[] = TABLE(4);
LEVEL(3, level4)
static lane_function *const level3[] = TABLE(3);
LEVEL(2, level3)
static lane_function *const level2[] = TABLE(2);
LEVEL(1, level2)
static lane_function *const level1[] = TABLE(1);
LEVEL(0, level1)
static lane_function *const level0[] = TABLE(0);

static __attribute__((noinline)) void *NAME(again)(unsigned turns, unsigned path, size_t size)
{
	void *p = turns ? NAME(again)(turns - 1, path, size) : level0[path & 3](path >> 2, size);
	RETURN(p, 100);
}

void *NAME(allocate)(unsigned path, size_t size);

void *NAME(allocate)(unsigned path, size_t size)
{
	void *p = NAME(again)(path % 5, path, size);
	RETURN(p, 101);
}
