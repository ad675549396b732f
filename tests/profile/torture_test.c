/* No memory: adding up, subtracting and lining up profiles with the nth allocation failing, for every n, is an error or the right answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "no_memory.h"
#include "profile/operations.h"
#include "profile/series.h"

/* A program and a library with a few named stacks; number tells two of them apart. */
static struct profile *make(unsigned number)
{
	struct profile *p = profile_new(0);
	profile_add_heap_types(p, false);
	char name[40];
	for (unsigned i = 0; i < 3; i++) {
		snprintf(name, sizeof name, "/bin/program%u", i * number);
		struct mapping m = { .start = 0x550000000000 + number * 0x1000000 + i * 0x10000, .executable = true };
		m.limit = m.start + 0x8000;
		m.file = profile_cstring(p, name);
		profile_add_mapping(p, &m);
	}
	struct source source = { .name = profile_cstring(p, "x.heap"), .rate = 4096, .process = number };
	profile_add_source(p, &source);
	for (unsigned i = 0; i < 20; i++) {
		snprintf(name, sizeof name, "function%u", i * number);
		struct function f = { .name = profile_cstring(p, name), .file = profile_cstring(p, "x.c") };
		struct line line = { .function = profile_intern_function(p, &f), .line = i };
		uint32_t frames[2] = { profile_add_location(p, i % 3, p->mappings[i % 3].start + i, false, &line, 1), 0 };
		profile_add_sample(p, profile_intern_stack(p, frames, 2), profile_intern_heap_labels(p, 0, 16 * (i + 1)), 0,
		                   (int64_t[]){ i + 1, 16 * (i + 1) * (i + 1) });
	}
	assert_int_equal(profile_finish(p, NULL), E_OK);
	return p;
}

typedef int attempt(struct profile *a, struct profile *b, struct profile **ret, struct error *err);

static int merge(struct profile *a, struct profile *b, struct profile **ret, struct error *err)
{
	struct profile *const both[] = { a, b };
	return profile_merge(both, 2, ret, err);
}

static int diff(struct profile *a, struct profile *b, struct profile **ret, struct error *err)
{
	return profile_diff(a, b, ret, err);
}

static int series(struct profile *a, struct profile *b, struct profile **ret, struct error *err)
{
	return profile_series((const struct profile *const[]){ a, b }, 2, ret, err);
}

static void torture(attempt *what, bool for_good)
{
	struct profile *a = make(1), *b = make(2);
	bool failed = true;
	for (size_t n = 0; failed; n++) {
		struct profile *result = NULL;
		struct error err = { 0 };
		no_memory_begin((long)n, for_good);
		int rc = what(a, b, &result, &err);
		failed = no_memory_end();
		if (rc) {
			assert_true(failed);
			assert_null(result);
			assert_true(err.text[0] != '\0');
		} else {
			assert_int_equal(result->n_samples, a->n_samples + b->n_samples);
			assert_int_equal(result->n_mappings, 4);
		}
		profile_free(result);
	}
	profile_free(a);
	profile_free(b);
}

static void merge_without_memory(void **state)
{
	(void)state;
	torture(merge, false);
	torture(merge, true);
}

static void diff_without_memory(void **state)
{
	(void)state;
	torture(diff, false);
	torture(diff, true);
}

static void series_without_memory(void **state)
{
	(void)state;
	torture(series, false);
	torture(series, true);
}

static void growth_without_memory(void **state)
{
	(void)state;
	for (int by_stack = 0; by_stack < 2; by_stack++) {
		struct profile *a = make(1), *b = make(2), *both;
		struct view_options vo = { .column = -1 };
		struct series_options so = { .by_stack = by_stack, .sort = SORT_CUM };
		struct view *v;
		assert_int_equal(profile_series((const struct profile *const[]){ a, b }, 2, &both, NULL), E_OK);
		assert_int_equal(view_new(both, &vo, &v, NULL), E_OK);
		bool failed = true;
		for (size_t n = 0; failed; n++) {
			struct series *s = NULL;
			struct error err = { 0 };
			no_memory_begin((long)n, false);
			int rc = series_new(v, &vo, &so, &s, &err);
			failed = no_memory_end();
			assert_true(rc ? failed && !s && err.text[0] : s && s->n_places > 20);
			series_free(s);
		}
		view_free(v);
		profile_free(both);
		profile_free(a);
		profile_free(b);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(merge_without_memory),
		cmocka_unit_test(diff_without_memory),
		cmocka_unit_test(series_without_memory),
		cmocka_unit_test(growth_without_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
