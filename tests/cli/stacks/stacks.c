/*
 * Stacks with inlined calls, each of which keeps memory of a size of its own: what t0550-inlines.sh checks by what is written here, which
 * was found by reading this file, not by running anything.
 *
 * "stack SIZE: function@mark ...": innermost first; the mark stands, in a comment, in the line of the call. What is inlined is so by
 * force (clang and gcc), what isn't must not be, and nothing calls in tail position.
 *
 * stack 64K: keep@k1 direct@c1 main@m1
 * stack 80K: keep@k1 inner@c2 middle@c3 outer@c4 main@m2
 * stack 96K: keep@k1 inner@c2 middle@c3 twice@c5 main@m3
 * stack 112K: keep@k1 inner@c2 middle@c3 twice@c6 main@m3
 * stack 128K: keep@k1 in_loop@c7 main@m4
 * stack 160K: keep@k1 three@c8 two@c9 one@c10 main@m5
 * stack 192K: keep@k1 unlikely@c11 rarely@c12 main@m6
 * stack 224K: keep@k1 by_pointer@c13 called_back@c14 main@m7
 */
#include <jemalloc/jemalloc.h>
#include <stdlib.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline))

#define K ((size_t)1024)

static void *volatile kept[64];
static volatile int counter, where;      /* where: so that no two functions are the same code */

INLINE void keep(size_t n)
{
	void *p = malloc(n); /*k1*/
	if (!p)
		abort();
	kept[counter++] = p;
}

APART void direct(size_t n)
{
	keep(n); /*c1*/
	where = 1;
}

INLINE void inner(size_t n)
{
	if (counter >= 0)
		keep(n); /*c2*/
}

INLINE void middle(size_t n)
{
	for (int i = 0; i < 1; i++) {
		inner(n + (size_t)i); /*c3*/
	}
}

APART void outer(size_t n)
{
	middle(n); /*c4*/
	where = 2;
}

APART void twice(size_t n)
{
	middle(n); /*c5*/
	where = 3;
	middle(n + 16 * K); /*c6*/
	where = 4;
}

APART void in_loop(size_t n)
{
	for (volatile int i = 0; i < 1; i++)
		keep(n); /*c7*/
}

INLINE void three(size_t n)
{
	keep(n); /*c8*/
}

APART void two(size_t n)
{
	three(n); /*c9*/
	where = 5;
}

INLINE void one(size_t n)
{
	two(n); /*c10*/
	where = 6;
}

/* gcc moves this to .text.unlikely. */
__attribute__((cold)) APART void unlikely(size_t n)
{
	keep(n); /*c11*/
	where = 7;
}

INLINE void rarely(size_t n)
{
	if (__builtin_expect(counter >= 0, 0))
		unlikely(n); /*c12*/
}

APART void by_pointer(size_t n)
{
	keep(n); /*c13*/
	where = 8;
}

static void (*volatile callback)(size_t) = by_pointer;

INLINE void called_back(size_t n)
{
	callback(n); /*c14*/
	where = 9;
}

int main(int argc, char **argv)
{
	const char *path = argv[1];
	if (argc != 2)
		return 2;
	direct(64 * K); /*m1*/
	outer(80 * K); /*m2*/
	twice(96 * K); /*m3*/
	in_loop(128 * K); /*m4*/
	one(160 * K); /*m5*/
	rarely(192 * K); /*m6*/
	called_back(224 * K); /*m7*/
	return mallctl("prof.dump", NULL, NULL, &path, sizeof(path)) != 0;
}
