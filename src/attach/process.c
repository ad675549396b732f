/*
 * /proc/PID/maps says which files a process has; each that it runs code of is looked into once. A file is opened by
 * its mapping (/proc/PID/map_files) where we may, else by its name below /proc/PID/root, and then it must be the same
 * inode.
 */
#include "attach/process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attach/jemalloc_file.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"

#define REGIONS_MAX 2000000
#define PATHS_MAX ((size_t)256 << 20)
#define PROC_TEXT_MAX ((size_t)512 << 20)
#define KERNEL_THREAD 0x200000          /* PF_KTHREAD in the ninth field of stat */

/* --- text files of /proc --- */

static int read_text(const char *path, struct buf *to, struct error *err)
{
	struct stream s;
	int failed = stream_open(&s, path, err);
	if (failed)
		return failed;
	failed = stream_read_all(&s, to, err);
	stream_close(&s);
	return failed;
}

bool process_status_number(pid_t pid, pid_t thread, const char *key, unsigned base, uint64_t *ret)
{
	char path[64];
	struct buf text;
	bool found = false;
	size_t length = strlen(key);
	snprintf(path, sizeof path, "/proc/%d/task/%d/status", (int)pid, (int)thread);
	buf_init(&text, 1 << 16);
	if (read_text(path, &text, NULL) == 0 && text.data)
		for (const char *line = text.data; line && *line && !found;
		     line = strchr(line, '\n'), line += line != NULL)
			if (strncmp(line, key, length) == 0 && line[length] == ':') {
				const char *number = line + length + 1 + strspn(line + length + 1, " \t");
				found = text_parse_u64(number, strcspn(number, " \t\n"), base, ret);
			}
	buf_finish(&text);
	return found;
}

/* --- maps --- */

static bool hex(const char **at, char end, uint64_t *ret)
{
	size_t n = strcspn(*at, " -:\n");
	if ((*at)[n] != end || !text_parse_u64(*at, n, 16, ret))
		return false;
	*at += n + 1;
	return true;
}

/* Paths have spaces and newlines as octal escapes, "\012" for the latter. */
static size_t unescape(char *path, size_t n)
{
	size_t to = 0;
	for (size_t i = 0; i < n; i++, to++) {
		path[to] = path[i];
		if (path[i] == '\\' && i + 3 < n && strncmp(path + i, "\\012", 4) == 0) {
			path[to] = '\n';
			i += 3;
		}
	}
	return to;
}

static bool add_path(struct process *p, const char *path, size_t n, struct region *r)
{
	static const char deleted[] = " (deleted)";
	const size_t tail = sizeof deleted - 1;
	if (n > tail && memcmp(path + n - tail, deleted, tail) == 0)
		n -= tail;
	const struct region *last = p->n_regions ? &p->regions[p->n_regions - 1] : NULL;
	if (last && strlen(p->paths + last->path) == n && memcmp(p->paths + last->path, path, n) == 0) {
		r->path = last->path;
		return true;
	}
	if (!memory_grow((void **)&p->paths, &p->paths_capacity, p->paths_n + n + 1, 1, PATHS_MAX))
		return false;
	r->path = (uint32_t)p->paths_n;
	memcpy(p->paths + p->paths_n, path, n);
	n = unescape(p->paths + p->paths_n, n);
	p->paths[p->paths_n + n] = '\0';
	p->paths_n += n + 1;
	return true;
}

/* "start-end rwxp offset major:minor inode   path"; false when it isn't such a line. */
static bool read_region(struct process *p, const char *line, size_t length, bool *ret_memory)
{
	struct region r = { 0 };
	uint64_t major, minor;
	const char *at = line, *end = line + length;
	if (!hex(&at, '-', &r.start) || !hex(&at, ' ', &r.end) || end - at < 5)
		return false;
	r.readable = at[0] == 'r';
	r.writable = at[1] == 'w';
	r.executable = at[2] == 'x';
	at += 5;
	if (!hex(&at, ' ', &r.offset) || !hex(&at, ':', &major) || !hex(&at, ' ', &minor))
		return false;
	size_t n = strcspn(at, " \n");
	if (!text_parse_u64(at, n, 10, &r.inode))
		return false;
	r.device = makedev((unsigned)major, (unsigned)minor);
	at += n;
	while (at < end && *at == ' ')
		at++;
	struct region *to = add_path(p, at, (size_t)(end - at), &r)
	                            ? ARRAY_PUSH(p->regions, p->n_regions, p->regions_capacity, REGIONS_MAX)
	                            : NULL;
	*ret_memory = to != NULL;
	if (to)
		*to = r;
	return true;
}

static int parse_maps(struct process *p, const char *text, struct error *err)
{
	bool memory = true;
	/* The empty path is at 0. */
	if (!memory_grow((void **)&p->paths, &p->paths_capacity, 1, 1, PATHS_MAX))
		return error_nomem(err, "the map of the process");
	p->paths[p->paths_n++] = '\0';
	while (*text) {
		size_t n = strcspn(text, "\n");
		if (!read_region(p, text, n, &memory))
			return error_set(err, E_FORMAT, "/proc/%d/maps has a line that is not understood: %.100s",
			                 (int)p->pid, text);
		if (!memory)
			return error_nomem(err, "the map of the process");
		text += n + (text[n] == '\n');
	}
	return 0;
}

/* Why there is no map: each case has its own remedy. */
static int no_maps(pid_t pid, int reason, struct error *err)
{
	uint64_t uid;
	if (access("/proc/self/maps", F_OK) < 0)
		return error_set(err, E_IO,
		                 "/proc is not mounted here: mount it (mount -t proc proc /proc), nothing can be "
		                 "learned about a process without it");
	if (reason == ENOENT || reason == ESRCH)
		return error_set(err, E_IO,
		                 "there is no process %d: check the number (another container's processes have other "
		                 "numbers here)",
		                 (int)pid);
	bool refused = (reason == EACCES || reason == EPERM) && process_status_number(pid, pid, "Uid", 10, &uid);
	if (refused && uid == geteuid())
		return error_set(err, E_IO,
		                 "process %d may not be looked into, though it is of the same user: it has more "
		                 "rights than heapgauge (a setuid program, capabilities), or has forbidden it "
		                 "(PR_SET_DUMPABLE): run heapgauge as root",
		                 (int)pid);
	if (refused)
		return error_set(err, E_IO,
		                 "process %d belongs to user %llu and may not be looked into by user %ld: run "
		                 "heapgauge as that user, as root, or with CAP_SYS_PTRACE",
		                 (int)pid, (unsigned long long)uid, (long)geteuid());
	return error_set(err, E_IO, "process %d: cannot read its maps: %s", (int)pid, strerror(reason));
}

/* The state letter and the flags of /proc/PID/stat. */
static bool read_stat(pid_t pid, char *ret_state, uint64_t *ret_flags)
{
	char path[64];
	struct buf text;
	bool good = false;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	buf_init(&text, 1 << 16);
	const char *at = read_text(path, &text, NULL) == 0 && text.data ? strrchr(text.data, ')') : NULL;
	if (at && at[1] == ' ' && at[2]) {
		*ret_state = at[2];
		at += 3;
		for (int field = 4; *at == ' ' && field <= 9; field++) {
			size_t n = strcspn(++at, " ");
			good = field == 9 && text_parse_u64(at, n, 10, ret_flags);
			at += n;
		}
	}
	buf_finish(&text);
	return good;
}

static int empty_maps(pid_t pid, struct error *err)
{
	char state = '?';
	uint64_t flags = 0;
	read_stat(pid, &state, &flags);
	if (flags & KERNEL_THREAD)
		return error_set(err, E_UNSUPPORTED,
		                 "process %d is a thread of the kernel: it has no memory of its own", (int)pid);
	if (state == 'Z' || state == 'X')
		return error_set(err, E_IO, "process %d has ended already and only waits for its parent to notice",
		                 (int)pid);
	return error_set(err, E_IO, "process %d has no memory mapped: it is just starting or ending", (int)pid);
}

static int read_maps(struct process *p, struct error *err)
{
	char path[64];
	struct buf text;
	struct error why = { 0 };
	snprintf(path, sizeof path, "/proc/%d/maps", (int)p->pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return no_maps(p->pid, errno, err);
	close(fd);
	buf_init(&text, PROC_TEXT_MAX);
	int failed = read_text(path, &text, &why);
	if (failed == E_IO)
		failed = no_maps(p->pid, ESRCH, err);
	else if (failed)
		failed = error_set(err, why.code, "%s", why.text);
	else if (!text.len)
		failed = empty_maps(p->pid, err);
	else
		failed = parse_maps(p, text.data, err);
	buf_finish(&text);
	return failed;
}

const char *process_path(const struct process *p, const struct region *r)
{
	return p->paths + r->path;
}

const struct region *process_region_at(const struct process *p, uint64_t address)
{
	size_t low = 0, high = p->n_regions;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (p->regions[middle].end <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < p->n_regions && p->regions[low].start <= address ? &p->regions[low] : NULL;
}

/* --- files --- */

int process_file(const struct process *p, const struct region *r, struct error *err)
{
	const int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	char path[PATH_MAX + 64];
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", (int)p->pid, (unsigned long long)r->start,
	         (unsigned long long)r->end);
	int fd = open(path, O_CLOEXEC | flags);
	if (fd < 0 && strcmp(process_path(p, r), p->exe) == 0) {
		snprintf(path, sizeof path, "/proc/%d/exe", (int)p->pid);
		fd = open(path, O_CLOEXEC | flags);
	}
	if (fd >= 0)
		return fd;
	snprintf(path, sizeof path, "/proc/%d/root%s", (int)p->pid, process_path(p, r));
	fd = open(path, O_CLOEXEC | flags);
	if (fd < 0)
		return error_set(err, E_IO, "%.200s: cannot open this file of process %d: %s", process_path(p, r),
		                 (int)p->pid, strerror(errno));
	/* Devices differ between maps and stat on some file systems (overlayfs, btrfs); the inode must do. */
	if (fstat(fd, &st) == 0 && st.st_ino == r->inode)
		return fd;
	close(fd);
	return error_set(err, E_IO,
	                 "%.200s: the file that process %d runs has been replaced, and its old content can only be "
	                 "read as root",
	                 process_path(p, r), (int)p->pid);
}

int process_image(const struct process *p, const struct region *r, struct elf_image *ret, struct error *err)
{
	int fd = process_file(p, r, err);
	if (fd < 0)
		return fd;
	int failed = elf_image_open_fd(ret, fd, process_path(p, r), err);
	close(fd);
	return failed;
}

bool process_bias(const struct region *r, const struct elf_image *e, uint64_t *ret_bias)
{
	struct elf_segment s;
	for (uint32_t i = 0; elf_segment(e, i, &s); i++) {
		uint64_t in_page = s.offset & 4095;
		if (s.type == PT_LOAD && s.offset - in_page <= r->offset &&
		    r->offset - (s.offset - in_page) < s.file_bytes + in_page && !(s.flags & PF_X) == !r->executable) {
			*ret_bias = r->start - (s.address - s.offset + r->offset);
			return true;
		}
	}
	return false;
}

/* --- jemalloc --- */

/* The defined function of a name, in the file's tables; its address in the process, or 0. */
static uint64_t function(const struct elf_image *e, uint64_t bias, const char *prefix, const char *name)
{
	char whole[96];
	struct elf_symbol y;
	snprintf(whole, sizeof whole, "%s%s", prefix, name);
	return elf_find_symbol(e, whole, &y) && y.value && y.type == STT_FUNC ? y.value + bias : 0;
}

static void find_entries(const struct elf_image *e, uint64_t bias, struct process_jemalloc *j)
{
	/* operator new and delete of a jemalloc library are its own; in a program they may be anybody's. */
	static const char *const names[] = {
		"malloc", "free", "_Znwm", "_ZdlPvm", "sdallocx", "realloc", "calloc", "mallocx",
	};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		bool operator = names[i][0] == '_';
		uint64_t address = operator && !j->library ? 0 : function(e, bias, operator ? "" : j->prefix, names[i]);
		if (address)
			j->entries[j->n_entries++] = address;
	}
}

/* The prefix is the variable's; where there is no such function, that of any "...mallctl" there is. */
static void find_mallctl(const struct elf_image *e, uint64_t bias, struct process_jemalloc *j)
{
	static const char name[] = "mallctl";
	const size_t length = sizeof name - 1;
	jemalloc_file_prefix(j->conf_variable, j->prefix, sizeof j->prefix);
	j->mallctl = function(e, bias, j->prefix, name);
	for (int dynamic = 1; dynamic >= 0 && !j->mallctl; dynamic--) {
		struct elf_symbols s;
		struct elf_symbol y;
		if (!elf_symbols_begin(&s, e, dynamic))
			continue;
		while (!j->mallctl && elf_symbols_next(&s, &y)) {
			size_t n = strlen(y.name);
			if (y.section == SHN_UNDEF || y.type != STT_FUNC || y.binding == STB_LOCAL || !y.value ||
			    n < length || strcmp(y.name + n - length, name) != 0 || n - length >= sizeof j->prefix)
				continue;
			j->mallctl = y.value + bias;
			memcpy(j->prefix, y.name, n - length);
			j->prefix[n - length] = '\0';
		}
	}
}

/* Is its prefix that of its variable? */
static bool fits(const struct process_jemalloc *j)
{
	char prefix[sizeof j->prefix];
	jemalloc_file_prefix(j->conf_variable, prefix, sizeof prefix);
	return strcmp(prefix, j->prefix) == 0;
}

/* Other variables' names may be in a file by chance: of two with the same functions the one that fits is meant. */
static struct process_jemalloc *place_for(struct process *p, const struct process_jemalloc *j)
{
	for (size_t i = 0; i < p->n_jemallocs; i++)
		if (j->mallctl && p->jemallocs[i].mallctl == j->mallctl)
			return fits(j) && !fits(&p->jemallocs[i]) ? &p->jemallocs[i] : NULL;
	return p->n_jemallocs < PROCESS_JEMALLOCS ? &p->jemallocs[p->n_jemallocs++] : NULL;
}

static void add_jemalloc(struct process *p, size_t region, const struct elf_image *e, const struct jemalloc_file *f,
                         size_t variable)
{
	uint64_t bias;
	const struct region *r = &p->regions[region];
	if (!process_bias(r, e, &bias))
		return;
	struct process_jemalloc j = { .region = region, .profiling_built_in = !f->without_profiling };
	snprintf(j.path, sizeof j.path, "%s", process_path(p, r));
	snprintf(j.conf_variable, sizeof j.conf_variable, "%s", f->variables[variable]);
	snprintf(j.version, sizeof j.version, "%s", f->version);
	/* A library that has jemalloc inside among other things isn't called so. */
	const char *base = strrchr(j.path, '/');
	j.library = strcmp(j.path, p->exe) != 0 && strstr(base ? base : j.path, "jemalloc") != NULL;
	find_mallctl(e, bias, &j);
	find_entries(e, bias, &j);
	j.serves_malloc = !j.prefix[0] || function(e, bias, "", "malloc") != 0;
	struct process_jemalloc *to = place_for(p, &j);
	if (to)
		*to = j;
}

static int rank(const struct process_jemalloc *j)
{
	return (j->mallctl ? 4 : 0) + (j->profiling_built_in ? 2 : 0) + (j->serves_malloc ? 1 : 0);
}

static void sort_jemallocs(struct process *p)
{
	for (size_t i = 1; i < p->n_jemallocs; i++)
		for (size_t k = i; k > 0 && rank(&p->jemallocs[k]) > rank(&p->jemallocs[k - 1]); k--) {
			struct process_jemalloc other = p->jemallocs[k];
			p->jemallocs[k] = p->jemallocs[k - 1];
			p->jemallocs[k - 1] = other;
		}
}

/* What the program file says: its machine, and its loader. */
static void read_program(struct process *p, const struct elf_image *e)
{
	struct elf_segment s;
	p->machine = e->machine;
	p->is64 = e->is64;
	p->is_static = true;
	for (uint32_t i = 0; elf_segment(e, i, &s); i++) {
		if (s.type != PT_INTERP)
			continue;
		p->is_static = false;
		if (s.offset <= e->n && s.file_bytes <= e->n - s.offset &&
		    memmem(e->bytes + s.offset, s.file_bytes, "/ld-musl-", 9))
			p->musl = true;
	}
}

static bool seen_before(const struct process *p, size_t region)
{
	const struct region *r = &p->regions[region];
	for (size_t i = 0; i < region; i++) {
		const struct region *o = &p->regions[i];
		if (o->executable && o->inode == r->inode && o->device == r->device)
			return true;
	}
	return false;
}

static int look_into_program(struct process *p, struct error *err)
{
	char path[64];
	struct elf_image e;
	snprintf(path, sizeof path, "/proc/%d/exe", (int)p->pid);
	ssize_t n = readlink(path, p->exe, sizeof p->exe - 1);
	if (n < 0)
		return no_maps(p->pid, errno, err);
	p->exe[n] = '\0';
	static const char deleted[] = " (deleted)";
	if ((size_t)n > sizeof deleted && strcmp(p->exe + n - (sizeof deleted - 1), deleted) == 0)
		p->exe[n - (sizeof deleted - 1)] = '\0';
	int failed = elf_image_open(&e, path, err);
	if (failed)
		return failed;
	read_program(p, &e);
	elf_image_close(&e);
	return 0;
}

static void look_into_files(struct process *p)
{
	size_t n_files = 0;
	for (size_t i = 0; i < p->n_regions; i++) {
		struct elf_image e;
		struct jemalloc_file f;
		struct error ignored;
		const struct region *r = &p->regions[i];
		if (!r->executable || !r->inode || process_path(p, r)[0] != '/' || seen_before(p, i))
			continue;
		n_files++;
		const char *base = strrchr(process_path(p, r), '/') + 1;
		p->musl |= strncmp(base, "ld-musl-", 8) == 0;
		if (process_image(p, r, &e, &ignored))
			continue;
		if (jemalloc_file_look(&e, &f))
			for (size_t k = 0; k < f.n_variables; k++)
				add_jemalloc(p, i, &e, &f, k);
		elf_image_close(&e);
	}
	/* A program started through ld.so has a loader that has none itself. */
	p->is_static &= n_files <= 1;
	sort_jemallocs(p);
}

int process_open_map(struct process *p, pid_t pid, struct error *err)
{
	memset(p, 0, sizeof *p);
	p->pid = pid;
	return read_maps(p, err);
}

int process_open(struct process *p, pid_t pid, struct error *err)
{
	uint64_t number;
	memset(p, 0, sizeof *p);
	p->pid = pid;
	if (pid <= 0)
		return error_set(err, E_USAGE, "%d is no process number", (int)pid);
	if (process_status_number(pid, pid, "Tgid", 10, &number) && number <= INT_MAX)
		p->pid = (pid_t)number;
	int failed = read_maps(p, err);
	if (!failed)
		failed = look_into_program(p, err);
	if (failed)
		return failed;
	look_into_files(p);
	process_endpoint(p->pid, p->endpoint, sizeof p->endpoint);
	return 0;
}

void process_close(struct process *p)
{
	if (!p)
		return;
	free(p->regions);
	free(p->paths);
	memset(p, 0, sizeof *p);
}

/* --- the endpoint --- */

bool process_endpoint(pid_t pid, char *to, size_t room)
{
	static const char before[] = "/memfd:heapgauge:", after[] = " (deleted)";
	char path[300], target[512];
	snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	DIR *d = opendir(path);
	const struct dirent *entry;
	bool found = false;
	while (d && !found && (entry = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), entry->d_name, target, sizeof target - 1);
		const size_t head = sizeof before - 1, tail = sizeof after - 1;
		if (n <= (ssize_t)(head + tail) || (size_t)n == sizeof target - 1 || memcmp(target, before, head) != 0)
			continue;
		target[n] = '\0';
		size_t length = (size_t)n - head - tail;
		if (strcmp(target + head + length, after) != 0 || length >= room)
			continue;
		memcpy(to, target + head, length);
		to[length] = '\0';
		found = true;
	}
	if (d)
		closedir(d);
	return found;
}
