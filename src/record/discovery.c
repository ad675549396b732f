#include "record/discovery.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/memory.h"
#include "record/recorder_private.h"

#define LOOK_MS 2000
#define FILES_MAX 10000
#define FILE_BYTES_MAX ((size_t)256 << 20)

/* One file of one job. */
struct file {
	const struct config_job *job;
	char *path;
	int64_t refresh_ms, read_ms;        /* CLOCK_MONOTONIC */
	struct timespec changed;
	off_t bytes;
	ino_t inode;
	bool seen;                          /* in this look */
	struct arena arena;
	struct config_groups groups;
};

struct discovery {
	const struct config *config;
	struct file *files;
	size_t n, capacity;
	struct targets_found *found;        /* of files, in their order */
	size_t found_capacity;
	int64_t look_ms;                    /* the next one; 0: now */
};

int discovery_new(const struct config *c, struct discovery **ret, struct error *err)
{
	struct discovery *d = calloc(1, sizeof *d);
	if (!d)
		return error_nomem(err, "discovery");
	d->config = c;
	*ret = d;
	return E_OK;
}

static void file_finish(struct file *f)
{
	free(f->path);
	arena_finish(&f->arena);
}

void discovery_free(struct discovery *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++)
		file_finish(&d->files[i]);
	free(d->files);
	free(d->found);
	free(d);
}

static struct file *find(struct discovery *d, const struct config_job *job, const char *path)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->files[i].job == job && strcmp(d->files[i].path, path) == 0)
			return &d->files[i];
	char *copy = strdup(path);
	struct file *f = copy ? ARRAY_PUSH(d->files, d->n, d->capacity, FILES_MAX) : NULL;
	if (!f) {
		free(copy);
		return NULL;
	}
	*f = (struct file){ .job = job, .path = copy };
	arena_init(&f->arena, FILE_BYTES_MAX);
	return f;
}

static bool is_unchanged(const struct file *f, const struct stat *st, int64_t now_ms)
{
	return f->read_ms && f->bytes == st->st_size && f->inode == st->st_ino && f->changed.tv_sec == st->st_mtim.tv_sec &&
	       f->changed.tv_nsec == st->st_mtim.tv_nsec && now_ms - f->read_ms < f->refresh_ms;
}

/* True: what it says may be something else now. */
static bool look_at(struct file *f, struct recorder *r, int64_t now_ms)
{
	struct config_groups groups;
	struct arena arena;
	struct error reason;
	struct stat st;
	f->seen = true;
	if (stat(f->path, &st) || is_unchanged(f, &st, now_ms))
		return false;
	bool same_version = f->read_ms && f->bytes == st.st_size && f->inode == st.st_ino && f->changed.tv_sec == st.st_mtim.tv_sec &&
	                    f->changed.tv_nsec == st.st_mtim.tv_nsec;
	f->read_ms = now_ms;
	f->bytes = st.st_size;
	f->inode = st.st_ino;
	f->changed = st.st_mtim;
	arena_init(&arena, FILE_BYTES_MAX);
	if (config_read_groups(f->path, &arena, &groups, &reason)) {
		arena_finish(&arena);
		if (!same_version) {
			count(&r->counters.discovery_failures, 1);
			recorder_say(r, "%s; the targets it had before stay", reason.text);
		}
		return false;
	}
	arena_finish(&f->arena);
	f->arena = arena;
	f->groups = groups;
	return true;
}

static bool look_for(struct discovery *d, struct recorder *r, const struct config_job *job, const struct config_files *files, int64_t now_ms)
{
	bool changed = false;
	for (size_t i = 0; i < files->patterns.n; i++) {
		glob_t paths;
		if (glob(files->patterns.items[i], 0, NULL, &paths))
			continue;
		for (size_t k = 0; k < paths.gl_pathc; k++) {
			struct file *f = find(d, job, paths.gl_pathv[k]);
			if (!f)
				continue;
			f->refresh_ms = files->refresh_ms;
			changed |= look_at(f, r, now_ms);
		}
		globfree(&paths);
	}
	return changed;
}

/* Those that are gone. */
static bool forget(struct discovery *d)
{
	size_t kept = 0;
	for (size_t i = 0; i < d->n; i++) {
		if (d->files[i].seen)
			d->files[kept++] = d->files[i];
		else
			file_finish(&d->files[i]);
	}
	bool changed = kept != d->n;
	d->n = kept;
	return changed;
}

bool discovery_look(struct discovery *d, struct recorder *r, int64_t now_ms)
{
	bool changed = false;
	if (d->look_ms && now_ms < d->look_ms)
		return false;
	d->look_ms = now_ms + LOOK_MS;
	for (size_t i = 0; i < d->n; i++)
		d->files[i].seen = false;
	for (size_t i = 0; i < d->config->n_jobs; i++) {
		const struct config_job *job = &d->config->jobs[i];
		for (size_t k = 0; k < job->n_files; k++)
			changed |= look_for(d, r, job, &job->files[k], now_ms);
	}
	changed |= forget(d);
	size_t n = 0;
	while (changed && n < d->n) {
		struct targets_found *at = ARRAY_PUSH(d->found, n, d->found_capacity, FILES_MAX);
		if (!at)
			return false;
		*at = (struct targets_found){ d->files[n - 1].job, d->files[n - 1].groups };
	}
	return changed;
}

const struct targets_found *discovery_found(const struct discovery *d)
{
	return d->found;
}

size_t discovery_n(const struct discovery *d)
{
	return d->found ? d->n : 0;
}
