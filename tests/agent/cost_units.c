/* The small library of the cost test: some memory that stays, of a function with a name. */
#include <stdlib.h>

void units_run(int seed);

static void *kept[4096];
static size_t n_kept;

__attribute__((noinline)) static void *unit_keep(size_t n)
{
	return n_kept < sizeof kept / sizeof *kept ? kept[n_kept++] = malloc(n) : NULL;
}

void units_run(int seed)
{
	for (int i = 0; i < 50; i++)
		(void)unit_keep((size_t)(1000 + seed * 10 + i));
}
