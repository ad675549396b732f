/* Views: granularity, filters, trimming, rows of a diff, totals and trees. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>

#include "build.h"
#include "profile/operations.h"
#include "profile/view.h"

static struct view *view_of(struct profile *p, struct view_options o)
{
	struct view *v = NULL;
	struct error err = { 0 };
	if (view_new(p, &o, &v, &err))
		fail_msg("%s", err.text);
	return v;
}

#define DEFAULTS .column = -1

static struct amount flat_of(struct view *v, const char *name, struct amount *ret_cum)
{
	struct view_totals t;
	assert_int_equal(view_totals(v, SORT_FLAT, &t, NULL), 0);
	struct amount flat = { .now = NAN };
	for (size_t i = 0; i < v->n_entries; i++)
		if (!strcmp(profile_text(v->profile, v->entries[i].name), name)) {
			flat = t.entries[i].flat;
			if (ret_cum)
				*ret_cum = t.entries[i].cum;
		}
	view_totals_finish(&t);
	return flat;
}

static struct profile *small(void)
{
	struct build b = build_begin(65536, false, 0);
	build_sample(&b, "malloc;grow;insert;main", "t0 main", 0, 10, 1000, 0, 0);
	build_sample(&b, "malloc;grow;grow;main", "t1 worker", 64, 5, 320, 0, 0);
	build_sample(&b, "operator new(unsigned long);make;main", "t1 worker", 0, 1, 70000, 0, 0);
	build_sample(&b, "", NULL, 0, 1, 7, 0, 0);
	return build_end(&b);
}

static void totals_count_recursion_once(void **state)
{
	(void)state;
	struct profile *p = small();
	struct view *v = view_of(p, (struct view_options){ DEFAULTS });
	assert_string_equal(v->type, "inuse_space");
	assert_true(v->total.now == 71327 && v->has_error && !v->diff);
	struct amount cum;
	assert_true(flat_of(v, "grow", &cum).now == 1320 && cum.now == 1320);
	assert_true(flat_of(v, "make", &cum).now == 70000);
	assert_true(flat_of(v, "main", &cum).now == 0 && cum.now == 71320);
	assert_true(flat_of(v, "malloc", &cum).now == 0 && cum.now == 0);
	view_free(v);
	v = view_of(p, (struct view_options){ DEFAULTS, .show_allocator = true });
	assert_true(flat_of(v, "malloc", NULL).now == 1320);
	view_free(v);
	profile_free(p);
}

static void every_granularity_adds_up(void **state)
{
	(void)state;
	struct profile *p = small();
	for (int by = BY_FUNCTION; by <= BY_ADDRESS; by++) {
		struct view *v = view_of(p, (struct view_options){ DEFAULTS, .by = (enum granularity)by });
		struct view_totals t;
		assert_int_equal(view_totals(v, SORT_FLAT, &t, NULL), 0);
		double sum = 0;
		for (size_t i = 0; i < t.n; i++)
			sum += t.entries[i].flat.now;
		/* the stack without a frame has no entry, but a thread label of its own */
		assert_true(sum == (by == BY_THREAD ? 71327 : 71320));
		view_totals_finish(&t);
		if (by == BY_THREAD)
			assert_true(flat_of(v, "t1 worker", NULL).now == 70320);
		if (by == BY_BINARY)
			assert_true(flat_of(v, "/usr/bin/server", NULL).now == 71320);
		view_free(v);
	}
	profile_free(p);
}

static void filters_mean_what_pprof_means(void **state)
{
	(void)state;
	struct profile *p = small();
	static const struct {
		struct view_options o;
		double total, grow_flat;
	} cases[] = {
		{ { DEFAULTS, .focus = "^insert$" }, 1000, 1000 },
		{ { DEFAULTS, .ignore = "insert|make" }, 327, 320 },
		{ { DEFAULTS, .hide = "^grow$" }, 71327, 0 },
		{ { DEFAULTS, .show = "main" }, 71327, 0 },
		{ { DEFAULTS, .show_from = "grow" }, 1320, 1320 },
		{ { DEFAULTS, .tagfocus = "worker" }, 70320, 320 },
		{ { DEFAULTS, .tagfocus = "thread=main" }, 1000, 1000 },
		{ { DEFAULTS, .tagfocus = "bytes=64" }, 320, 320 },
		{ { DEFAULTS, .tagfocus = "32b:1kb" }, 320, 320 },
		{ { DEFAULTS, .tagignore = "bytes=1:" }, 71007, 1000 },
		{ { DEFAULTS, .focus = "bin/server" }, 71320, 1320 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct view *v = view_of(p, cases[i].o);
		assert_true(v->total_all.now == 71327);
		if (v->total.now != cases[i].total || flat_of(v, "grow", NULL).now != cases[i].grow_flat)
			fail_msg("case %zu: total %g, grow %g", i, v->total.now, flat_of(v, "grow", NULL).now);
		view_free(v);
	}
	struct view *v;
	struct error err;
	assert_int_equal(view_new(p, &(struct view_options){ DEFAULTS, .hide = "(" }, &v, &err), E_USAGE);
	assert_non_null(strstr(err.text, "--hide"));
	assert_int_equal(view_new(p, &(struct view_options){ .column = 9 }, &v, &err), E_USAGE);
	profile_free(p);
}

static void tree_links_biggest_first(void **state)
{
	(void)state;
	struct profile *p = small();
	struct view *v = view_of(p, (struct view_options){ DEFAULTS });
	for (int inverted = 0; inverted < 2; inverted++) {
		struct tree t;
		assert_int_equal(view_tree(v, inverted, &t, NULL), 0);
		assert_true(t.nodes[0].total.now == 71327 && t.nodes[0].self.now == 7);
		double self = 0;
		for (uint32_t i = 0; i < t.n; i++) {
			self += t.nodes[i].self.now;
			assert_true(i == 0 || t.nodes[i].parent < i);
			double last = INFINITY, sum = t.nodes[i].self.now;
			for (uint32_t c = t.nodes[i].first_child; c; c = t.nodes[c].next_sibling) {
				assert_true(t.nodes[c].total.now <= last && t.nodes[c].parent == i);
				last = t.nodes[c].total.now;
				sum += last;
			}
			assert_true(sum == t.nodes[i].total.now);
		}
		assert_true(self == 71327);
		const char *first = inverted ? "make" : "main";
		uint32_t e = t.nodes[t.nodes[0].first_child].entry;
		assert_string_equal(profile_text(p, v->entries[e].name), first);
		tree_finish(&t);
	}
	view_free(v);
	profile_free(p);
}

static struct profile *moment(uint64_t slide, bool accum, int64_t kept, int64_t leaked, bool second)
{
	struct build b = build_begin(65536, accum, slide);
	build_sample(&b, "malloc;cache;main", "t0", 0, kept / 64, kept, kept / 64, kept);
	if (leaked)
		build_sample(&b, "malloc;leak;main", "t0", 0, leaked / 64, leaked, leaked / 64, leaked);
	if (!second)
		build_sample(&b, "malloc;gone;main", "t0", 0, 1 << 14, 1 << 20, 1 << 14, 1 << 20);
	else if (accum)
		build_sample(&b, "malloc;gone;main", "t0", 0, 0, 0, 1 << 14, 1 << 20);
	return build_end(&b);
}

static void diff_shows_growth_across_restarts(void **state)
{
	(void)state;
	for (int restarted = 0; restarted < 2; restarted++)
		for (int accum = 0; accum < 2; accum++) {
			struct profile *a = moment(0, accum, 1 << 30, 0, false), *d;
			struct profile *b = moment(restarted ? 0x7654321000 : 0, accum, 1 << 30, 64 << 20, true);
			assert_int_equal(profile_same_process(a, b), !restarted);
			assert_int_equal(profile_diff(a, b, &d, NULL), 0);
			struct view *v = view_of(d, (struct view_options){ DEFAULTS });
			assert_true(v->diff && v->n_rows == 3);
			struct amount cache = flat_of(v, "cache", NULL), leak = flat_of(v, "leak", NULL),
			              gone = flat_of(v, "gone", NULL);
			assert_true(cache.base == 1 << 30 && cache.now == 1 << 30);
			assert_true(leak.base == 0 && amount_change(&leak) == 64 << 20);
			assert_true(amount_change(&gone) == -(1 << 20));
			struct interval i = amount_interval(&cache);
			double half = (i.high - i.low) / 2;
			/* the cache survived: with accumulated counts that is known */
			assert_true(i.low < 0 && i.high > 0);
			assert_true(accum && !restarted ? half < 4 * 65536 : half > 200 * 65536);
			i = amount_interval(&leak);
			assert_true(i.low > 50 << 20 && i.high < 78 << 20);
			struct view_totals t;
			assert_int_equal(view_totals(v, SORT_FLAT, &t, NULL), 0);
			const char *biggest = profile_text(d, v->entries[t.order[0]].name);
			assert_string_equal(biggest, "leak");
			assert_true(t.entries[t.order[0]].significant);
			view_totals_finish(&t);
			view_free(v);
			profile_free(a);
			profile_free(b);
			profile_free(d);
		}
}

/* The same thread of another process has another number: pairs go by name, or not by thread at all. */
static void threads_of_two_processes_pair_by_name(void **state)
{
	(void)state;
	struct build a = build_begin(65536, false, 0), b = build_begin(65536, false, 0x55000);
	build_sample(&a, "malloc;work;main", "t2 worker 3", 0, 100, 6400, 0, 0);
	build_sample(&a, "malloc;rest;main", "t4", 0, 100, 6400, 0, 0);
	build_sample(&b, "malloc;work;main", "t3 worker 3", 0, 200, 12800, 0, 0);
	build_sample(&b, "malloc;rest;main", "t5", 0, 200, 12800, 0, 0);
	struct profile *p = build_end(&a), *q = build_end(&b), *d;
	assert_int_equal(profile_diff(p, q, &d, NULL), 0);
	struct view *v = view_of(d, (struct view_options){ DEFAULTS });
	assert_true(!v->one_process && v->n_rows == 2);
	for (size_t i = 0; i < 2; i++)
		assert_true(amount_change(&v->rows[i].amount) == 6400);
	view_free(v);
	v = view_of(d, (struct view_options){ DEFAULTS, .by = BY_THREAD });
	struct amount worker = flat_of(v, "worker 3", NULL);
	assert_true(worker.base == 6400 && worker.now == 12800);
	assert_true(flat_of(v, "t4", NULL).base == 6400 && flat_of(v, "t5", NULL).now == 12800);
	view_free(v);
	profile_free(p);
	profile_free(q);
	profile_free(d);
}

static void merge_keeps_equal_offsets_apart_and_refuses_one_process(void **state)
{
	(void)state;
	struct profile *a = small(), *b = small(), *out = NULL;
	struct error err;
	struct profile *both[2] = { a, b };
	assert_int_equal(profile_merge(both, 2, &out, &err), E_USAGE);
	assert_non_null(strstr(err.text, "diff"));
	assert_non_null(strstr(err.text, "leaks"));
	profile_free(b);

	struct build c = build_begin(65536, true, 0x123456000);
	uint32_t frames[2] = { profile_intern_location(c.p, c.program, c.p->mappings[0].start + 0x500),
		               profile_intern_location(c.p, c.library, c.p->mappings[1].start + 0x500) };
	int64_t values[4] = { 1, 1, 1, 100 };
	for (int i = 0; i < 2; i++)
		profile_add_sample(c.p, profile_intern_stack(c.p, &frames[i], 1), 0, c.source, values);
	both[1] = build_end(&c);
	assert_int_equal(profile_merge(both, 2, &out, &err), 0);
	assert_int_equal(out->n_types, 2);
	assert_int_equal(out->n_mappings, 2);
	struct view *v = view_of(out, (struct view_options){ DEFAULTS });
	assert_true(v->total.now == 71327 + 200);
	assert_true(flat_of(v, "server!0x1500", NULL).now == 100);
	assert_true(flat_of(v, "libone.so!0x1500", NULL).now == 100);
	view_free(v);
	profile_free(a);
	profile_free(both[1]);
	profile_free(out);
}

/* A mapping from 0 to 2^64 - 1 or to 0 has addresses of another kind: the file's own. */
static void merge_keeps_mappings_of_all_memory_apart(void **state)
{
	(void)state;
	static const uint64_t limits[] = { UINT64_MAX, 0 };
	for (int i = 0; i < 4; i++) {
		struct build b = build_begin(1, false, 0x123456000);
		struct mapping *m = &b.p->mappings[b.program];
		m->start = m->offset = 0;
		m->limit = limits[i / 2];
		uint32_t frame = profile_intern_location(b.p, b.program, 0x1500);
		int64_t values[2] = { 1, 100 };
		profile_add_sample(b.p, profile_intern_stack(b.p, &frame, 1), 0, b.source, values);
		struct profile *out = NULL, *both[2] = { small(), small() };
		profile_free(both[i % 2]);
		both[i % 2] = build_end(&b);
		struct error err;
		assert_int_equal(profile_merge(both, 2, &out, &err), 0);
		assert_int_equal(out->n_mappings, 3);
		const struct mapping *all = &out->mappings[i % 2 ? 2 : 0];
		assert_true(all->start == 0 && all->limit == limits[i / 2]);
		size_t at_its_address = 0;
		for (size_t k = 0; k < out->n_locations; k++)
			at_its_address += &out->mappings[out->locations[k].mapping] == all &&
			                  out->locations[k].address == 0x1500;
		assert_int_equal(at_its_address, 1);
		profile_free(both[0]);
		profile_free(both[1]);
		profile_free(out);
	}
}

/* Code in memory without a file: two pages' functions at equal offsets are two. */
static void anonymous_code_stays_apart(void **state)
{
	(void)state;
	struct build b = build_begin(1, false, 0);
	static const char *const names[] = { "", "[anon:jit]" };
	for (int i = 0; i < 4; i++) {
		struct mapping m = { .start = 0x7e0000000000 + 0x10000 * (uint64_t)i, .executable = true };
		m.limit = m.start + 0x1000;
		m.file = profile_cstring(b.p, names[i % 2]);
		uint32_t frame = profile_intern_location(b.p, profile_add_mapping(b.p, &m), m.start + 0x12);
		int64_t values[2] = { 1, 10 };
		profile_add_sample(b.p, profile_intern_stack(b.p, &frame, 1), 0, b.source, values);
	}
	struct profile *p = build_end(&b);
	struct view *v = view_of(p, (struct view_options){ DEFAULTS });
	assert_int_equal(v->n_entries, 4);
	assert_true(flat_of(v, "0x7e0000000012", NULL).now == 10);
	view_free(v);
	profile_free(p);
}

static void trimming_for_good_changes_stacks(void **state)
{
	(void)state;
	struct profile *p = small();
	assert_int_equal(profile_trim_allocator(p, NULL), 0);
	struct view *v = view_of(p, (struct view_options){ DEFAULTS, .show_allocator = true });
	assert_true(flat_of(v, "grow", NULL).now == 1320);
	assert_true(flat_of(v, "make", NULL).now == 70000);
	view_free(v);
	profile_free(p);
}

static void limits_are_sticky_failures(void **state)
{
	(void)state;
	struct profile *p = profile_new(4096);
	struct error err;
	profile_add_heap_types(p, false);
	for (int i = 0; i < 10000; i++) {
		char name[32];
		int n = snprintf(name, sizeof name, "name %d", i);
		profile_string(p, name, (size_t)n);
	}
	assert_int_equal(profile_finish(p, &err), E_LIMIT);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(totals_count_recursion_once),
		cmocka_unit_test(every_granularity_adds_up),
		cmocka_unit_test(filters_mean_what_pprof_means),
		cmocka_unit_test(tree_links_biggest_first),
		cmocka_unit_test(diff_shows_growth_across_restarts),
		cmocka_unit_test(threads_of_two_processes_pair_by_name),
		cmocka_unit_test(merge_keeps_equal_offsets_apart_and_refuses_one_process),
		cmocka_unit_test(merge_keeps_mappings_of_all_memory_apart),
		cmocka_unit_test(anonymous_code_stays_apart),
		cmocka_unit_test(trimming_for_good_changes_stacks),
		cmocka_unit_test(limits_are_sticky_failures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
