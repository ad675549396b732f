/*
 * jeheap_print [--partial|--quiet] FILE: what a reader made of a file, as lines that scripts compare. Paths are printed as
 * they are; everything else is numbers.
 *
 *   rate R raw 0|1 types N header OBJECTS BYTES period P
 *   mapping START LIMIT OFFSET X|- PATH
 *   sample BLOCK_SIZE VALUES... | THREAD | ADDRESS:MAPPING ...
 *   total VALUES...
 */
#include "format/format.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void print_frames(const struct profile *p, const struct stack *s)
{
	for (uint32_t i = 0; i < s->n; i++) {
		const struct location *l = &p->locations[p->frames[s->first + i]];
		printf(" %" PRIx64 ":%d", l->address, (int)l->mapping);
	}
	putchar('\n');
}

static void print_sample(const struct profile *p, size_t i)
{
	const struct sample *s = &p->samples[i];
	const struct label_set *set = &p->label_sets[s->labels];
	printf("sample %" PRIu64, set->block_size);
	for (size_t c = 0; c < p->n_types; c++)
		printf(" %" PRId64, p->values[i * p->n_types + c]);
	printf(" | %s |", profile_text(p, set->thread));
	print_frames(p, &p->stacks[s->stack]);
}

static void print_profile(const struct profile *p)
{
	const struct source *s = &p->sources[0];
	printf("rate %.0f raw %d types %zu header %.0f %.0f period %" PRId64 "\n", s->rate, s->raw_counts,
	       p->n_types, s->header_objects, s->header_bytes, p->period);
	for (size_t i = 0; i < p->n_mappings; i++) {
		const struct mapping *m = &p->mappings[i];
		printf("mapping %" PRIx64 " %" PRIx64 " %" PRIx64 " %c%s %s\n", m->start, m->limit, m->offset,
		       m->executable ? 'X' : '-', m->deleted ? " deleted" : "", profile_text(p, m->file));
	}
	for (size_t i = 0; i < p->n_samples; i++)
		print_sample(p, i);
	printf("total");
	for (size_t c = 0; c < p->n_types; c++) {
		int64_t sum = 0;
		for (size_t i = 0; i < p->n_samples; i++)
			sum += p->values[i * p->n_types + c];
		printf(" %" PRId64, sum);
	}
	putchar('\n');
}

int main(int argc, char **argv)
{
	struct read_limits limits = read_limits_default;
	struct read_report report;
	struct stream in;
	struct error err;
	struct profile *p = NULL;
	bool quiet = argc > 2 && !strcmp(argv[1], "--quiet");
	limits.partial = argc > 2 && !strcmp(argv[1], "--partial");
	if (argc < 2)
		return 2;
	buf_init(&report.warnings, 1 << 16);
	int rc = stream_open(&in, argv[argc - 1], &err);
	if (rc == E_OK) {
		rc = format_read(&in, &limits, &report, &p, &err);
		stream_close(&in);
	}
	if (report.warnings.len > 0)
		fprintf(stderr, "warning: %s", report.warnings.data);
	if (rc)
		fprintf(stderr, "error %d: %s\n", rc, err.text);
	else if (!quiet)
		print_profile(p);
	else
		printf("samples %zu stacks %zu frames %zu locations %zu\n", p->n_samples, p->n_stacks, p->n_frames, p->n_locations);
	profile_free(p);
	buf_finish(&report.warnings);
	return rc ? 1 : 0;
}
