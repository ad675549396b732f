/*
 * Small programs with unusual heaps or maps, for comparing readers:
 *
 *   odd tiny OUT              one block
 *   odd deep OUT              a stack deeper than jemalloc records
 *   odd late LIBRARY A OUT    dumps to A, loads the library, allocates through it, dumps to OUT
 *   odd gone LIBRARY OUT      loads the library, deletes its file, allocates through it, dumps
 *   odd jit OUT               allocates from two copies of a function that lie in no file
 *
 * late and gone allocate DLOPENED_BYTES in all through the library's path 27; jit JIT_BYTES by each of the two, the
 * second also one block more.
 */
#include "lane.h"

#include <dlfcn.h>
#include <jemalloc/jemalloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK_BYTES 16384
#define DLOPENED_BYTES (50 * BLOCK_BYTES)
#define JIT_BYTES (70 * BLOCK_BYTES)

static void die(const char *what)
{
	fprintf(stderr, "odd: %s\n", what);
	exit(1);
}

static void dump(const char *path)
{
	if (mallctl("prof.dump", NULL, NULL, &path, sizeof path))
		die("prof.dump fails");
}

static __attribute__((noinline)) void *deep(unsigned turns)
{
	void *p = turns ? deep(turns - 1) : malloc(BLOCK_BYTES);
	__asm__ volatile("" : "+r"(p));
	return p;
}

static lane_function *load(const char *path)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	lane_function *allocate = NULL;
	if (!library || !(*(void **)&allocate = dlsym(library, "loaded_allocate")))
		die(dlerror());
	return allocate;
}

static void allocate_all(lane_function *allocate, size_t bytes)
{
	for (; bytes; bytes -= BLOCK_BYTES)
		allocate(27, BLOCK_BYTES);
}

/* void *f(unsigned, size_t size) { return the pointed-to function(size); }, with a frame. */
static lane_function *code_in_no_file(void)
{
	static const uint8_t code[] = {
		0x55,                           /* push %rbp */
		0x48, 0x89, 0xe5,               /* mov %rsp, %rbp */
		0x48, 0x89, 0xf7,               /* mov %rsi, %rdi */
		0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0,     /* movabs $malloc, %rax */
		0xff, 0xd0,                     /* call *%rax */
		0x5d,                           /* pop %rbp */
		0xc3,                           /* ret */
	};
	void *(*target)(size_t) = malloc;
	uint8_t *at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		die("mmap fails");
	memcpy(at, code, sizeof code);
	memcpy(at + 9, &target, sizeof target);
	if (mprotect(at, 4096, PROT_READ | PROT_EXEC))
		die("mprotect fails");
	lane_function *f;
	memcpy(&f, &at, sizeof f);
	return f;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";

	if (strcmp(mode, "tiny") == 0) {
		*(void *volatile *)&(void *){ NULL } = malloc(BLOCK_BYTES);
	} else if (strcmp(mode, "deep") == 0) {
		deep(300);
	} else if (strcmp(mode, "late") == 0 && argc == 5) {
		dump(argv[3]);
		allocate_all(load(argv[2]), DLOPENED_BYTES);
	} else if (strcmp(mode, "gone") == 0 && argc == 4) {
		lane_function *allocate = load(argv[2]);
		if (unlink(argv[2]))
			die("unlink fails");
		allocate_all(allocate, DLOPENED_BYTES);
	} else if (strcmp(mode, "jit") == 0) {
		/* Not next to each other, so that the kernel doesn't make them one mapping. */
		lane_function *first = code_in_no_file();
		mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		allocate_all(first, JIT_BYTES);
		allocate_all(code_in_no_file(), JIT_BYTES + BLOCK_BYTES);
	} else {
		die("what? See the top of odd.c");
	}
	dump(argv[argc - 1]);
	return 0;
}
