/*
 * From a profile to rows with numbers. Most of a profile was in the one before: its samples get keys, made of its stacks and labels, and the rows
 * with these keys are remembered. What isn't is asked for, and added when it is new (sqlite_intern.c).
 */
#include <math.h>
#include <stdlib.h>
#include <sys/random.h>

#include "store/sqlite_intern.h"

#define DAY_MS 86400000
#define OPEN_LEVEL (-1)         /* of zstd: an open profile is written once more within minutes */

struct translator *translator_new(struct sweep *sweep)
{
	struct translator *t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->sweep = sweep;
	if (getrandom(t->seed, sizeof t->seed, GRND_NONBLOCK) < 0)
		t->seed[0] = hash_u64((uintptr_t)t);
	for (size_t i = 0; i < KEYS; i++)
		t->keys[i] = hash_mix(t->seed[0], i);
	idmap_init(&t->strings, 1 << 16);
	idmap_init(&t->builds, 1 << 14);
	idmap_init(&t->frames, 1 << 18);
	idmap_init(&t->labels, 1 << 16);
	idmap_init(&t->rows, 1 << 20);
	buf_init(&t->blob, (size_t)64 << 20);
	buf_init(&t->info, 1 << 20);
	chunk_writer_init(&t->writer);
	return t;
}

void translator_free(struct translator *t)
{
	if (!t)
		return;
	translator_forget(t);
	free(t->string_ids);
	free(t->build_ids);
	free(t->frame_ids);
	free(t->label_ids);
	free(t->location_keys);
	free(t->places);
	free(t->sample_keys);
	free(t->order);
	free(t->order_scratch);
	buf_finish(&t->blob);
	buf_finish(&t->info);
	chunk_writer_finish(&t->writer);
	free(t);
}

void translator_forget(struct translator *t)
{
	idmap_clear(&t->strings);
	idmap_clear(&t->builds);
	idmap_clear(&t->frames);
	idmap_clear(&t->labels);
	idmap_clear(&t->rows);
	idmap_clear(&t->sweep->kept);
}

/* --- keys of stacks --- */

/* Of a frame without names: its build and offset. One to one within a build. */
static uint64_t plain_key(const struct place *place, uint64_t address)
{
	uint64_t key = hash_mix(place->key, address + place->shift);
	return key ? key : 1;
}

/* The keys of locations that are no more than a place; 0 stays for the others. */
static void make_location_keys(struct passage *g)
{
	const struct profile *p = g->p;
	struct translator *t = g->t;
	const struct place nowhere = { t->seed[0], 0 };
	memset(t->places, 0, p->n_mappings * sizeof *t->places);
	for (size_t i = 0; i < p->n_locations; i++) {
		const struct location *l = &p->locations[i];
		t->location_keys[i] = 0;
		if (l->n_lines || l->folded)
			continue;
		struct place *place = l->mapping == PROFILE_NONE ? NULL : &t->places[l->mapping];
		if (place && !place->key)
			*place = (struct place){ hash_mix(t->seed[0], intern_build(g, l->mapping)) | 1, location_file_offset(p, l) - l->address };
		t->location_keys[i] = plain_key(place ? place : &nowhere, l->address);
	}
}

/* One with names: they are compared in the store once. */
static uint64_t named_key(struct passage *g, uint32_t location)
{
	uint32_t id = g->t->frame_ids[location] ? g->t->frame_ids[location] : intern_frame(g, location);
	return g->t->location_keys[location] = hash_mix(g->t->seed[1], id) | 1;
}

/* Of the frames further out. */
static uint64_t further_key(const struct translator *t, uint32_t i)
{
	return i < KEYS ? t->keys[i] : hash_mix(t->seed[1], i);
}

static uint64_t location_key(struct passage *g, uint32_t location)
{
	uint64_t key = g->t->location_keys[location];
	return __builtin_expect(key != 0, 1) ? key : named_key(g, location);
}

/* Products of pairs of sums with unknown keys (NH): the chance that two stacks agree is 2^-64. */
static struct key key_of_stack(struct passage *g, const struct stack *s)
{
	const uint64_t *keys = g->t->keys;
	const uint32_t *frames = g->p->frames + s->first;
	uint32_t i = 0, near = s->n < KEYS ? s->n & ~1u : KEYS;
	unsigned __int128 sum = 0;
	for (; i < near; i += 2)
		sum += (unsigned __int128)(location_key(g, frames[i]) + keys[i]) * (location_key(g, frames[i + 1]) + keys[i + 1]);
	for (; i < s->n; i += 2) {
		uint64_t second = i + 1 < s->n ? location_key(g, frames[i + 1]) : 0;
		sum += (unsigned __int128)(location_key(g, frames[i]) + further_key(g->t, i)) * (second + further_key(g->t, i + 1));
	}
	return (struct key){ (uint64_t)(sum >> 64) ^ s->n, (uint64_t)sum };
}

/* --- a profile --- */

/* By row, and those of one row as they were: by radix, eleven bits at a time. */
static void sort_by_row(struct translator *t, size_t n)
{
	enum { BITS = 11, BINS = 1 << BITS };
	for (unsigned shift = 0; shift < 32; shift += BITS) {
		uint32_t ends[BINS] = { 0 };
		for (size_t i = 0; i < n; i++)
			ends[t->order[i].row >> shift & (BINS - 1)]++;
		if (ends[t->order[0].row >> shift & (BINS - 1)] == n)
			continue;
		for (uint32_t bin = 0, at = 0; bin < BINS; bin++) {
			uint32_t here = ends[bin];
			ends[bin] = at;
			at += here;
		}
		for (size_t i = 0; i < n; i++)
			t->order_scratch[ends[t->order[i].row >> shift & (BINS - 1)]++] = t->order[i];
		struct chunk_single *sorted = t->order_scratch;
		size_t capacity = t->scratch_capacity;
		t->order_scratch = t->order;
		t->scratch_capacity = t->order_capacity;
		t->order = sorted;
		t->order_capacity = capacity;
	}
}

static bool clear(uint32_t **ids, size_t *capacity, size_t n)
{
	if (!memory_grow((void **)ids, capacity, n + 1, sizeof **ids, SIZE_MAX / sizeof **ids))
		return false;
	memset(*ids, 0, (n + 1) * sizeof **ids);
	return true;
}

static bool make_room(struct translator *t, const struct profile *p)
{
	return clear(&t->string_ids, &t->strings_capacity, p->strings.n) && clear(&t->build_ids, &t->builds_capacity, p->n_mappings) &&
	       clear(&t->frame_ids, &t->frames_capacity, p->n_locations) && clear(&t->label_ids, &t->labels_capacity, p->n_label_sets) &&
	       memory_grow((void **)&t->location_keys, &t->locations_capacity, p->n_locations + 1, sizeof *t->location_keys, INDEX_NONE) &&
	       memory_grow((void **)&t->places, &t->places_capacity, p->n_mappings + 1, sizeof *t->places, INDEX_NONE) &&
	       memory_grow((void **)&t->sample_keys, &t->samples_capacity, p->n_samples + 1, sizeof *t->sample_keys, INDEX_NONE) &&
	       memory_grow((void **)&t->order, &t->order_capacity, p->n_samples + 1, sizeof *t->order, INDEX_NONE) &&
	       memory_grow((void **)&t->order_scratch, &t->scratch_capacity, p->n_samples + 1, sizeof *t->order, INDEX_NONE);
}

/* First all keys, so that the table's lines are on their way when they are needed. */
static void make_keys(struct passage *g)
{
	const struct profile *p = g->p;
	struct translator *t = g->t;
	struct key stack_key = { 0, 0 };
	uint32_t stack = PROFILE_NONE;
	for (size_t i = 0; i < p->n_samples && !g->failed; i++) {
		const struct sample *s = &p->samples[i];
		if (s->stack != stack) {
			stack_key = key_of_stack(g, &p->stacks[s->stack]);
			stack = s->stack;
		}
		uint32_t labels = t->label_ids[s->labels] ? t->label_ids[s->labels] : intern_labels(g, s->labels);
		t->sample_keys[i].high = hash_mix(stack_key.high ^ t->seed[0], labels);
		t->sample_keys[i].low = hash_mix(stack_key.low ^ t->seed[1], labels);
		idmap_prefetch(&t->rows, t->sample_keys[i].low);
	}
}

static uint32_t find_row(struct passage *g, size_t sample)
{
	struct translator *t = g->t;
	const struct sample *s = &g->p->samples[sample];
	const struct key *k = &t->sample_keys[sample];
	struct idmap_entry *e = idmap_find(&t->rows, k->high, k->low);
	if (e && e->day >= g->day)
		return e->id;
	uint32_t stack = intern_stack(g, &g->p->stacks[s->stack]);
	uint32_t row = g->failed ? 0 : intern_row(g, stack, t->label_ids[s->labels] - 1, 0);
	if (e)
		e->day = g->day;
	else if (row)
		idmap_put(&t->rows, k->high, k->low, row, g->day);
	return row;
}

/* The same stack with the same labels more than once: the next one is the second of its kind, and so on. */
static void tell_twins_apart(struct passage *g)
{
	struct chunk_single *order = g->t->order;
	size_t n = g->p->n_samples;
	bool moved = false;
	for (size_t i = 0, end; i < n && !g->failed; i = end) {
		for (end = i + 1; end < n && order[end].row == order[i].row; end++) {
			const struct sample *s = &g->p->samples[order[end].at];
			uint32_t stack = intern_stack(g, &g->p->stacks[s->stack]);
			uint32_t row = intern_row(g, stack, g->t->label_ids[s->labels] - 1, (uint32_t)(end - i));
			g->t->sample_keys[end].low = row;
			moved = true;
			if (g->failed)
				return;
		}
		for (size_t k = i + 1; k < end; k++)
			order[k].row = (uint32_t)g->t->sample_keys[k].low;
	}
	if (moved)
		sort_by_row(g->t, n);
}

static void find_rows(struct passage *g)
{
	struct chunk_single *order = g->t->order;
	bool sorted = true, twins = false;
	size_t n = g->p->n_samples;
	for (size_t i = 0; i < n && !g->failed; i++) {
		order[i] = (struct chunk_single){ find_row(g, i), (uint32_t)i };
		sorted = sorted && (i == 0 || order[i - 1].row < order[i].row);
	}
	if (sorted || g->failed)
		return;
	sort_by_row(g->t, n);
	for (size_t i = 1; i < n && !twins; i++)
		twins = g->t->order[i].row == g->t->order[i - 1].row;
	if (twins)
		tell_twins_apart(g);
}

/* --- what is known besides the samples --- */

static int find_source(const struct profile *p, struct source *ret, struct error *err)
{
	uint32_t used = p->n_samples ? p->samples[0].source : 0;
	for (size_t i = 1; i < p->n_samples; i++)
		if (p->samples[i].source != used)
			return error_set(err, E_USAGE, "profiles of several processes can't be stored as one: store each by itself");
	*ret = used < p->n_sources ? p->sources[used] : (struct source){ .header_objects = -1, .header_bytes = -1 };
	if (ret->base)
		return error_set(err, E_USAGE, "a difference of profiles can't be stored: store both profiles");
	return 0;
}

static int default_metric(const struct profile *p)
{
	int column = p->default_type ? profile_type_column(p, profile_text(p, p->default_type)) : -1;
	for (int m = 0; m < METRICS; m++)
		if (column >= 0 && p->metric[m] == column)
			return m;
	return -1;
}

/* What a chunk says beside its rows. */
static uint32_t kept(struct passage *g, enum sweep_of of, uint32_t number)
{
	int failed = g->failed ? 0 : sweep_keep(g->t->sweep, g->c, of, number, g->day, g->err);
	return failed ? intern_failed(g, failed) : number;
}

static void add_info(struct passage *g, const struct source *s, int64_t time_ms)
{
	const struct profile *p = g->p;
	struct buf *b = &g->t->info;
	buf_reset(b);
	varint_add_double(b, s->rate);
	varint_add(b, s->process);
	varint_add(b, s->pid);
	varint_add(b, (s->raw_counts ? 1 : 0) | (s->header_objects < 0 && s->header_bytes < 0 ? 0 : 2));
	varint_add(b, kept(g, SWEEP_STRINGS, intern_string(g, s->name)));
	varint_add(b, p->n_mappings ? kept(g, SWEEP_BUILDS, intern_build(g, 0)) : 0);
	varint_add(b, (uint64_t)(default_metric(p) + 1));
	const uint32_t strings[] = { p->period_type, p->period_unit, p->drop_frames, p->keep_frames, p->doc_url };
	for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
		varint_add(b, kept(g, SWEEP_STRINGS, intern_string(g, strings[i])));
	varint_add_signed(b, p->period);
	varint_add_signed(b, s->duration_nanos);
	varint_add_signed(b, (int64_t)((uint64_t)s->time_nanos - (uint64_t)time_ms * 1000000u));
	if (!(s->header_objects < 0 && s->header_bytes < 0)) {
		varint_add_double(b, s->header_objects);
		varint_add_double(b, s->header_bytes);
	}
	varint_add(b, p->n_comments);
	for (size_t i = 0; i < p->n_comments; i++)
		varint_add(b, kept(g, SWEEP_STRINGS, intern_string(g, p->comments[i])));
	if (b->failed)
		intern_failed(g, error_set(g->err, E_LIMIT, "a profile with more than 1 MiB of comments"));
}

bool slot_info_read(const uint8_t *bytes, size_t n, int64_t time_ms, struct slot_info *ret)
{
	struct varint_reader r = { bytes, bytes + n, false };
	struct slot_info i = { 0 };
	i.source.rate = varint_next_double(&r);
	i.source.process = varint_next(&r);
	i.source.pid = varint_next(&r);
	uint64_t flags = varint_next(&r);
	i.source.raw_counts = flags & 1;
	i.source.name = (uint32_t)varint_next(&r);
	i.main_build = (uint32_t)varint_next(&r);
	i.default_metric = (int)(varint_next(&r) % (METRICS + 1)) - 1;
	uint32_t *const strings[] = { &i.period_type, &i.period_unit, &i.drop_frames, &i.keep_frames, &i.doc_url };
	for (size_t k = 0; k < sizeof strings / sizeof *strings; k++)
		*strings[k] = (uint32_t)varint_next(&r);
	i.period = varint_next_signed(&r);
	i.source.duration_nanos = varint_next_signed(&r);
	i.source.time_nanos = (int64_t)((uint64_t)varint_next_signed(&r) + (uint64_t)time_ms * 1000000u);
	i.source.header_objects = flags & 2 ? varint_next_double(&r) : -1;
	i.source.header_bytes = flags & 2 ? varint_next_double(&r) : -1;
	i.n_comments = varint_next(&r);
	i.comments = r;
	*ret = i;
	return !r.failed;
}

/* --- all of it --- */

static void write_rows(struct passage *g, const struct chunk_layout *l, struct chunk_slot *slot)
{
	const struct profile *p = g->p;
	int from[METRICS];
	for (int m = 0; m < METRICS; m++) {
		if (l->sum[m] < 0)
			continue;
		from[l->sum[m]] = p->metric[m];
		for (size_t i = 0; i < p->n_samples; i++)
			slot->last[m] += (double)p->values[i * p->n_types + (size_t)p->metric[m]];
	}
	chunk_add_singles(&g->t->writer, g->t->order, p->n_samples, p->values, p->n_types, from);
}

int translate(struct sqlite_store *s, const struct store_profile *what, struct buf *head, struct buf *data, unsigned *ret_metrics,
              struct error *err)
{
	const struct profile *p = what->profile;
	struct translator *t = s->translator;
	struct passage g = { t, &s->writer, p, (uint32_t)(what->time_ms / DAY_MS), err, 0 };
	struct source source = { 0 };
	unsigned metrics = 0;
	for (int m = 0; m < METRICS; m++)
		metrics |= p->metric[m] >= 0 ? 1u << m : 0;
	if (!metrics)
		return error_set(err, E_USAGE, "a profile without heap metrics (%s, ...) can't be stored", metric_name(INUSE_SPACE));
	int failed = find_source(p, &source, err);
	if (failed)
		return failed;
	if (!make_room(t, p))
		return error_nomem(err, "a profile's samples");
	sweep_day(t->sweep, g.day);
	make_location_keys(&g);
	make_keys(&g);
	find_rows(&g);
	add_info(&g, &source, what->time_ms);
	if (g.failed)
		return g.failed;
	struct chunk_slot slot = { .time_ms = what->time_ms, .last_ms = what->time_ms, .n = 1, .samples = p->n_samples };
	struct chunk_head h = { chunk_layout(metrics, false), &slot, 1 };
	chunk_writer_begin(&t->writer, h.layout, 1);
	chunk_add_info(&t->writer, t->info.data, t->info.len);
	write_rows(&g, &h.layout, &slot);
	chunk_head_write(&h, head);
	*ret_metrics = metrics;
	return chunk_writer_end(&t->writer, OPEN_LEVEL, data, err);
}

int translator_string(struct sqlite_store *s, const char *text, size_t n, uint32_t *ret, struct error *err)
{
	struct passage g = { s->translator, &s->writer, NULL, 0, err, 0 };
	*ret = intern_text(&g, text, n);
	return g.failed;
}
