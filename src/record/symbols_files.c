/* The folder of uploaded files: FOLDER/.build-id/ab/cdef and cdef.debug, written beside as FOLDER/.upload-XXXXXX and renamed. */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/symbols_private.h"

#define TEMPORARY ".upload-"
#define DEBUG_SUFFIX ".debug"

const char *const symbols_kind_names[SYMBOLS_KINDS + 1] = { "binary", "debug", NULL };

bool symbols_build_id_valid(const char *build_id)
{
	size_t n = strlen(build_id);
	return n >= BUILD_ID_MIN && n < BUILD_ID_TEXT && strspn(build_id, "0123456789abcdef") == n;
}

bool symbols_file_path(const struct symbols *s, const char *build_id, enum symbols_kind kind, char to[PATH_MAX])
{
	int n = snprintf(to, PATH_MAX, "%s/.build-id/%.2s/%s%s", s->settings.folder, build_id, build_id + 2, kind == SYMBOLS_DEBUG ? DEBUG_SUFFIX : "");
	return n > 0 && n < PATH_MAX;
}

bool symbols_file_has(const struct symbols *s, const char *build_id, enum symbols_kind kind, bool *ret_debug_info)
{
	char path[PATH_MAX];
	struct elf_file f;
	*ret_debug_info = false;
	if (!s->settings.folder || !symbols_file_path(s, build_id, kind, path) || access(path, R_OK) < 0)
		return false;
	bool has = elf_file_open(&f, path, NULL) == 0;
	*ret_debug_info = has && f.has_debug_info;
	elf_file_finish(&f);
	return has;
}

/* --- going through it --- */

static void each_in(int folder, const char *first_two, void (*each)(void *, const char *, enum symbols_kind, uint64_t), void *context)
{
	int fd = openat(folder, first_two, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	if (!d && fd >= 0)
		close(fd);
	while (d && (entry = readdir(d))) {
		char id[BUILD_ID_TEXT + sizeof DEBUG_SUFFIX];
		struct stat st;
		int n = snprintf(id, sizeof id, "%s%s", first_two, entry->d_name);
		if (n < 0 || (size_t)n >= sizeof id || fstatat(fd, entry->d_name, &st, 0) < 0 || !S_ISREG(st.st_mode))
			continue;
		size_t suffix = sizeof DEBUG_SUFFIX - 1;
		bool debug = (size_t)n > suffix && strcmp(id + n - suffix, DEBUG_SUFFIX) == 0;
		if (debug)
			id[(size_t)n - suffix] = '\0';
		if (symbols_build_id_valid(id))
			each(context, id, debug ? SYMBOLS_DEBUG : SYMBOLS_BINARY, (uint64_t)st.st_size);
	}
	if (d)
		closedir(d);
}

void symbols_files_each(const struct symbols *s, void (*each)(void *context, const char *build_id, enum symbols_kind kind, uint64_t bytes),
                        void *context)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/.build-id", s->settings.folder ? s->settings.folder : "");
	DIR *d = s->settings.folder && n > 0 && (size_t)n < sizeof path ? opendir(path) : NULL;
	struct dirent *entry;
	while (d && (entry = readdir(d)))
		if (strlen(entry->d_name) == 2 && entry->d_name[0] != '.')
			each_in(dirfd(d), entry->d_name, each, context);
	if (d)
		closedir(d);
}

static void add_bytes(void *context, const char *build_id, enum symbols_kind kind, uint64_t bytes)
{
	(void)build_id;
	(void)kind;
	*(uint64_t *)context += bytes;
}

uint64_t symbols_files_clean(const struct symbols *s)
{
	uint64_t bytes = 0;
	DIR *d = s->settings.folder ? opendir(s->settings.folder) : NULL;
	struct dirent *entry;
	while (d && (entry = readdir(d)))
		if (strncmp(entry->d_name, TEMPORARY, sizeof TEMPORARY - 1) == 0)
			unlinkat(dirfd(d), entry->d_name, 0);
	if (d)
		closedir(d);
	symbols_files_each(s, add_bytes, &bytes);
	return bytes;
}

/* --- a new one --- */

static int io_error(const char *path, struct error *err)
{
	return error_set(err, E_IO, "%.300s: %s", path, strerror(errno));
}

static int make_folder(const char *path, struct error *err)
{
	return mkdir(path, 0700) < 0 && errno != EEXIST ? io_error(path, err) : 0;
}

int symbols_file_begin(struct upload *u, struct error *err)
{
	const char *folder = u->symbols->settings.folder;
	int failed = make_folder(folder, err), n = snprintf(u->path, sizeof u->path, "%s/" TEMPORARY "XXXXXX", folder);
	if (failed)
		return failed;
	if (n < 0 || (size_t)n >= sizeof u->path)
		return error_set(err, E_LIMIT, "the path of the folder for uploads is too long");
	u->fd = mkostemp(u->path, O_CLOEXEC);
	if (u->fd >= 0)
		return 0;
	failed = io_error(u->path, err);
	u->path[0] = '\0';
	return failed;
}

void symbols_upload_free(struct upload *u)
{
	if (!u)
		return;
	if (u->fd >= 0)
		close(u->fd);
	if (u->path[0])
		unlink(u->path);
	pthread_mutex_lock(&u->symbols->lock);
	u->symbols->n_uploads--;
	u->symbols->reserved -= u->expected;
	pthread_mutex_unlock(&u->symbols->lock);
	free(u);
}

/* Is all in the file that its tables speak of? */
static bool is_whole(const struct elf_file *f)
{
	struct elf_section section;
	for (size_t i = 0; i < f->n_segments; i++)
		if (f->segments[i].offset > f->bytes || f->segments[i].file_bytes > f->bytes - f->segments[i].offset)
			return false;
	for (uint32_t i = 0; elf_section(&f->image, i, &section); i++)
		if (section.type != SHT_NOBITS && section.type != SHT_NULL && section.bytes && !elf_section_bytes(&f->image, &section))
			return false;
	return true;
}

/* E_USAGE unless it is an ELF file of that build id with what its kind needs. */
static int check(const struct upload *u, struct error *err)
{
	struct elf_file f;
	struct error why;
	int failed = 0;
	if (elf_file_open(&f, u->path, &why))
		failed = error_set(err, E_USAGE, "this is no ELF file, or a damaged one");
	else if (!f.build_id[0])
		failed = error_set(err, E_USAGE, "the file has no build id: link with --build-id");
	else if (strcmp(f.build_id, u->build_id) != 0)
		failed = error_set(err, E_USAGE, "the file's build id is %s, not %s", f.build_id, u->build_id);
	else if (!is_whole(&f))
		failed = error_set(err, E_USAGE, "the file's end is missing");
	else if (u->kind == SYMBOLS_DEBUG && !f.has_debug_info && !f.has_symtab)
		failed = error_set(err, E_USAGE, "the file has neither debug information nor a symbol table");
	elf_file_finish(&f);
	return failed;
}

/* What is renamed into a folder is there after a crash when the folder is on the disk, too. */
static int sync_folder(const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int failed = fd < 0 || fsync(fd) < 0 ? io_error(path, err) : 0;
	if (fd >= 0)
		close(fd);
	return failed;
}

static int put_in_place(struct upload *u, struct error *err)
{
	char path[PATH_MAX], folder[PATH_MAX];
	if (!symbols_file_path(u->symbols, u->build_id, u->kind, path))
		return error_set(err, E_LIMIT, "the path of the folder for uploads is too long");
	snprintf(folder, sizeof folder, "%s/.build-id", u->symbols->settings.folder);
	int failed = make_folder(folder, err);
	if (failed)
		return failed;
	memcpy(folder, path, strlen(path) + 1);
	*strrchr(folder, '/') = '\0';
	failed = make_folder(folder, err);
	if (failed)
		return failed;
	if (rename(u->path, path) < 0)
		return io_error(path, err);
	u->path[0] = '\0';
	return sync_folder(folder, err);
}

int symbols_file_finish(struct upload *u, struct error *err)
{
	int failed = check(u, err);
	if (!failed && (fchmod(u->fd, 0600) < 0 || fsync(u->fd) < 0))
		failed = io_error(u->path, err);
	return failed ? failed : put_in_place(u, err);
}
