/*
 * Whatever pprof_read takes, pprof_write must be able to write and pprof_read to read again, with
 * the same samples; and once written, nothing changes any more.
 */
#include "format/format.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct read_limits limits = {
	.input_bytes = 1 << 20,
	.profile_bytes = 1 << 24,
	.depth = 1000,
	.gzip_ratio = 200,
	.gzip_ratio_from = 1 << 20,
};

static struct profile *read_again(const struct buf *b)
{
	struct error err = { 0 };
	struct profile *p;
	if (pprof_read(b->data, b->len, "again", &limits, &p, &err) == E_OK)
		return p;
	/* The names we make up may take it past a limit, nothing else. */
	if (err.code != E_LIMIT)
		abort();
	return NULL;
}

static bool write_to(const struct profile *p, struct buf *out)
{
	struct error err = { 0 };
	buf_init(out, limits.input_bytes);
	int rc = pprof_write(p, &(struct pprof_write_options){ 0 }, out, &err);
	if (rc && rc != E_LIMIT)
		abort();
	return rc == E_OK;
}

static void compare(const struct profile *p, const struct profile *q)
{
	if (p->n_samples != q->n_samples || p->n_types != q->n_types || p->n_mappings != q->n_mappings)
		abort();
	if (p->n_values && memcmp(p->values, q->values, p->n_values * sizeof *p->values) != 0)
		abort();
	for (size_t i = 0; i < p->n_samples; i++)
		if (p->stacks[p->samples[i].stack].n != q->stacks[q->samples[i].stack].n ||
		    p->label_sets[p->samples[i].labels].n != q->label_sets[q->samples[i].labels].n)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct profile *p, *q = NULL, *r = NULL;
	struct error err = { 0 };
	if (pprof_read(data, n, "fuzz", &limits, &p, &err) != E_OK) {
		if (!err.code || !err.text[0] || strchr(err.text, '\n'))
			abort();
		return 0;
	}
	struct buf first, second = { 0 }, third = { 0 };
	if (write_to(p, &first) && (q = read_again(&first)))
		compare(p, q);
	if (q && write_to(q, &second) && (r = read_again(&second)) && write_to(r, &third) &&
	    (second.len != third.len || memcmp(second.data, third.data, second.len) != 0))
		abort();
	buf_finish(&first);
	buf_finish(&second);
	buf_finish(&third);
	profile_free(p);
	profile_free(q);
	profile_free(r);
	return 0;
}
