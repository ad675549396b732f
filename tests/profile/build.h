/* Builds small profiles for the tests of the model: one call a sample, stacks written as "leaf;caller;root". */
#ifndef TESTS_PROFILE_BUILD_H
#define TESTS_PROFILE_BUILD_H

#include "profile/profile.h"

struct build {
	struct profile *p;
	uint32_t program, library, source;
};

/* A program at a PIE address and one library, all four heap types when with_alloc. */
static inline struct build build_begin(double rate, bool with_alloc, uint64_t slide)
{
	struct build b = { .p = profile_new(0) };
	profile_add_heap_types(b.p, with_alloc);
	struct mapping program = { .start = 0x560000001000 + slide, .limit = 0x560000100000 + slide,
		                   .offset = 0x1000, .executable = true };
	program.file = profile_cstring(b.p, "/usr/bin/server");
	b.program = profile_add_mapping(b.p, &program);
	struct mapping library = { .start = 0x7f0000001000 + slide, .limit = 0x7f0000100000 + slide,
		                   .offset = 0x1000, .executable = true };
	library.file = profile_cstring(b.p, "/usr/lib/libone.so");
	b.library = profile_add_mapping(b.p, &library);
	struct source s = { .rate = rate, .header_objects = -1, .header_bytes = -1,
		            .name = profile_cstring(b.p, "test"), .process = profile_process_identity(b.p) };
	b.source = profile_add_source(b.p, &s);
	return b;
}

/* The location of a function of that name; its address is made from the name. */
static inline uint32_t build_frame(struct build *b, const char *name, size_t length)
{
	uint64_t at = hash_bytes(name, length) % 0xe0000;
	const struct mapping *m = &b->p->mappings[b->program];
	uint32_t location = profile_intern_location(b->p, b->program, m->start + at);
	if (b->p->locations[location].n_lines == 0) {
		struct function f = { .name = profile_string(b->p, name, length) };
		struct line l = { .function = profile_intern_function(b->p, &f), .line = 10 };
		profile_set_lines(b->p, location, &l, 1);
	}
	return location;
}

static inline uint32_t build_stack(struct build *b, const char *stack)
{
	uint32_t frames[256];
	size_t n = 0;
	while (*stack) {
		size_t length = strcspn(stack, ";");
		frames[n++] = build_frame(b, stack, length);
		stack += length + (stack[length] == ';');
	}
	return profile_intern_stack(b->p, frames, n);
}

static inline void build_sample(struct build *b, const char *stack, const char *thread, uint64_t block_size,
                                int64_t objects, int64_t bytes, int64_t alloc_objects, int64_t alloc_bytes)
{
	uint32_t labels = profile_intern_heap_labels(b->p, thread ? profile_cstring(b->p, thread) : 0, block_size);
	int64_t four[4] = { alloc_objects, alloc_bytes, objects, bytes };
	profile_add_sample(b->p, build_stack(b, stack), labels, b->source,
	                   b->p->n_types == 4 ? four : four + 2);
}

static inline struct profile *build_end(struct build *b)
{
	return profile_finish(b->p, NULL) == 0 ? b->p : NULL;
}

#endif
