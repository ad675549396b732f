/* Numbers for strings, messages into the buffer, labels once, samples fast. */
#include "format/pprof_encode.h"
#include "base/text.h"
#include "profile/operations.h"

#include <math.h>
#include <stdlib.h>

bool pprof_encoder_init(struct pprof_encoder *e, const struct profile *p, struct buf *out)
{
	*e = (struct pprof_encoder){ .p = p, .out = out };
	buf_init(&e->label_bytes, BUF_MAX_DEFAULT);
	return strings_init(&e->own);
}

void pprof_encoder_finish(struct pprof_encoder *e)
{
	strings_finish(&e->own);
	free(e->text_numbers);
	free(e->texts);
	free(e->label_sets);
	buf_finish(&e->label_bytes);
}

/* --- texts ---------------------------------------------------------------- */

uint32_t *zeros_at(uint32_t **array, size_t *n, uint32_t i)
{
	size_t had = *n;
	if (!memory_grow((void **)array, n, (size_t)i + 1, sizeof **array, SIZE_MAX))
		return NULL;
	if (*n > had)
		memset(*array + had, 0, (*n - had) * sizeof **array);
	return *array + i;
}

uint64_t pprof_text_number(struct pprof_encoder *e, text_ref text)
{
	if (text == 0 || e->failed)
		return 0;
	uint32_t *number = zeros_at(&e->text_numbers, &e->text_numbers_n, text);
	if (number && *number)
		return *number;
	text_ref *slot = number ? ARRAY_PUSH(e->texts, e->n_texts, e->texts_capacity, INDEX_NONE - 1)
	                        : NULL;
	if (!slot) {
		e->failed = true;
		return 0;
	}
	*slot = text;
	*number = (uint32_t)e->n_texts;
	return *number;
}

text_ref pprof_own_text(struct pprof_encoder *e, const char *text, size_t n)
{
	uint32_t id = strings_add(&e->own, text, n, BUF_MAX_DEFAULT);
	if (id == INDEX_NONE || id >= INDEX_NONE - e->p->strings.n) {
		e->failed = true;
		return 0;
	}
	return (text_ref)e->p->strings.n + id;
}

text_ref pprof_word(struct pprof_encoder *e, const char *text)
{
	uint32_t id = strings_find(&e->p->strings, text, strlen(text));
	return id != INDEX_NONE ? id : pprof_own_text(e, text, strlen(text));
}

/* --- the profile's own fields --------------------------------------------- */

static uint8_t *room(struct pprof_encoder *e, size_t n)
{
	return !e->failed && buf_reserve(e->out, n) ? (uint8_t *)e->out->data + e->out->len : NULL;
}

void pprof_flush(struct pprof_encoder *e)
{
	if (e->full_bytes > 0 && e->out->len >= e->full_bytes)
		e->full(e->context, e->out);
}

static void wrote(struct pprof_encoder *e, const uint8_t *end)
{
	e->out->len = (size_t)(end - (uint8_t *)e->out->data);
	pprof_flush(e);
}

static void put_number(struct pprof_encoder *e, enum pprof_field field, uint64_t value)
{
	uint8_t *to = room(e, 1 + PROTO_VARINT_MAX);
	if (to)
		wrote(e, proto_put_number(to, field, value));
}

void pprof_put_message(struct pprof_encoder *e, enum pprof_field field, const uint64_t *values, unsigned n)
{
	size_t size = 0;
	for (unsigned i = 0; i < n; i++)
		size += proto_number_size(values[i]);
	uint8_t *to = room(e, proto_bytes_size(size));
	if (!to)
		return;
	to = proto_put_head(to, field, size);
	for (unsigned i = 0; i < n; i++)
		to = proto_put_number(to, i + 1, values[i]);
	wrote(e, to);
}

static void put_value_type(struct pprof_encoder *e, enum pprof_field field, text_ref type, text_ref unit)
{
	const uint64_t values[] = { pprof_text_number(e, type), pprof_text_number(e, unit) };
	pprof_put_message(e, field, values, 2);
}

static bool is_heap(const struct profile *p)
{
	return p->metric[INUSE_SPACE] >= 0 || p->metric[ALLOC_SPACE] >= 0;
}

/* The sampling rate, where the profile's period doesn't say it: the coarsest of its sources'. */
static int64_t rate_of(const struct profile *p)
{
	double rate = 0;
	for (size_t i = 0; i < p->n_sources; i++)
		if (p->sources[i].rate > rate)
			rate = p->sources[i].rate;
	return is_heap(p) && rate > 0 && rate < 0x1p62 ? (int64_t)llround(rate) : 0;
}

static void put_times(struct pprof_encoder *e)
{
	const struct profile *p = e->p;
	int64_t time = 0, duration = 0;
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct source *s = &p->sources[i];
		if (s->base)
			continue;
		if (s->time_nanos > time || time == 0)
			time = s->time_nanos;
		if (__builtin_add_overflow(duration, s->duration_nanos, &duration))
			duration = INT64_MAX;
	}
	put_number(e, PPROF_TIME_NANOS, (uint64_t)time);
	put_number(e, PPROF_DURATION_NANOS, (uint64_t)duration);
}

void pprof_put_header(struct pprof_encoder *e)
{
	const struct profile *p = e->p;
	for (size_t i = 0; i < p->n_types; i++)
		put_value_type(e, PPROF_SAMPLE_TYPE, p->types[i].type, p->types[i].unit);
	text_ref default_type = p->default_type;
	if (!default_type && p->metric[INUSE_SPACE] >= 0)
		default_type = p->types[p->metric[INUSE_SPACE]].type;
	put_number(e, PPROF_DEFAULT_SAMPLE_TYPE, pprof_text_number(e, default_type));
	int64_t period = p->period ? p->period : rate_of(p);
	if (p->period_type || p->period_unit)
		put_value_type(e, PPROF_PERIOD_TYPE, p->period_type, p->period_unit);
	else if (rate_of(p))
		put_value_type(e, PPROF_PERIOD_TYPE, pprof_word(e, "space"), pprof_word(e, "bytes"));
	put_number(e, PPROF_PERIOD, (uint64_t)period);
	put_times(e);
	text_ref drop = p->drop_frames;
	if (!drop && is_heap(p) && !e->show_allocator)
		drop = pprof_word(e, allocator_drop_frames);
	put_number(e, PPROF_DROP_FRAMES, pprof_text_number(e, drop));
	put_number(e, PPROF_KEEP_FRAMES, pprof_text_number(e, p->keep_frames));
	for (size_t i = 0; i < p->n_comments; i++) {
		uint64_t number = pprof_text_number(e, p->comments[i]);
		uint8_t *to = room(e, 1 + PROTO_VARINT_MAX);
		if (!to)
			return;
		*to++ = PPROF_COMMENT << 3 | PROTO_VARINT;      /* an empty comment is one, too */
		wrote(e, proto_put_varint(to, number));
	}
	put_number(e, PPROF_DOC_URL, pprof_text_number(e, p->doc_url));
}

/* --- mappings and locations ----------------------------------------------- */

void pprof_put_mapping(struct pprof_encoder *e, uint32_t index, unsigned flags)
{
	const struct mapping *m = &e->p->mappings[index];
	const uint64_t values[] = {
		index + 1,
		m->start,
		m->limit,
		m->offset,
		pprof_text_number(e, m->file),
		pprof_text_number(e, m->build_id),
		m->has_functions || flags & HAS_FUNCTIONS,
		m->has_filenames || flags & HAS_FILENAMES,
		m->has_line_numbers || flags & HAS_LINE_NUMBERS,
		m->has_inline_frames || flags & HAS_INLINE_FRAMES,
	};
	pprof_put_message(e, PPROF_MAPPING, values, sizeof values / sizeof *values);
}

static size_t line_size(const struct wire_line *line)
{
	return proto_number_size(line->function) + proto_number_size(line->line) + proto_number_size(line->column);
}

void pprof_put_location(struct pprof_encoder *e, const struct wire_location *l)
{
	size_t n = proto_number_size(l->id) + proto_number_size(l->mapping) + proto_number_size(l->address) +
	           proto_number_size(l->folded);
	for (size_t i = 0; i < l->n_lines; i++)
		n += proto_bytes_size(line_size(&l->lines[i]));
	uint8_t *to = room(e, proto_bytes_size(n));
	if (!to)
		return;
	to = proto_put_head(to, PPROF_LOCATION, n);
	to = proto_put_number(to, 1, l->id);
	to = proto_put_number(to, 2, l->mapping);
	to = proto_put_number(to, 3, l->address);
	for (size_t i = 0; i < l->n_lines; i++) {
		to = proto_put_head(to, 4, line_size(&l->lines[i]));
		to = proto_put_number(to, 1, l->lines[i].function);
		to = proto_put_number(to, 2, l->lines[i].line);
		to = proto_put_number(to, 3, l->lines[i].column);
	}
	wrote(e, proto_put_number(to, 5, l->folded));
}

/* --- labels --------------------------------------------------------------- */

struct wire_label {
	uint64_t key, str, number, unit;
};

/* A number without a unit would be lost where it is 0: readers take it for no label at all. */
static struct wire_label label_values(struct pprof_encoder *e, const struct label *l)
{
	struct wire_label x = { pprof_text_number(e, l->key), pprof_text_number(e, l->str), (uint64_t)l->number,
		                pprof_text_number(e, l->unit) };
	if (!l->str && !l->number && !l->unit) {
		bool bytes = !strcmp(profile_text(e->p, l->key), "bytes");
		x.unit = pprof_text_number(e, pprof_word(e, bytes ? "bytes" : "count"));
	}
	return x;
}

static size_t label_size(const struct wire_label *x)
{
	return proto_number_size(x->key) + proto_number_size(x->str) + proto_number_size(x->number) +
	       proto_number_size(x->unit);
}

static uint8_t *put_label(uint8_t *to, const struct wire_label *x)
{
	to = proto_put_head(to, 3, label_size(x));
	to = proto_put_number(to, 1, x->key);
	to = proto_put_number(to, 2, x->str);
	to = proto_put_number(to, 3, x->number);
	return proto_put_number(to, 4, x->unit);
}

static void encode_label(struct pprof_encoder *e, const struct wire_label *label)
{
	uint8_t bytes[5 * (1 + PROTO_VARINT_MAX)];
	buf_add(&e->label_bytes, bytes, (size_t)(put_label(bytes, label) - bytes));
}

/* The slot of a set, of zeros when it is new; NULL when out of memory. */
static struct wire_labels *labels_slot(struct pprof_encoder *e, uint32_t set)
{
	size_t had = e->label_sets_n;
	if (!memory_grow((void **)&e->label_sets, &e->label_sets_n, (size_t)set + 1, sizeof *e->label_sets, SIZE_MAX))
		return NULL;
	if (e->label_sets_n > had)
		memset(e->label_sets + had, 0, (e->label_sets_n - had) * sizeof *e->label_sets);
	return &e->label_sets[set];
}

const struct wire_labels *pprof_labels(struct pprof_encoder *e, uint32_t set)
{
	static const struct wire_labels none = { 0 };
	const struct label_set *labels = &e->p->label_sets[set];
	struct wire_labels *x = labels_slot(e, set);
	e->failed |= !x;
	if (!x || x->known)
		return x ? x : &none;
	*x = (struct wire_labels){ .first = e->label_bytes.len, .known = true };
	for (uint32_t i = 0; i < labels->n; i++) {
		struct wire_label label = label_values(e, &e->p->labels[labels->first + i]);
		encode_label(e, &label);
	}
	x->n = e->label_bytes.len - x->first;
	e->failed |= e->label_bytes.failed;
	return x;
}

struct wire_labels pprof_text_label(struct pprof_encoder *e, text_ref key, text_ref text)
{
	struct wire_label label = { .key = pprof_text_number(e, key), .str = pprof_text_number(e, text) };
	struct wire_labels x = { .first = e->label_bytes.len, .known = true };
	encode_label(e, &label);
	x.n = e->label_bytes.len - x.first;
	e->failed |= e->label_bytes.failed;
	return x;
}

/* --- samples -------------------------------------------------------------- */

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

static size_t size_max(const struct wire_sample *s)
{
	return HEADS_MAX + s->n_frames * (size_t)5 + sizeof(struct wire_id) + 1 +
	       PROTO_VARINT_MAX * (1 + s->n_values) + s->labels_n + s->mark_n;
}

static uint8_t *put_frames(const struct wire_sample *s, uint8_t *to)
{
	for (size_t i = 0; i < s->n_frames; i++) {
		const struct wire_id *id = &s->ids[s->frames[i]];
		memcpy(to, id, sizeof *id);
		to += id->n;
	}
	return to;
}

static uint8_t *put_values(const struct wire_sample *s, uint8_t *to)
{
	size_t size = 0;
	for (size_t i = 0; i < s->n_values; i++)
		size += proto_varint_size(s->negated ? -(uint64_t)s->values[i] : (uint64_t)s->values[i]);
	to = put_repeated_head(to, 2, s->n_values, size);
	for (size_t i = 0; i < s->n_values; i++)
		to = proto_put_varint(to, s->negated ? -(uint64_t)s->values[i] : (uint64_t)s->values[i]);
	return to;
}

void pprof_encode_sample(const struct wire_sample *s, struct buf *out)
{
	if (!buf_reserve(out, size_max(s)))
		return;
	uint8_t *start = (uint8_t *)out->data + out->len;
	uint8_t *body = start + HEADS_MAX, *frames_end = put_frames(s, body);
	uint8_t *end = put_values(s, frames_end);
	if (s->labels_n > 0)
		end = mempcpy(end, s->labels, s->labels_n);
	if (s->mark_n > 0)
		end = mempcpy(end, s->mark, s->mark_n);
	uint8_t head[1 + PROTO_VARINT_MAX];
	size_t head_n = (size_t)(put_repeated_head(head, 1, s->n_frames, (size_t)(frames_end - body)) - head);
	size_t body_n = (size_t)(end - body);
	uint8_t *to = proto_put_head(start, PPROF_SAMPLE, head_n + body_n);
	memcpy(to, head, head_n);
	memmove(to + head_n, body, body_n);
	out->len += (size_t)(to - start) + head_n + body_n;
}

/* --- strings -------------------------------------------------------------- */

static const char *text_of(const struct pprof_encoder *e, text_ref text, size_t *ret_n)
{
	const struct strings *s = &e->p->strings;
	if (text >= s->n) {
		text -= (text_ref)s->n;
		s = &e->own;
	}
	*ret_n = strings_length(s, text);
	return strings_get(s, text);
}

/* What is not UTF-8 becomes U+FFFD, byte by byte; to may be NULL. Returns the length. */
static size_t put_utf8(uint8_t *to, const char *text, size_t n)
{
	size_t length = 0;
	for (size_t i = 0; i < n;) {
		size_t character = (uint8_t)text[i] < 0x80 ? 1 : text_utf8_length(text + i, n - i);
		const char *from = character ? text + i : "\xef\xbf\xbd";
		size_t bytes = character ? character : 3;
		if (to)
			memcpy(to + length, from, bytes);
		length += bytes;
		i += character ? character : 1;
	}
	return length;
}

static void put_string(struct pprof_encoder *e, const char *text, size_t n)
{
	size_t length = put_utf8(NULL, text, n);
	uint8_t *to = room(e, proto_bytes_size(length));
	if (!to)
		return;
	to = proto_put_head(to, PPROF_STRING_TABLE, length);
	put_utf8(to, text, n);
	wrote(e, to + length);
}

void pprof_put_strings(struct pprof_encoder *e)
{
	put_string(e, "", 0);
	for (size_t i = 0; i < e->n_texts; i++) {
		size_t n;
		const char *text = text_of(e, e->texts[i], &n);
		put_string(e, text, n);
	}
}
