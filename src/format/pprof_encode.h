/*
 * What every pprof file of ours is made of, whoever makes it: pprof_write.c from a whole profile, jeheap_stream.c while it
 * reads a dump. Private to src/format.
 *
 * The order on the wire is free. What refers to strings comes first and numbers them in the order of first use; so the
 * strings come last, which also makes every cut visible: what is cut off is always at least one string that something
 * refers to. Sizes of messages are computed before they are written; only samples, which are most of the file, are written
 * first and then moved up to their heads.
 *
 * Failure is sticky: out of memory sets failed, and what is put then goes nowhere.
 */
#ifndef FORMAT_PPROF_ENCODE_H
#define FORMAT_PPROF_ENCODE_H

#include "format/format.h"
#include "format/proto.h"

/*
 * A text that the file needs: a string of the profile, or (from p->strings.n on) one of our own: the profile gets no
 * more strings when there are some. An INDEX_NONE is never one.
 */
typedef uint32_t text_ref;

/* A varint, ready to be copied: all of bytes, of which n count. */
struct wire_id {
	uint8_t bytes[7], n;
};

static inline struct wire_id wire_id(uint32_t number)
{
	struct wire_id id = { .n = 0 };
	id.n = (uint8_t)(proto_put_varint(id.bytes, number) - id.bytes);
	return id;
}

/* Where the encoded labels of a set stand in label_bytes. */
struct wire_labels {
	size_t first, n;
	bool known;
};

struct pprof_encoder {
	const struct profile *p;        /* its header, mappings, label sets and strings */
	struct buf *out;
	bool show_allocator;
	size_t full_bytes;              /* as soon as out has so many, full takes them; 0: they stay */
	void (*full)(void *context, struct buf *out);
	void *context;
	bool failed;

	struct strings own;
	uint32_t *text_numbers;         /* by text_ref: number in string_table; 0: none yet */
	size_t text_numbers_n;
	text_ref *texts;                /* in the order of string_table; the empty one is not among them */
	size_t n_texts, texts_capacity;

	struct wire_labels *label_sets; /* by label set */
	size_t label_sets_n;
	struct buf label_bytes;
};

bool pprof_encoder_init(struct pprof_encoder *e, const struct profile *p, struct buf *out);
void pprof_encoder_finish(struct pprof_encoder *e);

/* Item i of an array of n numbers that reads as zeros beyond what was written; NULL when out of memory. */
uint32_t *zeros_at(uint32_t **array, size_t *n, uint32_t i);

uint64_t pprof_text_number(struct pprof_encoder *e, text_ref text);
text_ref pprof_own_text(struct pprof_encoder *e, const char *text, size_t n);
/* Of the profile where it has that string, else of our own. */
text_ref pprof_word(struct pprof_encoder *e, const char *text);

/* A message of numbers: fields 1 to n. */
void pprof_put_message(struct pprof_encoder *e, enum pprof_field field, const uint64_t *values, unsigned n);
/* Types, default, period, times, frames to drop and keep, comments. */
void pprof_put_header(struct pprof_encoder *e);

enum { HAS_FUNCTIONS = 1, HAS_FILENAMES = 2, HAS_LINE_NUMBERS = 4, HAS_INLINE_FRAMES = 8 };
/* Mapping index + 1 is its id; flags, besides its own, say what its locations have. */
void pprof_put_mapping(struct pprof_encoder *e, uint32_t index, unsigned flags);

struct wire_line {
	uint64_t function, line, column;
};

struct wire_location {
	uint64_t id, mapping, address;  /* mapping: id, or 0 */
	bool folded;
	const struct wire_line *lines;
	size_t n_lines;
};

void pprof_put_location(struct pprof_encoder *e, const struct wire_location *l);

/* Encodes a label set, once. What is returned is good until the next set, its place in label_bytes for ever. */
const struct wire_labels *pprof_labels(struct pprof_encoder *e, uint32_t set);
/* One more label, of two texts, behind the others in label_bytes. */
struct wire_labels pprof_text_label(struct pprof_encoder *e, text_ref key, text_ref text);

struct wire_sample {
	const struct wire_id *ids;      /* by location */
	const uint32_t *frames;         /* locations, leaf first */
	size_t n_frames;
	const int64_t *values;
	size_t n_values;
	bool negated;                   /* -value is written; none is -2^63 */
	const char *labels, *mark;      /* encoded; mark: one more */
	size_t labels_n, mark_n;
};

/* Appends it to any buf: several threads may, each to its own. */
void pprof_encode_sample(const struct wire_sample *s, struct buf *out);
/* full takes out, if it is time. */
void pprof_flush(struct pprof_encoder *e);

/* Last of all: every string that got a number. */
void pprof_put_strings(struct pprof_encoder *e);

#endif
