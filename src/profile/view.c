/*
 * From a profile to what a report walks over: frames become entries of the chosen granularity,
 * samples become rows with errors, the two sides of a diff meet in one row.
 */
#include "profile/view_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct interval amount_interval(const struct amount *a)
{
	if (a->lost.value == 0 && a->lost.variance == 0 && a->lost.weight == 0)
		return estimate_interval(a->gained);
	return estimate_difference(a->gained, a->lost);
}

/* --- entries --------------------------------------------------------------- */

struct entry_key {
	const struct view *v;
	const struct entry *e;
};

static bool same_entry(const void *context, uint32_t item)
{
	const struct entry_key *k = context;
	const struct entry *a = &k->v->entries[item], *b = k->e;
	return a->name == b->name && a->file == b->file && a->line == b->line && a->address == b->address;
}

static uint32_t entry_intern(struct view *v, const struct entry *e)
{
	struct index *x = &v->private->entry_index;
	uint64_t hash = hash_mix(hash_u64((uint64_t)e->name << 32 | e->file),
	                         e->address ^ (uint64_t)e->line << 40);
	struct entry_key key = { v, e };
	uint32_t id = index_find(x, hash, same_entry, &key);
	if (id != INDEX_NONE) {
		v->entries[id].inlined &= e->inlined;
		return id;
	}
	struct entry *slot = NULL;
	if (index_reserve(x))
		slot = ARRAY_PUSH(v->entries, v->n_entries, v->entries_capacity, INDEX_NONE - 1);
	if (!slot)
		return INDEX_NONE;
	*slot = *e;
	id = (uint32_t)(v->n_entries - 1);
	index_insert(x, hash, id);
	return id;
}

static const char *location_binary(const struct profile *p, const struct location *l)
{
	return l->mapping == PROFILE_NONE ? "" : profile_text(p, p->mappings[l->mapping].file);
}

/* "binary!0xoffset", or just the address when it lies in no mapping. */
static uint32_t unnamed(struct profile *p, const struct location *l)
{
	char text[4200];
	const char *base = path_base(location_binary(p, l));
	int n = snprintf(text, sizeof text, "%.4000s%s0x%llx", base, *base ? "!" : "",
	                 (unsigned long long)location_file_offset(p, l));
	return profile_string(p, text, (size_t)n);
}

static uint32_t file_name_unknown(struct profile *p, const struct location *l)
{
	char text[4200];
	const char *base = path_base(location_binary(p, l));
	int n = snprintf(text, sizeof text, "(no source file: %.4000s)", *base ? base : "unmapped");
	return profile_string(p, text, (size_t)n);
}

/* The entry of line number i (innermost first) of a location; i is 0 when it has none. */
static struct entry entry_of(struct view *v, const struct location *l, uint32_t i)
{
	struct profile *p = v->profile;
	const struct line *line = l->n_lines ? &p->lines[l->first_line + i] : NULL;
	const struct function *f = line ? &p->functions[line->function] : NULL;
	struct entry e = { .mapping = l->mapping, .inlined = i + 1 < l->n_lines };
	bool named = f && f->name;
	switch (v->by) {
	case BY_FILE:
		e.name = e.file = f && f->file ? f->file : 0;
		if (!e.name)
			e.name = file_name_unknown(p, l);
		break;
	case BY_BINARY:
		e.name = l->mapping == PROFILE_NONE ? 0 : p->mappings[l->mapping].file;
		if (!e.name)
			e.name = profile_cstring(p, "(unmapped)");
		break;
	case BY_LINE:
	case BY_ADDRESS:
		e.line = line ? line->line : 0;
		e.file = f ? f->file : 0;
		/* fall through */
	case BY_FUNCTION:
	case BY_THREAD:
		e.name = named ? f->name : unnamed(p, l);
		if (!named || v->by == BY_ADDRESS)
			e.address = location_file_offset(p, l);
	}
	return e;
}

static int make_slots(struct view *v, bool no_inlines, struct error *err)
{
	struct profile *p = v->profile;
	struct view_private *x = v->private;
	size_t n = 0;
	for (size_t i = 0; i < p->n_locations; i++)
		n += p->locations[i].n_lines && !no_inlines ? p->locations[i].n_lines : 1;
	if (n >= INDEX_NONE)
		return error_set(err, E_LIMIT, "more than 4,294,967,294 frames in one profile");
	x->slot_first = malloc((p->n_locations + 1) * sizeof *x->slot_first);
	x->slot_entry = malloc((n + 1) * sizeof *x->slot_entry);
	x->slot_flags = malloc(n + 1);
	if (!x->slot_first || !x->slot_entry || !x->slot_flags)
		return error_nomem(err, "the view");
	for (size_t i = 0; i < p->n_locations; i++) {
		const struct location *l = &p->locations[i];
		uint32_t first = no_inlines && l->n_lines ? l->n_lines - 1 : 0;
		x->slot_first[i] = (uint32_t)x->n_slots;
		for (uint32_t k = first; k == first || k < l->n_lines; k++) {
			struct entry e = entry_of(v, l, k);
			e.inlined &= !no_inlines;
			uint32_t id = entry_intern(v, &e);
			if (id == INDEX_NONE || p->failure.code)
				return error_nomem(err, "the view's entries");
			x->slot_entry[x->n_slots] = id;
			x->slot_flags[x->n_slots++] = e.inlined ? SLOT_INLINED : 0;
		}
	}
	x->slot_first[p->n_locations] = (uint32_t)x->n_slots;
	return E_OK;
}

/* jemalloc numbers threads as they first allocate, so between processes only the name means something. */
static uint32_t thread_name(struct profile *p, uint32_t thread)
{
	const char *text = profile_text(p, thread), *at = text + 1;
	while (*text == 't' && *at >= '0' && *at <= '9')
		at++;
	if (*text != 't' || at == text + 1 || (*at && *at != ' '))
		return thread;
	char name[256];
	snprintf(name, sizeof name, "%.255s", *at ? at + 1 : "");
	return profile_cstring(p, name);
}

uint32_t view_thread(const struct view *v, uint32_t labels)
{
	return v->private->thread_key[labels];
}

/* What tells the threads of a view apart, per label set. */
static int make_thread_keys(struct view *v, struct error *err)
{
	struct profile *p = v->profile;
	v->private->thread_key = malloc(p->n_label_sets * sizeof *v->private->thread_key);
	if (!v->private->thread_key)
		return error_nomem(err, "the view's threads");
	for (size_t i = 0; i < p->n_label_sets; i++) {
		uint32_t thread = p->label_sets[i].thread, name = thread;
		if (v->diff && !v->one_process && thread)
			name = thread_name(p, thread);
		if (!name && v->by == BY_THREAD)
			name = thread;
		v->private->thread_key[i] = name;
	}
	return p->failure.code ? error_nomem(err, "the view's threads") : E_OK;
}

static int make_thread_entries(struct view *v, struct error *err)
{
	struct profile *p = v->profile;
	v->private->thread_entry = malloc(p->n_label_sets * sizeof *v->private->thread_entry);
	if (!v->private->thread_entry)
		return error_nomem(err, "the view's threads");
	for (size_t i = 0; i < p->n_label_sets; i++) {
		uint32_t thread = v->private->thread_key[i];
		struct entry e = { .mapping = PROFILE_NONE,
			           .name = thread ? thread : profile_cstring(p, "(no thread)") };
		uint32_t id = entry_intern(v, &e);
		if (id == INDEX_NONE || p->failure.code)
			return error_nomem(err, "the view's threads");
		v->private->thread_entry[i] = id;
	}
	return E_OK;
}

/* --- stacks ---------------------------------------------------------------- */

/* Room for a stack of that many frames in all three arrays. */
static bool reserve_stack(struct view_private *x, size_t need)
{
	uint32_t **const arrays[] = { &x->slots, &x->locations, &x->entries };
	size_t least = SIZE_MAX;
	for (int i = 0; i < 3; i++) {
		size_t capacity = x->stack_capacity;
		if (!memory_grow((void **)arrays[i], &capacity, need, sizeof **arrays[i], SIZE_MAX / sizeof **arrays[i]))
			return false;
		least = capacity < least ? capacity : least;
	}
	x->stack_capacity = least;
	return true;
}

size_t view_stack_slots(struct view *v, uint32_t stack)
{
	const struct profile *p = v->profile;
	struct view_private *x = v->private;
	const struct stack *s = &p->stacks[stack];
	size_t n = 0;
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t location = p->frames[s->first + i];
		uint32_t from = x->slot_first[location], to = x->slot_first[location + 1];
		if (n + (to - from) > x->stack_capacity && !reserve_stack(x, n + (to - from)))
			return SIZE_MAX;
		for (; from < to; from++) {
			x->locations[n] = location;
			x->slots[n++] = from;
		}
	}
	if (x->keep_allocator || n == 0)
		return n;
	uint8_t leaf[ALLOCATOR_MAX_FRAMES];
	size_t look = n < ALLOCATOR_MAX_FRAMES ? n : ALLOCATOR_MAX_FRAMES;
	for (size_t i = 0; i < look; i++)
		leaf[i] = x->slot_flags[x->slots[i]];
	size_t cut = allocator_leaf_frames(leaf, look);
	if (cut > 0) {
		memmove(x->slots, x->slots + cut, (n - cut) * sizeof *x->slots);
		memmove(x->locations, x->locations + cut, (n - cut) * sizeof *x->locations);
	}
	return n - cut;
}

size_t view_stack(struct view *v, const struct view_row *row, const uint32_t **ret_entries)
{
	struct view_private *x = v->private;
	*ret_entries = NULL;
	if (v->by == BY_THREAD) {
		*ret_entries = &x->thread_entry[row->labels];
		if (x->stack_capacity > 0 || reserve_stack(x, 1))
			x->locations[0] = PROFILE_NONE;
		return 1;
	}
	size_t n = view_stack_slots(v, row->stack);
	if (n == SIZE_MAX || (x->stack_capacity == 0 && !reserve_stack(x, 1)))
		return 0;
	if (x->has_show_from)
		for (size_t i = n; i > 0; i--)
			if (x->slot_flags[x->slots[i - 1]] & SLOT_SHOW_FROM) {
				n = i;
				break;
			}
	size_t kept = 0;
	for (size_t i = 0; i < n; i++) {
		if (x->has_removed && x->slot_flags[x->slots[i]] & SLOT_REMOVED)
			continue;
		x->locations[kept] = x->locations[i];
		x->entries[kept++] = x->slot_entry[x->slots[i]];
	}
	*ret_entries = x->entries;
	return kept;
}

const uint32_t *view_stack_locations(const struct view *v)
{
	return v->private->locations;
}

int view_slots(const struct view *v, struct view_slot **ret_slots, size_t *ret_n, struct error *err)
{
	const struct profile *p = v->profile;
	const struct view_private *x = v->private;
	struct view_slot *slots = calloc(x->n_slots + 1, sizeof *slots);
	if (!slots)
		return error_nomem(err, "the frames of all stacks");
	for (size_t i = 0; i < p->n_locations; i++)
		for (uint32_t s = x->slot_first[i]; s < x->slot_first[i + 1]; s++)
			slots[s] = (struct view_slot){ x->slot_entry[s], p->locations[i].mapping,
				                       x->slot_flags[s] & SLOT_INLINED, p->locations[i].n_lines == 0 };
	*ret_slots = slots;
	*ret_n = x->n_slots;
	return E_OK;
}

size_t view_slots_of(struct view *v, uint32_t stack, const uint32_t **ret_slots)
{
	size_t n = view_stack_slots(v, stack);
	*ret_slots = v->private->slots;
	return n;
}

/* --- amounts --------------------------------------------------------------- */

struct columns view_columns(const struct profile *p, int column)
{
	struct columns c = { -1, -1, false, false, false, -1, -1 };
	for (int first = ALLOC_OBJECTS; first < METRICS; first += 2) {
		if (column != p->metric[first] && column != p->metric[first + 1])
			continue;
		c.heap = true;
		c.alloc = first == ALLOC_OBJECTS;
		c.objects = p->metric[first];
		c.bytes = p->metric[first + 1];
		c.want_objects = column == c.objects;
	}
	if (c.heap && !c.alloc && p->metric[ALLOC_OBJECTS] >= 0 && p->metric[ALLOC_SPACE] >= 0) {
		c.other_objects = p->metric[ALLOC_OBJECTS];
		c.other_bytes = p->metric[ALLOC_SPACE];
	}
	return c;
}

struct estimate view_estimate(const struct columns *c, double objects, double bytes, uint64_t block_size,
                              double rate)
{
	if (c->want_objects)
		return estimate_objects(objects, bytes, block_size, c->bytes < 0 ? 0 : rate);
	return estimate_bytes(objects, bytes, block_size, rate);
}

static struct estimate sample_estimate(const struct profile *p, size_t i, const struct columns *c, int column,
                                       double sign)
{
	const struct sample *s = &p->samples[i];
	if (!c->heap)
		return (struct estimate){ .value = sign * view_value(p, i, column) };
	return view_estimate(c, sign * view_value(p, i, c->objects), sign * view_value(p, i, c->bytes),
	                     p->label_sets[s->labels].block_size, p->sources[s->source].rate);
}

static struct amount sample_amount(const struct profile *p, size_t i, const struct columns *c, int column)
{
	struct amount a = { 0 };
	double value = view_value(p, i, column);
	bool base = p->sources[p->samples[i].source].base;
	if (base)
		a.base = value;
	else
		a.now = value;
	/* A negative value stands on the other side: somebody's subtraction. */
	if ((value < 0) != base)
		a.lost = sample_estimate(p, i, c, column, value < 0 ? -1 : 1);
	else
		a.gained = sample_estimate(p, i, c, column, value < 0 ? -1 : 1);
	return a;
}

/* --- rows ------------------------------------------------------------------ */

struct order {
	uint32_t stack, thread, sample;
	bool keep;                  /* by the label filters */
};

static int compare_order(const void *a, const void *b)
{
	const struct order *x = a, *y = b;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->keep != y->keep)
		return x->keep < y->keep ? -1 : 1;
	if (x->thread != y->thread)
		return x->thread < y->thread ? -1 : 1;
	return (x->sample > y->sample) - (x->sample < y->sample);
}

/* Sums of one row of a diff, by side. */
struct sides {
	double objects[2], bytes[2], alloc_objects[2], alloc_bytes[2];
	uint64_t block_size;
	bool one_size;
	double rate;
};

static void sides_add(struct sides *d, const struct profile *p, size_t i, const struct columns *c)
{
	const struct sample *s = &p->samples[i];
	int side = p->sources[s->source].base ? 0 : 1;
	uint64_t size = p->label_sets[s->labels].block_size;
	if (d->rate == 0) {
		d->rate = p->sources[s->source].rate;
		d->block_size = size;
		d->one_size = size != 0;
	}
	d->one_size = d->one_size && size == d->block_size;
	d->objects[side] += view_value(p, i, c->objects);
	d->bytes[side] += view_value(p, i, c->bytes);
	d->alloc_objects[side] += view_value(p, i, c->other_objects);
	d->alloc_bytes[side] += view_value(p, i, c->other_bytes);
}

/*
 * One process, two moments: blocks alive at both cancel exactly, so only what came and went is uncertain. With
 * accumulated counts that is known: allocated in between, and freed = allocated - growth.
 */
static void tighten_same_process(struct amount *a, const struct sides *d, const struct columns *c)
{
	uint64_t size = d->one_size ? d->block_size : 0;
	if (c->alloc) {
		a->gained = view_estimate(c, d->objects[1] - d->objects[0],
		                        fmax(0, d->bytes[1] - d->bytes[0]), size, d->rate);
		a->gained.value = a->now - a->base;
		a->lost = (struct estimate){ .weight = 0 };
		return;
	}
	if (c->other_bytes < 0)
		return;
	double grown_bytes = d->bytes[1] - d->bytes[0], grown = d->objects[1] - d->objects[0];
	double bytes = fmax(d->alloc_bytes[1] - d->alloc_bytes[0], fmax(0, grown_bytes));
	double objects = fmax(d->alloc_objects[1] - d->alloc_objects[0], fmax(0, grown));
	struct estimate came = view_estimate(c, objects, bytes, size, d->rate);
	struct estimate went = view_estimate(c, objects - grown, bytes - grown_bytes, size, d->rate);
	if (came.variance + went.variance <= a->gained.variance + a->lost.variance) {
		a->gained = came;
		a->lost = went;
	}
}

static bool push_row(struct view *v, uint32_t stack, uint32_t labels, const struct amount *a)
{
	struct view_row *row = ARRAY_PUSH(v->rows, v->n_rows, v->rows_capacity, INDEX_NONE - 1);
	if (row)
		*row = (struct view_row){ stack, labels, *a };
	return row != NULL;
}

static double unseen_weight(const struct columns *c, const struct profile *p, bool base)
{
	double rate = 0;
	for (size_t i = 0; c->heap && i < p->n_sources; i++)
		if (p->sources[i].base == base)
			rate = fmax(rate, p->sources[i].rate);
	return rate > 1 && !c->want_objects ? rate : 0;
}

static bool sources_are_one_process(const struct profile *p)
{
	if (p->n_sources != 2 || p->sources[0].base == p->sources[1].base)
		return false;
	const struct source *a = &p->sources[0], *b = &p->sources[1];
	return a->process && a->process == b->process && a->rate == b->rate &&
	       (!a->pid || !b->pid || a->pid == b->pid);
}

static bool one_row(const struct order *a, const struct order *b)
{
	return a->stack == b->stack && a->keep == b->keep && a->thread == b->thread;
}

static struct order *order_samples(const struct view *v, const bool *keep_labels)
{
	const struct profile *p = v->profile;
	struct order *order = malloc((p->n_samples + 1) * sizeof *order);
	for (size_t i = 0; order && i < p->n_samples; i++) {
		const struct sample *s = &p->samples[i];
		order[i] = (struct order){ s->stack, v->private->thread_key[s->labels], (uint32_t)i,
			                   keep_labels[s->labels] };
	}
	if (order)
		qsort(order, p->n_samples, sizeof *order, compare_order);
	return order;
}

/* The amount of the n samples of one row, and the labels they share (0 when their threads differ). */
static struct amount row_amount(const struct view *v, const struct columns *c, const struct order *order, size_t n,
                                uint32_t *ret_labels)
{
	const struct profile *p = v->profile;
	struct amount a = { 0 };
	struct sides sides = { 0 };
	*ret_labels = p->samples[order[0].sample].labels;
	for (size_t i = 0; i < n; i++) {
		struct amount one = sample_amount(p, order[i].sample, c, v->column);
		amount_add(&a, &one);
		sides_add(&sides, p, order[i].sample, c);
		uint32_t labels = p->samples[order[i].sample].labels;
		if (p->label_sets[labels].thread != p->label_sets[*ret_labels].thread && !order[0].thread)
			*ret_labels = 0;
	}
	/* A side that saw nothing may still have had a little. */
	if (!(a.lost.value > 0))
		a.lost.weight = fmax(a.lost.weight, unseen_weight(c, p, true));
	if (!(a.gained.value > 0))
		a.gained.weight = fmax(a.gained.weight, unseen_weight(c, p, false));
	if (v->one_process && v->has_error)
		tighten_same_process(&a, &sides, c);
	return a;
}

static int diff_rows(struct view *v, const struct columns *c, const bool *keep_labels, struct error *err)
{
	const struct profile *p = v->profile;
	struct order *order = order_samples(v, keep_labels);
	if (!order)
		return error_nomem(err, "the rows of a diff");
	int code = E_OK;
	for (size_t i = 0, j; i < p->n_samples && !code; i = j) {
		for (j = i + 1; j < p->n_samples && one_row(&order[i], &order[j]);)
			j++;
		uint32_t labels;
		struct amount a = row_amount(v, c, order + i, j - i, &labels);
		if (a.base == 0 && a.now == 0)
			continue;
		amount_add(&v->total_all, &a);
		if (!order[i].keep || !view_filter_stack(v, order[i].stack))
			continue;
		amount_add(&v->total, &a);
		if (!push_row(v, order[i].stack, labels, &a))
			code = error_nomem(err, "rows");
	}
	free(order);
	return code;
}

static int plain_rows(struct view *v, const struct columns *c, const bool *keep_labels, struct error *err)
{
	const struct profile *p = v->profile;
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct sample *s = &p->samples[i];
		struct amount a = sample_amount(p, i, c, v->column);
		if (a.now == 0)
			continue;
		amount_add(&v->total_all, &a);
		if (!keep_labels[s->labels] || !view_filter_stack(v, s->stack))
			continue;
		amount_add(&v->total, &a);
		if (!push_row(v, s->stack, s->labels, &a))
			return error_nomem(err, "rows");
	}
	return E_OK;
}

static int make_rows(struct view *v, const struct view_options *o, struct error *err)
{
	struct profile *p = v->profile;
	struct columns c = view_columns(p, v->column);
	bool *keep_labels = malloc(p->n_label_sets * sizeof *keep_labels);
	if (!keep_labels)
		return error_nomem(err, "label filters");
	v->has_error = c.heap && p->n_sources > 0;
	for (size_t i = 0; i < p->n_sources; i++)
		v->has_error = v->has_error && p->sources[i].rate > 0;
	int code = view_filter_labels(p, o, keep_labels, err);
	if (!code)
		code = v->diff ? diff_rows(v, &c, keep_labels, err) : plain_rows(v, &c, keep_labels, err);
	free(keep_labels);
	return code;
}

/* --- life ------------------------------------------------------------------ */

int view_new(struct profile *p, const struct view_options *o, struct view **ret, struct error *err)
{
	int column = o->column < 0 ? profile_default_column(p) : o->column;
	if (column < 0 || (size_t)column >= p->n_types)
		return error_set(err, E_USAGE, "the profile has no sample type to show");
	struct view *v = calloc(1, sizeof *v);
	if (v)
		v->private = calloc(1, sizeof *v->private);
	if (!v || !v->private) {
		free(v);
		return error_nomem(err, "the view");
	}
	v->profile = p;
	v->by = o->by;
	v->column = column;
	v->private->keep_allocator = o->show_allocator;
	for (size_t i = 0; i < p->n_sources; i++)
		v->diff = v->diff || p->sources[i].base;
	v->one_process = v->diff && sources_are_one_process(p);
	int code = make_slots(v, o->no_inlines, err);
	if (!code)
		code = make_thread_keys(v, err);
	if (!code && v->by == BY_THREAD)
		code = make_thread_entries(v, err);
	if (!code)
		code = view_filter_slots(v, o, err);
	if (!code)
		code = make_rows(v, o, err);
	if (code) {
		view_free(v);
		return code;
	}
	v->unit = profile_text(p, p->types[column].unit);
	v->type = profile_text(p, p->types[column].type);
	*ret = v;
	return E_OK;
}

void view_free(struct view *v)
{
	if (!v)
		return;
	struct view_private *x = v->private;
	free(x->slot_first);
	free(x->slot_entry);
	free(x->slot_flags);
	index_finish(&x->entry_index);
	free(x->thread_key);
	free(x->thread_entry);
	free(x->entries);
	free(x->locations);
	free(x->slots);
	free(x);
	free(v->entries);
	free(v->rows);
	free(v);
}
