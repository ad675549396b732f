/*
 * Cells are slices of one text buffer, measured when they are complete. Printing looks
 * for each column's width first, gives the name what is left of the terminal, and
 * leaves out columns by their drop rank while the name gets too little.
 */
#include "report/table.h"

#include "base/memory.h"
#include "base/text.h"

#include <stdlib.h>

#define NAME_WANTED 30      /* columns below which others are dropped */
#define NAME_LEAST 12
#define MAX_CELLS ((size_t)1 << 30)

void table_init(struct table *t, const struct table_column *columns, size_t n_columns)
{
	*t = (struct table){ .columns = columns, .n_columns = n_columns };
	buf_init(&t->text, BUF_MAX_DEFAULT);
}

void table_finish(struct table *t)
{
	if (!t)
		return;
	buf_finish(&t->text);
	free(t->cells);
	free(t->rows);
}

/* The open cell ends where the text ends now. */
static void close_cell(struct table *t)
{
	if (!t->n_cells)
		return;
	struct table_cell *c = &t->cells[t->n_cells - 1];
	if (c->columns || t->text.failed || t->text.len - c->start > UINT32_MAX)
		return;
	c->bytes = (uint32_t)(t->text.len - c->start);
	if (c->bytes)
		c->columns = (uint32_t)text_columns(t->text.data + c->start, c->bytes);
}

static struct table_row *add_row(struct table *t)
{
	close_cell(t);
	struct table_row *r = ARRAY_PUSH(t->rows, t->n_rows, t->rows_capacity, MAX_CELLS);
	if (r)
		*r = (struct table_row){ .first = t->n_cells };
	else
		t->failed = true;
	return r;
}

void table_row(struct table *t, enum tone tone)
{
	struct table_row *r = add_row(t);
	if (r)
		r->tone = (uint8_t)tone;
}

void table_rule(struct table *t)
{
	struct table_row *r = add_row(t);
	if (r)
		r->rule = true;
}

struct buf *table_cell(struct table *t)
{
	close_cell(t);
	struct table_row *r = t->n_rows ? &t->rows[t->n_rows - 1] : NULL;
	struct table_cell *c = NULL;
	if (r && r->n < t->n_columns && !t->failed)
		c = ARRAY_PUSH(t->cells, t->n_cells, t->cells_capacity, MAX_CELLS);
	if (!c) {
		t->failed = true;
		return &t->text;
	}
	*c = (struct table_cell){ .start = t->text.len };
	r->n++;
	return &t->text;
}

void table_skip(struct table *t, size_t n)
{
	while (n--)
		table_cell(t);
}

void table_cell_tone(struct table *t, enum tone tone)
{
	if (t->n_cells)
		t->cells[t->n_cells - 1].tone = (uint8_t)tone;
}

void table_cell_lead(struct table *t)
{
	if (t->n_cells)
		t->cells[t->n_cells - 1].lead = (uint32_t)(t->text.len - t->cells[t->n_cells - 1].start);
}

/* --- printing ------------------------------------------------------------- */

const char *tone_begin(const struct report_style *s, enum tone tone)
{
	static const char *const codes[] = {
		[TONE_PLAIN] = "", [TONE_BOLD] = "\033[1m", [TONE_DIM] = "\033[2m",
		[TONE_GROWN] = "\033[31m", [TONE_SHRUNK] = "\033[32m",
	};
	return s->colour ? codes[tone] : "";
}

const char *tone_end(const struct report_style *s, enum tone tone)
{
	return s->colour && tone != TONE_PLAIN ? "\033[0m" : "";
}

/* Bytes that the first n characters take. */
static size_t bytes_of(const char *s, size_t bytes, size_t n)
{
	size_t at = 0;
	while (n-- && at < bytes) {
		size_t step = text_utf8_length(s + at, bytes - at);
		at += step ? step : 1;
	}
	return at;
}

void table_add_cut(struct buf *out, const char *s, size_t bytes, size_t lead, size_t columns)
{
	size_t all = text_columns(s, bytes);
	if (columns == 0 || all <= columns) {
		buf_add(out, s, bytes);
		return;
	}
	size_t led = text_columns(s, lead);
	size_t room = columns > led + NAME_LEAST ? columns - led : NAME_LEAST;
	if (all - led <= room) {
		buf_add(out, s, bytes);
		return;
	}
	size_t head = room / 2, tail = room - 1 - head;
	const char *name = s + lead;
	size_t name_bytes = bytes - lead;
	buf_add(out, s, lead);
	buf_add(out, name, bytes_of(name, name_bytes, head));
	buf_adds(out, "…");
	size_t skip = bytes_of(name, name_bytes, all - led - tail);
	buf_add(out, name + skip, name_bytes - skip);
}

struct layout {
	size_t width[TABLE_MAX_COLUMNS];    /* 0: left out */
	size_t name;                        /* columns the last one may take; 0: any */
	size_t before_name;                 /* columns taken by the others */
	size_t widest;                      /* line, for rules */
};

static void measure(const struct table *t, struct layout *l)
{
	size_t widest[TABLE_MAX_COLUMNS] = { 0 };
	for (size_t r = 0; r < t->n_rows; r++)
		for (size_t i = 0; i < t->rows[r].n; i++)
			if (widest[i] < t->cells[t->rows[r].first + i].columns)
				widest[i] = t->cells[t->rows[r].first + i].columns;
	size_t last = t->n_columns - 1;
	for (size_t i = 0; i <= last; i++) {
		const char *title = t->columns[i].title;
		size_t title_columns = text_columns(title, strlen(title));
		bool used = widest[i] || i == last;
		l->width[i] = !used ? 0 : widest[i] > title_columns ? widest[i] : title_columns;
		if (i < last && l->width[i])
			l->before_name += l->width[i] + 2;
	}
}

static void fit(const struct table *t, uint32_t columns, struct layout *l)
{
	size_t last = t->n_columns - 1;
	size_t wanted = l->width[last] < NAME_WANTED ? l->width[last] : NAME_WANTED;
	while (columns && l->before_name + wanted > columns) {
		size_t worst = last;
		for (size_t i = 0; i < last; i++)
			if (l->width[i] && t->columns[i].drop &&
			    (worst == last || t->columns[i].drop > t->columns[worst].drop))
				worst = i;
		if (worst == last)
			break;
		l->before_name -= l->width[worst] + 2;
		l->width[worst] = 0;
	}
	if (columns)
		l->name = columns > l->before_name + NAME_LEAST ? columns - l->before_name : NAME_LEAST;
	l->widest = l->before_name + (l->name && l->width[last] > l->name ? l->name : l->width[last]);
}

static void add_spaces(struct buf *out, size_t n)
{
	while (n--)
		buf_addc(out, ' ');
}

/* One cell of a column that is not the last; *owed are blanks held back so that no line ends in any. */
static void print_cell(const struct report_style *s, bool right, size_t width, const char *text,
                       const struct table_cell *c, size_t *owed, struct buf *out)
{
	size_t padding = width - c->columns;
	if (c->bytes) {
		add_spaces(out, *owed + (right ? padding : 0));
		buf_adds(out, tone_begin(s, c->tone));
		buf_add(out, text, c->bytes);
		buf_adds(out, tone_end(s, c->tone));
		*owed = (right ? 0 : padding) + 2;
	} else {
		*owed += width + 2;
	}
}

static void print_row(const struct table *t, const struct layout *l, const struct report_style *s,
                      const struct table_row *r, struct buf *out)
{
	size_t owed = 0, last = t->n_columns - 1;
	buf_adds(out, tone_begin(s, r->tone));
	for (size_t i = 0; i < r->n; i++) {
		struct table_cell c = t->cells[r->first + i];
		const char *text = c.bytes ? t->text.data + c.start : "";
		if (r->tone != TONE_PLAIN)
			c.tone = TONE_PLAIN;
		if (i == last && c.bytes) {
			add_spaces(out, owed);
			table_add_cut(out, text, c.bytes, c.lead, l->name);
		} else if (i < last && l->width[i]) {
			print_cell(s, t->columns[i].right, l->width[i], text, &c, &owed, out);
		}
	}
	buf_adds(out, tone_end(s, r->tone));
	buf_addc(out, '\n');
}

static void print_titles(const struct table *t, const struct layout *l, const struct report_style *s,
                         struct buf *out)
{
	size_t owed = 0;
	buf_adds(out, tone_begin(s, TONE_BOLD));
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *title = t->columns[i].title;
		if (!l->width[i])
			continue;
		struct table_cell c = { .bytes = (uint32_t)strlen(title),
			                .columns = (uint32_t)text_columns(title, strlen(title)) };
		print_cell(s, t->columns[i].right, l->width[i], title, &c, &owed, out);
	}
	buf_adds(out, tone_end(s, TONE_BOLD));
	buf_addc(out, '\n');
}

int table_print(struct table *t, const struct report_style *s, struct buf *out, struct error *err)
{
	struct layout l = { .name = 0 };
	close_cell(t);
	if (t->failed || t->text.failed)
		return error_nomem(err, "the report's rows");
	measure(t, &l);
	fit(t, s->columns, &l);
	print_titles(t, &l, s, out);
	for (size_t r = 0; r < t->n_rows; r++) {
		if (!t->rows[r].rule) {
			print_row(t, &l, s, &t->rows[r], out);
			continue;
		}
		for (size_t i = 0; i < l.widest && i < 100; i++)
			buf_addc(out, '-');
		buf_addc(out, '\n');
	}
	return out->failed ? error_nomem(err, "the report") : E_OK;
}
