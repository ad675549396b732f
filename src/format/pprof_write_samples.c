/* A sample's frames are most of it, and their ids are ready to be copied. */
#include "format/pprof_write_samples.h"

static void put_sample(const struct sample_encoder *e, size_t index, struct buf *out)
{
	const struct profile *p = e->p;
	const struct sample *sample = &p->samples[index];
	const struct stack *stack = &p->stacks[sample->stack];
	const struct wire_labels *labels = &e->label_sets[sample->labels];
	bool base = sample_is_base(p, index);
	pprof_encode_sample(&(struct wire_sample){
		.ids = e->location_ids,
		.frames = stack->n ? p->frames + stack->first : NULL,
		.n_frames = stack->n,
		.values = p->values + index * p->n_types,
		.n_values = p->n_types,
		.negated = base,
		.labels = labels->n ? e->label_bytes + labels->first : NULL,
		.labels_n = labels->n,
		.mark = base ? e->label_bytes + e->base_label.first : NULL,
		.mark_n = base ? e->base_label.n : 0,
	}, out);
}

void samples_encode(const void *encoder, size_t first, size_t n, struct buf *out)
{
	for (size_t i = first; i < first + n; i++)
		put_sample(encoder, i, out);
}

size_t sample_size_about(const struct sample_encoder *e, size_t index)
{
	const struct sample *s = &e->p->samples[index];
	return 8 + (size_t)e->p->stacks[s->stack].n * 2 + e->label_sets[s->labels].n + e->p->n_types * 4;
}
