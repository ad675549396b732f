/* Every allocation of every writer fails once: an error that says so, no crash, nothing leaked (under the sanitizer). */
#include "format/format.h"
#include "no_memory.h"
#include "profile/operations.h"
#include "report/report.h"

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
	struct source s = { .name = profile_cstring(p, "x.heap"), .rate = 4096 };
	profile_add_source(p, &s);
	for (uint32_t i = 0; i < 12; i++) {
		uint32_t stack[6];
		for (uint32_t k = 0; k < 6; k++) {
			char name[24];
			snprintf(name, sizeof(name), "f%u", (i * k + k) % 9);
			struct function f = { .name = profile_cstring(p, name), .file = profile_cstring(p, "x.c") };
			struct line l = { .function = profile_intern_function(p, &f), .line = k };
			stack[k] = profile_add_location(p, 0, 0x2000 + 16 * i + k, false, &l, 1);
		}
		uint32_t labels = profile_intern_heap_labels(p, profile_cstring(p, i % 2 ? "t1" : "t2"), 64);
		profile_add_sample(p, profile_intern_stack(p, stack, i % 6), labels, 0,
		                   (int64_t[]){ 100 * i + more * (i % 3), 6400 * i + 64 * more * (i % 3) });
	}
	assert_int_equal(profile_finish(p, NULL), 0);
	return p;
}

static int flame(struct view *v, struct buf *out, struct error *err)
{
	struct flame_options o = { .title = "t" };
	return report_flame_svg(v, &o, out, err);
}

static int inverted(struct view *v, struct buf *out, struct error *err)
{
	struct flame_options o = { .inverted = true };
	return report_flame_svg(v, &o, out, err);
}

static int speedscope(struct view *v, struct buf *out, struct error *err)
{
	return speedscope_write(v, NULL, out, err);
}

static int callgrind(struct view *v, struct buf *out, struct error *err)
{
	return callgrind_write(v, NULL, out, err);
}

typedef int writer(struct view *v, struct buf *out, struct error *err);

static writer *const writers[] = {
	flame, inverted, report_dot, folded_write, speedscope, callgrind, csv_write, json_write,
};

/* Fails the first, second, ... allocation, until there was none left to fail. */
static void torture(struct view *v, writer *write)
{
	struct buf out;
	struct error err;
	size_t whole = 0;
	for (long n = 0; n < 10000; n++) {
		buf_init(&out, BUF_MAX_DEFAULT);
		err = (struct error){ 0 };
		no_memory_begin(n, false);
		int code = write(v, &out, &err);
		bool reached = no_memory_end();
		if (code) {
			assert_true(code == E_NOMEM || code == E_LIMIT);
			assert_int_equal(err.code, code);
			assert_true(err.text[0]);
		}
		if (!reached) {
			assert_int_equal(code, 0);
			whole = out.len;
			buf_finish(&out);
			break;
		}
		/* realloc may be asked again for less: then what was refused didn't matter. */
		buf_finish(&out);
	}
	assert_true(whole > 0);
	/* And a limit of the output: one byte too few. */
	buf_init(&out, whole - 1);
	assert_int_equal(write(v, &out, &err), E_LIMIT);
	buf_finish(&out);
	buf_init(&out, whole);
	bool exact = write != flame && write != inverted;   /* these try larger ones first */
	if (exact)
		assert_int_equal(write(v, &out, &err), 0);
	buf_finish(&out);
}

static void torture_all(struct profile *p)
{
	struct view *v = NULL;
	struct view_options o = { .column = -1 };
	assert_int_equal(view_new(p, &o, &v, NULL), 0);
	for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++)
		torture(v, writers[i]);
	view_free(v);
	profile_free(p);
}

static void one_profile(void **state)
{
	(void)state;
	torture_all(small_profile(0));
}

static void difference(void **state)
{
	(void)state;
	struct profile *base = small_profile(0), *now = small_profile(7), *diff = NULL;
	assert_int_equal(profile_diff(base, now, &diff, NULL), 0);
	profile_free(base);
	profile_free(now);
	torture_all(diff);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_profile), cmocka_unit_test(difference) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
