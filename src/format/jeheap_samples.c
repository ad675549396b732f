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

struct adder {
	struct dump *d;
	bool raw;
	uint32_t source;
	size_t columns;
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

static struct scaled scale(struct adder *a, uint64_t objects, uint64_t bytes)
{
	if (objects == 0)
		return (struct scaled){ 0 };
	size_t i = hash_mix(objects, bytes) >> (64 - SCALED_BITS);
	if (a->scaled[i].used && a->scaled[i].objects == objects && a->scaled[i].bytes == bytes)
		return a->scaled[i].scaled;
	struct scaled s;
	double rate = a->d->rate;
	s.block_size = estimate_block_size(objects, bytes, rate, !a->raw, &s.objects, &s.bytes);
	if (!s.block_size) {
		double k = estimate_scale((double)objects, (double)bytes, rate);
		s.objects = (double)objects * k;
		s.bytes = (double)bytes * k;
	}
	a->scaled[i].objects = objects;
	a->scaled[i].bytes = bytes;
	a->scaled[i].scaled = s;
	a->scaled[i].used = true;
	return s;
}

static struct amounts amounts_of(struct adder *a, size_t line)
{
	struct counts c = dump_line(a->d, line);
	return (struct amounts){
		.accum = scale(a, c.accum_objects, c.accum_bytes),
		.inuse = scale(a, c.objects, c.bytes),
	};
}

/* The size of all blocks of the line, live and gone, or 0. */
static uint64_t block_size_of(const struct amounts *m)
{
	if (m->inuse.objects > 0 && m->accum.objects > 0)
		return m->inuse.block_size == m->accum.block_size ? m->inuse.block_size : 0;
	return m->inuse.objects > 0 ? m->inuse.block_size : m->accum.block_size;
}

static double column(const struct adder *a, const struct amounts *m, size_t i)
{
	const double all[] = { m->accum.objects, m->accum.bytes, m->inuse.objects, m->inuse.bytes };
	return all[i + 4 - a->columns];
}

static uint32_t labels_of(struct adder *a, uint32_t thread, uint64_t block_size)
{
	uint32_t label = thread == STAR ? 0 : a->d->threads[thread].label;
	size_t i = hash_mix(label, block_size) >> (64 - LABELS_BITS);
	if (a->labels[i].used && a->labels[i].thread == label && a->labels[i].block_size == block_size)
		return a->labels[i].labels;
	uint32_t labels = profile_intern_heap_labels(a->d->profile, label, block_size);
	a->labels[i].thread = label;
	a->labels[i].block_size = block_size;
	a->labels[i].labels = labels;
	a->labels[i].used = true;
	return labels;
}

static void add_sample(struct adder *a, uint32_t stack, uint32_t thread, uint64_t block_size,
                       const int64_t *values)
{
	int64_t any = 0;
	for (size_t i = 0; i < a->columns; i++)
		any |= values[i];
	if (any)
		profile_add_sample(a->d->profile, stack, labels_of(a, thread, block_size), a->source, values);
}

/* One sample from one line's own counts. */
static void add_line(struct adder *a, size_t line)
{
	const struct count_line *l = &a->d->lines[line];
	struct amounts m = amounts_of(a, line);
	int64_t values[4] = { 0 };
	for (size_t i = 0; i < a->columns; i++)
		values[i] = llround(column(a, &m, i));
	a->d->total_bytes += m.inuse.bytes;
	a->d->mixed_lines += m.inuse.objects > 0 && !m.inuse.block_size;
	add_sample(a, l->stack, l->thread & ~ALONE, block_size_of(&m), values);
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

static bool shares_reserve(struct adder *a, size_t n)
{
	size_t limit = a->d->limit_bytes;
	return memory_grow((void **)&a->shares, &a->shares_capacity, n, sizeof(*a->shares),
	                   limit / sizeof(*a->shares)) &&
	       memory_grow((void **)&a->values, &a->values_capacity, n * a->columns, sizeof(*a->values),
	                   limit / sizeof(*a->values));
}

/* The t* line's amount, shared out over its n thread lines behind it. */
static int add_shared(struct adder *a, size_t star, size_t n, struct error *err)
{
	struct dump *d = a->d;
	struct amounts whole = amounts_of(a, star);
	int64_t unshared[4] = { 0 };
	if (!shares_reserve(a, n))
		return error_nomem(err, "the threads of a stack");
	for (size_t c = 0; c < a->columns; c++) {
		int64_t total = llround(column(a, &whole, c));
		for (size_t i = 0; i < n; i++) {
			struct amounts m = amounts_of(a, star + 1 + i);
			a->shares[i] = (struct share){ .weight = column(a, &m, c), .item = (uint32_t)i };
		}
		if (!share_out(a->shares, n, total))
			unshared[c] = total;
		for (size_t i = 0; i < n; i++)
			a->values[a->shares[i].item * a->columns + c] = a->shares[i].value;
	}
	d->total_bytes += whole.inuse.bytes;
	d->mixed_lines += whole.inuse.objects > 0 && !whole.inuse.block_size;
	uint64_t block_size = block_size_of(&whole);
	for (size_t i = 0; i < n; i++) {
		const struct count_line *l = &d->lines[star + 1 + i];
		struct amounts m = amounts_of(a, star + 1 + i);
		add_sample(a, l->stack, l->thread, block_size ? block_size : block_size_of(&m),
		           a->values + i * a->columns);
	}
	add_sample(a, d->lines[star].stack, STAR, block_size, unshared);
	return E_OK;
}

static int add_stacks(struct adder *a, struct error *err)
{
	const struct dump *d = a->d;
	int rc = E_OK;
	for (size_t i = 0; i < d->n_lines && rc == E_OK;) {
		size_t n = 1;
		if (d->lines[i].thread == STAR)
			while (i + n < d->n_lines && d->lines[i + n].thread < STAR)
				n++;
		if (n == 1)
			add_line(a, i);
		else if (a->raw)
			for (size_t thread = 1; thread < n; thread++)
				add_line(a, i + thread);
		else
			rc = add_shared(a, i, n - 1, err);
		i += n;
	}
	return rc;
}

/* The header line's estimate; raw counts of mixed sizes give none. */
static void add_source(struct adder *a)
{
	struct dump *d = a->d;
	struct source s = {
		.name = profile_cstring(d->profile, d->name),
		.rate = d->rate,
		.process = profile_process_identity(d->profile),
		.raw_counts = a->raw,
		.header_objects = -1,
		.header_bytes = -1,
	};
	if (!a->raw) {
		struct scaled h = scale(a, d->header.objects, d->header.bytes);
		s.header_objects = h.objects;
		s.header_bytes = h.bytes;
	}
	a->source = profile_add_source(d->profile, &s);
}

int jeheap_add_samples(struct dump *d, bool raw, struct error *err)
{
	struct profile *p = d->profile;
	bool with_accum = d->n_accum > 0 || d->header.accum_objects > 0 || d->header.accum_bytes > 0;
	struct adder a = { .d = d, .raw = raw, .columns = with_accum ? 4 : 2 };
	a.scaled = calloc((size_t)1 << SCALED_BITS, sizeof(*a.scaled));
	a.labels = calloc((size_t)1 << LABELS_BITS, sizeof(*a.labels));
	int rc = a.scaled && a.labels ? E_OK : error_nomem(err, "the samples");
	if (rc == E_OK) {
		profile_add_heap_types(p, with_accum);
		p->period_type = profile_cstring(p, "space");
		p->period_unit = profile_cstring(p, "bytes");
		p->period = (int64_t)d->rate;
		add_source(&a);
		rc = add_stacks(&a, err);
	}
	free(a.scaled);
	free(a.labels);
	free(a.shares);
	free(a.values);
	return rc;
}
