#include "symbol/candidates.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

#define ENTRIES_MAX 64           /* of a build id's folder */

bool candidate(candidate_fn *take, void *context, const char *format, ...)
{
	char path[PATH_MAX];
	va_list arguments;
	va_start(arguments, format);
	int n = vsnprintf(path, sizeof(path), format, arguments);
	va_end(arguments);
	return n > 0 && (size_t)n < sizeof(path) && take(context, path);
}

/* It becomes part of a path, and comes from a profile. */
static bool is_build_id(const char *text)
{
	size_t n = strlen(text);
	return n > 2 && strspn(text, "0123456789abcdef") == n;
}

bool candidate_by_id(candidate_fn *take, void *context, const char *root, const char *build_id, const char *suffix)
{
	return is_build_id(build_id) &&
	       candidate(take, context, "%s/.build-id/%.2s/%s%s", root, build_id, build_id + 2, suffix);
}

/* Whatever lies in root/BUILD-ID. */
static bool in_folder(candidate_fn *take, void *context, const char *root, const char *build_id)
{
	char folder[PATH_MAX];
	int n = snprintf(folder, sizeof(folder), "%s/%s", root, build_id);
	DIR *d = n > 0 && (size_t)n < sizeof(folder) ? opendir(folder) : NULL;
	struct dirent *entry;
	bool taken = false;
	for (int i = 0; d && !taken && i < ENTRIES_MAX && (entry = readdir(d)); i++)
		taken = entry->d_name[0] != '.' && candidate(take, context, "%s/%s", folder, entry->d_name);
	if (d)
		closedir(d);
	return taken;
}

static bool below(candidate_fn *take, void *context, const char *root, const char *path, const char *build_id)
{
	const char *base = path_base(path), *slash = *path == '/' ? "" : "/";
	int folder = (int)(base - path);         /* with the slash at its end */
	if (is_build_id(build_id) &&
	    (candidate(take, context, "%s/%s/%s", root, build_id, base) || in_folder(take, context, root, build_id) ||
	     candidate(take, context, "%s%s%s/%s", root, slash, path, build_id) ||
	     candidate(take, context, "%s/%.2s/%s.debug", root, build_id, build_id + 2) ||
	     candidate_by_id(take, context, root, build_id, ".debug")))
		return true;
	return *base && (candidate(take, context, "%s/%s", root, base) ||
	                 candidate(take, context, "%s%s%s", root, slash, path) ||
	                 candidate(take, context, "%s%s%s.debug", root, slash, path) ||
	                 candidate(take, context, "%s%s%.*s.debug/%s.debug", root, slash, folder, path, base) ||
	                 candidate(take, context, "%s" DEBUG_ROOT "%s%s.debug", root, slash, path));
}

bool candidates_of_pprof(candidate_fn *take, void *context, const char *path, const char *build_id)
{
	const char *list = getenv("PPROF_BINARY_PATH"), *home = getenv("HOME");
	char root[PATH_MAX];
	if (!list || !*list) {
		int n = snprintf(root, sizeof(root), "%s/pprof/binaries", home ? home : "");
		return home && (size_t)n < sizeof(root) && below(take, context, root, path, build_id);
	}
	while (*list) {
		size_t n = strcspn(list, ":");
		if (n > 0 && n < sizeof(root)) {
			memcpy(root, list, n);
			root[n] = '\0';
			if (below(take, context, root, path, build_id))
				return true;
		}
		list += n + (list[n] == ':');
	}
	return false;
}
