/*
 * A shell lists app.1.10.heap before app.1.2.heap, and copying may forget the files' dates: the order is found from
 * what the files tell. A restarted process begins anew, so its snapshots don't continue the series.
 */
#include "cli/series.h"

#include <stdlib.h>

#include "cli/load.h"
#include "cli/progress.h"
#include "cli/recorded.h"
#include "profile/operations.h"

/* Does b go on where a was? Samples of another rate are no continuation: a reset threw the old ones away. */
static bool continues(const struct profile *a, const struct profile *b)
{
	const struct source *x = &a->sources[0], *y = &b->sources[0];
	if (a->n_sources == 0 || b->n_sources == 0 || x->rate != y->rate)
		return false;
	if (x->pid && y->pid && x->pid != y->pid)
		return false;
	return !x->process || !y->process || profile_same_process(a, b);
}

static bool is_known(const struct profile *p)
{
	return p->n_sources > 0 && (p->sources[0].process || p->sources[0].pid);
}

/* The longest part without a break, the latest of equals. */
static void longest_part(struct profile *const *inputs, size_t n, size_t *ret_from, size_t *ret_n)
{
	size_t from = 0;
	*ret_n = 0;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && !continues(inputs[i - 1], inputs[i]))
			from = i;
		if (i + 1 - from >= *ret_n) {
			*ret_from = from;
			*ret_n = i + 1 - from;
		}
	}
}

/* Of n profiles those that make a series. */
static int check_length(size_t n, size_t from, size_t kept, size_t least, struct buf *notes, struct error *err)
{
	if (kept < least)
		return error_set(err, E_USAGE, n < least ? "%zu profiles are too few: growth takes at least %zu of one process"
		                                         : "of the %zu profiles no %zu that follow each other are of one process "
		                                           "with one sampling rate: growth takes a series", n, least);
	if (kept < n)
		buf_printf(notes, "the process changed (a restart, or another sampling rate): of %zu profiles, %zu to %zu are looked "
		           "at\n", n, from + 1, from + kept);
	return 0;
}

static int join_series(struct profile *const *inputs, size_t n, size_t least, struct buf *notes, struct profile **ret,
                       struct error *err)
{
	size_t from = 0, kept = 0;
	longest_part(inputs, n, &from, &kept);
	int failed = check_length(n, from, kept, least, notes, err);
	if (failed)
		return failed;
	if (!is_known(inputs[from]))
		buf_adds(notes, "the profiles don't say of which process they are: taken as one\n");
	progress_phase("putting together", 0);
	return profile_series((const struct profile *const *)inputs + from, kept, ret, err);
}

/* A place in a store is many moments. */
#define MOMENTS_MAX 240

struct inputs {
	struct profile **items;
	size_t n, capacity;
};

static int add_input(struct inputs *l, struct profile *p, struct error *err)
{
	struct profile **slot = ARRAY_PUSH(l->items, l->n, l->capacity, SIZE_MAX / sizeof *l->items);
	if (slot) {
		*slot = p;
		return 0;
	}
	profile_free(p);
	return error_nomem(err, "the list of profiles");
}

static int read_inputs(const struct load_settings *s, char *const *paths, size_t n, struct buf *warnings, struct inputs *l, struct error *err)
{
	int failed = load_check_paths(s, paths, n, err);
	for (size_t i = 0; i < n && !failed; i++) {
		struct profile *p = NULL;
		failed = recorded_is(paths[i]) ? error_set(err, E_USAGE, "%.200s: a place in a store is a series already: give it alone", paths[i])
		                               : load_one(s, paths[i], warnings, &p, err);
		if (!failed)
			failed = add_input(l, p, err);
	}
	return failed;
}

static int load_recorded(const char *path, size_t least, struct buf *notes, struct profile **ret, struct error *err)
{
	struct recorded_series r;
	progress_phase("reading", 0);
	int failed = recorded_read_series(path, MOMENTS_MAX, &r, err);
	if (failed)
		return failed;
	failed = check_length(r.all, r.from, r.n, least, notes, err);
	if (failed)
		profile_free(r.profile);
	else
		*ret = r.profile;
	return failed;
}

int load_series(const struct load_settings *s, char *const *paths, size_t n, size_t least, struct buf *warnings,
                struct buf *notes, struct profile **ret, struct error *err)
{
	struct load_settings joined = *s;
	struct inputs l = { 0 };
	if (n == 1 && recorded_is(paths[0]))
		return load_recorded(paths[0], least, notes, ret, err);
	joined.merge = true;        /* build ids are wanted, as for everything that is put together */
	int failed = read_inputs(&joined, paths, n, warnings, &l, err);
	if (!failed) {
		const char *ordered_by = load_order(l.items, l.n);
		if (ordered_by)
			buf_printf(notes, "the profiles were put in order by %s\n", ordered_by);
		failed = join_series(l.items, l.n, least, notes, ret, err);
	}
	for (size_t i = 0; i < l.n; i++)
		profile_free(l.items[i]);
	free(l.items);
	return failed;
}
