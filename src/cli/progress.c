/*
 * The drawing thread wakes five times a second and draws only after the first
 * second. Everything it shares with the work lies under one lock, except the
 * counter, which is relaxed: a late figure on a progress line harms nobody.
 */
#include "cli/progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/text.h"

#define QUIET_MS 1000
#define TICK_MS 200

static struct {
	pthread_mutex_t lock;
	pthread_cond_t wake;
	pthread_t thread;
	bool running;           /* only the main thread looks */
	bool stop;              /* lock */
	bool drawn;             /* lock */
	char what[80];          /* lock */
	uint64_t total;         /* lock */
	_Atomic uint64_t done;  /* relaxed */
} progress = { .lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER };

static void draw(void)
{
	uint64_t done = atomic_load_explicit(&progress.done, memory_order_relaxed);
	if (progress.total)
		fprintf(stderr, "\r\033[K%s … %u %%", progress.what,
		        done < progress.total ? (unsigned)((double)done * 100 / (double)progress.total) : 99);
	else
		fprintf(stderr, "\r\033[K%s …", progress.what);
	fflush(stderr);
	progress.drawn = true;
}

static void *progress_main(void *unused)
{
	(void)unused;
	struct timespec next;
	clock_gettime(CLOCK_REALTIME, &next);
	long wait_ms = QUIET_MS;
	pthread_mutex_lock(&progress.lock);
	while (!progress.stop) {
		next.tv_nsec += wait_ms * 1000000;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		while (!progress.stop &&
		       pthread_cond_timedwait(&progress.wake, &progress.lock, &next) == 0) {
		}
		if (!progress.stop)
			draw();
		wait_ms = TICK_MS;
	}
	pthread_mutex_unlock(&progress.lock);
	return NULL;
}

/* Without the terminal's signals: those belong to the main thread. */
static void start(void)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	progress.stop = false;
	progress.running = pthread_create(&progress.thread, NULL, progress_main, NULL) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_phase(const char *what, uint64_t total)
{
	if (!isatty(STDERR_FILENO))
		return;
	struct buf shown;
	buf_init(&shown, 4096);
	text_add_terminal(&shown, what, strnlen(what, 1000));
	pthread_mutex_lock(&progress.lock);
	snprintf(progress.what, sizeof progress.what, "%s", shown.data ? shown.data : "");
	progress.total = total;
	atomic_store_explicit(&progress.done, 0, memory_order_relaxed);
	pthread_mutex_unlock(&progress.lock);
	buf_finish(&shown);
	if (!progress.running)
		start();
}

void progress_set(uint64_t done)
{
	atomic_store_explicit(&progress.done, done, memory_order_relaxed);
}

void progress_stop(void)
{
	if (!progress.running)
		return;
	pthread_mutex_lock(&progress.lock);
	progress.stop = true;
	pthread_cond_signal(&progress.wake);
	pthread_mutex_unlock(&progress.lock);
	pthread_join(progress.thread, NULL);
	progress.running = false;
	if (progress.drawn)
		fputs("\r\033[K", stderr);
	progress.drawn = false;
}
