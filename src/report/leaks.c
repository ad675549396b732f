/*
 * The leak ranking as text to paste into a ticket, and as JSON: what grows and goes on growing, by the least it is;
 * then what grew otherwise. Noise and what shrank are counted, and listed when asked for.
 */
#include "report/leaks_words.h"

#include "base/text.h"
#include "report/table.h"
#include "report/words.h"

#include <math.h>
#include <string.h>

#define FRAMES_SHOWN 6
#define NOISE_SHOWN 3           /* when there is nothing else to see */

/* --- text ------------------------------------------------------------------- */

static void add_row(const struct leaks *l, const struct growth *g, struct table *t)
{
	const struct view *v = l->s->view;
	double time;
	struct interval i;
	table_row(t, g->trend.shape == SHAPE_NOISE || g->trend.shape == SHAPE_FLAT ? TONE_DIM : TONE_PLAIN);
	leaks_rate(l, g->trend.slope.rate, table_cell(t));
	if (g->trend.slope.rate != 0)
		table_cell_tone(t, g->trend.slope.rate > 0 ? TONE_GROWN : TONE_SHRUNK);
	leaks_rate_error(l, &g->trend.slope, table_cell(t));
	words_change(v, leaks_change(l, g), table_cell(t));
	words_amount(v, g->values[l->s->n_snapshots - 1].value, table_cell(t));
	buf_adds(table_cell(t), shape_name(g->trend.shape));
	struct buf *cell = table_cell(t);
	if (leaks_time_to_limit(l, g, &time, &i))
		leaks_time_text(l, time, i, cell);
	cell = table_cell(t);
	if (l->o->fail_above >= 0 && growth_exceeds(g, l->o->fail_above))
		buf_adds(cell, "FAILED");
	leaks_place(l, g, FRAMES_SHOWN, table_cell(t));
}

static void add_name(const struct leaks *l, const struct source *s, struct buf *out)
{
	const struct profile *p = l->s->view->profile;
	text_add_terminal(out, profile_text(p, s->name), strings_length(&p->strings, s->name));
	if (s->time_nanos > 0) {
		buf_adds(out, ", ");
		words_time(s->time_nanos, out);
	}
}

static void add_series(const struct leaks *l, const struct report_style *style, struct buf *out)
{
	const struct profile *p = l->s->view->profile;
	struct buf value;
	buf_init(&value, 1 << 24);
	leaks_range(l, &value);
	header_line(style, "Series", &value, out);
	add_name(l, &p->sources[0], &value);
	header_line(style, "First", &value, out);
	add_name(l, &p->sources[p->n_sources - 1], &value);
	header_line(style, "Last", &value, out);
	if (p->n_mappings && p->mappings[0].file) {
		text_add_terminal(&value, profile_text(p, p->mappings[0].file),
		                  strings_length(&p->strings, p->mappings[0].file));
		if (p->sources[0].pid)
			buf_printf(&value, ", pid %llu", (unsigned long long)p->sources[0].pid);
		header_line(style, "Process", &value, out);
	}
	words_finish_part(&value, out);
}

/* "120 MiB → 180 MiB, +29.8 MiB/h ±2.1 MiB, steady; 512 MiB in 11 h (10.3 h to 11.9 h)" */
static void add_total(const struct leaks *l, struct buf *out)
{
	const struct view *v = l->s->view;
	const struct growth *g = &l->s->total;
	double time, now = g->values[l->s->n_snapshots - 1].value;
	struct interval i;
	words_amount(v, g->values[0].value, out);
	buf_adds(out, " → ");
	words_amount(v, now, out);
	buf_adds(out, ", ");
	leaks_rate(l, g->trend.slope.rate, out);
	buf_addc(out, ' ');
	leaks_rate_error(l, &g->trend.slope, out);
	buf_printf(out, " (%s)", shape_name(g->trend.shape));
	if (!(l->o->limit > 0))
		return;
	buf_adds(out, "; ");
	words_amount(v, l->o->limit, out);
	if (leaks_time_to_limit(l, g, &time, &i)) {
		buf_adds(out, " in ");
		leaks_time_text(l, time, i, out);
	} else {
		buf_adds(out, now >= l->o->limit ? " is reached" : " is not in sight");
	}
}

static void add_header(const struct leaks *l, const struct report_style *style, struct buf *out)
{
	const struct view *v = l->s->view;
	const char *meaning = header_metric_meaning(v);
	struct buf value;
	buf_init(&value, 1 << 24);
	add_series(l, style, out);
	text_add_terminal(&value, v->type, strlen(v->type));
	buf_adds(&value, meaning ? ": " : " in ");
	text_add_terminal(&value, meaning ? meaning : v->unit, strlen(meaning ? meaning : v->unit));
	header_line(style, "Metric", &value, out);
	add_total(l, &value);
	header_line(style, "Total", &value, out);
	if (v->has_error) {
		header_add_rate(v, &value);
		buf_adds(&value, header_rate(v) > 1 ? "; ± is 95%, of sampling and of what the program does by itself"
		                                    : "; ± is 95%, of what the program does by itself");
		header_line(style, "Sampled", &value, out);
	}
	leaks_verdict(l, &value);
	if (value.len)
		header_line(style, "Gate", &value, out);
	words_finish_part(&value, out);
	header_text_notes(&l->notes, style, out);
}

static void add_counted(size_t n, const char *what, const char **before, struct buf *out)
{
	if (!n)
		return;
	buf_printf(out, "%s%zu %s", *before, n, what);
	*before = ", ";
}

static void add_footer(const struct leaks *l, size_t listed, struct buf *out)
{
	const struct series *s = l->s;
	size_t left = s->n_places - listed, noise = 0, flat = 0, shrunk = 0;
	for (size_t i = listed; i < s->n_places; i++) {
		enum shape shape = s->places[s->order[i]].trend.shape;
		noise += shape == SHAPE_NOISE;
		flat += shape == SHAPE_FLAT;
		shrunk += shape == SHAPE_SHRINKING || shape == SHAPE_GONE;
	}
	if (!left)
		return;
	const char *before = "";
	buf_printf(out, "(%zu more %s%s: ", left, leaks_places(l), left == 1 ? "" : "s");
	add_counted(left - noise - flat - shrunk, "grew", &before, out);
	add_counted(noise, "noise", &before, out);
	add_counted(flat, "flat", &before, out);
	add_counted(shrunk, "shrank", &before, out);
	buf_adds(out, ")\n");
}

int report_leaks(const struct series *s, const struct leaks_options *o, const struct report_style *style, struct buf *out,
                 struct error *err)
{
	struct leaks l;
	struct table table;
	struct buf advice;
	leaks_init(&l, s, o);
	const struct table_column columns[] = {
		{ "rate", true, 0 }, { "±", true, 0 },         { "growth", true, 2 }, { "now", true, 3 },
		{ "shape", false, 0 }, { "to limit", false, 1 }, { "gate", false, 0 },  { leaks_places(&l), false, 0 },
	};
	table_init(&table, columns, sizeof columns / sizeof columns[0]);
	buf_init(&advice, 1 << 24);
	add_header(&l, style, out);
	size_t listed = l.shown;
	if (!listed)
		listed = s->n_places < NOISE_SHOWN ? s->n_places : NOISE_SHOWN;
	for (size_t i = 0; i < listed; i++)
		add_row(&l, &s->places[s->order[i]], &table);
	int code = listed ? table_print(&table, style, out, err) : E_OK;
	add_footer(&l, listed, out);
	leaks_advice(&l, &advice);
	if (advice.len) {
		buf_addc(out, '\n');
		words_paragraph(advice.data, advice.len, 0, 0, style->columns, out);
	}
	words_finish_part(&advice, out);
	if (out->failed && !code)
		code = error_nomem(err, "the report");
	table_finish(&table);
	leaks_finish(&l);
	return code;
}

/* --- JSON ------------------------------------------------------------------- */

static void json_slope(struct json *j, const char *key, const struct leaks *l, const struct slope *slope)
{
	double per = l->s->timed ? 3600 : 1;
	json_open(j, key, '{');
	json_number(j, "value", slope->rate * per);
	json_number(j, "low", slope->interval.low * per);
	json_number(j, "high", slope->interval.high * per);
	json_close(j, '}');
}

static void json_limit(struct json *j, const struct leaks *l, const struct growth *g)
{
	double value;
	struct interval i;
	if (!(l->o->limit > 0))
		return;
	if (!leaks_time_to_limit(l, g, &value, &i)) {
		json_null(j, "to_limit");
		return;
	}
	json_open(j, "to_limit", '{');
	json_number(j, "value", value);
	json_number(j, "low", i.low);
	json_number(j, "high", i.high);
	json_close(j, '}');
}

static void json_growth(struct json *j, const struct leaks *l, const struct growth *g)
{
	const struct trend *t = &g->trend;
	json_cstring(j, "shape", shape_name(t->shape));
	json_bool(j, "significant", g->significant);
	json_bool(j, "steady", t->steady);
	json_number(j, "p_value", t->slope.p_value);
	json_slope(j, "rate", l, &t->slope);
	if (t->has_halves) {
		json_slope(j, "rate_earlier", l, &t->earlier);
		json_slope(j, "rate_later", l, &t->later);
	} else {
		json_null(j, "rate_earlier");
		json_null(j, "rate_later");
	}
	json_amount_number(j, "change", leaks_change(l, g));
	json_limit(j, l, g);
	if (l->o->fail_above >= 0)
		json_bool(j, "exceeds", growth_exceeds(g, l->o->fail_above));
	json_open(j, "values", '[');
	for (size_t k = 0; k < l->s->n_snapshots; k++)
		json_amount_number(j, NULL, g->values[k].value);
	json_close(j, ']');
}

static void json_place(struct json *j, const struct leaks *l, const struct growth *g)
{
	const struct view *v = l->s->view;
	json_open(j, NULL, '{');
	if (l->s->options.by_stack) {
		size_t n;
		const uint32_t *frames = series_frames(l->s, g, &n);
		json_open(j, "frames", '[');
		for (size_t i = 0; i < n; i++) {
			json_open(j, NULL, '{');
			json_entry(j, v, frames[i]);
			json_close(j, '}');
		}
		json_close(j, ']');
	} else {
		json_entry(j, v, (uint32_t)g->first_frame);
	}
	json_growth(j, l, g);
	json_close(j, '}');
}

static void json_head(struct json *j, const struct leaks *l)
{
	const struct series *s = l->s;
	json_open(j, NULL, '{');
	json_cstring(j, "report", "leaks");
	json_integer(j, "version", 1);
	json_cstring(j, "metric", s->view->type);
	json_cstring(j, "unit", s->view->unit);
	json_cstring(j, "by", leaks_places(l));
	header_json_origin(s->view, j);
	header_json_notes(&l->notes, j);
	json_cstring(j, "per", s->timed ? "hour" : "snapshot");
	json_open(j, "times", '[');
	for (size_t k = 0; k < s->n_snapshots; k++)
		json_number(j, NULL, s->times[k]);
	json_close(j, ']');
	if (l->o->limit > 0)
		json_amount_number(j, "limit", l->o->limit);
	else
		json_null(j, "limit");
	if (l->o->fail_above < 0) {
		json_null(j, "gate");
		return;
	}
	json_open(j, "gate", '{');
	json_number(j, "rate", l->o->fail_above * (s->timed ? 3600 : 1));
	json_bool(j, "tripped", report_leaks_tripped(s, l->o));
	json_integer(j, "exceeding", (int64_t)l->exceeding);
	json_close(j, '}');
}

static void json_body(struct json *j, const struct leaks *l)
{
	const struct series *s = l->s;
	struct buf advice;
	buf_init(&advice, 1 << 24);
	json_head(j, l);
	json_open(j, "total", '{');
	json_growth(j, l, &s->total);
	json_close(j, '}');
	leaks_advice(l, &advice);
	if (advice.len)
		json_text(j, "advice", advice.data, advice.len);
	else
		json_null(j, "advice");
	json_integer(j, "rows_total", (int64_t)s->n_places);
	json_integer(j, "rows_steady", (int64_t)s->n_steady);
	json_integer(j, "rows_grown", (int64_t)s->n_grown);
	json_integer(j, "rows_shrunk", (int64_t)s->n_shrunk);
	json_open(j, "rows", '[');
	for (size_t i = 0; i < l->shown; i++)
		json_place(j, l, &s->places[s->order[i]]);
	json_close(j, ']');
	json_close(j, '}');
	words_finish_part(&advice, j->out);
}

int report_leaks_json(const struct series *s, const struct leaks_options *o, struct buf *out, struct error *err)
{
	struct leaks l;
	struct json j = { .out = out };
	leaks_init(&l, s, o);
	json_body(&j, &l);
	buf_addc(out, '\n');
	leaks_finish(&l);
	return out->failed ? error_nomem(err, "the report") : E_OK;
}
