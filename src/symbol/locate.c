/*
 * The binary of a mapping: candidates are opened one after the other until one has the right build id, or, where there is
 * none, code where the profile has it mapped.
 */
#include "symbol/locate.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "symbol/candidates.h"

static const char *const no_search[] = { NULL };

static const char *const *search_of(const struct symbol_options *o)
{
	return o && o->search ? o->search : no_search;
}

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

static bool suits_as_binary(const struct elf_file *candidate, const struct mapped_file *m)
{
	return has_code(candidate) && locate_matches(candidate, m, NULL);
}

/* A file that was given for whatever it fits: where nothing else is known, its name must be right. */
static bool suits_alone(const struct elf_file *candidate, const struct mapped_file *m)
{
	return (m->n_extents || !strcmp(path_base(candidate->path), path_base(m->path))) &&
	       suits_as_binary(candidate, m);
}

/*
 * A separate debug file has the build id but not the bytes, so offsets can't be turned into addresses. What the profile has mapped is not
 * looked at: who puts profiles together need not know how much of the file it was, as the recorder's store doesn't.
 */
static bool suits_by_id(const struct elf_file *candidate, const struct mapped_file *m)
{
	return has_code(candidate) && !strcmp(candidate->build_id, m->build_id);
}

struct binary_hunt {
	const struct mapped_file *mapped;
	bool (*suits)(const struct elf_file *candidate, const struct mapped_file *m);
	struct elf_file *ret;
};

static bool take_binary(void *context, const char *path)
{
	const struct binary_hunt *h = context;
	if (access(path, F_OK) == 0 && elf_file_open(h->ret, path, NULL) == 0 && h->suits(h->ret, h->mapped))
		return true;
	elf_file_finish(h->ret);
	return false;
}

static bool from_debuginfod(const struct mapped_file *m, const struct symbol_options *o, struct elf_file *ret)
{
	char path[PATH_MAX];
	int fd = *m->build_id ? debuginfod_open(o->debuginfod, DEBUGINFOD_EXECUTABLE, m->build_id, path, sizeof(path)) : -1;
	if (fd < 0)
		return false;
	if (elf_file_open_fd(ret, fd, path, NULL) == 0 && suits_by_id(ret, m))
		return true;
	elf_file_finish(ret);
	return false;
}

bool locate_binary(const struct mapped_file *m, const struct symbol_options *o, struct elf_file *ret)
{
	struct binary_hunt by_id = { m, suits_by_id, ret }, as_binary = { m, suits_as_binary, ret },
	                   alone = { m, *m->build_id ? suits_by_id : suits_alone, ret };
	memset(ret, 0, sizeof(*ret));
	ret->fd = -1;
	for (const char *const *dir = search_of(o); *dir; dir++)
		if (candidate_by_id(take_binary, &by_id, *dir, m->build_id, "") ||
		    candidate_by_id(take_binary, &by_id, *dir, m->build_id, ".debug") ||
		    candidate(take_binary, &as_binary, "%s%s%s", *dir, *m->path == '/' ? "" : "/", m->path) ||
		    candidate(take_binary, &as_binary, "%s/%s", *dir, path_base(m->path)) ||
		    candidate(take_binary, &alone, "%s", *dir))
			return true;
	return candidates_of_pprof(take_binary, &as_binary, m->path, m->build_id) || (o && from_debuginfod(m, o, ret));
}
