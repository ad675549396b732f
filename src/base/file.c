/*
 * Streams hand out what was peeked first and ask fill for the rest; a stream over
 * memory is one that is wholly peeked. Outputs are in output.c.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PEEK_MAX ((size_t)64 << 10)
#define READ_STEP ((size_t)1 << 20)

static int descriptor_fill(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	ssize_t n;
	do
		n = read(s->fd, to, room < READ_STEP ? room : READ_STEP);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, E_IO, "%s: cannot read: %s", s->name, strerror(errno));
	*ret_n = (size_t)n;
	return E_OK;
}

static void descriptor_close(struct stream *s)
{
	if (s->fd > STDIN_FILENO)
		close(s->fd);
}

int stream_open(struct stream *s, const char *path, struct error *err)
{
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	int fd = STDIN_FILENO;
	if (!standard) {
		do
			fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		while (fd < 0 && errno == EINTR);
	}
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0) {
		int cause = errno;
		if (fd > STDIN_FILENO)
			close(fd);
		return error_set(err, E_IO, "%s: cannot open: %s", name, strerror(cause));
	}
	*s = (struct stream){
		.fill = descriptor_fill,
		.close = descriptor_close,
		.name = name,
		.fd = fd,
	};
	if (S_ISDIR(st.st_mode)) {
		descriptor_close(s);
		*s = (struct stream){ .fd = -1 };
		return error_set(err, E_IO, "%s is a directory, not a profile", name);
	}
	if (S_ISREG(st.st_mode) && st.st_size > 0) {
		s->size_hint = (uint64_t)st.st_size;
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	}
	return E_OK;
}

static int memory_fill(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	(void)s, (void)to, (void)room, (void)err;
	*ret_n = 0;
	return E_OK;
}

void stream_open_memory(struct stream *s, const char *name, const void *bytes, size_t n)
{
	*s = (struct stream){
		.fill = memory_fill,
		.name = name,
		.fd = -1,
		.peeked = (uint8_t *)(uintptr_t)bytes,
		.peeked_n = n,
		.size_hint = n,
	};
}

void stream_close(struct stream *s)
{
	if (!s || !s->fill)
		return;
	if (s->close)
		s->close(s);
	if (s->fill != memory_fill)
		free(s->peeked);
	*s = (struct stream){ .fd = -1 };
}

static int fill(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	*ret_n = 0;
	if (s->ended || room == 0)
		return E_OK;
	int rc = s->fill(s, to, room, ret_n, err);
	if (rc == E_OK && *ret_n == 0)
		s->ended = true;
	return rc;
}

int stream_read(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	size_t n = s->peeked_n - s->peeked_at;
	if (n > 0) {
		n = n < room ? n : room;
		memcpy(to, s->peeked + s->peeked_at, n);
		s->peeked_at += n;
	} else {
		int rc = fill(s, to, room, &n, err);
		if (rc)
			return rc;
	}
	s->offset += n;
	*ret_n = n;
	return E_OK;
}

int stream_peek(struct stream *s, size_t want, const uint8_t **ret_bytes, size_t *ret_n,
                struct error *err)
{
	want = want < PEEK_MAX ? want : PEEK_MAX;
	if (s->peeked_n - s->peeked_at < want && s->fill != memory_fill) {
		if (!s->peeked && !(s->peeked = malloc(PEEK_MAX)))
			return error_nomem(err, "looking at the beginning of the input");
		if (s->peeked_at > 0) {
			s->peeked_n -= s->peeked_at;
			memmove(s->peeked, s->peeked + s->peeked_at, s->peeked_n);
			s->peeked_at = 0;
		}
		while (s->peeked_n < want) {
			size_t n;
			int rc = fill(s, s->peeked + s->peeked_n, PEEK_MAX - s->peeked_n, &n, err);
			if (rc)
				return rc;
			if (n == 0)
				break;
			s->peeked_n += n;
		}
	}
	size_t there = s->peeked_n - s->peeked_at;
	*ret_bytes = s->peeked ? s->peeked + s->peeked_at : (const uint8_t *)"";
	*ret_n = there < want ? there : want;
	return E_OK;
}

/* Room for the next step of reading: what the size promises, then doubling; E_LIMIT without any. */
static int make_room(struct stream *s, struct buf *b, struct error *err)
{
	if (b->capacity > b->len + 1)
		return E_OK;
	size_t left = b->max - b->len;
	size_t step = b->len > READ_STEP ? b->len : 64 << 10;
	if (b->len == 0 && s->size_hint > s->offset && s->size_hint - s->offset < left)
		step = (size_t)(s->size_hint - s->offset) + 1;
	if (!buf_reserve(b, step < left ? step : left))
		return error_nomem(err, "the input");
	return E_OK;
}

int stream_read_all(struct stream *s, struct buf *b, struct error *err)
{
	for (;;) {
		size_t n;
		int rc;
		if (b->len >= b->max) {
			char more;
			rc = stream_read(s, &more, 1, &n, err);
			if (rc == E_OK && n > 0)
				rc = error_set(err, E_LIMIT, "%s: larger than the limit of %zu bytes",
				               s->name, b->max);
			return rc;
		}
		rc = make_room(s, b, err);
		if (rc)
			return rc;
		rc = stream_read(s, b->data + b->len, b->capacity - b->len - 1, &n, err);
		if (rc || n == 0)
			return rc;
		b->len += n;
		b->data[b->len] = '\0';
	}
}

int file_in_memory(const char *name, const void *bytes, size_t n)
{
	int fd = memfd_create(name, MFD_CLOEXEC);
	for (size_t at = 0; fd >= 0 && at < n;) {
		ssize_t written = write(fd, (const char *)bytes + at, n - at);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			int why = errno;
			close(fd);
			errno = why;
			return -1;
		}
		at += (size_t)written;
	}
	return fd;
}
