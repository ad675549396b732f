/*
 * A program for tests of whole stores: fills one, and says on its standard output what was acknowledged, at once, before
 * it goes on: "ack SERIES TIME". It may be killed at any moment.
 *
 *   store_client fill FILE SEED COUNT [STEP-MS]   COUNT profiles more for each of two series, folding now and then; 0: without end
 *   store_client verify FILE                      reads "ack" lines: each must be there and equal; then a check
 *   store_client churn FILE SEED                  without end: other stacks each day, which are kept for two days and then swept up
 *   store_client torment FILE SEED                under faults (see faults.c): appends until told to stop by the end of its input
 *   store_client list FILE [NAME=VALUE]           what is there, of all series or those with that label:
 *                                                   series ID PROFILES LABELS (name=value,...)
 *                                                   point ID TIME PROFILES MEAN MAX LAST: bytes in use; each profile, else the finest buckets
 *   store_client read FILE                        reads lines "ID TIME"; says "profile ID TIME BYTES", in use in the last one until then
 */
#include <inttypes.h>
#include <unistd.h>

#include "random_profile.h"
#include "store/store.h"

#define BEGIN 1760000000000
#define SERIES 2

static const struct store_options options = { .retention_ms = { 366 * 86400000LL, 366 * 86400000LL, 366 * 86400000LL, 731 * 86400000LL },
	                                      .chunk_profiles = 5 };

static int fail(const char *what, const struct error *err)
{
	printf("%s: %d %s\n", what, err->code, err->text);
	return 1;
}

static struct process process_of(uint32_t i)
{
	return (struct process){ .seed = i, .process = i | 1, .stacks = 40, .with_alloc = i & 1, .rate = 524288 };
}

static int open_all(const char *file, const struct store_options *o, struct store **s, uint32_t *series, int64_t *last, struct error *err)
{
	int failed = store_open(file, o, s, err);
	for (uint32_t i = 0; i < SERIES && !failed; i++) {
		char name[16];
		struct store_series_info *list;
		size_t n;
		snprintf(name, sizeof name, "host:%u", i);
		struct store_label label = { "instance", name };
		struct store_matcher match = { "instance", MATCH_EQUAL, name };
		failed = store_add_series(*s, &(struct store_identity){ &label, 1, i + 1, BEGIN, "ab" }, &series[i], err);
		if (!failed)
			failed = store_find_series(*s, &match, 1, INT64_MIN, INT64_MAX, &list, &n, err);
		last[i] = BEGIN;
		if (!failed && n) {
			last[i] = list[0].last_ms;
			store_series_free(list, n);
		}
	}
	return failed;
}

static int append(struct store *s, uint32_t i, uint32_t series, int64_t time, struct error *err)
{
	struct process w = process_of(i);
	struct profile *p = random_profile(&w, (uint64_t)(time - BEGIN) / 1000, time);
	int failed = store_append(s, &(struct store_profile){ series, time, p }, 1, err);
	profile_free(p);
	return failed;
}

static void acknowledge(uint32_t i, uint32_t series, int64_t time)
{
	char line[64];
	int n = snprintf(line, sizeof line, "ack %u %u %" PRId64 "\n", i, series, time);
	if (write(1, line, (size_t)n) != n)
		_exit(2);
}

static int fill(const char *file, uint64_t seed, uint64_t count, int64_t step)
{
	struct chance c = { seed };
	struct store *s = NULL;
	struct error err = { 0 };
	uint32_t series[SERIES];
	int64_t last[SERIES], now = 0;
	if (open_all(file, &options, &s, series, last, &err))
		return fail("open", &err);
	for (uint64_t k = 0; !count || k < count; k++) {
		for (uint32_t i = 0; i < SERIES; i++) {
			/* Steps of seconds, now and then of an hour, so that buckets end. */
			int64_t time = last[i] + (step ? step : (int64_t)(1 + chance(&c, 30)) * 1000 + (chance(&c, 20) ? 0 : 3600000));
			if (append(s, i, series[i], time, &err))
				return fail("append", &err);
			acknowledge(i, series[i], time);
			last[i] = time;
		}
		now = last[0] < last[1] ? last[0] : last[1];
		bool more = true;
		for (uint64_t steps = chance(&c, 4); steps && more; steps--)
			if (store_maintain(s, now, &more, &err))
				return fail("maintain", &err);
	}
	store_close(s);
	return 0;
}

/* A profile every ten minutes, of a process with the day's stacks; days go by. What is acknowledged may be too old to be there soon after. */
static int churn(const char *file, uint64_t seed)
{
	enum { HOUR = 3600000 };
	const struct store_options o = { .retention_ms = { 3 * HOUR, 4 * HOUR, 26 * HOUR, 48LL * HOUR }, .chunk_profiles = 5 };
	struct chance c = { seed };
	struct store *s = NULL;
	struct error err = { 0 };
	uint32_t series[SERIES];
	int64_t last[SERIES];
	if (open_all(file, &o, &s, series, last, &err))
		return fail("open", &err);
	/* Behind what was rolled up already. */
	for (int64_t time = last[0] + 24LL * HOUR;;) {
		bool pause = chance(&c, 8) == 0;
		for (bool more = pause; more;)
			if (store_maintain(s, time + 2 * HOUR, &more, &err))
				return fail("maintain", &err);
		time += pause ? 20 * HOUR : HOUR / 6;
		uint32_t day = (uint32_t)(time / (24 * HOUR));
		if (append(s, day, series[0], time, &err))
			return fail("append", &err);
		acknowledge(day, series[0], time);
		bool more = true;
		for (uint64_t steps = chance(&c, 30); steps && more; steps--)
			if (store_maintain(s, time, &more, &err))
				return fail("maintain", &err);
	}
}

static int verify(const char *file)
{
	struct store *s = NULL;
	struct error err = { 0 };
	struct buf findings;
	uint32_t i, series;
	int64_t time;
	uint64_t n = 0, there;
	if (store_open(file, &options, &s, &err))
		return fail("open", &err);
	char line[128];
	while (fgets(line, sizeof line, stdin)) {
		if (sscanf(line, "ack %u %u %" SCNd64, &i, &series, &time) != 3)
			continue;
		struct process w = process_of(i);
		struct profile *p = random_profile(&w, (uint64_t)(time - BEGIN) / 1000, time), *q = NULL;
		if (store_read(s, series, time, NULL, &q, &err))
			return fail("read", &err);
		if (q->sources[0].time_nanos != p->sources[0].time_nanos) {
			printf("lost: the profile of %" PRId64 "\n", time);
			return 1;
		}
		if (!same_samples(p, q)) {
			printf("changed: the profile of %" PRId64 "\n", time);
			return 1;
		}
		profile_free(p);
		profile_free(q);
		n++;
	}
	buf_init(&findings, 1 << 20);
	if (store_check(s, &findings, &there, &err))
		return fail("check", &err);
	if (findings.len || there < n) {
		printf("%sof %" PRIu64 " acknowledged %" PRIu64 " are there\n", findings.len ? findings.data : "", n, there);
		return 1;
	}
	printf("%" PRIu64 " acknowledged, %" PRIu64 " there\n", n, there);
	buf_finish(&findings);
	store_close(s);
	return 0;
}

/* Each line of input is one round; what fails must say so, and leave what is there. */
static int torment(const char *file)
{
	struct store *s = NULL;
	struct error err = { 0 };
	uint32_t series[SERIES] = { 0 };
	int64_t last[SERIES] = { 0 };
	char line[64];
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (fgets(line, sizeof line, stdin)) {
		bool more;
		int failed = 0;
		if (!s && open_all(file, &options, &s, series, last, &err)) {
			store_close(s);
			s = NULL;
			fail("failed open", &err);
			continue;
		}
		for (uint32_t i = 0; i < SERIES && !failed; i++) {
			int64_t time = last[i] + 10000 + (line[0] == 'j' ? 3600000 : 0);
			failed = append(s, i, series[i], time, &err);
			if (failed) {
				fail("failed append", &err);
				break;
			}
			acknowledge(i, series[i], time);
			last[i] = time;
		}
		for (int k = 0; k < 3 && !failed; k++)
			if ((failed = store_maintain(s, last[0], &more, &err)))
				fail("failed maintain", &err);
		if (line[0] == 'c') {
			store_close(s);
			s = NULL;
		}
		printf("done\n");
	}
	store_close(s);
	return 0;
}

static int list_one(struct store *s, const struct store_series_info *info, struct error *err)
{
	struct store_range range = { &info->series, 1, INT64_MIN, INT64_MAX };
	struct store_point *points;
	size_t n;
	printf("series %u %" PRIu64 " ", info->series, info->n_profiles);
	for (size_t i = 0; i < info->who.n_labels; i++)
		printf("%s%s=%s", i ? "," : "", info->who.labels[i].name, info->who.labels[i].value);
	printf("\n");
	int failed = store_totals(s, &range, 0, NULL, &points, &n, err);
	if (failed)
		return failed;
	for (size_t i = 0; i < n; i++)
		printf("point %u %" PRId64 " %u %.17g %.17g %.17g\n", info->series, points[i].time_ms, points[i].n, points[i].mean[INUSE_SPACE],
		       points[i].max[INUSE_SPACE], points[i].last[INUSE_SPACE]);
	free(points);
	return 0;
}

static int list(const char *file, char *label)
{
	struct store *s = NULL;
	struct error err = { 0 };
	struct store_series_info *all;
	size_t n;
	char *value = label ? strchr(label, '=') : NULL;
	if (value)
		*value++ = '\0';
	struct store_matcher match = { label, MATCH_EQUAL, value };
	if (store_open(file, &(struct store_options){ .read_only = true }, &s, &err))
		return fail("open", &err);
	int failed = store_find_series(s, &match, value ? 1 : 0, INT64_MIN, INT64_MAX, &all, &n, &err);
	for (size_t i = 0; i < n && !failed; i++)
		failed = list_one(s, &all[i], &err);
	if (failed)
		return fail("list", &err);
	store_series_free(all, n);
	store_close(s);
	return 0;
}

static double bytes_in_use(const struct profile *p)
{
	double sum = 0;
	int column = p->metric[INUSE_SPACE];
	for (size_t i = 0; i < p->n_samples && column >= 0; i++)
		sum += (double)p->values[i * p->n_types + (size_t)column];
	return sum;
}

static int read_each(const char *file)
{
	struct store *s = NULL;
	struct error err = { 0 };
	uint32_t series;
	int64_t time;
	char line[64];
	if (store_open(file, &(struct store_options){ .read_only = true }, &s, &err))
		return fail("open", &err);
	while (fgets(line, sizeof line, stdin)) {
		struct profile *p;
		if (sscanf(line, "%u %" SCNd64, &series, &time) != 2)
			continue;
		if (store_read(s, series, time, NULL, &p, &err))
			return fail("read", &err);
		printf("profile %u %" PRId64 " %.17g\n", series, time, bytes_in_use(p));
		profile_free(p);
	}
	store_close(s);
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
	if (argc > 4 && strcmp(argv[1], "fill") == 0)
		return fill(argv[2], seed, strtoull(argv[4], NULL, 10), argc > 5 ? strtoll(argv[5], NULL, 10) : 0);
	if (argc > 3 && strcmp(argv[1], "churn") == 0)
		return churn(argv[2], seed);
	if (argc > 2 && strcmp(argv[1], "verify") == 0)
		return verify(argv[2]);
	if (argc > 2 && strcmp(argv[1], "torment") == 0)
		return torment(argv[2]);
	if (argc > 2 && strcmp(argv[1], "list") == 0)
		return list(argv[2], argc > 3 ? argv[3] : NULL);
	if (argc > 2 && strcmp(argv[1], "read") == 0)
		return read_each(argv[2]);
	return 2;
}
