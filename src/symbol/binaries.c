/*
 * A mapping's path is what the process saw; the file there today may be another one. A build id
 * proves it either way; without one the mapped extents, where the profile knows them, must at least
 * fit its code segments. A different inode proves nothing (copies, overlay file systems).
 */
#include "symbol/binaries.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "profile/operations.h"

#define BINARIES_MAX ((size_t)1 << 24)
#define OLD_FILE "; its frames stay unnamed; point --debug-dir to the old file"

/* Paths of mappings with nothing on disk behind them. */
static bool has_file(const char *path)
{
	static const char *const none[] = { "[", "//", "/memfd:", "/dev/", "/SYSV", "/anon_hugepage",
		                            "/[", "anon_inode:", "socket:", "pipe:" };
	if (!*path)
		return false;
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		if (!strncmp(path, none[i], strlen(none[i])))
			return false;
	return true;
}

bool *binaries_used(const struct profile *p)
{
	bool *used = calloc(p->n_mappings + 1, sizeof(*used));
	for (size_t i = 0; used && i < p->n_locations; i++)
		if (p->locations[i].mapping != PROFILE_NONE)
			used[p->locations[i].mapping] = true;
	return used;
}

struct same_binary {
	const struct binaries *binaries;
	const struct mapping *mapping;
};

static bool same_binary(const void *context, uint32_t item)
{
	const struct same_binary *s = context;
	const struct binary *b = &s->binaries->items[item];
	return b->file == s->mapping->file && b->build_id == s->mapping->build_id;
}

static int add_mapping(struct binaries *b, struct index *known, const struct profile *p, size_t number,
                       const bool *is_used, struct error *err)
{
	const struct mapping *m = &p->mappings[number];
	uint64_t hash = hash_mix(hash_u64(m->file), m->build_id);
	uint32_t found = index_find(known, hash, same_binary, &(struct same_binary){ b, m });
	if (found == INDEX_NONE) {
		struct binary *fresh = index_reserve(known)
		                           ? ARRAY_PUSH(b->items, b->n, b->capacity, BINARIES_MAX)
		                           : NULL;
		if (!fresh)
			return error_nomem(err, "binaries");
		memset(fresh, 0, sizeof(*fresh));
		fresh->file = m->file;
		fresh->build_id = m->build_id;
		fresh->is_main = m->file == p->mappings[0].file;
		found = (uint32_t)(b->n - 1);
		index_insert(known, hash, found);
	}
	struct binary *binary = &b->items[found];
	b->of_mapping[number] = found;
	binary->deleted |= m->deleted;
	if ((!is_used[number] && !m->executable) || !mapping_has_extent(m))
		return 0;
	struct mapped_extent *e = ARRAY_PUSH(binary->extents, binary->n_extents,
	                                     binary->extents_capacity, BINARIES_MAX);
	if (!e)
		return error_nomem(err, "binaries");
	*e = (struct mapped_extent){ m->offset, m->limit - m->start };
	return 0;
}

int binaries_init(struct binaries *b, const struct profile *p, const bool *is_used, struct error *err)
{
	struct index known = { 0 };
	memset(b, 0, sizeof(*b));
	b->of_mapping = calloc(p->n_mappings + 1, sizeof(*b->of_mapping));
	int rc = b->of_mapping ? 0 : error_nomem(err, "binaries");
	for (size_t i = 0; i < p->n_mappings && rc == 0; i++)
		rc = add_mapping(b, &known, p, i, is_used, err);
	index_finish(&known);
	return rc;
}

void binaries_finish(struct binaries *b)
{
	for (size_t i = 0; i < b->n; i++) {
		if (b->items[i].state == BINARY_OPEN)
			elf_file_finish(&b->items[i].elf);
		free(b->items[i].extents);
	}
	free(b->items);
	free(b->of_mapping);
	memset(b, 0, sizeof(*b));
}

/* --binary: the user says that this is the main program, so anything wrong with it is an error. */
static int open_given(struct binary *b, const struct mapped_file *m, const char *path,
                      struct error *err)
{
	struct error reason;
	int rc = elf_file_open(&b->elf, path, err);
	if (rc == 0 && !locate_matches(&b->elf, m, &reason))
		rc = error_set(err, E_FORMAT, "%s is not the program the profile was taken from: it %s",
		               path, reason.text);
	if (rc)
		elf_file_finish(&b->elf);
	else
		b->state = BINARY_OPEN;
	return rc;
}

/* At its own path; state and error tell. */
static void open_at_path(struct binary *b, const struct mapped_file *m, const char *sysroot)
{
	struct error reason;
	char path[PATH_MAX];
	if (b->deleted && !*m->build_id) {
		b->state = BINARY_REFUSED;
		error_set(&b->error, E_FORMAT,
		          "%s was deleted or replaced while the process ran" OLD_FILE, m->path);
		return;
	}
	int n = snprintf(path, sizeof(path), "%s%s", sysroot ? sysroot : "", m->path);
	/* A relative path means nothing here. */
	if (m->path[0] != '/' || n < 0 || (size_t)n >= sizeof(path) ||
	    (access(path, F_OK) && (errno == ENOENT || errno == ENOTDIR))) {
		b->state = BINARY_MISSING;
		return;
	}
	if (elf_file_open(&b->elf, path, &reason)) {
		b->state = BINARY_REFUSED;
		error_set(&b->error, reason.code, "%s; its frames stay unnamed", reason.text);
	} else if (!locate_matches(&b->elf, m, &reason)) {
		b->state = BINARY_REFUSED;
		error_set(&b->error, E_FORMAT, "%s %s" OLD_FILE, path, reason.text);
	} else {
		b->state = BINARY_OPEN;
	}
	if (b->state != BINARY_OPEN)
		elf_file_finish(&b->elf);
}

int binary_open(struct binary *b, const struct profile *p, const struct symbol_options *o,
                struct error *err)
{
	struct mapped_file m = { profile_text(p, b->file), profile_text(p, b->build_id), b->extents,
		                 b->n_extents };
	if (b->is_main && o && o->binary)
		return open_given(b, &m, o->binary, err);
	if (!has_file(m.path)) {
		b->state = BINARY_NO_FILE;
		return 0;
	}
	open_at_path(b, &m, o ? o->sysroot : NULL);
	if (b->state != BINARY_OPEN && locate_binary(&m, o, &b->elf))
		b->state = BINARY_OPEN;
	return 0;
}

void binaries_warn(struct buf *warnings, const char *line)
{
	struct buf safe;
	if (!warnings)
		return;
	buf_init(&safe, 64 << 10);
	text_add_terminal(&safe, line, strlen(line));
	buf_addc(&safe, '\n');
	if (!safe.failed && (warnings->len == 0 || !memmem(warnings->data, warnings->len, safe.data, safe.len)))
		buf_add(warnings, safe.data, safe.len);
	buf_finish(&safe);
}
