/* Growth, the maximum, stickiness of failure, and the NUL behind the data. */
#include "test.h"

#include "base/buf.h"

static void grows_and_ends_in_nul(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, BUF_MAX_DEFAULT);
	assert_null(b.data);
	for (int i = 0; i < 100000; i++) {
		buf_addc(&b, (char)('a' + i % 26));
		assert_int_equal(b.data[b.len], 0);
	}
	buf_adds(&b, "");
	buf_add(&b, NULL, 0);
	assert_int_equal(b.len, 100000);
	assert_false(b.failed);
	for (size_t i = 0; i < b.len; i++)
		assert_int_equal(b.data[i], 'a' + i % 26);
	buf_finish(&b);
	assert_null(b.data);
	buf_finish(&b);
	buf_finish(NULL);
}

static void exactly_the_maximum_fits(void **state)
{
	(void)state;
	for (size_t max = 0; max < 200; max++) {
		struct buf b;
		buf_init(&b, max);
		for (size_t i = 0; i < max; i++)
			buf_addc(&b, 'x');
		assert_false(b.failed);
		assert_int_equal(b.len, max);
		buf_addc(&b, 'y');
		assert_true(b.failed);
		assert_int_equal(b.len, max);
		if (max)
			assert_null(memchr(b.data, 'y', max));
		buf_finish(&b);
	}
}

static void failure_is_sticky_until_reset(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 8);
	buf_adds(&b, "1234");
	buf_adds(&b, "56789");
	assert_true(b.failed);
	buf_adds(&b, "5");
	buf_printf(&b, "%d", 5);
	assert_string_equal(b.data, "1234");
	assert_false(buf_reserve(&b, 0));
	buf_reset(&b);
	assert_false(b.failed);
	assert_string_equal(b.data, "");
	buf_adds(&b, "12345678");
	assert_string_equal(b.data, "12345678");
	assert_false(b.failed);
	buf_finish(&b);
}

static void reserve_of_absurd_sizes_fails(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, SIZE_MAX);
	buf_adds(&b, "abc");
	assert_false(buf_reserve(&b, SIZE_MAX));
	assert_true(b.failed);
	buf_reset(&b);
	assert_false(buf_reserve(&b, SIZE_MAX - 4));
	buf_reset(&b);
	assert_true(buf_reserve(&b, 1000));
	memset(b.data, 'q', 1000);
	b.len = 1000;
	buf_addc(&b, 'r');
	assert_int_equal(b.len, 1001);
	buf_finish(&b);
}

static void printf_of_every_length_around_the_room(void **state)
{
	(void)state;
	for (int length = 0; length < 400; length++) {
		struct buf b;
		buf_init(&b, 4096);
		buf_adds(&b, "<");
		buf_printf(&b, "%*d", length, 7);
		buf_adds(&b, ">");
		assert_int_equal(b.len, (length ? length : 1) + 2);
		assert_int_equal(b.data[b.len - 2], '7');
		assert_int_equal(strlen(b.data), b.len);
		buf_finish(&b);
	}
}

static void printf_past_the_maximum_adds_nothing(void **state)
{
	(void)state;
	struct buf b;
	buf_init(&b, 100);
	buf_printf(&b, "%s", "begin ");
	buf_printf(&b, "%200d", 1);
	assert_true(b.failed);
	assert_string_equal(b.data, "begin ");
	buf_finish(&b);

	buf_init(&b, BUF_MAX_DEFAULT);
	buf_printf(&b, "%1000000d", 1);
	assert_int_equal(b.len, 1000000);
	buf_finish(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grows_and_ends_in_nul),
		cmocka_unit_test(exactly_the_maximum_fits),
		cmocka_unit_test(failure_is_sticky_until_reset),
		cmocka_unit_test(reserve_of_absurd_sizes_fails),
		cmocka_unit_test(printf_of_every_length_around_the_room),
		cmocka_unit_test(printf_past_the_maximum_adds_nothing),
	};
	return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
