/*
 * What grew and what shrank between two profiles: significant changes first, noise
 * last and marked, and when everything is noise, what it would take to know.
 */
#include "report/rank.h"
#include "report/table.h"
#include "report/words.h"

#include <stdlib.h>

struct diff {
	struct view *v;
	enum view_sort sort;
	struct view_totals totals;
	struct rank rank;
	struct notes notes;
	size_t shown;
};

static int diff_init(struct diff *d, struct view *v, const struct top_options *o, struct error *err)
{
	*d = (struct diff){ .v = v, .sort = o->sort };
	notes_init(&d->notes);
	if (!v->diff)
		return error_set(err, E_USAGE, "a diff needs a base profile to compare with");
	int code = view_totals(v, o->sort, &d->totals, err);
	if (!code)
		code = rank_entries(v, &d->totals, o->sort, true, &d->rank, err);
	if (code)
		return code;
	d->shown = o->n && o->n < d->rank.n ? o->n : d->rank.n;
	header_notes(v, &d->notes);
	rank_note(v, &d->rank, &d->notes);
	return E_OK;
}

static void diff_finish(struct diff *d)
{
	view_totals_finish(&d->totals);
	rank_finish(&d->rank);
	notes_finish(&d->notes);
}

/* --- text ----------------------------------------------------------------- */

static void add_row(const struct diff *d, struct table *t, uint32_t entry)
{
	const struct view *v = d->v;
	const struct entry_total *e = &d->totals.entries[entry];
	const struct amount *a = rank_amount(e, d->sort);
	const char *verdict = rank_verdict(v, e->significant, a);
	table_row(t, *verdict ? TONE_DIM : TONE_PLAIN);
	words_amount(v, a->base, table_cell(t));
	words_amount(v, a->now, table_cell(t));
	words_change(v, amount_change(a), table_cell(t));
	table_cell_tone(t, amount_change(a) > 0 ? TONE_GROWN : TONE_SHRUNK);
	words_error(v, a, table_cell(t));
	words_change_percent(a, table_cell(t));
	buf_adds(table_cell(t), verdict);
	words_entry(v, entry, table_cell(t));
}

static void add_footer(const struct diff *d, struct buf *out)
{
	const struct rank *r = &d->rank;
	size_t left = r->n - d->shown, noise = 0;
	for (size_t i = d->shown; i < r->n; i++)
		noise += !d->totals.entries[r->order[i]].significant;
	if (left && d->v->has_error)
		buf_printf(out, "(%zu more %s changed, %zu of them noise)\n", left, left == 1 ? "row" : "rows", noise);
	else if (left)
		buf_printf(out, "(%zu more %s changed)\n", left, left == 1 ? "row" : "rows");
	if (r->unchanged)
		buf_printf(out, "(%zu %s did not change)\n", r->unchanged, r->unchanged == 1 ? "row" : "rows");
	if (r->n == 0)
		buf_adds(out, "Nothing changed.\n");
}

int report_diff(struct view *v, const struct top_options *o, const struct report_style *s, struct buf *out,
                struct error *err)
{
	const struct table_column columns[] = {
		{ "base", true, 4 },    { "new", true, 3 }, { "change", true, 0 },
		{ "±", true, 0 },    { "change%", true, 5 }, { "", false, 0 },
		{ words_granularity(v->by), false, 0 },
	};
	struct diff d;
	struct table table;
	table_init(&table, columns, sizeof columns / sizeof columns[0]);
	int code = diff_init(&d, v, o, err);
	if (code)
		goto done;
	for (size_t i = 0; i < d.shown; i++)
		add_row(&d, &table, d.rank.order[i]);
	header_text(v, &d.notes, s, out);
	if (d.rank.n)
		code = table_print(&table, s, out, err);
	add_footer(&d, out);
	rank_advice_text(v, &d.totals, o->sort, &d.rank, s, out);
	if (out->failed)
		code = error_nomem(err, "the report");
done:
	table_finish(&table);
	diff_finish(&d);
	return code;
}

/* --- JSON ----------------------------------------------------------------- */

static const char *status_of(const struct amount *a)
{
	double change = amount_change(a);
	if (a->base == 0 || a->now == 0)
		return a->base == 0 ? "new" : "gone";
	return change > 0 ? "grown" : change < 0 ? "shrunk" : "unchanged";
}

static void json_row(struct json *j, const struct diff *d, uint32_t entry)
{
	const struct view *v = d->v;
	const struct entry_total *e = &d->totals.entries[entry];
	json_open(j, NULL, '{');
	json_entry(j, v, entry);
	json_cstring(j, "status", status_of(rank_amount(e, d->sort)));
	rank_json_verdict(j, v, e);
	json_amount(j, "flat", v, &e->flat);
	json_amount(j, "cum", v, &e->cum);
	json_close(j, '}');
}

static void json_body(struct json *j, const struct diff *d)
{
	struct buf advice;
	buf_init(&advice, 1 << 20);
	rank_advice(d->v, &d->totals, d->sort, &d->rank, &advice);
	header_json(d->v, "diff", &d->notes, j);
	json_cstring(j, "sort", d->sort == SORT_FLAT ? "flat" : "cum");
	json_integer(j, "rows_total", (int64_t)d->rank.n);
	json_integer(j, "rows_significant", (int64_t)d->rank.significant);
	json_integer(j, "rows_noise", (int64_t)d->rank.noise);
	json_integer(j, "rows_unchanged", (int64_t)d->rank.unchanged);
	if (advice.len)
		json_text(j, "advice", advice.data, advice.len);
	else
		json_null(j, "advice");
	json_open(j, "rows", '[');
	for (size_t i = 0; i < d->shown; i++)
		json_row(j, d, d->rank.order[i]);
	json_close(j, ']');
	json_close(j, '}');
	words_finish_part(&advice, j->out);
}

int report_diff_json(struct view *v, const struct top_options *o, struct buf *out, struct error *err)
{
	struct diff d;
	struct json j = { .out = out };
	int code = diff_init(&d, v, o, err);
	if (!code) {
		json_body(&j, &d);
		buf_addc(out, '\n');
		if (out->failed)
			code = error_nomem(err, "the report");
	}
	diff_finish(&d);
	return code;
}
