/*
 * What has to be done now and then, one short transaction a step. What there is to do for the series is looked up in the writer's memory
 * and put on a list; a step takes one from it. Each series has its turn, a roll until there is nothing left to roll. When the list is done, and before
 * there is another, however much comes in: what is too old, too much, or empty pages.
 */
#include <stdlib.h>

#include "store/sqlite_reads.h"
#include "store/sqlite_upkeep.h"

#define DROP_AT_ONCE 16
#define SEAL_AFTER_MS HOUR_MS           /* open profiles that don't become enough for a chunk */
#define SEAL_SAMPLES ((uint64_t)1 << 20)
#define RETRY_MS 600000
#define FREE_PAGES_KEPT 512             /* they are needed again soon */

/* --- what there is to do --- */

static bool push(struct sqlite_store *s, enum work_kind kind, uint32_t series)
{
	struct work *w = ARRAY_PUSH(s->work, s->work_n, s->work_capacity, INDEX_NONE);
	if (w)
		*w = (struct work){ kind, series };
	return w != NULL;
}

static bool is_over(const struct series_state *st, int64_t now_ms)
{
	return st->n_open > 0 && st->first_open_ms < now_ms - SEAL_AFTER_MS && st->profile_ms < now_ms - SEAL_AFTER_MS;
}

static bool should_seal(const struct sqlite_store *s, const struct series_state *st, int64_t now_ms)
{
	return st->n_open >= s->options.chunk_profiles || (st->n_open > 1 && st->open_samples >= SEAL_SAMPLES) || is_over(st, now_ms);
}

static bool should_forget(const struct sqlite_store *s, const struct series_state *st, int64_t now_ms)
{
	int64_t oldest = now_ms - s->options.retention_ms[TIER_DAY];
	return st->n_open == 0 && st->last_ms != INT64_MIN && st->last_ms < oldest && st->gauges_ms < oldest;
}

/* First what makes room for the next: seals, then buckets. The list is worked off from its end. */
static int look_around(struct sqlite_store *s, int64_t now_ms, struct error *err)
{
	int rc;
	bool ok = true;
	sqlite3_stmt *q = db_statement(&s->writer, S_SERIES_IDS, err);
	if (!q)
		return err->code;
	while (ok && (rc = db_step(&s->writer, q, "looking after the store", err)) > 0) {
		struct series_state *st;
		uint32_t series = (uint32_t)sqlite3_column_int64(q, 0);
		rc = series_state(s, series, &st, err);
		if (rc)
			break;
		if (st->retry_ms > now_ms)
			continue;
		if (should_forget(s, st, now_ms))
			ok = push(s, WORK_FORGET, series);
		if (roll_is_due(st, now_ms))
			ok = ok && push(s, WORK_ROLL, series);
		if (st->n_gauges >= tier_chunk_slots[TIER_RAW])
			ok = ok && push(s, WORK_GAUGES, series);
		if (should_seal(s, st, now_ms))
			ok = ok && push(s, WORK_SEAL, series);
	}
	sqlite3_reset(q);
	return !ok ? error_nomem(err, "what is to be done") : rc < 0 ? rc : 0;
}

/* --- one of it --- */

static int roll(struct sqlite_store *s, uint32_t series, int64_t now_ms, struct series_state *st, bool *ret_done, struct error *err)
{
	int failed = 0;
	bool gauges_done = true;
	if (!st->has_pending) {
		failed = roll_find_pending(s, series, st, err);
		if (!failed)
			failed = gauges_find_pending(s, series, st, err);
		st->has_pending = true;
	}
	*ret_done = false;
	if (!failed)
		failed = roll_profiles(s, series, now_ms, st, ret_done, err);
	if (!failed && *ret_done)
		failed = roll_gauges(s, series, now_ms, st, &gauges_done, err);
	*ret_done = *ret_done && gauges_done;
	return failed;
}

/* What is still there of it has to be dropped first, and that comes after all work. */
static int forget(struct sqlite_store *s, uint32_t series, int64_t now_ms, struct series_state *st, struct error *err)
{
	sqlite3_stmt *q = db_statement(&s->writer, S_DELETE_SERIES, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, series);
	int failed = db_run(&s->writer, q, "forgetting a series", err);
	if (!failed && sqlite3_changes(s->writer.db) == 0)
		st->retry_ms = now_ms + RETRY_MS;
	else
		st->known = false;
	return failed;
}

/* The series' state is only as the step left it when the transaction holds; else it is asked for again. */
static int work(struct sqlite_store *s, int64_t now_ms, struct error *err)
{
	struct work w = s->work[s->work_n - 1];
	struct series_state *slot, st;
	bool done = true;
	int failed = db_do(&s->writer, S_BEGIN_WRITE, "looking after the store", err);
	if (failed)
		return failed;
	failed = series_state(s, w.series, &slot, err);
	st = failed ? (struct series_state){ 0 } : *slot;
	if (!failed && w.kind == WORK_SEAL) {
		failed = seal_chunk(s, w.series, TIER_RAW, 0, s->options.chunk_profiles, &st, err);
		/* Open ones are never too old: what was made of them might be dropped before them, and then be made again. */
		done = failed || !is_over(&st, now_ms);
	} else if (!failed && w.kind == WORK_ROLL) {
		failed = roll(s, w.series, now_ms, &st, &done, err);
	} else if (!failed && w.kind == WORK_GAUGES) {
		failed = seal_gauges(s, w.series, TIER_RAW, INT64_MAX, &st, err);
	} else if (!failed) {
		failed = forget(s, w.series, now_ms, &st, err);
	}
	failed = db_finish_write(s, failed, err);
	if (w.series < s->series_capacity)
		s->series[w.series] = failed ? (struct series_state){ 0 } : st;
	/* It may fail for ever, and must not keep the others waiting. */
	if (failed == E_FORMAT && series_state(s, w.series, &slot, NULL) == 0)
		slot->retry_ms = now_ms + RETRY_MS;
	if (done || failed)
		s->work_n--;
	return failed;
}

/* --- too old, too much --- */

struct old {
	int64_t ids[DROP_AT_ONCE];
	size_t n;
	int64_t first_ms;
};

static int find_old(struct sqlite_store *s, enum sqlite_statement which, int tier, int64_t before_ms, size_t max, struct old *ret,
                    struct error *err)
{
	int rc;
	ret->n = 0;
	sqlite3_stmt *q = db_statement(&s->writer, which, err);
	if (!q)
		return err->code;
	sqlite3_bind_int(q, 1, tier);
	sqlite3_bind_int64(q, 2, before_ms);
	sqlite3_bind_int64(q, 3, (int64_t)max);
	while ((rc = db_step(&s->writer, q, "dropping what is old", err)) > 0) {
		if (ret->n == 0)
			ret->first_ms = sqlite3_column_int64(q, 1);
		ret->ids[ret->n++] = sqlite3_column_int64(q, 0);
	}
	return rc;
}

static int drop(struct sqlite_store *s, enum sqlite_statement which, const struct old *old, struct error *err)
{
	int failed = db_do(&s->writer, S_BEGIN_WRITE, "dropping what is old", err);
	if (failed)
		return failed;
	for (size_t i = 0; i < old->n && !failed; i++) {
		sqlite3_stmt *q = db_statement(&s->writer, which, err);
		if (q)
			sqlite3_bind_int64(q, 1, old->ids[i]);
		failed = q ? db_run(&s->writer, q, "dropping what is old", err) : err->code;
	}
	return db_finish_write(s, failed, err);
}

static int64_t retention(const struct sqlite_store *s, int tier)
{
	int64_t ms = s->options.retention_ms[tier == TIER_PIN ? TIER_HOUR : tier];
	/* Buckets are made of what a series had in the last hours. */
	int64_t least = tier + 1 < TIERS ? tier_bucket_ms[tier + 1] + 2 * HOUR_MS : 0;
	return ms > least ? ms : least;
}

/* Some chunks of a tier whose time is over. */
static int drop_aged(struct sqlite_store *s, int64_t now_ms, bool *ret_dropped, struct error *err)
{
	struct old old;
	int failed = 0;
	*ret_dropped = false;
	for (int t = TIER_RAW; t <= TIER_PIN && !failed && !*ret_dropped; t++) {
		failed = find_old(s, S_OLD_CHUNKS, t, now_ms - retention(s, t), DROP_AT_ONCE, &old, err);
		if (!failed && old.n) {
			failed = drop(s, S_DELETE_CHUNK, &old, err);
			*ret_dropped = true;
			break;
		}
		if (failed || t == TIER_PIN)
			break;
		failed = find_old(s, S_OLD_GAUGES, t, now_ms - retention(s, t), DROP_AT_ONCE, &old, err);
		if (!failed && old.n) {
			failed = drop(s, S_DELETE_GAUGES, &old, err);
			*ret_dropped = true;
		}
	}
	return failed;
}

static int pages(struct sqlite_store *s, int64_t *ret_used, int64_t *ret_free, struct error *err)
{
	int64_t all = 0;
	int failed = db_number(&s->writer, S_PAGES, &all, err);
	if (!failed)
		failed = db_number(&s->writer, S_FREE_PAGES, ret_free, err);
	*ret_used = all - *ret_free;
	return failed;
}

/* Of all tiers the chunks that have used up most of their time, so that each keeps its share of the past. */
static int drop_oldest(struct sqlite_store *s, int64_t now_ms, bool *ret_dropped, struct error *err)
{
	struct old worst = { .n = 0 }, old;
	double most = -1;
	int failed = 0;
	for (int t = TIER_RAW; t <= TIER_PIN && !failed; t++) {
		failed = find_old(s, S_OLD_CHUNKS, t, INT64_MAX, DROP_AT_ONCE, &old, err);
		double used = old.n ? (double)(now_ms - old.first_ms) / (double)retention(s, t) : -1;
		if (!failed && old.n && used > most) {
			most = used;
			worst = old;
		}
	}
	*ret_dropped = !failed && worst.n;
	return failed || !worst.n ? failed : drop(s, S_DELETE_CHUNK, &worst, err);
}

/* A row for each page. */
int give_back(struct sqlite_store *s, struct error *err)
{
	int rc;
	sqlite3_stmt *q = db_statement(&s->writer, S_GIVE_BACK, err);
	if (!q)
		return err->code;
	while ((rc = db_step(&s->writer, q, "giving space back", err)) > 0)
		;
	return rc;
}

static int keep_size(struct sqlite_store *s, int64_t now_ms, bool *ret_more, struct error *err)
{
	int64_t used = 0, unused = 0;
	uint64_t limit = s->options.max_bytes;
	int failed = pages(s, &used, &unused, err);
	*ret_more = false;
	if (failed)
		return failed;
	if (limit && (uint64_t)used * STORE_PAGE_BYTES > limit) {
		failed = drop_oldest(s, now_ms, ret_more, err);
	} else if (unused > FREE_PAGES_KEPT + used / 50 || (limit && (uint64_t)(used + unused) * STORE_PAGE_BYTES > limit && unused)) {
		failed = give_back(s, err);
		*ret_more = !failed;
	}
	return failed;
}

/* --- a step --- */

int sqlite_maintain(struct store *store, int64_t now_ms, bool *ret_more, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	bool more = false;
	err = err ? err : &unasked;
	if (s->options.read_only)
		return error_set(err, E_USAGE, "%s: was opened to be read", s->path);
	pthread_mutex_lock(&s->write_lock);
	int failed = s->work_n || s->work_done ? 0 : look_around(s, now_ms, err);
	if (!failed && s->work_n) {
		failed = work(s, now_ms, err);
		s->work_done = s->work_n == 0;
		more = true;
	} else if (!failed) {
		bool looks_again = s->work_done;
		failed = drop_aged(s, now_ms, &more, err);
		if (!failed && !more)
			failed = keep_size(s, now_ms, &more, err);
		s->work_done = s->work_done && more;
		if (!failed && !more)
			failed = sweep_step(s, now_ms, &more, err);
		more = more || looks_again;
	}
	pthread_mutex_unlock(&s->write_lock);
	*ret_more = !failed && more;
	return failed;
}
