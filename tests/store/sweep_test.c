/* Stacks that are of no use any more go, and nothing else does: not while others write, and not what comes back. */
#include <pthread.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "random_profile.h"
#include "store/store.h"
#include "store_file.h"

#define HOUR 3600000LL
#define DAY (24 * HOUR)
#define START (20370 * DAY)

static char path[64];

static struct store *open_store(int64_t days_ms)
{
	struct error err = { 0 };
	struct store *s = NULL;
	struct store_options o = { .retention_ms = { 3 * HOUR, 4 * HOUR, 26 * HOUR, days_ms }, .chunk_profiles = 6 };
	if (store_open(path, &o, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static uint32_t add_series(struct store *s, const char *instance)
{
	struct error err = { 0 };
	uint32_t series = 0;
	if (store_add_series(s, &(struct store_identity){ &(struct store_label){ "instance", instance }, 1, 1, START, "ab" }, &series, &err))
		fail_msg("%s", err.text);
	return series;
}

/* A program that makes its functions as it goes: on each day others, of which n from the first on, under a main that stays, in a library and threads of that day. */
static struct profile *profile_of_day(unsigned day, unsigned first, unsigned n)
{
	struct profile *p = profile_new(0);
	char text[64];
	profile_add_heap_types(p, true);
	for (unsigned i = 0; i < 2; i++) {
		snprintf(text, sizeof text, i ? "/tmp/made-%u.so" : "/usr/bin/server", day);
		struct mapping m = { .start = 0x560000000000 + i * 0x10000000, .executable = true, .file = profile_cstring(p, text) };
		m.limit = m.start + 0x8000000;
		profile_add_mapping(p, &m);
	}
	uint32_t source = profile_add_source(p, &(struct source){ .rate = 1, .process = 1, .header_objects = -1, .header_bytes = -1 });
	snprintf(text, sizeof text, "of day %u", day);
	profile_add_comment(p, text);
	for (unsigned i = first; i < first + n; i++) {
		uint32_t frames[3];
		for (unsigned k = 0; k < 3; k++) {
			frames[k] = profile_intern_location(p, k == 0, p->mappings[k == 0].start + (k ? 0x1000 * k : i * 16));
			snprintf(text, sizeof text, k ? "function_%u" : "made_%u_%u", k ? k : day, i);
			struct function f = { .name = profile_cstring(p, text) };
			struct line line = { profile_intern_function(p, &f), 0, (int64_t)day };
			if (k != 2)
				profile_set_lines(p, frames[k], &line, 1);
		}
		snprintf(text, sizeof text, "thread %u of %u", i % 7, day);
		uint32_t labels = profile_intern_heap_labels(p, profile_cstring(p, text), i % 3 ? 16u << i % 4 : 0);
		int64_t values[4] = { 10 + i, 1000 + i, 1 + i % 5, 64 + i };
		profile_add_sample(p, profile_intern_stack(p, frames, 3), labels, source, values);
	}
	return profile_finish(p, NULL) == 0 ? p : NULL;
}

static void append(struct store *s, uint32_t series, int64_t time, unsigned day, unsigned first, unsigned n)
{
	struct error err = { 0 };
	struct profile *p = profile_of_day(day, first, n);
	if (store_append(s, &(struct store_profile){ series, time, p }, 1, &err))
		fail_msg("%s", err.text);
	profile_free(p);
}

static void assert_there(struct store *s, uint32_t series, int64_t time, unsigned day, unsigned first, unsigned n)
{
	struct error err = { 0 };
	struct profile *p = profile_of_day(day, first, n), *q = NULL;
	if (store_read(s, series, time, NULL, &q, &err))
		fail_msg("%s", err.text);
	assert_true(same_samples(p, q));
	assert_string_equal(profile_text(p, p->comments[0]), profile_text(q, q->comments[0]));
	profile_free(p);
	profile_free(q);
}

static void maintain(struct store *s, int64_t now)
{
	struct error err = { 0 };
	bool more = true;
	while (more)
		if (store_maintain(s, now, &more, &err))
			fail_msg("%s", err.text);
}

static size_t findings_of(struct store *s)
{
	struct buf findings;
	struct error err = { 0 };
	uint64_t n;
	buf_init(&findings, 1 << 20);
	if (store_check(s, &findings, &n, &err))
		fail_msg("%s", err.text);
	size_t length = findings.len;
	buf_finish(&findings);
	return length;
}

static int64_t number(const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *q;
	int64_t n = -1;
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 10000);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
	int rc = sqlite3_step(q);
	assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
	if (rc == SQLITE_ROW)
		n = sqlite3_column_int64(q, 0);
	sqlite3_finalize(q);
	sqlite3_close(db);
	return n;
}

/* 40,000 stacks in 40 days; each is there for the three days or so that buckets of it are, and no longer. */
static void a_program_with_new_stacks_each_day_takes_no_more_room(void **state)
{
	(void)state;
	enum { DAYS = 40, STACKS = 1000, TABLES = 5 };
	static const char *const tables[TABLES] = { "stacks", "frames", "labels", "strings", "builds" };
	int64_t counts[TABLES] = { 0 }, pages = 0;
	remove_store(path);
	struct store *s = open_store(48 * HOUR);
	uint32_t series = add_series(s, "a:1"), other = add_series(s, "b:1");
	for (unsigned day = 0; day < DAYS; day++) {
		/* Some are always there, and are counted with rows that are in no profile. */
		append(s, other, START + day * DAY, 0, 0, 10);
		for (int hour = 0; hour < 24; hour += 4)
			append(s, series, START + day * DAY + hour * HOUR, day, 0, STACKS);
		maintain(s, START + day * DAY + 23 * HOUR);
		assert_there(s, series, START + day * DAY + 20 * HOUR, day, 0, STACKS);
		assert_there(s, other, START + day * DAY, 0, 0, 10);
		if (day % 10 == 9) {
			assert_int_equal(findings_of(s), 0);
			for (int i = 0; i < TABLES; i++) {
				char sql[64];
				snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", tables[i]);
				int64_t n = number(sql);
				if (day > 20 && n > counts[i])
					fail_msg("%s: %lld after %u days, and %lld before", tables[i], (long long)n, day, (long long)counts[i]);
				counts[i] = n;
			}
			int64_t now = number("PRAGMA page_count");
			if (day > 20 && now > pages + pages / 10)
				fail_msg("%lld pages after %u days, and %lld before", (long long)now, day, (long long)pages);
			pages = now;
			store_close(s);
			s = open_store(48 * HOUR);
		}
	}
	assert_in_range(counts[0], STACKS, 5 * STACKS);
	assert_in_range(counts[2], 7, 5 * 4 * 7 * 5);
	assert_int_equal(number("SELECT count(*) FROM kept WHERE id = 0"), 0);
	store_close(s);
}

struct reading {
	struct store *s;
	uint32_t series;
	atomic_bool stop;
	int failed, n;
};

static void *read_all(void *argument)
{
	struct reading *r = argument;
	while (!atomic_load(&r->stop) && !r->failed) {
		struct profile *p = NULL;
		struct error err = { 0 };
		r->failed = store_merge(r->s, &(struct store_range){ &r->series, 1, 0, START + 100 * DAY }, STORE_AVERAGE, NULL, &p, &err);
		if (r->failed)
			fprintf(stderr, "%s\n", err.text);
		r->n++;
		profile_free(p);
	}
	return NULL;
}

/*
 * Stacks that nobody has any more come back at each step of the sweep, in a profile of today: those that would go late, so that they are found in
 * the store. late: also those that would go later than all of these, in a profile of their own day; that keeps all that are left of that day.
 */
static void come_back(bool with_late)
{
	enum { STACKS = 25000, FEW = 10, MAX = 400 };
	int64_t now = START + 10 * DAY;
	struct error err = { 0 };
	remove_store(path);
	struct store *s = open_store(with_late ? 731 * DAY : 48 * HOUR);
	uint32_t series = add_series(s, "a:1"), still = add_series(s, "b:1"), late = add_series(s, "c:1");
	append(s, series, START, 0, 0, STACKS);
	if (with_late) {
		store_close(s);
		number("DELETE FROM open");
		s = open_store(731 * DAY);
	}
	append(s, still, now - HOUR, 9, 0, 50);
	struct reading r = { .s = s, .series = still };
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, read_all, &r), 0);
	bool more = true;
	unsigned n = 0;
	for (; more && n < MAX; n++) {
		/* Once it has begun it goes on by any clock: by this one nothing else is to be done for what comes. */
		bool begun = n > 0 || number("SELECT count(*) FROM kept WHERE id = 0");
		if (store_maintain(s, begun ? START + 3 * HOUR : now, &more, &err))
			fail_msg("%s", err.text);
		if (!begun) {
			n--;
			continue;
		}
		append(s, series, now + n, 0, with_late ? STACKS - FEW * (n + 1) : FEW * n, FEW);
		if (with_late)
			append(s, late, START + 3 * HOUR + n, 0, FEW * n, FEW);
	}
	atomic_store(&r.stop, true);
	pthread_join(thread, NULL);
	assert_in_range(n, 3, MAX - 1);
	assert_int_equal(r.failed, 0);
	assert_true(r.n > 0);
	assert_in_range(number("SELECT count(*) FROM stacks"), 50, with_late ? STACKS - 1 : 50 + MAX * FEW);
	assert_int_equal(findings_of(s), 0);
	assert_there(s, still, now, 9, 0, 50);
	for (unsigned k = 0; k < n; k++) {
		assert_there(s, series, now + k, 0, with_late ? STACKS - FEW * (k + 1) : FEW * k, FEW);
		if (with_late)
			assert_there(s, late, START + 3 * HOUR + k, 0, FEW * k, FEW);
	}
	store_close(s);
}

static void what_comes_back_during_a_sweep_stays(void **state)
{
	(void)state;
	come_back(false);
	come_back(true);
}

/* A sweep that was cut off goes on with the next, also where no row is left to drop. */
static void an_unfinished_sweep_is_made_again(void **state)
{
	(void)state;
	remove_store(path);
	struct store *s = open_store(48 * HOUR);
	uint32_t series = add_series(s, "a:1");
	append(s, series, START, 0, 0, 100);
	store_close(s);
	number("INSERT INTO strings(hash, text) VALUES(1, 'nobody has this')");
	number("INSERT INTO kept(id, seen) VALUES(0, 0)");
	s = open_store(48 * HOUR);
	maintain(s, START + HOUR);
	assert_int_equal(number("SELECT count(*) FROM strings WHERE hash = 1"), 0);
	assert_int_equal(number("SELECT count(*) FROM kept WHERE id = 0"), 0);
	assert_int_equal(number("SELECT count(*) FROM stacks"), 100);
	assert_there(s, series, START, 0, 0, 100);
	assert_int_equal(findings_of(s), 0);
	store_close(s);
}

static void a_check_finds_what_is_missing(void **state)
{
	(void)state;
	static const char *const damages[] = {
		"DELETE FROM rows WHERE id = (SELECT max(id) FROM rows)",
		"DELETE FROM rows WHERE id = (SELECT min(base) FROM rows)",
		"DELETE FROM stacks WHERE id = 3",
		"DELETE FROM frames WHERE id = 2",
		"DELETE FROM builds WHERE id = 2",
		"DELETE FROM labels WHERE id = (SELECT max(labels) FROM rows)",
		"DELETE FROM strings WHERE text = CAST('made_0_7' AS BLOB)",
		"DELETE FROM strings WHERE text = CAST('thread 3 of 0' AS BLOB)",
		"DELETE FROM strings WHERE text = CAST('of day 0' AS BLOB)",
	};
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		remove_store(path);
		struct store *s = open_store(48 * HOUR);
		append(s, add_series(s, "a:1"), START, 0, 0, 20);
		assert_int_equal(findings_of(s), 0);
		store_close(s);
		int64_t before = number("SELECT (SELECT count(*) FROM rows) + (SELECT count(*) FROM stacks) + (SELECT count(*) FROM frames) + "
		                        "(SELECT count(*) FROM builds) + (SELECT count(*) FROM labels) + (SELECT count(*) FROM strings)");
		number(damages[i]);
		assert_int_equal(before - 1, number("SELECT (SELECT count(*) FROM rows) + (SELECT count(*) FROM stacks) + (SELECT count(*) FROM frames) + "
		                                    "(SELECT count(*) FROM builds) + (SELECT count(*) FROM labels) + (SELECT count(*) FROM strings)"));
		s = open_store(48 * HOUR);
		if (findings_of(s) == 0)
			fail_msg("not found: %s", damages[i]);
		store_close(s);
	}
}

static int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/heapgauge-sweep-test.%ld", (long)getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	remove_store(path);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_with_new_stacks_each_day_takes_no_more_room),
		cmocka_unit_test(what_comes_back_during_a_sweep_stays),
		cmocka_unit_test(an_unfinished_sweep_is_made_again),
		cmocka_unit_test(a_check_finds_what_is_missing),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
