/*
 * The address space of the process, as its dump recorded it. Three notations: Linux's
 * /proc/PID/maps, "start-end: path" (jemalloc on macOS, gperftools), and FreeBSD's
 * /proc/curproc/map. Which mapping is the main program: the one listed first that is executable,
 * has a file, and is no library.
 */
#include "format/format.h"
#include "format/lines.h"

#include <stdlib.h>

#define MAPS_MAX ((size_t)1 << 22)      /* a process can have 65,530 by default */

/* --- one line ------------------------------------------------------------- */

static bool word(const char **at, const char *end, const char **ret_word, size_t *ret_n)
{
	const char *p = *at;
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	*ret_word = p;
	while (p < end && *p != ' ' && *p != '\t')
		p++;
	*ret_n = (size_t)(p - *ret_word);
	*at = p;
	return *ret_n > 0;
}

/* Digits of one base, nothing else; 0x is allowed before hexadecimal ones. */
static bool number(const char *text, size_t n, unsigned base, uint64_t *ret)
{
	const char *end = text + n;
	bool ok = base == 16 ? lines_hex(&text, end, ret) : lines_number(&text, end, ret);
	return ok && text == end;
}

/* "r-xp 00001000 08:01 1234   /path" */
static bool parse_linux(const char *at, const char *end, struct mapping *m, const char **ret_path)
{
	const char *w;
	size_t n;
	if (!word(&at, end, &w, &n) || n < 3 || n > 5)
		return false;
	m->executable = w[2] == 'x';
	if (!word(&at, end, &w, &n) || !number(w, n, 16, &m->offset))
		return false;
	if (!word(&at, end, &w, &n) || !memchr(w, ':', n))
		return false;
	if (!word(&at, end, &w, &n) || !number(w, n, 10, &m->inode))
		return false;
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	*ret_path = at;
	return true;
}

/* "26 0 0xfffff800035a0000 r-x 75 33 0x1004 COW NC vnode /libexec/ld-elf.so.1 NCH -1" */
static bool parse_freebsd(const char *at, const char *end, struct mapping *m, const char **ret_path,
                          const char **ret_end)
{
	const char *w = NULL;
	size_t n = 0;
	for (int i = 0; i < 4; i++)
		if (!word(&at, end, &w, &n))
			return false;
	if (n != 3)
		return false;
	m->executable = w[2] == 'x';
	for (int i = 0; i < 6; i++)
		if (!word(&at, end, &w, &n))
			return false;
	bool file = n == 5 && memcmp(w, "vnode", 5) == 0;
	if (!word(&at, end, &w, &n))
		return true;
	*ret_path = file ? w : end;
	*ret_end = file ? w + n : end;
	return true;
}

int maps_parse_line(const char *line, size_t n, struct mapping *ret, const char **ret_path,
                    size_t *ret_path_n)
{
	static const char deleted[] = " (deleted)";
	const size_t deleted_n = sizeof(deleted) - 1;
	const char *at = line, *end = line + n, *path = end;
	struct mapping m = { 0 };
	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	if (!lines_hex(&at, end, &m.start) || at == end)
		return 0;
	char separator = *at++;
	if (!lines_hex(&at, end, &m.limit) || m.limit <= m.start)
		return 0;
	if (separator == '-' && at < end && *at == ':') {
		m.executable = true;
		at++;
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		path = at;
	} else if (separator == '-' && at < end && *at == ' ') {
		if (!parse_linux(at, end, &m, &path))
			return 0;
	} else if (separator != ' ' || !parse_freebsd(at, end, &m, &path, &end)) {
		return 0;
	}
	if ((size_t)(end - path) > deleted_n && !memcmp(end - deleted_n, deleted, deleted_n)) {
		m.deleted = true;
		end -= deleted_n;
	}
	*ret = m;
	*ret_path = path;
	*ret_path_n = (size_t)(end - path);
	return 1;
}

/* --- all of them ---------------------------------------------------------- */

struct range {
	struct mapping mapping;
	uint32_t order;             /* in which it was listed */
	uint32_t index;             /* of the profile's mapping, after maps_finish */
	bool used;                  /* a frame lies in it */
};

struct maps {
	struct range *ranges;
	size_t n, capacity;
	bool ended;
};

struct maps *maps_new(void)
{
	return calloc(1, sizeof(struct maps));
}

void maps_free(struct maps *m)
{
	if (!m)
		return;
	free(m->ranges);
	free(m);
}

/* The kernel writes a newline in a path as \012, and nothing else so. */
static int path_string(struct profile *p, const char *path, size_t n, uint32_t *ret, struct error *err)
{
	static const char newline[] = "\\012";
	if (!memmem(path, n, newline, 4)) {
		*ret = profile_string(p, path, n);
		return E_OK;
	}
	struct buf b;
	buf_init(&b, n + 1);
	for (size_t i = 0; i < n;) {
		bool escaped = n - i >= 4 && !memcmp(path + i, newline, 4);
		buf_addc(&b, escaped ? '\n' : path[i]);
		i += escaped ? 4 : 1;
	}
	bool failed = b.failed;
	if (!failed)
		*ret = profile_string(p, b.data, b.len);
	buf_finish(&b);
	return failed ? error_nomem(err, "the path of a mapping") : E_OK;
}

int maps_add_line(struct maps *m, struct profile *p, const char *line, size_t n, struct error *err)
{
	struct mapping mapping;
	const char *path;
	size_t path_n;
	if (!maps_parse_line(line, n, &mapping, &path, &path_n))
		return 0;
	int rc = path_string(p, path, path_n, &mapping.file, err);
	if (rc)
		return rc;
	struct range *e = ARRAY_PUSH(m->ranges, m->n, m->capacity, MAPS_MAX);
	if (!e)
		return error_set(err, E_LIMIT, "more than %zu mappings, or no memory for them", m->n);
	const char *file = profile_text(p, mapping.file);
	m->ended |= *file == '[' && (!strcmp(file, "[stack]") || !strcmp(file, "[vsyscall]"));
	*e = (struct range){ .mapping = mapping, .order = (uint32_t)(m->n - 1), .index = PROFILE_NONE };
	return 1;
}

bool maps_begin(const char *line, size_t n)
{
	return lines_starts(line, n, "MAPPED_LIBRARIES:", 17) ||
	       lines_starts(line, n, "--- Memory map:", 15);
}

bool maps_ended(const struct maps *m)
{
	return m->ended;
}

/* The kernel lists mappings by address. */
int maps_check_end(const struct maps *m, const char *name, const uint64_t *addresses, size_t n,
                   struct error *err)
{
	uint64_t limit = 0;
	if (m->ended)
		return E_OK;
	for (size_t i = 0; i < m->n; i++)
		if (m->ranges[i].mapping.limit > limit)
			limit = m->ranges[i].mapping.limit;
	for (size_t i = 0; i < n; i++)
		if (addresses[i] >= limit)
			return error_set(err, E_TRUNCATED,
			    "%s: the profile ends in the middle of its list of mappings: frame "
			    "0x%llx lies behind the last one",
			    name, (unsigned long long)addresses[i]);
	return E_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	if (x->mapping.start != y->mapping.start)
		return x->mapping.start < y->mapping.start ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static struct range *find(const struct maps *m, uint64_t address)
{
	size_t low = 0, high = m->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (m->ranges[middle].mapping.start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && address < m->ranges[low - 1].mapping.limit ? &m->ranges[low - 1] : NULL;
}

uint32_t maps_find(const struct maps *m, uint64_t address)
{
	const struct range *e = find(m, address);
	return e ? e->index : PROFILE_NONE;
}

static bool continues(const struct mapping *a, const struct mapping *b)
{
	return a->limit == b->start && a->file && a->file == b->file && a->inode == b->inode &&
	       a->executable == b->executable && a->deleted == b->deleted &&
	       a->offset + (a->limit - a->start) == b->offset;
}

static void sort_and_join(struct maps *m)
{
	if (m->n == 0)
		return;
	qsort(m->ranges, m->n, sizeof(*m->ranges), by_start);
	size_t kept = 0;
	for (size_t i = 1; i < m->n; i++) {
		struct range *last = &m->ranges[kept];
		if (continues(&last->mapping, &m->ranges[i].mapping))
			last->mapping.limit = m->ranges[i].mapping.limit;
		else
			m->ranges[++kept] = m->ranges[i];
	}
	m->n = kept + 1;
}

/* libc.so.6, ld-2.31.so, libfoo.so.1.2-beta, x.dylib, binding.node: not what a program is called. */
static bool is_library(const char *path)
{
	static const char *const endings[] = { ".dylib", ".bundle", ".dll", ".node" };
	const char *base = path_base(path);
	size_t n = strlen(base);
	for (const char *so = strstr(base, ".so"); so; so = strstr(so + 1, ".so"))
		if (so[3] == '\0' || so[3] == '.' || so[3] == '-')
			return true;
	for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
		size_t ending_n = strlen(endings[i]);
		if (n > ending_n && !strcmp(base + n - ending_n, endings[i]))
			return true;
	}
	return false;
}

/* Executable memory that a program made for itself (JIT compilers do), not one it came from. */
static bool is_made(const char *path)
{
	return !strncmp(path, "/dev/", 5) || !strncmp(path, "/memfd:", 7) || !strncmp(path, "/SYSV", 5);
}

/* 3: may be the main program, 2 and 1: only if nothing better is there, 0: cannot be. */
static int rank(const struct profile *p, const struct mapping *m)
{
	const char *path = profile_text(p, m->file);
	if (!m->executable || !*path || *path == '[' || !strncmp(path, "anon_inode:", 11))
		return 0;
	return is_library(path) ? 1 : is_made(path) ? 2 : 3;
}

static struct range *main_program(const struct maps *m, const struct profile *p)
{
	struct range *best = NULL;
	int best_rank = 0;
	for (size_t i = 0; i < m->n; i++) {
		struct range *e = &m->ranges[i];
		int r = rank(p, &e->mapping);
		if (r > best_rank || (r > 0 && r == best_rank && e->order < best->order)) {
			best = e;
			best_rank = r;
		}
	}
	return best;
}

int maps_finish(struct maps *m, struct profile *p, const uint64_t *addresses, size_t n,
                struct error *err)
{
	sort_and_join(m);
	for (size_t i = 0; i < n; i++) {
		struct range *e = find(m, addresses[i]);
		if (e)
			e->used = true;
	}
	struct range *main = main_program(m, p);
	if (main)
		main->index = profile_add_mapping(p, &main->mapping);
	for (size_t i = 0; i < m->n; i++) {
		struct range *e = &m->ranges[i];
		bool wanted = e->used || (e->mapping.executable && e->mapping.file);
		if (e != main && wanted)
			e->index = profile_add_mapping(p, &e->mapping);
	}
	if (p->failure.code && err)
		*err = p->failure;
	return p->failure.code;
}
