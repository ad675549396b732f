/*
 * The table of entries by what they hold themselves (flat) and with what they call
 * (cum). Of a diff the amounts are changes.
 */
#include "profile/operations.h"
#include "report/rank.h"
#include "report/table.h"
#include "report/words.h"

#include <stdlib.h>
#include <string.h>

static const struct table_column single_columns[] = {
	{ "flat", true, 0 },  { "±", true, 0 },    { "flat%", true, 3 }, { "sum%", true, 5 }, { "cum", true, 0 },
	{ "±", true, 4 },     { "cum%", true, 2 }, { "", false, 0 },     { "", false, 0 },
};
static const struct table_column diff_columns[] = {
	{ "flat", true, 0 },  { "±", true, 0 }, { "flat%", true, 3 }, { "", true, 5 },     { "cum", true, 0 },
	{ "±", true, 4 },  { "cum%", true, 2 }, { "", false, 0 },     { "", false, 0 },
};
#define N_COLUMNS (sizeof single_columns / sizeof single_columns[0])

/* A report that stands on totals: computed once, said in text or JSON. */
struct top {
	struct view *v;
	enum view_sort sort;
	struct view_totals totals;
	struct rank rank;
	struct notes notes;
	size_t shown;
};

/* --- notes that need the totals ------------------------------------------- */

static void note_unnamed(const struct top *t, double unnamed)
{
	const struct view *v = t->v;
	if (!(unnamed > 0.1 * v->total.now) || (v->by != BY_FUNCTION && v->by != BY_LINE))
		return;
	struct buf *b = notes_begin((struct notes *)&t->notes);
	words_percent(unnamed, v->total.now, b);
	buf_adds(b, " lie in frames without a name (binary!0x..., binary!fn_...); they get one where the same binaries are, and "
	            "their debug symbols");
	notes_end((struct notes *)&t->notes);
}

static void note_frameless(const struct top *t, double flat)
{
	const struct view *v = t->v;
	double rest = v->total.now - flat;
	if (!(rest > 0.001 * v->total.now))
		return;
	struct buf *b = notes_begin((struct notes *)&t->notes);
	words_amount(v, rest, b);
	buf_adds(b, " (");
	words_percent(rest, v->total.now, b);
	buf_adds(b, ") have no frame and stand in no row: filters hid them, or the stack could not be unwound");
	notes_end((struct notes *)&t->notes);
}

/* As views and symbols name what nobody could name: "binary!0x1234", "binary!fn_1230", or the bare address. */
static bool is_unnamed(const struct view *v, const struct entry *e)
{
	const char *name = profile_text(v->profile, e->name);
	return function_is_unnamed(name) || !strncmp(name, "0x", 2);
}

static void note_totals(const struct top *t)
{
	double flat = 0, unnamed = 0;
	for (size_t i = 0; i < t->totals.n; i++) {
		double now = t->totals.entries[i].flat.now;
		flat += now;
		if (now != 0 && is_unnamed(t->v, &t->v->entries[i]))
			unnamed += now;
	}
	note_unnamed(t, unnamed);
	note_frameless(t, flat);
}

/* --- life ----------------------------------------------------------------- */

static int top_init(struct top *t, struct view *v, const struct top_options *o, struct error *err)
{
	*t = (struct top){ .v = v, .sort = o->sort };
	notes_init(&t->notes);
	int code = view_totals(v, o->sort, &t->totals, err);
	if (!code)
		code = rank_entries(v, &t->totals, o->sort, false, &t->rank, err);
	if (code)
		return code;
	t->shown = o->n && o->n < t->rank.n ? o->n : t->rank.n;
	header_notes(v, &t->notes);
	rank_note(v, &t->rank, &t->notes);
	note_totals(t);
	return E_OK;
}

static void top_finish(struct top *t)
{
	view_totals_finish(&t->totals);
	rank_finish(&t->rank);
	notes_finish(&t->notes);
}

/* --- text ----------------------------------------------------------------- */

static void value_cells(struct table *t, const struct view *v, const struct amount *a)
{
	words_value(v, a, table_cell(t));
	if (v->diff && amount_change(a) != 0)
		table_cell_tone(t, amount_change(a) > 0 ? TONE_GROWN : TONE_SHRUNK);
	words_error(v, a, table_cell(t));
	if (v->diff)
		words_change_percent(a, table_cell(t));
	else
		words_percent(a->now, v->total_all.now, table_cell(t));
}

static void add_row(const struct top *t, struct table *table, uint32_t entry, double *sum)
{
	const struct view *v = t->v;
	const struct entry_total *e = &t->totals.entries[entry];
	const char *verdict = rank_verdict(v, e->significant, rank_amount(e, t->sort));
	table_row(table, *verdict ? TONE_DIM : TONE_PLAIN);
	value_cells(table, v, &e->flat);
	*sum += e->flat.now;
	struct buf *cell = table_cell(table);
	if (!v->diff)
		words_percent(*sum, v->total_all.now, cell);
	value_cells(table, v, &e->cum);
	buf_adds(table_cell(table), verdict);
	words_entry(v, entry, table_cell(table));
}

/* What was left out is said, with how much it is. */
static void add_rest(const struct top *t, struct buf *out)
{
	size_t left = t->rank.n - t->shown;
	if (left == 0)
		return;
	struct amount rest = { 0 };
	for (size_t i = t->shown; i < t->rank.n; i++)
		amount_add(&rest, &t->totals.entries[t->rank.order[i]].flat);
	buf_printf(out, "(%zu more %s, ", left, left == 1 ? "row" : "rows");
	words_value(t->v, &rest, out);
	buf_adds(out, " flat)\n");
}

int report_top(struct view *v, const struct top_options *o, const struct report_style *s, struct buf *out,
               struct error *err)
{
	struct top t;
	struct table table = { 0 };
	int code = top_init(&t, v, o, err);
	if (code)
		goto done;
	struct table_column columns[N_COLUMNS];
	memcpy(columns, v->diff ? diff_columns : single_columns, sizeof columns);
	columns[N_COLUMNS - 1].title = words_granularity(v->by);
	table_init(&table, columns, N_COLUMNS);
	double sum = 0;
	for (size_t i = 0; i < t.shown; i++)
		add_row(&t, &table, t.rank.order[i], &sum);
	header_text(v, &t.notes, s, out);
	code = table_print(&table, s, out, err);
	add_rest(&t, out);
	rank_advice_text(v, &t.totals, o->sort, &t.rank, s, out);
	if (out->failed)
		code = error_nomem(err, "the report");
done:
	table_finish(&table);
	top_finish(&t);
	return code;
}

/* --- JSON ----------------------------------------------------------------- */

static void json_row(struct json *j, const struct top *t, uint32_t entry)
{
	const struct view *v = t->v;
	const struct entry_total *e = &t->totals.entries[entry];
	json_open(j, NULL, '{');
	json_entry(j, v, entry);
	json_amount(j, "flat", v, &e->flat);
	json_amount(j, "cum", v, &e->cum);
	rank_json_verdict(j, v, e);
	json_close(j, '}');
}

int report_top_json(struct view *v, const struct top_options *o, struct buf *out, struct error *err)
{
	struct top t;
	struct json j = { .out = out };
	int code = top_init(&t, v, o, err);
	if (!code) {
		header_json(v, "top", &t.notes, &j);
		json_cstring(&j, "sort", o->sort == SORT_FLAT ? "flat" : "cum");
		json_integer(&j, "rows_total", (int64_t)t.rank.n);
		json_open(&j, "rows", '[');
		for (size_t i = 0; i < t.shown; i++)
			json_row(&j, &t, t.rank.order[i]);
		json_close(&j, ']');
		json_close(&j, '}');
		buf_addc(out, '\n');
		if (out->failed)
			code = error_nomem(err, "the report");
	}
	top_finish(&t);
	return code;
}
