/*
 * Memory runs out at the nth allocation, for every n, once and for good: the readers of heap dumps then fail with
 * a sentence, or give the whole profile. So does what converts them while it reads, with and without a base.
 */
#include "jeheap_helpers.h"
#include "no_memory.h"
#include "stream_helpers.h"

/* Enough of everything that arrays grow: stacks, threads with names, mappings; bent counts to share out. */
static void make_dump(struct buf *b)
{
	buf_init(b, 1 << 20);
	buf_adds(b, "heap_v2/65536\n  t*: 1000: 500000 [1000: 500000]\n");
	for (int t = 0; t < 20; t++)
		buf_printf(b, "  t%d: 3: 400 [3: 400] name %d\n", t, t);
	for (unsigned i = 0; i < 60; i++) {
		buf_printf(b, "@ 0x7f12345678%02x 0x7f12345679%02x 0x%x\n  t*: 7: 5000 [7: 5000]\n", i, i, i);
		for (unsigned t = 0; t < 2 + i % 3; t++)
			buf_printf(b, "  t%u: 3: 400 [3: 401]\n", (i + t) % 20);
	}
	buf_adds(b, "\nMAPPED_LIBRARIES:\n");
	for (unsigned i = 0; i < 40; i++)
		buf_printf(b, "7f12345%02x000-7f12345%02x800 r-xp 00000000 08:01 5 /lib/a\\012b%u.so\n", i + 0x60, i + 0x60, i);
	buf_adds(b, "7ffc00000000-7ffc00010000 rw-p 00000000 00:00 0 [stack]\n");
	assert_false(b->failed);
}

static void make_old(struct buf *b)
{
	buf_init(b, 1 << 20);
	buf_adds(b, "heap profile: 120: 12000 [120: 12000] @ heap_v2/65536\n");
	for (unsigned i = 0; i < 60; i++)
		buf_printf(b, "2: 200 [2: 200] @ 0x7f12345678%02x 0x7f12345679%02x 0x%x\n", i, i, i);
	buf_adds(b, "\nMAPPED_LIBRARIES:\n7ffc00000000-7ffc00010000 rw-p 00000000 00:00 0 [stack]\n");
	assert_false(b->failed);
}

static struct outcome attempt(reader *read, const struct buf *input, long n, bool for_good)
{
	no_memory_begin(n, for_good);
	struct outcome o = read_bytes(read, input->data, input->len, false);
	no_memory_end();
	return o;
}

static void torture(reader *read, const struct buf *input)
{
	struct buf whole;
	struct outcome o = attempt(read, input, -1, false);
	long all = no_memory_calls();
	assert_int_equal(o.rc, E_OK);
	buf_init(&whole, 1 << 24);
	describe(o.profile, true, &whole);
	outcome_finish(&o);
	assert_true(all > 30);
	for (int mode = 0; mode < 2; mode++) {
		for (long n = 0; n < all; n++) {
			o = attempt(read, input, n, mode);
			if (o.rc == E_OK) {
				struct buf got;
				buf_init(&got, 1 << 24);
				describe(o.profile, true, &got);
				assert_int_equal(got.len, whole.len);
				assert_memory_equal(got.data, whole.data, got.len);
				buf_finish(&got);
			} else if (o.rc != E_NOMEM && o.rc != E_LIMIT) {
				fail_msg("allocation %ld of %ld: code %d, %s", n, all, o.rc, o.error.text);
			}
			outcome_finish(&o);
		}
	}
	buf_finish(&whole);
}

static void heap_v2(void **state)
{
	(void)state;
	struct buf b;
	make_dump(&b);
	torture(jeheap_read, &b);
	buf_finish(&b);
}

static void older_text(void **state)
{
	(void)state;
	struct buf b;
	make_old(&b);
	torture(gperf_read, &b);
	buf_finish(&b);
}

/* Nothing that the test itself needs is allocated between begin and end but what gather takes, which was reserved. */
static int convert(const struct buf *input, bool with_base, long n, bool for_good, struct gathered *g, struct error *err)
{
	struct jeheap_stream_options o = { .counts = JEHEAP_COUNTS_UNBIASED, .comment = "a comment" };
	struct stream in;
	int rc = E_OK;
	*g = (struct gathered){ .refuse_at = SIZE_MAX };
	buf_init(&g->bytes, 1 << 24);
	assert_true(buf_reserve(&g->bytes, 1 << 20));
	no_memory_begin(n, for_good);
	if (with_base) {
		stream_open_memory(&in, "input", input->data, input->len);
		rc = jeheap_base_read(&in, &read_limits_default, o.counts, &o.base, err);
		stream_close(&in);
	}
	stream_open_memory(&in, "input", input->data, input->len);
	if (rc == E_OK)
		rc = jeheap_to_pprof(&in, &read_limits_default, &o, gather, g, err);
	stream_close(&in);
	no_memory_end();
	jeheap_base_free(o.base);
	return rc;
}

static void torture_stream(const struct buf *input, bool with_base)
{
	struct gathered whole, g;
	struct error err = { 0 };
	assert_int_equal(convert(input, with_base, -1, false, &whole, &err), E_OK);
	long all = no_memory_calls();
	assert_true(all > 30);
	for (int mode = 0; mode < 2; mode++) {
		for (long n = 0; n < all; n++) {
			int rc = convert(input, with_base, n, mode, &g, &err);
			struct profile *p = NULL;
			struct error ignored;
			if (rc == E_OK) {
				assert_int_equal(g.bytes.len, whole.bytes.len);
				assert_memory_equal(g.bytes.data, whole.bytes.data, g.bytes.len);
			} else if (rc != E_NOMEM && rc != E_LIMIT) {
				fail_msg("allocation %ld of %ld: code %d, %s", n, all, rc, err.text);
			} else {
				assert_int_not_equal(gathered_profile(&g, &p, &ignored), E_OK);
			}
			buf_finish(&g.bytes);
		}
	}
	buf_finish(&whole.bytes);
}

static void while_reading(void **state)
{
	(void)state;
	struct buf b;
	make_dump(&b);
	torture_stream(&b, false);
	torture_stream(&b, true);
	buf_finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(heap_v2), cmocka_unit_test(older_text),
		                            cmocka_unit_test(while_reading) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
