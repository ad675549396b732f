/*
 * Which libraries a program will have is asked of the loader itself, so rpaths, preloads and caches are all right. Which of
 * them is a jemalloc, and what it reads, is told by attach/jemalloc_file.h.
 */
#include "cli/launch.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "attach/jemalloc_file.h"
#include "base/buf.h"
#include "base/elf_image.h"
#include "profile/profile.h"

#define SCRIPT_DEPTH 4

/* --- finding it --- */

static bool is_program(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The file that execvp would take. */
static int find_program(const char *name, char path[PATH_MAX], struct error *err)
{
	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && is_program(path))
			return 0;
		return error_set(err, E_IO, "%.200s: cannot run: %s", name,
		                 access(name, F_OK) < 0 ? strerror(errno) : "not an executable file");
	}
	const char *at = getenv("PATH");
	for (at = at ? at : "/usr/bin:/bin"; *at || *name;) {
		size_t n = strcspn(at, ":");
		int length = snprintf(path, PATH_MAX, "%.*s/%s", n ? (int)n : 1, n ? at : ".", name);
		if (length < PATH_MAX && is_program(path))
			return 0;
		if (!at[n])
			break;
		at += n + 1;
	}
	return error_set(err, E_IO, "%.200s: no such program in PATH: check the name, or give its path", name);
}

/* Of a script the program that reads it, if the "#!" line names one; false when it is no script. */
static bool script_interpreter(const char *path, char interpreter[PATH_MAX])
{
	char line[256] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t n = read(fd, line, sizeof line - 1);
	close(fd);
	if (n < 4 || line[0] != '#' || line[1] != '!')
		return false;
	char *word = line + 2 + strspn(line + 2, " \t");
	word[strcspn(word, " \t\n")] = '\0';
	struct error ignored;
	return *word == '/' && find_program(word, interpreter, &ignored) == 0;
}

/* --- looking into a file --- */

#define COMMIT_DIGITS 8

/* "5.3.0-0-g54eaed1d", not all forty digits of the commit. */
static void copy_version(struct jemalloc *j, const char *version)
{
	const char *commit = strstr(version, "-g");
	size_t most = commit ? (size_t)(commit + 2 - version) + COMMIT_DIGITS : strlen(version);
	snprintf(j->version, sizeof j->version, "%.*s", (int)most, version);
}

/* Is jemalloc in that file? Fills *ret when it is. */
static bool look_for_jemalloc(const char *path, struct jemalloc *ret)
{
	struct elf_image image;
	struct jemalloc_file file;
	if (elf_image_open(&image, path, NULL))
		return false;
	bool found = jemalloc_file_look(&image, &file) && file.n_variables > 0;
	elf_image_close(&image);
	if (!found)
		return false;
	struct jemalloc j = { .n_variables = file.n_variables, .without_profiling = file.without_profiling,
		              .thread_names = file.thread_names };
	snprintf(j.path, sizeof j.path, "%s", path);
	copy_version(&j, file.version);
	memcpy(j.variables, file.variables, sizeof j.variables);
	*ret = j;
	return true;
}

/* --- asking the loader --- */

/* Runs path with the loader's "list only" switch and, when given, a preload. Its list into out. */
static int loader_list(const char *path, const char *preload, struct buf *out, struct error *err)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, E_IO, "cannot make a pipe: %s", strerror(errno));
	pid_t child = fork();
	if (child == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (dup2(null, STDIN_FILENO) < 0 || dup2(ends[1], STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0 ||
		    setenv("LD_TRACE_LOADED_OBJECTS", "1", 1) < 0 ||
		    (preload && setenv("LD_PRELOAD", preload, 1) < 0))
			_exit(127);
		execl(path, path, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	char block[4096];
	ssize_t n;
	while (child > 0 && ((n = read(ends[0], block, sizeof block)) > 0 || (n < 0 && errno == EINTR)))
		if (n > 0)
			buf_add(out, block, (size_t)n);
	close(ends[0]);
	int status;
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
	}
	return child > 0 ? 0 : error_set(err, E_IO, "cannot start a process: %s", strerror(errno));
}

/* The next file in the loader's list ("\tlib => /path (0x…)" or "\t/path (0x…)"); NULL at the end. */
static const char *next_library(const char *at, char path[PATH_MAX])
{
	while (*at) {
		size_t n = strcspn(at, "\n");
		const char *arrow = memmem(at, n, " => ", 4);
		const char *from = arrow ? arrow + 4 : at + strspn(at, " \t");
		const char *end = memmem(at, n, " (0x", 4);
		at += n + (at[n] == '\n');
		if (end && end > from && *from == '/' && end - from < PATH_MAX) {
			memcpy(path, from, (size_t)(end - from));
			path[end - from] = '\0';
			return at;
		}
	}
	return NULL;
}

/* The first jemalloc among the libraries that path loads. */
static int find_in_libraries(const char *path, const char *preload, struct jemalloc *ret, struct error *err)
{
	struct buf list;
	char library[PATH_MAX];
	buf_init(&list, 1 << 20);
	int failed = loader_list(path, preload, &list, err);
	if (!failed && list.data)
		for (const char *at = list.data; (at = next_library(at, library));)
			if (look_for_jemalloc(library, ret))
				break;
	buf_finish(&list);
	return failed;
}

/* --- the decision --- */

static int choose_preload(struct program *p, const char *library, struct error *err)
{
	const char *users = getenv("LD_PRELOAD");
	char wanted[2 * PATH_MAX];
	if (library && !realpath(library, p->preload))
		return error_set(err, E_IO, "%.200s: cannot open: %s", library, strerror(errno));
	int n = snprintf(wanted, sizeof wanted, "%s%s%s", library ? p->preload : "libjemalloc.so.2",
	                 users && *users ? ":" : "", users ? users : "");
	if (n < 0 || (size_t)n >= sizeof wanted)
		return error_set(err, E_LIMIT, "LD_PRELOAD is too long to add jemalloc to it");
	if (p->traceable) {
		int failed = find_in_libraries(p->real, wanted, &p->preloaded, err);
		if (failed)
			return failed;
	} else if (library) {
		look_for_jemalloc(p->preload, &p->preloaded);
	}
	if (!p->preloaded.path[0])
		return error_set(err, E_UNSUPPORTED, library
		                 ? "%.120s runs on no jemalloc, and %.200s cannot be put under it: it is no jemalloc of "
		                   "the same machine type"
		                 : "%.120s runs on no jemalloc, and %s is not installed: install it (Debian: apt install libjemalloc2), "
		                   "or name one with --jemalloc FILE",
		                 p->path, library ? library : "libjemalloc.so.2");
	if (p->preloaded.without_profiling)
		return error_set(err, E_UNSUPPORTED, "%.200s was built without heap profiling: name one built with "
		                 "--enable-prof with --jemalloc FILE", p->preloaded.path);
	memcpy(p->preload, p->preloaded.path, sizeof p->preload);
	return 0;
}

/* Does the kernel start it in secure mode, where the loader and jemalloc ignore the environment? */
static bool runs_privileged(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return false;
	bool changes = ((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
	               ((st.st_mode & S_ISGID) && st.st_gid != getgid());
	return changes || (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

/* What the ELF file itself says: a loader, and whose. */
static int read_program(struct program *p, struct error *err)
{
	struct elf_image image;
	struct elf_segment segment;
	int failed = elf_image_open(&image, p->real, NULL);
	if (!failed && image.swapped) {
		elf_image_close(&image);
		failed = E_UNSUPPORTED;
	}
	if (failed)
		return error_set(err, E_UNSUPPORTED, "%.200s is neither a program for this system nor a script with a "
		                 "'#!' line that can be read", p->real);
	for (uint32_t i = 0; !p->dynamic && elf_segment(&image, i, &segment); i++)
		p->dynamic = segment.type == PT_INTERP;
	if (p->dynamic && segment.offset < image.n && segment.file_bytes <= image.n - segment.offset &&
	    memchr(image.bytes + segment.offset, '\0', segment.file_bytes)) {
		const char *name = path_base((const char *)image.bytes + segment.offset);
		p->traceable = strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld64.so", 7) == 0 ||
		               strncmp(name, "ld.so", 5) == 0;
	}
	elf_image_close(&image);
	return 0;
}

int launch_inspect(const char *name, const char *library, struct program *ret, struct error *err)
{
	memset(ret, 0, sizeof *ret);
	int failed = find_program(name, ret->path, err);
	if (failed) {
		ret->path[0] = '\0';
		return failed;
	}
	memcpy(ret->real, ret->path, sizeof ret->real);
	char next[PATH_MAX];
	for (int i = 0; i < SCRIPT_DEPTH && script_interpreter(ret->real, next); i++)
		memcpy(ret->real, next, sizeof next);
	if (runs_privileged(ret->real))
		return error_set(err, E_UNSUPPORTED, "%.200s changes its user or gains capabilities when it starts, and such a "
		                 "program ignores the variables that turn profiling on: run it as the user it becomes",
		                 ret->real);
	failed = read_program(ret, err);
	if (failed)
		return failed;
	if (look_for_jemalloc(ret->real, &ret->jemalloc))
		return 0;
	if (!ret->dynamic)
		return error_set(err, E_UNSUPPORTED, "%.200s is linked statically and has no jemalloc inside, so none can be put under "
		                 "it: link it with jemalloc, or dynamically", ret->path);
	if (!ret->traceable && !library)
		return error_set(err, E_UNSUPPORTED, "%.200s has a loader other than glibc's: name its jemalloc with "
		                 "--jemalloc FILE", ret->path);
	if (!ret->traceable)
		return choose_preload(ret, library, err);
	failed = find_in_libraries(ret->real, NULL, &ret->jemalloc, err);
	if (failed || ret->jemalloc.path[0])
		return failed;
	return choose_preload(ret, library, err);
}
