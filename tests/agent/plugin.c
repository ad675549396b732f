/* A library that a program loads while it runs: it leaks. With OTHER, one of the same name in which other functions lie where those were. */
#include <stdlib.h>
#include <string.h>

void *plugin_leak(size_t bytes);

#ifdef OTHER
void *another_function(size_t n);
void *one_more_function(size_t n);

__attribute__((noinline)) void *another_function(size_t n)
{
	char *block = calloc(n, 3);
	return block ? block + 1 : NULL;
}

__attribute__((noinline)) void *one_more_function(size_t n)
{
	return realloc(another_function(n), n);
}
#endif

__attribute__((noinline)) void *plugin_leak(size_t bytes)
{
	void *block = malloc(bytes);
	if (block)
		memset(block, 1, bytes);
	return block;
}
