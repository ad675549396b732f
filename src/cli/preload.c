/*
 * The library lies where the build or the installation put it, seen from this program; so a copy of the whole tree works
 * anywhere. It must be of the program's machine type, and the program must have glibc's loader.
 */
#include "cli/preload.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"

#define LIBRARY "libheapgauge_preload.so"
#define TEXT_MAX (8 * (size_t)PATH_MAX)

/* --- the library --- */

static bool own_folder(char folder[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", folder, PATH_MAX - 1);
	if (n <= 0)
		return false;
	folder[n] = '\0';
	char *slash = strrchr(folder, '/');
	if (slash)
		*slash = '\0';
	return slash != NULL;
}

static bool find_library(char path[PATH_MAX])
{
	static const char *const beside[] = {
		"../agent/" LIBRARY,
		"../lib/heapgauge/" LIBRARY,
		"../" HEAPGAUGE_LIBDIR "/heapgauge/" LIBRARY,
		"../" HEAPGAUGE_LIBDIR "/" LIBRARY,
		"../lib/" LIBRARY,
	};
	char folder[PATH_MAX], tried[PATH_MAX + 64];
	bool known = own_folder(folder);
	for (size_t i = 0; known && i < sizeof beside / sizeof *beside; i++) {
		snprintf(tried, sizeof tried, "%s/%s", folder, beside[i]);
		if (access(tried, R_OK) == 0 && realpath(tried, path))
			return true;
	}
	/* Without /proc this program doesn't know where it is. */
	return access(HEAPGAUGE_PREFIX "/" HEAPGAUGE_LIBDIR "/heapgauge/" LIBRARY, R_OK) == 0 &&
	       realpath(HEAPGAUGE_PREFIX "/" HEAPGAUGE_LIBDIR "/heapgauge/" LIBRARY, path);
}

/* Class and machine type of an ELF file. */
static bool read_machine(const char *path, unsigned char *ret_class, uint16_t *ret_machine)
{
	Elf64_Ehdr head;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, &head, sizeof head);
	if (fd >= 0)
		close(fd);
	if (n < (ssize_t)offsetof(Elf64_Ehdr, e_version))
		return false;
	*ret_class = head.e_ident[EI_CLASS];
	*ret_machine = head.e_machine;      /* at the same place in both classes */
	return true;
}

static bool same_machine(const char *a, const char *b)
{
	unsigned char its_class, other_class;
	uint16_t its, other;
	return read_machine(a, &its_class, &its) && read_machine(b, &other_class, &other) && its_class == other_class &&
	       its == other;
}

/* NULL: it can have the agent; otherwise why it can't. */
static const char *obstacle(const struct program *p, const char *library)
{
	if (!p->dynamic)
		return "it is linked statically, so nothing can be loaded into it (link libheapgauge into it instead)";
	if (!p->traceable)
		return "its loader is not glibc's, for which the agent is built (link libheapgauge into it instead)";
	if (!*library)
		return LIBRARY " is not installed beside this program";
	if (!same_machine(p->real, library))
		return "it is of another machine type than the agent";
	return NULL;
}

/* --- settings --- */

static bool is_loopback(const char *listen)
{
	return strncmp(listen, "127.", 4) == 0 || strncmp(listen, "[::1]:", 6) == 0 || strncmp(listen, "localhost:", 10) == 0;
}

static bool is_none(const char *listen)
{
	return listen && strcmp(listen, "none") == 0;
}

bool preload_listens(const struct preload_settings *s, const struct preload *l)
{
	return l->library[0] && !is_none(s->listen);
}

static int check_listen(const char *listen, struct error *err)
{
	if (!listen || is_none(listen) || strncmp(listen, "unix:/", 6) == 0 ||
	    (is_loopback(listen) && strrchr(listen, ':')))
		return 0;
	return error_set(err, E_USAGE, "--listen %.200s: give unix:/path, 127.0.0.1:PORT, localhost:PORT, [::1]:PORT or none; what "
	                 "listens here is for this machine only", listen);
}

/* The program may change its directory, so paths are whole; and ';' ends a value of the variable. */
static int complete(const char *option, const char *given, bool folder, char path[PATH_MAX], struct error *err)
{
	if (!given)
		return 0;
	if (folder && mkdir(given, 0777) < 0 && errno != EEXIST)
		return error_set(err, E_IO, "%.200s: cannot make this folder: %s", given, strerror(errno));
	if (!realpath(given, path) || access(path, folder ? W_OK | X_OK : R_OK) < 0)
		return error_set(err, E_IO, "--%s %.200s: %s", option, given, strerror(errno));
	if (strpbrk(path, ";\n"))
		return error_set(err, E_USAGE, "--%s %.200s: the path must not hold ';' or a newline", option, path);
	return 0;
}

int preload_prepare(const struct preload_settings *s, const struct program *p, struct preload *ret, struct error *err)
{
	struct preload l = { 0 };
	bool silent = is_none(s->listen);
	int failed = check_listen(s->listen, err);
	if (!failed && s->listen && strpbrk(s->listen, ";\n"))
		failed = error_set(err, E_USAGE, "--listen: the path must not hold ';' or a newline");
	if (failed || (silent && !s->snapshots)) {
		if (!failed)
			*ret = l;
		return failed;
	}
	find_library(l.library);
	const char *why = obstacle(p, l.library);
	if (why) {
		snprintf(l.why_not, sizeof l.why_not, "%s", why);
		l.library[0] = '\0';
	}
	if (why && ((s->listen && !silent) || s->snapshots))
		return error_set(err, E_UNSUPPORTED, "%.150s: --%s needs the agent in the program, but %s", p->path,
		                 s->snapshots ? "snapshots" : "listen", why);
	failed = complete("snapshots", s->snapshots, true, l.snapshots, err);
	if (!failed)
		failed = complete("token-file", s->token_file, false, l.token_file, err);
	if (!failed)
		*ret = l;
	return failed;
}

int preload_environment(const struct preload_settings *s, const struct preload *l, struct error *err)
{
	struct buf text;
	char own[PATH_MAX];
	if (!l->library[0])
		return 0;
	buf_init(&text, TEXT_MAX);
	if (s->listen)
		buf_printf(&text, "listen=%s;", s->listen);
	if (l->snapshots[0])
		buf_printf(&text, "snapshots=%s;", l->snapshots);
	if (l->token_file[0])
		buf_printf(&text, "token_file=%s;", l->token_file);
	ssize_t n = readlink("/proc/self/exe", own, sizeof own);
	if (n > 0 && (size_t)n < sizeof own && !memchr(own, ';', (size_t)n))
		buf_printf(&text, "symbolizer=%.*s", (int)n, own);
	int failed = 0;
	if (!text.len)
		buf_adds(&text, "count=0");          /* the variable has to be there */
	if (text.failed || setenv("HEAPGAUGE_AGENT", text.data, 1) < 0)
		failed = error_nomem(err, "the environment");
	buf_finish(&text);
	return failed;
}
