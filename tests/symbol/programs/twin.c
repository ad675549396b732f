/* Two libraries of the same layout whose functions have different names: NAME makes the difference. */
#include <stdlib.h>

#define JOIN(a, b) a##b
#define NAMED(a, b) JOIN(a, b)

static __attribute__((noinline)) void *inner(size_t n)
{
	void *p = malloc(n);
	return p ? p : abort(), p;
}

void *NAMED(NAME, _get)(size_t n);
void *NAMED(NAME, _get)(size_t n)
{
	return inner(n + 1);
}
