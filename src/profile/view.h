/*
 * A view: a profile as a report looks at it. It fixes the metric and what counts as
 * one frame (function, line, ...), applies the filters, trims the allocator's own frames, and
 * pairs base and new samples of a diff. Every report and text format is a walk over a view.
 *
 *   profile + struct view_options -> view: entries (the distinct frames)
 *                                          rows (one per stack and label set: values, errors)
 *   view_stack(row)  -> entries of that row, leaf first, filtered
 *   view_totals      -> flat/cum per entry     (top)
 *   view_tree        -> calling-context tree   (tree, flame, dot, callgrind)
 */
#ifndef PROFILE_VIEW_H
#define PROFILE_VIEW_H

#include "profile/estimate.h"
#include "profile/profile.h"

enum granularity { BY_FUNCTION, BY_LINE, BY_FILE, BY_BINARY, BY_THREAD, BY_ADDRESS };

struct view_options {
	enum granularity by;
	int column;                         /* of values; -1: the profile's default */
	bool show_allocator;                /* keep the allocator's frames at the leaf */
	bool no_inlines;                    /* only the physical function of each location */
	/* POSIX extended regular expressions over function, file and binary names; NULL: none. */
	const char *focus, *ignore;         /* keep / discard samples with a matching frame */
	const char *hide, *show;            /* remove / keep only matching frames */
	const char *show_from;              /* cut frames above (towards the root of) the rootmost match */
	const char *tagfocus, *tagignore;   /* pprof's: "regex", "key=regex", "64kb:1mb" for bytes */
};

/* One distinct frame under the chosen granularity. */
struct entry {
	uint32_t name;        /* string: function, path, thread; "binary!0xoffset" when nothing is known */
	uint32_t file;        /* string: source file, 0 when unknown or not of this granularity */
	int64_t line;         /* BY_LINE: the line, else 0 */
	uint32_t mapping;     /* of its first location, or PROFILE_NONE */
	uint64_t address;     /* BY_ADDRESS, and of unnamed frames: offset in the file; else 0 */
	bool inlined;         /* every appearance was inlined into its caller */
};

/*
 * An amount on a row, an entry or a tree node. For one profile now = gained.value and base = lost.value = 0.
 * In a diff the change is now - base; gained and lost carry its error: the two whole amounts, or when
 * accumulated counts tell more, what was allocated and freed in between. gained.value - lost.value is the change.
 */
struct amount {
	double now;
	struct estimate gained;
	double base;
	struct estimate lost;
};

/* Of every frame of every row: the second half, which only diffs have, is left alone when there is nothing in it. */
static inline void amount_add(struct amount *sum, const struct amount *more)
{
	sum->now += more->now;
	estimate_add(&sum->gained, more->gained);
	if (more->base != 0 || more->lost.value != 0 || more->lost.variance != 0 || more->lost.weight != 0) {
		sum->base += more->base;
		estimate_add(&sum->lost, more->lost);
	}
}
static inline double amount_change(const struct amount *a) { return a->now - a->base; }
/* 95 % interval of now (single profile) or of now - base (diff). */
struct interval amount_interval(const struct amount *a);

struct view_row {
	uint32_t stack, labels;
	struct amount amount;
};

struct view {
	struct profile *profile;            /* borrowed; entry names are added to its strings */
	enum granularity by;
	int column;
	const char *unit;                   /* "bytes", "count", ... (borrowed from the profile's strings at creation) */
	const char *type;                   /* "inuse_space", ... */
	bool diff;                          /* some source is a base */
	bool one_process;                   /* of a diff: both sides are moments of one process */
	bool has_error;                     /* rate known and the column is a heap metric: amounts carry variance */
	struct entry *entries;       size_t n_entries, entries_capacity;
	struct view_row *rows;       size_t n_rows, rows_capacity;    /* after focus/ignore/tag filters */
	struct amount total;                /* of rows */
	struct amount total_all;            /* before filters: what percentages refer to */
	struct view_private *private;
};

/* E_USAGE for a bad regular expression (names the option) or a column that isn't there. */
int view_new(struct profile *p, const struct view_options *o, struct view **ret, struct error *err);
void view_free(struct view *v);

/*
 * The row's entries, leaf first, after hide/show/show-from and allocator trimming. Valid until the next
 * call on this view. Consecutive equal entries are kept. May be empty: the cost then has no frame. Out of memory: 0, and
 * *ret_entries is NULL.
 * BY_THREAD: one entry. The entry's location for each frame (may be NULL): *ret_locations.
 */
size_t view_stack(struct view *v, const struct view_row *row, const uint32_t **ret_entries);
const uint32_t *view_stack_locations(const struct view *v);   /* of the last view_stack call, same order */

/* What a label set's thread is called where the view tells threads apart (string; 0: nothing): between processes without its number. */
uint32_t view_thread(const struct view *v, uint32_t labels);

/*
 * For those who walk over all samples instead of rows. A slot is one line of one location, so the same frame may have
 * several: what it shows is its entry, and of itself the mapping and whether it was inlined into the next.
 */
struct view_slot {
	uint32_t entry, mapping;            /* mapping: PROFILE_NONE when in none */
	bool inlined;
	bool bare;                          /* nothing but its address is known: the location has no line */
};
/* All slots by number; the caller frees them. */
int view_slots(const struct view *v, struct view_slot **ret_slots, size_t *ret_n, struct error *err);
/*
 * The slots of a stack of the profile, leaf first, after allocator trimming and no filter. Valid until the next call on this
 * view. SIZE_MAX: out of memory.
 */
size_t view_slots_of(struct view *v, uint32_t stack, const uint32_t **ret_slots);
/* E_USAGE when focus, ignore, hide, show or show_from is no expression, as view_new says it. */
int view_check_expressions(const struct view_options *o, struct error *err);
/* Per label set: do tagfocus and tagignore let its samples stay? ret_keep has n_label_sets entries. */
int view_filter_labels(const struct profile *p, const struct view_options *o, bool *ret_keep, struct error *err);

/* Per entry: what it holds itself and with its callees (each row counts once, recursion or not). */
struct entry_total {
	struct amount flat, cum;
	double p_value;                     /* of the change of cum or flat, whichever sort was asked; diff only */
	bool significant;                   /* after Benjamini-Hochberg; diff only */
};

enum view_sort { SORT_FLAT, SORT_CUM };

struct view_totals {
	struct entry_total *entries;        /* n_entries */
	uint32_t *order;                    /* entry ids: biggest first (a diff: biggest |change| first), ties by name */
	size_t n;
};

int view_totals(struct view *v, enum view_sort sort, struct view_totals *ret, struct error *err);
void view_totals_finish(struct view_totals *t);

/*
 * Calling-context tree; node 0 is the root and stands for everything. Parents come before children; children of a
 * node are linked, biggest first (by max(base, now), ties by name). Inverted: children are callers.
 */
struct tree_node {
	uint32_t entry;                     /* PROFILE_NONE for the root */
	uint32_t parent, first_child, next_sibling;   /* 0: none */
	uint32_t depth;                     /* root 0 */
	struct amount self, total;
};

struct tree {
	struct tree_node *nodes;
	size_t n, capacity;
};

int view_tree(struct view *v, bool inverted, struct tree *ret, struct error *err);
void tree_finish(struct tree *t);

#endif
