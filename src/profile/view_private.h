/* What the parts of a view share: view.c (entries, rows), view_filter.c (expressions), totals.c, tree.c, series.c. */
#ifndef PROFILE_VIEW_PRIVATE_H
#define PROFILE_VIEW_PRIVATE_H

#include "profile/operations.h"
#include "profile/view.h"

/* Flags of a slot; FRAME_ALLOCATOR and FRAME_UNNAMED are the low two bits. */
enum {
	SLOT_INLINED = 4,
	SLOT_FOCUS = 8,
	SLOT_IGNORE = 16,
	SLOT_REMOVED = 32,          /* hidden, or not shown */
	SLOT_SHOW_FROM = 64,
};

/* Every line of every location is one slot: a frame of the stacks that go through it. */
struct view_private {
	uint32_t *slot_first;       /* n_locations + 1 */
	uint32_t *slot_entry;
	uint8_t *slot_flags;
	size_t n_slots;
	struct index entry_index;
	bool keep_allocator;
	bool has_focus, has_ignore, has_removed, has_show_from;
	uint32_t *thread_key;       /* per label set: string that tells threads apart, 0 for none */
	uint32_t *thread_entry;     /* BY_THREAD: per label set */
	/* of the last view_stack */
	uint32_t *entries, *locations, *slots;
	size_t stack_capacity;
};

/* Frames of a stack as slots, leaf first, the allocator trimmed; into v->private->slots. SIZE_MAX: no memory. */
size_t view_stack_slots(struct view *v, uint32_t stack);

/* Sets the flags of all slots from the expressions; E_USAGE for a bad one. */
int view_filter_slots(struct view *v, const struct view_options *o, struct error *err);
/* Does a stack pass focus, ignore and show_from? */
bool view_filter_stack(struct view *v, uint32_t stack);

/* Which columns an amount is made of: the one shown, and its partner for the error. */
struct columns {
	int objects, bytes;         /* -1: not there */
	bool want_objects, heap, alloc;
	int other_objects, other_bytes;   /* the accumulated pair, for a diff of in-use */
};

struct columns view_columns(const struct profile *p, int column);
/* 0 for a column that isn't there. */
static inline double view_value(const struct profile *p, size_t sample, int column)
{
	return column < 0 ? 0 : (double)p->values[sample * p->n_types + (size_t)column];
}
/* What so many objects and bytes say about the amount shown. */
struct estimate view_estimate(const struct columns *c, double objects, double bytes, uint64_t block_size, double rate);

#endif
