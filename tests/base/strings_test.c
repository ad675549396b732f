/* Each string once, numbers that stay, limits. */
#include "test.h"

#include "base/strings.h"

static uint32_t add(struct strings *s, const char *text)
{
	return strings_add(s, text, strlen(text), SIZE_MAX);
}

static void equal_strings_share_a_number(void **state)
{
	(void)state;
	struct strings s;
	assert_true(strings_init(&s));
	assert_int_equal(add(&s, ""), 0);
	assert_int_equal(strings_length(&s, 0), 0);
	assert_string_equal(strings_get(&s, 0), "");
	uint32_t a = add(&s, "malloc"), b = add(&s, "mallo"), c = add(&s, "mallocx");
	assert_int_equal(a, 1);
	assert_int_equal(b, 2);
	assert_int_equal(c, 3);
	assert_int_equal(add(&s, "malloc"), a);
	assert_int_equal(strings_find(&s, "mallocx", 6), a);
	assert_int_equal(strings_find(&s, "free", 4), INDEX_NONE);
	assert_string_equal(strings_get(&s, b), "mallo");
	assert_int_equal(strings_length(&s, b), 5);
	assert_int_equal(s.n, 4);
	strings_finish(&s);
	strings_finish(&s);
	strings_finish(NULL);
}

static void bytes_of_any_value_are_kept(void **state)
{
	(void)state;
	struct strings s;
	assert_true(strings_init(&s));
	const char with_nul[] = "a\0b";
	uint32_t id = strings_add(&s, with_nul, 3, SIZE_MAX);
	assert_int_equal(strings_length(&s, id), 3);
	assert_memory_equal(strings_get(&s, id), with_nul, 4);
	assert_int_not_equal(add(&s, "a"), id);
	assert_int_not_equal(strings_add(&s, "\0", 1, SIZE_MAX), 0);
	for (int c = 0; c < 256; c++) {
		char byte = (char)c;
		uint32_t one = strings_add(&s, &byte, 1, SIZE_MAX);
		assert_memory_equal(strings_get(&s, one), &byte, 1);
	}
	strings_finish(&s);
}

static void many_strings(void **state)
{
	(void)state;
	enum { N = 50000 };
	struct strings s;
	assert_true(strings_init(&s));
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 0; i < N; i++) {
			char name[64];
			(void)snprintf(name, sizeof(name), "%*u", (int)(i % 50), i);
			assert_int_equal(add(&s, name), i + 1);
		}
	assert_int_equal(s.n, N + 1);
	strings_finish(&s);
}

/* A part of what the table itself holds, at a moment when adding it moves the table. */
static void own_text_may_be_added(void **state)
{
	(void)state;
	struct strings s;
	assert_true(strings_init(&s));
	add(&s, "abcdefghijklmnopqrstuvwxyz");
	for (int i = 0; i < 2000; i++) {
		char name[32];
		(void)snprintf(name, sizeof(name), "%d:", i);
		uint32_t id = add(&s, name);
		size_t n = strings_length(&s, id) - 1;
		(void)strings_add(&s, strings_get(&s, id), n, SIZE_MAX);
		name[n] = '\0';
		uint32_t part = strings_find(&s, name, n);
		assert_int_not_equal(part, INDEX_NONE);
		assert_string_equal(strings_get(&s, part), name);
	}
	strings_finish(&s);
}

static void limit_is_on_all_bytes_with_their_nuls(void **state)
{
	(void)state;
	struct strings s;
	assert_true(strings_init(&s));
	assert_int_equal(strings_add(&s, "1234", 4, 6), 1);      /* NUL + 1234 NUL = 6 */
	assert_int_equal(strings_add(&s, "5", 1, 7), INDEX_NONE);
	assert_int_equal(strings_add(&s, "1234", 4, 6), 1);
	assert_int_equal(strings_add(&s, "5", 1, 8), 2);
	assert_int_equal(s.n, 3);
	assert_string_equal(strings_get(&s, 2), "5");
	strings_finish(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_strings_share_a_number),
		cmocka_unit_test(bytes_of_any_value_are_kept),
		cmocka_unit_test(many_strings),
		cmocka_unit_test(own_text_may_be_added),
		cmocka_unit_test(limit_is_on_all_bytes_with_their_nuls),
	};
	return cmocka_run_group_tests_name("strings", tests, NULL, NULL);
}
