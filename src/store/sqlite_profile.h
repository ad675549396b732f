/* From rows with numbers to a profile. */
#ifndef STORE_SQLITE_PROFILE_H
#define STORE_SQLITE_PROFILE_H

#include "store/numbers.h"
#include "store/sqlite_translate.h"

struct assembly {
	struct connection *c;
	struct spending spending;
	struct profile *p;
	struct error *err;
	int failed;                     /* sticky, as p's own failures are */
	/* The store's numbers to p's. */
	struct numbers strings, builds, frames, stacks, labels, rows;
	struct {
		uint32_t stack, labels;
	} *row_parts;                   /* by place in rows */
	size_t row_parts_capacity;
	struct {
		enum build_kind kind;
		uint64_t least, most;       /* offsets */
	} *extents;                     /* by mapping */
	size_t extents_capacity;
};

/* metrics: the types it gets. E_NOMEM; freed by assembly_end in any case. */
int assembly_begin(struct assembly *a, struct connection *c, const struct store_budget *b, unsigned metrics, struct error *err);
uint32_t assembly_string(struct assembly *a, uint32_t string);
uint32_t assembly_mapping(struct assembly *a, uint32_t build);
uint32_t assembly_frame(struct assembly *a, uint32_t frame);
void assembly_add(struct assembly *a, uint32_t row, uint32_t source, const int64_t *values);
/* The parts that are a profile's as a whole: types, period, comments, ... */
void assembly_info(struct assembly *a, const struct slot_info *i);
/* Lays the mappings side by side. process: of the only source, or 0. failed: what went wrong outside; then there is no profile. */
int assembly_end(struct assembly *a, uint64_t process, int failed, struct profile **ret, struct error *err);

#endif
