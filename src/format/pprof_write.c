/*
 * The model as profile.proto, in the form every reader of it shows well: dense ids from 1, only what samples
 * use, each location with at least one line and each line with a named function, UTF-8.
 *
 * Locations find out which functions are used, functions and all else which strings. When all that samples refer to has
 * its number, they are written in ranges, by the threads that compress.
 */
#include "format/pprof_write_samples.h"

#include <inttypes.h>
#include <stdlib.h>

/* A function to be written: one of the profile's, or a made-up one for a nameless frame. */
struct used_function {
	uint32_t function;              /* PROFILE_NONE: made up */
	text_ref name;
};

struct writer {
	const struct profile *p;
	struct pprof_encoder e;
	struct gz_writer *gzip;         /* takes what is in e.out when there is enough; or NULL */

	uint32_t *function_numbers;     /* by function: its id; 0: none yet */
	uint32_t *own_function_numbers; /* by own string */
	size_t own_function_numbers_n;
	struct used_function *functions;
	size_t n_functions, functions_capacity;

	uint32_t *location_numbers;     /* by location: its id; 0: not used */
	struct wire_id *location_ids;   /* by location: the id as it is written */
	uint32_t *location_order;       /* the used ones in the order of their ids */
	size_t n_locations;
	struct sample_encoder samples;  /* what threads see of all this */
	uint8_t *mapping_flags;         /* by mapping: what its locations have */
	struct wire_line *lines;        /* of the location at hand */
	size_t lines_capacity;
};

/* --- texts and functions -------------------------------------------------- */

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
	w->e.failed |= !number || !*number;
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
	text_ref text = name.failed ? 0 : pprof_own_text(&w->e, name.data, name.len);
	w->e.failed |= name.failed;
	buf_finish(&name);
	return text;
}

/* The id of a made-up function for a location without lines; equal names share one. */
static uint32_t made_up_function(struct writer *w, const struct location *l)
{
	text_ref name = nameless(w, l);
	if (w->e.failed)
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
	return w->e.failed ? 0 : add_function(w, &number, used);
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
		w->e.failed = true;
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
		*id = wire_id(i + 1);
	}
}

static void put_location(struct writer *w, uint32_t index)
{
	const struct location *l = &w->p->locations[index];
	uint32_t n_lines = l->n_lines ? l->n_lines : 1;
	if (!memory_grow((void **)&w->lines, &w->lines_capacity, n_lines, sizeof *w->lines, SIZE_MAX)) {
		w->e.failed = true;
		return;
	}
	for (uint32_t i = 0; i < l->n_lines; i++) {
		const struct line *line = &w->p->lines[l->first_line + i];
		w->lines[i] = (struct wire_line){ function_number(w, l, line->function), (uint64_t)line->line, line->column };
	}
	if (l->n_lines == 0)
		w->lines[0] = (struct wire_line){ .function = made_up_function(w, l) };
	pprof_put_location(&w->e, &(struct wire_location){
		.id = w->location_numbers[index],
		.mapping = l->mapping == PROFILE_NONE ? 0 : (uint64_t)l->mapping + 1,
		.address = l->address,
		.folded = l->folded,
		.lines = w->lines,
		.n_lines = n_lines,
	});
}

static void put_function(struct writer *w, uint32_t number)
{
	static const struct function made_up = { 0 };
	struct used_function used = w->functions[number - 1];
	const struct function *f =
	    used.function == PROFILE_NONE ? &made_up : &w->p->functions[used.function];
	const uint64_t values[] = {
		number,
		pprof_text_number(&w->e, used.name),
		pprof_text_number(&w->e, f->system_name),
		pprof_text_number(&w->e, f->file),
		(uint64_t)f->start_line,
	};
	pprof_put_message(&w->e, PPROF_FUNCTION, values, sizeof values / sizeof *values);
}

/* --- samples -------------------------------------------------------------- */

/* Encodes the labels of all samples, and refuses a base that can't be negated. */
static int prepare_samples(struct writer *w, struct error *err)
{
	const struct profile *p = w->p;
	for (size_t i = 0; i < p->n_samples; i++) {
		pprof_labels(&w->e, p->samples[i].labels);
		if (!sample_is_base(p, i))
			continue;
		if (!w->samples.base_label.known)       /* as pprof -diff_base marks it */
			w->samples.base_label = pprof_text_label(&w->e, pprof_word(&w->e, "pprof::base"), pprof_word(&w->e, "true"));
		for (size_t k = 0; k < p->n_types; k++)
			if (p->values[i * p->n_types + k] == INT64_MIN)
				return error_set(err, E_FORMAT, "sample %zu of the base: -2^63 cannot be negated for pprof", i);
	}
	w->samples.p = p;
	w->samples.location_ids = w->location_ids;
	w->samples.label_sets = w->e.label_sets;
	w->samples.label_bytes = w->e.label_bytes.data;
	return E_OK;
}

/* All samples: here, or in pieces of about GZ_PIECE bytes by whoever compresses them. */
static void write_samples(struct writer *w)
{
	const struct profile *p = w->p;
	if (w->e.failed || p->n_samples == 0)
		return;
	if (!w->gzip) {
		samples_encode(&w->samples, 0, p->n_samples, w->e.out);
		return;
	}
	gz_writer_add(w->gzip, w->e.out);
	for (size_t first = 0, i = 0, size = 0; i < p->n_samples; i++) {
		size += sample_size_about(&w->samples, i);
		if (size < GZ_PIECE && i + 1 < p->n_samples)
			continue;
		gz_writer_add_later(w->gzip, samples_encode, &w->samples, first, i + 1 - first);
		first = i + 1;
		size = 0;
	}
}

/* --- the whole ------------------------------------------------------------ */

static int write_all(struct writer *w, struct error *err)
{
	const struct profile *p = w->p;
	find_used(w);
	pprof_put_header(&w->e);
	for (uint32_t i = 0; i < p->n_mappings; i++)
		pprof_put_mapping(&w->e, i, w->mapping_flags[i]);
	for (size_t i = 0; i < w->n_locations; i++)
		put_location(w, w->location_order[i]);
	for (uint32_t i = 1; i <= w->n_functions; i++)
		put_function(w, i);
	int rc = prepare_samples(w, err);
	if (rc)
		return rc;
	write_samples(w);
	pprof_put_strings(&w->e);
	if (w->e.failed || w->e.out->failed)
		return error_set(err, E_LIMIT, "no memory for the pprof profile, or it is larger than %zu MiB",
		                 w->e.out->max >> 20);
	return E_OK;
}

static int write_to(struct writer *w, struct error *err)
{
	const struct profile *p = w->p;
	w->function_numbers = calloc(p->n_functions + 1, sizeof *w->function_numbers);
	w->location_numbers = calloc(p->n_locations + 1, sizeof *w->location_numbers);
	w->location_ids = calloc(p->n_locations + 1, sizeof *w->location_ids);
	w->location_order = calloc(p->n_locations + 1, sizeof *w->location_order);
	w->mapping_flags = calloc(p->n_mappings + 1, 1);
	return w->function_numbers && w->location_numbers && w->location_ids && w->location_order && w->mapping_flags
	           ? write_all(w, err)
	           : error_nomem(err, "writing a pprof profile");
}

static void writer_finish(struct writer *w)
{
	pprof_encoder_finish(&w->e);
	free(w->function_numbers);
	free(w->own_function_numbers);
	free(w->functions);
	free(w->location_numbers);
	free(w->location_ids);
	free(w->location_order);
	free(w->mapping_flags);
	free(w->lines);
}

static void compress(void *context, struct buf *piece)
{
	gz_writer_add(context, piece);
}

/* w stays until the last piece is compressed. */
static int write_gzip(struct writer *w, struct buf *out, struct error *err)
{
	struct buf piece;
	buf_init(&piece, BUF_MAX_DEFAULT);
	w->e.out = &piece;
	w->gzip = gz_writer_new(out);
	if (!w->gzip)
		return error_nomem(err, "writing a pprof profile");
	w->e.full_bytes = GZ_PIECE;
	w->e.full = compress;
	w->e.context = w->gzip;
	int rc = write_to(w, err);
	int finished = gz_writer_finish(w->gzip, &piece, rc ? NULL : err);
	buf_finish(&piece);
	return rc ? rc : finished;
}

int pprof_write(const struct profile *p, const struct pprof_write_options *o, struct buf *out,
                struct error *err)
{
	struct writer w = { .p = p };
	size_t before = out->len;
	int rc = pprof_encoder_init(&w.e, p, out) ? E_OK : error_nomem(err, "writing a pprof profile");
	w.e.show_allocator = o->show_allocator;
	if (rc == E_OK)
		rc = o->gzip ? write_gzip(&w, out, err) : write_to(&w, err);
	if (rc)
		buf_cut(out, before);
	writer_finish(&w);
	return rc;
}
