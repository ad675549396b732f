/*
 * Once a day what is of no use any more is dropped, in short steps.
 *
 * A row (a stack with its labels) knows the last day on which a profile had it. All that is in the store is of some day or later: rows last seen
 * before that are in no chunk, bucket, peak or open profile, and go, each with its stack when that has no other row. The row that is
 * another one's base is as young as this one, and has the smaller number: the higher numbers go first.
 *
 * What stacks, frames and label sets use has no day, so it is marked: first the frames and label sets of what is left, then the strings and
 * binaries of those, and what has no mark goes. Whoever writes meanwhile marks what he uses, and the writer's memory of numbers is emptied
 * before the first row goes. What a chunk says besides its rows (where a profile is from, comments, names of gauges) is in the table "kept",
 * with a day as rows are.
 *
 * Each step is a transaction. A sweep that was cut off by a crash left its sign in "kept" (number 0), and the next begins anew.
 */
#include "store/sqlite_sweep.h"

#include <stdlib.h>

#include "store/sqlite_upkeep.h"

#define BATCH 500
#define DAY_MS 86400000
#define UNFINISHED 0            /* in kept */

void sweep_init(struct sweep *w)
{
	*w = (struct sweep){ 0 };
	idmap_init(&w->kept, 1 << 12);
}

static void forget_marks(struct sweep *w)
{
	for (int i = 0; i < SWEEP_OFS; i++) {
		free(w->used[i].bits);
		w->used[i].bits = NULL;
		w->used[i].capacity = 0;
	}
}

void sweep_finish(struct sweep *w)
{
	forget_marks(w);
	idmap_finish(&w->kept);
}

/* --- what others say --- */

void sweep_mark(struct sweep *w, enum sweep_of of, uint64_t number)
{
	size_t before = w->used[of].capacity;
	if (number > UINT32_MAX || !memory_grow((void **)&w->used[of].bits, &w->used[of].capacity, (size_t)(number / 8 + 1), 1, UINT32_MAX)) {
		w->failed = true;
		return;
	}
	memset(w->used[of].bits + before, 0, w->used[of].capacity - before);
	w->used[of].bits[number / 8] |= (uint8_t)(1u << number % 8);
}

static int64_t kept_number(enum sweep_of of, uint32_t number)
{
	return (int64_t)number << 1 | (of == SWEEP_BUILDS);
}

static int keep(struct connection *c, int64_t id, uint32_t day, struct error *err)
{
	sqlite3_stmt *q = db_statement(c, S_KEEP, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, id);
	sqlite3_bind_int64(q, 2, day);
	return db_run(c, q, "noting what is used", err);
}

int sweep_keep(struct sweep *w, struct connection *c, enum sweep_of of, uint32_t number, uint32_t day, struct error *err)
{
	int64_t id = kept_number(of, number);
	uint64_t low = hash_u64((uint64_t)id);
	struct idmap_entry *e = number ? idmap_find(&w->kept, (uint64_t)id, low) : NULL;
	if (number == 0 || (e && e->day >= day))
		return 0;
	int failed = keep(c, id, day, err);
	if (failed)
		return failed;
	if (e)
		e->day = day;
	else
		idmap_put(&w->kept, (uint64_t)id, low, number, day);
	return 0;
}

/* --- what each pass does with the row that q stands on: 1 when it is to go --- */

static int find_cut(struct sqlite_store *s, sqlite3_stmt *q)
{
	int64_t first = sqlite3_column_int64(q, 1);
	if (first != INT64_MAX)
		sweep_day(&s->sweep, first < 0 ? 0 : (uint32_t)(first / DAY_MS));
	return 0;
}

static int is_old(struct sqlite_store *s, sqlite3_stmt *q)
{
	return sqlite3_column_int64(q, 1) < s->sweep.cut;
}

static bool is_used(const struct sqlite_store *s, enum sweep_of of, sqlite3_stmt *q)
{
	uint64_t number = (uint64_t)sqlite3_column_int64(q, 0);
	return number / 8 < s->sweep.used[of].capacity && s->sweep.used[of].bits[number / 8] & 1u << number % 8;
}

static int string_is_unused(struct sqlite_store *s, sqlite3_stmt *q)
{
	return !is_used(s, SWEEP_STRINGS, q);
}

static int build_is_unused(struct sqlite_store *s, sqlite3_stmt *q)
{
	return !is_used(s, SWEEP_BUILDS, q);
}

static int frame_is_unused(struct sqlite_store *s, sqlite3_stmt *q)
{
	return !is_used(s, SWEEP_FRAMES, q);
}

static int labels_are_unused(struct sqlite_store *s, sqlite3_stmt *q)
{
	return !is_used(s, SWEEP_LABELS, q);
}

static int use_frames(struct sqlite_store *s, sqlite3_stmt *q)
{
	struct varint_reader r = column_numbers(q, 1);
	while (r.at < r.end && !r.failed)
		sweep_mark(&s->sweep, SWEEP_FRAMES, varint_next(&r));
	return r.failed ? E_FORMAT : 0;
}

static int use_labels(struct sqlite_store *s, sqlite3_stmt *q)
{
	sweep_mark(&s->sweep, SWEEP_LABELS, (uint64_t)sqlite3_column_int64(q, 1));
	return 0;
}

/* The number plus one: see intern_labels. */
static int use_base_labels(struct sqlite_store *s, sqlite3_stmt *q)
{
	if (sqlite3_column_int64(q, 1) > 0)
		sweep_mark(&s->sweep, SWEEP_LABELS, (uint64_t)sqlite3_column_int64(q, 1) - 1);
	return 0;
}

static bool use_string(void *context, uint64_t string)
{
	struct sqlite_store *s = context;
	sweep_mark(&s->sweep, SWEEP_STRINGS, string);
	return true;
}

static int use_names(struct sqlite_store *s, sqlite3_stmt *q)
{
	sweep_mark(&s->sweep, SWEEP_BUILDS, (uint64_t)sqlite3_column_int64(q, 1));
	return frame_strings(q, 2, 3, use_string, s) ? 0 : E_FORMAT;
}

static int use_label_strings(struct sqlite_store *s, sqlite3_stmt *q)
{
	return label_strings(q, 1, use_string, s) ? 0 : E_FORMAT;
}

static int use_kept(struct sqlite_store *s, sqlite3_stmt *q)
{
	int64_t id = sqlite3_column_int64(q, 0);
	sweep_mark(&s->sweep, id & 1 ? SWEEP_BUILDS : SWEEP_STRINGS, (uint64_t)id >> 1);
	return 0;
}

/* --- the passes --- */

#define LAST INT64_MAX

/* scan: the first column is the number; ?1 the one before, ?2 how many. Those after OLD are only made when something went. */
static const struct pass {
	enum sqlite_statement scan;
	int64_t begin;
	int (*look)(struct sqlite_store *s, sqlite3_stmt *q);
	enum sqlite_statement drop;     /* STATEMENTS: nothing is dropped */
} passes[] = {
	{ S_SWEEP_SERIES, 0, find_cut, STATEMENTS },
	{ S_SWEEP_ROWS, LAST, is_old, S_DROP_ROW },
	{ S_SWEEP_KEPT, 0, is_old, S_DROP_KEPT },
#define OLD 3
	{ S_SWEEP_STACKS, 0, use_frames, STATEMENTS },
	{ S_SWEEP_ROW_LABELS, 0, use_labels, STATEMENTS },
	{ S_SWEEP_LABEL_BASES, 0, use_base_labels, STATEMENTS },
	{ S_SWEEP_FRAMES, 0, frame_is_unused, S_DROP_FRAME },
	{ S_SWEEP_LABELS, 0, labels_are_unused, S_DROP_LABELS },
	{ S_SWEEP_FRAMES, 0, use_names, STATEMENTS },
	{ S_SWEEP_LABELS, 0, use_label_strings, STATEMENTS },
	{ S_SWEEP_KEPT, 0, use_kept, STATEMENTS },
	{ S_SWEEP_STRINGS, 0, string_is_unused, S_DROP_STRING },
	{ S_SWEEP_BUILDS, 0, build_is_unused, S_DROP_BUILD },
};
#define PASSES (sizeof passes / sizeof *passes)

static int drop_one(struct connection *c, enum sqlite_statement which, int64_t number, struct error *err)
{
	static const char doing[] = "dropping what is of no use any more";
	int64_t stack = 0;
	sqlite3_stmt *q;
	if (which == S_DROP_ROW) {
		if (!(q = db_statement(c, S_GET_ROW, err)))
			return err->code;
		sqlite3_bind_int64(q, 1, number);
		int rc = db_step(c, q, doing, err);
		if (rc <= 0)
			return rc;
		stack = sqlite3_column_int64(q, 0);
		sqlite3_reset(q);
	}
	if (!(q = db_statement(c, which, err)))
		return err->code;
	sqlite3_bind_int64(q, 1, number);
	int failed = db_run(c, q, doing, err);
	return failed || !stack ? failed : drop_one(c, S_DROP_STACK, stack, err);
}

/* The first that goes: the sign, and the writer asks again for every number. */
static int begin_dropping(struct sqlite_store *s, struct error *err)
{
	translator_forget(s->translator);
	return keep(&s->writer, UNFINISHED, SWEEP_NEVER, err);
}

static int drop_all(struct sqlite_store *s, enum sqlite_statement which, const int64_t *numbers, size_t n, struct error *err)
{
	int failed = n && !s->sweep.dropped ? begin_dropping(s, err) : 0;
	for (size_t i = 0; i < n && !failed; i++)
		failed = drop_one(&s->writer, which, numbers[i], err);
	s->sweep.dropped = s->sweep.dropped || n;
	return failed;
}

/* Some of a pass. *ret_done: there was no more. */
static int look_at_some(struct sqlite_store *s, const struct pass *p, bool *ret_done, struct error *err)
{
	int64_t go[BATCH], last = s->sweep.at;
	size_t n = 0, seen = 0;
	int rc;
	sqlite3_stmt *q = db_statement(&s->writer, p->scan, err);
	if (!q)
		return err->code;
	sqlite3_bind_int64(q, 1, last);
	sqlite3_bind_int(q, 2, BATCH);
	while ((rc = db_step(&s->writer, q, "looking for what is of no use any more", err)) > 0) {
		last = sqlite3_column_int64(q, 0);
		rc = p->look(s, q);
		if (rc < 0 || s->sweep.failed) {
			rc = rc < 0 ? error_set(err, rc, "%s: damaged near number %lld; 'heapgauge store check' says more", s->path, (long long)last)
			            : error_nomem(err, "what is of use");
			break;
		}
		if (rc)
			go[n++] = last;
		seen++;
	}
	sqlite3_reset(q);
	if (rc >= 0)
		rc = drop_all(s, p->drop, go, n, err);
	if (rc < 0)
		return rc;
	s->sweep.at = last;
	*ret_done = seen < BATCH;
	return 0;
}

/* --- a step --- */

static int begin(struct sqlite_store *s, uint32_t day, struct error *err)
{
	struct sweep *w = &s->sweep;
	int64_t unfinished = 0;
	int failed = db_number(&s->writer, S_UNFINISHED_SWEEP, &unfinished, err);
	if (failed)
		return failed;
	w->pass = 1;
	w->at = passes[0].begin;
	w->cut = w->day = day;
	w->dropped = unfinished;
	w->failed = false;
	if (w->dropped)
		translator_forget(s->translator);
	return 0;
}

static int end(struct sqlite_store *s, struct error *err)
{
	struct sweep *w = &s->sweep;
	int failed = w->dropped ? drop_one(&s->writer, S_DROP_KEPT, UNFINISHED, err) : 0;
	if (failed)
		return failed;
	w->pass = 0;
	w->last_cut = w->cut;
	return 0;
}

static int next_pass(struct sqlite_store *s, struct error *err)
{
	struct sweep *w = &s->sweep;
	bool useless = !w->dropped && ((w->pass == 1 && w->cut == w->last_cut) || w->pass == OLD);
	if (useless || w->pass == PASSES)
		return end(s, err);
	w->at = passes[w->pass++].begin;
	return 0;
}

static int go_on(struct sqlite_store *s, uint32_t day, struct error *err)
{
	struct timespec began;
	int failed = s->sweep.pass ? 0 : begin(s, day, err);
	clock_gettime(CLOCK_MONOTONIC, &began);
	while (!failed && s->sweep.pass && !step_is_over(&began)) {
		bool done = false;
		failed = look_at_some(s, &passes[s->sweep.pass - 1], &done, err);
		if (!failed && done)
			failed = next_pass(s, err);
	}
	return failed;
}

/* When the transaction doesn't hold the step is made again; what is damaged would be so again, and is left for tomorrow. */
int sweep_step(struct sqlite_store *s, int64_t now_ms, bool *ret_more, struct error *err)
{
	struct sweep *w = &s->sweep;
	uint32_t day = now_ms < 0 ? 0 : (uint32_t)(now_ms / DAY_MS), day_before = w->day;
	unsigned pass = w->pass;
	int64_t at = w->at;
	bool dropped = w->dropped;
	*ret_more = false;
	if (pass == 0 && day_before == day)
		return 0;
	int failed = db_do(&s->writer, S_BEGIN_WRITE, "dropping what is of no use any more", err);
	if (!failed)
		failed = db_finish_write(s, go_on(s, day, err), err);
	if (failed == E_FORMAT || failed == E_NOMEM) {
		w->pass = 0;
	} else if (failed) {
		w->pass = pass;
		w->at = at;
		w->dropped = dropped;
		w->day = pass ? w->day : day_before;
	}
	if (!w->pass)
		forget_marks(w);
	*ret_more = !failed && w->pass;
	return failed;
}
