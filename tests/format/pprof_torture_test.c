/*
 * No memory: the nth allocation fails, for every n, once and from then on, while a profile is
 * read, written, packed and unpacked. It is an error with words, or, where less was enough, the right answer.
 */
#include "format/pprof_samples.h"
#include "no_memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct read_limits limits = {
	.input_bytes = 1 << 24,
	.profile_bytes = 1 << 24,
	.depth = 100,
	.gzip_ratio = 200,
	.gzip_ratio_from = 1 << 24,
};

/* What is done with the memory, and what comes out of it. */
typedef int attempt(const struct buf *input, struct buf *result, struct error *err);

static int read_pprof(const struct buf *input, struct buf *result, struct error *err)
{
	struct profile *p = NULL;
	int rc = pprof_read(input->data, input->len, "x.pb", &limits, &p, err);
	if (!rc) {
		no_memory_end();
		sample_describe(p, result);
		profile_free(p);
	}
	return rc;
}

static struct profile *to_write;

static int write_pprof(const struct buf *input, struct buf *result, struct error *err)
{
	(void)input;
	return pprof_write(to_write, &(struct pprof_write_options){ .gzip = false }, result, err);
}

static int write_gzip(const struct buf *input, struct buf *result, struct error *err)
{
	(void)input;
	return pprof_write(to_write, &(struct pprof_write_options){ .gzip = true }, result, err);
}

static int unpack(const struct buf *input, struct buf *result, struct error *err)
{
	return gz_inflate(input->data, input->len, "x.gz", &limits, result, err);
}

static int unpack_stream(const struct buf *input, struct buf *result, struct error *err)
{
	struct stream in, s;
	stream_open_memory(&in, "x.gz", input->data, input->len);
	int rc = gz_stream(&in, &limits, &s, err);
	if (!rc) {
		rc = stream_read_all(&s, result, err);
		stream_close(&s);
	}
	stream_close(&in);
	return rc;
}

static int read_folded(const struct buf *input, struct buf *result, struct error *err)
{
	struct profile *p = NULL;
	struct stream in;
	stream_open_memory(&in, "x.folded", input->data, input->len);
	int rc = folded_read(&in, &limits, NULL, &p, err);
	stream_close(&in);
	if (!rc) {
		no_memory_end();
		sample_describe(p, result);
		profile_free(p);
	}
	return rc;
}

static int run(attempt *act, const struct buf *input, struct buf *result, long n, bool for_good)
{
	struct error err = { 0 };
	buf_init(result, 1 << 24);
	no_memory_begin(n, for_good);
	int rc = act(input, result, &err);
	no_memory_end();
	assert_true(rc == E_OK || (err.code == rc && err.text[0]));
	return rc;
}

/* Every allocation of it fails, one after the other. */
static void torture(attempt *act, const struct buf *input)
{
	struct buf want, got;
	assert_int_equal(run(act, input, &want, -1, false), E_OK);
	for (int mode = 0; mode < 2; mode++) {
		long n = 0, errors = 0;
		do {
			int rc = run(act, input, &got, n++, mode);
			errors += rc != E_OK;
			if (rc == E_OK) {
				assert_int_equal(got.len, want.len);
				assert_memory_equal(got.data, want.data, want.len);
			}
			buf_finish(&got);
		} while (no_memory_end());
		assert_true(n > 1 && (errors > 0 || mode == 0));
	}
	buf_finish(&want);
}

static void survives_without_memory(void **state)
{
	struct buf raw, packed;
	struct error err;
	(void)state;
	for (uint64_t seed = 1; seed < 6; seed++) {
		to_write = sample_profile(seed);
		assert_non_null(to_write);
		buf_init(&raw, 1 << 24);
		buf_init(&packed, 1 << 24);
		assert_int_equal(pprof_write(to_write, &(struct pprof_write_options){ 0 }, &raw, &err), E_OK);
		assert_int_equal(gz_deflate(raw.data, raw.len, &packed, &err), E_OK);
		torture(read_pprof, &raw);
		torture(write_pprof, &raw);
		torture(write_gzip, &raw);
		torture(unpack, &packed);
		torture(unpack_stream, &packed);
		profile_free(to_write);
		buf_finish(&raw);
		buf_finish(&packed);
	}
	buf_init(&raw, 1 << 24);
	for (int i = 0; i < 500; i++)
		buf_printf(&raw, "main;f%d;g%d %d\n", i % 7, i, i);
	torture(read_folded, &raw);
	buf_finish(&raw);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(survives_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
