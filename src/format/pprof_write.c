/*
 * The model as profile.proto, in the form every reader of it shows well: dense ids from 1, only what samples
 * use, each location with at least one line and each line with a named function, UTF-8.
 *
 * The order on the wire is free and chosen for a single pass: locations find out which functions are used, functions,
 * samples and all else which strings; so the strings come last, numbered in the order of first use. That
 * also makes every cut visible: what is cut off is always at least one string that something refers to.
 * Sizes of messages are computed before they are written; only samples, which are most of the file, are written
 * first and then moved up to their heads. When all that they refer to has its number, they are written in ranges, by
 * the threads that compress.
 */
#include "format/pprof_write_samples.h"
#include "format/proto.h"
#include "base/text.h"
#include "profile/operations.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

/*
 * A text that the file needs: a string of the profile, or (from p->strings.n on) one of our own. An
 * INDEX_NONE is never one; running out of memory sets failed.
 */
typedef uint32_t text_ref;

/* A function to be written: one of the profile's, or a made-up one for a nameless frame. */
struct used_function {
	uint32_t function;              /* PROFILE_NONE: made up */
	text_ref name;
};

struct writer {
	const struct profile *p;
	struct buf *out;
	bool show_allocator;
	struct gz_writer *gzip;         /* takes what is in out when there is enough; or NULL */
	bool failed;                    /* out of memory */

	struct strings own;
	uint32_t *text_numbers;         /* by text_ref: number in string_table; 0: none yet */
	size_t text_numbers_n;
	text_ref *texts;                /* in the order of string_table; the empty one is not among them */
	size_t n_texts, texts_capacity;

	uint32_t *function_numbers;     /* by function: its id; 0: none yet */
	uint32_t *own_function_numbers; /* by own string */
	size_t own_function_numbers_n;
	struct used_function *functions;
	size_t n_functions, functions_capacity;

	uint32_t *location_numbers;     /* by location: its id; 0: not used */
	struct wire_id *location_ids;   /* by location: the id as it is written */
	uint32_t *location_order;       /* the used ones in the order of their ids */
	size_t n_locations;
	struct wire_labels *label_sets; /* by label set */
	struct sample_encoder samples;  /* what threads see of all this */
	struct buf label_bytes;
	uint8_t *mapping_flags;         /* by mapping: what its locations have */
	uint32_t *line_functions;       /* ids, of the location at hand */
	size_t line_functions_capacity;
};

enum { HAS_FUNCTIONS = 1, HAS_FILENAMES = 2, HAS_LINE_NUMBERS = 4, HAS_INLINE_FRAMES = 8 };

/* --- texts and functions -------------------------------------------------- */

/* Item i of an array that reads as zeros beyond what was written; NULL when out of memory. */
static uint32_t *zeros_at(uint32_t **array, size_t *n, uint32_t i)
{
	size_t had = *n;
	if (!memory_grow((void **)array, n, (size_t)i + 1, sizeof **array, SIZE_MAX))
		return NULL;
	if (*n > had)
		memset(*array + had, 0, (*n - had) * sizeof **array);
	return *array + i;
}

static uint64_t text_number(struct writer *w, text_ref text)
{
	if (text == 0 || w->failed)
		return 0;
	uint32_t *number = zeros_at(&w->text_numbers, &w->text_numbers_n, text);
	if (number && *number)
		return *number;
	text_ref *slot = number ? ARRAY_PUSH(w->texts, w->n_texts, w->texts_capacity, INDEX_NONE - 1)
	                        : NULL;
	if (!slot) {
		w->failed = true;
		return 0;
	}
	*slot = text;
	*number = (uint32_t)w->n_texts;
	return *number;
}

static text_ref own_text(struct writer *w, const char *text, size_t n)
{
	uint32_t id = strings_add(&w->own, text, n, BUF_MAX_DEFAULT);
	if (id == INDEX_NONE || id >= INDEX_NONE - w->p->strings.n) {
		w->failed = true;
		return 0;
	}
	return (text_ref)w->p->strings.n + id;
}

static text_ref word(struct writer *w, const char *text)
{
	uint32_t id = strings_find(&w->p->strings, text, strlen(text));
	return id != INDEX_NONE ? id : own_text(w, text, strlen(text));
}

static uint32_t add_function(struct writer *w, uint32_t *number, struct used_function f)
{
	struct used_function *slot =
	    number && !*number
	        ? ARRAY_PUSH(w->functions, w->n_functions, w->functions_capacity, INDEX_NONE - 1)
	        : NULL;
	if (slot) {
		*slot = f;
		*number = (uint32_t)w->n_functions;
	}
	w->failed |= !number || !*number;
	return number ? *number : 0;
}

/* What viewers call a frame that nobody could name: "binary!0xoffset", or the bare address. */
static text_ref nameless(struct writer *w, const struct location *l)
{
	const struct profile *p = w->p;
	struct buf name;
	buf_init(&name, BUF_MAX_DEFAULT);
	if (l->mapping != PROFILE_NONE) {
		uint32_t file = p->mappings[l->mapping].file;
		const char *path = profile_text(p, file), *base = path_base(path);
		if (file) {
			buf_add(&name, base, strings_length(&p->strings, file) - (size_t)(base - path));
			buf_addc(&name, '!');
		}
	}
	buf_printf(&name, "0x%" PRIx64, location_file_offset(p, l));
	text_ref text = name.failed ? 0 : own_text(w, name.data, name.len);
	w->failed |= name.failed;
	buf_finish(&name);
	return text;
}

/* The id of a made-up function for a location without lines; equal names share one. */
static uint32_t made_up_function(struct writer *w, const struct location *l)
{
	text_ref name = nameless(w, l);
	if (w->failed)
		return 0;
	uint32_t *number = zeros_at(&w->own_function_numbers, &w->own_function_numbers_n,
	                            name - (text_ref)w->p->strings.n);
	return add_function(w, number, (struct used_function){ PROFILE_NONE, name });
}

static uint32_t function_number(struct writer *w, const struct location *l, uint32_t function)
{
	const struct function *f = &w->p->functions[function];
	struct used_function used = { function, f->name ? f->name : f->system_name };
	if (used.name)
		return add_function(w, &w->function_numbers[function], used);
	/* It has a file or a line, but no name: each location gives it another. */
	used.name = nameless(w, l);
	uint32_t number = 0;
	return w->failed ? 0 : add_function(w, &number, used);
}

/* --- the profile's own fields --------------------------------------------- */

static uint8_t *room(struct writer *w, size_t n)
{
	return !w->failed && buf_reserve(w->out, n) ? (uint8_t *)w->out->data + w->out->len : NULL;
}

static void wrote(struct writer *w, const uint8_t *end)
{
	w->out->len = (size_t)(end - (uint8_t *)w->out->data);
	if (w->gzip && w->out->len >= GZ_PIECE)
		gz_writer_add(w->gzip, w->out);
}

static void put_number(struct writer *w, enum pprof_field field, uint64_t value)
{
	uint8_t *to = room(w, 1 + PROTO_VARINT_MAX);
	if (to)
		wrote(w, proto_put_number(to, field, value));
}

/* A message of numbers: fields 1 to n. */
static void put_message(struct writer *w, enum pprof_field field, const uint64_t *values, unsigned n)
{
	size_t size = 0;
	for (unsigned i = 0; i < n; i++)
		size += proto_number_size(values[i]);
	uint8_t *to = room(w, proto_bytes_size(size));
	if (!to)
		return;
	to = proto_put_head(to, field, size);
	for (unsigned i = 0; i < n; i++)
		to = proto_put_number(to, i + 1, values[i]);
	wrote(w, to);
}

static void put_value_type(struct writer *w, enum pprof_field field, text_ref type, text_ref unit)
{
	const uint64_t values[] = { text_number(w, type), text_number(w, unit) };
	put_message(w, field, values, 2);
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

static void put_times(struct writer *w)
{
	const struct profile *p = w->p;
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
	put_number(w, PPROF_TIME_NANOS, (uint64_t)time);
	put_number(w, PPROF_DURATION_NANOS, (uint64_t)duration);
}

static void put_header(struct writer *w)
{
	const struct profile *p = w->p;
	for (size_t i = 0; i < p->n_types; i++)
		put_value_type(w, PPROF_SAMPLE_TYPE, p->types[i].type, p->types[i].unit);
	text_ref default_type = p->default_type;
	if (!default_type && p->metric[INUSE_SPACE] >= 0)
		default_type = p->types[p->metric[INUSE_SPACE]].type;
	put_number(w, PPROF_DEFAULT_SAMPLE_TYPE, text_number(w, default_type));
	int64_t period = p->period ? p->period : rate_of(p);
	if (p->period_type || p->period_unit)
		put_value_type(w, PPROF_PERIOD_TYPE, p->period_type, p->period_unit);
	else if (rate_of(p))
		put_value_type(w, PPROF_PERIOD_TYPE, word(w, "space"), word(w, "bytes"));
	put_number(w, PPROF_PERIOD, (uint64_t)period);
	put_times(w);
	text_ref drop = p->drop_frames;
	if (!drop && is_heap(p) && !w->show_allocator)
		drop = word(w, allocator_drop_frames);
	put_number(w, PPROF_DROP_FRAMES, text_number(w, drop));
	put_number(w, PPROF_KEEP_FRAMES, text_number(w, p->keep_frames));
	for (size_t i = 0; i < p->n_comments; i++) {
		uint64_t number = text_number(w, p->comments[i]);
		uint8_t *to = room(w, 1 + PROTO_VARINT_MAX);
		if (!to)
			return;
		*to++ = PPROF_COMMENT << 3 | PROTO_VARINT;      /* an empty comment is one, too */
		wrote(w, proto_put_varint(to, number));
	}
	put_number(w, PPROF_DOC_URL, text_number(w, p->doc_url));
}

/* --- mappings, locations, functions --------------------------------------- */

/*
 * How often the samples' stacks go through each location, about: every location that they use is marked, every
 * eighth stack counts. False when out of memory.
 */
static bool count_uses(const struct profile *p, uint32_t *uses)
{
	uint8_t *seen = calloc(p->n_stacks + 1, 1), *used = calloc(p->n_locations + 1, 1);
	for (size_t i = 0, n = 0; seen && used && i < p->n_samples; i++) {
		uint32_t stack = p->samples[i].stack;
		if (seen[stack])
			continue;
		seen[stack] = 1;
		const uint32_t *frames = p->stacks[stack].n ? p->frames + p->stacks[stack].first : NULL;
		for (uint32_t k = 0; k < p->stacks[stack].n; k++)
			used[frames[k]] = 1;
		if (n++ % 8)
			continue;
		for (uint32_t k = 0; k < p->stacks[stack].n; k++)
			uses[frames[k]] += uses[frames[k]] < UINT32_MAX - 1;
	}
	bool ok = seen && used;
	for (size_t i = 0; ok && i < p->n_locations; i++)
		uses[i] += used[i];
	free(used);
	free(seen);
	return ok;
}

static int by_use(const void *a, const void *b, void *context)
{
	const uint32_t *uses = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	if (uses[i] != uses[k])
		return uses[i] > uses[k] ? -1 : 1;
	return (i > k) - (i < k);
}

static void note_mapping(struct writer *w, const struct location *l)
{
	const struct profile *p = w->p;
	if (l->mapping == PROFILE_NONE)
		return;
	unsigned flags = HAS_FUNCTIONS | (l->n_lines > 1 ? HAS_INLINE_FRAMES : 0);
	for (uint32_t k = 0; k < l->n_lines; k++) {
		const struct line *line = &p->lines[l->first_line + k];
		flags |= p->functions[line->function].file ? HAS_FILENAMES : 0;
		flags |= line->line ? HAS_LINE_NUMBERS : 0;
	}
	w->mapping_flags[l->mapping] |= (uint8_t)flags;
}

/*
 * Numbers the locations that a sample uses, the most used first: their ids take one byte, and stacks are most of
 * the file. Also sees what their mappings can claim.
 */
static void find_used(struct writer *w)
{
	const struct profile *p = w->p;
	if (!count_uses(p, w->location_numbers)) {
		w->failed = true;
		return;
	}
	for (uint32_t i = 0; i < p->n_locations; i++)
		if (w->location_numbers[i]) {
			w->location_order[w->n_locations++] = i;
			note_mapping(w, &p->locations[i]);
		}
	qsort_r(w->location_order, w->n_locations, sizeof *w->location_order, by_use, w->location_numbers);
	for (uint32_t i = 0; i < w->n_locations; i++) {
		struct wire_id *id = &w->location_ids[w->location_order[i]];
		w->location_numbers[w->location_order[i]] = i + 1;
		id->n = (uint8_t)(proto_put_varint(id->bytes, i + 1) - id->bytes);
	}
}

static void put_mapping(struct writer *w, uint32_t index)
{
	const struct mapping *m = &w->p->mappings[index];
	uint8_t flags = w->mapping_flags[index];
	const uint64_t values[] = {
		index + 1,
		m->start,
		m->limit,
		m->offset,
		text_number(w, m->file),
		text_number(w, m->build_id),
		m->has_functions || flags & HAS_FUNCTIONS,
		m->has_filenames || flags & HAS_FILENAMES,
		m->has_line_numbers || flags & HAS_LINE_NUMBERS,
		m->has_inline_frames || flags & HAS_INLINE_FRAMES,
	};
	put_message(w, PPROF_MAPPING, values, sizeof values / sizeof *values);
}

static size_t line_size(uint32_t function, const struct line *line)
{
	return proto_number_size(function) + proto_number_size((uint64_t)line->line) +
	       proto_number_size(line->column);
}

static void put_location(struct writer *w, uint32_t index)
{
	static const struct line no_line = { 0 };
	const struct location *l = &w->p->locations[index];
	const struct line *lines = l->n_lines ? &w->p->lines[l->first_line] : &no_line;
	uint32_t n_lines = l->n_lines ? l->n_lines : 1;
	uint64_t mapping = l->mapping == PROFILE_NONE ? 0 : (uint64_t)l->mapping + 1;
	size_t n = proto_number_size(w->location_numbers[index]) + proto_number_size(mapping) +
	           proto_number_size(l->address) + proto_number_size(l->folded);
	for (uint32_t i = 0; i < n_lines; i++) {
		uint32_t *function = zeros_at(&w->line_functions, &w->line_functions_capacity, i);
		w->failed |= !function;
		if (w->failed)
			return;
		*function = l->n_lines ? function_number(w, l, lines[i].function)
		                       : made_up_function(w, l);
		n += proto_bytes_size(line_size(*function, &lines[i]));
	}
	uint8_t *to = room(w, proto_bytes_size(n));
	if (!to)
		return;
	to = proto_put_head(to, PPROF_LOCATION, n);
	to = proto_put_number(to, 1, w->location_numbers[index]);
	to = proto_put_number(to, 2, mapping);
	to = proto_put_number(to, 3, l->address);
	for (uint32_t i = 0; i < n_lines; i++) {
		to = proto_put_head(to, 4, line_size(w->line_functions[i], &lines[i]));
		to = proto_put_number(to, 1, w->line_functions[i]);
		to = proto_put_number(to, 2, (uint64_t)lines[i].line);
		to = proto_put_number(to, 3, lines[i].column);
	}
	wrote(w, proto_put_number(to, 5, l->folded));
}

static void put_function(struct writer *w, uint32_t number)
{
	static const struct function made_up = { 0 };
	struct used_function used = w->functions[number - 1];
	const struct function *f =
	    used.function == PROFILE_NONE ? &made_up : &w->p->functions[used.function];
	const uint64_t values[] = {
		number,
		text_number(w, used.name),
		text_number(w, f->system_name),
		text_number(w, f->file),
		(uint64_t)f->start_line,
	};
	put_message(w, PPROF_FUNCTION, values, sizeof values / sizeof *values);
}

/* --- samples -------------------------------------------------------------- */

struct wire_label {
	uint64_t key, str, number, unit;
};

/* A number without a unit would be lost where it is 0: readers take it for no label at all. */
static struct wire_label label_values(struct writer *w, const struct label *l)
{
	struct wire_label x = { text_number(w, l->key), text_number(w, l->str), (uint64_t)l->number,
		                text_number(w, l->unit) };
	if (!l->str && !l->number && !l->unit) {
		bool bytes = !strcmp(profile_text(w->p, l->key), "bytes");
		x.unit = text_number(w, word(w, bytes ? "bytes" : "count"));
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

static void encode_label(struct writer *w, const struct wire_label *label)
{
	uint8_t bytes[5 * (1 + PROTO_VARINT_MAX)];
	buf_add(&w->label_bytes, bytes, (size_t)(put_label(bytes, label) - bytes));
}

/* Label sets are few and each is encoded once. */
static void encode_labels(struct writer *w, uint32_t set)
{
	struct wire_labels *x = &w->label_sets[set];
	const struct label_set *labels = &w->p->label_sets[set];
	if (x->known)
		return;
	*x = (struct wire_labels){ .first = w->label_bytes.len, .known = true };
	for (uint32_t i = 0; i < labels->n; i++) {
		struct wire_label label = label_values(w, &w->p->labels[labels->first + i]);
		encode_label(w, &label);
	}
	x->n = w->label_bytes.len - x->first;
}

/* How a diff's base is marked, as pprof -diff_base does. */
static void encode_base_label(struct writer *w)
{
	struct wire_label label = { .key = text_number(w, word(w, "pprof::base")),
		                    .str = text_number(w, word(w, "true")) };
	w->samples.base_label = (struct wire_labels){ .first = w->label_bytes.len, .known = true };
	encode_label(w, &label);
	w->samples.base_label.n = w->label_bytes.len - w->samples.base_label.first;
}

/* Encodes the labels of all samples, and refuses a base that can't be negated. */
static int prepare_samples(struct writer *w, struct error *err)
{
	const struct profile *p = w->p;
	for (size_t i = 0; i < p->n_samples; i++) {
		encode_labels(w, p->samples[i].labels);
		if (!sample_is_base(p, i))
			continue;
		if (!w->samples.base_label.known)
			encode_base_label(w);
		for (size_t k = 0; k < p->n_types; k++)
			if (p->values[i * p->n_types + k] == INT64_MIN)
				return error_set(err, E_FORMAT, "sample %zu of the base: -2^63 cannot be negated for pprof", i);
	}
	w->failed |= w->label_bytes.failed;
	w->samples.p = p;
	w->samples.location_ids = w->location_ids;
	w->samples.label_sets = w->label_sets;
	w->samples.label_bytes = w->label_bytes.data;
	return E_OK;
}

/* All samples: here, or in pieces of about GZ_PIECE bytes by whoever compresses them. */
static void write_samples(struct writer *w)
{
	const struct profile *p = w->p;
	if (w->failed || p->n_samples == 0)
		return;
	if (!w->gzip) {
		samples_encode(&w->samples, 0, p->n_samples, w->out);
		return;
	}
	gz_writer_add(w->gzip, w->out);
	for (size_t first = 0, i = 0, size = 0; i < p->n_samples; i++) {
		size += sample_size_about(&w->samples, i);
		if (size < GZ_PIECE && i + 1 < p->n_samples)
			continue;
		gz_writer_add_later(w->gzip, samples_encode, &w->samples, first, i + 1 - first);
		first = i + 1;
		size = 0;
	}
}

/* --- strings -------------------------------------------------------------- */

static const char *text_of(const struct writer *w, text_ref text, size_t *ret_n)
{
	const struct strings *s = &w->p->strings;
	if (text >= s->n) {
		text -= (text_ref)s->n;
		s = &w->own;
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

static void put_string(struct writer *w, const char *text, size_t n)
{
	size_t length = put_utf8(NULL, text, n);
	uint8_t *to = room(w, proto_bytes_size(length));
	if (!to)
		return;
	to = proto_put_head(to, PPROF_STRING_TABLE, length);
	put_utf8(to, text, n);
	wrote(w, to + length);
}

/* --- the whole ------------------------------------------------------------ */

static int write_all(struct writer *w, struct error *err)
{
	const struct profile *p = w->p;
	int rc;
	find_used(w);
	put_header(w);
	for (uint32_t i = 0; i < p->n_mappings; i++)
		put_mapping(w, i);
	for (size_t i = 0; i < w->n_locations; i++)
		put_location(w, w->location_order[i]);
	for (uint32_t i = 1; i <= w->n_functions; i++)
		put_function(w, i);
	rc = prepare_samples(w, err);
	if (rc)
		return rc;
	write_samples(w);
	put_string(w, "", 0);
	for (size_t i = 0; i < w->n_texts; i++) {
		size_t n;
		const char *text = text_of(w, w->texts[i], &n);
		put_string(w, text, n);
	}
	if (w->failed || w->out->failed)
		return error_set(err, E_LIMIT, "no memory for the pprof profile, or it is larger than %zu MiB",
		                 w->out->max >> 20);
	return E_OK;
}

static int write_to(struct writer *w, struct error *err)
{
	const struct profile *p = w->p;
	buf_init(&w->label_bytes, BUF_MAX_DEFAULT);
	w->function_numbers = calloc(p->n_functions + 1, sizeof *w->function_numbers);
	w->location_numbers = calloc(p->n_locations + 1, sizeof *w->location_numbers);
	w->location_ids = calloc(p->n_locations + 1, sizeof *w->location_ids);
	w->location_order = calloc(p->n_locations + 1, sizeof *w->location_order);
	w->label_sets = calloc(p->n_label_sets + 1, sizeof *w->label_sets);
	w->mapping_flags = calloc(p->n_mappings + 1, 1);
	return w->function_numbers && w->location_numbers && w->location_ids && w->location_order &&
	               w->label_sets && w->mapping_flags && strings_init(&w->own)
	           ? write_all(w, err)
	           : error_nomem(err, "writing a pprof profile");
}

static void writer_finish(struct writer *w)
{
	strings_finish(&w->own);
	free(w->text_numbers);
	free(w->texts);
	free(w->function_numbers);
	free(w->own_function_numbers);
	free(w->functions);
	free(w->location_numbers);
	free(w->location_ids);
	free(w->location_order);
	free(w->label_sets);
	buf_finish(&w->label_bytes);
	free(w->mapping_flags);
	free(w->line_functions);
}

/* w stays until the last piece is compressed. */
static int write_gzip(struct writer *w, struct buf *out, struct error *err)
{
	struct buf piece;
	buf_init(&piece, BUF_MAX_DEFAULT);
	w->out = &piece;
	w->gzip = gz_writer_new(out);
	if (!w->gzip)
		return error_nomem(err, "writing a pprof profile");
	int rc = write_to(w, err);
	int finished = gz_writer_finish(w->gzip, &piece, rc ? NULL : err);
	buf_finish(&piece);
	return rc ? rc : finished;
}

int pprof_write(const struct profile *p, const struct pprof_write_options *o, struct buf *out,
                struct error *err)
{
	struct writer w = { .p = p, .out = out, .show_allocator = o->show_allocator };
	size_t before = out->len;
	int rc = o->gzip ? write_gzip(&w, out, err) : write_to(&w, err);
	if (rc)
		buf_cut(out, before);
	writer_finish(&w);
	return rc;
}
