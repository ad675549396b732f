/*
 * Frames get their numbers in the order of their text. Two stacks then compare as two lists of numbers,
 * and nobody looks at a character again until the lines are written.
 */
#include "format/export.h"

#include "base/sequences.h"
#include "base/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char no_frames[] = "(no frames)";

/* --- frames --- */

/* " a.c:12" or " 0x1f30": what tells entries of one function apart. */
static void add_detail(const struct view *v, const struct entry *e, struct buf *out)
{
	if (v->by == BY_LINE && e->line > 0) {
		buf_addc(out, ' ');
		const char *base = path_base(profile_text(v->profile, e->file));
		export_add_clean(base, strlen(base), out);
		buf_addc(out, ':');
		export_integer(out, (double)e->line);
	} else if (v->by == BY_ADDRESS) {
		size_t before = out->len;
		buf_printf(out, " 0x%llx", (unsigned long long)e->address);
		/* A frame without a name has its address there already. */
		if (!out->failed && strstr(profile_text(v->profile, e->name), out->data + before + 1)) {
			buf_cut(out, before);
		}
	}
}

void export_add_clean(const char *s, size_t n, struct buf *out)
{
	size_t start = out->len, kept = 0;
	for (size_t i = 0; i < n;) {
		size_t length = text_utf8_length(s + i, n - i);
		if (length == 0) {
			buf_add(out, s + kept, i - kept);
			buf_adds(out, "\xef\xbf\xbd");
			kept = i + 1;
		}
		i += length ? length : 1;
	}
	buf_add(out, s + kept, n - kept);
	for (size_t i = start; !out->failed && i < out->len; i++)
		if ((unsigned char)out->data[i] < 0x20 || out->data[i] == 0x7f)
			out->data[i] = ' ';
}

static bool blank(const char *s, size_t n)
{
	return strspn(s, " ") >= n;
}

static void add_name(struct export *x, enum export_frames by, uint32_t entry)
{
	const struct strings *s = &x->v->profile->strings;
	const struct entry *e = &x->v->entries[entry];
	struct export_frame *f = &x->names[entry];
	f->at = x->text.len;
	f->entry = entry;
	if (by == EXPORT_BY_TEXT) {
		export_add_clean(strings_get(s, e->name), strings_length(s, e->name), &x->text);
		add_detail(x->v, e, &x->text);
		for (size_t i = f->at; !x->text.failed && i < x->text.len; i++)
			if (x->text.data[i] == ';')
				x->text.data[i] = ':';
	} else {
		buf_add(&x->text, strings_get(s, e->name), strings_length(s, e->name));
	}
	if (!x->text.failed && blank(x->text.data + f->at, x->text.len - f->at)) {
		x->text.len = f->at;
		buf_adds(&x->text, "(unnamed)");
	}
	f->length = (uint32_t)(x->text.len - f->at);
	buf_addc(&x->text, '\0');
}

struct by_name {
	const struct export *x;
	enum export_frames by;
};

static int compare_text(const struct export *x, const struct export_frame *a, const struct export_frame *b)
{
	size_t n = a->length < b->length ? a->length : b->length;
	int order = memcmp(x->text.data + a->at, x->text.data + b->at, n);
	return order ? order : (a->length > b->length) - (a->length < b->length);
}

static int compare_names(const void *a, const void *b, void *context)
{
	const struct by_name *c = context;
	const struct export_frame *p = a, *q = b;
	int order = compare_text(c->x, p, q);
	if (order || c->by == EXPORT_BY_TEXT || p->entry == q->entry)
		return order;
	if (p->entry == PROFILE_NONE || q->entry == PROFILE_NONE)
		return p->entry == PROFILE_NONE ? 1 : -1;
	const struct view *v = c->x->v;
	const struct entry *d = &v->entries[p->entry], *e = &v->entries[q->entry];
	order = strcmp(profile_text(v->profile, d->file), profile_text(v->profile, e->file));
	if (order == 0)
		order = (d->line > e->line) - (d->line < e->line);
	if (order == 0)
		order = (d->address > e->address) - (d->address < e->address);
	return order ? order : (p->entry > q->entry) - (p->entry < q->entry);
}

/* All entries' texts, ordered; equal ones become one when frames are their text. */
static bool make_names(struct export *x, enum export_frames by)
{
	size_t n = x->v->n_entries;
	x->names = calloc(n + 1, sizeof(*x->names));
	x->name_of_entry = calloc(n + 1, sizeof(*x->name_of_entry));
	if (!x->names || !x->name_of_entry)
		return false;
	for (size_t i = 0; i < n; i++)
		add_name(x, by, (uint32_t)i);
	x->names[n] = (struct export_frame){ .at = x->text.len, .length = sizeof(no_frames) - 1,
		                             .entry = PROFILE_NONE };
	buf_add(&x->text, no_frames, sizeof(no_frames));
	if (x->text.failed)
		return false;
	struct by_name context = { x, by };
	qsort_r(x->names, n + 1, sizeof(*x->names), compare_names, &context);
	for (size_t i = 0; i <= n; i++) {
		struct export_frame f = x->names[i];
		if (by == EXPORT_BY_ENTRY || i == 0 || compare_text(x, &x->names[x->n_names - 1], &f) != 0)
			x->names[x->n_names++] = f;
		x->name_of_entry[f.entry == PROFILE_NONE ? n : f.entry] = (uint32_t)x->n_names - 1;
	}
	return true;
}

/* --- stacks --- */

struct stack_key {
	const struct export *x;
	const struct export_stack *s;
};

static bool same_stack(const void *context, uint32_t item)
{
	const struct stack_key *k = context;
	const struct export_stack *a = &k->x->stacks[item], *b = k->s;
	return a->n == b->n && a->thread == b->thread && a->block_size == b->block_size &&
	       memcmp(k->x->frames + a->first, k->x->frames + b->first, a->n * sizeof(*k->x->frames)) == 0;
}

/* Appends the row's frames, root first, to x->frames. */
static bool copy_frames(struct export *x, const struct view_row *row, struct export_stack *ret)
{
	const uint32_t *entries;
	size_t n = view_stack(x->v, row, &entries);
	size_t need = x->n_frames + n + 1;
	if (need > x->frames_capacity &&
	    !memory_grow((void **)&x->frames, &x->frames_capacity, need, sizeof(*x->frames), SIZE_MAX / 8))
		return false;
	ret->first = x->n_frames;
	ret->n = n ? (uint32_t)n : 1;
	uint32_t *to = x->frames + x->n_frames;
	to[0] = x->name_of_entry[x->v->n_entries];
	for (size_t i = 0; i < n; i++)
		to[i] = x->name_of_entry[entries[n - 1 - i]];
	return true;
}

static bool add_row(struct export *x, struct index *index, const struct view_row *row, bool labels)
{
	struct export_stack s = { .amount = row->amount };
	if (s.amount.base == 0 && s.amount.now == 0)
		return true;
	if (labels) {
		s.thread = x->v->profile->label_sets[row->labels].thread;
		s.block_size = x->v->profile->label_sets[row->labels].block_size;
	}
	if (!copy_frames(x, row, &s) || !index_reserve(index))
		return false;
	uint64_t hash = hash_bytes(x->frames + s.first, s.n * sizeof(*x->frames));
	hash = hash_mix(hash, s.block_size << 32 ^ s.thread);
	struct stack_key key = { x, &s };
	uint32_t id = index_find(index, hash, same_stack, &key);
	if (id != INDEX_NONE) {
		amount_add(&x->stacks[id].amount, &s.amount);
		return true;
	}
	struct export_stack *slot = ARRAY_PUSH(x->stacks, x->n_stacks, x->stacks_capacity, INDEX_NONE - 1);
	if (!slot)
		return false;
	*slot = s;
	x->n_frames += s.n;
	index_insert(index, hash, (uint32_t)(x->n_stacks - 1));
	return true;
}

/* Stacks with the same frames: by thread, then block size. */
static int compare_labels(const void *context, uint32_t item, uint32_t other)
{
	const struct export *x = context;
	const struct export_stack *s = &x->stacks[item], *t = &x->stacks[other];
	const struct profile *profile = x->v->profile;
	int order = strcmp(profile_text(profile, s->thread), profile_text(profile, t->thread));
	return order ? order : (s->block_size > t->block_size) - (s->block_size < t->block_size);
}

static bool sort_stacks(struct export *x)
{
	struct sequence *order = malloc((x->n_stacks + 1) * sizeof(*order));
	struct export_stack *sorted = malloc((x->n_stacks + 1) * sizeof(*sorted));
	for (size_t i = 0; order && i < x->n_stacks; i++)
		order[i] = (struct sequence){ x->stacks[i].first, x->stacks[i].n, (uint32_t)i };
	bool ok = order && sorted && sequences_sort(x->frames, order, x->n_stacks, compare_labels, x);
	for (size_t i = 0; ok && i < x->n_stacks; i++)
		sorted[i] = x->stacks[order[i].item];
	free(order);
	free(ok ? x->stacks : sorted);
	if (ok)
		x->stacks = sorted;
	return ok;
}

/* Filters leave entries that no row has: out of the list with them, the order stays. */
static bool drop_unused(struct export *x)
{
	uint32_t *number = calloc(x->n_names + 1, sizeof(*number));
	if (!number)
		return false;
	for (size_t i = 0; i < x->n_frames; i++)
		number[x->frames[i]] = 1;
	size_t kept = 0;
	for (size_t i = 0; i < x->n_names; i++) {
		if (!number[i])
			continue;
		number[i] = (uint32_t)kept;
		x->names[kept++] = x->names[i];
	}
	x->n_names = kept;
	for (size_t i = 0; i < x->n_frames; i++)
		x->frames[i] = number[x->frames[i]];
	free(number);
	return true;
}

int export_make(struct view *v, enum export_frames by, bool labels, struct export *ret, struct error *err)
{
	struct export x = { .v = v };
	struct index index = { 0 };
	buf_init(&x.text, BUF_MAX_DEFAULT);
	bool ok = make_names(&x, by);
	for (size_t i = 0; ok && i < v->n_rows; i++)
		ok = add_row(&x, &index, &v->rows[i], labels);
	index_finish(&index);
	ok = ok && drop_unused(&x) && sort_stacks(&x);
	free(x.name_of_entry);
	x.name_of_entry = NULL;
	if (!ok) {
		export_finish(&x);
		return error_nomem(err, "the stacks to write");
	}
	*ret = x;
	return E_OK;
}

void export_finish(struct export *x)
{
	if (!x)
		return;
	buf_finish(&x->text);
	free(x->names);
	free(x->name_of_entry);
	free(x->frames);
	free(x->stacks);
	*x = (struct export){ 0 };
}

/* --- columns and numbers --- */

static double now_value(const struct amount *a)
{
	return a->now;
}

static double base_value(const struct amount *a)
{
	return a->base;
}

static double grew_value(const struct amount *a)
{
	return fmax(0, amount_change(a));
}

static double shrank_value(const struct amount *a)
{
	return fmax(0, -amount_change(a));
}

size_t export_columns(const struct view *v, struct export_column ret[EXPORT_COLUMNS])
{
	bool below_zero = false;
	for (size_t i = 0; i < v->n_rows; i++)
		below_zero = below_zero || v->rows[i].amount.now < 0 || v->rows[i].amount.base < 0;
	if (!v->diff && !below_zero) {
		ret[0] = (struct export_column){ NULL, now_value };
		return 1;
	}
	ret[0] = (struct export_column){ "grew", grew_value };
	ret[1] = (struct export_column){ "shrank", shrank_value };
	if (below_zero)
		return 2;
	ret[2] = (struct export_column){ "base", base_value };
	ret[3] = (struct export_column){ "new", now_value };
	return 4;
}

void export_integer(struct buf *out, double value)
{
	if (!(fabs(value) < 9e18)) {
		buf_printf(out, "%.0f", isfinite(value) ? value : 0.0);
		return;
	}
	long long whole = llround(value);
	unsigned long long u = whole < 0 ? -(unsigned long long)whole : (unsigned long long)whole;
	char digits[24];
	size_t at = sizeof(digits);
	do {
		digits[--at] = (char)('0' + u % 10);
		u /= 10;
	} while (u);
	if (whole < 0)
		digits[--at] = '-';
	buf_add(out, digits + at, sizeof(digits) - at);
}

int export_check(const struct buf *out, const char *format, struct error *err)
{
	if (!out->failed)
		return E_OK;
	return error_set(err, E_LIMIT, "the %s output is larger than it may be (%zu bytes), or out of memory",
	                 format, out->max);
}
