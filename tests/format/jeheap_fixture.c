/*
 * jeheap_fixture OUT [THREADS [TURNS]]: allocates from several places, sizes and named threads, frees
 * some of it, and writes a dump through prof.dump. Run with jemalloc preloaded and MALLOC_CONF=prof:true,..., or with
 * tcmalloc and HEAPPROFILE, which then writes the profile at the end.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int mallctl_fn(const char *name, void *old, size_t *old_n, void *new, size_t new_n);

static mallctl_fn *control;
static int turns = 40;
static pthread_barrier_t barrier;

static void *keep(void *p)
{
	__asm__ volatile("" : "+r"(p));
	return p;
}

__attribute__((noinline)) static void small(void)
{
	for (int i = 0; i < 100; i++)
		keep(malloc(48));
}

__attribute__((noinline)) static void mixed(unsigned i)
{
	static const size_t sizes[] = { 32, 200, 3000, 20000, 90000, 700000 };
	keep(malloc(sizes[i % 6]));
}

__attribute__((noinline)) static void large(void)
{
	keep(malloc(1000000));
}

__attribute__((noinline)) static void gone(void)
{
	for (int i = 0; i < 20; i++)
		free(keep(malloc(5000)));
}

__attribute__((noinline)) static void deep(int left)
{
	if (left > 0)
		deep(left - 1);
	else
		keep(malloc(1 << 16));
	__asm__ volatile("");
}

static void work(unsigned self)
{
	for (int i = 0; i < turns; i++) {
		small();
		mixed((unsigned)i + self);
		if (i % 8 == 0)
			large();
		if (self % 2 == 0)
			gone();
	}
	deep(30);
}

static void *thread(void *argument)
{
	unsigned self = (unsigned)(uintptr_t)argument;
	char text[64];
	const char *name = text;
	snprintf(text, sizeof(text), self == 2 ? "two words %u" : "worker-%u", self);
	/* The third has no name. */
	if (self != 3 && control)
		control("thread.prof.name", NULL, NULL, &name, sizeof(name));
	work(self);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	return NULL;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	unsigned threads = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4;
	if (argc > 3)
		turns = (int)strtoul(argv[3], NULL, 10);
	control = (mallctl_fn *)dlsym(RTLD_DEFAULT, "mallctl");
	if (!control && !getenv("HEAPPROFILE")) {
		fprintf(stderr, "jemalloc isn't preloaded\n");
		return 2;
	}
	pthread_t ids[64];
	pthread_barrier_init(&barrier, NULL, threads);
	for (unsigned i = 1; i < threads && i < 64; i++)
		pthread_create(&ids[i], NULL, thread, (void *)(uintptr_t)i);
	work(0);
	pthread_barrier_wait(&barrier);
	const char *out = argv[1];
	int rc = control ? control("prof.dump", NULL, NULL, &out, sizeof(out)) : 0;
	if (rc)
		fprintf(stderr, "prof.dump: %s\n", strerror(rc));
	pthread_barrier_wait(&barrier);
	for (unsigned i = 1; i < threads && i < 64; i++)
		pthread_join(ids[i], NULL);
	return rc ? 1 : 0;
}
