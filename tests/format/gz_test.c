/*
 * gzip: whole buffers and streams, several members, damage, and bombs.
 */
#include "format/format.h"

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <zlib.h>

#include <cmocka.h>

static const struct read_limits limits = {
	.input_bytes = (size_t)1 << 30,
	.profile_bytes = (size_t)1 << 30,
	.depth = 100,
	.gzip_ratio = 200,
	.gzip_ratio_from = (size_t)64 << 20,
};

static void pack(struct buf *out, const void *data, size_t n)
{
	struct error err = { 0 };
	if (gz_deflate(data, n, out, &err))
		fail_msg("%s", err.text);
}

/* Text that is neither all alike nor random. */
static void some_text(struct buf *b, size_t n)
{
	buf_init(b, n + 100);
	for (unsigned i = 0; b->len < n; i++)
		buf_printf(b, "line %u of %u\n", i, i * 2654435761u);
}

static int inflate_whole(const void *data, size_t n, struct buf *out, struct error *err)
{
	/* An exact block, so that reading past it is seen. */
	void *copy = malloc(n + !n);
	memcpy(copy, data ? data : "", n);
	buf_init(out, BUF_MAX_DEFAULT);
	int rc = gz_inflate(copy, n, "x.gz", &limits, out, err);
	free(copy);
	return rc;
}

static int inflate_stream(const void *data, size_t n, size_t step, struct buf *out, struct error *err)
{
	struct stream in, s;
	stream_open_memory(&in, "x.gz", data, n);
	buf_init(out, BUF_MAX_DEFAULT);
	assert_int_equal(gz_stream(&in, &limits, &s, err), E_OK);
	int rc;
	size_t got = 1;
	do {
		assert_true(buf_reserve(out, step));
		rc = stream_read(&s, out->data + out->len, step, &got, err);
		out->len += rc ? 0 : got;
	} while (!rc && got > 0);
	stream_close(&s);
	stream_close(&in);
	return rc;
}

static void must_hold(const struct buf *got, const struct buf *want)
{
	assert_int_equal(got->len, want->len);
	assert_memory_equal(got->data, want->data, want->len);
}

static void packs_and_unpacks(void **state)
{
	struct buf text, packed, whole, streamed;
	struct error err = { 0 };
	(void)state;
	const size_t sizes[] = { 0, 1, 100, 70000, 1000000 };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		some_text(&text, sizes[i]);
		buf_init(&packed, BUF_MAX_DEFAULT);
		buf_adds(&packed, "before");
		pack(&packed, text.data, text.len);
		assert_true(gz_is((uint8_t *)packed.data + 6, packed.len - 6));
		assert_int_equal(inflate_whole(packed.data + 6, packed.len - 6, &whole, &err), E_OK);
		must_hold(&whole, &text);
		for (size_t step = 1; step < 200000; step = step * 41 + 6) {
			if (step < 10 && sizes[i] > 100000)
				continue;
			assert_int_equal(inflate_stream(packed.data + 6, packed.len - 6, step, &streamed, &err),
			                 E_OK);
			must_hold(&streamed, &text);
			buf_finish(&streamed);
		}
		buf_finish(&text);
		buf_finish(&packed);
		buf_finish(&whole);
	}
}

static void reads_all_members(void **state)
{
	struct buf text, packed, whole, streamed, all;
	struct error err = { 0 };
	(void)state;
	buf_init(&packed, BUF_MAX_DEFAULT);
	buf_init(&all, BUF_MAX_DEFAULT);
	const size_t sizes[] = { 100000, 0, 5, 300000, 1 };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		some_text(&text, sizes[i]);
		pack(&packed, text.data, text.len);
		buf_add(&all, text.data, text.len);
		buf_finish(&text);
	}
	assert_int_equal(inflate_whole(packed.data, packed.len, &whole, &err), E_OK);
	must_hold(&whole, &all);
	assert_int_equal(inflate_stream(packed.data, packed.len, 1000, &streamed, &err), E_OK);
	must_hold(&streamed, &all);
	buf_finish(&all);
	buf_finish(&packed);
	buf_finish(&whole);
	buf_finish(&streamed);
}

static void must_fail(const struct buf *packed, size_t n, int code, const char *words)
{
	struct buf out;
	struct error err = { 0 };
	assert_int_equal(inflate_whole(packed->data, n, &out, &err), code);
	assert_non_null(strstr(err.text, words));
	assert_null(strchr(err.text, '\n'));
	buf_finish(&out);
	err = (struct error){ 0 };
	assert_int_equal(inflate_stream(packed->data, n, 100, &out, &err), code);
	assert_non_null(strstr(err.text, words));
	buf_finish(&out);
}

static void sees_every_cut(void **state)
{
	struct buf text, packed;
	(void)state;
	some_text(&text, 600);
	buf_init(&packed, BUF_MAX_DEFAULT);
	pack(&packed, text.data, text.len);
	pack(&packed, text.data, text.len);
	struct buf first;
	buf_init(&first, BUF_MAX_DEFAULT);
	pack(&first, text.data, text.len);
	for (size_t n = 2; n < packed.len; n++)
		if (n != first.len)     /* a cut between two members is a whole file */
			must_fail(&packed, n, E_TRUNCATED, "the file was cut");
	buf_finish(&first);
	buf_finish(&text);
	buf_finish(&packed);
}

/* One bit wrong: an error, or the right answer. */
static void sees_every_flip(void **state)
{
	struct buf text, packed, out;
	struct error err;
	size_t ok = 0;
	(void)state;
	some_text(&text, 300);
	buf_init(&packed, BUF_MAX_DEFAULT);
	pack(&packed, text.data, text.len);
	for (size_t bit = 0; bit < packed.len * 8; bit++) {
		packed.data[bit / 8] ^= (char)(1 << bit % 8);
		err = (struct error){ 0 };
		int rc = inflate_whole(packed.data, packed.len, &out, &err);
		/* Time, system and the padding behind the last block mean nothing. */
		if (rc == E_OK)
			must_hold(&out, &text);
		ok += rc == E_OK;
		assert_true(rc == E_OK || err.text[0]);
		buf_finish(&out);
		packed.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	assert_true(ok <= 6 * 8 + 1 + 7);
	buf_finish(&text);
	buf_finish(&packed);
}

static void names_the_damage(void **state)
{
	struct buf packed;
	(void)state;
	buf_init(&packed, BUF_MAX_DEFAULT);
	pack(&packed, "abcabcabc", 9);
	size_t n = packed.len;
	packed.data[n - 8] ^= 1;
	must_fail(&packed, n, E_FORMAT, "x.gz: the gzip data is damaged at or before byte");
	must_fail(&packed, n, E_FORMAT, "incorrect data check");
	packed.data[n - 8] ^= 1;
	packed.data[n - 4] ^= 1;
	must_fail(&packed, n, E_FORMAT, "incorrect length check");
	packed.data[n - 4] ^= 1;
	buf_adds(&packed, "tail");
	must_fail(&packed, packed.len, E_FORMAT, "bytes that are not gzip follow the compressed data, from byte");
	struct error err = { 0 };
	struct buf out;
	assert_int_equal(inflate_whole("PK\3\4", 4, &out, &err), E_FORMAT);
	assert_string_equal(err.text, "x.gz: not gzip data");
	assert_int_equal(inflate_stream("", 0, 10, &out, &err), E_TRUNCATED);
	buf_finish(&out);
	buf_finish(&packed);
}

/* What came before the damage is handed out, then the error, again and again. */
static void stream_gives_what_was_there(void **state)
{
	struct buf text, packed;
	struct error err = { 0 };
	struct stream in, s;
	char out[1000];
	size_t got;
	(void)state;
	some_text(&text, 1 << 20);
	buf_init(&packed, BUF_MAX_DEFAULT);
	pack(&packed, text.data, text.len);
	stream_open_memory(&in, "x.gz", packed.data, packed.len / 2);
	assert_int_equal(gz_stream(&in, &limits, &s, &err), E_OK);
	size_t n = 0;
	while (stream_read(&s, out, sizeof out, &got, &err) == E_OK) {
		assert_true(got > 0);
		assert_memory_equal(out, text.data + n, got);
		n += got;
	}
	assert_true(n > text.len / 4);
	assert_int_equal(err.code, E_TRUNCATED);
	assert_int_equal(stream_read(&s, out, sizeof out, &got, &err), E_TRUNCATED);
	stream_close(&s);
	stream_close(&in);
	buf_finish(&text);
	buf_finish(&packed);
}

/* --- bombs ------------------------------------------------------------------ */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long peak_kib(void)
{
	struct rusage use;
	getrusage(RUSAGE_SELF, &use);
	return use.ru_maxrss;
}

#define MIB ((size_t)1 << 20)

/* Members of 64 MiB of zeros each. */
static void make_bomb_of_members(struct buf *bomb, size_t members)
{
	const size_t n = 64 * MIB;
	char *zeros = calloc(1, n);
	struct buf packed;
	assert_non_null(zeros);
	buf_init(&packed, BUF_MAX_DEFAULT);
	buf_init(bomb, BUF_MAX_DEFAULT);
	pack(&packed, zeros, n);
	free(zeros);
	for (size_t i = 0; i < members; i++)
		buf_add(bomb, packed.data, packed.len);
	buf_finish(&packed);
}

/* One member of n MiB of zeros, made of one MiB's blocks over and over. */
static void make_bomb(struct buf *bomb, size_t n)
{
	static uint8_t blocks[65536];
	uint8_t *zeros = calloc(1, MIB);
	z_stream z = { .next_in = zeros, .avail_in = MIB, .next_out = blocks, .avail_out = sizeof blocks };
	assert_non_null(zeros);
	assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(deflate(&z, Z_FULL_FLUSH), Z_OK);
	deflateEnd(&z);
	uLong one = crc32(0, zeros, MIB), crc = 0;
	free(zeros);
	buf_init(bomb, BUF_MAX_DEFAULT);
	buf_add(bomb, "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10);
	for (size_t i = 0; i < n; i++) {
		buf_add(bomb, blocks, z.total_out);
		crc = crc32_combine(crc, one, MIB);
	}
	uint32_t trailer[2] = { htole32((uint32_t)crc), htole32((uint32_t)(n * MIB)) };
	buf_add(bomb, "\x03\0", 2);            /* a last block with nothing in it */
	buf_add(bomb, trailer, sizeof trailer);
}

static void must_refuse_bomb(const struct buf *bomb, const char *words)
{
	struct error err = { 0 };
	struct buf out;
	double begin = now();
	assert_int_equal(inflate_whole(bomb->data, bomb->len, &out, &err), E_LIMIT);
	assert_non_null(strstr(err.text, words));
	assert_null(strchr(err.text, '\n'));
	buf_finish(&out);
	err = (struct error){ 0 };
	struct stream in, s;
	static char block[1 << 16];
	size_t got;
	stream_open_memory(&in, "x.gz", bomb->data, bomb->len);
	assert_int_equal(gz_stream(&in, &limits, &s, &err), E_OK);
	while (stream_read(&s, block, sizeof block, &got, &err) == E_OK)
		assert_true(got > 0);
	assert_int_equal(err.code, E_LIMIT);
	assert_non_null(strstr(err.text, words));
	stream_close(&s);
	stream_close(&in);
	assert_true(now() - begin < 20);        /* a second is usual; sanitizers and busy machines are not */
}

static void refuses_bombs(void **state)
{
	struct buf bomb, out;
	struct error err = { 0 };
	(void)state;
	make_bomb(&bomb, 1024);
	assert_true(bomb.len < 1100000);
	long before = peak_kib();
	must_refuse_bomb(&bomb, "x.gz: unpacks to more than 200 times its size");
	if (peak_kib() - before > 4096)
		fail_msg("%ld KiB for a bomb", peak_kib() - before);
	buf_finish(&bomb);
	make_bomb_of_members(&bomb, 16);
	before = peak_kib();
	must_refuse_bomb(&bomb, "x.gz: unpacks to more than 200 times its size");
	/* What the ratio allows, and no more than the growth on the way there. */
	if (peak_kib() - before > 450 * 1024)
		fail_msg("%ld KiB for a bomb", peak_kib() - before);
	buf_finish(&bomb);
	/* It may be passed below the size from which it counts, */
	make_bomb(&bomb, 64);
	assert_int_equal(inflate_whole(bomb.data, bomb.len, &out, &err), E_OK);
	assert_int_equal(out.len, 64 * MIB);
	buf_finish(&out);
	/* and a statement of the length that is wrong is the damage it is. */
	memcpy(bomb.data + bomb.len - 4, "\0\0\0\x40", 4);
	must_fail(&bomb, bomb.len, E_FORMAT, "incorrect length check");
	buf_finish(&bomb);
}

static void keeps_the_input_limit(void **state)
{
	struct read_limits small = limits;
	struct buf text, packed, out;
	struct error err;
	(void)state;
	some_text(&text, 100000);
	buf_init(&packed, BUF_MAX_DEFAULT);
	pack(&packed, text.data, text.len);
	buf_init(&out, BUF_MAX_DEFAULT);
	small.input_bytes = text.len;
	assert_int_equal(gz_inflate(packed.data, packed.len, "x.gz", &small, &out, &err), E_OK);
	small.input_bytes = text.len - 1;
	buf_reset(&out);
	assert_int_equal(gz_inflate(packed.data, packed.len, "x.gz", &small, &out, &err), E_LIMIT);
	assert_non_null(strstr(err.text, "x.gz: unpacks to more than the limit of "));
	buf_finish(&text);
	buf_finish(&packed);
	buf_finish(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_bombs),        /* first: it looks at the peak of memory */
		cmocka_unit_test(packs_and_unpacks),
		cmocka_unit_test(reads_all_members),
		cmocka_unit_test(sees_every_cut),
		cmocka_unit_test(sees_every_flip),
		cmocka_unit_test(names_the_damage),
		cmocka_unit_test(stream_gives_what_was_there),
		cmocka_unit_test(keeps_the_input_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
