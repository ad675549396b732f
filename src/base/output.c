/*
 * Outputs that appear whole or not at all. A nameless file (O_TMPFILE) is gone
 * without anybody's help when the program is killed; a new name can be given only
 * where there is none, so it is linked under a temporary name and renamed over the target.
 * The temporary names of the moment are in a small table that a signal handler may read.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLUSH_BYTES ((size_t)256 << 10)

/* Written by the thread that has the output, read by the handler: sequentially consistent, it is rare. */
static _Atomic(char *) temporaries[16];

static void remember(char *name)
{
	for (size_t i = 0; i < sizeof(temporaries) / sizeof(temporaries[0]); i++) {
		char *none = NULL;
		if (atomic_compare_exchange_strong(&temporaries[i], &none, name))
			return;
	}
}

/* The name is of no interest any more: renamed or removed. */
static void forget(struct output *o)
{
	for (size_t i = 0; i < sizeof(temporaries) / sizeof(temporaries[0]); i++) {
		char *name = o->temporary;
		if (name && atomic_compare_exchange_strong(&temporaries[i], &name, NULL))
			break;
	}
	free(o->temporary);
	o->temporary = NULL;
}

void output_interrupted(void)
{
	for (size_t i = 0; i < sizeof(temporaries) / sizeof(temporaries[0]); i++) {
		char *name = atomic_load(&temporaries[i]);
		if (name)
			unlink(name);
	}
}

static void on_signal(int number)
{
	int saved = errno;
	output_interrupted();
	errno = saved;
	/* SA_RESETHAND has put the default back: this ends the program as the signal would have. */
	raise(number);
}

void output_catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct sigaction action;
		if (sigaction(numbers[i], NULL, &action) < 0 || action.sa_handler == SIG_IGN)
			continue;
		action = (struct sigaction){ .sa_handler = on_signal, .sa_flags = SA_RESETHAND };
		sigemptyset(&action.sa_mask);
		(void)sigaction(numbers[i], &action, NULL);
	}
}

/* The directory part of a path, with its slash ("" when there is none), followed by name. */
static char *beside(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) + 1 : 0;
	char *joined = malloc(n + strlen(name) + 1);
	if (!joined)
		return NULL;
	memcpy(joined, path, n);
	memcpy(joined + n, name, strlen(name) + 1);
	return joined;
}

/* A name in the target's directory that nobody has yet, as o->temporary; not created. */
static int new_name(struct output *o, struct error *err)
{
	static atomic_uint counter;
	char name[64];
	(void)snprintf(name, sizeof(name), ".heapgauge-%ld-%u.tmp", (long)getpid(),
	               atomic_fetch_add(&counter, 1));
	o->temporary = beside(o->path, name);
	if (!o->temporary)
		return error_nomem(err, "an output's name");
	remember(o->temporary);
	return E_OK;
}

/* Tries names until make() gets one; make returns a descriptor or 0, or -1 and errno. */
static int with_new_name(struct output *o, int (*make)(struct output *o), int *ret, struct error *err)
{
	for (int tries = 0; tries < 100; tries++) {
		int rc = new_name(o, err);
		if (rc)
			return rc;
		*ret = make(o);
		if (*ret >= 0)
			return E_OK;
		int cause = errno;
		forget(o);
		errno = cause;
		if (cause != EEXIST)
			break;
	}
	return error_set(err, E_IO, "%s: cannot create: %s", o->path, strerror(errno));
}

static int make_named(struct output *o)
{
	return open(o->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

static int make_link(struct output *o)
{
	char nameless[64];
	(void)snprintf(nameless, sizeof(nameless), "/proc/self/fd/%d", o->fd);
	return linkat(AT_FDCWD, nameless, AT_FDCWD, o->temporary, AT_SYMLINK_FOLLOW);
}

static int open_beside(struct output *o, struct error *err)
{
	char *directory = beside(o->path, ".");
	if (!directory)
		return error_nomem(err, "an output's name");
	/* Without /proc a nameless file could never get its name. */
	if (access("/proc/self/fd", X_OK) == 0)
		o->fd = open(directory, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
	free(directory);
	if (o->fd >= 0)
		return E_OK;
	return with_new_name(o, make_named, &o->fd, err);
}

/* What is at the path decides: nothing, a file to replace, something to write into, or no output at all. */
static int open_target(struct output *o, struct error *err)
{
	struct stat st, standard;
	if (!*o->path)
		return error_set(err, E_IO, "an output needs the name of a file");
	if (stat(o->path, &st) < 0)
		return open_beside(o, err);
	if (S_ISDIR(st.st_mode))
		return error_set(err, E_IO, "%s is a directory; give the name of a file", o->path);
	/* /dev/stdout, or the file it is redirected to: that one the shell has opened, maybe to append. */
	if (fstat(STDOUT_FILENO, &standard) == 0 && standard.st_dev == st.st_dev &&
	    standard.st_ino == st.st_ino && S_ISREG(st.st_mode)) {
		o->fd = STDOUT_FILENO;
		return E_OK;
	}
	if (!S_ISREG(st.st_mode)) {
		do
			o->fd = open(o->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		while (o->fd < 0 && errno == EINTR);
		if (o->fd < 0)
			return error_set(err, E_IO, "%s: cannot open: %s", o->path, strerror(errno));
		o->direct = true;
		return E_OK;
	}
	if (faccessat(AT_FDCWD, o->path, W_OK, AT_EACCESS) < 0)
		return error_set(err, E_IO, "%s: cannot replace: %s", o->path, strerror(errno));
	char *real = realpath(o->path, NULL);
	if (!real)
		return error_set(err, E_IO, "%s: cannot replace: %s", o->path, strerror(errno));
	free(o->path);
	o->path = real;
	return open_beside(o, err);
}

int output_open(struct output *o, const char *path, struct error *err)
{
	*o = (struct output){ .fd = -1 };
	buf_init(&o->pending, BUF_MAX_DEFAULT);
	bool standard = !path || strcmp(path, "-") == 0;
	o->path = strdup(standard ? "standard output" : path);
	if (!o->path)
		return error_nomem(err, "an output's name");
	if (standard) {
		o->fd = STDOUT_FILENO;
		return E_OK;
	}
	int rc = open_target(o, err);
	if (rc)
		output_abort(o);
	return rc;
}

static int write_all(struct output *o, const char *bytes, size_t n, struct error *err)
{
	while (n > 0) {
		ssize_t written = write(o->fd, bytes, n);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return error_set(err, E_IO, "%s: cannot write: %s", o->path, strerror(errno));
		bytes += written;
		n -= (size_t)written;
	}
	return E_OK;
}

static int flush(struct output *o, struct error *err)
{
	int rc = write_all(o, o->pending.data, o->pending.len, err);
	buf_reset(&o->pending);
	return rc;
}

int output_write(struct output *o, const void *bytes, size_t n, struct error *err)
{
	if (o->fd != STDOUT_FILENO && o->pending.len + n > FLUSH_BYTES) {
		int rc = flush(o, err);
		if (rc || n >= FLUSH_BYTES)
			return rc ? rc : write_all(o, bytes, n, err);
	}
	buf_add(&o->pending, bytes, n);
	return o->pending.failed ? error_nomem(err, o->path) : E_OK;
}

/* The file is complete: gives it its name. */
static int publish(struct output *o, struct error *err)
{
	int linked;
	if (!o->temporary) {
		int rc = with_new_name(o, make_link, &linked, err);
		if (rc)
			return rc;
	}
	int fd = o->fd;
	o->fd = -1;
	if (close(fd) < 0 && errno != EINTR)
		return error_set(err, E_IO, "%s: cannot write: %s", o->path, strerror(errno));
	if (rename(o->temporary, o->path) < 0)
		return error_set(err, E_IO, "%s: cannot rename the finished file: %s", o->path,
		                 strerror(errno));
	forget(o);
	return E_OK;
}

int output_commit(struct output *o, struct error *err)
{
	if (o->fd < 0)
		return error_set(err, E_USAGE, "output is not open");
	int rc = flush(o, err);
	if (rc == E_OK && o->fd != STDOUT_FILENO && !o->direct)
		rc = publish(o, err);
	if (rc == E_OK && o->direct) {
		int fd = o->fd;
		o->fd = -1;
		if (close(fd) < 0 && errno != EINTR)
			rc = error_set(err, E_IO, "%s: cannot write: %s", o->path, strerror(errno));
	}
	output_abort(o);
	return rc;
}

void output_abort(struct output *o)
{
	if (!o || !o->path)
		return;
	if (o->fd > STDOUT_FILENO)
		close(o->fd);
	if (o->temporary) {
		unlink(o->temporary);
		forget(o);
	}
	free(o->path);
	buf_finish(&o->pending);
	*o = (struct output){ .fd = -1 };
}
