/*
 * When the watch takes a snapshot: watch.c as it is, in a world made of a clock, a process that uses memory as each test wants it, and dumps
 * that take as long as it wants.
 */
#include "../base/test.h"

#include <math.h>

#include "agent/dump.h"
#include "agent/snapshots.h"
#include "agent/watch.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define MOST 4096

static struct {
	int64_t now_ms, began_ms;
	uint64_t (*rss)(int64_t ms);        /* at a time since the beginning; used of the limit, too, but for others_bytes */
	uint64_t limit, machine, others_bytes;
	bool has_pressure;
	double stalled;                     /* part of the time, from now on */
	double stalled_us;
	uint64_t allocated;
	int64_t dump_ms;
	int dump_rc, ready_rc;
	bool busy, locked;
	bool with_error_text;
	/* What happened: */
	int64_t taken_ms[MOST];
	double taken_at[MOST];              /* used part of the limit when it began */
	unsigned n_taken, n_tried, n_full, n_rss, n_begun, n_open, refreshes;
} world;

static uint64_t rss_now(void)
{
	return world.rss ? world.rss(world.now_ms - world.began_ms) : 10 * MIB;
}

static void pass(int64_t ms)
{
	world.now_ms += ms;
	world.stalled_us += world.stalled * (double)ms * 1000;
}

/* --- what watch.c calls ------------------------------------------------------- */

int64_t agent_now_ms(void)
{
	return world.now_ms;
}

void __wrap_usage_read(struct usage *ret);
void __wrap_usage_read(struct usage *ret)
{
	world.n_full++;
	*ret = (struct usage){ .rss_bytes = rss_now(), .has_pressure = world.has_pressure, .stalled_us = (uint64_t)world.stalled_us };
	if (world.machine)
		ret->limits[ret->n_limits++] = (struct usage_limit){ USAGE_MACHINE, world.machine, world.machine / 2 + rss_now() };
	if (world.limit)
		ret->limits[ret->n_limits++] = (struct usage_limit){ USAGE_CGROUP, world.limit, world.others_bytes + rss_now() };
}

uint64_t __wrap_usage_rss_read(struct usage_rss *r);
uint64_t __wrap_usage_rss_read(struct usage_rss *r)
{
	assert_true(r->fd >= 0);
	world.n_rss++;
	return rss_now();
}

static const struct jemalloc some_jemalloc;

int jemalloc_find(const struct jemalloc **ret_jemalloc)
{
	*ret_jemalloc = &some_jemalloc;
	return world.ready_rc == HG_NO_JEMALLOC ? HG_NO_JEMALLOC : HG_OK;
}

int jemalloc_ready(const struct jemalloc **ret_jemalloc)
{
	*ret_jemalloc = &some_jemalloc;
	if (world.ready_rc)
		world.n_tried++;
	return world.ready_rc;
}

void jemalloc_refresh(const struct jemalloc *j)
{
	assert_ptr_equal(j, &some_jemalloc);
	world.refreshes++;
}

uint64_t jemalloc_number(const struct jemalloc *j, const char *name)
{
	assert_ptr_equal(j, &some_jemalloc);
	assert_string_equal(name, "stats.allocated");
	return world.allocated;
}

const char *jemalloc_advice(int code)
{
	return code == HG_INACTIVE ? "advice for inactive" : "advice";
}

int dump_lock_within(unsigned ms)
{
	(void)ms;
	if (world.busy)
		return HG_BUSY;
	assert_false(world.locked);
	world.locked = true;
	return HG_OK;
}

void dump_unlock(void)
{
	assert_true(world.locked);
	world.locked = false;
}

int dump_to_fd(void *fd, const void *bytes, size_t n, struct error *err)
{
	(void)fd, (void)bytes, (void)n, (void)err;
	return E_OK;
}

int dump_pprof(const struct jemalloc *j, const struct dump_options *o, dump_sink *sink, void *context,
               struct dump_figures *figures, struct error *err)
{
	assert_ptr_equal(j, &some_jemalloc);
	assert_string_equal(o->spool_dir, "/folder");
	assert_ptr_equal(sink, dump_to_fd);
	assert_int_equal(*(int *)context, 7);
	assert_null(figures);
	world.n_tried++;
	double used = world.limit ? (double)(world.others_bytes + rss_now()) / (double)world.limit : 0;
	int64_t began_ms = world.now_ms;
	pass(world.dump_ms);
	if (world.dump_rc) {
		if (world.with_error_text)
			error_set(err, E_IO, "the disk is full");
		return world.dump_rc;
	}
	assert_true(world.n_taken < MOST);
	world.taken_ms[world.n_taken] = began_ms - world.began_ms;
	world.taken_at[world.n_taken++] = used;
	return HG_OK;
}

int snapshots_open(struct snapshots *s, const char *path, unsigned count, struct error *err)
{
	(void)err;
	*s = (struct snapshots){ .count = count, .unnamed = true };
	snprintf(s->folder, sizeof s->folder, "%s", path);
	return E_OK;
}

int snapshots_begin(struct snapshots *s, struct error *err)
{
	(void)s, (void)err;
	world.n_begun++;
	world.n_open++;
	return 7;
}

int snapshots_commit(struct snapshots *s, int fd, struct error *err)
{
	(void)err;
	assert_int_equal(fd, 7);
	snprintf(s->last, sizeof s->last, "/folder/%u", world.n_taken);
	world.n_open--;
	return E_OK;
}

void snapshots_abort(struct snapshots *s, int fd)
{
	(void)s;
	assert_int_equal(fd, 7);
	world.n_open--;
}

/* --- driving it ----------------------------------------------------------------- */

static struct agent_options options;
static struct watch *w;

static int begin(void **state)
{
	(void)state;
	memset(&world, 0, sizeof world);
	/* A clock that begins anywhere. */
	world.now_ms = world.began_ms = 86400000;
	world.dump_ms = 10;
	memset(&options, 0, sizeof options);
	options = (struct agent_options){ .snapshot_dir = "/folder", .snapshot_count = 5, .snapshot_interval_s = 10,
		                          .watch_limit_percent = 80 };
	return 0;
}

static void start(void)
{
	struct error err;
	assert_int_equal(watch_new(&options, &w, &err), E_OK);
}

static int end(void **state)
{
	(void)state;
	assert_false(world.locked);
	assert_int_equal(world.n_open, 0);
	watch_free(w);
	w = NULL;
	return 0;
}

static void run(int64_t ms)
{
	int64_t until = world.now_ms + ms;
	while (world.now_ms < until) {
		unsigned wait = watch_tick(w);
		assert_in_range(wait, 1, 1000);
		pass(wait);
	}
}

static struct watch_counters counters(void)
{
	struct watch_counters c;
	watch_counters(w, &c);
	return c;
}

/* --- the limit --------------------------------------------------------------------- */

static double speed;            /* bytes in a millisecond */
static uint64_t from_bytes;

static uint64_t leak(int64_t ms)
{
	return from_bytes + (uint64_t)(speed * (double)ms);
}

/* Leaks until the limit kills it. */
static void leak_to_the_end(uint64_t limit, double bytes_in_ms, int64_t dump_ms)
{
	world.limit = limit;
	world.rss = leak;
	world.dump_ms = dump_ms;
	speed = bytes_in_ms;
	from_bytes = 5 * MIB;
	start();
	while (world.others_bytes + rss_now() < limit)
		pass(watch_tick(w));
	/* A dump that was on its way when it died is none. */
	int64_t died_ms = (int64_t)((double)(limit - from_bytes - world.others_bytes) / speed);
	while (world.n_taken > 0 && world.taken_ms[world.n_taken - 1] + dump_ms > died_ms)
		world.n_taken--;
}

static void test_slow_leak(void **state)
{
	(void)state;
	leak_to_the_end(GIB, 20e6 / 1000, 20);
	assert_true(world.n_taken >= 4 && world.n_taken <= 8);
	assert_true(world.taken_at[0] >= 0.8 && world.taken_at[0] < 0.803);
	/* Each time half of what was left is gone, whatever the interval says. */
	for (unsigned i = 1; i + 1 < world.n_taken; i++) {
		double wanted = (1 + world.taken_at[i - 1]) / 2;
		assert_true(world.taken_at[i] >= wanted && world.taken_at[i] < wanted + 0.003);
	}
	assert_true(world.taken_at[world.n_taken - 1] > 0.98);
	assert_string_equal(counters().reason, "limit");
}

static void test_fast_leaks(void **state)
{
	static const struct { uint64_t limit; double speed; int64_t dump_ms; } cases[] = {
		{ 128 * MIB, 500e3, 10 }, { 512 * MIB, 500e3, 20 }, { GIB, 500e3, 50 }, { 4 * GIB, 2e6, 100 }, { 16 * GIB, 2e6, 500 },
		{ 64 * MIB, 200e3, 5 }, { GIB, 1e3, 1000 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		begin(NULL);
		leak_to_the_end(cases[i].limit, cases[i].speed, cases[i].dump_ms);
		if (world.n_taken == 0 || world.taken_at[world.n_taken - 1] < 0.85)
			fail_msg("case %zu: %u snapshots, the last at %.3f", i, world.n_taken,
			         world.n_taken ? world.taken_at[world.n_taken - 1] : 0);
		watch_free(w);
		w = NULL;
	}
}

/* A fuller limit far away, a tight one near: the near one says when to look. */
static void test_other_limits_do_not_hide_it(void **state)
{
	(void)state;
	world.machine = 32 * GIB;
	leak_to_the_end(128 * MIB, 200e3, 10);
	assert_true(world.n_taken > 0);
	assert_true(world.taken_at[world.n_taken - 1] > 0.9);
}

/* Others in the same cgroup fill it: seen once a second. */
static void test_others_fill_it(void **state)
{
	(void)state;
	world.limit = GIB;
	start();
	run(5000);
	assert_int_equal(world.n_taken, 0);
	world.others_bytes = 900 * MIB;
	run(1100);
	assert_int_equal(world.n_taken, 1);
}

static uint64_t level_bytes;

static uint64_t level(int64_t ms)
{
	(void)ms;
	return level_bytes;
}

static void hold(uint64_t bytes, int64_t ms)
{
	world.rss = level;
	level_bytes = bytes;
	run(ms);
}

static void test_rearming(void **state)
{
	(void)state;
	world.limit = 1000 * MIB;
	start();
	hold(799 * MIB, 20000);
	assert_int_equal(world.n_taken, 0);
	hold(801 * MIB, 60000);
	assert_int_equal(world.n_taken, 1);
	/* Up and down around it: once. */
	for (int i = 0; i < 20; i++) {
		hold(790 * MIB, 5000);
		hold(820 * MIB, 5000);
	}
	assert_int_equal(world.n_taken, 1);
	hold(902 * MIB, 60000);
	assert_int_equal(world.n_taken, 2);
	hold(940 * MIB, 60000);
	assert_int_equal(world.n_taken, 2);
	/* Well below it, and there again. */
	hold(740 * MIB, 5000);
	hold(801 * MIB, 60000);
	assert_int_equal(world.n_taken, 3);
	hold(995 * MIB, 60000);
	assert_int_equal(world.n_taken, 4);
	hold(999 * MIB, 60000);
	assert_int_equal(world.n_taken, 4);
	/* A limit that is raised. */
	world.limit = 2000 * MIB;
	hold(1400 * MIB, 20000);
	assert_int_equal(world.n_taken, 4);
	hold(1601 * MIB, 20000);
	assert_int_equal(world.n_taken, 5);
}

static void test_limit_off(void **state)
{
	(void)state;
	options.watch_limit_percent = 101;
	world.limit = 1000 * MIB;
	start();
	hold(999 * MIB, 60000);
	assert_int_equal(world.n_taken, 0);
	assert_int_equal(world.n_full, 60);
}

/* Ups and downs between a tenth and nearly all of it: the few that were saved, then one an interval. */
static uint64_t sawtooth(int64_t ms)
{
	return 100 * MIB + (uint64_t)((double)(ms % 1370) / 1370 * 890) * MIB;
}

static void test_urgency_is_no_flood(void **state)
{
	(void)state;
	world.limit = 1000 * MIB;
	world.rss = sawtooth;
	start();
	run(600000);
	assert_in_range(world.n_taken, 60, 8 + 60 + 1);
	/* The longer a dump takes, the less often. */
	end(NULL);
	begin(NULL);
	world.limit = 1000 * MIB;
	world.rss = sawtooth;
	world.dump_ms = 4000;
	start();
	run(600000);
	assert_in_range(world.n_taken, 10, 8 + 15 + 1);
}

/* --- resident memory ------------------------------------------------------------ */

static void test_rss(void **state)
{
	(void)state;
	options.watch_rss_bytes = 800 * MIB;
	start();
	hold(799 * MIB, 20000);
	assert_int_equal(world.n_taken, 0);
	hold(800 * MIB, 60000);
	assert_int_equal(world.n_taken, 1);
	assert_string_equal(counters().reason, "rss");
	hold(899 * MIB, 60000);
	assert_int_equal(world.n_taken, 1);
	hold(900 * MIB, 60000);
	assert_int_equal(world.n_taken, 2);
	/* Several eighths at once are one. */
	hold(1950 * MIB, 60000);
	assert_int_equal(world.n_taken, 3);
	hold(1999 * MIB, 60000);
	assert_int_equal(world.n_taken, 3);
	hold(2000 * MIB, 60000);
	assert_int_equal(world.n_taken, 4);
	hold(760 * MIB, 5000);
	hold(801 * MIB, 60000);
	assert_int_equal(world.n_taken, 4);
	hold(740 * MIB, 5000);
	hold(801 * MIB, 60000);
	assert_int_equal(world.n_taken, 5);
}

/* The threshold of one byte, and sizes no machine has. */
static void test_rss_of_any_size(void **state)
{
	(void)state;
	options.watch_rss_bytes = 1;
	start();
	hold(100 * 1024 * GIB, 60000);
	assert_int_equal(world.n_taken, 1);
	hold(100 * 1024 * GIB + 2 * MIB, 60000);
	assert_int_equal(world.n_taken, 2);
	end(NULL);
	begin(NULL);
	options.watch_rss_bytes = UINT64_MAX;
	start();
	hold(GIB, 60000);
	assert_int_equal(world.n_taken, 0);
}

/* What fires within the interval isn't forgotten. */
static void test_interval(void **state)
{
	(void)state;
	options.watch_rss_bytes = 800 * MIB;
	start();
	hold(801 * MIB, 1000);
	assert_int_equal(world.n_taken, 1);
	hold(1200 * MIB, 5000);
	assert_int_equal(world.n_taken, 1);
	hold(1200 * MIB, 5000);
	assert_int_equal(world.n_taken, 2);
	assert_true(world.taken_ms[1] - world.taken_ms[0] >= 10000);
	assert_true(world.taken_ms[1] - world.taken_ms[0] < 10100);
	/* The limit doesn't wait for it. */
	world.limit = 2000 * MIB;
	hold(1700 * MIB, 1000);
	assert_int_equal(world.n_taken, 3);
	assert_true(world.taken_ms[2] - world.taken_ms[1] < 2100);
}

static void test_long_dumps_are_rare(void **state)
{
	(void)state;
	options.watch_rss_bytes = 100 * MIB;
	world.dump_ms = 3000;
	world.rss = leak;
	from_bytes = 0;
	speed = 100e3;
	start();
	run(600000);
	assert_in_range(world.n_taken, 18, 21);
	for (unsigned i = 1; i < world.n_taken; i++)
		assert_true(world.taken_ms[i] - world.taken_ms[i - 1] >= 30000);
}

/* While one trigger waits for its turn, another's threshold is looked out for as before. */
static uint64_t plateau_then_leak(int64_t ms)
{
	return ms < 3000 ? 250 * MIB : 250 * MIB + (uint64_t)(500e3 * (double)(ms - 3000));
}

static void test_waiting_does_not_blind(void **state)
{
	(void)state;
	options.watch_rss_bytes = 100 * MIB;
	world.limit = 512 * MIB;
	world.rss = plateau_then_leak;
	start();
	for (world.dump_ms = 10; rss_now() < world.limit;)
		pass(watch_tick(w));
	assert_true(world.n_taken >= 3);
	assert_true(world.taken_at[1] >= 0.8 && world.taken_at[1] < 0.85);
}

/* --- growth --------------------------------------------------------------------- */

static void test_growth(void **state)
{
	(void)state;
	options.watch_growth_bytes = 100 * MIB;
	world.allocated = 500 * MIB;
	start();
	run(5000);
	assert_int_equal(world.n_taken, 0);
	world.allocated = 599 * MIB;
	run(5000);
	assert_int_equal(world.n_taken, 0);
	world.allocated = 600 * MIB;
	run(60000);
	assert_int_equal(world.n_taken, 1);
	assert_string_equal(counters().reason, "growth");
	/* A new low counts anew. */
	world.allocated = 100 * MIB;
	run(20000);
	world.allocated = 199 * MIB;
	run(20000);
	assert_int_equal(world.n_taken, 1);
	world.allocated = 250 * MIB;
	run(60000);
	assert_int_equal(world.n_taken, 2);
	world.allocated = 340 * MIB;
	run(60000);
	assert_int_equal(world.n_taken, 2);
	/* jemalloc's statistics are asked once a second at most. */
	assert_true(world.refreshes <= (world.now_ms - world.began_ms) / 1000 + 4);
}

static void test_growth_without_jemalloc(void **state)
{
	(void)state;
	options.watch_growth_bytes = 1;
	world.ready_rc = HG_NO_JEMALLOC;
	world.allocated = GIB;
	start();
	run(60000);
	assert_int_equal(world.n_tried, 0);
}

/* --- pressure ------------------------------------------------------------------- */

static void test_pressure(void **state)
{
	(void)state;
	options.watch_psi_percent = 20;
	world.has_pressure = true;
	world.stalled_us = 5e9;
	start();
	run(20000);
	assert_int_equal(world.n_taken, 0);
	world.stalled = 0.19;
	run(20000);
	assert_int_equal(world.n_taken, 0);
	/* Once for each time it gets high. */
	world.stalled = 0.5;
	run(60000);
	assert_int_equal(world.n_taken, 1);
	assert_string_equal(counters().reason, "pressure");
	world.stalled = 0;
	run(20000);
	world.stalled = 0.5;
	run(60000);
	assert_int_equal(world.n_taken, 2);
	/* A counter that begins anew is no pressure. */
	world.stalled = 0;
	run(20000);
	world.stalled_us = 0;
	run(20000);
	assert_int_equal(world.n_taken, 2);
}

static void test_pressure_waits_its_turn(void **state)
{
	(void)state;
	options.watch_psi_percent = 20;
	options.watch_rss_bytes = 100 * MIB;
	options.snapshot_interval_s = 30;
	world.has_pressure = true;
	start();
	hold(101 * MIB, 3000);
	assert_int_equal(world.n_taken, 1);
	world.stalled = 0.9;
	run(26000);
	assert_int_equal(world.n_taken, 1);
	run(2000);
	assert_int_equal(world.n_taken, 2);
	/* Pressure that has gone again before its turn needs no picture. */
	world.stalled = 0;
	run(3000);
	world.stalled = 0.9;
	run(2500);
	world.stalled = 0;
	run(60000);
	assert_int_equal(world.n_taken, 2);
}

static void test_no_pressure_to_be_read(void **state)
{
	(void)state;
	options.watch_psi_percent = 1;
	world.stalled = 1;
	start();
	run(20000);
	assert_int_equal(world.n_taken, 0);
}

/* --- failures ------------------------------------------------------------------- */

static void test_failures_are_counted_and_rare(void **state)
{
	(void)state;
	world.limit = 1000 * MIB;
	world.dump_rc = HG_INACTIVE;
	start();
	hold(900 * MIB, 60000);
	assert_in_range(world.n_tried, 5, 7);
	assert_in_range(world.n_full, 60, 70);
	assert_int_equal(counters().failed, world.n_tried);
	assert_int_equal(counters().snapshots, 0);
	assert_string_equal(counters().last_error, "advice for inactive");
	assert_string_equal(counters().last, "");
	/* Whose own words say more. */
	world.dump_rc = HG_IO;
	world.with_error_text = true;
	hold(900 * MIB, 20000);
	assert_string_equal(counters().last_error, "the disk is full");
	/* It was due all the time: as soon as it can be, it is. */
	world.dump_rc = HG_OK;
	hold(900 * MIB, 11000);
	assert_int_equal(world.n_taken, 1);
	assert_string_equal(counters().last_error, "");
	assert_string_equal(counters().last, "/folder/1");
	hold(900 * MIB, 60000);
	assert_int_equal(world.n_taken, 1);
}

static void test_profiling_off(void **state)
{
	(void)state;
	world.limit = 1000 * MIB;
	world.ready_rc = HG_PROF_OFF;
	start();
	hold(900 * MIB, 60000);
	assert_in_range(world.n_tried, 5, 7);
	assert_int_equal(world.n_begun, 0);
	assert_int_equal(counters().failed, world.n_tried);
	assert_string_equal(counters().last_error, "advice");
}

/* Another dump is on its way: not counted, and tried again at once when it is done. */
static void test_busy(void **state)
{
	(void)state;
	world.limit = 1000 * MIB;
	world.busy = true;
	start();
	hold(900 * MIB, 3300);
	assert_int_equal(world.n_tried, 0);
	assert_int_equal(counters().failed, 0);
	world.busy = false;
	hold(900 * MIB, 50);
	assert_int_equal(world.n_taken, 1);
}

/* --- how often it looks ------------------------------------------------------------ */

static void test_idle_looks_are_rare(void **state)
{
	(void)state;
	world.limit = 16 * GIB;
	start();
	hold(GIB, 100000);
	assert_in_range(world.n_full, 99, 101);
	assert_int_equal(world.n_rss, 0);
}

/* Where the limit is near, the cheap look is taken more often, the other isn't. */
static void test_looks_near_the_limit(void **state)
{
	(void)state;
	world.limit = 512 * MIB;
	start();
	hold(300 * MIB, 100000);
	assert_in_range(world.n_full, 90, 101);
	assert_in_range(world.n_rss, 800, 1000);
	hold(409 * MIB, 100000);
	assert_in_range(world.n_full, 180, 202);
	assert_in_range(world.n_rss, 1600, 2000);
	assert_int_equal(world.n_taken, 0);
	/* Not so calm: the last megabytes at 10 MB/s. */
	unsigned before = world.n_rss;
	world.began_ms = world.now_ms;
	world.rss = leak;
	from_bytes = 399 * MIB;
	speed = 10e3;
	run(1300);
	assert_int_equal(world.n_taken, 1);
	assert_in_range(world.n_rss - before, 35, 60);
	assert_true(world.taken_at[0] < 0.801);
}

/* It shrinks and grows again between two looks at everything. */
static uint64_t swing(int64_t ms)
{
	return ms % 200 < 100 ? 100 * MIB : 380 * MIB;
}

static void test_swings(void **state)
{
	(void)state;
	world.limit = 512 * MIB;
	world.rss = swing;
	start();
	run(100000);
	assert_int_equal(world.n_taken, 0);
	assert_true(world.n_full <= 200);
}

static void *stop_soon(void *unused)
{
	(void)unused;
	usleep(30000);
	watch_stop(w);
	return NULL;
}

static void test_thread_ends_when_told(void **state)
{
	pthread_t thread;
	(void)state;
	start();
	assert_int_equal(pthread_create(&thread, NULL, stop_soon, NULL), 0);
	assert_null(watch_main(w));
	pthread_join(thread, NULL);
	assert_int_equal(world.n_full, 1);
}

#define EACH(test) cmocka_unit_test_setup_teardown(test, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EACH(test_slow_leak), EACH(test_fast_leaks), EACH(test_other_limits_do_not_hide_it), EACH(test_others_fill_it),
		EACH(test_rearming), EACH(test_limit_off), EACH(test_urgency_is_no_flood), EACH(test_rss), EACH(test_rss_of_any_size),
		EACH(test_interval), EACH(test_long_dumps_are_rare), EACH(test_waiting_does_not_blind), EACH(test_growth),
		EACH(test_growth_without_jemalloc), EACH(test_pressure), EACH(test_pressure_waits_its_turn),
		EACH(test_no_pressure_to_be_read), EACH(test_failures_are_counted_and_rare), EACH(test_profiling_off), EACH(test_busy),
		EACH(test_idle_looks_are_rare), EACH(test_looks_near_the_limit), EACH(test_swings), EACH(test_thread_ends_when_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
