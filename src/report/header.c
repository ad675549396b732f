/*
 * The header answers what a stranger asks of a pasted table: of what process, when,
 * measuring what, how much in all, and how sure. Notes come last and only when they
 * change how the table is to be read.
 */
#include "report/header.h"

#include "base/text.h"
#include "report/table.h"
#include "report/words.h"

#include <math.h>
#include <string.h>
#include <time.h>

#define FEW_SAMPLES 100     /* in all: ± above 20 % */
#define LG_SENSIBLE 12      /* finer rates cost as much as recording everything */
#define LABEL_COLUMNS 10
#define MOST_SOURCES 8      /* named one by one */
#define MOST_SAMPLES 1e6    /* more say nothing: blocks far larger than the rate are never missed */

/* --- facts ---------------------------------------------------------------- */

double header_rate(const struct view *v)
{
	double rate = 0;
	for (size_t i = 0; i < v->profile->n_sources; i++)
		rate = fmax(rate, v->profile->sources[i].rate);
	return rate;
}

unsigned header_lg(double rate)
{
	return rate < 2 ? 0 : (unsigned)floor(log2(rate));
}

/* The only source of that side, or NULL. */
static const struct source *only_source(const struct view *v, bool base)
{
	const struct source *found = NULL;
	for (size_t i = 0; i < v->profile->n_sources; i++) {
		const struct source *s = &v->profile->sources[i];
		if (s->base != base)
			continue;
		if (found)
			return NULL;
		found = s;
	}
	return found;
}

bool header_one_process(const struct view *v)
{
	const struct source *a = only_source(v, true), *b = only_source(v, false);
	return a && b && a->process && a->process == b->process && (!a->pid || !b->pid || a->pid == b->pid);
}

double header_seconds_between(const struct view *v)
{
	const struct source *a = only_source(v, true), *b = only_source(v, false);
	if (!header_one_process(v) || !a->time_nanos || !b->time_nanos || b->time_nanos <= a->time_nanos)
		return 0;
	return (double)(b->time_nanos - a->time_nanos) * 1e-9;
}

/* Did accumulated counts narrow any row's error? */
static bool uses_accumulated(const struct view *v)
{
	for (size_t i = 0; i < v->n_rows; i++) {
		const struct amount *a = &v->rows[i].amount;
		if (a->gained.value != a->now || a->lost.value != a->base)
			return true;
	}
	return false;
}

static bool metric_is(const struct view *v, enum metric m)
{
	return v->profile->metric[m] >= 0 && v->profile->metric[m] == v->column;
}

const char *header_metric_meaning(const struct view *v)
{
	if (metric_is(v, INUSE_SPACE))
		return "bytes allocated and not yet freed";
	if (metric_is(v, INUSE_OBJECTS))
		return "blocks allocated and not yet freed";
	if (metric_is(v, ALLOC_SPACE))
		return "bytes allocated so far, freed ones included";
	if (metric_is(v, ALLOC_OBJECTS))
		return "blocks allocated so far, freed ones included";
	return NULL;
}

/* --- notes ---------------------------------------------------------------- */

void notes_init(struct notes *n)
{
	buf_init(&n->text, 1 << 20);
}

void notes_finish(struct notes *n)
{
	buf_finish(&n->text);
}

struct buf *notes_begin(struct notes *n)
{
	return &n->text;
}

void notes_end(struct notes *n)
{
	buf_addc(&n->text, '\0');
}

static void note_few_samples(const struct view *v, struct notes *n)
{
	double samples = estimate_samples(v->total.gained), rate = header_rate(v);
	if (v->diff || !v->has_error || rate <= 1 || samples >= FEW_SAMPLES || v->total.now == 0)
		return;
	if (!(v->total.gained.variance > 0))
		return;
	/* ±10 % takes (1.96 / 0.1)^2 samples. */
	double wanted = pow(ESTIMATE_Z95 / 0.1, 2);
	struct buf *b = notes_begin(n);
	buf_adds(b, "few samples (about ");
	text_add_count(b, samples);
	unsigned lg = header_lg(rate * samples / wanted);
	buf_adds(b, "), so ± is wide: more load or more time may help, a finer rate does (jemalloc: lg_prof_sample:");
	if (lg >= LG_SENSIBLE)
		buf_printf(b, "%u for about ±10%% of the total)", lg);
	else
		buf_adds(b, "0 records every allocation)");
	notes_end(n);
}

static void note_no_error(const struct view *v, struct notes *n)
{
	if (v->has_error || !header_metric_meaning(v))
		return;
	buf_adds(notes_begin(n), "no ±: the profile does not say its sampling rate, so the error is unknown");
	notes_end(n);
}

/* What the stacks of one source add up to. */
static double source_bytes(const struct profile *p, uint32_t source)
{
	int column = p->metric[INUSE_SPACE];
	double sum = 0;
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->samples[i].source == source)
			sum += (double)p->values[i * p->n_types + (size_t)column];
	return sum;
}

/*
 * jemalloc's header counts what its stacks should add up to. Counts that were not unbiased (<= 5.2) are
 * scaled by the header's mean size, which is only roughly right: there the tolerance is wide.
 */
static void note_header(const struct view *v, uint32_t source, struct notes *n)
{
	const struct source *s = &v->profile->sources[source];
	if (s->header_bytes < 0 || v->profile->metric[INUSE_SPACE] < 0)
		return;
	double stacks = source_bytes(v->profile, source), header = s->header_bytes;
	double tolerance = fmax(header, stacks) * (s->raw_counts ? 0.3 : 0.02) + 3 * s->rate;
	if (fabs(header - stacks) <= tolerance)
		return;
	struct buf *b = notes_begin(n);
	buf_printf(b, "the header of %s accounts for ", profile_text(v->profile, s->name));
	text_add_bytes(b, header);
	buf_adds(b, ", its stacks for ");
	text_add_bytes(b, stacks);
	buf_adds(b, stacks < header ? ": the dump may be incomplete (a full disk cuts it silently)"
	                            : ": the dump may be damaged, or was edited");
	notes_end(n);
}

static void note_raw_counts(const struct view *v, struct notes *n)
{
	for (size_t i = 0; i < v->profile->n_sources; i++) {
		const struct source *s = &v->profile->sources[i];
		if (!s->raw_counts || s->rate <= 1)
			continue;
		buf_adds(notes_begin(n), "this jemalloc (<= 5.2, or prof_unbias:false) prints raw sample counts: stacks "
		                         "that mix block sizes are estimated from their mean size, which is biased");
		notes_end(n);
		return;
	}
}

static void note_filters(const struct view *v, struct notes *n)
{
	const struct amount *part = &v->total, *all = &v->total_all;
	if (part->now == all->now && part->base == all->base)
		return;
	struct buf *b = notes_begin(n);
	buf_adds(b, "filters left ");
	words_amount(v, part->now, b);
	buf_adds(b, " of ");
	words_amount(v, all->now, b);
	if (all->now > 0) {
		buf_adds(b, " (");
		words_percent(part->now, all->now, b);
		buf_adds(b, ")");
	}
	if (v->diff) {
		buf_adds(b, ", in the base ");
		words_amount(v, part->base, b);
		buf_adds(b, " of ");
		words_amount(v, all->base, b);
	} else {
		buf_adds(b, "; percentages refer to all of it");
	}
	notes_end(n);
}

/* How the error of a diff was bound. */
static void note_diff(const struct view *v, struct notes *n)
{
	if (!v->diff)
		return;
	struct buf *b = notes_begin(n);
	if (!v->has_error)
		buf_adds(b, "changes carry no ±: their sampling error is unknown");
	else if (header_rate(v) <= 1)
		buf_adds(b, "every allocation was recorded: changes are exact");
	else if (!header_one_process(v))
		buf_adds(b, "not known to be the same process: base and new are independent, their errors add");
	else if (uses_accumulated(v))
		buf_adds(b, "same process: blocks live in both cancel; ± comes from what was allocated and freed in "
		            "between (accumulated counts)");
	else
		buf_adds(b, "same process: blocks live in both cancel, but the dumps don't say which; ± is a safe upper "
		            "bound (prof_accum:true would narrow it)");
	notes_end(n);
}

void header_notes(const struct view *v, struct notes *n)
{
	note_diff(v, n);
	note_few_samples(v, n);
	note_no_error(v, n);
	for (uint32_t i = 0; i < v->profile->n_sources && i < MOST_SOURCES; i++)
		note_header(v, i, n);
	note_raw_counts(v, n);
	note_filters(v, n);
}

/* --- text ----------------------------------------------------------------- */

/* "Process:  ", in bold on a terminal. */
void header_label(const struct report_style *s, const char *name, struct buf *out)
{
	buf_adds(out, tone_begin(s, TONE_BOLD));
	buf_adds(out, name);
	buf_addc(out, ':');
	buf_adds(out, tone_end(s, TONE_BOLD));
	for (size_t n = strlen(name) + 1; n < LABEL_COLUMNS; n++)
		buf_addc(out, ' ');
}

static void add_string(const struct view *v, uint32_t id, struct buf *out)
{
	text_add_terminal(out, profile_text(v->profile, id), strings_length(&v->profile->strings, id));
}

static void add_program(const struct view *v, struct buf *out)
{
	const struct profile *p = v->profile;
	if (p->n_mappings && p->mappings[0].file)
		add_string(v, p->mappings[0].file, out);
}

/* "name, pid 12, 2026-11-21 03:33:10 UTC"; the name of a running process begins with its number itself. */
static void add_source(const struct view *v, const struct source *s, struct buf *out)
{
	if (s->name)
		add_string(v, s->name, out);
	else
		buf_adds(out, "(unnamed)");
	if (s->pid && !(s->name && strncmp(profile_text(v->profile, s->name), "pid ", 4) == 0))
		buf_printf(out, ", pid %llu", (unsigned long long)s->pid);
	if (s->time_nanos > 0) {
		buf_adds(out, ", ");
		words_time(s->time_nanos, out);
	}
}

static void add_sources(const struct view *v, bool base, const char *name, const struct report_style *s,
                        struct buf *out)
{
	size_t shown = 0, all = 0;
	for (size_t i = 0; i < v->profile->n_sources; i++) {
		if (v->profile->sources[i].base != base || all++ >= MOST_SOURCES)
			continue;
		if (shown++ == 0)
			header_label(s, name, out);
		else
			buf_adds(out, "          ");
		add_source(v, &v->profile->sources[i], out);
		double seconds = !base && v->diff && all == 1 ? header_seconds_between(v) : 0;
		if (seconds > 0) {
			buf_adds(out, ", ");
			words_duration(seconds, out);
			buf_adds(out, " later");
		}
		buf_addc(out, '\n');
	}
	if (all > shown)
		buf_printf(out, "          and %zu more\n", all - shown);
}

static void add_origin(const struct view *v, const struct report_style *s, struct buf *out)
{
	struct buf program;
	buf_init(&program, 1 << 20);
	add_program(v, &program);
	if (v->diff) {
		add_sources(v, true, "Base", s, out);
		add_sources(v, false, "New", s, out);
	} else {
		add_sources(v, false, v->profile->n_sources > 1 ? "Files" : "File", s, out);
	}
	/* Merged profiles may be of different programs. */
	if (program.len && (v->diff || v->profile->n_sources == 1)) {
		header_label(s, "Process", out);
		buf_add(out, program.data, program.len);
		buf_addc(out, '\n');
	}
	const struct source *only = v->diff ? NULL : only_source(v, false);
	if (only && only->duration_nanos > 0) {
		header_label(s, "Duration", out);
		words_duration((double)only->duration_nanos * 1e-9, out);
		buf_addc(out, '\n');
	}
	words_finish_part(&program, out);
}

static void add_error(const struct view *v, const struct amount *a, struct buf *out)
{
	size_t before = out->len;
	buf_addc(out, ' ');
	words_error(v, a, out);
	if (!out->failed && out->len == before + 1) {
		buf_cut(out, before);
	}
}

static void add_total(const struct view *v, struct buf *out)
{
	if (v->diff) {
		words_amount(v, v->total.base, out);
		buf_adds(out, " → ");
		words_amount(v, v->total.now, out);
		buf_adds(out, ", change ");
	}
	words_value(v, &v->total, out);
	add_error(v, &v->total, out);
	if (v->diff && amount_change(&v->total) != 0) {
		buf_adds(out, " (");
		words_change_percent(&v->total, out);
		buf_addc(out, ')');
	}
	if (v->has_error && header_rate(v) > 1)
		buf_adds(out, "; ± is the 95% sampling error");
}

void header_add_rate(const struct view *v, struct buf *out)
{
	double rate = header_rate(v), least = rate;
	for (size_t i = 0; i < v->profile->n_sources; i++)
		least = fmin(least, v->profile->sources[i].rate);
	if (rate <= 1) {
		buf_adds(out, "every allocation: exact");
		return;
	}
	buf_adds(out, "every ");
	if (least < rate) {
		text_add_bytes(out, least);
		buf_adds(out, " to ");
	}
	text_add_bytes(out, rate);
	buf_adds(out, " on average");
	if (least == rate && exp2(header_lg(rate)) == rate)
		buf_printf(out, " (lg %u)", header_lg(rate));
}

static void add_rate(const struct view *v, struct buf *out)
{
	header_add_rate(v, out);
	if (header_rate(v) <= 1)
		return;
	double samples = estimate_samples(v->total.gained);
	if (!v->diff && samples > 0 && samples < MOST_SAMPLES) {
		buf_adds(out, "; the total's error is that of about ");
		text_add_count(out, samples);
		buf_adds(out, samples < 1.5 ? " sample" : " samples");
	}
}

/* A labelled line, broken where the terminal ends. */
void header_line(const struct report_style *s, const char *name, struct buf *value, struct buf *out)
{
	header_label(s, name, out);
	words_paragraph(value->data ? value->data : "", value->len, LABEL_COLUMNS, LABEL_COLUMNS, s->columns, out);
	value->len = 0;
}

void header_text_notes(const struct notes *n, const struct report_style *s, struct buf *out)
{
	struct buf value;
	buf_init(&value, 1 << 24);
	for (size_t at = 0; at < n->text.len; at += strlen(n->text.data + at) + 1) {
		text_add_terminal(&value, n->text.data + at, strlen(n->text.data + at));
		header_line(s, "Note", &value, out);
	}
	buf_addc(out, '\n');
	out->failed = out->failed || n->text.failed;
	words_finish_part(&value, out);
}

void header_text(const struct view *v, const struct notes *n, const struct report_style *s, struct buf *out)
{
	struct buf value;
	buf_init(&value, 1 << 24);
	add_origin(v, s, out);
	text_add_terminal(&value, v->type, strlen(v->type));
	const char *meaning = header_metric_meaning(v);
	buf_adds(&value, meaning ? ": " : " in ");
	text_add_terminal(&value, meaning ? meaning : v->unit, strlen(meaning ? meaning : v->unit));
	header_line(s, "Metric", &value, out);
	add_total(v, &value);
	header_line(s, "Total", &value, out);
	if (v->has_error) {
		add_rate(v, &value);
		header_line(s, "Sampled", &value, out);
	}
	words_finish_part(&value, out);
	header_text_notes(n, s, out);
}

void report_header(struct view *v, const struct report_style *s, struct buf *out)
{
	struct notes notes;
	notes_init(&notes);
	header_notes(v, &notes);
	header_text(v, &notes, s, out);
	notes_finish(&notes);
}

/* --- JSON ----------------------------------------------------------------- */

static void json_hex(struct json *j, const char *key, uint64_t value)
{
	char hex[24];
	struct buf b = { .data = hex, .capacity = sizeof(hex), .max = sizeof(hex) - 1 };
	buf_printf(&b, "0x%llx", (unsigned long long)value);
	json_cstring(j, key, hex);
}

static void json_time(struct json *j, const char *key, int64_t nanos)
{
	struct tm tm;
	time_t seconds = (time_t)(nanos / 1000000000);
	if (nanos <= 0 || !gmtime_r(&seconds, &tm)) {
		json_null(j, key);
		return;
	}
	char text[80];
	struct buf b = { .data = text, .capacity = sizeof(text), .max = sizeof(text) - 1 };
	buf_printf(&b, "%04d-%02d-%02dT%02d:%02d:%02d.%09lldZ", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
	           tm.tm_hour, tm.tm_min, tm.tm_sec, (long long)(nanos % 1000000000));
	json_cstring(j, key, text);
}

static void json_source(struct json *j, const struct view *v, const struct source *s)
{
	json_open(j, NULL, '{');
	json_text(j, "name", profile_text(v->profile, s->name), strings_length(&v->profile->strings, s->name));
	json_bool(j, "base", s->base);
	if (s->rate > 0)
		json_number(j, "rate", s->rate);
	else
		json_null(j, "rate");
	json_time(j, "time", s->time_nanos);
	if (s->duration_nanos > 0)
		json_number(j, "duration_seconds", (double)s->duration_nanos * 1e-9);
	if (s->process)
		json_hex(j, "process", s->process);
	else
		json_null(j, "process");
	if (s->pid)
		json_integer(j, "pid", (int64_t)s->pid);
	else
		json_null(j, "pid");
	json_bool(j, "raw_counts", s->raw_counts);
	if (s->header_bytes >= 0)
		json_amount_number(j, "header_bytes", s->header_bytes);
	json_close(j, '}');
}

void header_json_origin(const struct view *v, struct json *j)
{
	const struct profile *p = v->profile;
	if (p->n_mappings && p->mappings[0].file)
		json_text(j, "program", profile_text(p, p->mappings[0].file),
		          strings_length(&p->strings, p->mappings[0].file));
	json_open(j, "sources", '[');
	for (size_t i = 0; i < p->n_sources; i++)
		json_source(j, v, &p->sources[i]);
	json_close(j, ']');
}

void header_json_notes(const struct notes *n, struct json *j)
{
	json_open(j, "notes", '[');
	for (size_t at = 0; at < n->text.len; at += strlen(n->text.data + at) + 1)
		json_cstring(j, NULL, n->text.data + at);
	json_close(j, ']');
	j->out->failed = j->out->failed || n->text.failed;
}

void header_json(const struct view *v, const char *report, const struct notes *n, struct json *j)
{
	json_open(j, NULL, '{');
	json_cstring(j, "report", report);
	json_integer(j, "version", 1);
	json_cstring(j, "metric", v->type);
	json_cstring(j, "unit", v->unit);
	json_cstring(j, "by", words_granularity(v->by));
	json_bool(j, "diff", v->diff);
	if (v->diff)
		json_bool(j, "same_process", header_one_process(v));
	header_json_origin(v, j);
	json_amount(j, "total", v, &v->total);
	json_amount(j, "total_before_filters", v, &v->total_all);
	if (v->has_error && !v->diff)
		json_number(j, "samples", estimate_samples(v->total.gained));
	header_json_notes(n, j);
}
