/*
 * Writers take turns by a lock on the file itself, which may be replaced meanwhile: whoever gets the lock looks whether the
 * name still leads there. Nobody waits long for it (a process that was stopped may hold it): an answer that isn't kept is
 * only worked out again.
 */
#include "symbol/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

#define MAGIC "hgcache\n"
#define SCHEMA 1
#define SEGMENT_MAGIC 0x73676168u
#define SUFFIX ".names"
#define NEW_SUFFIX ".new"
#define LOCK_TRIES 100
#define LOCK_PAUSE_NS 2000000
#define STAMP_SECONDS 3600              /* the time of last use is kept this roughly */
#define LEFTOVER_SECONDS 3600
#define FILES_MAX 100000                /* in the folder */

struct header {
	char magic[8];
	uint32_t schema, names;
	uint64_t build_id_hash, checksum;
};

struct head {
	uint32_t magic, note_bytes;
	uint64_t block_bytes, time, checksum;
};

_Static_assert(sizeof(struct header) == 32 && sizeof(struct head) == 32, "no holes, and blocks lie aligned");

/* --- bytes --- */

static size_t padded(size_t n)
{
	return (n + 7) & ~(size_t)7;
}

/* Four chains at once, since one multiplication has to wait for the one before it. Each step can be undone, so that no single change is lost. */
static uint64_t checksum(uint64_t seed, const void *bytes, size_t n)
{
	const char *at = bytes;
	uint64_t h[4] = { seed, seed + 1, seed + 2, seed ^ n };
	uint64_t w[4];
	for (; n >= sizeof(w); n -= sizeof(w), at += sizeof(w)) {
		memcpy(w, at, sizeof(w));
		for (int i = 0; i < 4; i++) {
			h[i] = (h[i] ^ w[i]) * 0x9e3779b97f4a7c15u;
			h[i] ^= h[i] >> 32;
		}
	}
	memset(w, 0, sizeof(w));
	memcpy(w, at, n);
	for (int i = 0; i < 4; i++)
		seed = hash_mix(hash_mix(seed, h[i]), w[i]);
	return seed;
}

static struct header header_of(const char *build_id)
{
	struct header h = { MAGIC, SCHEMA, CACHE_NAMES, hash_bytes(build_id, strlen(build_id)), 0 };
	h.checksum = checksum(1, &h, sizeof(h));
	return h;
}

static struct head head_of(const void *block, size_t block_bytes, const void *note, size_t note_bytes, uint64_t time)
{
	struct head h = { SEGMENT_MAGIC, (uint32_t)note_bytes, block_bytes, time, 0 };
	h.checksum = checksum(checksum(checksum(2, &h, sizeof(h)), note, note_bytes), block, block_bytes);
	return h;
}

static size_t segment_bytes(size_t block_bytes, size_t note_bytes)
{
	return sizeof(struct head) + padded(note_bytes) + padded(block_bytes);
}

size_t cache_read(struct cache_file *c, const void *bytes, size_t n, const char *build_id)
{
	const char *start = bytes;
	struct header wanted = header_of(build_id);
	size_t at = sizeof(wanted);
	memset(c, 0, sizeof(*c));
	if (n < at || memcmp(start, &wanted, sizeof(wanted)))
		return 0;
	while (c->n < CACHE_SEGMENTS && n - at >= sizeof(struct head)) {
		struct head h;
		memcpy(&h, start + at, sizeof(h));
		if (h.magic != SEGMENT_MAGIC || h.note_bytes > CACHE_NOTE_MAX || h.block_bytes > n ||
		    segment_bytes(h.block_bytes, h.note_bytes) > n - at)
			break;
		struct cache_segment s = { .note = start + at + sizeof(h), .note_bytes = h.note_bytes, .block_bytes = h.block_bytes,
			                   .time = h.time };
		const char *block = s.note + padded(h.note_bytes);
		if (head_of(block, h.block_bytes, s.note, s.note_bytes, s.time).checksum != h.checksum ||
		    answers_open(&s.answers, block, h.block_bytes, NULL))
			break;
		memmove(c->segments + 1, c->segments, c->n * sizeof(s));
		c->segments[0] = s;
		c->n++;
		at += segment_bytes(h.block_bytes, h.note_bytes);
	}
	return at;
}

/* --- places --- */

/* Ours, and nobody else's to change. */
static bool is_private(const struct stat *st)
{
	return st->st_uid == geteuid() && (st->st_mode & 022) == 0;
}

/* The folder, or -1. */
static int open_folder(bool make)
{
	char path[4096];
	const char *off = getenv("HEAPGAUGE_CACHE"), *root = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	int n = -1;
	if (off && !strcmp(off, "off"))
		return -1;
	if (root && *root == '/')
		n = snprintf(path, sizeof(path), "%s", root);
	else if (home && *home == '/')
		n = snprintf(path, sizeof(path), "%s/.cache", home);
	if (n <= 0 || (size_t)n + sizeof("/heapgauge") > sizeof(path))
		return -1;
	if (make)
		(void)mkdir(path, 0700);
	memcpy(path + n, "/heapgauge", sizeof("/heapgauge"));
	if (make)
		(void)mkdir(path, 0700);
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	if (fd >= 0 && (fstat(fd, &st) < 0 || !is_private(&st))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* False when it is no build id, or one that somebody may have chosen for several binaries. */
static bool name_file(const char *build_id, char *to, size_t room)
{
	size_t length = strlen(build_id);
	if (length < 16 || length > 128 || strspn(build_id, "0123456789abcdef") != length)
		return false;
	int n = snprintf(to, room, "%s" SUFFIX, build_id);
	return n > 0 && (size_t)n < room;
}

static bool is_usable(int fd, struct stat *ret)
{
	return fstat(fd, ret) == 0 && S_ISREG(ret->st_mode) && is_private(ret);
}

/* Maps what is in the file. 0 bytes: nothing. */
static void map_file(int fd, const struct stat *st, void **ret, size_t *ret_bytes)
{
	*ret = NULL;
	*ret_bytes = 0;
	if (st->st_size <= 0 || (uint64_t)st->st_size > 2 * CACHE_FILE_MAX)
		return;
	void *bytes = mmap(NULL, (size_t)st->st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (bytes == MAP_FAILED)
		return;
	*ret = bytes;
	*ret_bytes = (size_t)st->st_size;
}

/* --- reading --- */

void cache_open(struct cache_file *c, const char *build_id)
{
	char name[160];
	struct stat st;
	memset(c, 0, sizeof(*c));
	int folder = name_file(build_id, name, sizeof(name)) ? open_folder(false) : -1;
	int fd = folder >= 0 ? openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC) : -1;
	if (fd >= 0 && is_usable(fd, &st)) {
		void *bytes;
		size_t n;
		map_file(fd, &st, &bytes, &n);
		if (n)
			(void)cache_read(c, bytes, n, build_id);
		c->mapping = bytes;
		c->mapping_bytes = n;
		if (st.st_mtime < time(NULL) - STAMP_SECONDS)
			(void)futimens(fd, NULL);
	}
	if (fd >= 0)
		close(fd);
	if (folder >= 0)
		close(folder);
}

void cache_close(struct cache_file *c)
{
	if (!c)
		return;
	if (c->mapping)
		(void)munmap(c->mapping, c->mapping_bytes);
	memset(c, 0, sizeof(*c));
}

/* --- merging --- */

/* A poor answer is worth only as much as the note that says why it is poor: only those with the newest note are kept. */
static bool is_kept(const struct cache_segment *s, size_t i, const struct cache_segment *newest)
{
	return s->answers.quality[i] == ANSWER_DEBUG || s == newest ||
	       (s->note_bytes == newest->note_bytes && !memcmp(s->note, newest->note, s->note_bytes));
}

/* All of them as one block: of each address the best answer, of equals the newest. */
static int merge(const struct cache_segment *s, size_t n, struct buf *ret)
{
	size_t at[CACHE_SEGMENTS + 1] = { 0 };
	struct answers_builder b;
	const struct answers_builder *whole = &b;
	int rc = 0;
	answers_begin(&b);
	while (rc == 0) {
		uint64_t address = UINT64_MAX;
		size_t chosen = n;
		for (size_t k = 0; k < n; k++) {
			const struct answers *a = &s[k].answers;
			while (at[k] < a->n && !is_kept(&s[k], at[k], &s[0]))
				at[k]++;
			if (at[k] < a->n && (chosen == n || a->addresses[at[k]] < address ||
			                     (a->addresses[at[k]] == address &&
			                      a->quality[at[k]] > s[chosen].answers.quality[at[chosen]]))) {
				address = a->addresses[at[k]];
				chosen = k;
			}
		}
		if (chosen == n)
			break;
		rc = answers_copy(&b, &s[chosen].answers, at[chosen]);
		for (size_t k = 0; k < n; k++)
			at[k] += at[k] < s[k].answers.n && s[k].answers.addresses[at[k]] == address;
	}
	if (rc == 0)
		rc = answers_write(&whole, 1, ret, NULL);
	answers_end(&b);
	return rc;
}

/* --- writing --- */

/* Opened for writing and locked, or -1. */
static int open_locked(int folder, const char *name, struct stat *ret)
{
	struct timespec pause = { 0, LOCK_PAUSE_NS };
	for (int tries = 0; tries < LOCK_TRIES; tries++) {
		struct stat now;
		int fd = openat(folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (fd < 0)
			return -1;
		if (!is_usable(fd, ret)) {
			close(fd);
			return -1;
		}
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, ret) == 0 &&
		    fstatat(folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_ino == ret->st_ino && now.st_dev == ret->st_dev)
			return fd;
		close(fd);
		(void)nanosleep(&pause, NULL);
	}
	return -1;
}

/* All of it at once: who reads meanwhile sees a checksum that is wrong, or right. */
static bool write_segment(int fd, size_t at, const void *block, size_t block_bytes, const void *note, size_t note_bytes, uint64_t time)
{
	static const char none[8];
	struct head head = head_of(block, block_bytes, note, note_bytes, time);
	struct iovec parts[] = {
		{ &head, sizeof(head) },
		{ (void *)(uintptr_t)note, note_bytes },
		{ (void *)(uintptr_t)none, padded(note_bytes) - note_bytes },
		{ (void *)(uintptr_t)block, block_bytes },
		{ (void *)(uintptr_t)none, padded(block_bytes) - block_bytes },
	};
	return pwritev(fd, parts, 5, (off_t)at) == (ssize_t)segment_bytes(block_bytes, note_bytes);
}

/* Of a new file: what stands before the one segment that is added. */
struct prefix {
	const void *bytes;
	size_t n;
};

/* A new file takes the old one's place. */
static void replace(int folder, const char *name, struct prefix before, const struct cache_segment *s, const void *block, size_t block_bytes)
{
	char fresh[256];
	int n = snprintf(fresh, sizeof(fresh), "%s.%ld" NEW_SUFFIX, name, (long)getpid());
	int fd = n > 0 && (size_t)n < sizeof(fresh) ? openat(folder, fresh, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		return;
	bool done = pwrite(fd, before.bytes, before.n, 0) == (ssize_t)before.n &&
	            write_segment(fd, before.n, block, block_bytes, s->note, s->note_bytes, s->time);
	close(fd);
	if (!done || renameat(folder, fresh, folder, name) < 0)
		(void)unlinkat(folder, fresh, 0);
}

static size_t bytes_of(const struct cache_segment *s)
{
	return segment_bytes(s->block_bytes, s->note_bytes);
}

/*
 * The new segment, the newer half of the old ones, and those before that are not bigger than what was gathered so far become one. So each
 * answer is worked over a few times only, however many small segments come; the rest is copied as it is.
 */
static void replace_merged(int folder, const char *name, const struct header *header, const void *old_bytes, const struct cache_file *old,
                           const struct cache_segment *fresh, const void *block)
{
	struct cache_segment some[CACHE_SEGMENTS + 1] = { *fresh };
	struct prefix before = { old_bytes, sizeof(*header) };
	struct buf merged;
	size_t n = 0, gathered = 0;
	for (; n < old->n && (n < CACHE_SEGMENTS / 2 || bytes_of(&old->segments[n]) <= gathered); n++) {
		some[n + 1] = old->segments[n];
		gathered += bytes_of(&old->segments[n]);
	}
	for (size_t i = n; i < old->n; i++)
		before.n += bytes_of(&old->segments[i]);
	buf_init(&merged, CACHE_FILE_MAX);
	bool good = answers_open(&some[0].answers, block, fresh->block_bytes, NULL) == 0 && merge(some, n + 1, &merged) == 0;
	size_t grown = segment_bytes(merged.len, fresh->note_bytes);
	/* What is too much for one file goes: first what is old, then all but what is new. */
	if (!good || sizeof(*header) + grown > CACHE_FILE_MAX)
		replace(folder, name, (struct prefix){ header, sizeof(*header) }, fresh, block, fresh->block_bytes);
	else if (before.n + grown > CACHE_FILE_MAX)
		replace(folder, name, (struct prefix){ header, sizeof(*header) }, fresh, merged.data, merged.len);
	else
		replace(folder, name, before, fresh, merged.data, merged.len);
	buf_finish(&merged);
}

/* Whether there is a new file. */
static bool write_locked(int folder, int fd, const struct stat *st, const char *name, const char *build_id,
                         const struct cache_segment *fresh, const void *block)
{
	struct header header = header_of(build_id);
	struct cache_file old = { .n = 0 };
	void *bytes;
	size_t n, end = 0;
	map_file(fd, st, &bytes, &n);
	if (n)
		end = cache_read(&old, bytes, n, build_id);
	bool appended = end && old.n < CACHE_SEGMENTS && end + bytes_of(fresh) <= CACHE_FILE_MAX;
	if (appended)
		(void)write_segment(fd, end, block, fresh->block_bytes, fresh->note, fresh->note_bytes, fresh->time);
	else if (end)
		replace_merged(folder, name, &header, bytes, &old, fresh, block);
	else
		replace(folder, name, (struct prefix){ &header, sizeof(header) }, fresh, block, fresh->block_bytes);
	if (bytes)
		(void)munmap(bytes, n);
	return !appended;
}

/* --- size --- */

struct aged {
	struct timespec used;
	uint64_t bytes;
	char name[256];
};

static int compare_aged(const void *a, const void *b)
{
	const struct timespec *x = &((const struct aged *)a)->used, *y = &((const struct aged *)b)->used;
	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n >= m && !strcmp(text + n - m, end);
}

/* What a writer that was killed left behind goes, too. */
static void keep_small(int folder)
{
	struct aged *files = NULL;
	size_t n = 0, capacity = 0;
	uint64_t all = 0;
	int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	if (!d && copy >= 0)
		close(copy);
	for (const struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		if (fstatat(folder, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (ends_in(e->d_name, NEW_SUFFIX) && st.st_mtime < time(NULL) - LEFTOVER_SECONDS)
			(void)unlinkat(folder, e->d_name, 0);
		struct aged *f = ends_in(e->d_name, SUFFIX) ? ARRAY_PUSH(files, n, capacity, FILES_MAX) : NULL;
		if (!f)
			continue;
		*f = (struct aged){ .used = st.st_mtim, .bytes = (uint64_t)st.st_size };
		memcpy(f->name, e->d_name, strnlen(e->d_name, sizeof(f->name) - 1));
		all += f->bytes;
	}
	if (d)
		closedir(d);
	if (all > CACHE_ALL_MAX) {
		qsort(files, n, sizeof(*files), compare_aged);
		/* Some more than is needed, so that it isn't every time. */
		for (size_t i = 0; i < n && all > CACHE_ALL_MAX - CACHE_ALL_MAX / 8; i++) {
			(void)unlinkat(folder, files[i].name, 0);
			all -= files[i].bytes;
		}
	}
	free(files);
}

void cache_append(const char *build_id, const void *block, size_t block_bytes, const void *note, size_t note_bytes)
{
	char name[160];
	struct stat st;
	struct cache_segment fresh = { .note = note, .note_bytes = note_bytes, .block_bytes = block_bytes, .time = (uint64_t)time(NULL) };
	if (note_bytes > CACHE_NOTE_MAX || block_bytes > CACHE_FILE_MAX - sizeof(struct header) - segment_bytes(0, note_bytes) - 8 ||
	    !name_file(build_id, name, sizeof(name)))
		return;
	int folder = open_folder(true);
	int fd = folder >= 0 ? open_locked(folder, name, &st) : -1;
	if (fd >= 0) {
		bool is_new = write_locked(folder, fd, &st, name, build_id, &fresh, block);
		close(fd);
		if (is_new)
			keep_small(folder);
	}
	if (folder >= 0)
		close(folder);
}
