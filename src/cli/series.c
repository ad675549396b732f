/*
 * A shell lists app.1.10.heap before app.1.2.heap, and copying may forget the files' dates: the order is found from
 * what the files tell. A restarted process begins anew, so its snapshots don't continue the series.
 */
#include "cli/series.h"

#include <stdlib.h>

#include "cli/load.h"
#include "cli/progress.h"
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

static int join_series(struct profile *const *inputs, size_t n, size_t least, struct buf *notes, struct profile **ret,
                       struct error *err)
{
	size_t from = 0, kept = 0;
	longest_part(inputs, n, &from, &kept);
	if (kept < least)
		return error_set(err, E_USAGE, n < least ? "%zu profiles are too few: growth takes at least %zu of one process"
		                                         : "of the %zu profiles no %zu that follow each other are of one process "
		                                           "with one sampling rate: growth takes a series", n, least);
	if (kept < n)
		buf_printf(notes, "the process changed (a restart, or another sampling rate): of %zu profiles, %zu to %zu are looked "
		           "at\n", n, from + 1, from + kept);
	if (!is_known(inputs[from]))
		buf_adds(notes, "the profiles don't say of which process they are: taken as one\n");
	progress_phase("putting together", 0);
	return profile_series((const struct profile *const *)inputs + from, kept, ret, err);
}

int load_series(const struct load_settings *s, char *const *paths, size_t n, size_t least, struct buf *warnings,
                struct buf *notes, struct profile **ret, struct error *err)
{
	struct load_settings joined = *s;
	joined.merge = true;        /* build ids are wanted, as for everything that is put together */
	int failed = load_check_paths(s, paths, n, err);
	struct profile **inputs = calloc(n, sizeof *inputs);
	if (!inputs)
		failed = error_nomem(err, "the list of profiles");
	for (size_t i = 0; i < n && !failed; i++)
		failed = load_one(&joined, paths[i], warnings, &inputs[i], err);
	if (!failed) {
		const char *ordered_by = load_order(inputs, n);
		if (ordered_by)
			buf_printf(notes, "the profiles were put in order by %s\n", ordered_by);
		failed = join_series(inputs, n, least, notes, ret, err);
	}
	for (size_t i = 0; inputs && i < n; i++)
		profile_free(inputs[i]);
	free(inputs);
	return failed;
}
