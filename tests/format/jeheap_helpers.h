/* Reading profiles from memory, and what came out as one comparable text. */
#ifndef TESTS_FORMAT_JEHEAP_HELPERS_H
#define TESTS_FORMAT_JEHEAP_HELPERS_H

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"

typedef int reader(struct stream *in, const struct read_limits *limits, struct read_report *report,
                   struct profile **ret, struct error *err);

struct outcome {
	int rc;
	struct profile *profile;
	struct error error;
	struct read_report report;
};

static inline struct outcome read_bytes(reader *read, const void *bytes, size_t n, bool partial)
{
	struct outcome o = { 0 };
	struct read_limits limits = read_limits_default;
	struct stream in;
	limits.partial = partial;
	buf_init(&o.report.warnings, 1 << 20);
	stream_open_memory(&in, "input", bytes, n);
	o.rc = read(&in, &limits, &o.report, &o.profile, &o.error);
	stream_close(&in);
	if (o.rc) {
		assert_null(o.profile);
		assert_int_equal(o.rc, o.error.code);
		assert_true(o.rc == E_NOMEM || strstr(o.error.text, "input"));
		assert_null(strchr(o.error.text, '\n'));
	}
	return o;
}

/* A text that must be read without an error. */
static inline struct outcome read_text(reader *read, const char *text)
{
	struct outcome o = read_bytes(read, text, strlen(text), false);
	if (o.rc != E_OK)
		fail_msg("for \"%.60s\": code %d, \"%s\"", text, o.rc, o.error.text);
	return o;
}

static inline void outcome_finish(struct outcome *o)
{
	profile_free(o->profile);
	buf_finish(&o->report.warnings);
}

static inline bool warned(const struct outcome *o, const char *of)
{
	return o->report.warnings.len > 0 && strstr(o->report.warnings.data, of);
}

/* How many blocks each of n sampled ones stands for, of b bytes together. */
static inline double scale(double n, double b, double rate)
{
	return 1 / (1 - exp(-(b / n) / rate));
}

static inline int64_t total(const struct profile *p, enum metric m)
{
	int64_t sum = 0;
	assert_true(p->metric[m] >= 0);
	for (size_t i = 0; i < p->n_samples; i++)
		sum += p->values[i * p->n_types + (size_t)p->metric[m]];
	return sum;
}

/* Samples with values, threads and addresses; with the files the frames are in, or not. */
static inline void describe(const struct profile *p, bool files, struct buf *b)
{
	buf_printf(b, "%.0f %d %zu\n", p->sources[0].rate, p->sources[0].raw_counts, p->n_types);
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sample *s = &p->samples[i];
		const struct label_set *set = &p->label_sets[s->labels];
		const struct stack *stack = &p->stacks[s->stack];
		buf_printf(b, "%" PRIu64, set->block_size);
		for (size_t c = 0; c < p->n_types; c++)
			buf_printf(b, " %" PRId64, p->values[i * p->n_types + c]);
		buf_addc(b, ' ');
		buf_add(b, profile_text(p, set->thread), strings_length(&p->strings, set->thread));
		for (uint32_t f = 0; f < stack->n; f++) {
			const struct location *l = &p->locations[p->frames[stack->first + f]];
			buf_printf(b, " %" PRIx64, l->address);
			if (files && l->mapping != PROFILE_NONE)
				buf_printf(b, "=%s+%" PRIx64, profile_text(p, p->mappings[l->mapping].file),
				           location_file_offset(p, l));
		}
		buf_addc(b, '\n');
	}
	assert_false(b->failed);
}

static inline void assert_error(reader *read, const char *text, size_t n, int code, const char *says)
{
	struct outcome o = read_bytes(read, text, n, false);
	if (o.rc != code || !strstr(o.error.text, says))
		fail_msg("for \"%.60s\": code %d, \"%s\"; expected code %d, \"%s\"", text, o.rc,
		         o.rc ? o.error.text : "", code, says);
	outcome_finish(&o);
}

struct bad_text {
	const char *text;
	int code;
	const char *says;
};

static inline void assert_errors(reader *read, const struct bad_text *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_error(read, cases[i].text, strlen(cases[i].text), cases[i].code, cases[i].says);
}

#endif
