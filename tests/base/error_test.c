/* Wording, prefixes, and texts that are too long. */
#include "test.h"

#include "base/error.h"

static void words_and_code(void **state)
{
	(void)state;
	struct error err = { 0 };
	assert_int_equal(error_set(&err, E_FORMAT, "line %d: %s", 7, "odd"), E_FORMAT);
	assert_int_equal(err.code, E_FORMAT);
	assert_string_equal(err.text, "line 7: odd");
	assert_int_equal(error_prefix(&err, "%s: ", "a.heap"), E_FORMAT);
	assert_string_equal(err.text, "a.heap: line 7: odd");
	assert_int_equal(error_nomem(&err, "stacks"), E_NOMEM);
	assert_string_equal(err.text, "out of memory for stacks");
}

static void no_object_is_fine(void **state)
{
	(void)state;
	assert_int_equal(error_set(NULL, E_LIMIT, "x"), E_LIMIT);
	assert_true(error_prefix(NULL, "x: ") < 0);
	assert_int_equal(error_nomem(NULL, "x"), E_NOMEM);
}

static void old_text_may_be_an_argument(void **state)
{
	(void)state;
	struct error err;
	error_set(&err, E_IO, "inner");
	error_set(&err, E_FORMAT, "outer (%s)", err.text);
	assert_string_equal(err.text, "outer (inner)");
	error_prefix(&err, "%s, ", err.text);
	assert_string_equal(err.text, "outer (inner), outer (inner)");
}

static void long_texts_end_at_a_character(void **state)
{
	(void)state;
	char text[2000];
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	struct error err;
	error_set(&err, E_IO, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
	error_prefix(&err, "%s", text);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);

	/* A three-byte character in every position over the end. */
	for (size_t before = sizeof(err.text) - 5; before < sizeof(err.text); before++) {
		memset(text, 'a', before);
		memcpy(text + before, "\xe2\x82\xac\xe2\x82\xac", 7);
		error_set(&err, E_IO, "%s", text);
		size_t n = strlen(err.text);
		size_t whole = before + 3 <= sizeof(err.text) - 1 ? before + 3 : before;
		if (whole > sizeof(err.text) - 1)
			whole = sizeof(err.text) - 1;
		assert_int_equal(n, whole);
	}
}

static void prefix_of_a_long_text_keeps_the_prefix(void **state)
{
	(void)state;
	struct error err;
	char text[480];
	memset(text, 'z', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	error_set(&err, E_IO, "%s", text);
	error_prefix(&err, "file: ");
	assert_memory_equal(err.text, "file: zzz", 9);
	assert_int_equal(strlen(err.text), sizeof(err.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_and_code),
		cmocka_unit_test(no_object_is_fine),
		cmocka_unit_test(old_text_may_be_an_argument),
		cmocka_unit_test(long_texts_end_at_a_character),
		cmocka_unit_test(prefix_of_a_long_text_keeps_the_prefix),
	};
	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
