/*
 * A look at everything costs some 0.1 ms: one a second, and whenever the resident size of this process alone, which costs next to nothing to read,
 * says that a threshold may have been passed since. How often that is read depends on how soon the threshold could
 * be reached: at the speed of late, but never believing that a process could not begin to grow by FASTEST at once. While it grows slowly
 * or not at all ten readings a second must do, so that a program that does nothing costs nothing.
 */
#include "agent/watch.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/dump.h"
#include "agent/memory.h"
#include "agent/snapshots.h"

#define LOOK_MS 1000                    /* between looks at everything */
#define LOOK_LEAST_MS 20
#define LOOK_CALM_MS 100                /* the least while a threshold is CALM_MS away, at the speed of late */
#define CALM_MS 3000
#define FASTEST ((double)(1 << 20))     /* bytes in a millisecond */
#define PRESSURE_WINDOW_MS 2000
#define LIMIT_REARM 0.05                /* below the first threshold */
#define LIMIT_LAST 0.99                 /* no threshold is above it */
#define RSS_STEP_LEAST ((uint64_t)1 << 20)
#define PATIENCE_MS 1000                /* for a dump of the program's own */
#define SHARE 10                        /* dumping takes at most this part of the time */
#define SAVED_MAX 8                     /* snapshots near a limit that need not wait */

enum reason { LIMIT = 1, RSS = 2, PRESSURE = 4, GROWTH = 8 };

struct watch {
	const struct agent_options *options;
	struct snapshots snapshots;
	struct usage_rss rss;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	/* Under the lock: */
	bool stop;
	struct watch_counters counters;

	/* The thread's own. Thresholds that fire next: */
	uint64_t rss_next;
	double limit_next;              /* part of the limit */
	uint64_t allocated_base;        /* growth counts from here */
	bool has_base;
	/* Pressure: */
	uint64_t stalled_us;            /* at the beginning of the window */
	int64_t window_ms;
	bool window_begun, pressed;     /* pressed: it is high, and there is a snapshot of that */
	bool pressure_due;
	/* What was seen: */
	struct usage usage;             /* at the last full look */
	int64_t full_ms, seen_ms;       /* when that was; the last reading of rss */
	bool any_look;
	uint64_t seen_rss;
	double speed;                   /* bytes in a millisecond, of late */
	/* What was done: */
	bool tried;
	int64_t tried_ms, pause_ms;     /* the last try, and the pause after it */
	int64_t due_ms;                 /* when what is due may be tried; INT64_MAX: nothing is */
	double saved;
	int64_t saved_ms;
};

static double first_limit(const struct watch *w)
{
	return w->options->watch_limit_percent / 100.0;
}

int watch_new(const struct agent_options *o, struct watch **ret_watch, struct error *err)
{
	pthread_condattr_t attributes;
	struct watch *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return error_nomem(err, "the watch");
	*w = (struct watch){ .options = o, .rss_next = o->watch_rss_bytes, .saved = SAVED_MAX, .due_ms = INT64_MAX };
	w->limit_next = first_limit(w);
	w->counters.reason = "";
	int rc = snapshots_open(&w->snapshots, o->snapshot_dir, o->snapshot_count, err);
	if (rc) {
		munmap(w, sizeof *w);
		return rc;
	}
	usage_rss_open(&w->rss);
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&w->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	*ret_watch = w;
	return E_OK;
}

void watch_after_fork(struct watch *w)
{
	if (w)
		usage_rss_close(&w->rss);
}

void watch_free(struct watch *w)
{
	watch_after_fork(w);
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

static double fraction_of(const struct usage *u)
{
	const struct usage_limit *l = usage_fullest(u);
	return l ? usage_fraction(l) : 0;
}

static bool limit_fires(struct watch *w)
{
	double now = fraction_of(&w->usage), first = first_limit(w);
	if (first > 1)
		return false;
	if (now < first - LIMIT_REARM)
		w->limit_next = first;
	return now >= w->limit_next;
}

static bool rss_fires(struct watch *w)
{
	uint64_t first = w->options->watch_rss_bytes, now = w->usage.rss_bytes;
	if (!first)
		return false;
	/* Below the first threshold again: all of them count anew. */
	if (now < first - first / 16)
		w->rss_next = first;
	return now >= w->rss_next;
}

/* Once for each time it gets high. */
static bool pressure_fires(struct watch *w, int64_t now_ms)
{
	const struct usage *u = &w->usage;
	int64_t passed = now_ms - w->window_ms;
	if (!w->options->watch_psi_percent || !u->has_pressure)
		return false;
	if (w->window_begun && passed < PRESSURE_WINDOW_MS)
		return w->pressure_due;
	if (w->window_begun && u->stalled_us >= w->stalled_us) {
		double percent = (double)(u->stalled_us - w->stalled_us) / 10.0 / (double)passed;
		bool high = percent >= w->options->watch_psi_percent;
		w->pressed = w->pressed && high;
		w->pressure_due = high && !w->pressed;
	}
	w->window_begun = true;
	w->window_ms = now_ms;
	w->stalled_us = u->stalled_us;
	return w->pressure_due;
}

static bool growth_fires(struct watch *w, uint64_t allocated)
{
	uint64_t most = w->options->watch_growth_bytes;
	if (!most)
		return false;
	/* The first look is what growth is counted from; so is a new low. */
	if (!w->has_base || allocated < w->allocated_base) {
		w->allocated_base = allocated;
		w->has_base = true;
	}
	return allocated - w->allocated_base >= most;
}

static unsigned reasons(struct watch *w, uint64_t allocated, int64_t now_ms)
{
	return (limit_fires(w) ? LIMIT : 0) | (rss_fires(w) ? RSS : 0) | (pressure_fires(w, now_ms) ? PRESSURE : 0) |
	       (growth_fires(w, allocated) ? GROWTH : 0);
}

static const char *reason_name(unsigned reasons)
{
	return reasons & LIMIT ? "limit" : reasons & RSS ? "rss" : reasons & PRESSURE ? "pressure" : "growth";
}

/* What has just been photographed doesn't fire again. */
static void arm(struct watch *w, uint64_t allocated)
{
	uint64_t rss = w->usage.rss_bytes, step = w->options->watch_rss_bytes / 8;
	double now = fraction_of(&w->usage);
	step = step < RSS_STEP_LEAST ? RSS_STEP_LEAST : step;
	if (rss >= w->rss_next)
		w->rss_next += ((rss - w->rss_next) / step + 1) * step;
	if (now >= w->limit_next)
		w->limit_next = now >= LIMIT_LAST ? 2 : (1 + now) / 2 > LIMIT_LAST ? LIMIT_LAST : (1 + now) / 2;
	w->allocated_base = allocated;
	w->pressed |= w->pressure_due;
	w->pressure_due = false;
}

/* --- a snapshot ---------------------------------------------------------------- */

/* Its text goes to the same disk: when memory runs out is not the time to ask for more. */
static int write_snapshot(struct watch *w, const struct jemalloc *j, struct error *err)
{
	const char *spool = w->options->spool_dir;
	struct dump_options o = { .spool_dir = *spool ? spool : w->snapshots.unnamed ? w->snapshots.folder : NULL };
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

static int take_snapshot(struct watch *w, struct error *err)
{
	const struct jemalloc *j;
	int rc = jemalloc_ready(&j);
	if (rc == HG_OK)
		rc = dump_lock_within(PATIENCE_MS);
	if (rc == HG_OK) {
		rc = write_snapshot(w, j, err);
		dump_unlock();
	}
	if (rc && rc != HG_BUSY && !err->text[0])
		error_set(err, E_IO, "%s", jemalloc_advice(rc));
	return rc;
}

static void count(struct watch *w, const char *reason, double ms, const char *failure)
{
	pthread_mutex_lock(&w->lock);
	struct watch_counters *c = &w->counters;
	c->reason = reason;
	c->last_ms = ms;
	c->failed += failure != NULL;
	c->snapshots += failure == NULL;
	snprintf(c->last_error, sizeof c->last_error, "%.199s", failure ? failure : "");
	snprintf(c->last, sizeof c->last, "%.255s", w->snapshots.last);
	pthread_mutex_unlock(&w->lock);
}

static int64_t interval_ms(const struct watch *w)
{
	return (int64_t)w->options->snapshot_interval_s * 1000;
}

/* When one may be tried. A failure is repeated at leisure, whatever the reason. */
static int64_t allowed_ms(const struct watch *w, bool urgent)
{
	return !w->tried || (urgent && w->saved >= 1) ? 0 : w->tried_ms + w->pause_ms;
}

/* The time that has passed saves up for the next emergency. */
static void save_up(struct watch *w, int64_t now_ms)
{
	if (w->tried && w->pause_ms > 0)
		w->saved += (double)(now_ms - w->saved_ms) / (double)w->pause_ms;
	w->saved = w->saved > SAVED_MAX ? SAVED_MAX : w->saved;
	w->saved_ms = now_ms;
}

static void try_snapshot(struct watch *w, unsigned why, uint64_t allocated, int64_t now_ms)
{
	struct error err = { 0 };
	w->due_ms = allowed_ms(w, why & LIMIT);
	if (w->due_ms > now_ms)
		return;
	int rc = take_snapshot(w, &err);
	if (rc == HG_BUSY) {
		w->due_ms = now_ms + LOOK_LEAST_MS;
		return;
	}
	int64_t took_ms = agent_now_ms() - now_ms;
	w->tried = true;
	w->tried_ms = now_ms;
	w->pause_ms = interval_ms(w) > took_ms * SHARE ? interval_ms(w) : took_ms * SHARE;
	w->saved = rc ? 0 : w->saved >= 1 ? w->saved - 1 : 0;
	w->due_ms = rc ? w->tried_ms + w->pause_ms : INT64_MAX;
	if (rc == HG_OK)
		arm(w, allocated);
	count(w, reason_name(why), (double)took_ms, rc ? err.text : NULL);
}

/* --- looking -------------------------------------------------------------------- */

/* How many bytes this process may still grow by until a threshold that isn't yet passed is, as of the last full look. */
static double room(const struct watch *w)
{
	const struct usage *u = &w->usage;
	double room = 1e18, rss = (double)w->rss_next - (double)u->rss_bytes;
	for (size_t i = 0; i < u->n_limits && w->limit_next <= 1; i++) {
		double limit = w->limit_next * (double)u->limits[i].limit_bytes - (double)u->limits[i].used_bytes;
		room = limit > 0 && limit < room ? limit : room;
	}
	if (w->options->watch_rss_bytes && rss > 0 && rss < room)
		room = rss;
	return room;
}

/* The next reading at half of the time that is left. */
static unsigned next_look(const struct watch *w, int64_t now_ms)
{
	double left = room(w) - ((double)w->seen_rss - (double)w->usage.rss_bytes);
	double ms = left / (w->speed > FASTEST ? w->speed : FASTEST) / 2;
	int64_t full_ms = w->full_ms + LOOK_MS, latest_ms = (w->due_ms < full_ms ? w->due_ms : full_ms) - now_ms;
	double least = left > w->speed * CALM_MS ? LOOK_CALM_MS : LOOK_LEAST_MS;
	ms = ms < least ? least : ms;
	ms = ms > (double)latest_ms ? (double)latest_ms : ms;
	return ms < LOOK_LEAST_MS ? LOOK_LEAST_MS : (unsigned)ms;
}

static void read_rss(struct watch *w, uint64_t rss, int64_t now_ms)
{
	if (w->any_look && now_ms > w->seen_ms)
		w->speed = ((double)rss - (double)w->seen_rss) / (double)(now_ms - w->seen_ms);
	w->seen_rss = rss;
	w->seen_ms = now_ms;
}

static bool needs_full_look(struct watch *w, int64_t now_ms)
{
	if (!w->any_look || now_ms - w->full_ms >= LOOK_MS || now_ms >= w->due_ms)
		return true;
	read_rss(w, usage_rss_read(&w->rss), now_ms);
	return (double)w->seen_rss - (double)w->usage.rss_bytes >= room(w);
}

unsigned watch_tick(struct watch *w)
{
	const struct jemalloc *j;
	int64_t now_ms = agent_now_ms();
	uint64_t allocated = 0;
	if (!needs_full_look(w, now_ms))
		return next_look(w, now_ms);
	usage_read(&w->usage);
	read_rss(w, w->usage.rss_bytes, now_ms);
	w->full_ms = now_ms;
	w->any_look = true;
	if (w->options->watch_growth_bytes && jemalloc_find(&j) == HG_OK) {
		jemalloc_refresh(j);
		allocated = jemalloc_number(j, "stats.allocated");
	}
	pthread_mutex_lock(&w->lock);
	w->counters.usage = w->usage;
	pthread_mutex_unlock(&w->lock);
	save_up(w, now_ms);
	unsigned why = reasons(w, allocated, now_ms);
	w->due_ms = INT64_MAX;
	if (why)
		try_snapshot(w, why, allocated, now_ms);
	return next_look(w, agent_now_ms());
}

/* --- the thread ------------------------------------------------------------------ */

static struct timespec time_in(unsigned ms)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

void *watch_main(void *watch)
{
	struct watch *w = watch;
	prctl(PR_SET_NAME, "heapgauge-watch");
	for (;;) {
		struct timespec until = time_in(watch_tick(w));
		int rc = 0;
		pthread_mutex_lock(&w->lock);
		while (!w->stop && rc == 0)
			rc = pthread_cond_timedwait(&w->wake, &w->lock, &until);
		bool stop = w->stop;
		pthread_mutex_unlock(&w->lock);
		if (stop)
			return NULL;
	}
}

void watch_stop(struct watch *w)
{
	pthread_mutex_lock(&w->lock);
	w->stop = true;
	pthread_cond_broadcast(&w->wake);
	pthread_mutex_unlock(&w->lock);
}
