/* What the sink writes, zlib reads: for inputs of every shape, in pieces of every size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "format/gz_sink.h"

static int collect(void *context, const void *bytes, size_t n, struct error *err)
{
	(void)err;
	buf_add(context, bytes, n);
	return E_OK;
}

static void inflate_and_compare(const struct buf *packed, const uint8_t *bytes, size_t n)
{
	uint8_t *out = malloc(n + 1);
	z_stream z = { .next_in = (Bytef *)packed->data, .avail_in = (uInt)packed->len, .next_out = out, .avail_out = (uInt)n + 1 };
	assert_non_null(out);
	assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
	assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
	assert_int_equal(z.total_out, n);
	assert_int_equal(z.avail_in, 0);
	if (n)
		assert_memory_equal(out, bytes, n);
	inflateEnd(&z);
	free(out);
}

static uint64_t state = 1;

static uint64_t random64(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* The packed size. */
static size_t round_trip(const uint8_t *bytes, size_t n, size_t piece)
{
	struct buf packed;
	struct error err = { 0 };
	buf_init(&packed, BUF_MAX_DEFAULT);
	struct gz_sink *g = gz_sink_new(collect, &packed);
	assert_non_null(g);
	for (size_t at = 0; at < n; at += piece)
		assert_int_equal(gz_sink_add(g, bytes + at, n - at < piece ? n - at : piece, &err), E_OK);
	assert_int_equal(gz_sink_end(g, &err), E_OK);
	gz_sink_free(g);
	inflate_and_compare(&packed, bytes, n);
	size_t size = packed.len;
	buf_finish(&packed);
	return size;
}

#define MOST ((size_t)300000)

/* Random bytes of so many values, with repeats of earlier parts at every distance and length. */
static void fill(uint8_t *bytes, size_t n, unsigned values, unsigned repeats)
{
	for (size_t i = 0; i < n;) {
		if (i > 0 && random64() % 100 < repeats) {
			size_t back = 1 + random64() % (random64() % 2 ? i : i < 300 ? i : 300);
			size_t length = 1 + random64() % 600;
			for (; length > 0 && i < n; length--, i++)
				bytes[i] = bytes[i - back];
		} else {
			bytes[i++] = (uint8_t)(random64() % values * 37);
		}
	}
}

static void test_shapes(void **unused)
{
	static const size_t sizes[] = { 0, 1, 2, 3, 4, 5, 257, 258, 259, 32767, 32768, 32769, 65535, 65536, 65537, 98304, MOST };
	uint8_t *bytes = malloc(MOST);
	(void)unused;
	assert_non_null(bytes);
	for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
		for (unsigned values = 1; values <= 256; values *= 4)
			for (unsigned repeats = 0; repeats <= 60; repeats += 20) {
				fill(bytes, sizes[s], values, repeats);
				round_trip(bytes, sizes[s], 1 + random64() % (s % 2 ? 70000 : 500));
			}
	free(bytes);
}

static void test_every_small_size(void **unused)
{
	uint8_t bytes[700] = { 0 };
	(void)unused;
	for (size_t n = 0; n < sizeof bytes; n++) {
		fill(bytes, n, 3, 30);
		round_trip(bytes, n, 1 + n % 7);
	}
}

static void test_it_packs(void **unused)
{
	uint8_t *bytes = calloc(1, MOST);
	(void)unused;
	assert_non_null(bytes);
	assert_true(round_trip(bytes, MOST, MOST) < MOST / 100);
	/* What can't be packed grows by an eighth at most. */
	for (size_t i = 0; i < MOST; i++)
		bytes[i] = (uint8_t)(144 + random64() % 112);
	assert_true(round_trip(bytes, MOST, MOST) < MOST + MOST / 8 + 100);
	free(bytes);
}

static int refuse(void *context, const void *bytes, size_t n, struct error *err)
{
	(void)bytes;
	(void)n;
	++*(int *)context;
	return error_set(err, E_IO, "no place");
}

static void test_a_sink_that_refuses(void **unused)
{
	static uint8_t bytes[100000];
	int calls = 0;
	struct error err = { 0 };
	(void)unused;
	struct gz_sink *g = gz_sink_new(refuse, &calls);
	assert_non_null(g);
	assert_int_equal(gz_sink_add(g, bytes, sizeof bytes, &err), E_IO);
	assert_string_equal(err.text, "no place");
	assert_int_equal(gz_sink_add(g, bytes, 1, &err), E_IO);
	assert_int_equal(gz_sink_end(g, &err), E_IO);
	assert_int_equal(calls, 1);
	gz_sink_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_every_small_size),
		cmocka_unit_test(test_it_packs),
		cmocka_unit_test(test_a_sink_that_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
