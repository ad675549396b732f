/*
 * What runs has its own view of the file system: its socket and its binaries are reached through /proc/PID when
 * that view is another one, or when a file was deleted or replaced since it started.
 */
#include "cli/live.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/elf_image.h"
#include "base/text.h"
#include "cli/progress.h"
#include "http/access.h"
#include "symbol/outside.h"

#define ANSWER_MAX ((size_t)1 << 30)

bool live_is(const char *text)
{
	return strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0 ||
	       strncmp(text, "unix:", 5) == 0 || strncmp(text, "pid:", 4) == 0;
}

int live_token(const char *token_file, char *to, const char **ret_token, struct error *err)
{
	if (!token_file)
		token_file = getenv("HEAPGAUGE_TOKEN_FILE");
	*ret_token = NULL;
	if (!token_file || !*token_file)
		return 0;
	int failed = http_read_token(token_file, to, err);
	if (!failed)
		*ret_token = to;
	return failed;
}

/* --- processes --- */

bool live_other_namespace(pid_t pid, const char *which)
{
	char path[64];
	struct stat ours, its;
	snprintf(path, sizeof path, "/proc/self/ns/%s", which);
	if (stat(path, &ours) < 0)
		return false;
	snprintf(path, sizeof path, "/proc/%ld/ns/%s", (long)pid, which);
	return stat(path, &its) == 0 && its.st_ino != ours.st_ino;
}

void live_process_name(pid_t pid, char *to, size_t room)
{
	char path[64], name[32];
	struct buf safe;
	snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, name, sizeof name) : -1;
	if (fd >= 0)
		close(fd);
	while (n > 0 && name[n - 1] == '\n')
		n--;
	buf_init(&safe, 1 << 10);
	text_add_terminal(&safe, name, n > 0 ? (size_t)n : 0);
	snprintf(to, room, "%s", safe.len ? safe.data : "?");
	buf_finish(&safe);
}

bool live_endpoint(pid_t pid, const char *path, struct fetch_address *ret)
{
	char url[256];
	if (!process_endpoint(pid, url, sizeof url) || fetch_address_parse(url, path, ret, NULL))
		return false;
	char through[PATH_MAX];
	if (!ret->socket[0]) {
		if (!live_other_namespace(pid, "net"))
			return true;
	} else if (!live_other_namespace(pid, "mnt")) {
		if (access(ret->socket, F_OK) == 0)
			return true;
	} else if (snprintf(through, sizeof through, "/proc/%ld/root%.200s", (long)pid, ret->socket) > 0 &&
	           access(through, F_OK) == 0) {
		snprintf(ret->socket, sizeof ret->socket, "%s", through);
		return true;
	}
	fetch_address_finish(ret);
	return false;
}

/* --- the profile --- */

static int open_address(const struct load_settings *s, const struct fetch_address *a, struct live *l,
                        struct stream *stream, struct error *err)
{
	char room[HTTP_TOKEN_MAX + 1];
	const char *token;
	int failed = live_token(s->token_file, room, &token, err);
	if (!failed)
		failed = fetch(a, token, &l->bytes, err);
	if (!failed)
		stream_open_memory(stream, l->name, l->bytes.data, l->bytes.len);
	return failed;
}

int live_dump(pid_t pid, const char *name, struct stream *ret_stream, struct error *err)
{
	struct attach *a;
	char path[64];
	int fd;
	int failed = attach_open(&a, pid, NULL, err);
	if (failed)
		return failed;
	failed = attach_dump(a, &fd, NULL, err);
	attach_close(a);
	if (failed)
		return failed;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	failed = stream_open(ret_stream, path, err);
	ret_stream->name = name;
	close(fd);
	return failed;
}

static int open_attached(struct live *l, struct stream *stream, struct error *err)
{
	char what[sizeof l->name + 32];
	snprintf(what, sizeof what, "dumping %s", l->name);
	progress_phase(what, 0);
	int failed = live_dump((pid_t)l->pid, l->name, stream, err);
	l->attached = !failed;
	return failed;
}

/* "N" or "N?seconds=5"; only an endpoint understands the latter. */
static int open_process(const struct load_settings *s, const char *text, struct live *l, struct stream *stream,
                        struct error *err)
{
	size_t digits = strspn(text, "0123456789");
	char name[64];
	struct fetch_address a;
	struct buf path;
	if (!text_parse_u64(text, digits, 10, &l->pid) || l->pid == 0 || l->pid > INT32_MAX ||
	    (text[digits] && text[digits] != '?'))
		return error_set(err, E_USAGE, "pid:%.60s: give the number of a process, like pid:1234", text);
	live_process_name((pid_t)l->pid, name, sizeof name);
	snprintf(l->name, sizeof l->name, "pid %llu (%s)", (unsigned long long)l->pid, name);
	buf_init(&path, 1 << 16);
	buf_printf(&path, "/debug/pprof/heap%s", text + digits);
	bool has = !path.failed && live_endpoint((pid_t)l->pid, path.data, &a);
	buf_finish(&path);
	int failed;
	if (has) {
		failed = open_address(s, &a, l, stream, err);
		fetch_address_finish(&a);
	} else if (text[digits]) {
		return error_set(err, E_UNSUPPORTED, "pid:%.100s: %s has no endpoint that could understand \"%.60s\": give pid:%llu "
		                 "alone", text, l->name, text + digits, (unsigned long long)l->pid);
	} else {
		failed = open_attached(l, stream, err);
	}
	return failed;
}

int live_open(const struct load_settings *s, const char *text, struct live *ret, struct stream *ret_stream,
              struct error *err)
{
	struct fetch_address a;
	struct timespec now;
	memset(ret, 0, sizeof *ret);
	buf_init(&ret->bytes, ANSWER_MAX);
	clock_gettime(CLOCK_REALTIME, &now);
	ret->time_nanos = now.tv_sec * 1000000000LL + now.tv_nsec;
	int failed;
	if (strncmp(text, "pid:", 4) == 0) {
		failed = open_process(s, text + 4, ret, ret_stream, err);
	} else {
		failed = fetch_address_parse(text, NULL, &a, err);
		if (failed)
			return failed;
		snprintf(ret->name, sizeof ret->name, "%s", a.shown);
		failed = open_address(s, &a, ret, ret_stream, err);
		fetch_address_finish(&a);
	}
	if (failed)
		live_finish(ret);
	return failed;
}

void live_finish(struct live *l)
{
	buf_finish(&l->bytes);
}

/* --- its files --- */

/* What was found for the PROFILEs of this command; one thread. */
static struct {
	char *items[LIVE_FILES_MAX];
	size_t n;
} files;
static uint64_t perf_pid;   /* of the process asked; 0 when there were none or several */

static void add_file(const char *path)
{
	for (size_t i = 0; i < files.n; i++)
		if (strcmp(files.items[i], path) == 0)
			return;
	char *copy = files.n < LIVE_FILES_MAX && access(path, R_OK) == 0 ? strdup(path) : NULL;
	if (copy)
		files.items[files.n++] = copy;
}

static uint32_t build_id_text(struct profile *p, const struct elf_image *e)
{
	const uint8_t *id;
	char text[2 * 64 + 1];
	size_t n = elf_build_id(e, &id);
	for (size_t i = 0; i < n; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	return n ? profile_cstring(p, text) : 0;
}

/* What the process sees at that path; PROFILE_NONE: nothing, 0: a file without build id. */
static uint32_t build_id_at(struct profile *p, const char *root, const struct mapping *m)
{
	char path[PATH_MAX + 64];
	struct elf_image e;
	struct error ignored;
	snprintf(path, sizeof path, "%s%.4000s", root, profile_text(p, m->file));
	if (elf_image_open(&e, path, &ignored))
		return PROFILE_NONE;
	uint32_t id = build_id_text(p, &e);
	elf_image_close(&e);
	return id;
}

/* The kernel still has files that are gone: the program's under a name for everybody, the others' for root. */
static void add_gone(uint64_t pid, const struct mapping *m, const char *file)
{
	static const char deleted[] = " (deleted)";
	char path[96], exe[PATH_MAX];
	snprintf(path, sizeof path, "/proc/%llu/exe", (unsigned long long)pid);
	ssize_t n = readlink(path, exe, sizeof exe - 1);
	exe[n > 0 ? n : 0] = '\0';
	char *tail = strstr(exe, deleted);
	if (tail && !tail[sizeof deleted - 1])
		*tail = '\0';
	if (strcmp(exe, file) != 0)
		snprintf(path, sizeof path, "/proc/%llu/map_files/%llx-%llx", (unsigned long long)pid, (unsigned long long)m->start,
		         (unsigned long long)m->limit);
	add_file(path);
}

/*
 * The vdso of a process is that of the kernel, as ours is; but one of 32 bit (whose addresses are low) has another one. Dumps know
 * no build ids, and by that alone it is recognized.
 */
static void name_vdso(struct profile *p)
{
	struct outside own;
	outside_init(&own, NULL, NULL);
	for (size_t i = 0; i < p->n_mappings; i++) {
		struct mapping *m = &p->mappings[i];
		if (strcmp(profile_text(p, m->file), "[vdso]") == 0 && !m->build_id && m->start > UINT32_MAX)
			m->build_id = profile_cstring(p, outside_vdso_id(&own));
	}
	outside_finish(&own);
}

void live_find_files(const struct live *l, struct profile *p)
{
	char root[64] = "";
	if (!l->pid)
		return;
	static bool one_seen;
	perf_pid = !one_seen || perf_pid == l->pid ? l->pid : 0;
	one_seen = true;
	name_vdso(p);
	bool elsewhere = live_other_namespace((pid_t)l->pid, "mnt");
	if (elsewhere) {
		snprintf(root, sizeof root, "/proc/%llu/root", (unsigned long long)l->pid);
		add_file(root);
	}
	for (size_t i = 0; i < p->n_mappings; i++) {
		struct mapping *m = &p->mappings[i];
		if (!m->executable || profile_text(p, m->file)[0] != '/')
			continue;
		uint32_t id = m->deleted ? PROFILE_NONE : build_id_at(p, root, m);
		if (id == PROFILE_NONE || (m->build_id && id != m->build_id))
			add_gone(l->pid, m, profile_text(p, m->file));
		else if (elsewhere)
			m->build_id = id;
	}
}

size_t live_search(const char **to)
{
	for (size_t i = 0; i < files.n; i++)
		to[i] = files.items[i];
	return files.n;
}

/* The number that the process has in its own namespace of processes; pid itself when that can't be told. */
static uint64_t own_number(uint64_t pid)
{
	char path[64], status[8192];
	snprintf(path, sizeof path, "/proc/%llu/status", (unsigned long long)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof status - 1);
	if (fd >= 0)
		close(fd);
	status[n > 0 ? n : 0] = '\0';
	char *line = strstr(status, "\nNSpid:");
	size_t length = line ? strcspn(line + 1, "\n") + 1 : 0;
	size_t digits = 0;
	while (digits < length && line[length - 1 - digits] >= '0' && line[length - 1 - digits] <= '9')
		digits++;
	uint64_t own;
	return digits && text_parse_u64(line + length - digits, digits, 10, &own) ? own : pid;
}

const char *live_perf_map(void)
{
	static char path[96];
	struct stat process, map;
	if (!perf_pid)
		return NULL;
	unsigned long long pid = perf_pid;
	snprintf(path, sizeof path, "/proc/%llu", pid);
	if (stat(path, &process))
		return NULL;
	snprintf(path, sizeof path, "/proc/%llu/root/tmp/perf-%llu.map", pid, (unsigned long long)own_number(perf_pid));
	/* /tmp is everybody's: a stranger's file says nothing about the process. */
	bool theirs = lstat(path, &map) == 0 && S_ISREG(map.st_mode) && (map.st_uid == process.st_uid || map.st_uid == 0);
	return theirs ? path : NULL;
}
