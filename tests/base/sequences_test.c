/* Sequences come out as a plain comparison of all of them would put them. */
#include "base/sequences.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static uint32_t *words;

static int compare(const void *a, const void *b)
{
	const struct sequence *s = a, *t = b;
	for (uint32_t i = 0; i < s->n && i < t->n; i++)
		if (words[s->first + i] != words[t->first + i])
			return words[s->first + i] < words[t->first + i] ? -1 : 1;
	if (s->n != t->n)
		return s->n < t->n ? -1 : 1;
	return (s->item > t->item) - (s->item < t->item);
}

static int backwards(const void *context, uint32_t item, uint32_t other)
{
	*(size_t *)context += 1;
	return (item < other) - (item > other);
}

/* n sequences of up to `longest` words below `alphabet`. */
static void check(size_t n, uint32_t longest, uint32_t alphabet)
{
	struct sequence *s = calloc(n, sizeof(*s)), *t = calloc(n, sizeof(*t));
	words = calloc(n * longest + 1, sizeof(*words));
	for (size_t i = 0; i < n; i++) {
		uint64_t r = hash_u64(i * 77 + longest);
		s[i] = t[i] = (struct sequence){ i * longest, (uint32_t)(r % (longest + 1)), (uint32_t)i };
		for (uint32_t k = 0; k < longest; k++)
			words[i * longest + k] = (uint32_t)(hash_u64(r + k) % alphabet);
	}
	assert_true(sequences_sort(words, s, n, NULL, NULL));
	qsort(t, n, sizeof(*t), compare);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(s[i].item, t[i].item);
	free(s);
	free(t);
	free(words);
}

static void sorts(void **state)
{
	(void)state;
	check(1, 3, 4);
	check(2, 3, 4);
	check(13, 2, 2);
	check(1000, 1, 3);
	check(1000, 2, 3);
	check(3000, 7, 2);
	check(3000, 8, 2);
	check(3000, 40, 1);
	check(3000, 5, UINT32_MAX);
}

/* Two long equal ones and what their tie says; none at all. */
static void long_and_equal(void **state)
{
	(void)state;
	enum { LONG = 100000 };
	words = calloc(2 * LONG, sizeof(*words));
	for (size_t i = 0; i < 2 * LONG; i++)
		words[i] = (uint32_t)(i % LONG % 251);
	struct sequence s[] = { { 0, LONG, 0 }, { LONG, LONG, 1 }, { 0, LONG - 1, 2 }, { 0, 0, 3 } };
	size_t asked = 0;
	assert_true(sequences_sort(words, s, 4, backwards, &asked));
	assert_int_equal(s[0].item, 3);
	assert_int_equal(s[1].item, 2);
	assert_int_equal(s[2].item, 1);
	assert_int_equal(s[3].item, 0);
	assert_true(asked > 0);
	assert_true(sequences_sort(words, NULL, 0, NULL, NULL));
	free(words);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(sorts), cmocka_unit_test(long_and_equal) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
