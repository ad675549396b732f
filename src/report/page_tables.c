/*
 * What any choice of stacks draws on: frames as the page tells them apart, label sets without what it does not show, which samples there
 * are by stack, and how heavy each stack is.
 */
#include "report/page_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_MAX ((int64_t)1 << 53)    /* whole numbers that a double holds */

/* --- frames --- */

struct frame_key {
	const struct page_source *s;
	struct page_frame frame;
};

static bool same_frame(const void *context, uint32_t item)
{
	const struct frame_key *k = context;
	const struct page_frame *f = &k->s->frames[item];
	return f->entry == k->frame.entry && f->mapping == k->frame.mapping && f->flags == k->frame.flags;
}

static uint32_t intern_frame(struct page_source *s, struct index *index, struct page_frame frame)
{
	struct frame_key key = { s, frame };
	uint64_t hash = hash_u64((uint64_t)frame.entry << 32 ^ (uint64_t)frame.mapping << 2 ^ frame.flags);
	uint32_t id = index_find(index, hash, same_frame, &key);
	if (id != INDEX_NONE || !index_reserve(index))
		return id;
	struct page_frame *slot = ARRAY_PUSH(s->frames, s->n_frames, s->frames_capacity, INDEX_NONE - 1);
	if (!slot)
		return INDEX_NONE;
	*slot = frame;
	id = (uint32_t)(s->n_frames - 1);
	index_insert(index, hash, id);
	return id;
}

/* Per slot of the view its frame. */
static int make_frames(struct page_source *s, uint32_t **ret_slot_frame, struct error *err)
{
	struct view_slot *slots = NULL;
	size_t n;
	int code = view_slots(s->v, &slots, &n, err);
	if (code)
		return code;
	struct index index = { 0 };
	uint32_t *slot_frame = malloc((n + 1) * sizeof(*slot_frame));
	if (!slot_frame)
		code = error_nomem(err, "the page's frames");
	for (size_t i = 0; i < n && !code; i++) {
		const struct view_slot *slot = &slots[i];
		struct page_frame frame = { .entry = slot->entry };
		if (slot->mapping != PROFILE_NONE)
			frame.mapping = s->p->mappings[slot->mapping].file;
		frame.flags = (uint8_t)((slot->inlined ? PAGE_INLINED : 0) | (slot->bare ? PAGE_ADDRESS : 0));
		slot_frame[i] = intern_frame(s, &index, frame);
		if (slot_frame[i] == INDEX_NONE)
			code = error_nomem(err, "the page's frames");
	}
	index_finish(&index);
	free(slots);
	*ret_slot_frame = slot_frame;
	return code;
}

static bool add_stack(struct page_source *s, uint32_t stack, const uint32_t *slot_frame)
{
	const uint32_t *slots;
	size_t n = view_slots_of(s->v, stack, &slots), need = s->n_stack_frames + n;
	if (n == SIZE_MAX ||
	    (need > s->stack_frames_capacity && !memory_grow((void **)&s->stack_frames, &s->stack_frames_capacity, need,
	                                                     sizeof(*s->stack_frames), SIZE_MAX / sizeof(*s->stack_frames))))
		return false;
	for (size_t i = 0; i < n; i++)
		s->stack_frames[s->n_stack_frames + i] = slot_frame[slots[n - 1 - i]];
	s->n_stack_frames = need;
	return true;
}

static int make_stacks(struct page_source *s, struct error *err)
{
	const struct profile *p = s->p;
	uint32_t *slot_frame = NULL;
	int code = make_frames(s, &slot_frame, err);
	s->first_frame = malloc((p->n_stacks + 1) * sizeof(*s->first_frame));
	if (!code && !s->first_frame)
		code = error_nomem(err, "the page's stacks");
	for (uint32_t i = 0; i < p->n_stacks && !code; i++) {
		s->first_frame[i] = s->n_stack_frames;
		if (s->first_sample[i] < s->first_sample[i + 1] && !add_stack(s, i, slot_frame))
			code = error_nomem(err, "the page's stacks");
	}
	if (!code)
		s->first_frame[p->n_stacks] = s->n_stack_frames;
	free(slot_frame);
	return code;
}

/* --- labels --- */

struct labels_key {
	const struct page_source *s;
	struct page_labels labels;
};

static bool same_labels(const void *context, uint32_t item)
{
	const struct labels_key *k = context;
	const struct page_labels *l = &k->s->labels[item];
	return l->thread == k->labels.thread && l->text == k->labels.text && l->size == k->labels.size;
}

static uint32_t intern_labels(struct page_source *s, struct index *index, struct page_labels labels)
{
	struct labels_key key = { s, labels };
	uint64_t hash = hash_mix(hash_u64((uint64_t)labels.thread << 32 | labels.text), labels.size);
	uint32_t id = index_find(index, hash, same_labels, &key);
	if (id != INDEX_NONE || !index_reserve(index))
		return id;
	struct page_labels *slot = ARRAY_PUSH(s->labels, s->n_labels, s->labels_capacity, INDEX_NONE - 1);
	if (!slot)
		return INDEX_NONE;
	*slot = labels;
	id = (uint32_t)(s->n_labels - 1);
	index_insert(index, hash, id);
	return id;
}

static void add_string(const struct profile *p, uint32_t string, struct buf *out)
{
	buf_add(out, profile_text(p, string), strings_length(&p->strings, string));
}

/* Labels besides thread and block size: "key=value, key=12 ms". */
static uint32_t other_labels(struct profile *p, const struct label_set *set, struct buf *text)
{
	buf_reset(text);
	for (uint32_t i = 0; i < set->n; i++) {
		const struct label *l = &p->labels[set->first + i];
		if (l->str ? l->str == set->thread && strcmp(profile_text(p, l->key), "thread") == 0
		           : set->block_size && strcmp(profile_text(p, l->key), "bytes") == 0)
			continue;
		buf_adds(text, text->len ? ", " : "");
		add_string(p, l->key, text);
		buf_addc(text, '=');
		if (l->str) {
			add_string(p, l->str, text);
			continue;
		}
		buf_printf(text, "%lld%s", (long long)l->number, l->unit ? " " : "");
		add_string(p, l->unit, text);
	}
	return text->len ? profile_string(p, text->data, text->len) : 0;
}

static int make_labels(struct page_source *s, struct error *err)
{
	struct profile *p = s->p;
	struct index index = { 0 };
	struct buf text;
	buf_init(&text, BUF_MAX_DEFAULT);
	s->labels_of = malloc((p->n_label_sets + 1) * sizeof(*s->labels_of));
	s->thread_labels_of = malloc((p->n_label_sets + 1) * sizeof(*s->thread_labels_of));
	bool ok = s->labels_of && s->thread_labels_of && intern_labels(s, &index, (struct page_labels){ 0 }) == 0;
	for (size_t i = 0; i < p->n_label_sets && ok; i++) {
		const struct label_set *set = &p->label_sets[i];
		struct page_labels labels = { .thread = set->thread, .size = set->block_size <= (uint64_t)EXACT_MAX ? set->block_size : 0 };
		s->thread_labels_of[i] = intern_labels(s, &index, (struct page_labels){ .thread = set->thread });
		if (set->n > (set->thread ? 1u : 0u) + (set->block_size ? 1u : 0u))
			labels.text = other_labels(p, set, &text);
		s->labels_of[i] = intern_labels(s, &index, labels);
		ok = s->labels_of[i] != INDEX_NONE && s->thread_labels_of[i] != INDEX_NONE && !text.failed && !p->failure.code;
	}
	index_finish(&index);
	buf_finish(&text);
	return ok ? E_OK : error_nomem(err, "the page's labels");
}

/* --- values --- */

/*
 * Blocks of one size: bytes are objects times that size, or nearly. Where it holds for doubles too, the page is told the difference
 * only, which is mostly 0.
 */
static bool sizes_fit(const struct page_source *s, int objects)
{
	const struct profile *p = s->p;
	bool any = false;
	for (size_t i = 0; i < p->n_samples; i++) {
		int64_t size = (int64_t)s->labels[s->labels_of[p->samples[i].labels]].size, product;
		if (!size)
			continue;
		any = true;
		if (__builtin_mul_overflow(p->values[i * p->n_types + (size_t)objects], size, &product) || product >= EXACT_MAX ||
		    product <= -EXACT_MAX)
			return false;
	}
	return any;
}

static int make_times(struct page_source *s, struct error *err)
{
	const struct profile *p = s->p;
	s->times = malloc((p->n_types + 1) * sizeof(*s->times));
	if (!s->times)
		return error_nomem(err, "the page's types");
	for (size_t i = 0; i < p->n_types; i++)
		s->times[i] = -1;
	for (int first = ALLOC_OBJECTS; first < METRICS; first += 2) {
		int objects = p->metric[first], bytes = p->metric[first + 1];
		if (objects >= 0 && bytes >= 0 && sizes_fit(s, objects))
			s->times[bytes] = objects;
	}
	return E_OK;
}

/* --- samples by stack --- */

/* Those that hold nothing too: in a diff they count for block sizes, and for what may not have been seen. */
static bool is_kept(const struct page_source *s, size_t sample)
{
	return s->keep_labels[s->p->samples[sample].labels];
}

static int compare_samples(const void *a, const void *b, void *context)
{
	const struct page_source *s = context;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct sample *x = &s->p->samples[i], *y = &s->p->samples[k];
	uint32_t p = s->labels_of[x->labels], q = s->labels_of[y->labels];
	if (p != q)
		return p < q ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (i > k) - (i < k);
}

static int make_samples(struct page_source *s, struct error *err)
{
	const struct profile *p = s->p;
	s->first_sample = calloc(p->n_stacks + 2, sizeof(*s->first_sample));
	s->samples = malloc((p->n_samples + 1) * sizeof(*s->samples));
	if (!s->first_sample || !s->samples)
		return error_nomem(err, "the page's samples");
	/* Counted two places on, so that filling in moves each to its beginning. */
	size_t *at = s->first_sample + 1;
	for (size_t i = 0; i < p->n_samples; i++)
		if (is_kept(s, i))
			at[p->samples[i].stack + 1]++;
	for (size_t i = 1; i <= p->n_stacks; i++)
		at[i] += at[i - 1];
	for (size_t i = 0; i < p->n_samples; i++)
		if (is_kept(s, i))
			s->samples[at[p->samples[i].stack]++] = (uint32_t)i;
	for (size_t i = 0; i < p->n_stacks; i++) {
		size_t from = s->first_sample[i], n = s->first_sample[i + 1] - from;
		if (n > 1)
			qsort_r(s->samples + from, n, sizeof(*s->samples), compare_samples, s);
	}
	return E_OK;
}

/* --- weights --- */

static double weigh(struct page_source *s, uint32_t stack, double *by_snapshot)
{
	const struct profile *p = s->p;
	double most = 0;
	for (size_t i = s->first_sample[stack]; i < s->first_sample[stack + 1]; i++) {
		const struct sample *sample = &p->samples[s->samples[i]];
		double value = (double)p->values[s->samples[i] * p->n_types + (size_t)s->column];
		by_snapshot[p->sources[sample->source].snapshot] += value;
		s->value += fabs(value);
	}
	for (size_t i = s->first_sample[stack]; i < s->first_sample[stack + 1]; i++) {
		double *sum = &by_snapshot[p->sources[p->samples[s->samples[i]].source].snapshot];
		most = fmax(most, fabs(*sum));
		*sum = 0;
	}
	return most;
}

static int compare_ranks(const void *a, const void *b)
{
	const struct page_rank *x = a, *y = b;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static int make_ranks(struct page_source *s, struct error *err)
{
	const struct profile *p = s->p;
	double *by_snapshot = calloc(s->n_snapshots, sizeof(*by_snapshot));
	s->ranks = malloc((p->n_stacks + 1) * sizeof(*s->ranks));
	bool ok = by_snapshot && s->ranks;
	for (uint32_t i = 0; ok && i < p->n_stacks; i++) {
		if (s->first_sample[i] == s->first_sample[i + 1])
			continue;
		s->ranks[s->n_ranks++] = (struct page_rank){ weigh(s, i, by_snapshot), i };
	}
	free(by_snapshot);
	if (!ok)
		return error_nomem(err, "the page's stacks");
	qsort(s->ranks, s->n_ranks, sizeof(*s->ranks), compare_ranks);
	return E_OK;
}

/* --- all of it --- */

int page_source_make(struct profile *p, const struct page_options *o, struct page_source *ret, struct error *err)
{
	*ret = (struct page_source){ .p = p, .o = o, .n_snapshots = 1 };
	/* The page filters frames by itself. */
	struct view_options by_line = o->view;
	by_line.by = BY_LINE;
	by_line.focus = by_line.ignore = by_line.hide = by_line.show = by_line.show_from = NULL;
	int code = view_check_expressions(&o->view, err);
	if (!code)
		code = view_new(p, &by_line, &ret->v, err);
	if (code)
		return code;
	for (size_t i = 0; i < p->n_sources; i++)
		if (p->sources[i].snapshot >= ret->n_snapshots)
			ret->n_snapshots = p->sources[i].snapshot + 1;
	ret->column = profile_default_column(p);
	ret->keep_labels = malloc(p->n_label_sets * sizeof(*ret->keep_labels));
	if (!ret->keep_labels)
		return error_nomem(err, "the page's labels");
	code = view_filter_labels(p, &o->view, ret->keep_labels, err);
	if (!code)
		code = make_labels(ret, err);
	if (!code)
		code = make_times(ret, err);
	if (!code)
		code = make_samples(ret, err);
	if (!code)
		code = make_stacks(ret, err);
	return code ? code : make_ranks(ret, err);
}

void page_source_finish(struct page_source *s)
{
	view_free(s->v);
	free(s->keep_labels);
	free(s->frames);
	free(s->stack_frames);
	free(s->first_frame);
	free(s->labels);
	free(s->labels_of);
	free(s->thread_labels_of);
	free(s->times);
	free(s->samples);
	free(s->first_sample);
	free(s->ranks);
	*s = (struct page_source){ 0 };
}
