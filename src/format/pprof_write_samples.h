/*
 * Samples as profile.proto has them. Everything they refer to has its number and is encoded before, so that any range
 * of them can be written at any time, by several threads at once. Private to pprof_write.c.
 */
#ifndef FORMAT_PPROF_WRITE_SAMPLES_H
#define FORMAT_PPROF_WRITE_SAMPLES_H

#include "format/pprof_encode.h"

struct sample_encoder {
	const struct profile *p;
	const struct wire_id *location_ids;     /* by location */
	const struct wire_labels *label_sets;   /* by label set */
	struct wire_labels base_label;          /* of samples of a diff's base */
	const char *label_bytes;
};

static inline bool sample_is_base(const struct profile *p, size_t index)
{
	uint32_t source = p->samples[index].source;
	return source < p->n_sources && p->sources[source].base;
}

/* Appends n samples (a gz_make). The base's values are negated; none of them is -2^63. */
void samples_encode(const void *encoder, size_t first, size_t n, struct buf *out);
/* Its bytes, roughly: a guess that depends on the profile alone. */
size_t sample_size_about(const struct sample_encoder *e, size_t index);

#endif
