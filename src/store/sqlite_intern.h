/*
 * The numbers that the store gives to strings, builds, frames, label sets, stacks and rows, for one profile on its way into it. Each function
 * returns the number, or 0 when g->failed says why not. All under write_lock.
 */
#ifndef STORE_SQLITE_INTERN_H
#define STORE_SQLITE_INTERN_H

#include "store/sqlite_translate.h"

#define KEYS 256

struct key {
	uint64_t high, low;
};

/* Of a mapping: the key of its build, and what makes a file offset of an address. */
struct place {
	uint64_t key, shift;
};

struct translator {
	struct sweep *sweep;
	uint64_t seed[2], keys[KEYS];
	struct idmap strings, builds, frames, labels, rows;
	/* Of the profile at hand, by its numbers; 0: not looked for yet. */
	uint32_t *string_ids, *build_ids, *frame_ids, *label_ids;
	size_t strings_capacity, builds_capacity, frames_capacity, labels_capacity;
	uint64_t *location_keys;
	struct place *places;
	struct key *sample_keys;
	struct chunk_single *order, *order_scratch;
	size_t locations_capacity, places_capacity, samples_capacity, order_capacity, scratch_capacity;
	struct buf blob, info;
	struct chunk_writer writer;
};

/* One profile on its way. */
struct passage {
	struct translator *t;
	struct connection *c;
	const struct profile *p;
	uint32_t day;
	struct error *err;
	int failed;
};

/* Keeps the first failure. Returns 0. */
uint32_t intern_failed(struct passage *g, int failed);
uint32_t intern_text(struct passage *g, const char *text, size_t n);
/* These take the profile's own numbers. */
uint32_t intern_string(struct passage *g, uint32_t string);
uint32_t intern_build(struct passage *g, uint32_t mapping);
uint32_t intern_frame(struct passage *g, uint32_t location);
/* The number plus one; the set without labels is 0. */
uint32_t intern_labels(struct passage *g, uint32_t set_number);
uint32_t intern_stack(struct passage *g, const struct stack *s);
/* labels: the store's number; nth: of those that are alike. */
uint32_t intern_row(struct passage *g, uint32_t stack, uint32_t labels, uint32_t nth);

#endif
