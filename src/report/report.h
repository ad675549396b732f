/*
 * Reports: text (and JSON) made from a view for people to read. Each appends to a buf;
 * names are escaped for the terminal; colour and width come from the style, so a pipe
 * gets plain text. Every text report begins with the header; the shape of the JSON is in
 * docs/json.md. All take a diff (v->diff): amounts are then changes, and noise is marked.
 * Errors: E_NOMEM, and E_USAGE where a report says so.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/buf.h"
#include "profile/series.h"
#include "profile/view.h"

struct report_style {
	bool colour;
	uint32_t columns;       /* width of the terminal; 0: no limit (a pipe) */
};

struct top_options {
	uint32_t n;             /* rows; 0: all */
	enum view_sort sort;
};

/* What stands above every report: type, rate, process, time, totals, and notes (diff: which is base). */
void report_header(struct view *v, const struct report_style *s, struct buf *out);

/*
 * "±3%" when there are samples enough, else "-62%/+140%"; "" without error; "exact" never: R = 1 is plainly "".
 * "<1.5 MiB" when nothing was sampled. For a diff the half width as a size: "±1.2 MiB", or both
 * sides, "-1.0 MiB/+1.9 MiB", where few samples make them differ.
 */
void report_error_text(const struct amount *a, bool diff, bool bytes, struct buf *out);

int report_top(struct view *v, const struct top_options *o, const struct report_style *s, struct buf *out, struct error *err);
int report_top_json(struct view *v, const struct top_options *o, struct buf *out, struct error *err);

struct tree_options {
	bool inverted;
	double min_fraction;    /* nodes smaller than this part of the total are cut (0.005) */
	uint32_t max_depth;     /* 0: none */
};

int report_tree(struct view *v, const struct tree_options *o, const struct report_style *s, struct buf *out, struct error *err);
int report_tree_json(struct view *v, const struct tree_options *o, struct buf *out, struct error *err);
/* Callers and callees of every entry whose name or file matches the expression. E_USAGE when none does. */
int report_peek(struct view *v, const char *regex, const struct report_style *s, struct buf *out, struct error *err);
int report_peek_json(struct view *v, const char *regex, struct buf *out, struct error *err);
/* Full stacks, biggest first. */
int report_traces(struct view *v, uint32_t n, const struct report_style *s, struct buf *out, struct error *err);
int report_traces_json(struct view *v, uint32_t n, struct buf *out, struct error *err);
/* What grew and shrank, noise marked and put last. E_USAGE when the view is no diff. */
int report_diff(struct view *v, const struct top_options *o, const struct report_style *s, struct buf *out, struct error *err);
int report_diff_json(struct view *v, const struct top_options *o, struct buf *out, struct error *err);

struct leaks_options {
	uint32_t n;             /* rows; 0: all */
	bool all;               /* noise and what shrank too */
	double limit;           /* the metric's total that is the end; 0: none */
	double fail_above;      /* of the gate, per second or snapshot like the series' times; < 0: no gate */
	const char *gate;       /* as it was asked for: "1M/h" */
	const char *notes;      /* whole lines on how the series was put together; NULL: none */
};

/* What grows over a series, steady growth first, with what is sure of it. */
int report_leaks(const struct series *s, const struct leaks_options *o, const struct report_style *style, struct buf *out, struct error *err);
int report_leaks_json(const struct series *s, const struct leaks_options *o, struct buf *out, struct error *err);
/* For a comment on a change, GitHub's and GitLab's Markdown. */
int report_leaks_markdown(const struct series *s, const struct leaks_options *o, struct buf *out, struct error *err);
/* Does the gate trip: does a place, or all together, exceed fail_above (growth_exceeds)? */
bool report_leaks_tripped(const struct series *s, const struct leaks_options *o);

/* What --fail-above says: "1M/h", "100k/min", "64k/snapshot". */
struct leaks_gate {
	const char *text;       /* borrowed */
	double bytes, seconds;  /* bytes in so many seconds; 0: from one snapshot to the next */
};
bool leaks_gate_parse(const char *text, struct leaks_gate *ret);
/* In the unit of the series' times, for leaks_options.fail_above. E_USAGE: the series is too short, or has no times. */
int leaks_gate_rate(const struct leaks_gate *g, const struct series *s, double *ret, struct error *err);
/* "ms", "s", "min", "h", ... */
bool leaks_time_unit(const char *text, double *ret_seconds);

struct flame_options {
	const char *title;      /* NULL: made from the view */
	bool inverted;
	uint32_t width;         /* pixels; 0: 1200 */
};

/* Standalone SVG with hover, click to zoom, search; a diff is coloured blue-orange with noise grey. */
int report_flame_svg(struct view *v, const struct flame_options *o, struct buf *out, struct error *err);
/* Graphviz call graph, trimmed like pprof's. */
int report_dot(struct view *v, struct buf *out, struct error *err);

#endif
