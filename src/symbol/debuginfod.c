/*
 * libdebuginfod does the work; this keeps it in bounds. Its progress function is called about once a second also while
 * nothing comes, and ends the transfer when the budget is used up. One transfer at a time: servers are asked by the whole
 * command, and the budget is the command's.
 */
#include "symbol/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

#define LIBRARY "libdebuginfod.so.1"
#define ABSENT_MAX ((size_t)1 << 16)
#define BUILD_ID_HEX_MAX 128

typedef void *client_fn(void);
typedef void end_fn(void *client);
typedef int find_fn(void *client, const unsigned char *build_id, int length, char **ret_path);
typedef int progress_fn(void *client, long done, long total);
typedef void set_progress_fn(void *client, progress_fn *f);
typedef void set_data_fn(void *client, void *data);
typedef void *data_fn(void *client);

/* Asked in vain. */
struct absent {
	enum debuginfod_kind kind;
	char build_id[BUILD_ID_HEX_MAX + 1];
};

struct debuginfod {
	pthread_mutex_t lock;                /* guards all that follows but options */
	struct debuginfod_options options;
	bool loaded, missing;                /* the library */
	void *library, *client;
	end_fn *end;
	find_fn *find[2];                    /* by kind */
	data_fn *data;
	int64_t left_ms, deadline_ms;
	bool used_up;
	int refusal;                         /* errno of the first failure other than "no server has it" */
	const char *what;
	struct absent *absent;               size_t n_absent, absent_capacity;
};

/* dlsym() of a client's data, for its progress function; the same in every client. */
static data_fn *_Atomic client_data;

static int64_t now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

struct debuginfod *debuginfod_new(const struct debuginfod_options *o)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	if (!urls || !urls[strspn(urls, " \t\n")])
		return NULL;
	struct debuginfod *d = calloc(1, sizeof *d);
	if (!d)
		return NULL;
	if (o)
		d->options = *o;
	d->left_ms = d->options.budget_ms ? d->options.budget_ms : DEBUGINFOD_BUDGET_MS;
	pthread_mutex_init(&d->lock, NULL);
	return d;
}

void debuginfod_free(struct debuginfod *d)
{
	if (!d)
		return;
	if (d->client)
		d->end(d->client);
	/* The library stays loaded: libcurl below it has threads and handlers of its own. */
	pthread_mutex_destroy(&d->lock);
	free(d->absent);
	free(d);
}

/* --- the library --- */

static int progress(void *client, long done, long total)
{
	struct debuginfod *d = client_data(client);
	if (now_ms() >= d->deadline_ms)
		return 1;
	/* Without a total, done only counts the calls. */
	bool known = total > 0 && done >= 0;
	if (d->options.progress)
		d->options.progress(d->options.context, d->what, known ? (uint64_t)done : 0, known ? (uint64_t)total : 0);
	return 0;
}

static bool load(struct debuginfod *d)
{
	if (d->loaded)
		return !d->missing;
	d->loaded = d->missing = true;
	d->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!d->library)
		return false;
	client_fn *begin = (client_fn *)dlsym(d->library, "debuginfod_begin");
	set_progress_fn *set_progress = (set_progress_fn *)dlsym(d->library, "debuginfod_set_progressfn");
	set_data_fn *set_data = (set_data_fn *)dlsym(d->library, "debuginfod_set_user_data");
	d->end = (end_fn *)dlsym(d->library, "debuginfod_end");
	d->find[DEBUGINFOD_DEBUG] = (find_fn *)dlsym(d->library, "debuginfod_find_debuginfo");
	d->find[DEBUGINFOD_EXECUTABLE] = (find_fn *)dlsym(d->library, "debuginfod_find_executable");
	client_data = (data_fn *)dlsym(d->library, "debuginfod_get_user_data");
	if (!begin || !set_progress || !set_data || !client_data || !d->end || !d->find[0] || !d->find[1])
		return false;
	d->client = begin();
	if (!d->client)
		return false;
	set_data(d->client, d);
	set_progress(d->client, progress);
	d->missing = false;
	return true;
}

/* --- asking --- */

static bool is_absent(const struct debuginfod *d, enum debuginfod_kind kind, const char *build_id)
{
	for (size_t i = 0; i < d->n_absent; i++)
		if (d->absent[i].kind == kind && strcmp(d->absent[i].build_id, build_id) == 0)
			return true;
	return false;
}

static void note_absent(struct debuginfod *d, enum debuginfod_kind kind, const char *build_id)
{
	struct absent *a = ARRAY_PUSH(d->absent, d->n_absent, d->absent_capacity, ABSENT_MAX);
	if (!a)
		return;
	a->kind = kind;
	snprintf(a->build_id, sizeof a->build_id, "%s", build_id);
}

/* Hands the path on only when it fits. */
static bool give_path(const char *path, char *ret_path, size_t size)
{
	size_t n = strlen(path);
	if (n >= size)
		return false;
	memcpy(ret_path, path, n + 1);
	return true;
}

static int ask(struct debuginfod *d, enum debuginfod_kind kind, const char *build_id, char *ret_path, size_t size)
{
	char *path = NULL;
	int64_t start = now_ms();
	d->what = kind == DEBUGINFOD_DEBUG ? "fetching debug information" : "fetching a binary";
	d->deadline_ms = start + d->left_ms;
	int fd = d->find[kind](d->client, (const unsigned char *)build_id, 0, &path);
	int64_t took = now_ms() - start;
	if (d->options.progress)
		d->options.progress(d->options.context, d->what, UINT64_MAX, UINT64_MAX);
	d->left_ms -= took;
	d->used_up = fd < 0 && d->left_ms <= 0;
	if (fd < 0 && !d->used_up && fd != -ENOENT && fd != -ENOSYS && !d->refusal)
		d->refusal = -fd;
	if (fd >= 0 && (fcntl(fd, F_SETFD, FD_CLOEXEC) || !path || !give_path(path, ret_path, size))) {
		close(fd);
		fd = -1;
	}
	free(path);
	return fd < 0 ? -1 : fd;
}

int debuginfod_open(struct debuginfod *d, enum debuginfod_kind kind, const char *build_id, char *ret_path, size_t size)
{
	size_t length = strlen(build_id);
	if (!d || length == 0 || length > BUILD_ID_HEX_MAX || strspn(build_id, "0123456789abcdef") != length)
		return -1;
	int fd = -1;
	pthread_mutex_lock(&d->lock);
	if (!d->used_up && d->left_ms > 0 && load(d) && !is_absent(d, kind, build_id)) {
		fd = ask(d, kind, build_id, ret_path, size);
		if (fd < 0)
			note_absent(d, kind, build_id);
	} else if (d->left_ms <= 0) {
		d->used_up = true;
	}
	pthread_mutex_unlock(&d->lock);
	return fd;
}

void debuginfod_warnings(struct debuginfod *d, struct buf *warnings)
{
	if (!d || !warnings)
		return;
	pthread_mutex_lock(&d->lock);
	if (d->missing)
		buf_adds(warnings, "DEBUGINFOD_URLS is set, but " LIBRARY " is not installed (Debian: libdebuginfod1, Fedora: "
		                   "elfutils-debuginfod-client); no debug information was fetched\n");
	else if (d->used_up)
		buf_adds(warnings, "the servers of DEBUGINFOD_URLS are too slow; some names are missing or have "
		                   "no lines; run it again to go on, or use --offline\n");
	else if (d->refusal)
		buf_printf(warnings, "the servers of DEBUGINFOD_URLS could not be asked: %s; use --offline to leave them alone\n",
		           strerror(d->refusal));
	pthread_mutex_unlock(&d->lock);
}
