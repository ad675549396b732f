/*
 * Memory runs out at the nth allocation, for every n, once and for good: making the page's data then fails with a sentence, or they are whole.
 * With and without a limit of size, of one profile and of a series.
 */
#include "no_memory.h"
#include "profile/operations.h"
#include "report/page.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct profile *small_profile(int64_t more)
{
	struct profile *p = profile_new(0);
	profile_add_heap_types(p, false);
	struct mapping m = { .start = 0x1000, .limit = 0x9000, .executable = true, .file = profile_cstring(p, "/bin/x") };
	profile_add_mapping(p, &m);
	struct source s = { .name = profile_cstring(p, "x.heap"), .rate = 4096, .time_nanos = 1 + more };
	profile_add_source(p, &s);
	for (uint32_t i = 0; i < 40; i++) {
		uint32_t stack[6];
		for (uint32_t k = 0; k < 6; k++) {
			char name[64];
			snprintf(name, sizeof(name), "f%llx", (unsigned long long)hash_u64(i * k + k));
			struct function f = { .name = profile_cstring(p, name), .file = profile_cstring(p, "x.c") };
			struct line l = { .function = profile_intern_function(p, &f), .line = k };
			stack[k] = profile_add_location(p, 0, 0x2000 + 16 * i + k, false, k ? &l : NULL, k > 0);
		}
		uint32_t labels = profile_intern_heap_labels(p, profile_cstring(p, i % 2 ? "t1" : "t2"), i % 3 ? 64 : 0);
		profile_add_sample(p, profile_intern_stack(p, stack, i % 6), labels, 0,
		                   (int64_t[]){ 100 * i + more * (i % 3), 6400 * i + 64 * more * (i % 3) });
	}
	assert_int_equal(profile_finish(p, NULL), 0);
	return p;
}

static struct profile *series(void)
{
	struct profile *a = small_profile(0), *b = small_profile(9), *both = NULL;
	const struct profile *inputs[2] = { a, b };
	assert_int_equal(profile_series(inputs, 2, &both, NULL), 0);
	profile_free(a);
	profile_free(b);
	return both;
}

static struct profile *single(void)
{
	return small_profile(0);
}

/* Fails the first, second, ... allocation, until there was none left to fail. The same bytes whatever happened on the way. */
static void torture(struct profile *(*make)(void), size_t limit, bool for_good)
{
	struct buf notes, whole, out;
	buf_init(&notes, 100);
	buf_adds(&notes, "one\ntwo");
	struct page_options o = { .view = { .column = -1 }, .base = PROFILE_NONE, .notes = &notes, .limit_bytes = limit };
	buf_init(&whole, 1 << 20);
	struct profile *p = make();
	bool complete, reached = true;
	assert_int_equal(page_block(p, &o, &whole, &complete, NULL), 0);
	assert_true(complete == (limit == 0));
	profile_free(p);
	for (long n = 0; reached && n < 20000; n++) {
		struct error err = { 0 };
		p = make();
		buf_init(&out, 1 << 20);
		no_memory_begin(n, for_good);
		int code = page_block(p, &o, &out, NULL, &err);
		reached = no_memory_end();
		if (code) {
			assert_true(reached);
			assert_int_equal(code, E_NOMEM);
			assert_true(err.code == code && err.text[0]);
		} else {
			assert_int_equal(out.len, whole.len);
			assert_memory_equal(out.data, whole.data, out.len);
		}
		buf_finish(&out);
		profile_free(p);
	}
	assert_false(reached);
	buf_finish(&whole);
	buf_finish(&notes);
}

static void whole_block(void **state)
{
	(void)state;
	torture(single, 0, false);
	torture(single, 0, true);
	torture(series, 0, false);
}

static void folded_block(void **state)
{
	(void)state;
	torture(single, 1300, false);
	torture(series, 1300, true);
}

static void join(void **state)
{
	(void)state;
	struct profile *a = small_profile(0), *b = small_profile(9);
	const struct profile *inputs[2] = { a, b };
	bool reached = true;
	for (long n = 0; reached && n < 20000; n++) {
		struct error err = { 0 };
		struct profile *both = NULL;
		no_memory_begin(n, false);
		int code = profile_series(inputs, 2, &both, &err);
		reached = no_memory_end();
		/* A profile's arrays say the same of no memory and of their limit. */
		assert_true(code == 0 || (reached && (code == E_NOMEM || code == E_LIMIT) && err.text[0]));
		if (!code)
			assert_int_equal(both->sources[1].snapshot, 1);
		profile_free(both);
	}
	assert_false(reached);
	profile_free(a);
	profile_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(whole_block), cmocka_unit_test(folded_block), cmocka_unit_test(join) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
