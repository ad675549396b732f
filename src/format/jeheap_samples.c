/*
 * From printed counts to samples. A line's counts are unsampled once, by themselves, never after
 * adding. Raw counts add up, and the formula is best on the finest lines: one sample a thread line,
 * from its own counts. Counts that jemalloc has bent (>= 5.3) don't add up, and the t* line has the
 * least rounding: it gives the stack's amount, which is shared out in proportion to what the thread
 * lines come to.
 */
#include "format/jeheap.h"
#include "profile/estimate.h"

#include <math.h>
#include <stdlib.h>

#define SCALED_BITS 12
#define LABELS_BITS 10

struct scaled {
	double objects, bytes;
	uint64_t block_size;        /* 0: mixed */
};

/* One column of the samples of one stack while it is shared out. */
struct share {
	double weight, rest;
	int64_t value;
	uint32_t item;
};

struct unsampler {
	struct dump *d;
	bool raw;
	size_t columns;
	dump_emit *emit;
	void *context;
	/*
	 * Lines with equal counts are common, and so are equal label sets: both are looked up
	 * before being made.
	 */
	struct { uint64_t objects, bytes; struct scaled scaled; bool used; } *scaled;
	struct { uint32_t thread, labels; uint64_t block_size; bool used; } *labels;
	struct share *shares;       size_t shares_capacity;
	int64_t *values;            size_t values_capacity;     /* columns for each thread line of a stack */
};

/*
 * What one column's counts stand for, by column: accumulated objects, bytes, objects and bytes in
 * use.
 */
struct amounts {
	struct scaled accum, inuse;
};

static struct scaled scale(struct unsampler *u, uint64_t objects, uint64_t bytes)
{
	if (objects == 0)
		return (struct scaled){ 0 };
	size_t i = hash_mix(objects, bytes) >> (64 - SCALED_BITS);
	if (u->scaled[i].used && u->scaled[i].objects == objects && u->scaled[i].bytes == bytes)
		return u->scaled[i].scaled;
	struct scaled s;
	double rate = u->d->rate;
	s.block_size = estimate_block_size(objects, bytes, rate, !u->raw, &s.objects, &s.bytes);
	if (!s.block_size) {
		double k = estimate_scale((double)objects, (double)bytes, rate);
		s.objects = (double)objects * k;
		s.bytes = (double)bytes * k;
	}
	u->scaled[i].objects = objects;
	u->scaled[i].bytes = bytes;
	u->scaled[i].scaled = s;
	u->scaled[i].used = true;
	return s;
}

static struct amounts amounts_of(struct unsampler *u, size_t line)
{
	struct counts c = dump_line(u->d, line);
	return (struct amounts){
		.accum = scale(u, c.accum_objects, c.accum_bytes),
		.inuse = scale(u, c.objects, c.bytes),
	};
}

/* The size of all blocks of the line, live and gone, or 0. */
static uint64_t block_size_of(const struct amounts *m)
{
	if (m->inuse.objects > 0 && m->accum.objects > 0)
		return m->inuse.block_size == m->accum.block_size ? m->inuse.block_size : 0;
	return m->inuse.objects > 0 ? m->inuse.block_size : m->accum.block_size;
}

static double column(const struct unsampler *u, const struct amounts *m, size_t i)
{
	const double all[] = { m->accum.objects, m->accum.bytes, m->inuse.objects, m->inuse.bytes };
	return all[i + 4 - u->columns];
}

uint32_t unsampler_labels(struct unsampler *u, const struct dump_sample *sample)
{
	uint32_t label = sample->thread == STAR ? 0 : u->d->threads[sample->thread].label;
	size_t i = hash_mix(label, sample->block_size) >> (64 - LABELS_BITS);
	if (u->labels[i].used && u->labels[i].thread == label && u->labels[i].block_size == sample->block_size)
		return u->labels[i].labels;
	uint32_t labels = profile_intern_heap_labels(u->d->profile, label, sample->block_size);
	u->labels[i].thread = label;
	u->labels[i].block_size = sample->block_size;
	u->labels[i].labels = labels;
	u->labels[i].used = true;
	return labels;
}

static int add_sample(struct unsampler *u, const struct dump_sample *sample, struct error *err)
{
	int64_t any = 0;
	for (size_t i = 0; i < u->columns; i++)
		any |= sample->values[i];
	return any ? u->emit(u->context, sample, err) : E_OK;
}

/* One sample from one line's own counts. */
static int add_line(struct unsampler *u, size_t line, struct error *err)
{
	const struct count_line *l = &u->d->lines[line];
	struct amounts m = amounts_of(u, line);
	int64_t values[4] = { 0 };
	for (size_t i = 0; i < u->columns; i++)
		values[i] = llround(column(u, &m, i));
	u->d->total_bytes += m.inuse.bytes;
	u->d->mixed_lines += m.inuse.objects > 0 && !m.inuse.block_size;
	return add_sample(u, &(struct dump_sample){ l->stack, l->thread & ~ALONE, block_size_of(&m), values }, err);
}

static int by_rest(const void *x, const void *y)
{
	const struct share *a = x, *b = y;
	if (a->rest != b->rest)
		return a->rest > b->rest ? -1 : 1;
	return a->item < b->item ? -1 : a->item > b->item;
}

/* Largest remainder: the shares' values add up to total exactly. False when all weights are 0. */
static bool share_out(struct share *shares, size_t n, int64_t total)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += shares[i].weight;
	if (!(sum > 0))
		return false;
	int64_t left = total;
	size_t greatest = 0;
	for (size_t i = 0; i < n; i++) {
		double exact = (double)total * (shares[i].weight / sum);
		shares[i].value = (int64_t)exact;
		shares[i].rest = exact - (double)shares[i].value;
		left -= shares[i].value;
		if (shares[i].weight > shares[greatest].weight)
			greatest = i;
	}
	if (left < 0 || (uint64_t)left > n) {
		/* Past 2^53 the parts are rounded themselves; the greatest takes the difference. */
		shares[greatest].value += left;
	} else if (left > 0) {
		qsort(shares, n, sizeof(*shares), by_rest);
		for (int64_t i = 0; i < left; i++)
			shares[i].value++;
	}
	return true;
}

static bool shares_reserve(struct unsampler *u, size_t n)
{
	size_t limit = u->d->limit_bytes;
	return memory_grow((void **)&u->shares, &u->shares_capacity, n, sizeof(*u->shares),
	                   limit / sizeof(*u->shares)) &&
	       memory_grow((void **)&u->values, &u->values_capacity, n * u->columns, sizeof(*u->values),
	                   limit / sizeof(*u->values));
}

/* The t* line's amount, shared out over its n thread lines behind it. */
static int add_shared(struct unsampler *u, size_t star, size_t n, struct error *err)
{
	struct dump *d = u->d;
	struct amounts whole = amounts_of(u, star);
	int64_t unshared[4] = { 0 };
	if (!shares_reserve(u, n))
		return error_nomem(err, "the threads of a stack");
	for (size_t c = 0; c < u->columns; c++) {
		int64_t total = llround(column(u, &whole, c));
		for (size_t i = 0; i < n; i++) {
			struct amounts m = amounts_of(u, star + 1 + i);
			u->shares[i] = (struct share){ .weight = column(u, &m, c), .item = (uint32_t)i };
		}
		if (!share_out(u->shares, n, total))
			unshared[c] = total;
		for (size_t i = 0; i < n; i++)
			u->values[u->shares[i].item * u->columns + c] = u->shares[i].value;
	}
	d->total_bytes += whole.inuse.bytes;
	d->mixed_lines += whole.inuse.objects > 0 && !whole.inuse.block_size;
	struct dump_sample sample = { .stack = d->lines[star].stack };
	uint64_t block_size = block_size_of(&whole);
	int rc = E_OK;
	for (size_t i = 0; i < n && rc == E_OK; i++) {
		struct amounts m = amounts_of(u, star + 1 + i);
		sample.thread = d->lines[star + 1 + i].thread;
		sample.block_size = block_size ? block_size : block_size_of(&m);
		sample.values = u->values + i * u->columns;
		rc = add_sample(u, &sample, err);
	}
	sample.thread = STAR;
	sample.block_size = block_size;
	sample.values = unshared;
	return rc ? rc : add_sample(u, &sample, err);
}

int unsampler_add(struct unsampler *u, size_t first, size_t *ret_n, struct error *err)
{
	const struct dump *d = u->d;
	size_t n = 1;
	if (d->lines[first].thread == STAR)
		while (first + n < d->n_lines && d->lines[first + n].thread < STAR)
			n++;
	*ret_n = n;
	if (n == 1)
		return add_line(u, first, err);
	if (!u->raw)
		return add_shared(u, first, n - 1, err);
	int rc = E_OK;
	for (size_t thread = 1; thread < n && rc == E_OK; thread++)
		rc = add_line(u, first + thread, err);
	return rc;
}

void unsampler_scale(struct unsampler *u, uint64_t objects, uint64_t bytes, double *ret_objects, double *ret_bytes)
{
	struct scaled s = scale(u, objects, bytes);
	*ret_objects = s.objects;
	*ret_bytes = s.bytes;
}

void unsampler_free(struct unsampler *u)
{
	if (!u)
		return;
	free(u->scaled);
	free(u->labels);
	free(u->shares);
	free(u->values);
	free(u);
}

struct unsampler *unsampler_new(struct dump *d, bool raw, bool with_accum, dump_emit *emit, void *context)
{
	struct unsampler *u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	*u = (struct unsampler){ .d = d, .raw = raw, .columns = with_accum ? 4 : 2, .emit = emit, .context = context };
	u->scaled = calloc((size_t)1 << SCALED_BITS, sizeof(*u->scaled));
	u->labels = calloc((size_t)1 << LABELS_BITS, sizeof(*u->labels));
	if (u->scaled && u->labels)
		return u;
	unsampler_free(u);
	return NULL;
}

void dump_add_types(struct dump *d, bool with_accum)
{
	struct profile *p = d->profile;
	profile_add_heap_types(p, with_accum);
	p->period_type = profile_cstring(p, "space");
	p->period_unit = profile_cstring(p, "bytes");
	p->period = (int64_t)d->rate;
}
