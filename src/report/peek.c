/*
 * One entry at a time with who calls it and whom it calls. An edge counts each row
 * once, however often recursion walks over it, as cum does.
 */
#include "report/rank.h"
#include "report/table.h"
#include "report/words.h"

#include "base/text.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>

/* other calls subject, or is called by it. */
struct edge {
	uint32_t subject, other;
	bool caller;
	bool significant;
	uint32_t last_row;          /* row + 1 that last counted */
	struct amount amount;
};

struct peek {
	struct view *v;
	struct view_totals totals;
	struct notes notes;
	uint32_t *subjects;         /* matching entries, biggest cum first */
	size_t n_subjects;
	bool *matches;              /* per entry */
	struct edge *edges;         size_t n_edges, edges_capacity;
	struct index index;
};

/* --- which entries -------------------------------------------------------- */

static bool entry_matches(const struct view *v, uint32_t entry, const regex_t *re)
{
	const struct entry *e = &v->entries[entry];
	return regexec(re, profile_text(v->profile, e->name), 0, NULL, 0) == 0 ||
	       (e->file && regexec(re, profile_text(v->profile, e->file), 0, NULL, 0) == 0);
}

static int find_subjects(struct peek *p, const char *regex, struct error *err)
{
	regex_t re;
	int code = regcomp(&re, regex, REG_EXTENDED | REG_NOSUB);
	if (code) {
		char why[160];
		regerror(code, &re, why, sizeof why);
		return error_set(err, E_USAGE, "bad regular expression \"%s\": %s", regex, why);
	}
	p->matches = calloc(p->v->n_entries + 1, sizeof *p->matches);
	p->subjects = malloc((p->v->n_entries + 1) * sizeof *p->subjects);
	for (size_t i = 0; p->matches && p->subjects && i < p->totals.n; i++) {
		uint32_t entry = p->totals.order[i];
		const struct amount *cum = &p->totals.entries[entry].cum;
		if ((cum->now == 0 && cum->base == 0) || !entry_matches(p->v, entry, &re))
			continue;
		p->matches[entry] = true;
		p->subjects[p->n_subjects++] = entry;
	}
	regfree(&re);
	if (!p->matches || !p->subjects)
		return error_nomem(err, "the matches");
	if (p->n_subjects == 0)
		return error_set(err, E_USAGE,
		                 "\"%s\" matches none of the profile's entries (heapgauge top lists them)", regex);
	return E_OK;
}

/* --- edges ---------------------------------------------------------------- */

static bool same_edge(const void *context, uint32_t item)
{
	const struct edge *const *pair = context;
	const struct edge *a = &pair[0][item], *b = pair[1];
	return a->subject == b->subject && a->other == b->other && a->caller == b->caller;
}

static bool count_edge(struct peek *p, uint32_t row, struct edge wanted)
{
	uint64_t hash = hash_mix(hash_u64((uint64_t)wanted.subject << 32 | wanted.other), wanted.caller);
	const struct edge *pair[2] = { p->edges, &wanted };
	uint32_t id = index_find(&p->index, hash, same_edge, pair);
	if (id == INDEX_NONE) {
		struct edge *slot = NULL;
		if (index_reserve(&p->index))
			slot = ARRAY_PUSH(p->edges, p->n_edges, p->edges_capacity, INDEX_NONE - 1);
		if (!slot)
			return false;
		*slot = wanted;
		id = (uint32_t)(p->n_edges - 1);
		index_insert(&p->index, hash, id);
	}
	struct edge *e = &p->edges[id];
	if (e->last_row != row + 1)
		amount_add(&e->amount, &p->v->rows[row].amount);
	e->last_row = row + 1;
	return true;
}

static int count_edges(struct peek *p, struct error *err)
{
	bool ok = true;
	for (uint32_t r = 0; ok && r < p->v->n_rows; r++) {
		const uint32_t *entries;
		size_t n = view_stack(p->v, &p->v->rows[r], &entries);
		ok = entries != NULL;
		for (size_t i = 0; ok && i < n; i++) {
			if (!p->matches[entries[i]])
				continue;
			if (i + 1 < n)
				ok = count_edge(p, r, (struct edge){ entries[i], entries[i + 1], .caller = true });
			if (ok && i > 0)
				ok = count_edge(p, r, (struct edge){ entries[i], entries[i - 1], .caller = false });
		}
	}
	return ok ? E_OK : error_nomem(err, "callers and callees");
}

struct edge_order {
	const struct view *v;
	const uint32_t *position;       /* of each subject among the subjects */
};

/* By subject as listed, callers before callees, biggest first, ties by name. */
static int compare_edges(const void *a, const void *b, void *context)
{
	const struct edge_order *c = context;
	const struct edge *x = a, *y = b;
	if (x->subject != y->subject)
		return c->position[x->subject] < c->position[y->subject] ? -1 : 1;
	if (x->caller != y->caller)
		return x->caller ? -1 : 1;
	double p = fabs(c->v->diff ? amount_change(&x->amount) : x->amount.now);
	double q = fabs(c->v->diff ? amount_change(&y->amount) : y->amount.now);
	if (p != q)
		return p > q ? -1 : 1;
	int by_name = strcmp(profile_text(c->v->profile, c->v->entries[x->other].name),
	                     profile_text(c->v->profile, c->v->entries[y->other].name));
	return by_name ? by_name : (x->other > y->other) - (x->other < y->other);
}

static int sort_edges(struct peek *p, struct error *err)
{
	uint32_t *position = calloc(p->v->n_entries + 1, sizeof *position);
	if (!position)
		return error_nomem(err, "callers and callees");
	for (size_t i = 0; i < p->n_subjects; i++)
		position[p->subjects[i]] = (uint32_t)i;
	struct edge_order order = { p->v, position };
	if (p->n_edges)
		qsort_r(p->edges, p->n_edges, sizeof *p->edges, compare_edges, &order);
	free(position);
	return E_OK;
}

static int judge_edges(struct peek *p, struct error *err)
{
	const struct amount **amounts = malloc((p->n_edges + 1) * sizeof *amounts);
	bool *significant = malloc(p->n_edges + 1);
	bool ok = amounts && significant;
	for (size_t i = 0; ok && i < p->n_edges; i++)
		amounts[i] = &p->edges[i].amount;
	ok = ok && rank_significant(p->v, amounts, p->n_edges, significant);
	for (size_t i = 0; ok && i < p->n_edges; i++)
		p->edges[i].significant = significant[i];
	free(amounts);
	free(significant);
	return ok ? E_OK : error_nomem(err, "callers and callees");
}

/* --- life ----------------------------------------------------------------- */

static int peek_init(struct peek *p, struct view *v, const char *regex, struct error *err)
{
	*p = (struct peek){ .v = v };
	notes_init(&p->notes);
	int code = view_totals(v, SORT_CUM, &p->totals, err);
	if (!code)
		code = find_subjects(p, regex, err);
	if (!code)
		code = count_edges(p, err);
	if (!code)
		code = sort_edges(p, err);
	if (!code && v->diff)
		code = judge_edges(p, err);
	if (!code)
		header_notes(v, &p->notes);
	return code;
}

static void peek_finish(struct peek *p)
{
	view_totals_finish(&p->totals);
	notes_finish(&p->notes);
	free(p->subjects);
	free(p->matches);
	free(p->edges);
	index_finish(&p->index);
}

/* --- text ----------------------------------------------------------------- */

enum { N_COLUMNS = 9 };

static void tinted_value(struct table *t, const struct view *v, const struct amount *a)
{
	words_value(v, a, table_cell(t));
	if (v->diff && amount_change(a) != 0)
		table_cell_tone(t, amount_change(a) > 0 ? TONE_GROWN : TONE_SHRUNK);
}

static void add_edge(struct table *t, const struct peek *p, const struct edge *e)
{
	const struct view *v = p->v;
	const char *verdict = rank_verdict(v, e->significant, &e->amount);
	table_row(t, *verdict ? TONE_DIM : TONE_PLAIN);
	table_skip(t, 4);
	tinted_value(t, v, &e->amount);
	words_error(v, &e->amount, table_cell(t));
	if (v->diff)
		words_change_percent(&e->amount, table_cell(t));
	else
		words_percent(e->amount.now, p->totals.entries[e->subject].cum.now, table_cell(t));
	buf_adds(table_cell(t), verdict);
	struct buf *cell = table_cell(t);
	buf_adds(cell, e->caller ? "  ↑ " : "  ↓ ");
	table_cell_lead(t);
	words_entry(v, e->other, cell);
}

static void add_subject(struct table *t, const struct peek *p, uint32_t entry)
{
	const struct view *v = p->v;
	const struct entry_total *e = &p->totals.entries[entry];
	const char *verdict = rank_verdict(v, e->significant, &e->cum);
	table_row(t, TONE_BOLD);
	words_value(v, &e->flat, table_cell(t));
	words_value(v, &e->cum, table_cell(t));
	words_error(v, &e->cum, table_cell(t));
	if (v->diff)
		words_change_percent(&e->cum, table_cell(t));
	else
		words_percent(e->cum.now, v->total_all.now, table_cell(t));
	table_skip(t, 3);
	buf_adds(table_cell(t), verdict);
	words_entry(v, entry, table_cell(t));
}

int report_peek(struct view *v, const char *regex, const struct report_style *s, struct buf *out,
                struct error *err)
{
	const struct table_column columns[N_COLUMNS] = {
		{ "flat", true, 4 },   { "cum", true, 0 },  { "±", true, 3 },
		{ "cum%", true, 2 },   { "edge", true, 0 }, { "±", true, 1 },
		{ "edge%", true, 5 },  { "", false, 0 },    { "↑ callers, the entry, ↓ callees", false, 0 },
	};
	struct peek p;
	struct table table;
	table_init(&table, columns, N_COLUMNS);
	int code = peek_init(&p, v, regex, err);
	if (code)
		goto done;
	size_t edge = 0;
	for (size_t i = 0; i < p.n_subjects; i++) {
		table_rule(&table);
		for (; edge < p.n_edges && p.edges[edge].subject == p.subjects[i] && p.edges[edge].caller; edge++)
			add_edge(&table, &p, &p.edges[edge]);
		add_subject(&table, &p, p.subjects[i]);
		for (; edge < p.n_edges && p.edges[edge].subject == p.subjects[i]; edge++)
			add_edge(&table, &p, &p.edges[edge]);
	}
	header_text(v, &p.notes, s, out);
	code = table_print(&table, s, out, err);
done:
	table_finish(&table);
	peek_finish(&p);
	return code;
}

/* --- JSON ----------------------------------------------------------------- */

static void json_edges(struct json *j, const struct peek *p, const char *key, bool caller, uint32_t subject,
                       size_t *edge)
{
	json_open(j, key, '[');
	for (; *edge < p->n_edges; ++*edge) {
		const struct edge *e = &p->edges[*edge];
		if (e->subject != subject || e->caller != caller)
			break;
		json_open(j, NULL, '{');
		json_entry(j, p->v, e->other);
		json_amount(j, "amount", p->v, &e->amount);
		if (p->v->diff && p->v->has_error)
			json_bool(j, "significant", e->significant);
		json_close(j, '}');
	}
	json_close(j, ']');
}

int report_peek_json(struct view *v, const char *regex, struct buf *out, struct error *err)
{
	struct peek p;
	struct json j = { .out = out };
	int code = peek_init(&p, v, regex, err);
	if (code)
		goto done;
	header_json(v, "peek", &p.notes, &j);
	json_cstring(&j, "regex", regex);
	json_open(&j, "entries", '[');
	size_t edge = 0;
	for (size_t i = 0; i < p.n_subjects; i++) {
		const struct entry_total *e = &p.totals.entries[p.subjects[i]];
		json_open(&j, NULL, '{');
		json_entry(&j, v, p.subjects[i]);
		json_amount(&j, "flat", v, &e->flat);
		json_amount(&j, "cum", v, &e->cum);
		if (v->diff && v->has_error)
			json_bool(&j, "significant", e->significant);
		json_edges(&j, &p, "callers", true, p.subjects[i], &edge);
		json_edges(&j, &p, "callees", false, p.subjects[i], &edge);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	buf_addc(out, '\n');
	if (out->failed)
		code = error_nomem(err, "the report");
done:
	peek_finish(&p);
	return code;
}
