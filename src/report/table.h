/*
 * A table of text: rows are collected first, then printed with aligned columns. The
 * last column holds names: it is cut in the middle where a terminal is too narrow,
 * and never in a pipe. A column that is empty in all rows is left out.
 */
#ifndef REPORT_TABLE_H
#define REPORT_TABLE_H

#include "report/report.h"

enum tone { TONE_PLAIN, TONE_BOLD, TONE_DIM, TONE_GROWN, TONE_SHRUNK };

struct table_column {
	const char *title;
	bool right;             /* numbers */
	uint8_t drop;           /* on a narrow terminal the highest goes first; 0 stays */
};

struct table_cell {
	size_t start;           /* in text */
	uint32_t bytes, lead;   /* lead: bytes at the front that are not cut */
	uint32_t columns;       /* on the terminal */
	uint8_t tone;
};

struct table_row {
	size_t first;           /* into cells */
	uint8_t n, tone;
	bool rule;              /* a line across */
};

/* Failure (no memory) is sticky; table_print tells. */
struct table {
	const struct table_column *columns;
	size_t n_columns;       /* at most TABLE_MAX_COLUMNS */
	struct buf text;
	struct table_cell *cells;   size_t n_cells, cells_capacity;
	struct table_row *rows;     size_t n_rows, rows_capacity;
	bool failed;
};

#define TABLE_MAX_COLUMNS 12

void table_init(struct table *t, const struct table_column *columns, size_t n_columns);
void table_finish(struct table *t);

void table_row(struct table *t, enum tone tone);
void table_rule(struct table *t);
/* Begins the next cell of the row; what is appended to the answer until the next call is its text. */
struct buf *table_cell(struct table *t);
void table_skip(struct table *t, size_t n);         /* n empty cells */
void table_cell_tone(struct table *t, enum tone tone);
/* What the cell holds so far (an indent) is never cut. */
void table_cell_lead(struct table *t);

int table_print(struct table *t, const struct report_style *s, struct buf *out, struct error *err);

/* Text in a tone: what goes before and behind; "" without colour. */
const char *tone_begin(const struct report_style *s, enum tone tone);
const char *tone_end(const struct report_style *s, enum tone tone);

/* Appends s (escaped text), cut in the middle with an ellipsis to that many columns; 0: whole. */
void table_add_cut(struct buf *out, const char *s, size_t bytes, size_t lead, size_t columns);

#endif
