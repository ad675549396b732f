/* The text reports word for word, on profiles small enough to check by hand. */
#include "text_profiles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/text.h"

#include <cmocka.h>

static const struct report_style pipe_style = { false, 0 };

enum which { TOP, TREE, PEEK, TRACES, DIFF };

struct ask {
	enum which which;
	struct report_style style;
	struct top_options top;
	struct tree_options tree;
	const char *regex;
	uint32_t n;
};

/* The report of p, which is freed; the text belongs to the caller. */
static char *report(struct profile *p, enum granularity by, const char *focus, const struct ask *a)
{
	struct buf out;
	struct error err = { 0 };
	struct view *v = profiles_view(p, by, focus);
	assert_non_null(v);
	buf_init(&out, 1 << 26);
	int code = -100;
	switch (a->which) {
	case TOP: code = report_top(v, &a->top, &a->style, &out, &err); break;
	case TREE: code = report_tree(v, &a->tree, &a->style, &out, &err); break;
	case PEEK: code = report_peek(v, a->regex, &a->style, &out, &err); break;
	case TRACES: code = report_traces(v, a->n, &a->style, &out, &err); break;
	case DIFF: code = report_diff(v, &a->top, &a->style, &out, &err); break;
	}
	view_free(v);
	profile_free(p);
	assert_string_equal(err.text, "");
	assert_int_equal(code, E_OK);
	return out.data;
}

static void expect(struct profile *p, const struct ask *a, const char *wanted)
{
	char *text = report(p, BY_FUNCTION, NULL, a);
	assert_string_equal(text, wanted);
	free(text);
}

/* Each of the sentences (a NULL-terminated list) stands in text; freed. */
static void expect_parts(char *text, const char *const *parts)
{
	for (; *parts; parts++)
		if (!strstr(text, *parts)) {
			print_message("missing: %s\nin:\n%s\n", *parts, text);
			assert_true(strstr(text, *parts) != NULL);
		}
	free(text);
}

#define SERVER_HEADER                                                                        \
	"File:     server.42.0.heap, pid 42, 2026-11-21 03:30:00 UTC\n"                      \
	"Process:  /usr/bin/server\n"                                                        \
	"Metric:   inuse_space: bytes allocated and not yet freed\n"                         \
	"Total:    100 MiB ±5%; ± is the 95% sampling error\n"                            \
	"Sampled:  every 64.0 KiB on average (lg 16); the total's error is that of about 1,635 samples\n"

static void top_is_a_table(void **state)
{
	(void)state;
	struct ask ask = { .which = TOP, .style = pipe_style };
	expect(profiles_server(65536), &ask,
	       SERVER_HEADER "\n"
	       "    flat     ±  flat%    sum%       cum     ±    cum%  function\n"
	       "64.0 MiB   ±6%  64.0%   64.0%  64.0 MiB   ±6%   64.0%  parse\n"
	       "24.0 MiB  ±10%  24.0%   88.0%  24.0 MiB  ±10%   24.0%  cache_put\n"
	       "11.0 MiB  ±14%  11.0%   99.0%  11.0 MiB  ±14%   11.0%  load\n"
	       "1.00 MiB  ±49%   1.0%  100.0%  1.00 MiB  ±49%    1.0%  log_line\n"
	       "     0 B         0.0%  100.0%   100 MiB   ±5%  100.0%  main\n"
	       "     0 B         0.0%  100.0%  89.0 MiB   ±5%   89.0%  run\n"
	       "     0 B         0.0%  100.0%  88.0 MiB   ±5%   88.0%  handle\n"
	       "     0 B         0.0%  100.0%  11.0 MiB  ±14%   11.0%  init\n");
}

static void top_says_what_it_left_out(void **state)
{
	(void)state;
	struct ask ask = { .which = TOP, .style = pipe_style, .top = { .n = 2 } };
	static const char *const parts[] = { "cache_put\n(6 more rows, 12.0 MiB flat)\n", NULL };
	expect_parts(report(profiles_server(65536), BY_FUNCTION, NULL, &ask), parts);
}

static void exact_profiles_have_no_error_column(void **state)
{
	(void)state;
	struct ask ask = { .which = TOP, .style = pipe_style, .top = { .n = 1 } };
	expect(profiles_server(1), &ask,
	       "File:     server.42.0.heap, pid 42, 2026-11-21 03:30:00 UTC\n"
	       "Process:  /usr/bin/server\n"
	       "Metric:   inuse_space: bytes allocated and not yet freed\n"
	       "Total:    100 MiB\n"
	       "Sampled:  every allocation: exact\n\n"
	       "    flat  flat%   sum%       cum   cum%  function\n"
	       "64.0 MiB  64.0%  64.0%  64.0 MiB  64.0%  parse\n"
	       "(7 more rows, 36.0 MiB flat)\n");
}

/* A rate that was never recorded gives no error, and a sentence that says so. */
static void unknown_rate_is_said(void **state)
{
	(void)state;
	struct ask ask = { .which = TOP, .style = pipe_style, .top = { .n = 1 } };
	static const char *const parts[] = {
		"Total:    100 MiB\nNote:     no ±: the profile does not say its sampling rate",
		"    flat  flat%", NULL
	};
	expect_parts(report(profiles_server(0), BY_FUNCTION, NULL, &ask), parts);
}

static void few_samples_show_both_sides(void **state)
{
	(void)state;
	struct ask ask = { .which = TOP, .style = pipe_style };
	static const char *const parts[] = {
		"Total:    100 MiB ±28%",
		"Note:     few samples (about 50), so ± is wide: more load or more time may help, a finer rate does "
		"(jemalloc: lg_prof_sample:18 for about ±10% of the total)\n",
		"11.0 MiB   -65%/+125%", NULL
	};
	expect_parts(report(profiles_server(2 * 1048576), BY_FUNCTION, NULL, &ask), parts);
	static const char *const everything[] = { "a finer rate does (jemalloc: lg_prof_sample:0 records every", NULL };
	expect_parts(report(profiles_server(2 * 1048576), BY_FUNCTION, "^log_line$", &ask), everything);
}

static void filters_are_said(void **state)
{
	(void)state;
	struct ask ask = { .which = TOP, .style = pipe_style };
	static const char *const parts[] = {
		"Total:    11.0 MiB ±14%",
		"Note:     filters left 11.0 MiB of 100 MiB (11.0%); percentages refer to all of it\n",
		"11.0 MiB  ±14%  11.0%  11.0%  11.0 MiB  ±14%  11.0%  load\n", NULL
	};
	expect_parts(report(profiles_server(65536), BY_FUNCTION, "^init$", &ask), parts);
}

static void header_that_accounts_for_more_is_said(void **state)
{
	(void)state;
	struct ask ask = { .which = TOP, .style = pipe_style };
	struct profile *p = profiles_server(65536);
	p->sources[0].header_bytes = 150.0 * (double)MIB;
	static const char *const parts[] = {
		"Note:     the header of server.42.0.heap accounts for 150 MiB, its stacks for 100 MiB: the dump "
		"may be incomplete", NULL
	};
	expect_parts(report(p, BY_FUNCTION, NULL, &ask), parts);
	p = profiles_server(65536);
	p->sources[0].header_bytes = 100.2 * (double)MIB;
	char *text = report(p, BY_FUNCTION, NULL, &ask);
	assert_null(strstr(text, "Note:"));
	free(text);
}

static void frames_without_a_name_are_said(void **state)
{
	(void)state;
	struct build b = build_begin(65536, false, 0);
	uint32_t bare = profile_intern_location(b.p, b.library, 0x7f0000001000 + 0x234);
	uint32_t stack = profile_intern_stack(b.p, &bare, 1);
	profile_add_sample(b.p, stack, 0, b.source, (int64_t[]){ 100, 50 * MIB });
	profile_add_sample(b.p, profile_intern_stack(b.p, NULL, 0), 0, b.source, (int64_t[]){ 10, 50 * MIB });
	struct ask ask = { .which = TOP, .style = pipe_style };
	static const char *const parts[] = {
		"Note:     50.0% lie in frames without a name (binary!0x..., binary!fn_...); ",
		"Note:     50.0 MiB (50.0%) have no frame and stand in no row: ", "  libone.so!0x1234\n", NULL
	};
	expect_parts(report(build_end(&b), BY_FUNCTION, NULL, &ask), parts);
}

/* Nanoseconds read as seconds, and a CPU profile has neither error nor heap words. */
static void cpu_profiles_have_their_units(void **state)
{
	(void)state;
	struct build b = { .p = profile_new(0) };
	profile_add_type(b.p, "samples", "count");
	profile_add_type(b.p, "cpu", "nanoseconds");
	struct mapping m = { .start = 0x400000, .limit = 0x600000, .executable = true };
	b.program = profile_add_mapping(b.p, &m);
	struct source s = { .name = profile_cstring(b.p, "cpu.pb.gz"), .duration_nanos = 30000000000,
		            .header_objects = -1, .header_bytes = -1 };
	b.source = profile_add_source(b.p, &s);
	profile_add_sample(b.p, build_stack(&b, "spin;main"), 0, b.source, (int64_t[]){ 1230, 12300000000 });
	profile_add_sample(b.p, build_stack(&b, "nap;main"), 0, b.source, (int64_t[]){ 2, 20000000 });
	struct ask ask = { .which = TOP, .style = pipe_style };
	expect(build_end(&b), &ask,
	       "File:     cpu.pb.gz\n"
	       "Duration: 30.0 s\n"
	       "Metric:   cpu in nanoseconds\n"
	       "Total:    12.3 s\n\n"
	       "   flat  flat%    sum%      cum    cum%  function\n"
	       " 12.3 s  99.8%   99.8%   12.3 s   99.8%  spin\n"
	       "20.0 ms   0.2%  100.0%  20.0 ms    0.2%  nap\n"
	       "    0 s   0.0%  100.0%   12.3 s  100.0%  main\n");
}

static void lines_name_their_place(void **state)
{
	(void)state;
	struct build b = build_begin(1, false, 0);
	struct function inner = { .name = profile_cstring(b.p, "push"), .file = profile_cstring(b.p, "vec.h") };
	struct function outer = { .name = profile_cstring(b.p, "fill"), .file = profile_cstring(b.p, "app.c") };
	struct line lines[2] = { { .line = 12, .function = profile_intern_function(b.p, &inner) },
		                 { .line = 34, .function = profile_intern_function(b.p, &outer) } };
	uint32_t location = profile_add_location(b.p, b.program, 0x560000001100, false, lines, 2);
	profile_add_sample(b.p, profile_intern_stack(b.p, &location, 1), 0, b.source, (int64_t[]){ 1, 4096 });
	struct ask ask = { .which = TRACES, .style = pipe_style };
	static const char *const by_line[] = { "      push vec.h:12 (inline)\n      fill app.c:34\n", NULL };
	struct profile *p = build_end(&b);
	expect_parts(report(p, BY_LINE, NULL, &ask), by_line);
}

static void tree_indents_forks_only(void **state)
{
	(void)state;
	struct ask ask = { .which = TREE, .style = pipe_style, .tree = { .min_fraction = 0.02 } };
	expect(profiles_server(65536), &ask,
	       SERVER_HEADER "\n"
	       "   total     ±  total%      self  call tree\n"
	       " 100 MiB   ±5%  100.0%            (all)\n"
	       " 100 MiB   ±5%  100.0%            main\n"
	       "89.0 MiB   ±5%   89.0%            ├─ run\n"
	       "88.0 MiB   ±5%   88.0%            │  ├─ handle\n"
	       "64.0 MiB   ±6%   64.0%  64.0 MiB  │  │  ├─ parse\n"
	       "24.0 MiB  ±10%   24.0%  24.0 MiB  │  │  └─ cache_put\n"
	       "1.00 MiB          1.0%            │  └─ (1 more)\n"
	       "11.0 MiB  ±14%   11.0%            └─ init\n"
	       "11.0 MiB  ±14%   11.0%  11.0 MiB     load\n");
}

static void inverted_tree_starts_where_it_allocates(void **state)
{
	(void)state;
	struct ask ask = { .which = TREE, .style = pipe_style, .tree = { .inverted = true, .max_depth = 1 } };
	static const char *const parts[] = {
		"   total     ±  total%  what allocates, callers below\n",
		" 100 MiB   ±5%  100.0%  (all)\n64.0 MiB   ±6%   64.0%  ├─ parse\n64.0 MiB         64.0%  │  (1 more)\n",
		"1.00 MiB  ±49%    1.0%  └─ log_line\n1.00 MiB          1.0%     (1 more)\n", NULL
	};
	expect_parts(report(profiles_server(65536), BY_FUNCTION, NULL, &ask), parts);
}

static size_t count_lines(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* One call after the other down to the deepest stack there is; the root also allocates. */
static void deep_tree_is_walked_not_recursed(void **state)
{
	(void)state;
	struct build b = build_begin(1, false, 0);
	uint32_t *frames = malloc(PROFILE_MAX_DEPTH * sizeof *frames);
	assert_non_null(frames);
	for (uint32_t i = 0; i < PROFILE_MAX_DEPTH; i++)
		frames[i] = profile_intern_location(b.p, b.program, 0x560000001000 + i);
	uint32_t deep = profile_intern_stack(b.p, frames, PROFILE_MAX_DEPTH);
	uint32_t flat = profile_intern_stack(b.p, frames + PROFILE_MAX_DEPTH - 1, 1);
	profile_add_sample(b.p, deep, 0, b.source, (int64_t[]){ 9, 9000 });
	profile_add_sample(b.p, flat, 0, b.source, (int64_t[]){ 1, 10 });
	free(frames);
	struct ask ask = { .which = TREE, .style = { false, 100 } };
	char *text = report(build_end(&b), BY_FUNCTION, NULL, &ask);
	assert_int_equal(count_lines(text), PROFILE_MAX_DEPTH + 1 + 7);
	assert_non_null(strstr(text, "8.79 KiB   99.9%  8.79 KiB  server!0x1000\n"));
	free(text);
}

/* Every level is a fork: what is drawn stays within the terminal and says how deep it is. */
static void comb_is_drawn_to_a_depth(void **state)
{
	(void)state;
	enum { TEETH = 1000 };
	struct build b = build_begin(1, false, 0);
	uint32_t frames[TEETH + 1];
	for (uint32_t i = 0; i < TEETH; i++)
		frames[i + 1] = profile_intern_location(b.p, b.program, 0x560000001000 + i);
	for (uint32_t i = 0; i < TEETH; i++) {
		uint32_t deeper = frames[i];
		frames[i] = profile_intern_location(b.p, b.library, 0x7f0000001000);
		uint32_t stack = profile_intern_stack(b.p, frames + i, TEETH + 1 - i);
		profile_add_sample(b.p, stack, 0, b.source, (int64_t[]){ 1, 10 });
		frames[i] = deeper;
	}
	struct ask ask = { .which = TREE, .style = { false, 80 } };
	char *text = report(build_end(&b), BY_FUNCTION, NULL, &ask);
	assert_in_range(count_lines(text), 2 * TEETH, 2 * TEETH + 10);
	assert_in_range(strlen(text), 0, 2 * TEETH * 150);
	assert_non_null(strstr(text, "[depth 1000] └─ server!0x1000\n"));
	free(text);
}

static void peek_shows_callers_and_callees(void **state)
{
	(void)state;
	struct ask ask = { .which = PEEK, .style = pipe_style, .regex = "^handle$" };
	expect(profiles_server(65536), &ask,
	       SERVER_HEADER "\n"
	       "flat       cum    ±   cum%      edge     ±   edge%  ↑ callers, the entry, ↓ callees\n"
	       "-----------------------------------------------------------------------------------\n"
	       "                            88.0 MiB   ±5%  100.0%    ↑ run\n"
	       " 0 B  88.0 MiB  ±5%  88.0%                          handle\n"
	       "                            64.0 MiB   ±6%   72.7%    ↓ parse\n"
	       "                            24.0 MiB  ±10%   27.3%    ↓ cache_put\n");
}

/* A function that calls itself: its cum and its edge to itself count each stack once. */
static void recursion_counts_once(void **state)
{
	(void)state;
	struct build b = build_begin(1, false, 0);
	build_sample(&b, "fib;fib;fib;fib;main", "", 0, 10, 1000, 0, 0);
	struct ask peek = { .which = PEEK, .style = pipe_style, .regex = "fib" };
	static const char *const parts[] = {
		"1000 B  100.0%    ↑ fib\n", "1000 B  100.0%    ↑ main\n", "1000 B  1000 B  100.0%", NULL
	};
	struct ask traces = { .which = TRACES, .style = pipe_style };
	static const char *const trace[] = { "      fib (4 times in a row)\n      main\n", NULL };
	struct profile *p = build_end(&b);
	struct view *v = profiles_view(p, BY_FUNCTION, NULL);
	struct buf out;
	buf_init(&out, 1 << 20);
	assert_int_equal(report_peek(v, peek.regex, &pipe_style, &out, NULL), E_OK);
	view_free(v);
	expect_parts(out.data, parts);
	expect_parts(report(p, BY_FUNCTION, NULL, &traces), trace);
}

static void peek_refuses_what_it_cannot_find(void **state)
{
	(void)state;
	struct profile *p = profiles_server(65536);
	struct view *v = profiles_view(p, BY_FUNCTION, NULL);
	struct buf out;
	struct error err = { 0 };
	buf_init(&out, 1 << 20);
	assert_int_equal(report_peek(v, "nobody", &pipe_style, &out, &err), E_USAGE);
	assert_string_equal(err.text,
	                    "\"nobody\" matches none of the profile's entries (heapgauge top lists them)");
	assert_int_equal(report_peek(v, "a(", &pipe_style, &out, &err), E_USAGE);
	assert_non_null(strstr(err.text, "bad regular expression \"a(\": "));
	assert_int_equal(out.len, 0);
	view_free(v);
	profile_free(p);
}

static void traces_are_whole_stacks(void **state)
{
	(void)state;
	struct ask ask = { .which = TRACES, .style = pipe_style, .n = 3 };
	expect(profiles_server(65536), &ask,
	       SERVER_HEADER "\n"
	       "#1  64.0 MiB ±6%  64.0%  65.5k blocks of 1.00 KiB  thread worker\n"
	       "      parse\n      handle\n      run\n      main\n\n"
	       "#2  24.0 MiB ±10%  24.0%  6,144 blocks of 4.00 KiB  thread worker\n"
	       "      cache_put\n      handle\n      run\n      main\n\n"
	       "#3  11.0 MiB ±14%  11.0%  1,024 blocks, mean size 11.0 KiB\n"
	       "      load\n      init\n      main\n\n"
	       "(1 more stack, 1.00 MiB)\n");
}

#define DIFF_HEADER                                                                                       \
	"Base:     server.42.0.heap, pid 42, 2026-11-21 03:30:00 UTC\n"                                   \
	"New:      server.42.1.heap, pid 42, 2026-11-21 03:40:00 UTC, 10.0 min later\n"                   \
	"Process:  /usr/bin/server\n"                                                                     \
	"Metric:   inuse_space: bytes allocated and not yet freed\n"

#define UPPER_BOUND                                                                                       \
	"Note:     same process: blocks live in both cancel, but the dumps don't say which; ± is a safe " \
	"upper bound (prof_accum:true would narrow it)\n"

static void diff_puts_noise_last(void **state)
{
	(void)state;
	struct ask ask = { .which = DIFF, .style = pipe_style };
	expect(profiles_diff(profiles_server(65536), profiles_server_later(65536)), &ask,
	       DIFF_HEADER
	       "Total:    100 MiB → 194 MiB, change +94.0 MiB ±8.34 MiB (+94.0%); ± is the 95% sampling error\n"
	       "Sampled:  every 64.0 KiB on average (lg 16)\n" UPPER_BOUND
	       "Note:     1 of 4 changed rows is noise: noise is what sampling alone would do (95%, corrected for "
	       "the number of rows)\n\n"
	       "    base       new     change          ±  change%         function\n"
	       "64.0 MiB   160 MiB  +96.0 MiB  ±7.30 MiB  +150.0%         parse\n"
	       "11.0 MiB       0 B  -11.0 MiB  ±1.56 MiB     gone         load\n"
	       "     0 B  8.00 MiB  +8.00 MiB  ±1.39 MiB      new         session\n"
	       "24.0 MiB  25.0 MiB  +1.00 MiB  ±3.38 MiB    +4.2%  noise  cache_put\n"
	       "(1 row did not change)\n");
}

static void diff_tells_what_would_suffice(void **state)
{
	(void)state;
	struct ask ask = { .which = DIFF, .style = pipe_style };
	static const char *const parts[] = {
		"Note:     all 4 changed rows are noise: ",
		"\nNot enough samples yet: even the largest change (+96.0 MiB, parse) is no more than sampling alone "
		"would do. If it is real, a rate about 4 times finer (jemalloc: lg_prof_sample:21 instead of 23) would "
		"tell four times in five; so would at most 3 times as long between the two (28.9 min instead of "
		"10.0 min), if it keeps growing like this.\n", NULL
	};
	expect_parts(report(profiles_diff(profiles_server(8 * MIB), profiles_server_later(8 * MIB)), BY_FUNCTION,
	                    NULL, &ask), parts);
}

/* What the advice asks for does suffice: at the rate it names, that row is significant. */
static void advice_suffices(void **state)
{
	(void)state;
	struct profile *p = profiles_diff(profiles_server(2 * MIB), profiles_server_later(2 * MIB));
	struct view *v = profiles_view(p, BY_FUNCTION, NULL);
	struct view_totals totals;
	assert_int_equal(view_totals(v, SORT_FLAT, &totals, NULL), E_OK);
	uint32_t first = totals.order[0];
	assert_string_equal(profile_text(p, v->entries[first].name), "parse");
	assert_true(totals.entries[first].significant);
	view_totals_finish(&totals);
	view_free(v);
	profile_free(p);
}

static void unchanged_profiles_say_so(void **state)
{
	(void)state;
	struct ask ask = { .which = DIFF, .style = pipe_style };
	static const char *const parts[] = { "change 0 B", "\n(4 rows did not change)\nNothing changed.\n", NULL };
	expect_parts(report(profiles_diff(profiles_server(1), profiles_server(1)), BY_FUNCTION, NULL, &ask), parts);
}

static void diff_without_base_is_refused(void **state)
{
	(void)state;
	struct profile *p = profiles_server(1);
	struct view *v = profiles_view(p, BY_FUNCTION, NULL);
	struct buf out;
	struct error err = { 0 };
	struct top_options o = { 0 };
	buf_init(&out, 1 << 20);
	assert_int_equal(report_diff(v, &o, &pipe_style, &out, &err), E_USAGE);
	assert_non_null(strstr(err.text, "base"));
	view_free(v);
	profile_free(p);
}

static void every_view_shows_a_diff(void **state)
{
	(void)state;
	struct ask asks[] = {
		{ .which = TOP, .style = pipe_style },
		{ .which = TREE, .style = pipe_style, .tree = { .min_fraction = 0.02 } },
		{ .which = PEEK, .style = pipe_style, .regex = "^handle$" },
		{ .which = TRACES, .style = pipe_style },
	};
	static const char *const rows[][4] = {
		{ "     flat          ±    flat%        cum          ±     cum%         function\n",
		  "+1.00 MiB  ±3.38 MiB    +4.2%  +1.00 MiB  ±3.38 MiB    +4.2%  noise  cache_put\n", NULL },
		{ "     0 B  8.00 MiB  +8.00 MiB  ±1.39 MiB      new         │  │  └─ session\n",
		  "24.0 MiB  25.0 MiB  +1.00 MiB  ±3.38 MiB    +4.2%  noise  │  │  ├─ cache_put\n", NULL },
		{ "+8.00 MiB  ±1.39 MiB      new           ↓ session\n", "↑ run\n", NULL },
		{ "#2  -11.0 MiB ±1.56 MiB  (11.0 MiB → 0 B, gone)  -1,024 blocks\n      load\n",
		  "#4  +1.00 MiB ±3.38 MiB  (24.0 MiB → 25.0 MiB, +4.2%)  noise  +256 blocks  thread worker\n", NULL },
	};
	for (size_t i = 0; i < 4; i++)
		expect_parts(report(profiles_diff(profiles_server(65536), profiles_server_later(65536)),
		                    BY_FUNCTION, NULL, &asks[i]), rows[i]);
}

/* Even without a cut the tree of a diff sums up what nothing happened to. */
static void unchanged_branches_are_summed_up(void **state)
{
	(void)state;
	struct ask ask = { .which = TREE, .style = pipe_style };
	static const char *const parts[] = { "1.00 MiB  1.00 MiB        0 B                             │  └─ (1 more)\n",
		                             NULL };
	char *text = report(profiles_diff(profiles_server(65536), profiles_server_later(65536)), BY_FUNCTION, NULL,
	                    &ask);
	assert_null(strstr(text, "log_line"));
	expect_parts(text, parts);
}

static void names_cannot_act_on_the_terminal(void **state)
{
	(void)state;
	struct build b = build_begin(1, false, 0);
	build_sample(&b, "evil\033[2J\x9b\r;main\xe2\x80\xae", "t\033]0;x\a", 0, 1, 100, 0, 0);
	profiles_origin(&b, "name\nNote: all is well\033[1m", 0);
	struct profile *p = build_end(&b);
	p->sources[0].header_bytes = 1e9;
	struct view *v = profiles_view(p, BY_FUNCTION, NULL);
	struct buf out;
	buf_init(&out, 1 << 20);
	struct top_options top = { 0 };
	struct tree_options tree = { 0 };
	assert_int_equal(report_top(v, &top, &pipe_style, &out, NULL), E_OK);
	assert_int_equal(report_tree(v, &tree, &pipe_style, &out, NULL), E_OK);
	assert_int_equal(report_peek(v, "evil", &pipe_style, &out, NULL), E_OK);
	assert_int_equal(report_traces(v, 0, &pipe_style, &out, NULL), E_OK);
	for (size_t i = 0; i < out.len; i++)
		assert_true(((unsigned char)out.data[i] >= 0x20 && out.data[i] != 0x7f) || out.data[i] == '\n');
	assert_null(strstr(out.data, "\nNote: all is well"));
	assert_null(strstr(out.data, "\xe2\x80\xae"));
	assert_non_null(strstr(out.data, "evil\\x1b[2J"));
	buf_finish(&out);
	view_free(v);
	profile_free(p);
}

static void colour_is_asked_for_and_ends(void **state)
{
	(void)state;
	struct ask ask = { .which = DIFF, .style = { true, 0 } };
	static const char *const parts[] = {
		"\033[1mBase:\033[0m", "\033[31m+96.0 MiB\033[0m", "\033[32m-11.0 MiB\033[0m",
		"\033[2m24.0 MiB  25.0 MiB  +1.00 MiB  ±3.38 MiB    +4.2%  noise  cache_put\033[0m\n", NULL
	};
	expect_parts(report(profiles_diff(profiles_server(65536), profiles_server_later(65536)), BY_FUNCTION,
	                    NULL, &ask), parts);
}

/* No line is longer than the terminal, and what was cut keeps both ends. */
static void names_fit_the_terminal(void **state)
{
	(void)state;
	struct build b = build_begin(65536, false, 0);
	build_sample(&b, "std::ærlig::vector<std::pair<int, ünïcode_thing_that_goes_on>>::push_back;"
	                 "main_with_a_name_that_is_much_longer_than_any_terminal_would_want_it_to_be",
	             "", 0, 1000, 50 * MIB, 0, 0);
	struct profile *p = build_end(&b);
	struct view *v = profiles_view(p, BY_FUNCTION, NULL);
	static const uint32_t widths[] = { 60, 80, 100 };
	for (size_t w = 0; w < 3; w++) {
		struct report_style style = { false, widths[w] };
		struct top_options top = { 0 };
		struct tree_options tree = { 0 };
		struct buf out;
		buf_init(&out, 1 << 20);
		assert_int_equal(report_top(v, &top, &style, &out, NULL), E_OK);
		assert_int_equal(report_tree(v, &tree, &style, &out, NULL), E_OK);
		assert_int_equal(report_traces(v, 0, &style, &out, NULL), E_OK);
		assert_non_null(strstr(out.data, "…"));
		assert_non_null(strstr(out.data, "::push_back\n"));
		for (char *line = strtok(out.data, "\n"); line; line = strtok(NULL, "\n")) {
			size_t columns = 0;
			for (size_t i = 0, n; line[i]; i += n, columns++)
				assert_true((n = text_utf8_length(line + i, strlen(line + i))) > 0);
			if (line[0] != '#')
				assert_in_range(columns, 1, widths[w]);
		}
		buf_finish(&out);
	}
	view_free(v);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(top_is_a_table),
		cmocka_unit_test(top_says_what_it_left_out),
		cmocka_unit_test(exact_profiles_have_no_error_column),
		cmocka_unit_test(unknown_rate_is_said),
		cmocka_unit_test(few_samples_show_both_sides),
		cmocka_unit_test(filters_are_said),
		cmocka_unit_test(header_that_accounts_for_more_is_said),
		cmocka_unit_test(frames_without_a_name_are_said),
		cmocka_unit_test(cpu_profiles_have_their_units),
		cmocka_unit_test(lines_name_their_place),
		cmocka_unit_test(tree_indents_forks_only),
		cmocka_unit_test(inverted_tree_starts_where_it_allocates),
		cmocka_unit_test(deep_tree_is_walked_not_recursed),
		cmocka_unit_test(comb_is_drawn_to_a_depth),
		cmocka_unit_test(peek_shows_callers_and_callees),
		cmocka_unit_test(recursion_counts_once),
		cmocka_unit_test(peek_refuses_what_it_cannot_find),
		cmocka_unit_test(traces_are_whole_stacks),
		cmocka_unit_test(diff_puts_noise_last),
		cmocka_unit_test(diff_tells_what_would_suffice),
		cmocka_unit_test(advice_suffices),
		cmocka_unit_test(unchanged_profiles_say_so),
		cmocka_unit_test(diff_without_base_is_refused),
		cmocka_unit_test(every_view_shows_a_diff),
		cmocka_unit_test(unchanged_branches_are_summed_up),
		cmocka_unit_test(names_cannot_act_on_the_terminal),
		cmocka_unit_test(colour_is_asked_for_and_ends),
		cmocka_unit_test(names_fit_the_terminal),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
