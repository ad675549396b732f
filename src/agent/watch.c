/*
 * How often it looks depends on what it sees: once a second where there is room, and the oftener the sooner the next threshold would be
 * reached at the speed of late. Near a limit there is no time to lose, so the usual interval between snapshots
 * doesn't hold there; only dumping itself is kept to a tenth of the time.
 */
#include "agent/watch.h"

#include <stdio.h>
#include <sys/mman.h>

#include "agent/dump.h"
#include "agent/memory.h"
#include "agent/snapshots.h"
#include "agent/usage.h"

#define TICK_MS 1000
#define TICK_LEAST_MS 20
#define PRESSURE_WINDOW_MS 2000
#define STEPS_TO_LIMIT 4                /* snapshots between the first threshold and the limit */
#define SHARE 10                        /* dumping takes at most this part of the time */

struct watch {
	const struct agent_options *options;
	struct snapshots snapshots;
	pthread_mutex_t lock;           /* of the counters */
	struct watch_counters counters;
	uint64_t rss_next;              /* resident bytes that fire */
	double limit_next;              /* part of the limit that fires */
	uint64_t allocated_last;        /* at the last snapshot */
	uint64_t stalled_us;            /* at the beginning of the window */
	int64_t stalled_ms;
	bool pressed;                   /* pressure is high and was acted on */
	int64_t last_ms, last_took_ms;  /* of the last snapshot */
	bool any;
	int64_t seen_ms;                /* the look before */
	double seen_fraction;
	double seen_rss;
};

int watch_new(const struct agent_options *o, struct watch **ret_watch, struct error *err)
{
	struct watch *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return error_nomem(err, "the watch");
	w->options = o;
	w->rss_next = o->watch_rss_bytes;
	w->limit_next = o->watch_limit_percent / 100.0;
	pthread_mutex_init(&w->lock, NULL);
	int rc = snapshots_open(&w->snapshots, o->snapshot_dir, o->snapshot_count, err);
	if (rc) {
		munmap(w, sizeof *w);
		return rc;
	}
	*ret_watch = w;
	return E_OK;
}

void watch_free(struct watch *w)
{
	if (w)
		munmap(w, sizeof *w);
}

void watch_counters(struct watch *w, struct watch_counters *ret)
{
	pthread_mutex_lock(&w->lock);
	*ret = w->counters;
	pthread_mutex_unlock(&w->lock);
}

/* --- triggers ----------------------------------------------------------------- */

static bool rss_fires(struct watch *w, const struct usage *u)
{
	uint64_t first = w->options->watch_rss_bytes;
	if (!first)
		return false;
	/* Below the first threshold again: all of them count anew. */
	if (u->rss_bytes < first - first / 16)
		w->rss_next = first;
	return u->rss_bytes >= w->rss_next;
}

static double fraction_of(const struct usage *u)
{
	return u->limit_bytes == UINT64_MAX ? 0 : (double)u->used_bytes / (double)u->limit_bytes;
}

static bool limit_fires(struct watch *w, const struct usage *u)
{
	double first = w->options->watch_limit_percent / 100.0;
	if (first > 1)
		return false;
	if (fraction_of(u) < first - 0.05)
		w->limit_next = first;
	return fraction_of(u) >= w->limit_next;
}

static bool pressure_fires(struct watch *w, const struct usage *u, int64_t now_ms)
{
	if (!w->options->watch_psi_percent || !u->has_pressure)
		return false;
	if (!w->stalled_ms || now_ms - w->stalled_ms > 4 * PRESSURE_WINDOW_MS) {
		w->stalled_ms = now_ms;
		w->stalled_us = u->stalled_us;
		return false;
	}
	if (now_ms - w->stalled_ms < PRESSURE_WINDOW_MS)
		return false;
	double percent = (double)(u->stalled_us - w->stalled_us) / 10.0 / (double)(now_ms - w->stalled_ms);
	w->stalled_ms = now_ms;
	w->stalled_us = u->stalled_us;
	bool high = percent >= w->options->watch_psi_percent, fires = high && !w->pressed;
	w->pressed = high;
	return fires;
}

static bool growth_fires(struct watch *w, uint64_t allocated)
{
	uint64_t most = w->options->watch_growth_bytes;
	if (!most)
		return false;
	/* The first look is what growth is counted from; so is a new low. */
	if (!w->allocated_last || allocated < w->allocated_last)
		w->allocated_last = allocated;
	return allocated - w->allocated_last >= most;
}

/* --- a snapshot ---------------------------------------------------------------- */

static void count(struct watch *w, const struct error *err)
{
	pthread_mutex_lock(&w->lock);
	if (err) {
		w->counters.failed++;
		snprintf(w->counters.last_error, sizeof w->counters.last_error, "%.199s", err->text);
	} else {
		w->counters.snapshots++;
		snprintf(w->counters.last, sizeof w->counters.last, "%.255s", w->snapshots.last);
	}
	pthread_mutex_unlock(&w->lock);
}

/* Its text goes to the same disk: when memory runs out is not the time to ask for more. */
static int write_snapshot(struct watch *w, const struct jemalloc *j, struct error *err)
{
	const char *spool = w->options->spool_dir;
	struct dump_options o = { .spool_dir = *spool ? spool : w->options->snapshot_dir };
	int fd = snapshots_begin(&w->snapshots, err);
	if (fd < 0)
		return HG_IO;
	int rc = dump_pprof(j, &o, dump_to_fd, &fd, NULL, err);
	if (rc) {
		snapshots_abort(&w->snapshots, fd);
		return rc;
	}
	return snapshots_commit(&w->snapshots, fd, err) ? HG_IO : HG_OK;
}

static int take_snapshot(struct watch *w)
{
	const struct jemalloc *j;
	struct error err = { 0 };
	int rc = jemalloc_ready(&j);
	if (rc == HG_OK)
		rc = dump_lock();
	if (rc == HG_BUSY)
		return rc;
	if (rc == HG_OK) {
		rc = write_snapshot(w, j, &err);
		dump_unlock();
	}
	if (rc && !err.code)
		error_set(&err, E_IO, "%s", jemalloc_advice(rc));
	count(w, rc ? &err : NULL);
	return rc;
}

/* --- looking -------------------------------------------------------------------- */

/* What has just been photographed doesn't fire again. */
static void arm(struct watch *w, const struct usage *u, uint64_t allocated)
{
	uint64_t first = w->options->watch_rss_bytes;
	double begin = w->options->watch_limit_percent / 100.0, step = (1 - begin) / STEPS_TO_LIMIT;
	while (first && w->rss_next <= u->rss_bytes)
		w->rss_next += first / 8 + 1;
	while (begin <= 1 && w->limit_next <= fraction_of(u))
		w->limit_next += step > 0.01 ? step : 0.01;
	w->allocated_last = allocated;
}

/* When to look again: a quarter of the time that is left to the next threshold, as fast as it has grown since the last look. */
static unsigned next_look(struct watch *w, const struct usage *u, int64_t now_ms)
{
	double left_ms = TICK_MS, passed = (double)(now_ms - w->seen_ms);
	double grown = fraction_of(u) - w->seen_fraction, rss = (double)u->rss_bytes - w->seen_rss;
	if (w->seen_ms && passed > 0 && grown > 0 && w->limit_next <= 1)
		left_ms = (w->limit_next - fraction_of(u)) / grown * passed / 4;
	if (w->seen_ms && passed > 0 && rss > 0 && w->options->watch_rss_bytes) {
		double to_rss = ((double)w->rss_next - (double)u->rss_bytes) / rss * passed / 4;
		left_ms = to_rss < left_ms ? to_rss : left_ms;
	}
	w->seen_ms = now_ms;
	w->seen_fraction = fraction_of(u);
	w->seen_rss = (double)u->rss_bytes;
	return left_ms < TICK_LEAST_MS ? TICK_LEAST_MS : left_ms > TICK_MS ? TICK_MS : (unsigned)left_ms;
}

static bool may_take(const struct watch *w, bool urgent, int64_t now_ms)
{
	int64_t since = now_ms - w->last_ms;
	if (!w->any)
		return true;
	return since >= w->last_took_ms * SHARE && (urgent || since >= (int64_t)w->options->snapshot_interval_s * 1000);
}

unsigned watch_tick(struct watch *w, int64_t now_ms)
{
	struct usage u;
	const struct jemalloc *j;
	uint64_t allocated = 0;
	usage_read(&u);
	if (w->options->watch_growth_bytes && jemalloc_find(&j) == HG_OK) {
		jemalloc_refresh(j);
		allocated = jemalloc_number(j, "stats.allocated");
	}
	bool urgent = limit_fires(w, &u);
	bool fires = urgent;
	fires |= rss_fires(w, &u);
	fires |= pressure_fires(w, &u, now_ms);
	fires |= growth_fires(w, allocated);
	if (fires && may_take(w, urgent, now_ms) && take_snapshot(w) != HG_BUSY) {
		w->any = true;
		w->last_ms = now_ms;
		w->last_took_ms = agent_now_ms() - now_ms;
		arm(w, &u, allocated);
	}
	return next_look(w, &u, agent_now_ms());
}
