/*
 * What the two ways from a dump to pprof say, as comparable texts: the model's (jeheap_read, pprof_write) and the stream's
 * (jeheap_to_pprof). Both are read again by pprof_read. For tests and the fuzzer: broken promises abort.
 */
#ifndef TESTS_FORMAT_STREAM_HELPERS_H
#define TESTS_FORMAT_STREAM_HELPERS_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/format.h"

static inline void stream_require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "does not hold: %s\n", what);
	abort();
}

#define STREAM_REQUIRE(expression) stream_require(expression, #expression)

/* Collects what comes; after so many bytes it refuses. */
struct gathered {
	struct buf bytes;
	size_t refuse_at;
};

static inline int gather(void *context, const void *bytes, size_t n, struct error *err)
{
	struct gathered *g = context;
	if (g->bytes.len + n > g->refuse_at)
		return error_set(err, E_IO, "the client is gone");
	buf_add(&g->bytes, bytes, n);
	return g->bytes.failed ? error_nomem(err, "the test") : E_OK;
}

static inline void say_labels(const struct profile *p, const struct label_set *set, struct buf *b)
{
	for (uint32_t i = 0; i < set->n; i++) {
		const struct label *l = &p->labels[set->first + i];
		buf_printf(b, " %s=%s%" PRId64 "%s", profile_text(p, l->key), profile_text(p, l->str), l->number,
		           profile_text(p, l->unit));
	}
}

/* Everything but names: those the model's file makes up, the stream's has none. */
static inline void say_profile(const struct profile *p, struct buf *b)
{
	const struct source *s = &p->sources[0];
	buf_printf(b, "period %" PRId64 " %s %s, default %s, drop %s, time %" PRId64 " + %" PRId64 ", process %" PRIx64 "\n",
	           p->period, profile_text(p, p->period_type), profile_text(p, p->period_unit),
	           profile_text(p, p->default_type), profile_text(p, p->drop_frames), s->time_nanos, s->duration_nanos,
	           profile_process_identity(p));
	for (size_t i = 0; i < p->n_types; i++)
		buf_printf(b, "%s %s\n", profile_text(p, p->types[i].type), profile_text(p, p->types[i].unit));
	for (size_t i = 0; i < p->n_comments; i++)
		buf_printf(b, "comment %s\n", profile_text(p, p->comments[i]));
	for (size_t i = 0; i < p->n_mappings; i++) {
		const struct mapping *m = &p->mappings[i];
		buf_printf(b, "mapping %" PRIx64 " %" PRIx64 " %" PRIx64 " %s %s\n", m->start, m->limit, m->offset,
		           profile_text(p, m->file), profile_text(p, m->build_id));
	}
	buf_printf(b, "%zu locations\n", p->n_locations);
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct stack *stack = &p->stacks[p->samples[i].stack];
		for (size_t c = 0; c < p->n_types; c++)
			buf_printf(b, "%" PRId64 " ", p->values[i * p->n_types + c]);
		say_labels(p, &p->label_sets[p->samples[i].labels], b);
		for (uint32_t f = 0; f < stack->n; f++) {
			const struct location *l = &p->locations[p->frames[stack->first + f]];
			buf_printf(b, " %" PRIx64 ":%d", l->address, (int)l->mapping);
		}
		buf_addc(b, '\n');
	}
	STREAM_REQUIRE(!b->failed);
}

static inline int read_pprof(const struct buf *bytes, const struct read_limits *limits, struct profile **ret, struct error *err)
{
	return pprof_read(bytes->data ? bytes->data : "", bytes->len, "written", limits, ret, err);
}

/* The model's text. *ret_raw: what it took the counts for. */
static inline int model_says(const void *bytes, size_t n, const struct read_limits *limits, bool *ret_raw, struct buf *text,
                             struct error *err)
{
	struct stream in;
	struct profile *p = NULL, *again = NULL;
	struct buf written;
	struct error ignored = { 0 };
	struct pprof_write_options plain = { .gzip = false };
	stream_open_memory(&in, "input", bytes, n);
	int rc = jeheap_read(&in, limits, NULL, &p, err);
	stream_close(&in);
	if (rc)
		return rc;
	*ret_raw = p->sources[0].raw_counts;
	buf_init(&written, BUF_MAX_DEFAULT);
	STREAM_REQUIRE(pprof_write(p, &plain, &written, &ignored) == E_OK);
	STREAM_REQUIRE(read_pprof(&written, &read_limits_default, &again, &ignored) == E_OK);
	say_profile(again, text);
	profile_free(again);
	profile_free(p);
	buf_finish(&written);
	return E_OK;
}

/* The profile in a gzip file; an error when it isn't whole. */
static inline int gathered_profile(const struct gathered *g, struct profile **ret, struct error *err)
{
	struct buf plain;
	buf_init(&plain, BUF_MAX_DEFAULT);
	int rc = gz_inflate(g->bytes.data ? g->bytes.data : "", g->bytes.len, "written", &read_limits_default, &plain, err);
	if (rc == E_OK)
		rc = read_pprof(&plain, &read_limits_default, ret, err);
	buf_finish(&plain);
	return rc;
}

/* What the stream makes, into *g, whose bytes are no gzip file when that fails. */
static inline int stream_converts(struct stream *in, const struct read_limits *limits, const struct jeheap_stream_options *o,
                                  struct gathered *g, struct error *err)
{
	*g = (struct gathered){ .refuse_at = SIZE_MAX };
	buf_init(&g->bytes, BUF_MAX_DEFAULT);
	int rc = jeheap_to_pprof(in, limits, o, gather, g, err);
	if (rc) {
		struct profile *p;
		struct error ignored;
		STREAM_REQUIRE(gathered_profile(g, &p, &ignored) != E_OK);
	}
	return rc;
}

/* The stream's text. */
static inline int stream_says(const void *bytes, size_t n, const struct read_limits *limits,
                              const struct jeheap_stream_options *o, struct buf *text, struct error *err)
{
	struct stream in;
	struct gathered g;
	struct profile *p = NULL;
	struct error ignored = { 0 };
	stream_open_memory(&in, "input", bytes, n);
	int rc = stream_converts(&in, limits, o, &g, err);
	stream_close(&in);
	if (rc == E_OK) {
		STREAM_REQUIRE(gathered_profile(&g, &p, &ignored) == E_OK);
		say_profile(p, text);
		STREAM_REQUIRE(p->n_functions == 0);
		for (size_t i = 0; i < p->n_mappings; i++)
			STREAM_REQUIRE(!p->mappings[i].has_functions);
		profile_free(p);
	}
	buf_finish(&g.bytes);
	return rc;
}

/*
 * Both ways say the same or refuse for the same reason, but for what the stream may also refuse (format.h). Returns what the
 * model said; *ret_both: and the stream.
 */
static inline int must_agree(const void *bytes, size_t n, const struct read_limits *limits, enum jeheap_counts counts,
                             bool *ret_both)
{
	struct buf model, stream;
	struct error model_error = { 0 }, error = { 0 };
	bool raw = false;
	buf_init(&model, BUF_MAX_DEFAULT);
	buf_init(&stream, BUF_MAX_DEFAULT);
	int rc = model_says(bytes, n, limits, &raw, &model, &model_error);
	struct jeheap_stream_options o = { .counts = counts };
	if (counts != JEHEAP_COUNTS_BY_HEADER)
		o.counts = raw ? JEHEAP_COUNTS_RAW : JEHEAP_COUNTS_UNBIASED;
	int stream_rc = stream_says(bytes, n, limits, &o, &stream, &error);
	*ret_both = rc == E_OK && stream_rc == E_OK;
	bool more = stream_rc == E_UNSUPPORTED || (stream_rc == E_TRUNCATED && strstr(error.text, "no MAPPED_LIBRARIES"));
	bool less = rc == E_LIMIT && strstr(model_error.text, "no memory");
	bool same = *ret_both ? stream.len == model.len && !memcmp(stream.data, model.data, stream.len)
	                      : rc == stream_rc && !strcmp(error.text, model_error.text);
	if (!same && !more && !less) {
		fprintf(stderr, "--- model: %d %s\n%.3000s--- stream: %d %s\n%.3000s", rc, model_error.text,
		        model.data ? model.data : "", stream_rc, error.text, stream.data ? stream.data : "");
		abort();
	}
	buf_finish(&model);
	buf_finish(&stream);
	return rc;
}

#endif
