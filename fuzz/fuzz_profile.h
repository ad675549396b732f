/*
 * Runs a reader over bytes, strictly and with --partial, and checks what comes out: every index in
 * range, no negative value, an error with a text and without a profile. Broken promises abort.
 */
#ifndef FUZZ_PROFILE_H
#define FUZZ_PROFILE_H

#include <stdlib.h>
#include <string.h>

#include "format/format.h"

typedef int fuzz_read(struct stream *in, const struct read_limits *limits, struct read_report *report,
                      struct profile **ret, struct error *err);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void fuzz_require(bool holds)
{
	if (!holds)
		abort();
}

static inline void fuzz_check_profile(const struct profile *p)
{
	for (size_t i = 0; i < p->n_mappings; i++)
		fuzz_require(p->mappings[i].start < p->mappings[i].limit && p->mappings[i].file < p->strings.n);
	for (size_t i = 0; i < p->n_locations; i++) {
		const struct location *l = &p->locations[i];
		fuzz_require(l->mapping == PROFILE_NONE || l->mapping < p->n_mappings);
		fuzz_require(l->mapping == PROFILE_NONE || (l->address >= p->mappings[l->mapping].start &&
		                                            l->address < p->mappings[l->mapping].limit));
	}
	for (size_t i = 0; i < p->n_frames; i++)
		fuzz_require(p->frames[i] < p->n_locations);
	fuzz_require(p->n_values == p->n_samples * p->n_types);
	double sum = 0;
	for (size_t i = 0; i < p->n_values; i++) {
		fuzz_require(p->values[i] >= 0);
		sum += (double)p->values[i];
	}
	fuzz_require(sum < 9.3e18);
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sample *s = &p->samples[i];
		fuzz_require(s->stack < p->n_stacks && s->labels < p->n_label_sets && s->source < p->n_sources);
		const struct stack *stack = &p->stacks[s->stack];
		fuzz_require(stack->first + stack->n <= p->n_frames);
	}
}

static inline void fuzz_once(fuzz_read *read, const uint8_t *data, size_t size, bool partial)
{
	struct read_limits limits = {
		.input_bytes = 1 << 20, .profile_bytes = 1 << 24, .depth = 64, .gzip_ratio = 200,
		.gzip_ratio_from = 1 << 20, .partial = partial,
	};
	struct read_report report;
	struct stream in;
	struct profile *p = NULL;
	struct error err = { 0 };
	buf_init(&report.warnings, 1 << 16);
	stream_open_memory(&in, "input", data, size);
	int rc = read(&in, &limits, &report, &p, &err);
	stream_close(&in);
	if (rc == E_OK)
		fuzz_check_profile(p);
	else
		fuzz_require(rc < 0 && err.code == rc && strncmp(err.text, "input", 5) == 0 && !p);
	fuzz_require(report.warnings.len == 0 || report.warnings.data[report.warnings.len - 1] == '\n');
	profile_free(p);
	buf_finish(&report.warnings);
}

static inline void fuzz_reader(fuzz_read *read, const uint8_t *data, size_t size)
{
	fuzz_once(read, data, size, false);
	fuzz_once(read, data, size, true);
}

#endif
