/* Schedule, metrics' text, and which process it is. */
#include "../base/test.h"

#include <math.h>

#include "record/feed.h"
#include "record/metrics_text.h"
#include "record/schedule.h"

static void test_places(void **state)
{
	(void)state;
	for (int64_t now = 1795293223000; now < 1795293223000 + 40000; now += 777)
		for (uint64_t hash = 0; hash < 100; hash += 7) {
			int64_t wait = schedule_first(hash * 0x9e3779b97f4a7c15u, 15000, now);
			assert_true(wait >= 0 && wait < 15000);
			assert_true((uint64_t)((now + wait) % 15000) == hash * 0x9e3779b97f4a7c15u % 15000);
		}
	assert_int_equal(schedule_first(5, 10, 5), 0);
	assert_int_equal(schedule_first(5, 10, 6), 9);
}

/* A thousand targets: in no second much more than their share. */
static void test_spread(void **state)
{
	(void)state;
	unsigned seconds[15] = { 0 };
	for (uint64_t i = 0; i < 1000; i++)
		seconds[schedule_first(hash_u64(i), 15000, 1795293223123) / 1000]++;
	for (int i = 0; i < 15; i++)
		assert_true(seconds[i] > 35 && seconds[i] < 105);
}

static void test_turns(void **state)
{
	(void)state;
	uint64_t missed;
	assert_int_equal(schedule_next(1000, 100, 1000, &missed), 1100);
	assert_int_equal(missed, 0);
	assert_int_equal(schedule_next(1000, 100, 1099, &missed), 1100);
	assert_int_equal(missed, 0);
	assert_int_equal(schedule_next(1000, 100, 1100, &missed), 1200);
	assert_int_equal(missed, 1);
	assert_int_equal(schedule_next(1000, 100, 1999, &missed), 2000);
	assert_int_equal(missed, 9);
	int64_t due = 7;
	for (int i = 0; i < 1000; i++)
		due = schedule_next(due, 15000, due + i % 9000, &missed);
	assert_true(due == 7 + 1000 * 15000LL);
}

static double gauge(const struct metrics_text *m, const char *name)
{
	for (size_t i = 0; i < m->n; i++)
		if (strcmp(m->gauges[i].name, name) == 0)
			return m->gauges[i].value;
	return NAN;
}

static int read_text(const char *text, struct metrics_text *m)
{
	struct error err;
	memset(m, 0, sizeof *m);
	return metrics_text_read(text, strlen(text), m, &err);
}

static void test_metrics(void **state)
{
	(void)state;
	struct metrics_text m;
	assert_int_equal(read_text("# HELP a b\n# TYPE process_resident_memory_bytes gauge\nprocess_resident_memory_bytes 1.5e+06\n"
	                           "jemalloc_allocated_bytes\t77 1700000000000\r\n  jemalloc_active_bytes{} 78\n"
	                           "jemalloc_mapped_bytes{arena=\"0\"} 1\njemalloc_mapped_bytes 9\njemalloc_mapped_bytes 10\n"
	                           "other{a=\"}\\\"\",b=\"\"} 1\nprocess_start_time_seconds 1700000000.25\njemalloc_retained_bytes NaN\n"
	                           "jemalloc_resident_bytes +Inf\njemalloc_metadata_bytes 0x10\nunterminated{a=\"b 1\nheapgauge_profile_inuse_bytes 5", &m),
	                 E_OK);
	assert_true(gauge(&m, "rss") == 1.5e6 && gauge(&m, "jemalloc_allocated") == 77 && gauge(&m, "jemalloc_active") == 78);
	assert_true(gauge(&m, "jemalloc_mapped") == 9 && gauge(&m, "profile_inuse") == 5);
	assert_true(isnan(gauge(&m, "jemalloc_retained")) && isnan(gauge(&m, "jemalloc_resident")) && isnan(gauge(&m, "jemalloc_metadata")));
	assert_int_equal(m.n, 5);
	assert_true(m.started_ms == 1700000000250);
	assert_int_equal(read_text("", &m), E_OK);
	assert_int_equal(m.n, 0);
	assert_int_equal(read_text("<html>\n<body>hello</body>\n", &m), E_FORMAT);
	assert_int_equal(read_text("{\"a\": 1}\n", &m), E_FORMAT);
	assert_int_equal(read_text("process_start_time_seconds -5\n", &m), E_OK);
	assert_int_equal(m.started_ms, 0);
}

static void test_processes(void **state)
{
	(void)state;
	static const struct {
		struct feed_process last, now;
		bool same;
	} cases[] = {
		{ { 1, 1000000, "ab" }, { 1, 1000000, "ab" }, true },
		{ { 1, 1000000, "ab" }, { 1, 1000000, "cd" }, false },      /* another build */
		{ { 1, 1000000, "ab" }, { 1, 1001500, "ab" }, true },       /* clocks */
		{ { 1, 1000000, "ab" }, { 1, 1060000, "ab" }, false },      /* a minute later */
		{ { 1, 0, "" }, { 2, 0, "" }, false },                      /* another layout */
		{ { 1, 1000000, "" }, { 2, 1000000, "" }, true },           /* the layout is only seen differently */
		{ { 1, 1000000, "" }, { 2, 1001000, "" }, false },          /* crashed and was started within the clocks' error */
		{ { 1, 1000000, "ab" }, { 0, 0, "" }, true },               /* nothing is known */
		{ { 0, 0, "" }, { 1, 1000000, "ab" }, true },
		{ { 1, 0, "" }, { 1, 1000000, "ab" }, true },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct feed f = { .known = true, .last = cases[i].last };
		assert_int_equal(feed_same(&f, &cases[i].now), cases[i].same);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places), cmocka_unit_test(test_spread), cmocka_unit_test(test_turns), cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_processes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
