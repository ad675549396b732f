#include "symbol/perf_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define ENTRIES_MAX ((size_t)1 << 24)
#define OVERLAPS_MAX 64              /* entries that are looked at for one that reaches over others */

struct perf_map_entry {
	uint64_t start, bytes;
	size_t name;                         /* offset in text, whose order is that of time */
};

/* --- reading --- */

/* A number and the blanks behind it; false when there is none. */
static bool take_hex(char **at, const char *end, uint64_t *ret)
{
	char *c = *at;
	if (end - c > 2 && c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	char *digits = c;
	while (c < end && *c != ' ' && *c != '\t')
		c++;
	if (c == end || !text_parse_u64(digits, (size_t)(c - digits), 16, ret))
		return false;
	while (c < end && (*c == ' ' || *c == '\t'))
		c++;
	*at = c;
	return c < end;
}

static int add_line(struct perf_map *m, char *line, char *end, struct error *err)
{
	uint64_t start, bytes;
	if (end > line && end[-1] == '\r')
		end--;
	*end = '\0';
	if (!take_hex(&line, end, &start) || !take_hex(&line, end, &bytes) || bytes == 0 || start > UINT64_MAX - bytes)
		return 0;
	struct perf_map_entry *e = ARRAY_PUSH(m->entries, m->n, m->capacity, ENTRIES_MAX);
	if (!e)
		return m->n == ENTRIES_MAX ? error_set(err, E_LIMIT, "more than %zu functions", ENTRIES_MAX)
		                           : error_nomem(err, "names of a JIT");
	*e = (struct perf_map_entry){ start, bytes, (size_t)(line - m->text) };
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	const struct perf_map_entry *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static void keep_last(struct perf_map *m)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->n; i++)
		if (i + 1 == m->n || m->entries[i + 1].start != m->entries[i].start)
			m->entries[kept++] = m->entries[i];
	m->n = kept;
}

int perf_map_parse(struct perf_map *m, char *text, size_t n, struct error *err)
{
	int failed = 0;
	memset(m, 0, sizeof *m);
	m->text = text;
	for (size_t at = 0; at < n && !failed;) {
		char *newline = memchr(text + at, '\n', n - at);
		char *end = newline ? newline : text + n;
		failed = add_line(m, text + at, end, err);
		at = (size_t)(end - text) + 1;
	}
	if (failed) {
		perf_map_finish(m);
		return failed;
	}
	if (m->n)
		qsort(m->entries, m->n, sizeof *m->entries, compare_entries);
	keep_last(m);
	return 0;
}

/* A FIFO or device of that name would never end. */
static int open_regular(const char *path, struct error *err)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st)) {
		int why = errno;
		if (fd >= 0)
			close(fd);
		return error_set(err, E_IO, "%.200s: cannot open: %s", path, strerror(why));
	}
	if (S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return error_set(err, E_IO, "%.200s: not a regular file", path);
}

int perf_map_read(struct perf_map *m, const char *path, struct error *err)
{
	struct buf all;
	struct stat st;
	memset(m, 0, sizeof *m);
	int fd = open_regular(path, err);
	if (fd < 0)
		return fd;
	buf_init(&all, PERF_MAP_BYTES_MAX + 1);
	ssize_t n = 0;
	buf_reserve(&all, fstat(fd, &st) == 0 && st.st_size < (off_t)PERF_MAP_BYTES_MAX ? (size_t)st.st_size + 1 : 1);
	while (!all.failed && buf_reserve(&all, 64 << 10)) {
		n = read(fd, all.data + all.len, 64 << 10);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		all.len += (size_t)n;
	}
	int failed = 0;
	if (n < 0)
		failed = error_set(err, E_IO, "%.200s: cannot read: %s", path, strerror(errno));
	else if (all.failed)
		failed = error_set(err, E_LIMIT, "%.200s: longer than %zu MiB", path, PERF_MAP_BYTES_MAX >> 20);
	close(fd);
	if (failed) {
		buf_finish(&all);
		return failed;
	}
	all.data[all.len] = '\0';
	failed = perf_map_parse(m, all.data, all.len, err);
	if (failed)
		error_prefix(err, "%.200s: ", path);
	return failed;
}

void perf_map_finish(struct perf_map *m)
{
	if (!m)
		return;
	free(m->text);
	free(m->entries);
	memset(m, 0, sizeof *m);
}

/* --- asking --- */

const char *perf_map_find(const struct perf_map *m, uint64_t address)
{
	size_t low = 0, high = m->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->entries[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t i = low; i > 0 && low - i < OVERLAPS_MAX; i--) {
		const struct perf_map_entry *e = &m->entries[i - 1];
		if (address - e->start < e->bytes)
			return m->text + e->name;
	}
	return NULL;
}
