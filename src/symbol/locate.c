/*
 * Candidates are opened one after the other until one has the right build id. The checksum of
 * .gnu_debuglink is computed only when a build id is missing, since that reads the whole file.
 */
#include "symbol/locate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#define DEBUG_ROOT "/usr/lib/debug"

typedef bool suits_fn(const struct elf_file *candidate, const void *context);

static bool try_file(const char *path, suits_fn *suits, const void *context, struct elf_file *ret)
{
	if (elf_file_open(ret, path, NULL) == 0 && suits(ret, context))
		return true;
	elf_file_finish(ret);
	return false;
}

__attribute__((format(printf, 4, 5)))
static bool try_path(suits_fn *suits, const void *context, struct elf_file *ret, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	return n > 0 && (size_t)n < sizeof(path) && try_file(path, suits, context, ret);
}

static bool try_build_id(const char *root, const char *id, const char *suffix, suits_fn *suits,
                         const void *context, struct elf_file *ret)
{
	return strlen(id) > 2 &&
	       try_path(suits, context, ret, "%s/.build-id/%.2s/%s%s", root, id, id + 2, suffix);
}

static const char *const no_search[] = { NULL };

static const char *const *search_of(const struct symbol_options *o)
{
	return o && o->search ? o->search : no_search;
}

/* --- debug files --- */

struct debug_wanted {
	const struct elf_file *binary;
	bool by_checksum;
	uint32_t crc;
};

static bool has_checksum(const struct elf_file *f, uint32_t crc)
{
	uint8_t block[64 << 10];
	uLong sum = crc32(0, NULL, 0);
	off_t at = 0;
	for (;;) {
		ssize_t n = pread(f->fd, block, sizeof(block), at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n == 0 && sum == crc;
		sum = crc32(sum, block, (uInt)n);
		at += n;
	}
}

static bool suits_as_debug_file(const struct elf_file *candidate, const void *context)
{
	const struct debug_wanted *w = context;
	if (!candidate->has_debug_info && !candidate->has_symtab)
		return false;
	if (candidate->device == w->binary->device && candidate->inode == w->binary->inode)
		return false;
	if (*candidate->build_id && *w->binary->build_id)
		return !strcmp(candidate->build_id, w->binary->build_id);
	return w->by_checksum && has_checksum(candidate, w->crc);
}

/* The folder of the binary with links resolved, as the debug tree mirrors real paths. */
static bool real_folder(const char *path, char *folder)
{
	if (!realpath(path, folder))
		return false;
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	return slash != NULL;
}

static bool by_debuglink(const struct elf_file *f, const struct symbol_options *o,
                         struct elf_file *ret)
{
	struct debug_wanted w = { .binary = f, .by_checksum = true };
	const char *name = elf_file_debuglink(f, &w.crc);
	char folder[PATH_MAX];
	if (!name || !*name || strchr(name, '/') || !real_folder(f->path, folder))
		return false;
	for (const char *const *dir = search_of(o); *dir; dir++)
		if (try_path(suits_as_debug_file, &w, ret, "%s/%s", *dir, name) ||
		    try_path(suits_as_debug_file, &w, ret, "%s%s/%s", *dir, folder, name))
			return true;
	return try_path(suits_as_debug_file, &w, ret, "%s/%s", folder, name) ||
	       try_path(suits_as_debug_file, &w, ret, "%s/.debug/%s", folder, name) ||
	       try_path(suits_as_debug_file, &w, ret, DEBUG_ROOT "%s/%s", folder, name);
}

bool locate_debug_file(const struct elf_file *f, const struct symbol_options *o,
                       struct elf_file *ret)
{
	struct debug_wanted w = { .binary = f };
	for (const char *const *dir = search_of(o); *dir; dir++)
		if (try_build_id(*dir, f->build_id, ".debug", suits_as_debug_file, &w, ret))
			return true;
	return try_build_id(DEBUG_ROOT, f->build_id, ".debug", suits_as_debug_file, &w, ret) ||
	       by_debuglink(f, o, ret);
}

/* --- binaries --- */

bool locate_matches(const struct elf_file *f, const struct mapped_file *m, struct error *ret_reason)
{
	if (*m->build_id && *f->build_id && strcmp(f->build_id, m->build_id)) {
		error_set(ret_reason, E_FORMAT,
		          "was replaced since the profile was taken (build id %s, profile has %s)",
		          f->build_id, m->build_id);
		return false;
	}
	if (*m->build_id && *f->build_id)
		return true;
	for (size_t i = 0; i < m->n_extents; i++)
		if (!elf_file_covers(f, m->extents[i].offset, m->extents[i].bytes)) {
			error_set(ret_reason, E_FORMAT,
			          "was replaced since the profile was taken (no code at offset 0x%llx, "
			          "length 0x%llx, which the profile has mapped)",
			          (unsigned long long)m->extents[i].offset,
			          (unsigned long long)m->extents[i].bytes);
			return false;
		}
	return true;
}

static bool has_code(const struct elf_file *f)
{
	for (size_t i = 0; i < f->n_segments; i++)
		if (f->segments[i].executable && f->segments[i].file_bytes)
			return true;
	return false;
}

static bool suits_as_binary(const struct elf_file *candidate, const void *context)
{
	return has_code(candidate) && locate_matches(candidate, context, NULL);
}

/* A file that was given for whatever it fits: where nothing else is known, its name must be right. */
static bool suits_alone(const struct elf_file *candidate, const void *context)
{
	const struct mapped_file *m = context;
	return (m->n_extents || !strcmp(path_base(candidate->path), path_base(m->path))) &&
	       suits_as_binary(candidate, m);
}

/* A separate debug file has the build id but not the bytes, so offsets can't be turned into addresses. */
static bool suits_by_id(const struct elf_file *candidate, const void *context)
{
	const struct mapped_file *m = context;
	if (!has_code(candidate))
		return false;
	for (size_t i = 0; i < m->n_extents; i++)
		if (!elf_file_covers(candidate, m->extents[i].offset, m->extents[i].bytes))
			return false;
	return !strcmp(candidate->build_id, m->build_id);
}

bool locate_binary(const struct mapped_file *m, const struct symbol_options *o,
                   struct elf_file *ret)
{
	for (const char *const *dir = search_of(o); *dir; dir++)
		if (try_build_id(*dir, m->build_id, "", suits_by_id, m, ret) ||
		    try_build_id(*dir, m->build_id, ".debug", suits_by_id, m, ret) ||
		    try_path(suits_as_binary, m, ret, "%s%s%s", *dir, *m->path == '/' ? "" : "/", m->path) ||
		    try_path(suits_as_binary, m, ret, "%s/%s", *dir, path_base(m->path)) ||
		    try_file(*dir, *m->build_id ? suits_by_id : suits_alone, m, ret))
			return true;
	return false;
}
