/*
 * The names looked for are put together here from halves, so that this program doesn't look like jemalloc itself.
 */
#include "attach/jemalloc_file.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* Linkers of today keep constants apart from code. */
static bool has_constants_apart(const struct elf_image *e)
{
	struct elf_segment s;
	for (uint32_t k = 0; elf_segment(e, k, &s); k++)
		if (s.type == PT_LOAD && s.flags == PF_R)
			return true;
	return false;
}

/* The file's bytes of the i-th loaded segment that may hold strings; false past the last. */
static bool loaded_bytes(const struct elf_image *e, size_t i, const char **ret, size_t *ret_n)
{
	struct elf_segment s;
	bool apart = has_constants_apart(e);
	for (uint32_t k = 0; elf_segment(e, k, &s); k++) {
		if (s.type != PT_LOAD || (apart && (s.flags & PF_X)) || i-- > 0)
			continue;
		if (s.offset > e->n)
			s.file_bytes = s.offset = 0;
		*ret = (const char *)e->bytes + s.offset;
		*ret_n = s.file_bytes < e->n - s.offset ? s.file_bytes : e->n - s.offset;
		return true;
	}
	return false;
}

#define SEGMENTS_LOOKED_AT 64

static bool has_text(const struct elf_image *e, const char *first, const char *second)
{
	char text[64];
	const char *at;
	size_t n;
	snprintf(text, sizeof text, "%s%s", first, second);
	for (size_t i = 0; i < SEGMENTS_LOOKED_AT && loaded_bytes(e, i, &at, &n); i++)
		if (memmem(at, n, text, strlen(text)))
			return true;
	return false;
}

static void add_variable(struct jemalloc_file *j, const char *name, size_t length)
{
	if (j->n_variables == JEMALLOC_VARIABLES || length >= sizeof j->variables[0])
		return;
	for (size_t i = 0; i < j->n_variables; i++)
		if (strlen(j->variables[i]) == length && memcmp(j->variables[i], name, length) == 0)
			return;
	memcpy(j->variables[j->n_variables++], name, length);
}

static bool in_a_variable(char c)
{
	return (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

/* Strings "...MALLOC_CONF" made of capitals, digits and underscores only. */
static void find_variables(const struct elf_image *e, struct jemalloc_file *j)
{
	static const char ending[] = "MALLOC_CONF";
	const char *at, *hit;
	size_t n;
	for (size_t i = 0; i < SEGMENTS_LOOKED_AT && loaded_bytes(e, i, &at, &n); i++) {
		const char *end = at + n, *from = at;
		while ((hit = memmem(from, (size_t)(end - from), ending, sizeof ending))) {
			const char *start = hit;
			while (start > from && in_a_variable(start[-1]))
				start--;
			from = hit + sizeof ending;
			if (start > at && !start[-1])
				add_variable(j, start, (size_t)(from - 1 - start));
		}
	}
}

static size_t digits(const char *at, const char *end)
{
	size_t n = 0;
	while (at + n < end && at[n] >= '0' && at[n] <= '9')
		n++;
	return n;
}

/* "5.3.0-0-g" and 40 digits of a commit, a string of its own; its length, 0 when it is none. */
static size_t version_length(const char *start, const char *end)
{
	const char *at = start;
	for (int part = 0; part < 4; part++) {
		size_t n = digits(at, end);
		at += n;
		if (!n || at >= end || *at != "..--"[part])
			return 0;
		at++;
	}
	if (at >= end || *at++ != 'g')
		return 0;
	size_t n = 0;
	while (at + n < end && n <= 40 && ((at[n] >= '0' && at[n] <= '9') || (at[n] >= 'a' && at[n] <= 'f')))
		n++;
	return n == 40 && at + n < end && !at[n] ? (size_t)(at + n - start) : 0;
}

static void find_version(const struct elf_image *e, struct jemalloc_file *j)
{
	const char *at, *hit;
	size_t n;
	for (size_t i = 0; i < SEGMENTS_LOOKED_AT && loaded_bytes(e, i, &at, &n); i++) {
		const char *end = at + n;
		for (const char *from = at; (hit = memmem(from, (size_t)(end - from), "-g", 2)); from = hit + 2) {
			const char *start = hit;
			while (start > at && hit - start < 20 && start[-1])
				start--;
			size_t length = version_length(start, end);
			if (length && length < sizeof j->version) {
				memcpy(j->version, start, length);
				return;
			}
		}
	}
}

bool jemalloc_file_look(const struct elf_image *e, struct jemalloc_file *ret)
{
	struct jemalloc_file j = { 0 };
	if (!has_text(e, "dirty_", "decay_ms"))
		return false;
	find_variables(e, &j);
	if (!j.n_variables)
		return false;
	find_version(e, &j);
	/* prof_unbias is only read where profiling is built in; hpa came with it in 5.3. */
	j.without_profiling = has_text(e, "hpa_", "dirty_mult") && !has_text(e, "prof_", "unbias");
	j.thread_names = has_text(e, "prof_sys_", "thread_name") && !j.without_profiling;
	*ret = j;
	return true;
}

void jemalloc_file_prefix(const char *variable, char *to, size_t room)
{
	const char *end = strstr(variable, "MALLOC_CONF");
	size_t n = end ? (size_t)(end - variable) : 0;
	if (n >= room)
		n = 0;
	for (size_t i = 0; i < n; i++)
		to[i] = (char)(variable[i] >= 'A' && variable[i] <= 'Z' ? variable[i] - 'A' + 'a' : variable[i]);
	to[n] = '\0';
}
