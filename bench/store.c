/*
 * The store's own times, for store.py; each line of output is "name value".
 *
 *   store dumps FILE DUMP...        real dumps, ten seconds apart, of one series: what a sample costs
 *   store synthetic FILE HOURS      10 targets, every 10 s, 2,000 stacks of which a fifth changes; then a day merged
 *   store fleet FILE HOURS          fills it only: 250 processes, every 15 s, 500 stacks of which a fifth changes
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/file.h"
#include "format/format.h"
#include "store/sqlite_fold.h"
#include "store/store.h"

#define BEGIN 1760000400000     /* a whole hour */
#define STEP 10000
#define TARGETS 10
#define STACKS 2000
#define TOGETHER 32             /* profiles of one append */

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void stop(const char *what, const struct error *err)
{
	fprintf(stderr, "%s: %s\n", what, err->text);
	exit(1);
}

static void maintain(struct store *s, int64_t time)
{
	struct error err;
	bool more = true;
	while (more)
		if (store_maintain(s, time, &more, &err))
			stop("maintain", &err);
}

static uint32_t add_series(struct store *s, unsigned i)
{
	char name[16];
	struct error err;
	uint32_t series;
	snprintf(name, sizeof name, "host:%u", i);
	struct store_label label = { "instance", name };
	if (store_add_series(s, &(struct store_identity){ &label, 1, i + 1, BEGIN, "" }, &series, &err))
		stop("series", &err);
	return series;
}

static struct store *open_store(const char *file)
{
	struct store *s;
	struct error err;
	static const struct store_options options = { .retention_ms = { INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4, INT64_MAX / 4 } };
	if (store_open(file, &options, &s, &err))
		stop("open", &err);
	return s;
}

/* --- real dumps --- */

static struct profile *read_dump(const char *path)
{
	struct stream file;
	struct error err;
	struct profile *p = NULL;
	struct read_report report;
	buf_init(&report.warnings, 1 << 20);
	if (stream_open(&file, path, &err) || format_read(&file, &read_limits_default, &report, &p, &err))
		stop(path, &err);
	stream_close(&file);
	buf_finish(&report.warnings);
	return p;
}

/* How many samples have other values than in the dump before, by what is at the same place: roughly. */
static int dumps(const char *file, char **paths, int n)
{
	struct store *s = open_store(file);
	struct store_info info;
	struct error err;
	uint32_t series = add_series(s, 0);
	uint64_t samples = 0;
	double cpu = 0;
	for (int i = 0; i < n; i++) {
		struct profile *p = read_dump(paths[i]);
		samples += p->n_samples;
		double before = now(CLOCK_THREAD_CPUTIME_ID);
		if (store_append(s, &(struct store_profile){ series, BEGIN + (int64_t)i * STEP, p }, 1, &err))
			stop("append", &err);
		cpu += now(CLOCK_THREAD_CPUTIME_ID) - before;
		profile_free(p);
	}
	maintain(s, BEGIN + 86400000);
	if (store_info(s, &info, &err))
		stop("info", &err);
	printf("samples %" PRIu64 "\nsealed_bytes %" PRIu64 "\nstacks %" PRIu64 "\nappend_cpu %.6f\n", samples, info.tiers[TIER_RAW].bytes,
	       info.n_stacks, cpu);
	store_close(s);
	return 0;
}

/* --- synthetic --- */

static struct profile *make_profile(unsigned stacks)
{
	struct profile *p = profile_new(0);
	profile_add_heap_types(p, false);
	struct mapping m = { .start = 0x560000000000, .limit = 0x560010000000, .executable = true, .file = profile_cstring(p, "/usr/bin/server"),
		             .build_id = profile_cstring(p, "abcdef") };
	profile_add_mapping(p, &m);
	profile_add_source(p, &(struct source){ .rate = 524288, .header_objects = -1, .header_bytes = -1, .process = 1 });
	for (unsigned i = 0; i < stacks; i++) {
		uint32_t frames[24];
		/* As in a server: some 2,000 places in all, the outer ones shared by many stacks. */
		for (unsigned k = 0; k < 24; k++)
			frames[k] = profile_intern_location(p, 0, m.start + (hash_u64(i >> (k / 2)) % 2000 + (k > 20 ? 3000 : 0)) * 16);
		frames[0] = profile_intern_location(p, 0, m.start + 0x8000000 + i % 300);
		frames[1] = profile_intern_location(p, 0, m.start + 0x8000000 + i);
		int64_t values[2] = { 1 + (int64_t)(hash_u64(i) % 5000), 0 };
		values[1] = values[0] * (16 << i % 12);
		profile_add_sample(p, profile_intern_stack(p, frames, 24), 0, 0, values);
	}
	profile_finish(p, NULL);
	return p;
}

/* What a target has now: a fifth of it is new. */
static void change(struct profile *p, int64_t *state, uint64_t moment)
{
	unsigned stacks = (unsigned)p->n_samples;
	for (unsigned i = 0; i < stacks; i++)
		if (hash_u64(moment * STACKS + i) % 5 == 0 || !state[2 * i]) {
			state[2 * i] = 1 + (int64_t)(hash_u64(i) % 5000) + (int64_t)(hash_u64(moment * 7919 + i) % 200);
			state[2 * i + 1] = state[2 * i] * (16 << i % 12);
		}
	memcpy(p->values, state, 2 * stacks * sizeof *state);
}

static double merge_seconds(struct store *s, const uint32_t *series, size_t n, int64_t from, int64_t to, enum store_mode mode)
{
	double best = 1e9;
	for (int i = 0; i < 5; i++) {
		struct error err;
		struct profile *p;
		double before = now(CLOCK_THREAD_CPUTIME_ID);
		if (store_merge(s, &(struct store_range){ series, n, from, to }, mode, NULL, &p, &err))
			stop("merge", &err);
		double took = now(CLOCK_THREAD_CPUTIME_ID) - before;
		best = took < best ? took : best;
		profile_free(p);
	}
	return best;
}

static int fold_visit(void *context, const struct chunk_head *h, sqlite3_stmt *q, unsigned first, unsigned end, struct error *err)
{
	return fold_chunk(context, h, sqlite3_column_blob(q, SCAN_BODY), (size_t)sqlite3_column_bytes(q, SCAN_BODY), first, end, err);
}

/* Raw samples a second: read from the file's pages, unpacked, added up; what store_merge does where there are no buckets. */
static double fold_rate(struct store *store, const uint32_t *series)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	double best = 0;
	for (int round = 0; round < 3; round++) {
		struct error err;
		struct spending spending = { 0 };
		struct fold f;
		uint64_t samples = 0;
		struct connection *c = db_begin_read(s, &err);
		double before = now(CLOCK_THREAD_CPUTIME_ID);
		fold_init(&f, c, &spending);
		for (unsigned i = 0; i < TARGETS; i++) {
			fold_reset(&f);
			if (scan_chunks(&(struct scan){ c, series[i], TIER_RAW, 0, INT64_MAX, fold_visit, &f, .heads = false }, &err))
				stop("fold", &err);
			samples += (uint64_t)f.total.n * STACKS;
		}
		double rate = (double)samples / (now(CLOCK_THREAD_CPUTIME_ID) - before);
		best = rate > best ? rate : best;
		fold_finish(&f);
		db_end_read(s, c);
	}
	return best;
}

/* What was done to fill a store, and its processor time. */
struct filling {
	uint64_t samples;
	double append_cpu, maintain_cpu;
};

/* n series of profiles every so many ms, each series a little later than the one before; n * 2 * stacks states. */
static struct filling fill(struct store *s, const uint32_t *series, unsigned n, unsigned stacks, int64_t every_ms, int64_t later_ms, uint64_t moments)
{
	struct filling f = { 0 };
	struct error err;
	struct profile *p[TOGETHER];
	int64_t *states = calloc((size_t)n * 2 * stacks, sizeof *states);
	if (!states)
		stop("states", &(struct error){ .text = "no memory" });
	for (unsigned i = 0; i < TOGETHER; i++)
		p[i] = make_profile(stacks);
	for (uint64_t at = 0; at < moments; at += TOGETHER) {
		unsigned some = moments - at < TOGETHER ? (unsigned)(moments - at) : TOGETHER;
		for (unsigned i = 0; i < n; i++) {
			struct store_profile all[TOGETHER];
			for (unsigned k = 0; k < some; k++) {
				change(p[k], states + (size_t)i * 2 * stacks, (at + k) * n + i);
				all[k] = (struct store_profile){ series[i], BEGIN + (int64_t)(at + k) * every_ms + i * later_ms, p[k] };
			}
			double before = now(CLOCK_THREAD_CPUTIME_ID);
			if (store_append(s, all, some, &err))
				stop("append", &err);
			f.append_cpu += now(CLOCK_THREAD_CPUTIME_ID) - before;
			f.samples += (uint64_t)some * stacks;
		}
		double before = now(CLOCK_THREAD_CPUTIME_ID);
		maintain(s, BEGIN + (int64_t)(at + some) * every_ms);
		f.maintain_cpu += now(CLOCK_THREAD_CPUTIME_ID) - before;
	}
	for (unsigned i = 0; i < TOGETHER; i++)
		profile_free(p[i]);
	free(states);
	return f;
}

static int synthetic(const char *file, double hours)
{
	struct store *s = open_store(file);
	struct error err;
	struct store_info info;
	uint32_t series[TARGETS];
	uint64_t moments = (uint64_t)(hours * 3600000 / STEP);
	for (unsigned i = 0; i < TARGETS; i++)
		series[i] = add_series(s, i);
	struct filling f = fill(s, series, TARGETS, STACKS, STEP, 0, moments);
	int64_t end = BEGIN + (int64_t)moments * STEP;
	printf("samples %" PRIu64 "\nappend_cpu %.3f\nmaintain_cpu %.3f\nmerge_raw_per_second %.0f\n", f.samples, f.append_cpu, f.maintain_cpu,
	       fold_rate(s, series));
	for (enum store_mode m = STORE_LAST; m <= STORE_MAX; m++)
		printf("merge_day_%s %.4f\n", store_mode_name(m), merge_seconds(s, series, TARGETS, end - 86400000 + 123456, end, m));
	if (store_info(s, &info, &err))
		stop("info", &err);
	for (int t = 0; t < TIERS; t++)
		printf("tier_%s_samples %" PRIu64 "\ntier_%s_bytes %" PRIu64 "\n", store_tier_name((enum store_tier)t), info.tiers[t].samples,
		       store_tier_name((enum store_tier)t), info.tiers[t].bytes);
	printf("file_bytes %" PRIu64 "\n", info.bytes);
	store_close(s);
	return 0;
}

static int fleet(const char *file, double hours)
{
	enum { PROCESSES = 250, FEW = 500, EVERY = 15000, LATER = 60 };
	struct store *s = open_store(file);
	uint32_t series[PROCESSES];
	for (unsigned i = 0; i < PROCESSES; i++)
		series[i] = add_series(s, i);
	fill(s, series, PROCESSES, FEW, EVERY, LATER, (uint64_t)(hours * 3600000 / EVERY));
	store_close(s);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 3 && strcmp(argv[1], "dumps") == 0)
		return dumps(argv[2], argv + 3, argc - 3);
	if (argc == 4 && strcmp(argv[1], "synthetic") == 0)
		return synthetic(argv[2], strtod(argv[3], NULL));
	if (argc == 4 && strcmp(argv[1], "fleet") == 0)
		return fleet(argv[2], strtod(argv[3], NULL));
	fputs("usage: store dumps FILE DUMP... | store synthetic FILE HOURS | store fleet FILE HOURS\n", stderr);
	return 2;
}
