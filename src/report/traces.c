/*
 * Whole stacks, one block of lines each, biggest first. Rows with the same stack and
 * labels are one trace; in a diff labels other than the thread don't count, since the
 * two sides may know different block sizes.
 */
#include "report/rank.h"
#include "report/table.h"
#include "report/words.h"

#include "base/text.h"

#include <math.h>
#include <stdlib.h>

struct trace {
	uint32_t stack, labels;
	uint32_t group;             /* what tells traces of one stack apart: label set, or in a diff the thread */
	bool significant;
	struct amount amount;
	double companion[2];        /* objects of a space metric (or bytes of objects): base, now */
};

struct traces {
	struct view *v;
	struct trace *all;
	size_t n, shown;
	struct notes notes;
	bool has_companion;
};

static uint32_t group_of(const struct view *v, uint32_t labels)
{
	return v->diff ? view_thread(v, labels) : labels;
}

static int compare_keys(const void *a, const void *b)
{
	const struct trace *x = a, *y = b;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return (x->group > y->group) - (x->group < y->group);
}

static double size_of(const struct view *v, const struct trace *t)
{
	return fabs(v->diff ? amount_change(&t->amount) : t->amount.now);
}

static int compare_sizes(const void *a, const void *b, void *context)
{
	const struct view *v = context;
	const struct trace *x = a, *y = b;
	if (x->significant != y->significant)
		return x->significant ? -1 : 1;
	double p = size_of(v, x), q = size_of(v, y);
	return p != q ? (p > q ? -1 : 1) : compare_keys(a, b);
}

/* Rows become traces in the order of their keys, equal ones together; a diff's unchanged ones are dropped. */
static int collect(struct traces *t, struct error *err)
{
	struct view *v = t->v;
	t->all = malloc((v->n_rows + 1) * sizeof *t->all);
	if (!t->all)
		return error_nomem(err, "the stacks");
	for (size_t i = 0; i < v->n_rows; i++) {
		const struct view_row *r = &v->rows[i];
		t->all[i] = (struct trace){ .stack = r->stack, .labels = r->labels,
			                    .group = group_of(v, r->labels), .amount = r->amount };
	}
	qsort(t->all, v->n_rows, sizeof *t->all, compare_keys);
	for (size_t i = 0; i < v->n_rows; i++) {
		if (t->n && compare_keys(&t->all[t->n - 1], &t->all[i]) == 0)
			amount_add(&t->all[t->n - 1].amount, &t->all[i].amount);
		else
			t->all[t->n++] = t->all[i];
	}
	return E_OK;
}

static void add_companions(struct traces *t)
{
	const struct profile *p = t->v->profile;
	int column = words_companion_column(t->v);
	t->has_companion = column >= 0;
	for (size_t i = 0; column >= 0 && t->n && i < p->n_samples; i++) {
		const struct sample *s = &p->samples[i];
		struct trace key = { .stack = s->stack, .group = group_of(t->v, s->labels) };
		struct trace *found = bsearch(&key, t->all, t->n, sizeof *t->all, compare_keys);
		if (found)
			found->companion[!p->sources[s->source].base] +=
			    (double)p->values[i * p->n_types + (size_t)column];
	}
}

static int judge(struct traces *t, struct error *err)
{
	const struct amount **amounts = malloc((t->n + 1) * sizeof *amounts);
	bool *significant = malloc(t->n + 1);
	bool ok = amounts && significant;
	for (size_t i = 0; ok && i < t->n; i++)
		amounts[i] = &t->all[i].amount;
	ok = ok && rank_significant(t->v, amounts, t->n, significant);
	size_t kept = 0;
	for (size_t i = 0; ok && i < t->n; i++) {
		if (amount_change(&t->all[i].amount) == 0)
			continue;
		t->all[kept] = t->all[i];
		t->all[kept++].significant = significant[i];
	}
	t->n = kept;
	free(amounts);
	free(significant);
	return ok ? E_OK : error_nomem(err, "the stacks");
}

static int traces_init(struct traces *t, struct view *v, uint32_t n, struct error *err)
{
	*t = (struct traces){ .v = v };
	notes_init(&t->notes);
	int code = collect(t, err);
	if (code)
		return code;
	add_companions(t);
	if (v->diff)
		code = judge(t, err);
	if (code)
		return code;
	qsort_r(t->all, t->n, sizeof *t->all, compare_sizes, v);
	t->shown = n && n < t->n ? n : t->n;
	header_notes(v, &t->notes);
	return E_OK;
}

static void traces_finish(struct traces *t)
{
	free(t->all);
	notes_finish(&t->notes);
}

/* --- text ----------------------------------------------------------------- */

static void add_thread(const struct view *v, uint32_t labels, struct buf *out)
{
	uint32_t thread = view_thread(v, labels);
	if (!thread)
		return;
	buf_adds(out, "  thread ");
	text_add_terminal(out, profile_text(v->profile, thread), strings_length(&v->profile->strings, thread));
}

/* The labels that are neither thread nor block size: "  key value". */
static void add_labels(const struct view *v, uint32_t labels, struct buf *out)
{
	const struct profile *p = v->profile;
	const struct label_set *set = &p->label_sets[labels];
	for (uint32_t i = 0; i < set->n; i++) {
		const struct label *l = &p->labels[set->first + i];
		const char *key = profile_text(p, l->key);
		if (!strcmp(key, "thread") || (!strcmp(key, "bytes") && !l->str))
			continue;
		buf_adds(out, "  ");
		text_add_terminal(out, key, strlen(key));
		buf_addc(out, ' ');
		if (l->str)
			text_add_terminal(out, profile_text(p, l->str), strings_length(&p->strings, l->str));
		else
			buf_printf(out, "%lld", (long long)l->number);
	}
}

static void add_count(double count, const char *noun, struct buf *out)
{
	text_add_count(out, count);
	buf_addc(out, ' ');
	buf_adds(out, noun);
	if (fabs(count) < 0.5 || fabs(count) >= 1.5)
		buf_addc(out, 's');
}

/* "  16,512 blocks of 4.00 KiB", or with their mean size. */
static void add_blocks(const struct traces *t, const struct trace *trace, struct buf *out)
{
	double now = trace->companion[1];
	if (!t->has_companion || !(now > 0))
		return;
	bool bytes = words_is_bytes(t->v);
	double objects = bytes ? now : trace->amount.now, space = bytes ? trace->amount.now : now;
	uint64_t size = t->v->profile->label_sets[trace->labels].block_size;
	buf_adds(out, "  ");
	if (bytes)
		add_count(objects, "block", out);
	else
		text_add_bytes(out, space);
	buf_adds(out, size ? (bytes ? " of " : " in blocks of ") : ", mean size ");
	text_add_bytes(out, size ? (double)size : space / objects);
}

static void add_diff_blocks(const struct traces *t, const struct trace *trace, struct buf *out)
{
	if (!t->has_companion)
		return;
	double change = trace->companion[1] - trace->companion[0];
	buf_adds(out, change > 0 ? "  +" : "  ");
	if (words_is_bytes(t->v))
		add_count(change, "block", out);
	else
		text_add_bytes(out, change);
}

static void add_diff_title(const struct traces *t, const struct trace *trace, struct buf *out)
{
	const struct amount *a = &trace->amount;
	buf_adds(out, "  (");
	words_amount(t->v, a->base, out);
	buf_adds(out, " → ");
	words_amount(t->v, a->now, out);
	buf_adds(out, ", ");
	words_change_percent(a, out);
	buf_addc(out, ')');
	const char *verdict = rank_verdict(t->v, trace->significant, a);
	if (*verdict) {
		buf_adds(out, "  ");
		buf_adds(out, verdict);
	}
	add_diff_blocks(t, trace, out);
}

static void add_title(const struct traces *t, size_t i, const struct report_style *s, struct buf *out)
{
	const struct view *v = t->v;
	const struct trace *trace = &t->all[i];
	bool noise = *rank_verdict(v, trace->significant, &trace->amount);
	buf_adds(out, tone_begin(s, noise ? TONE_DIM : TONE_BOLD));
	buf_printf(out, "#%zu  ", i + 1);
	words_value(v, &trace->amount, out);
	size_t before = out->len;
	buf_addc(out, ' ');
	words_error(v, &trace->amount, out);
	if (!out->failed && out->len == before + 1)
		out->data[--out->len] = '\0';
	if (v->diff) {
		add_diff_title(t, trace, out);
	} else {
		buf_adds(out, "  ");
		words_percent(trace->amount.now, v->total_all.now, out);
		add_blocks(t, trace, out);
	}
	add_thread(v, trace->labels, out);
	if (!v->diff)
		add_labels(v, trace->labels, out);
	buf_adds(out, tone_end(s, TONE_BOLD));
	buf_addc(out, '\n');
}

/* One line a frame; an entry that calls itself directly is said once, with how often. */
static void add_frames(const struct traces *t, const struct trace *trace, const struct report_style *s,
                       struct buf *out)
{
	const uint32_t *entries;
	struct view_row row = { .stack = trace->stack, .labels = trace->labels };
	size_t n = view_stack(t->v, &row, &entries);
	struct buf name;
	buf_init(&name, 1 << 26);
	if (!entries)
		out->failed = true;
	else if (n == 0)
		buf_adds(out, "      (no frame)\n");
	for (size_t i = 0, run; i < n; i += run) {
		for (run = 1; i + run < n && entries[i + run] == entries[i];)
			run++;
		name.len = 0;
		words_entry(t->v, entries[i], &name);
		if (run > 1)
			buf_printf(&name, " (%zu times in a row)", run);
		buf_adds(out, "      ");
		table_add_cut(out, name.data ? name.data : "", name.len, 0, s->columns > 6 ? s->columns - 6 : 0);
		buf_addc(out, '\n');
	}
	buf_addc(out, '\n');
	words_finish_part(&name, out);
}

static void add_rest(const struct traces *t, struct buf *out)
{
	struct amount rest = { 0 };
	for (size_t i = t->shown; i < t->n; i++)
		amount_add(&rest, &t->all[i].amount);
	if (t->shown == t->n)
		return;
	buf_printf(out, "(%zu more %s, ", t->n - t->shown, t->n - t->shown == 1 ? "stack" : "stacks");
	words_value(t->v, &rest, out);
	buf_adds(out, ")\n");
}

int report_traces(struct view *v, uint32_t n, const struct report_style *s, struct buf *out, struct error *err)
{
	struct traces t;
	int code = traces_init(&t, v, n, err);
	if (!code) {
		header_text(v, &t.notes, s, out);
		for (size_t i = 0; i < t.shown; i++) {
			add_title(&t, i, s, out);
			add_frames(&t, &t.all[i], s, out);
		}
		add_rest(&t, out);
		if (t.n == 0)
			buf_adds(out, v->diff ? "Nothing changed.\n" : "No stack holds anything.\n");
		if (out->failed)
			code = error_nomem(err, "the report");
	}
	traces_finish(&t);
	return code;
}

/* --- JSON ----------------------------------------------------------------- */

static void json_labels(struct json *j, const struct view *v, uint32_t labels)
{
	const struct profile *p = v->profile;
	const struct label_set *set = &p->label_sets[labels];
	uint32_t thread = view_thread(v, labels);
	if (thread)
		json_text(j, "thread", profile_text(p, thread), strings_length(&p->strings, thread));
	if (set->block_size && !v->diff)
		json_integer(j, "block_size", (int64_t)set->block_size);
	if (v->diff || set->n == 0)
		return;
	json_open(j, "labels", '[');
	for (uint32_t i = 0; i < set->n; i++) {
		const struct label *l = &p->labels[set->first + i];
		json_open(j, NULL, '{');
		json_text(j, "key", profile_text(p, l->key), strings_length(&p->strings, l->key));
		if (l->str)
			json_text(j, "value", profile_text(p, l->str), strings_length(&p->strings, l->str));
		else
			json_integer(j, "value", l->number);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void json_companion(struct json *j, const struct traces *t, const struct trace *trace)
{
	if (!t->has_companion)
		return;
	json_open(j, words_is_bytes(t->v) ? "objects" : "bytes", '{');
	if (t->v->diff) {
		json_amount_number(j, "base", trace->companion[0]);
		json_amount_number(j, "new", trace->companion[1]);
	} else {
		json_amount_number(j, "value", trace->companion[1]);
	}
	json_close(j, '}');
}

static void json_trace(struct json *j, const struct traces *t, const struct trace *trace)
{
	json_open(j, NULL, '{');
	json_amount(j, "amount", t->v, &trace->amount);
	if (t->v->diff && t->v->has_error)
		json_bool(j, "significant", trace->significant);
	json_companion(j, t, trace);
	json_labels(j, t->v, trace->labels);
	const uint32_t *entries;
	struct view_row row = { .stack = trace->stack, .labels = trace->labels };
	size_t n = view_stack(t->v, &row, &entries);
	if (!entries)
		j->out->failed = true;
	json_open(j, "frames", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(j, NULL, '{');
		json_entry(j, t->v, entries[i]);
		json_close(j, '}');
	}
	json_close(j, ']');
	json_close(j, '}');
}

int report_traces_json(struct view *v, uint32_t n, struct buf *out, struct error *err)
{
	struct traces t;
	struct json j = { .out = out };
	int code = traces_init(&t, v, n, err);
	if (!code) {
		header_json(v, "traces", &t.notes, &j);
		json_integer(&j, "stacks_total", (int64_t)t.n);
		json_open(&j, "stacks", '[');
		for (size_t i = 0; i < t.shown; i++)
			json_trace(&j, &t, &t.all[i]);
		json_close(&j, ']');
		json_close(&j, '}');
		buf_addc(out, '\n');
		if (out->failed)
			code = error_nomem(err, "the report");
	}
	traces_finish(&t);
	return code;
}
