/*
 * Memory runs out at the nth allocation, for every n, once and for good: a report then fails with a
 * sentence, or it is whole.
 */
#include "no_memory.h"
#include "text_profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

typedef int render(struct view *v, struct buf *out, struct error *err);

static const struct report_style style = { true, 90 };
static const struct top_options top = { .n = 0 };
static const struct tree_options tree = { .min_fraction = 0.02 };

static int top_text(struct view *v, struct buf *out, struct error *err)
{
	return report_top(v, &top, &style, out, err);
}

static int top_json(struct view *v, struct buf *out, struct error *err)
{
	return report_top_json(v, &top, out, err);
}

static int tree_text(struct view *v, struct buf *out, struct error *err)
{
	return report_tree(v, &tree, &style, out, err);
}

static int tree_json(struct view *v, struct buf *out, struct error *err)
{
	return report_tree_json(v, &tree, out, err);
}

static int peek_text(struct view *v, struct buf *out, struct error *err)
{
	return report_peek(v, ".", &style, out, err);
}

static int peek_json(struct view *v, struct buf *out, struct error *err)
{
	return report_peek_json(v, ".", out, err);
}

static int traces_text(struct view *v, struct buf *out, struct error *err)
{
	return report_traces(v, 0, &style, out, err);
}

static int traces_json(struct view *v, struct buf *out, struct error *err)
{
	return report_traces_json(v, 0, out, err);
}

static int diff_text(struct view *v, struct buf *out, struct error *err)
{
	return report_diff(v, &top, &style, out, err);
}

static int diff_json(struct view *v, struct buf *out, struct error *err)
{
	return report_diff_json(v, &top, out, err);
}

/* One run on a fresh view; the number of allocations it made. */
static long run(render *r, bool diff, long n, bool for_good, struct buf *out, int *ret_code)
{
	struct profile *p = !diff ? profiles_server(65536) :
	                            profiles_diff(profiles_server(8 * MIB), profiles_server_later(8 * MIB));
	struct view *v = profiles_view(p, BY_FUNCTION, NULL);
	struct error err = { 0 };
	assert_non_null(v);
	buf_init(out, 1 << 20);
	no_memory_begin(n, for_good);
	*ret_code = r(v, out, &err);
	no_memory_end();
	if (*ret_code)
		assert_true(err.text[0] != '\0');
	view_free(v);
	profile_free(p);
	return no_memory_calls();
}

static void check(render *r, bool diff)
{
	struct buf whole, out;
	int code;
	long all = run(r, diff, -1, false, &whole, &code), failed = 0;
	assert_int_equal(code, E_OK);
	assert_true(all > 3);
	for (int mode = 0; mode < 2; mode++) {
		for (long n = 0; n < all; n++) {
			run(r, diff, n, mode, &out, &code);
			if (!code)
				assert_string_equal(out.data, whole.data);
			else
				assert_int_equal(code, E_NOMEM);
			failed += code != 0;
			buf_finish(&out);
		}
	}
	assert_in_range(failed, all, 2 * all);      /* for good: always */
	buf_finish(&whole);
}

static void single_profiles(void **state)
{
	(void)state;
	render *const all[] = { top_text, top_json, tree_text, tree_json, peek_text, peek_json, traces_text,
		                traces_json };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		check(all[i], false);
}

static void diffs(void **state)
{
	(void)state;
	render *const all[] = { top_text, top_json, tree_text, tree_json, peek_text, peek_json, traces_text,
		                traces_json, diff_text, diff_json };
	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		check(all[i], true);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(single_profiles), cmocka_unit_test(diffs) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
