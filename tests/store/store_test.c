/* What goes in comes out: profiles, ranges, totals, gauges, names, against plain arithmetic over the same profiles in memory. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <unistd.h>

#include "reference.h"
#include "store/varint.h"
#include "store_file.h"

#define START 1760000000000
#define STEP 10000

static char path[64];

static struct store *open_store(bool read_only)
{
	struct error err = { 0 };
	struct store *s = NULL;
	if (store_open(path, &(struct store_options){ .read_only = read_only, .chunk_profiles = 7 }, &s, &err))
		fail_msg("%s", err.text);
	return s;
}

static uint32_t add_series(struct store *s, const char *instance, uint64_t process)
{
	struct store_label labels[] = { { "instance", instance }, { "job", "test" } };
	struct error err = { 0 };
	uint32_t series = 0;
	if (store_add_series(s, &(struct store_identity){ labels, 2, process, START - 1000, "abcdef" }, &series, &err))
		fail_msg("%s", err.text);
	return series;
}

static void append(struct store *s, uint32_t series, int64_t time, const struct profile *p)
{
	struct error err = { 0 };
	if (store_append(s, &(struct store_profile){ series, time, p }, 1, &err))
		fail_msg("%s", err.text);
}

static void assert_same_profile(const struct profile *p, const struct profile *q)
{
	assert_true(same_samples(p, q));
	assert_int_equal(q->n_sources, 1);
	const struct source *a = &p->sources[0], *b = &q->sources[0];
	assert_true(a->rate == b->rate && a->header_objects == b->header_objects && a->header_bytes == b->header_bytes);
	assert_true(a->time_nanos == b->time_nanos && a->process == b->process && a->pid == b->pid && a->raw_counts == b->raw_counts);
	assert_string_equal(profile_text(p, a->name), profile_text(q, b->name));
	assert_string_equal(profile_text(p, p->default_type), profile_text(q, q->default_type));
	assert_string_equal(profile_text(p, p->period_type), profile_text(q, q->period_type));
	assert_true(p->period == q->period && p->n_comments == q->n_comments);
	for (int m = 0; m < METRICS; m++)
		assert_int_equal(p->metric[m] >= 0, q->metric[m] >= 0);
}

/* Totals of a view and their intervals, by function. */
static void assert_same_view(struct profile *p, struct profile *q)
{
	struct view *v[2];
	struct view_totals t[2];
	struct profile *both[2] = { p, q };
	for (int i = 0; i < 2; i++) {
		assert_int_equal(view_new(both[i], &(struct view_options){ .by = BY_FUNCTION }, &v[i], NULL), 0);
		assert_int_equal(view_totals(v[i], SORT_FLAT, &t[i], NULL), 0);
	}
	struct interval a = amount_interval(&v[0]->total), b = amount_interval(&v[1]->total);
	assert_true(v[0]->total.now == v[1]->total.now);
	assert_true(fabs(a.low - b.low) <= 1e-9 * fabs(a.low) && fabs(a.high - b.high) <= 1e-9 * fabs(a.high));
	/* Frames that no sample has are entries, too, and not kept. */
	assert_true(t[0].n >= t[1].n);
	for (size_t i = 0; i < t[1].n; i++) {
		const struct amount *x = &t[0].entries[t[0].order[i]].flat, *y = &t[1].entries[t[1].order[i]].flat;
		assert_true(fabs(x->now - y->now) <= 1e-9 * fabs(x->now));
	}
	for (int i = 0; i < 2; i++) {
		view_totals_finish(&t[i]);
		view_free(v[i]);
	}
}

static struct process process_of(unsigned i)
{
	return (struct process){ .seed = 100 + i, .slide = i * 0x1000, .process = hash_u64(i) | 1, .stacks = 150, .with_alloc = i & 1,
		                 .with_names = i & 2, .odd = i & 4, .rate = i & 8 ? 0 : 524288 };
}

static void a_profile_read_back_is_the_one_appended(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 16; i++) {
		remove_store(path);
		struct store *s = open_store(false);
		struct process w = process_of(i);
		uint32_t series = add_series(s, "a:1", w.process);
		assert_int_equal(add_series(s, "a:1", w.process), series);
		for (unsigned k = 0; k < 10; k++) {
			struct profile *p = random_profile(&w, k, START + k * STEP);
			append(s, series, START + k * STEP, p);
			profile_free(p);
		}
		for (int reopened = 0; reopened < 3; reopened++) {
			for (unsigned k = 0; k < 10; k++) {
				struct profile *p = random_profile(&w, k, START + k * STEP), *q = NULL;
				struct error err = { 0 };
				if (store_read(s, series, START + k * STEP + 5, NULL, &q, &err))
					fail_msg("%s", err.text);
				assert_same_profile(p, q);
				if (!w.odd)
					assert_same_view(p, q);
				profile_free(p);
				profile_free(q);
			}
			store_close(s);
			s = open_store(reopened == 1);
		}
		store_close(s);
	}
}

static void fill(struct store *s, uint32_t series, const struct process *w, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		struct profile *p = random_profile(w, k, START + k * STEP);
		append(s, series, START + k * STEP, p);
		profile_free(p);
	}
}

static void assert_merges(struct store *s, uint32_t series, const struct process *w, unsigned from, unsigned to)
{
	struct reference r;
	reference_init(&r);
	for (unsigned k = from ? from - 1 : 0; k < to; k++) {
		struct profile *p = random_profile(w, k, START + k * STEP);
		reference_add(&r, p, k >= from);
		profile_free(p);
	}
	for (enum store_mode mode = STORE_LAST; mode <= STORE_MAX; mode++) {
		struct profile *p = NULL;
		struct error err = { 0 };
		struct store_range range = { &series, 1, START + from * STEP, START + (to - 1) * STEP + 1 };
		if (store_merge(s, &range, mode, NULL, &p, &err))
			fail_msg("%s", err.text);
		if (!reference_agrees(&r, p, mode))
			fail_msg("%s of %u to %u", store_mode_name(mode), from, to);
		assert_true(p->sources[0].rate == w->rate);
		profile_free(p);
	}
	reference_finish(&r);
}

static void a_range_says_what_its_profiles_say(void **state)
{
	(void)state;
	remove_store(path);
	struct store *s = open_store(false);
	for (unsigned i = 0; i < 4; i++) {
		struct process w = process_of(i);
		uint32_t series = add_series(s, i & 1 ? "a:1" : "b:2", w.process);
		fill(s, series, &w, 40);
		assert_merges(s, series, &w, 0, 40);
		assert_merges(s, series, &w, 3, 17);
		assert_merges(s, series, &w, 39, 40);
	}
	store_close(s);
}

static void totals_are_sums_of_profiles(void **state)
{
	(void)state;
	remove_store(path);
	struct store *s = open_store(false);
	struct process w = process_of(1);
	uint32_t series = add_series(s, "a:1", w.process);
	fill(s, series, &w, 40);
	struct store_range range = { &series, 1, START, START + 40 * STEP };
	struct store_point *each, *steps;
	size_t n, n_steps;
	assert_int_equal(store_totals(s, &range, 0, NULL, &each, &n, NULL), 0);
	assert_int_equal(store_totals(s, &range, 60000, NULL, &steps, &n_steps, NULL), 0);
	assert_int_equal(n, 40);
	size_t at = 0;
	double sum = 0, max = 0, last = 0;
	unsigned in = 0;
	for (unsigned k = 0; k < 40; k++) {
		struct profile *p = random_profile(&w, k, START + k * STEP);
		double total[METRICS] = { 0 };
		for (size_t i = 0; i < p->n_samples; i++)
			for (int m = 0; m < METRICS; m++)
				total[m] += (double)p->values[i * p->n_types + (size_t)p->metric[m]];
		for (int m = 0; m < METRICS; m++)
			assert_true(each[k].mean[m] == total[m] && each[k].max[m] == total[m] && each[k].last[m] == total[m]);
		assert_true(each[k].time_ms == START + k * STEP && each[k].n == 1 && each[k].series == series);
		profile_free(p);
		if (each[k].time_ms / 60000 * 60000 != steps[at].time_ms) {
			assert_true(steps[at].n == in && steps[at].max[INUSE_SPACE] == max && steps[at].last[INUSE_SPACE] == last);
			assert_true(fabs(steps[at].mean[INUSE_SPACE] - sum / in) < 1);
			at++;
			sum = max = in = 0;
		}
		last = total[INUSE_SPACE];
		sum += last;
		max = fmax(max, last);
		in++;
	}
	assert_int_equal(at + 1, n_steps);
	free(each);
	free(steps);
	store_close(s);
}

static void gauges_come_back(void **state)
{
	(void)state;
	remove_store(path);
	struct store *s = open_store(false);
	uint32_t series = add_series(s, "a:1", 0);
	for (int i = 0; i < 30; i++) {
		struct store_gauge g[] = { { "rss", 4096.0 * i }, { "ratio", i / 7.0 } };
		assert_int_equal(store_append_gauges(s, series, START + i * STEP, g, i % 2 ? 2 : 1, NULL), 0);
	}
	struct store_range range = { &series, 1, START, START + 20 * STEP };
	struct store_gauges g;
	assert_int_equal(store_read_gauges(s, &range, 0, NULL, &g, NULL), 0);
	assert_int_equal(g.n_names, 2);
	assert_int_equal(g.n_points, 30);
	for (size_t i = 0; i < g.n_points; i++) {
		bool rss = strcmp(g.names[g.points[i].name], "rss") == 0;
		int k = (int)((g.points[i].time_ms - START) / STEP);
		assert_true(g.points[i].mean == (rss ? 4096.0 * k : k / 7.0));
	}
	store_gauges_finish(&g);
	struct store_gauge late = { "rss", 1 };
	struct error err = { 0 };
	assert_int_equal(store_append_gauges(s, series, START, &late, 1, &err), E_USAGE);
	store_close(s);
}

static void series_are_found_by_labels(void **state)
{
	(void)state;
	remove_store(path);
	struct store *s = open_store(false);
	struct process w = process_of(0);
	uint32_t a = add_series(s, "a:1", 1), b = add_series(s, "b:2", 1), c = add_series(s, "b:2", 2);
	assert_true(a != b && b != c);
	fill(s, a, &w, 2);
	fill(s, b, &w, 3);
	static const struct {
		struct store_matcher m;
		size_t found;
	} cases[] = {
		{ { "instance", MATCH_EQUAL, "a:1" }, 1 },    { { "instance", MATCH_NOT_EQUAL, "a:1" }, 1 },
		{ { "instance", MATCH_REGEX, "[ab]:." }, 2 }, { { "instance", MATCH_REGEX, "[ab]" }, 0 },
		{ { "instance", MATCH_NOT_REGEX, "a.*" }, 1 }, { { "absent", MATCH_EQUAL, "" }, 2 },
	};
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct store_series_info *found;
		size_t n;
		assert_int_equal(store_find_series(s, &cases[i].m, 1, 0, INT64_MAX, &found, &n, NULL), 0);
		assert_int_equal(n, cases[i].found);
		for (size_t k = 0; k < n; k++) {
			assert_int_equal(found[k].n_profiles, found[k].series == a ? 2 : 3);
			assert_int_equal(found[k].first_ms, START);
			assert_int_equal(found[k].last_ms, START + (found[k].series == a ? 1 : 2) * STEP);
			assert_int_equal(found[k].metrics, 1u << INUSE_OBJECTS | 1u << INUSE_SPACE);
			assert_string_equal(found[k].who.labels[0].name, "instance");
			assert_string_equal(found[k].who.build_id, "abcdef");
		}
		store_series_free(found, n);
	}
	struct store_series_info *found;
	size_t n;
	struct error err = { 0 };
	assert_int_equal(store_find_series(s, &(struct store_matcher){ "job", MATCH_REGEX, "(" }, 1, 0, INT64_MAX, &found, &n, &err), E_USAGE);
	assert_int_equal(store_find_series(s, NULL, 0, START + 2 * STEP, INT64_MAX, &found, &n, &err), 0);
	assert_int_equal(n, 1);
	store_series_free(found, n);
	store_close(s);
}

static void names_that_come_late_hold_for_old_profiles(void **state)
{
	(void)state;
	remove_store(path);
	struct store *s = open_store(false);
	struct process w = process_of(0);
	uint32_t series = add_series(s, "a:1", 1);
	fill(s, series, &w, 2);
	struct store_build *builds;
	size_t n;
	assert_int_equal(store_builds(s, &builds, &n, NULL), 0);
	assert_int_equal(n, 3);         /* vdso, too */
	assert_true(builds[0].unnamed >= builds[1].unnamed && builds[1].unnamed > 0);
	struct profile *p = NULL;
	assert_int_equal(store_unnamed(s, builds[0].build_id, 1000000, &p, NULL), 0);
	assert_int_equal(p->n_locations, builds[0].unnamed);
	struct function f = { .name = profile_cstring(p, "a_late_name") };
	struct line line = { .function = profile_intern_function(p, &f), .line = 7 };
	profile_set_lines(p, 0, &line, 1);
	assert_int_equal(store_put_names(s, p, NULL), 0);
	profile_free(p);
	assert_int_equal(store_unnamed(s, builds[0].build_id, 10, &p, NULL), 0);
	assert_int_equal(p->n_locations, 0);
	profile_free(p);
	assert_int_equal(store_ask_again(s, builds[0].build_id, NULL), 0);
	assert_int_equal(store_unnamed(s, builds[0].build_id, 1000000, &p, NULL), 0);
	assert_int_equal(p->n_locations, builds[0].unnamed);
	for (size_t i = 0; i < p->n_locations; i++)
		assert_int_equal(p->locations[i].n_lines, 0);
	assert_int_equal(store_put_names(s, p, NULL), 0);
	profile_free(p);
	assert_int_equal(store_read(s, series, START, NULL, &p, NULL), 0);
	unsigned named = 0;
	for (size_t i = 0; i < p->n_locations; i++)
		named += p->locations[i].n_lines == 1 && p->lines[p->locations[i].first_line].line == 7;
	assert_int_equal(named, 1);
	profile_free(p);
	store_builds_free(builds, n);
	store_close(s);
}

static void what_makes_no_sense_is_refused_and_changes_nothing(void **state)
{
	(void)state;
	remove_store(path);
	struct store *s = open_store(false);
	struct process w = process_of(0);
	uint32_t series = add_series(s, "a:1", 1);
	struct error err = { 0 };
	fill(s, series, &w, 2);
	struct profile *p = random_profile(&w, 2, START + 2 * STEP), *q = NULL;
	struct store_profile good = { series, START + 2 * STEP, p }, early = { series, START, p }, nobody = { 4711, START, p };
	assert_int_equal(store_append(s, (struct store_profile[]){ good, early }, 2, &err), E_USAGE);
	assert_int_equal(store_append(s, (struct store_profile[]){ good, nobody }, 2, &err), E_USAGE);
	assert_int_equal(store_append(s, (struct store_profile[]){ good, good }, 2, &err), E_USAGE);
	assert_int_equal(store_read(s, series, START - 1, NULL, &q, &err), E_USAGE);
	assert_int_equal(store_read(s, series, INT64_MAX, NULL, &q, &err), 0);
	assert_int_equal(q->sources[0].time_nanos / 1000000, START + STEP);
	profile_free(q);
	struct store *other = NULL;
	assert_int_equal(store_open(path, &(struct store_options){ 0 }, &other, &err), E_LIMIT);
	assert_non_null(strstr(err.text, "another process"));
	append(s, series, good.time_ms, p);
	profile_free(p);
	atomic_bool cancelled = true;
	struct store_range range = { &series, 1, START, START + 40 * STEP };
	assert_int_equal(store_merge(s, &range, STORE_MAX, &(struct store_budget){ .cancelled = &cancelled }, &q, &err), E_LIMIT);
	assert_int_equal(store_merge(s, &range, STORE_MAX, &(struct store_budget){ .deadline_ns = 1 }, &q, &err), E_LIMIT);
	assert_int_equal(store_merge(s, &range, STORE_MAX, &(struct store_budget){ .max_bytes = 1000 }, &q, &err), E_LIMIT);
	store_close(s);
}

static void maintain(struct store *s, int64_t now)
{
	bool more = true;
	struct error err = { 0 };
	for (unsigned steps = 0; more; steps++) {
		if (store_maintain(s, now, &more, &err))
			fail_msg("%s", err.text);
		assert_true(steps < 100000);
	}
}

static void assert_sound(struct store *s, uint64_t profiles)
{
	struct buf findings;
	struct error err = { 0 };
	uint64_t n = 0;
	buf_init(&findings, 1 << 20);
	if (store_check(s, &findings, &n, &err))
		fail_msg("%s", err.text);
	if (findings.len)
		fail_msg("%s", findings.data);
	assert_int_equal(n, profiles);
	buf_finish(&findings);
}

/* Five hours, a profile every half minute, with a gap; some of it folded. */
static void tiers_say_what_their_profiles_say(void **state)
{
	(void)state;
	enum { N = 600, MINUTE = 60000 };
	for (unsigned i = 0; i < 2; i++) {
		remove_store(path);
		struct store *s = open_store(false);
		struct process w = process_of(i);
		w.stacks = 25;
		uint32_t series = add_series(s, "a:1", w.process);
		int64_t times[N];
		for (unsigned k = 0; k < N; k++) {
			times[k] = START + k * MINUTE / 2 + (k > 300 ? 40 * MINUTE : 0);
			struct profile *p = random_profile(&w, k, times[k]);
			append(s, series, times[k], p);
			profile_free(p);
			if (k == 200 || k == 400)
				maintain(s, times[k]);
		}
		maintain(s, times[N - 1]);
		struct chance c = { 4711 + i };
		for (unsigned n = 0; n < 12; n++) {
			unsigned from = n ? (unsigned)chance(&c, N - 1) : 0, to = n ? from + 1 + (unsigned)chance(&c, N - from) : N;
			struct reference r;
			reference_init(&r);
			for (unsigned k = from ? from - 1 : 0; k < to; k++) {
				struct profile *p = random_profile(&w, k, times[k]);
				reference_add(&r, p, k >= from);
				profile_free(p);
			}
			for (enum store_mode mode = STORE_LAST; mode <= STORE_MAX; mode++) {
				struct profile *p = NULL;
				struct error err = { 0 };
				/* Also from before the first on, and to behind the last. */
				struct store_range range = { &series, 1, from ? times[from] : 0, to < N ? times[to - 1] + 1 : INT64_MAX };
				if (store_merge(s, &range, mode, NULL, &p, &err))
					fail_msg("%s", err.text);
				if (!reference_agrees(&r, p, mode))
					fail_msg("%s of %u to %u", store_mode_name(mode), from, to);
				profile_free(p);
			}
			reference_finish(&r);
		}
		struct store_info info;
		assert_int_equal(store_info(s, &info, NULL), 0);
		assert_int_equal(info.n_profiles, N);
		/* 340 minutes, of which nearly 40 have nothing; what is not over is not folded. */
		assert_in_range(info.tiers[TIER_5_MINUTES].profiles, 59, 63);
		assert_in_range(info.tiers[TIER_HOUR].profiles, 4, 6);
		assert_in_range(info.pinned, 4, 6);
		assert_in_range(info.tiers[TIER_RAW].profiles + info.n_open, N, N);
		assert_sound(s, N);
		for (unsigned k = 0; k < N; k += 37) {
			struct profile *p = random_profile(&w, k, times[k]), *q = NULL;
			assert_int_equal(store_read(s, series, times[k], NULL, &q, NULL), 0);
			assert_same_profile(p, q);
			profile_free(p);
			profile_free(q);
		}
		store_close(s);
	}
}

/* The same curve from buckets as from what they were made of. */
static void gauges_are_rolled_up(void **state)
{
	(void)state;
	enum { N = 720 };
	remove_store(path);
	struct store *s = open_store(false);
	uint32_t series = add_series(s, "a:1", 0);
	struct store_range range = { &series, 1, 0, START + N * STEP };
	struct store_gauges before, after;
	for (int i = 0; i < N; i++) {
		struct store_gauge g[] = { { "rss", (double)(hash_u64((uint64_t)i) % 100000) }, { "ratio", i / 7.0 } };
		assert_int_equal(store_append_gauges(s, series, START + i * STEP, g, i % 5 ? 2 : 1, NULL), 0);
	}
	for (int64_t step = 300000; step <= 3600000; step *= 12) {
		assert_int_equal(store_read_gauges(s, &range, step, NULL, step == 300000 ? &before : &after, NULL), 0);
		if (step == 300000) {
			maintain(s, START + N * STEP);
			assert_int_equal(store_read_gauges(s, &range, step, NULL, &after, NULL), 0);
			assert_int_equal(before.n_points, after.n_points);
			for (size_t i = 0; i < before.n_points; i++) {
				const struct store_gauge_point *a = &before.points[i], *b = &after.points[i];
				assert_string_equal(before.names[a->name], after.names[b->name]);
				assert_true(a->time_ms == b->time_ms && a->max == b->max && a->last == b->last);
				assert_true(fabs(a->mean - b->mean) <= 1e-9 * fabs(a->mean));
			}
			store_gauges_finish(&before);
		}
		store_gauges_finish(&after);
	}
	store_close(s);
}

/* Three days, a profile every five minutes. */
static void what_is_old_or_too_much_goes(void **state)
{
	(void)state;
	enum { N = 864, HOUR = 3600000 };
	for (int by_size = 0; by_size < 2; by_size++) {
		struct store *s = NULL;
		struct store_info info;
		struct store_options o = { .retention_ms = { 24 * HOUR, 36 * HOUR, 48LL * HOUR, 1000LL * HOUR }, .chunk_profiles = 12 };
		struct process w = process_of(0);
		if (by_size) {
			memset(o.retention_ms, 0, sizeof o.retention_ms);
			o.max_bytes = 1500000;
		}
		remove_store(path);
		assert_int_equal(store_open(path, &o, &s, NULL), 0);
		uint32_t series = add_series(s, "a:1", 1);
		for (unsigned k = 0; k < N; k += 72) {
			struct profile *p[72];
			struct store_profile all[72];
			for (unsigned i = 0; i < 72; i++) {
				int64_t time = START + (k + i) * 300000LL;
				p[i] = random_profile(&w, k + i, time);
				all[i] = (struct store_profile){ series, time, p[i] };
			}
			assert_int_equal(store_append(s, all, 72, NULL), 0);
			for (unsigned i = 0; i < 72; i++)
				profile_free(p[i]);
			maintain(s, START + (k + 71) * 300000LL);
		}
		int64_t now = START + (N - 1) * 300000LL;
		assert_int_equal(store_info(s, &info, NULL), 0);
		assert_int_equal(info.n_profiles, N);
		if (by_size) {
			assert_in_range(info.bytes, o.max_bytes / 2, o.max_bytes + 20000000);   /* with the log, which has a limit of its own */
			assert_true(info.tiers[TIER_RAW].first_ms > START && info.tiers[TIER_DAY].first_ms <= START);
		} else {
			assert_in_range(info.tiers[TIER_RAW].first_ms, now - 26 * HOUR, now - 23 * HOUR);
			assert_in_range(info.tiers[TIER_5_MINUTES].first_ms, now - 38 * HOUR, now - 34 * HOUR);
			assert_in_range(info.tiers[TIER_HOUR].first_ms, now - 73LL * HOUR, now - 46 * HOUR);
			assert_true(info.tiers[TIER_DAY].first_ms <= START);
			assert_in_range(info.pinned, 46, 50);
		}
		/* All of it is still told, and each profile once. */
		struct store_point *points;
		size_t n;
		uint64_t profiles = 0;
		assert_int_equal(store_totals(s, &(struct store_range){ &series, 1, 0, now + 1 }, 86400000, NULL, &points, &n, NULL), 0);
		for (size_t i = 0; i < n; i++)
			profiles += points[i].n;
		assert_int_equal(profiles, N);
		free(points);
		struct profile *merged = NULL;
		assert_int_equal(store_merge(s, &(struct store_range){ &series, 1, 0, now + 1 }, STORE_AVERAGE, NULL, &merged, NULL), 0);
		profile_free(merged);
		int64_t *times;
		assert_int_equal(store_moments(s, series, 0, now + 1, 50, &times, &n, NULL), 0);
		assert_int_equal(n, 50);
		for (size_t i = 0; i < n; i++) {
			struct profile *one = NULL;
			struct error err = { 0 };
			if (store_read(s, series, times[i], NULL, &one, &err))
				fail_msg("%s", err.text);
			assert_int_equal(one->sources[0].time_nanos / 1000000, times[i]);
			profile_free(one);
		}
		free(times);
		uint64_t before = info.tiers[TIER_RAW].profiles + info.n_open;
		assert_sound(s, before);
		assert_int_equal(store_compact(s, NULL), 0);
		assert_int_equal(store_info(s, &info, NULL), 0);
		assert_int_equal(info.free_bytes, 0);
		if (by_size)
			assert_in_range(info.bytes, 0, o.max_bytes + 200000);
		store_close(s);
	}
}

/* Each step of looking after it has something to fold, as much comes in: what is too much goes all the same. */
static void much_that_comes_in_keeps_nothing_too_old(void **state)
{
	(void)state;
	struct store *s = NULL;
	struct store_info info;
	struct store_options o = { .max_bytes = 300000, .chunk_profiles = 2 };
	struct process w = process_of(0);
	bool more;
	remove_store(path);
	assert_int_equal(store_open(path, &o, &s, NULL), 0);
	uint32_t series = add_series(s, "a:1", 1);
	for (unsigned k = 0; k < 400; k++) {
		struct profile *p = random_profile(&w, k, START + k * 1000LL);
		append(s, series, START + k * 1000LL, p);
		profile_free(p);
		if (k % 2)
			assert_int_equal(store_maintain(s, START + k * 1000LL, &more, NULL), 0);
	}
	assert_int_equal(store_info(s, &info, NULL), 0);
	assert_int_equal(info.n_profiles, 400);
	assert_true(info.tiers[TIER_RAW].profiles + info.n_open < 400);
	store_close(s);
}

/* Steps of looking after it, in processes that are killed after some each: what is told of a day is all of it, or nothing. */
static void a_day_goes_as_a_whole(void **state)
{
	(void)state;
	enum { N = 30, HOUR = 3600000 };
	struct store_options o = { .retention_ms = { 3 * HOUR, 4 * HOUR, 26 * HOUR, 48 * HOUR }, .chunk_profiles = 12 };
	for (unsigned life = 3; life < 8; life += 2) {
		struct store *s = NULL;
		struct process w = process_of(0);
		bool more = true;
		remove_store(path);
		assert_int_equal(store_open(path, &o, &s, NULL), 0);
		uint32_t series = add_series(s, "a:1", 1);
		for (unsigned i = 0; i < N; i++) {
			struct profile *p = random_profile(&w, i, START + i * 300000LL);
			append(s, series, START + i * 300000LL, p);
			profile_free(p);
		}
		for (unsigned step = 1; step < 40; step++) {
			struct store_point *points;
			size_t n;
			uint64_t profiles = 0;
			assert_int_equal(store_maintain(s, START + 120LL * HOUR, &more, NULL), 0);
			if (step % life == 0) {
				store_close(s);
				assert_int_equal(store_open(path, &o, &s, NULL), 0);
			}
			assert_int_equal(store_totals(s, &(struct store_range){ &series, 1, 0, INT64_MAX }, 0, NULL, &points, &n, NULL), 0);
			for (size_t i = 0; i < n; i++)
				profiles += points[i].n;
			if (profiles != 0 && profiles != N)
				fail_msg("after %u steps, %u in each life: %llu profiles", step, life, (unsigned long long)profiles);
			free(points);
		}
		store_close(s);
	}
}

static int set_up(void **state)
{
	(void)state;
	snprintf(path, sizeof path, "/tmp/heapgauge-store-test.%ld", (long)getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	remove_store(path);
	return 0;
}

/* With bytes behind them numbers are read a word at a time, at the end byte by byte: both are what was written. */
static void varints(void **state)
{
	(void)state;
	for (unsigned bits = 0; bits <= 64; bits++)
		for (int less = 0; less < 2; less++) {
			uint8_t bytes[2 * VARINT_MAX];
			memset(bytes, 0xff, sizeof bytes);
			uint64_t v = bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - (uint64_t)less;
			uint8_t *end = varint_write(bytes, v);
			struct varint_reader inside = { bytes, bytes + sizeof bytes, false }, last = { bytes, end, false };
			assert_true(varint_next(&inside) == v && inside.at == end && !inside.failed);
			assert_true(varint_next(&last) == v && last.at == end && !last.failed);
			struct varint_reader cut = { bytes, end - 1, false };
			assert_true(varint_next(&cut) == 0 && cut.failed);
		}
	uint8_t endless[16];
	memset(endless, 0x80, sizeof endless);
	struct varint_reader r = { endless, endless + sizeof endless, false };
	assert_true(varint_next(&r) == 0 && r.failed && r.at == r.end);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(varints),
		cmocka_unit_test(a_profile_read_back_is_the_one_appended),
		cmocka_unit_test(a_range_says_what_its_profiles_say),
		cmocka_unit_test(totals_are_sums_of_profiles),
		cmocka_unit_test(gauges_come_back),
		cmocka_unit_test(gauges_are_rolled_up),
		cmocka_unit_test(tiers_say_what_their_profiles_say),
		cmocka_unit_test(what_is_old_or_too_much_goes),
		cmocka_unit_test(much_that_comes_in_keeps_nothing_too_old),
		cmocka_unit_test(a_day_goes_as_a_whole),
		cmocka_unit_test(series_are_found_by_labels),
		cmocka_unit_test(names_that_come_late_hold_for_old_profiles),
		cmocka_unit_test(what_makes_no_sense_is_refused_and_changes_nothing),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
