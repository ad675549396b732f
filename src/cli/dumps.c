/* The dumps a run left in its folder: found, listed, and what to do with them. */
#include "cli/dumps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "profile/estimate.h"

#define DUMPS_MAX ((size_t)1 << 20)
#define SHOWN_AT_EACH_END 4
#define SHOWN_OTHERS 4

void dumps_finish(struct dumps *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->items[i].name);
	free(d->items);
	*d = (struct dumps){ 0 };
}

static int by_process_and_sequence(const void *a, const void *b)
{
	const struct dump_name *x = &((const struct dump *)a)->parts, *y = &((const struct dump *)b)->parts;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static bool older(struct timespec a, struct timespec b)
{
	return a.tv_sec != b.tv_sec ? a.tv_sec < b.tv_sec : a.tv_nsec < b.tv_nsec;
}

/* A number that ends at the character before; *at moves behind both. */
static bool number_until(const char **at, char before, double *ret)
{
	const char *end = strchr(*at, before);
	uint64_t n;
	if (!end || !text_parse_u64(*at, (size_t)(end - *at), 10, &n))
		return false;
	*at = end + 1;
	*ret = (double)n;
	return true;
}

/* "heap_v2/524288", then "  t*: 3: 4096 [0: 0]": what that stands for; < 0 when it doesn't begin so. */
static double live_bytes(int folder, const char *name)
{
	static const char magic[] = "heap_v2/", all[] = "t*: ";
	char head[200];
	double rate, objects, bytes;
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head - 1);
	if (fd >= 0)
		close(fd);
	head[n > 0 ? n : 0] = '\0';
	const char *at = head + sizeof magic - 1;
	if (strncmp(head, magic, sizeof magic - 1) != 0 || !number_until(&at, '\n', &rate))
		return -1;
	at += strspn(at, " ");
	if (strncmp(at, all, sizeof all - 1) != 0)
		return -1;
	at += sizeof all - 1;
	if (!number_until(&at, ':', &objects) || *at++ != ' ' || !number_until(&at, ' ', &bytes))
		return -1;
	return bytes * estimate_scale(objects, bytes, rate);
}

static bool add_file(struct dumps *d, int folder, const char *name, struct timespec since)
{
	struct dump found = { 0 };
	struct stat st;
	if (!dump_name_parse(name, &found.parts) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
	    !S_ISREG(st.st_mode) || older(st.st_mtim, since))
		return true;
	found.bytes = (uint64_t)st.st_size;
	found.written = st.st_mtim;
	found.live = found.parts.kind == 'f' ? live_bytes(folder, name) : -1;
	found.name = strdup(name);
	struct dump *slot = found.name ? ARRAY_PUSH(d->items, d->n, d->capacity, DUMPS_MAX) : NULL;
	if (!slot) {
		free(found.name);
		return false;
	}
	*slot = found;
	return true;
}

/* The end of the process's dumps that begin at first. */
static size_t process_end(const struct dumps *d, size_t first)
{
	size_t end = first + 1;
	while (end < d->n && d->items[end].parts.pid == d->items[first].parts.pid)
		end++;
	return end;
}

/* The greatest dump (most stacks) of the process that begins at first. */
static size_t greatest_of(const struct dumps *d, size_t first)
{
	size_t greatest = first;
	for (size_t i = first + 1; i < process_end(d, first); i++)
		if (d->items[i].bytes > d->items[greatest].bytes)
			greatest = i;
	return greatest;
}

int dumps_find(const char *folder, struct timespec since, struct dumps *ret, struct error *err)
{
	DIR *directory = opendir(folder);
	if (!directory)
		return error_set(err, E_IO, "%.200s: cannot list: %s", folder, strerror(errno));
	struct dumps d = { 0 };
	bool room = true;
	for (struct dirent *e; room && (e = readdir(directory));)
		room = add_file(&d, dirfd(directory), e->d_name, since);
	if (d.n)
		qsort(d.items, d.n, sizeof *d.items, by_process_and_sequence);
	for (size_t i = 0; i < d.n; i = process_end(&d, i)) {
		struct dump *greatest = &d.items[greatest_of(&d, i)];
		if (greatest->live < 0)
			greatest->live = live_bytes(dirfd(directory), greatest->name);
	}
	closedir(directory);
	if (!room) {
		dumps_finish(&d);
		return error_nomem(err, "the list of dumps");
	}
	*ret = d;
	return 0;
}

size_t dumps_final(const struct dumps *d, uint64_t main_pid)
{
	size_t best = d->n;
	for (size_t i = 0; i < d->n; i++) {
		const struct dump *it = &d->items[i];
		if (it->parts.kind != 'f')
			continue;
		if (best == d->n || it->live > d->items[best].live ||
		    (it->live == d->items[best].live && it->parts.pid == main_pid))
			best = i;
	}
	return best;
}

static const char *kind_words(char kind)
{
	switch (kind) {
	case 'f':
		return "at exit";
	case 'i':
		return "by allocated bytes";
	case 'u':
		return "at a new maximum";
	default:
		return "asked for";
	}
}

static void describe_one(const struct dump *dump, struct buf *out)
{
	buf_adds(out, "  ");
	text_add_terminal(out, dump->name, strlen(dump->name));
	buf_adds(out, "  ");
	text_add_bytes(out, (double)dump->bytes);
	buf_printf(out, "  %s\n", kind_words(dump->parts.kind));
}

static void add_path(struct buf *out, const char *folder, const char *name)
{
	buf_addc(out, ' ');
	text_add_terminal(out, folder, strlen(folder));
	buf_addc(out, '/');
	text_add_terminal(out, name, strlen(name));
}

/* Sorted by process: [*ret_first, *ret_end) are pid's; empty when it left none. */
static void range_of(const struct dumps *d, uint64_t pid, size_t *ret_first, size_t *ret_end)
{
	size_t first = 0;
	while (first < d->n && d->items[first].parts.pid != pid)
		first++;
	size_t end = first;
	while (end < d->n && d->items[end].parts.pid == pid)
		end++;
	*ret_first = first;
	*ret_end = end;
}

static void describe_range(const struct dumps *d, size_t first, size_t end, struct buf *out)
{
	for (size_t i = first; i < end; i++) {
		if (i - first == SHOWN_AT_EACH_END && end - first > 2 * SHOWN_AT_EACH_END + 1) {
			size_t skipped = end - first - 2 * SHOWN_AT_EACH_END;
			buf_printf(out, "  … %zu more …\n", skipped);
			i += skipped;
		}
		describe_one(&d->items[i], out);
	}
}

/*
 * A script or a driver starts the program that matters: of the other processes those whose greatest dumps stand for
 * the most memory are named. *ret_greatest: the first of them, when it stands for more than that of [first, end); else unchanged.
 */
static void describe_others(const struct dumps *d, size_t first, size_t end, size_t *ret_greatest,
                            struct buf *out)
{
	size_t shown[SHOWN_OTHERS], n = 0, dumps = d->n - (end - first), processes = 0;
	if (dumps == 0)
		return;
	for (size_t i = 0; i < d->n; i = process_end(d, i)) {
		if (i == first && first < end)
			continue;
		processes++;
		size_t candidate = greatest_of(d, i), at = n < SHOWN_OTHERS ? n++ : n;
		while (at > 0 && d->items[candidate].live > d->items[shown[at - 1]].live) {
			if (at < SHOWN_OTHERS)
				shown[at] = shown[at - 1];
			at--;
		}
		if (at < SHOWN_OTHERS)
			shown[at] = candidate;
	}
	buf_printf(out, "%zu other process%s it started left %zu dump%s; the greatest%s:\n", processes,
	           processes == 1 ? "" : "es", dumps, dumps == 1 ? "" : "s",
	           processes == 1 ? "" : " of each, at most four");
	for (size_t i = 0; i < n; i++)
		describe_one(&d->items[shown[i]], out);
	if (first == end || d->items[shown[0]].live > d->items[greatest_of(d, first)].live)
		*ret_greatest = shown[0];
}

void dumps_describe(const struct dumps *d, const char *folder, uint64_t main_pid, struct buf *out)
{
	size_t first, end;
	if (!d->n)
		return;
	range_of(d, main_pid, &first, &end);
	describe_range(d, first, end, out);
	size_t oldest_at = first, newest_at = end - 1, other = d->n;
	describe_others(d, first, end, &other, out);
	if (other < d->n) {
		newest_at = oldest_at = other;
		while (oldest_at > 0 &&
		       d->items[oldest_at - 1].parts.pid == d->items[newest_at].parts.pid)
			oldest_at--;
	}
	if (d->items[newest_at].live == 0 && newest_at > oldest_at) {
		newest_at--;
		buf_adds(out, "Everything sampled was freed before the exit; the dump before the last says more.\n");
	}
	const struct dump *oldest = &d->items[oldest_at], *newest = &d->items[newest_at];
	buf_adds(out, "Next:\n  heapgauge top");
	add_path(out, folder, newest->name);
	if (oldest != newest && oldest->parts.pid == newest->parts.pid) {
		buf_adds(out, "\n  heapgauge diff");
		add_path(out, folder, oldest->name);
		add_path(out, folder, newest->name);
	}
	buf_addc(out, '\n');
}
