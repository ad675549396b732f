/*
 * jemalloc is recognized by strings no stripping removes: the name of an option of
 * its own, and the environment variable it reads (whose beginning is the prefix it was
 * built with: _RJEM_MALLOC_CONF in Rust programs). Which libraries a program will have
 * is asked of the loader itself, so rpaths, preloads and caches are all right.
 */
#include "cli/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
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

struct segments {
	const char *bytes;
	size_t size;
	Elf *elf;
};

static bool segments_open(struct segments *s, const char *path)
{
	*s = (struct segments){ 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return false;
	if (fstat(fd, &st) == 0 && st.st_size > 64)
		s->size = (size_t)st.st_size;
	void *map = s->size ? mmap(NULL, s->size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	close(fd);
	if (map == MAP_FAILED)
		return false;
	s->bytes = map;
	elf_version(EV_CURRENT);
	s->elf = elf_memory(map, s->size);
	if (s->elf && elf_kind(s->elf) == ELF_K_ELF)
		return true;
	elf_end(s->elf);
	munmap(map, s->size);
	return false;
}

static void segments_close(struct segments *s)
{
	elf_end(s->elf);
	munmap((void *)s->bytes, s->size);
}

/* The i-th program header of a type, its bytes clipped to the file; false past the last. */
static bool segment_bytes(const struct segments *s, uint32_t type, size_t i, const char **ret,
                          size_t *ret_n)
{
	size_t n;
	GElf_Phdr h;
	if (elf_getphdrnum(s->elf, &n) < 0)
		return false;
	for (size_t k = 0; k < n; k++) {
		if (!gelf_getphdr(s->elf, (int)k, &h) || h.p_type != type || i-- > 0)
			continue;
		if (h.p_offset > s->size)
			return false;
		*ret = s->bytes + h.p_offset;
		*ret_n = h.p_filesz < s->size - h.p_offset ? h.p_filesz : s->size - h.p_offset;
		return true;
	}
	return false;
}

static bool has_text(const struct segments *s, const char *text)
{
	const char *at;
	size_t n;
	for (size_t i = 0; segment_bytes(s, PT_LOAD, i, &at, &n); i++)
		if (memmem(at, n, text, strlen(text)))
			return true;
	return false;
}

static void add_variable(struct jemalloc *j, const char *name, size_t length)
{
	if (j->n_variables == VARIABLES_MAX || length >= sizeof j->variables[0])
		return;
	for (size_t i = 0; i < j->n_variables; i++)
		if (strlen(j->variables[i]) == length && memcmp(j->variables[i], name, length) == 0)
			return;
	memcpy(j->variables[j->n_variables++], name, length);
}

/* Strings "…MALLOC_CONF" made of capitals, digits and underscores only. */
static void find_variables(const struct segments *s, struct jemalloc *j)
{
	static const char ending[] = "MALLOC_CONF";
	const char *at, *hit;
	size_t n;
	for (size_t i = 0; segment_bytes(s, PT_LOAD, i, &at, &n); i++) {
		const char *end = at + n, *from = at;
		while ((hit = memmem(from, (size_t)(end - from), ending, sizeof ending))) {
			const char *start = hit;
			while (start > at && ((start[-1] >= 'A' && start[-1] <= 'Z') || start[-1] == '_' ||
			                      (start[-1] >= '0' && start[-1] <= '9')))
				start--;
			from = hit + sizeof ending;
			if (start > at && !start[-1])
				add_variable(j, start, (size_t)(from - 1 - start));
		}
	}
}

static size_t span(const char *at, const char *end, const char *of)
{
	size_t n = 0;
	while (at + n < end && at[n] && strchr(of, at[n]))
		n++;
	return n;
}

/* "5.3.0-0-g" and 40 digits of a commit, as a string of its own; the commit is cut to eight. */
static void find_version(const struct segments *s, struct jemalloc *j)
{
	const char *at, *hit;
	size_t n;
	for (size_t i = 0; segment_bytes(s, PT_LOAD, i, &at, &n) && !j->version[0]; i++) {
		const char *end = at + n, *from = at;
		while ((hit = memmem(from, (size_t)(end - from), "-g", 2))) {
			const char *start = hit;
			from = hit + 2;
			while (start > at && ((start[-1] >= '0' && start[-1] <= '9') || start[-1] == '.' || start[-1] == '-'))
				start--;
			if (start > at && !start[-1] && hit - start >= 7 && hit - start < 40 && span(start, hit, ".0123456789") >= 5 &&
			    span(from, end, "0123456789abcdef") == 40 && from + 40 < end && !from[40]) {
				snprintf(j->version, sizeof j->version, "%.*s", (int)(from + 8 - start), start);
				return;
			}
		}
	}
}

/* The option names are put together here, so that this program doesn't look like jemalloc itself. */
static bool has_option(const struct segments *s, const char *first, const char *second)
{
	char name[64];
	snprintf(name, sizeof name, "%s%s", first, second);
	return has_text(s, name);
}

/* Is jemalloc in that file? Fills *ret when it is. */
static bool look_for_jemalloc(const char *path, struct jemalloc *ret)
{
	struct segments s;
	struct jemalloc j = { 0 };
	if (!segments_open(&s, path))
		return false;
	if (has_option(&s, "dirty_", "decay_ms"))
		find_variables(&s, &j);
	if (j.n_variables) {
		snprintf(j.path, sizeof j.path, "%s", path);
		find_version(&s, &j);
		/* prof_unbias is only read where profiling is built in; hpa came with it in 5.3. */
		j.without_profiling = has_option(&s, "hpa_", "dirty_mult") && !has_option(&s, "prof_", "unbias");
		j.thread_names = has_option(&s, "prof_sys_", "thread_name") && !j.without_profiling;
		*ret = j;
	}
	segments_close(&s);
	return j.n_variables > 0;
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
	struct segments s;
	const char *loader;
	size_t n;
	if (!segments_open(&s, p->real))
		return error_set(err, E_UNSUPPORTED, "%.200s is neither a program for this system nor a script with a "
		                 "'#!' line that can be read", p->real);
	p->dynamic = segment_bytes(&s, PT_INTERP, 0, &loader, &n);
	if (p->dynamic && n > 0 && memchr(loader, '\0', n)) {
		const char *name = path_base(loader);
		p->traceable = strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld64.so", 7) == 0 ||
		               strncmp(name, "ld.so", 5) == 0;
	}
	segments_close(&s);
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
