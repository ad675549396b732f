/*
 * A shell lists app.1.10.heap before app.1.2.heap, and copying may forget the files' dates: the order is found from
 * what the files tell. A restarted process begins anew, so its snapshots don't continue the series.
 */
#include "cli/series.h"

#include <stdlib.h>

#include "cli/load.h"
#include "cli/progress.h"
#include "profile/operations.h"

struct input {
	struct profile *profile;
	const char *path;
	int64_t time_nanos;
	struct dump_name name;
	bool named;                 /* name is known */
};

static bool before(const struct input *a, const struct input *b, bool by_number)
{
	return by_number ? a->name.seq < b->name.seq : a->time_nanos < b->time_nanos;
}

/* Oldest first. Equal ones stay as they were given. */
static void sort_inputs(struct input *inputs, size_t n, struct buf *notes)
{
	bool numbered = true, timed = true, moved = false;
	for (size_t i = 0; i < n; i++) {
		numbered = numbered && inputs[i].named && inputs[i].name.pid == inputs[0].name.pid;
		timed = timed && inputs[i].time_nanos > 0;
	}
	if (!numbered && !timed)
		return;
	for (size_t i = 1; i < n; i++) {
		struct input one = inputs[i];
		size_t at = i;
		for (; at > 0 && before(&one, &inputs[at - 1], numbered); at--)
			inputs[at] = inputs[at - 1];
		inputs[at] = one;
		moved = moved || at != i;
	}
	if (moved)
		buf_printf(notes, "the profiles were put in order by %s\n", numbered ? "their numbers" : "time");
}

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
static void longest_part(const struct input *inputs, size_t n, size_t *ret_from, size_t *ret_n)
{
	size_t from = 0;
	*ret_n = 0;
	for (size_t i = 0; i < n; i++) {
		if (i > 0 && !continues(inputs[i - 1].profile, inputs[i].profile))
			from = i;
		if (i + 1 - from >= *ret_n) {
			*ret_from = from;
			*ret_n = i + 1 - from;
		}
	}
}

static int join_series(const struct input *inputs, size_t n, size_t least, struct buf *notes, struct profile **ret,
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
	if (!is_known(inputs[from].profile))
		buf_adds(notes, "the profiles don't say of which process they are: taken as one\n");
	const struct profile **list = calloc(kept, sizeof *list);
	if (!list)
		return error_nomem(err, "the list of profiles");
	for (size_t i = 0; i < kept; i++)
		list[i] = inputs[from + i].profile;
	progress_phase("putting together", 0);
	int failed = profile_series(list, kept, ret, err);
	free(list);
	return failed;
}

int load_series(const struct load_settings *s, char *const *paths, size_t n, size_t least, struct buf *warnings,
                struct buf *notes, struct profile **ret, struct error *err)
{
	struct load_settings joined = *s;
	joined.merge = true;        /* build ids are wanted, as for everything that is put together */
	int failed = load_check_paths(s, paths, n, err);
	struct input *inputs = calloc(n, sizeof *inputs);
	if (!inputs)
		failed = error_nomem(err, "the list of profiles");
	for (size_t i = 0; i < n && !failed; i++) {
		struct input *one = &inputs[i];
		failed = load_one(&joined, paths[i], warnings, &one->profile, err);
		if (failed)
			break;
		one->path = paths[i];
		one->named = dump_name_parse(paths[i], &one->name);
		if (one->profile->n_sources > 0)
			one->time_nanos = one->profile->sources[0].time_nanos;
	}
	if (!failed) {
		sort_inputs(inputs, n, notes);
		failed = join_series(inputs, n, least, notes, ret, err);
	}
	for (size_t i = 0; inputs && i < n; i++)
		profile_free(inputs[i].profile);
	free(inputs);
	return failed;
}
