/*
 * Folded text gives an error of one line, or a profile in which everything refers to something and
 * no stack is lost.
 */
#include "format/format.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct read_limits limits = {
	.input_bytes = 1 << 20,
	.profile_bytes = 1 << 20,
	.depth = 200,
	.gzip_ratio = 200,
	.gzip_ratio_from = 1 << 20,
};

static void check(const struct profile *p)
{
	if (p->n_types != 1 || p->n_values != p->n_samples || p->n_sources < 1 || p->n_sources > 2)
		abort();
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sample *s = &p->samples[i];
		if (s->source >= p->n_sources || s->stack >= p->n_stacks || p->values[i] < 0)
			abort();
		const struct stack *stack = &p->stacks[s->stack];
		for (uint32_t k = 0; k < stack->n; k++) {
			const struct location *l = &p->locations[p->frames[stack->first + k]];
			if (l->n_lines != 1 || p->functions[p->lines[l->first_line].function].name == 0)
				abort();
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct error err = { 0 };
	struct read_report report;
	struct profile *p;
	struct stream in;
	buf_init(&report.warnings, 1 << 20);
	stream_open_memory(&in, "fuzz", data, n);
	if (folded_read(&in, &limits, &report, &p, &err) == E_OK) {
		check(p);
		profile_free(p);
	} else if (!err.code || !err.text[0] || strchr(err.text, '\n')) {
		abort();
	}
	stream_close(&in);
	buf_finish(&report.warnings);
	return 0;
}
