/*
 * What stands above every report, as text and as JSON, and the notes in it: plain
 * sentences about how far the numbers can be trusted.
 */
#ifndef REPORT_HEADER_H
#define REPORT_HEADER_H

#include "report/json.h"
#include "report/report.h"

/* Sentences, each ended by a NUL; names in them are raw and are escaped when printed. */
struct notes {
	struct buf text;
};

void notes_init(struct notes *n);
void notes_finish(struct notes *n);
/* Append a sentence to the answer, then end it. */
struct buf *notes_begin(struct notes *n);
void notes_end(struct notes *n);

/* What can be said of the profile itself: few samples, counts that don't add up, filters, ... */
void header_notes(const struct view *v, struct notes *n);
void header_text(const struct view *v, const struct notes *n, const struct report_style *s, struct buf *out);
/* Opens the report's object and writes the keys all reports share; the caller goes on and closes it. */
void header_json(const struct view *v, const char *report, const struct notes *n, struct json *j);

/* Parts of the above, for a report with a header of its own. */
void header_label(const struct report_style *s, const char *name, struct buf *out);          /* "Process:  " */
/* A labelled line, broken where the terminal ends; value is emptied. */
void header_line(const struct report_style *s, const char *name, struct buf *value, struct buf *out);
void header_add_rate(const struct view *v, struct buf *out);    /* "every 512 KiB on average (lg 19)" */
void header_text_notes(const struct notes *n, const struct report_style *s, struct buf *out);   /* and the empty line below */
void header_json_origin(const struct view *v, struct json *j);  /* program, sources */
void header_json_notes(const struct notes *n, struct json *j);
/* "bytes allocated and not yet freed"; NULL when it is no heap metric. */
const char *header_metric_meaning(const struct view *v);

/* Are all sources of a diff dumps of one process? (Only then blocks present in both cancel.) */
bool header_one_process(const struct view *v);
/* Seconds from base to new, when both are known and it is one process; else 0. */
double header_seconds_between(const struct view *v);
/* The largest rate of any source; 0: unknown. */
double header_rate(const struct view *v);
/* The largest lg_prof_sample whose rate is at most that. */
unsigned header_lg(double rate);

#endif
