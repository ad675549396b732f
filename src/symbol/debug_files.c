/*
 * The files that belong to a binary. For each request the places are gone through in order, and every file there is judged
 * by what it must be: a build id decides, the checksum of .gnu_debuglink only where one is missing, since that reads the
 * whole file. A file that has only symbols is kept while one with debug information is looked for.
 */
#include <errno.h>
#include <libdeflate.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/binaries.h"
#include "symbol/candidates.h"
#include "symbol/locate.h"

#define WHY_MAX 4096             /* bytes of sentences about files that were not taken */

struct hunt {
	const struct symbol_options *options;
	const struct file_request *wanted;
	struct stat asker;           /* the file that asks; all zero when it can't be seen */
	char folder[PATH_MAX];       /* its own, links resolved; "" when it has none */
	const char *inner;           /* the same without the sysroot */
	bool by_name;                /* the places tried now follow from a name: what is wrong with files there is told */
	struct elf_file found;
	bool has_found;              /* maybe only symbols */
	struct buf why;              /* lines */
};

/* --- judging --- */

__attribute__((format(printf, 2, 3)))
static void tell(struct hunt *h, const char *format, ...)
{
	struct error line;
	va_list arguments;
	if (!h->by_name)
		return;
	va_start(arguments, format);
	vsnprintf(line.text, sizeof(line.text), format, arguments);
	va_end(arguments);
	buf_adds(&h->why, line.text);
	buf_addc(&h->why, '\n');
}

static bool has_checksum(const struct elf_file *f, uint32_t crc)
{
	return libdeflate_crc32(0, f->image.bytes, f->image.n) == crc;
}

/* Is it the file that was built with the one that asks? */
static bool is_right_build(struct hunt *h, const struct elf_file *f)
{
	const struct file_request *w = h->wanted;
	if (*f->build_id && *w->build_id) {
		bool same = !strcmp(f->build_id, w->build_id);
		if (!same)
			tell(h, "%s has build id %s, %s has %s: not used", f->path, f->build_id, w->of, w->build_id);
		return same;
	}
	bool same = w->kind == FILE_DEBUG && w->name && has_checksum(f, w->crc);
	if (!same && h->by_name && w->kind == FILE_DEBUG && w->name)
		tell(h, "%s has not the checksum that %s asks for: not used", f->path, w->of);
	else if (!same)
		tell(h, "%s has no build id to know it by, %s asks for one: not used", f->path, w->of);
	return same;
}

/* Has it what is asked for? ret_whole: more can't be hoped for. */
static bool suits(struct hunt *h, const struct elf_file *f, bool *ret_whole)
{
	struct elf_section index;
	*ret_whole = true;
	if (f->device == h->asker.st_dev && f->inode == h->asker.st_ino)
		return false;
	switch (h->wanted->kind) {
	case FILE_DEBUG:
		*ret_whole = f->has_debug_info;
		return (f->has_debug_info || f->has_symtab) && is_right_build(h, f);
	case FILE_ALT: return f->has_debug_info && is_right_build(h, f);
	case FILE_DWO: return f->has_split_info;
	case FILE_DWP: return f->has_split_info && elf_section_named(&f->image, ".debug_cu_index", &index);
	}
	return false;
}

/* Takes f over. */
static bool judge(struct hunt *h, struct elf_file *f)
{
	bool whole, right = suits(h, f, &whole);
	if (right && (whole || !h->has_found)) {
		if (h->has_found)
			elf_file_finish(&h->found);
		h->found = *f;
		h->has_found = true;
		return whole;
	}
	elf_file_finish(f);
	return false;
}

static bool take_file(void *context, const char *path)
{
	struct hunt *h = context;
	struct elf_file f;
	struct error err;
	struct stat st;
	if (stat(path, &st) < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			tell(h, "%s: %s: not used", path, strerror(errno));
		return false;
	}
	if (!S_ISREG(st.st_mode))
		return false;
	if (elf_file_open(&f, path, &err) == 0)
		return judge(h, &f);
	tell(h, "%s: not used", err.text);
	elf_file_finish(&f);
	return false;
}

/* --- places --- */

static const char *const none[] = { NULL };

static const char *const *search_of(const struct hunt *h)
{
	return h->options->search ? h->options->search : none;
}

/* "", or what goes before a path of the system. The second is tried when there is nothing at the first. */
static const char *root(const struct hunt *h, unsigned turn)
{
	const char *sysroot = h->options->sysroot;
	if (turn == 0)
		return sysroot ? sysroot : "";
	return turn == 1 && sysroot ? "" : NULL;
}

/* By build id: in the search directories, which may also be the file itself or the root of an unpacked package. */
static bool by_id_in_search(struct hunt *h, const char *suffix)
{
	const char *id = h->wanted->build_id;
	for (const char *const *dir = search_of(h); *dir; dir++) {
		char below[PATH_MAX];
		int n = snprintf(below, sizeof(below), "%s" DEBUG_ROOT, *dir);
		if (candidate_by_id(take_file, h, *dir, id, suffix) ||
		    (n > 0 && (size_t)n < sizeof(below) && candidate_by_id(take_file, h, below, id, suffix)) ||
		    candidate(take_file, h, "%s", *dir))
			return true;
	}
	return false;
}

static bool by_id_in_system(struct hunt *h, const char *suffix)
{
	const char *prefix;
	for (unsigned i = 0; (prefix = root(h, i)); i++) {
		char below[PATH_MAX];
		int n = snprintf(below, sizeof(below), "%s" DEBUG_ROOT, prefix);
		if (n > 0 && (size_t)n < sizeof(below) && candidate_by_id(take_file, h, below, h->wanted->build_id, suffix))
			return true;
	}
	return false;
}

static bool by_debuglink(struct hunt *h)
{
	const char *name = h->wanted->name, *prefix;
	if (!name || !*name || strchr(name, '/'))
		return false;
	h->by_name = true;
	for (const char *const *dir = search_of(h); *dir; dir++)
		if (candidate(take_file, h, "%s/%s", *dir, name) ||
		    candidate(take_file, h, "%s%s/%s", *dir, h->inner, name) ||
		    candidate(take_file, h, "%s" DEBUG_ROOT "%s/%s", *dir, h->inner, name))
			return true;
	if (*h->folder && (candidate(take_file, h, "%s/%s", h->folder, name) ||
	                   candidate(take_file, h, "%s/.debug/%s", h->folder, name)))
		return true;
	for (unsigned i = 0; (prefix = root(h, i)); i++)
		if (candidate(take_file, h, "%s" DEBUG_ROOT "%s/%s", prefix, h->inner, name))
			return true;
	return false;
}

static bool by_debuginfod(struct hunt *h)
{
	char path[PATH_MAX];
	struct elf_file f;
	const char *id = h->wanted->build_id;
	int fd = *id ? debuginfod_open(h->options->debuginfod, DEBUGINFOD_DEBUG, id, path, sizeof(path)) : -1;
	if (fd < 0)
		return false;
	if (elf_file_open_fd(&f, fd, path, NULL) == 0)
		return judge(h, &f);
	elf_file_finish(&f);
	return false;
}

static bool hunt_debug(struct hunt *h)
{
	return by_id_in_search(h, ".debug") || candidates_of_pprof(take_file, h, h->wanted->of, h->wanted->build_id) ||
	       by_id_in_system(h, ".debug") || by_debuglink(h) || by_debuginfod(h);
}

/* A path as some other file names it: absolute ones below the roots, others from that file's folder. */
static bool by_path(struct hunt *h, const char *folder, const char *name)
{
	const char *prefix;
	if (*name != '/')
		return *folder && candidate(take_file, h, "%s/%s", folder, name);
	for (unsigned i = 0; (prefix = root(h, i)); i++)
		if (candidate(take_file, h, "%s%s", prefix, name))
			return true;
	return false;
}

/* dwz's common files lie together in a folder ".dwz" of the debug tree. */
static bool in_dwz_folders(struct hunt *h, const char *name)
{
	const char *dwz = strstr(name, "/.dwz/"), *tail = dwz ? dwz + strlen("/.dwz/") : path_base(name), *prefix;
	for (const char *const *dir = search_of(h); *dir; dir++)
		if (candidate(take_file, h, "%s/.dwz/%s", *dir, tail) ||
		    candidate(take_file, h, "%s" DEBUG_ROOT "/.dwz/%s", *dir, tail) ||
		    candidate(take_file, h, "%s/%s", *dir, path_base(name)))
			return true;
	for (unsigned i = 0; (prefix = root(h, i)); i++)
		if (candidate(take_file, h, "%s" DEBUG_ROOT "/.dwz/%s", prefix, tail))
			return true;
	return false;
}

static bool hunt_alt(struct hunt *h)
{
	const char *name = h->wanted->name;
	if (!name || !*name || !*h->wanted->build_id)
		return false;
	if (by_id_in_search(h, ".debug") || by_id_in_system(h, ".debug"))
		return true;
	h->by_name = true;
	return by_path(h, h->folder, name) || in_dwz_folders(h, name) || by_debuginfod(h);
}

static bool hunt_dwo(struct hunt *h)
{
	const char *name = h->wanted->name, *folder = h->wanted->folder ? h->wanted->folder : "", *prefix;
	if (!name || !*name)
		return false;
	for (const char *const *dir = search_of(h); *dir; dir++)
		if (candidate(take_file, h, "%s/%s", *dir, name) || candidate(take_file, h, "%s/%s", *dir, path_base(name)) ||
		    (*name != '/' && candidate(take_file, h, "%s/%s/%s", *dir, folder, name)))
			return true;
	if (*name == '/' ? by_path(h, "", name) : by_path(h, h->folder, name))
		return true;
	for (unsigned i = 0; *name != '/' && *folder == '/' && (prefix = root(h, i)); i++)
		if (candidate(take_file, h, "%s%s/%s", prefix, folder, name))
			return true;
	return *h->folder && candidate(take_file, h, "%s/%s", h->folder, path_base(name));
}

static bool hunt_dwp(struct hunt *h)
{
	const char *of = h->wanted->of, *base = path_base(of), *prefix;
	size_t n = strlen(of), suffix = strlen(".debug");
	int bare = n > suffix && !strcmp(of + n - suffix, ".debug") ? (int)(n - suffix) : 0;
	for (const char *const *dir = search_of(h); *dir; dir++)
		if (candidate_by_id(take_file, h, *dir, h->wanted->build_id, ".dwp") ||
		    candidate(take_file, h, "%s/%s.dwp", *dir, base) ||
		    candidate(take_file, h, "%s%s/%s.dwp", *dir, h->inner, base) || candidate(take_file, h, "%s", *dir))
			return true;
	if (candidate(take_file, h, "%s.dwp", of) || (bare && candidate(take_file, h, "%.*s.dwp", bare, of)) ||
	    (*h->folder && candidate(take_file, h, "%s/%s.dwp", h->folder, base)) || by_id_in_system(h, ".dwp"))
		return true;
	for (unsigned i = 0; (prefix = root(h, i)); i++)
		if (candidate(take_file, h, "%s" DEBUG_ROOT "%s/%s.dwp", prefix, h->inner, base))
			return true;
	return false;
}

/* --- a request --- */

/* The folder with links resolved, as the debug tree mirrors real paths. */
static void find_folder(struct hunt *h)
{
	char real_root[PATH_MAX];
	const char *sysroot = h->options->sysroot;
	h->inner = h->folder;
	if (!realpath(h->wanted->of, h->folder)) {
		h->folder[0] = '\0';
		return;
	}
	char *slash = strrchr(h->folder, '/');
	if (slash)
		*slash = '\0';
	size_t n = sysroot && realpath(sysroot, real_root) ? strlen(real_root) : 0;
	if (n > 1 && !strncmp(h->folder, real_root, n) && (h->folder[n] == '/' || !h->folder[n]))
		h->inner = h->folder + n;
}

/* True: h->found is the caller's. h->why is in any case. */
static bool hunt(struct hunt *h, const struct symbol_options *o, const struct file_request *r)
{
	static const struct symbol_options no_options;
	memset(h, 0, sizeof(*h));
	h->options = o ? o : &no_options;
	h->wanted = r;
	buf_init(&h->why, WHY_MAX);
	if (stat(r->of, &h->asker) < 0)
		memset(&h->asker, 0, sizeof(h->asker));
	find_folder(h);
	switch (r->kind) {
	case FILE_DEBUG: hunt_debug(h); break;
	case FILE_ALT: hunt_alt(h); break;
	case FILE_DWO: hunt_dwo(h); break;
	case FILE_DWP: hunt_dwp(h); break;
	}
	return h->has_found;
}

bool locate_debug_file(const struct elf_file *f, const struct symbol_options *o, struct elf_file *ret)
{
	struct hunt h;
	struct file_request r = { .kind = FILE_DEBUG, .of = f->path, .build_id = f->build_id };
	r.name = elf_file_debuglink(f, &r.crc);
	bool found = hunt(&h, o, &r);
	if (found)
		*ret = h.found;
	buf_finish(&h.why);
	return found;
}

void locator_init(struct locator *l, const struct symbol_options *o, struct buf *warnings)
{
	*l = (struct locator){ .options = o, .warnings = warnings };
	pthread_mutex_init(&l->lock, NULL);
}

void locator_finish(struct locator *l)
{
	if (l)
		pthread_mutex_destroy(&l->lock);
}

/* Each sentence once, however many ask for the file. */
static void warn(struct locator *l, struct buf *lines)
{
	if (!l->warnings || !lines->len)
		return;
	pthread_mutex_lock(&l->lock);
	for (char *line = lines->data, *end; *line; line = end + 1) {
		end = line + strcspn(line, "\n");
		if (!*end)
			break;
		*end = '\0';
		binaries_warn(l->warnings, line);
	}
	pthread_mutex_unlock(&l->lock);
}

static int open_requested(void *context, const struct file_request *r, char *ret_path, unsigned long size)
{
	struct locator *l = context;
	struct hunt h;
	int fd = -1;
	if (hunt(&h, l->options, r) && strlen(h.found.path) < size) {
		memcpy(ret_path, h.found.path, strlen(h.found.path) + 1);
		fd = h.found.fd;
		h.found.fd = -1;
	} else {
		warn(l, &h.why);
	}
	if (h.has_found)
		elf_file_finish(&h.found);
	buf_finish(&h.why);
	return fd;
}

struct file_source locator_files(struct locator *l)
{
	return (struct file_source){ open_requested, l };
}
