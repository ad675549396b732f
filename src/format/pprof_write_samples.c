/* A sample's frames are most of it, and their ids are ready to be copied. */
#include "format/pprof_write_samples.h"
#include "format/proto.h"

/* Head of a repeated number of n values that take size bytes: nothing, the number's own, or packed. */
static uint8_t *put_repeated_head(uint8_t *to, unsigned field, size_t n, size_t size)
{
	if (n == 1)
		*to++ = (uint8_t)(field << 3 | PROTO_VARINT);
	else if (n > 1)
		to = proto_put_head(to, field, size);
	return to;
}

/* A sample is written behind room for its heads, and moved up to them when its size is known. */
#define HEADS_MAX (2 * (1 + PROTO_VARINT_MAX))

static size_t size_max(const struct profile *p, const struct stack *stack, size_t labels_size)
{
	return HEADS_MAX + stack->n * (size_t)5 + sizeof(struct wire_id) + 1 +
	       PROTO_VARINT_MAX * (1 + p->n_types) + labels_size;
}

static uint8_t *put_frames(const struct sample_encoder *e, const struct stack *stack, uint8_t *to)
{
	const uint32_t *frames = stack->n ? e->p->frames + stack->first : NULL;
	for (uint32_t i = 0; i < stack->n; i++) {
		const struct wire_id *id = &e->location_ids[frames[i]];
		memcpy(to, id, sizeof *id);
		to += id->n;
	}
	return to;
}

/* In pprof's form of a base: negated. */
static uint8_t *put_values(const struct sample_encoder *e, size_t index, bool base, uint8_t *to)
{
	const int64_t *values = e->p->values + index * e->p->n_types;
	size_t size = 0;
	for (size_t i = 0; i < e->p->n_types; i++)
		size += proto_varint_size(base ? -(uint64_t)values[i] : (uint64_t)values[i]);
	to = put_repeated_head(to, 2, e->p->n_types, size);
	for (size_t i = 0; i < e->p->n_types; i++)
		to = proto_put_varint(to, base ? -(uint64_t)values[i] : (uint64_t)values[i]);
	return to;
}

static void put_sample(const struct sample_encoder *e, size_t index, struct buf *out)
{
	const struct profile *p = e->p;
	const struct sample *sample = &p->samples[index];
	const struct stack *stack = &p->stacks[sample->stack];
	const struct wire_labels *labels = &e->label_sets[sample->labels];
	const struct wire_labels *mark = &e->base_label;
	bool base = sample_is_base(p, index);
	if (!buf_reserve(out, size_max(p, stack, labels->n + mark->n)))
		return;
	uint8_t *start = (uint8_t *)out->data + out->len;
	uint8_t *body = start + HEADS_MAX, *frames_end = put_frames(e, stack, body);
	uint8_t *end = put_values(e, index, base, frames_end);
	if (labels->n > 0)
		end = mempcpy(end, e->label_bytes + labels->first, labels->n);
	if (base)
		end = mempcpy(end, e->label_bytes + mark->first, mark->n);
	uint8_t head[1 + PROTO_VARINT_MAX];
	size_t head_n = (size_t)(put_repeated_head(head, 1, stack->n, (size_t)(frames_end - body)) - head);
	size_t body_n = (size_t)(end - body);
	uint8_t *to = proto_put_head(start, PPROF_SAMPLE, head_n + body_n);
	memcpy(to, head, head_n);
	memmove(to + head_n, body, body_n);
	out->len += (size_t)(to - start) + head_n + body_n;
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
