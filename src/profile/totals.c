/*
 * Flat and cumulative amounts per entry. Flat goes to the leaf of each row; cum once to every entry
 * of the row, however often recursion repeats it.
 */
#include "profile/view_private.h"

#include <math.h>
#include <stdlib.h>

static bool add_rows(struct view *v, struct entry_total *totals)
{
	uint32_t *seen = calloc(v->n_entries + 1, sizeof *seen);   /* row + 1 that last counted the entry */
	if (!seen)
		return false;
	for (size_t r = 0; r < v->n_rows; r++) {
		const struct view_row *row = &v->rows[r];
		const uint32_t *entries;
		size_t n = view_stack(v, row, &entries);
		if (!entries) {
			free(seen);
			return false;
		}
		if (n > 0)
			amount_add(&totals[entries[0]].flat, &row->amount);
		for (size_t i = 0; i < n; i++) {
			if (seen[entries[i]] == r + 1)
				continue;
			seen[entries[i]] = (uint32_t)(r + 1);
			amount_add(&totals[entries[i]].cum, &row->amount);
		}
	}
	free(seen);
	return true;
}

static const struct amount *sorted_amount(const struct entry_total *t, enum view_sort sort)
{
	return sort == SORT_FLAT ? &t->flat : &t->cum;
}

static bool find_significant(struct view *v, enum view_sort sort, struct entry_total *totals)
{
	double *p_values = malloc((v->n_entries + 1) * sizeof *p_values);
	bool *significant = malloc((v->n_entries + 1) * sizeof *significant);
	uint32_t *ids = malloc((v->n_entries + 1) * sizeof *ids);
	bool ok = p_values && significant && ids;
	size_t n = 0;
	/* Only entries that hold something are tested: empty ones would dilute the correction. */
	for (size_t i = 0; ok && i < v->n_entries; i++) {
		const struct amount *a = sorted_amount(&totals[i], sort);
		totals[i].p_value = 1;
		if (a->base == 0 && a->now == 0)
			continue;
		totals[i].p_value = v->has_error ? estimate_p_value(a->gained, a->lost)
		                                 : (amount_change(a) == 0);
		p_values[n] = totals[i].p_value;
		ids[n++] = (uint32_t)i;
	}
	ok = ok && estimate_significant(p_values, n, 0.05, significant);
	for (size_t i = 0; ok && i < n; i++)
		totals[ids[i]].significant = significant[i];
	free(p_values);
	free(significant);
	free(ids);
	return ok;
}

struct by_size {
	const struct view *v;
	const struct entry_total *totals;
	enum view_sort sort;
};

static int compare_entries(const void *a, const void *b, void *context)
{
	const struct by_size *c = context;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	for (int k = 0; k < 2; k++) {
		enum view_sort sort = k == 0 ? c->sort : c->sort == SORT_FLAT ? SORT_CUM : SORT_FLAT;
		const struct amount *x = sorted_amount(&c->totals[i], sort);
		const struct amount *y = sorted_amount(&c->totals[j], sort);
		double p = fabs(c->v->diff ? amount_change(x) : x->now);
		double q = fabs(c->v->diff ? amount_change(y) : y->now);
		if (p != q)
			return p > q ? -1 : 1;
	}
	const struct profile *prof = c->v->profile;
	int by_name = strcmp(profile_text(prof, c->v->entries[i].name), profile_text(prof, c->v->entries[j].name));
	return by_name ? by_name : (i > j) - (i < j);
}

int view_totals(struct view *v, enum view_sort sort, struct view_totals *ret, struct error *err)
{
	struct view_totals t = { .n = v->n_entries };
	t.entries = calloc(t.n + 1, sizeof *t.entries);
	t.order = malloc((t.n + 1) * sizeof *t.order);
	if (!t.entries || !t.order || !add_rows(v, t.entries) ||
	    (v->diff && !find_significant(v, sort, t.entries))) {
		view_totals_finish(&t);
		return error_nomem(err, "the totals");
	}
	for (size_t i = 0; i < t.n; i++)
		t.order[i] = (uint32_t)i;
	struct by_size context = { v, t.entries, sort };
	qsort_r(t.order, t.n, sizeof *t.order, compare_entries, &context);
	*ret = t;
	return E_OK;
}

void view_totals_finish(struct view_totals *t)
{
	if (!t)
		return;
	free(t->entries);
	free(t->order);
	*t = (struct view_totals){ 0 };
}
