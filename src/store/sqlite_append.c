/* Profiles and gauges come in: each a row of its own in one transaction, which is on the disk when it is committed. */
#include <stdlib.h>

#include "store/sqlite_private.h"

/* What changes in the writer's memory when the transaction holds. */
struct change {
	uint32_t series;
	unsigned metrics;
	int64_t last_ms;
	uint64_t samples;
};

static int insert_open(struct sqlite_store *s, const struct store_profile *p, const struct buf *head, const struct buf *data,
                       struct error *err)
{
	sqlite3_stmt *q = db_statement(&s->writer, S_ADD_OPEN, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, p->series);
	sqlite3_bind_int64(q, 2, p->time_ms);
	sqlite3_bind_blob64(q, 3, head->data, head->len, SQLITE_STATIC);
	sqlite3_bind_blob64(q, 4, data->data, data->len, SQLITE_STATIC);
	return db_run(&s->writer, q, "appending a profile", err);
}

/* The first profile, or one with another metric: rare. */
static int note_series(struct sqlite_store *s, const struct change *c, bool first, int64_t time_ms, struct error *err)
{
	sqlite3_stmt *q = db_statement(&s->writer, first ? S_SERIES_FIRST : S_SERIES_METRICS, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, c->series);
	sqlite3_bind_int64(q, 2, c->metrics);
	if (first)
		sqlite3_bind_int64(q, 3, time_ms);
	return db_run(&s->writer, q, "appending a profile", err);
}

/* changes[0..n) are those of the profiles before in this call: a series may come more than once. */
static int append_one(struct sqlite_store *s, const struct store_profile *p, struct change *changes, size_t n, struct buf *head,
                      struct buf *data, struct error *err)
{
	struct series_state *state;
	unsigned metrics;
	int failed = series_state(s, p->series, &state, err);
	if (failed)
		return failed;
	struct change c = { p->series, state->metrics, state->last_ms, 0 };
	for (size_t i = n; i > 0; i--)
		if (changes[i - 1].series == p->series) {
			c = changes[i - 1];
			break;
		}
	if (p->time_ms <= c.last_ms)
		return error_set(err, E_USAGE, "%s: a profile of series %u that is not after its last one (%lld ms before)", s->path, p->series,
		                 (long long)(c.last_ms - p->time_ms));
	bool first = c.last_ms == INT64_MIN;
	buf_reset(head);
	buf_reset(data);
	failed = translate(s, p, head, data, &metrics, err);
	if (!failed)
		failed = head->failed || data->failed ? error_nomem(err, "a profile") : insert_open(s, p, head, data, err);
	c.last_ms = p->time_ms;
	c.samples = p->profile->n_samples;
	if (!failed && (first || (c.metrics | metrics) != c.metrics)) {
		c.metrics |= metrics;
		failed = note_series(s, &c, first, p->time_ms, err);
	}
	changes[n] = c;
	return failed;
}

int sqlite_append(struct store *store, const struct store_profile *profiles, size_t n, struct error *err)
{
	struct sqlite_store *s = (struct sqlite_store *)store;
	struct error unasked;
	struct buf head, data;
	err = err ? err : &unasked;
	if (n == 0)
		return 0;
	struct change *changes = calloc(n, sizeof *changes);
	if (!changes)
		return error_nomem(err, "appending");
	int failed = db_begin_write(s, err);
	if (failed) {
		free(changes);
		return failed;
	}
	buf_init(&head, 1 << 16);
	buf_init(&data, CHUNK_BODY_MAX);
	for (size_t i = 0; i < n && !failed; i++)
		failed = append_one(s, &profiles[i], changes, i, &head, &data, err);
	failed = db_finish_write(s, failed, err);
	for (size_t i = 0; i < n && !failed; i++) {
		struct series_state *state = &s->series[changes[i].series];
		state->metrics = changes[i].metrics;
		state->last_ms = state->profile_ms = changes[i].last_ms;
		state->first_open_ms = state->n_open ? state->first_open_ms : state->last_ms;
		state->n_open++;
		state->open_samples += changes[i].samples;
		if (state->pending_ms[TIER_5_MINUTES] == INT64_MAX)
			state->pending_ms[TIER_5_MINUTES] = state->last_ms;
	}
	pthread_mutex_unlock(&s->write_lock);
	buf_finish(&head);
	buf_finish(&data);
	free(changes);
	return failed;
}
