/*
 * A running process. What /proc shows comes first; what only its jemalloc knows is asked of the endpoint, and where there is
 * none, of jemalloc itself through ptrace, which stops the process for a moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/diagnosis.h"
#include "cli/launch.h"
#include "cli/live.h"
#include "http/access.h"

#define ENVIRONMENT_MAX ((size_t)4 << 20)
#define STATUS_MAX ((size_t)64 << 10)

/* What jemalloc says of itself. */
struct state {
	bool known;
	bool found, built_in, enabled, active;
	uint64_t lg_sample;
	char version[64], variable[48], path[PATH_MAX];
};

struct patient {
	struct diagnosis *d;
	const struct diagnosis_options *o;
	struct process process;
	const struct process_jemalloc *jemalloc;    /* NULL: none */
	struct state state;
	bool has_endpoint, may_attach;
};

/* --- /proc --- */

static void proc_path(const struct patient *p, const char *name, char *to, size_t room)
{
	snprintf(to, room, "/proc/%ld/%s", (long)p->d->pid, name);
}

/* A file of the process, as seen by it. */
static void its_file(const struct patient *p, const char *path, char *to, size_t room)
{
	if (live_other_namespace(p->d->pid, "mnt"))
		snprintf(to, room, "/proc/%ld/root%s", (long)p->d->pid, path);
	else
		snprintf(to, room, "%s", path);
}

static bool maps_file_named(const struct process *process, const char *part)
{
	for (size_t i = 0; i < process->n_regions; i++) {
		const char *path = process_path(process, &process->regions[i]);
		const char *slash = strrchr(path, '/');
		if (slash && strstr(slash, part))
			return true;
	}
	return false;
}

/* The allocator of a process without jemalloc. */
static const char *other_allocator(const struct process *process)
{
	static const struct { const char *part, *name; } known[] = {
		{ "libtcmalloc", "tcmalloc" }, { "libmimalloc", "mimalloc" }, { "libsnmalloc", "snmalloc" },
		{ "libasan", "AddressSanitizer's" }, { "ld-musl", "musl's" }, { "libc.so", "glibc's" }, { "libc-2", "glibc's" },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (maps_file_named(process, known[i].part))
			return known[i].name;
	return process->is_static ? "one inside the program, which is linked statically" : "unknown";
}

/*
 * Variables "…MALLOC_CONF" of its environment that switch profiling on: advice on those that its jemalloc doesn't
 * read. Is there the right one?
 */
static bool find_variables(struct patient *p, const char *right)
{
	char path[64];
	struct stream s;
	struct buf all;
	proc_path(p, "environ", path, sizeof path);
	bool found = false;
	if (stream_open(&s, path, NULL))
		return found;
	buf_init(&all, ENVIRONMENT_MAX);
	if (stream_read_all(&s, &all, NULL) == 0 && all.data) {
		for (const char *at = all.data; at < all.data + all.len; at += strlen(at) + 1) {
			size_t n = strcspn(at, "=");
			static const char ending[] = "MALLOC_CONF";
			size_t m = sizeof ending - 1;
			if (n < m || n > 40 || memcmp(at + n - m, ending, m) != 0 || !strstr(at + n, "prof:true"))
				continue;
			if (strlen(right) == n && memcmp(at, right, n) == 0)
				found = true;
			else
				diagnosis_advise(p->d, true, NULL, "its environment has %.*s, but this jemalloc reads %s: rename the variable", (int)n,
			                 at, right);
		}
	}
	buf_finish(&all);
	stream_close(&s);
	return found;
}

/* --- who may look --- */

static int yama_scope(void)
{
	char digit = '0';
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	ssize_t n = read(fd, &digit, 1);
	close(fd);
	return n == 1 ? digit - '0' : 0;
}

/* Nothing is stopped: the process' memory is guarded by the same rule, and a call about no child of ours says ESRCH. */
static void find_ptrace(struct patient *p)
{
	char path[64];
	struct stat st;
	errno = 0;
	ptrace(PTRACE_PEEKUSER, p->d->pid, NULL, NULL);
	bool forbidden = errno == EPERM || errno == ENOSYS;
	proc_path(p, "mem", path, sizeof path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int reason = errno;
	if (fd >= 0)
		close(fd);
	p->may_attach = fd >= 0 && !forbidden;
	if (p->may_attach) {
		diagnosis_find(p->d, "attach", ANSWER_YES, "ptrace is permitted");
		return;
	}
	proc_path(p, "", path, sizeof path);
	bool others = stat(path, &st) == 0 && st.st_uid != geteuid();
	int scope = yama_scope();
	bool advise = !p->has_endpoint;
	if (forbidden) {
		diagnosis_find(p->d, "attach", ANSWER_NO, "the system call ptrace is forbidden here (seccomp)");
		if (advise)
			diagnosis_advise(p->d, true, "docker run --cap-add=SYS_PTRACE …", "to attach, allow ptrace in this container, or run "
			                 "heapgauge on the host");
	} else if (others) {
		diagnosis_find(p->d, "attach", ANSWER_NO, "it is a process of user %lu, and this is user %lu", (unsigned long)st.st_uid,
		               (unsigned long)geteuid());
		if (advise) {
			snprintf(path, sizeof path, "sudo heapgauge top pid:%ld", (long)p->d->pid);
			diagnosis_advise(p->d, true, path, "to attach, be that user or root");
		}
	} else if (scope > 0) {
		diagnosis_find(p->d, "attach", ANSWER_NO, "kernel.yama.ptrace_scope is %d", scope);
		if (advise)
			diagnosis_advise(p->d, true, scope < 3 ? "sysctl kernel.yama.ptrace_scope=0" : NULL, scope < 3
			                 ? "to attach, be root, or let processes of one user trace each other (as root)"
			                 : "attaching is off until this machine starts again (kernel.yama.ptrace_scope)");
	} else {
		diagnosis_find(p->d, "attach", ANSWER_NO, "not permitted: %s", strerror(reason));
		if (advise)
			diagnosis_advise(p->d, true, NULL, "to attach, be root, or give heapgauge the capability CAP_SYS_PTRACE");
	}
}

/* --- what jemalloc says --- */

/* "key":true in JSON that our own agent wrote: a quote inside a text would have a backslash before it. */
static bool json_flag(const char *json, const char *key)
{
	char wanted[64];
	snprintf(wanted, sizeof wanted, "\"%s\":true", key);
	return strstr(json, wanted) != NULL;
}

static void json_copy(const char *json, const char *key, char *to, size_t room)
{
	char wanted[64];
	snprintf(wanted, sizeof wanted, "\"%s\":\"", key);
	const char *at = strstr(json, wanted);
	if (!at)
		return;
	at += strlen(wanted);
	snprintf(to, room, "%.*s", (int)strcspn(at, "\"\\"), at);
}

static uint64_t json_count(const char *json, const char *key)
{
	char wanted[64];
	uint64_t value = 0;
	snprintf(wanted, sizeof wanted, "\"%s\":", key);
	const char *at = strstr(json, wanted);
	if (at) {
		at += strlen(wanted);
		text_parse_u64(at, strspn(at, "0123456789"), 10, &value);
	}
	return value;
}

static void ask_endpoint(struct patient *p)
{
	struct fetch_address a;
	char room[HTTP_TOKEN_MAX + 1];
	const char *token = NULL;
	struct buf answer;
	struct error err;
	if (!live_endpoint(p->d->pid, "/heapgauge/status", &a)) {
		if (p->process.endpoint[0])
			diagnosis_find(p->d, "endpoint", ANSWER_NO, "%s, which cannot be reached from here", p->process.endpoint);
		else
			diagnosis_find(p->d, "endpoint", ANSWER_NO, "none in it");
		return;
	}
	buf_init(&answer, STATUS_MAX);
	int failed = live_token(p->o->token_file, room, &token, &err);
	if (!failed)
		failed = fetch(&a, token, &answer, &err);
	if (failed) {
		diagnosis_find(p->d, "endpoint", ANSWER_NO, "%s", err.text);
	} else if (answer.data) {
		struct state *s = &p->state;
		p->has_endpoint = true;
		diagnosis_find(p->d, "endpoint", ANSWER_YES, "%s", p->process.endpoint);
		s->known = true;
		s->found = json_flag(answer.data, "found");
		s->built_in = json_flag(answer.data, "profiling_built_in");
		s->enabled = json_flag(answer.data, "profiling_enabled");
		s->active = json_flag(answer.data, "active");
		s->lg_sample = json_count(answer.data, "lg_sample");
		json_copy(answer.data, "version", s->version, sizeof s->version);
		json_copy(answer.data, "variable", s->variable, sizeof s->variable);
		json_copy(answer.data, "path", s->path, sizeof s->path);
		if (strcmp(s->path, "/proc/self/exe") == 0)
			snprintf(s->path, sizeof s->path, "%s", p->process.exe);
	}
	buf_finish(&answer);
	fetch_address_finish(&a);
}

static void ask_by_attaching(struct patient *p)
{
	struct attach *a;
	struct attach_status its;
	struct attach_times times;
	struct error err;
	struct state *s = &p->state;
	int failed = attach_open(&a, p->d->pid, NULL, &err);
	if (!failed) {
		failed = attach_get_status(a, &its, &times, &err);
		attach_close(a);
	}
	if (failed) {
		diagnosis_find(p->d, "asked", ANSWER_NO, "its jemalloc could not be asked");
		diagnosis_advise(p->d, true, NULL, "%s", err.text);
		return;
	}
	diagnosis_find(p->d, "asked", ANSWER_YES, "jemalloc itself; that stopped one thread for %.1f ms", times.stopped_ms);
	*s = (struct state){ .known = true, .found = true, .built_in = its.profiling_built_in, .enabled = its.profiling_enabled,
		             .active = its.active, .lg_sample = its.lg_sample };
	snprintf(s->version, sizeof s->version, "%s", its.version);
}

/* --- the findings --- */

static void find_no_jemalloc(struct patient *p)
{
	static struct program program;
	struct diagnosis *d = p->d;
	struct error why;
	diagnosis_find(d, "allocator", ANSWER_NO, "%s: no jemalloc in it", other_allocator(&p->process));
	if (p->process.is_static)
		diagnosis_advise(d, true, NULL, "link it with jemalloc, or dynamically: nothing can be put under a static program");
	else if (!live_other_namespace(d->pid, "mnt") && launch_inspect(d->program, NULL, &program, &why))
		diagnosis_advise(d, true, strstr(why.text, "is not installed") ? "apt install libjemalloc2" : NULL, "%s", why.text);
	if (!p->process.is_static && !p->process.musl)
		advise_start(d, "");
}

/* "5.3.0-0-g54eaed1d8b56…": of a commit the first eight digits are enough. */
static void shorten(char *version)
{
	char *commit = strstr(version, "-g");
	if (commit && strlen(commit) > 10)
		commit[10] = '\0';
}

static void find_jemalloc(struct patient *p)
{
	struct diagnosis *d = p->d;
	struct state *s = &p->state;
	const struct process_jemalloc *j = p->jemalloc;
	if (j && !s->version[0])
		snprintf(s->version, sizeof s->version, "%s", j->version);
	if (j && !s->variable[0])
		snprintf(s->variable, sizeof s->variable, "%s", j->conf_variable);
	if (j && !s->path[0])
		snprintf(s->path, sizeof s->path, "%s", j->path);
	shorten(s->version);
	diagnosis_find(d, "allocator", ANSWER_YES, "jemalloc %s in %s, reads %s", s->version, s->path, s->variable);
	bool built_in = s->known ? s->built_in : j && j->profiling_built_in;
	diagnosis_find(d, "compiled in", built_in ? ANSWER_YES : ANSWER_NO, built_in ? "heap profiling"
	               : "its jemalloc was built without heap profiling");
	if (!built_in) {
		advise_build(d, s->variable, s->path);
		return;
	}
	if (!s->known) {
		diagnosis_find(d, "enabled", ANSWER_UNKNOWN, find_variables(p, s->variable)
		               ? "its environment asks for it; whether it is, nobody could be asked" : "nobody could be asked");
		return;
	}
	diagnosis_find(d, "enabled", s->enabled ? ANSWER_YES : ANSWER_NO, s->enabled ? "opt.prof"
	               : "opt.prof is off, and can only be set when the program starts");
	if (!s->enabled) {
		find_variables(p, s->variable);
		advise_start(d, s->variable);
		return;
	}
	diagnosis_find(d, "active", s->active ? ANSWER_YES : ANSWER_NO, s->active ? "allocations are being sampled"
	               : "nothing is being sampled");
	if (s->lg_sample)
		diagnosis_find(d, "rate", ANSWER_YES, "one sample for every %llu bytes on average (lg_prof_sample:%llu)",
		               1ull << (s->lg_sample & 63), (unsigned long long)s->lg_sample);
	else
		diagnosis_find(d, "rate", ANSWER_YES, "every allocation (lg_prof_sample:0)");
	if (!s->active) {
		char command[64];
		snprintf(command, sizeof command, "heapgauge attach %ld activate", (long)d->pid);
		diagnosis_advise(d, true, command, "start sampling; what was allocated before will not be in profiles");
	}
}

static void find_files(struct patient *p)
{
	char path[PATH_MAX + 64];
	if (p->state.path[0] && (p->state.known ? p->state.built_in : p->jemalloc->profiling_built_in)) {
		its_file(p, p->state.path, path, sizeof path);
		diagnose_unwinder(p->d, path);
	}
	proc_path(p, "exe", path, sizeof path);
	diagnose_names(p->d, path);
}

static void diagnose(struct patient *p)
{
	p->jemalloc = p->process.n_jemallocs ? &p->process.jemallocs[0] : NULL;
	ask_endpoint(p);
	find_ptrace(p);
	bool ask = !p->has_endpoint && p->jemalloc && p->may_attach;
	if (ask && p->o->attach)
		ask_by_attaching(p);
	if (p->state.found || p->jemalloc)
		find_jemalloc(p);
	else
		find_no_jemalloc(p);
	if (ask && !p->o->attach)
		diagnosis_advise(p->d, true, NULL, "without --no-attach it would be asked whether profiling is on");
	find_files(p);
}

/* As it was started: /usr/bin/redis-server is a link to another name, and that one would do something else. */
static void name_program(struct patient *p)
{
	const char *exe = p->process.exe, *slash = strrchr(exe, '/');
	char beside[PATH_MAX + 64], real[PATH_MAX];
	snprintf(p->d->program, sizeof p->d->program, "%s", exe);
	snprintf(beside, sizeof beside, "%.*s/%s", slash ? (int)(slash - exe) : 0, exe, p->d->name);
	if (!live_other_namespace(p->d->pid, "mnt") && realpath(beside, real) && strcmp(real, exe) == 0)
		snprintf(p->d->program, sizeof p->d->program, "%.4000s", beside);
}

int diagnose_process(pid_t pid, const struct diagnosis_options *o, struct diagnosis *ret, struct error *err)
{
	struct diagnosis d = { .pid = pid };
	struct patient p = { .d = &d, .o = o };
	if (access("/proc/self/maps", R_OK) < 0)
		return error_set(err, E_IO, "/proc is not there, and a process can only be looked at through it: mount -t proc proc /proc");
	int failed = process_open(&p.process, pid, err);
	if (failed)
		return failed;
	live_process_name(pid, d.name, sizeof d.name);
	name_program(&p);
	diagnose(&p);
	diagnosis_sort(&d);
	process_close(&p.process);
	if (diagnosis_is_fine(&d))
		snprintf(d.how, sizeof d.how, "heapgauge top pid:%ld", (long)pid);
	*ret = d;
	return 0;
}
