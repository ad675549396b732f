/*
 * pid: targets without an endpoint. Attaching waits, for a safe moment of the process, then for its dump, so it has a thread, which takes
 * one after the other. What it may take beside the dump, resident size and start time, is read here as if it came from /metrics.
 */
#include "record/recorder_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"

#define WAITING_MAX 64

struct attaching {
	struct recorder *r;
	pthread_t thread;
	pthread_mutex_t lock;               /* of what follows */
	pthread_cond_t wake;
	struct target *waiting[WAITING_MAX];
	size_t first, n;
	struct target *current;             /* the one at hand */
	bool stop;
};

/* --- /proc --- */

static size_t read_small(const char *path, char *to, size_t room)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, room - 1);
	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* The n-th word, from 0. */
static bool number_at(const char *text, unsigned n, uint64_t *ret)
{
	for (; n; n--) {
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	return text_parse_u64(text, strspn(text, "0123456789"), 10, ret);
}

/* When the machine started, in seconds since 1970. */
static bool boot_time(uint64_t *ret)
{
	const size_t room = (size_t)1 << 20;
	char *text = malloc(room), *line = NULL;
	if (text && read_small("/proc/stat", text, room))
		line = strstr(text, "\nbtime ");
	bool found = line && text_parse_u64(line + 7, strspn(line + 7, "0123456789"), 10, ret);
	free(text);
	return found;
}

void process_metrics(uint64_t pid, struct buf *to)
{
	char path[64], text[4096];
	uint64_t pages, ticks, booted;
	snprintf(path, sizeof path, "/proc/%llu/statm", (unsigned long long)pid);
	if (read_small(path, text, sizeof text) && number_at(text, 1, &pages))
		buf_printf(to, "\nprocess_resident_memory_bytes %llu\n", (unsigned long long)pages * (uint64_t)sysconf(_SC_PAGESIZE));
	snprintf(path, sizeof path, "/proc/%llu/stat", (unsigned long long)pid);
	read_small(path, text, sizeof text);
	/* The name may hold blanks and brackets: what follows the last bracket is numbers. */
	char *after = strrchr(text, ')');
	if (after && after[1] && number_at(after + 2, 19, &ticks) && boot_time(&booted)) {
		uint64_t hundredths = ticks * 100 / (uint64_t)sysconf(_SC_CLK_TCK);
		buf_printf(to, "process_start_time_seconds %llu.%02llu\n", (unsigned long long)(booted + hundredths / 100),
		           (unsigned long long)(hundredths % 100));
	}
}

/* --- the thread --- */

static void attach_to(struct recorder *r, struct target *x)
{
	struct error reason = { 0 };
	int64_t began_ms = clock_ms(), wall_ms = clock_wall_ms();
	struct item *i = item_new(&r->counters.body_bytes);
	if (!i) {
		recorder_failed(r, x, wall_ms, began_ms, FAILED_SHED, "no memory for a dump");
		return;
	}
	i->target = target_take(x);
	i->time_ms = wall_ms;
	i->began_ms = began_ms;
	i->body_limit = BUF_MAX_DEFAULT;
	i->body.max = (size_t)BODY_BYTES_MAX;
	if (r->settings.processes.dump(x->pid, &i->body, &reason)) {
		recorder_failed(r, x, wall_ms, began_ms, FAILED_PROCESS, reason.text);
		item_free(i);
		return;
	}
	process_metrics(x->pid, &i->metrics);
	item_count(i);
	recorder_received(r, i);
}

static void *attach_forever(void *context)
{
	struct attaching *a = context;
	pthread_mutex_lock(&a->lock);
	while (!a->stop) {
		if (!a->n) {
			pthread_cond_wait(&a->wake, &a->lock);
			continue;
		}
		struct target *x = a->current = a->waiting[a->first];
		a->first = (a->first + 1) % WAITING_MAX;
		a->n--;
		pthread_mutex_unlock(&a->lock);
		attach_to(a->r, x);
		target_release(x);
		pthread_mutex_lock(&a->lock);
		a->current = NULL;
	}
	pthread_mutex_unlock(&a->lock);
	return NULL;
}

bool attaching_add(struct attaching *a, struct target *x)
{
	pthread_mutex_lock(&a->lock);
	bool there = a->current == x, fits = a->n < WAITING_MAX && a->r->settings.processes.dump;
	for (size_t i = 0; i < a->n; i++)
		there |= a->waiting[(a->first + i) % WAITING_MAX] == x;
	if (fits && !there) {
		a->waiting[(a->first + a->n++) % WAITING_MAX] = target_take(x);
		pthread_cond_signal(&a->wake);
	}
	pthread_mutex_unlock(&a->lock);
	return fits || there;
}

int attaching_start(struct recorder *r, struct error *err)
{
	struct attaching *a = calloc(1, sizeof *a);
	if (!a)
		return error_nomem(err, "a thread");
	a->r = r;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->wake, NULL);
	int code = pthread_create(&a->thread, NULL, attach_forever, a);
	if (code) {
		free(a);
		return error_set(err, E_IO, "no thread can be started: %s", strerror(code));
	}
	r->attaching = a;
	return E_OK;
}

void attaching_stop(struct attaching *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->stop = true;
	pthread_cond_signal(&a->wake);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	for (size_t i = 0; i < a->n; i++)
		target_release(a->waiting[(a->first + i) % WAITING_MAX]);
	pthread_cond_destroy(&a->wake);
	pthread_mutex_destroy(&a->lock);
	free(a);
}
