/*
 * The leak ranking as Markdown. Names come from profiles: everything in them that Markdown or HTML could take for its own is
 * written as a character reference.
 */
#include "report/leaks_words.h"
#include "report/words.h"

#include <string.h>

#define FRAMES_SHOWN 4

static void add_plain(const char *text, size_t length, struct buf *out)
{
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		bool plain = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
		             c == ' ' || c == ':' || c == '.' || c == '/' || c == '(' || c == ')' || c == ',' || c == '-';
		if (plain)
			buf_addc(out, (char)c);
		else
			buf_printf(out, c == '@' ? "&#%u;&#8203;" : "&#%u;", c);    /* "@name" would call somebody */
	}
}

static void add_code(const char *text, size_t length, struct buf *out)
{
	buf_adds(out, "<code>");
	add_plain(text, length, out);
	buf_adds(out, "</code>");
}

static void add_row(const struct leaks *l, const struct growth *g, struct buf *out)
{
	struct buf name;
	double time;
	struct interval i;
	buf_init(&name, 1 << 24);
	buf_adds(out, "| ");
	leaks_rate(l, g->trend.slope.rate, out);
	buf_adds(out, " | ");
	leaks_rate_error(l, &g->trend.slope, out);
	buf_adds(out, " | ");
	words_change(l->s->view, leaks_change(l, g), out);
	buf_printf(out, " | %s | ", shape_name(g->trend.shape));
	if (l->o->limit > 0) {
		if (leaks_time_to_limit(l, g, &time, &i))
			leaks_time_text(l, time, i, out);
		buf_adds(out, " | ");
	}
	if (l->o->fail_above >= 0)
		buf_adds(out, growth_exceeds(g, l->o->fail_above) ? "**failed** | " : " | ");
	leaks_place(l, g, FRAMES_SHOWN, &name);
	if (name.len)
		add_code(name.data, name.len, out);
	buf_adds(out, " |\n");
	words_finish_part(&name, out);
}

static void add_table(const struct leaks *l, struct buf *out)
{
	buf_adds(out, "\n| rate | ± | growth | shape |");
	if (l->o->limit > 0)
		buf_adds(out, " to limit |");
	if (l->o->fail_above >= 0)
		buf_adds(out, " gate |");
	buf_printf(out, " %s |\n|---:|---:|---:|---|", leaks_places(l));
	if (l->o->limit > 0)
		buf_adds(out, "---|");
	if (l->o->fail_above >= 0)
		buf_adds(out, "---|");
	buf_adds(out, "---|\n");
	for (size_t i = 0; i < l->shown; i++)
		add_row(l, &l->s->places[l->s->order[i]], out);
}

static void add_head(const struct leaks *l, struct buf *out)
{
	const struct view *v = l->s->view;
	const struct growth *g = &l->s->total;
	buf_adds(out, "### Memory growth: ");
	if (l->o->fail_above >= 0)
		leaks_verdict(l, out);
	else
		buf_printf(out, "%zu %s%s steadily", l->s->n_steady, leaks_places(l), l->s->n_steady == 1 ? " grows" : "s grow");
	buf_adds(out, "\n\n");
	leaks_range(l, out);
	buf_adds(out, ", ");
	add_code(v->type, strlen(v->type), out);
	buf_addc(out, ' ');
	words_amount(v, g->values[0].value, out);
	buf_adds(out, " → ");
	words_amount(v, g->values[l->s->n_snapshots - 1].value, out);
	buf_adds(out, ", in all ");
	leaks_rate(l, g->trend.slope.rate, out);
	buf_addc(out, ' ');
	leaks_rate_error(l, &g->trend.slope, out);
	buf_printf(out, " (%s).\n", shape_name(g->trend.shape));
}

int report_leaks_markdown(const struct series *s, const struct leaks_options *o, struct buf *out, struct error *err)
{
	struct leaks l;
	struct buf text;
	leaks_init(&l, s, o);
	buf_init(&text, 1 << 24);
	add_head(&l, out);
	if (l.shown)
		add_table(&l, out);
	leaks_advice(&l, &text);
	if (text.len) {
		buf_addc(out, '\n');
		add_plain(text.data, text.len, out);
		buf_addc(out, '\n');
	}
	for (size_t at = 0; at < l.notes.text.len; at += strlen(l.notes.text.data + at) + 1) {
		buf_adds(out, "\n* ");
		add_plain(l.notes.text.data + at, strlen(l.notes.text.data + at), out);
		buf_addc(out, '\n');
	}
	words_finish_part(&text, out);
	leaks_finish(&l);
	return out->failed ? error_nomem(err, "the report") : E_OK;
}
