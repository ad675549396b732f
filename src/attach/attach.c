/*
 * A visit to a process: find a thread at a safe point (safe_point.c), make it call mallctl (call.c), let it go. What
 * can be prepared is prepared before anything stands: addresses, instructions, where the allocator's code is. While a
 * thread is in our hands all signals to this program are blocked, so that ctrl-C never leaves a call half done.
 */
#include "attach/attach.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "attach/call.h"
#include "attach/code.h"
#include "attach/permission.h"
#include "attach/safe_point.h"

#define WAIT_MS 2000
#define CALL_LIMIT_MS 5000
#define DUMP_LIMIT_MS 120000
#define PROC_MAGIC 0x9fa0
#define HURRY (-20)

struct attach {
	struct process process;
	struct code code;
	struct unwinder *unwinder;
	struct attach_options options;
	const struct process_jemalloc *chosen;  /* once one of several is known to be the one */
};

/* --- opening --- */

static int check_program(const struct process *p, struct error *err)
{
	if (p->machine != EM_X86_64 || !p->is64)
		return error_set(err, E_UNSUPPORTED,
		                 "process %d runs a program of another architecture (%s): attach can only call into "
		                 "64-bit x86 programs; start it with heapgauge run instead",
		                 (int)p->pid,
		                 p->machine == EM_386      ? "32-bit x86"
		                 : p->machine == EM_X86_64 ? "x32"
		                                           : "not x86");
	if (!p->n_jemallocs)
		return error_set(err, E_UNSUPPORTED,
		                 "process %d (%.200s) runs on no jemalloc: start it with heapgauge run, which puts "
		                 "one under it",
		                 (int)p->pid, p->exe);
	if (!p->jemallocs[0].mallctl)
		return error_set(err, E_UNSUPPORTED,
		                 "process %d: the jemalloc inside %.200s cannot be found, its symbols were stripped: "
		                 "install a build with its symbol table (strip -g keeps it), or start it with "
		                 "heapgauge run",
		                 (int)p->pid, p->jemallocs[0].path);
	return 0;
}

int attach_open(struct attach **ret, pid_t pid, const struct attach_options *o, struct error *err)
{
	struct attach *a = calloc(1, sizeof *a);
	if (!a)
		return error_nomem(err, "attaching");
	if (o)
		a->options = *o;
	int failed = process_open(&a->process, pid, err);
	if (!failed)
		failed = check_program(&a->process, err);
	if (!failed)
		failed = permission_check(a->process.pid, err);
	if (!failed)
		failed = code_find(&a->code, &a->process, err);
	if (a->options.no_restorer && a->code.pop)
		a->code.n_restorers = 0;
	if (!failed)
		*ret = a;
	else
		attach_close(a);
	return failed;
}

void attach_close(struct attach *a)
{
	if (!a)
		return;
	unwinder_free(a->unwinder);
	code_finish(&a->code);
	process_close(&a->process);
	free(a);
}

const struct process *attach_process(const struct attach *a)
{
	return &a->process;
}

const struct process_jemalloc *attach_jemalloc(const struct attach *a)
{
	return a->chosen ? a->chosen : &a->process.jemallocs[0];
}

/* --- a visit --- */

struct visit {
	struct attach *attach;
	struct tracee thread;
	struct caller caller;
	struct safe_point_search search;
	sigset_t mask_before;
	struct sigaction child_before;
	int niceness_before;
	double dump_ms;
};

/*
 * SIGCHLD tells that a thread has stopped: it must neither be ignored nor handled meanwhile. While it stands it waits
 * for us, so we are in a hurry, where that is permitted.
 */
static void hold(struct visit *v)
{
	struct sigaction plain = { .sa_handler = SIG_DFL };
	sigset_t all;
	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &v->mask_before);
	sigaction(SIGCHLD, &plain, &v->child_before);
	v->niceness_before = getpriority(PRIO_PROCESS, 0);
	setpriority(PRIO_PROCESS, 0, HURRY);
}

static void release(struct visit *v)
{
	setpriority(PRIO_PROCESS, 0, v->niceness_before);
	struct timespec none = { 0, 0 };
	sigset_t child;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	while (!sigismember(&v->mask_before, SIGCHLD) && sigtimedwait(&child, NULL, &none) > 0) {
	}
	sigaction(SIGCHLD, &v->child_before, NULL);
	sigprocmask(SIG_SETMASK, &v->mask_before, NULL);
}

static int begin(struct visit *v, struct attach *a, struct error *err)
{
	*v = (struct visit){ .attach = a };
	v->search = (struct safe_point_search){
		.process = &a->process,
		.jemalloc = attach_jemalloc(a),
		.code = &a->code,
		.unwinder = &a->unwinder,
		.blocked_only = a->options.blocked_only,
		.breakpoint_only = a->options.breakpoint_only,
		.wait_ms = a->options.wait_ms ? a->options.wait_ms : WAIT_MS,
	};
	hold(v);
	int failed = safe_point_find(&v->search, &v->thread, err);
	if (!failed) {
		failed = caller_begin(&v->caller, &v->thread, &a->code, err);
		if (failed)
			tracee_let_go(&v->thread);
	}
	if (failed)
		release(v);
	return failed;
}

static void end(struct visit *v, struct attach_times *times)
{
	caller_end(&v->caller);
	double stopped = now_ms() - v->thread.stopped_at_ms - v->dump_ms;
	release(v);
	if (times)
		*times = (struct attach_times){ stopped, v->dump_ms, v->search.ret_at_breakpoint, v->thread.thread, v->search.ret_tried };
}

/* --- mallctl --- */

/* In the thread's room: the name, a value (in or out), and the length of it. */
#define NAME_AT 0
#define VALUE_AT 256
#define LENGTH_AT 512

struct value {
	void *bytes;
	size_t n;
};

static double limit(const struct visit *v, double usual_ms)
{
	return v->attach->options.limit_ms ? v->attach->options.limit_ms : usual_ms;
}

static int reach(const struct visit *v, struct error *err)
{
	return error_set(err, E_IO, "process %d: its memory cannot be reached: %s", (int)v->thread.process,
	                 strerror(errno));
}

/* mallctl(name, old, &length, new, length); old and new may be NULL. *ret_answer: 0 or an errno. */
static int control(struct visit *v, const struct process_jemalloc *j, const char *name, const struct value *old,
                   const struct value *new, double limit_ms, int *ret_answer, struct error *err)
{
	struct caller *c = &v->caller;
	const pid_t process = v->thread.process;
	uint64_t arguments[6] = { c->room + NAME_AT };
	uint64_t length = old ? old->n : 0;
	if (!process_write(process, c->room + NAME_AT, name, strlen(name) + 1))
		return reach(v, err);
	if (old) {
		arguments[1] = c->room + VALUE_AT;
		arguments[2] = c->room + LENGTH_AT;
		if (!process_write(process, arguments[2], &length, sizeof length))
			return reach(v, err);
	}
	if (new) {
		arguments[3] = c->room + VALUE_AT;
		arguments[4] = new->n;
		if (!process_write(process, arguments[3], new->bytes, new->n))
			return reach(v, err);
	}
	int failed = caller_call(c, j->mallctl, arguments, limit_ms, ret_answer, err);
	if (!failed && old && !*ret_answer && !process_read(process, c->room + VALUE_AT, old->bytes, old->n))
		failed = reach(v, err);
	return failed;
}

static int read_value(struct visit *v, const struct process_jemalloc *j, const char *name, void *to, size_t n,
                      bool *ret_known, struct error *err)
{
	struct value old = { to, n };
	int answer = 0;
	int failed = control(v, j, name, &old, NULL, limit(v, CALL_LIMIT_MS), &answer, err);
	*ret_known = !failed && !answer;
	return failed;
}

static int read_bool(struct visit *v, const struct process_jemalloc *j, const char *name, bool *ret, struct error *err)
{
	uint8_t byte = 0;
	bool known;
	int failed = read_value(v, j, name, &byte, sizeof byte, &known, err);
	if (!failed)
		*ret = known && byte;
	return failed;
}

/* The one of several that has profiling enabled; the first when none has. */
static int choose(struct visit *v, bool *ret_built_in, bool *ret_enabled, struct error *err)
{
	struct attach *a = v->attach;
	const struct process_jemalloc *first = attach_jemalloc(a);
	int failed = read_bool(v, first, "opt.prof", ret_enabled, err);
	*ret_built_in = *ret_enabled;
	for (size_t i = 0; i < a->process.n_jemallocs && !a->chosen && !failed && !*ret_enabled; i++) {
		const struct process_jemalloc *j = &a->process.jemallocs[i];
		bool enabled = false;
		if (j->mallctl && j != first)
			failed = read_bool(v, j, "opt.prof", &enabled, err);
		if (!failed && enabled) {
			first = j;
			*ret_built_in = *ret_enabled = true;
		}
	}
	/* Each call takes its time from the thread: what can be told is not asked. */
	if (!failed && !*ret_enabled)
		failed = read_bool(v, first, "config.prof", ret_built_in, err);
	if (!failed)
		a->chosen = first;
	return failed;
}

static int not_enabled(const struct attach *a, bool built_in, struct error *err)
{
	const struct process_jemalloc *j = a->chosen;
	if (!built_in)
		return error_set(err, E_UNSUPPORTED,
		                 "process %d: the jemalloc in %.200s was built without heap profiling: build it with "
		                 "--enable-prof (in Rust the feature \"profiling\" of tikv-jemallocator), or start "
		                 "the program with heapgauge run",
		                 (int)a->process.pid, j->path);
	return error_set(err, E_UNSUPPORTED,
	                 "process %d was started with heap profiling off (opt.prof), and it can only be switched on "
	                 "at the start: start it with %s=prof:true,prof_active:false in its environment, or with "
	                 "heapgauge run",
	                 (int)a->process.pid, j->conf_variable);
}

static int choose_enabled(struct visit *v, struct error *err)
{
	bool built_in = false, enabled = false;
	int failed = choose(v, &built_in, &enabled, err);
	if (failed || enabled)
		return failed;
	return not_enabled(v->attach, built_in, err);
}

/* --- what can be asked --- */

static int read_status(struct visit *v, struct attach_status *s, struct error *err)
{
	uint64_t number = 0, version = 0;
	bool known = false;
	int failed = choose(v, &s->profiling_built_in, &s->profiling_enabled, err);
	const struct process_jemalloc *j = attach_jemalloc(v->attach);
	snprintf(s->version, sizeof s->version, "%s", j->version);
	if (!failed && !s->version[0])
		failed = read_value(v, j, "version", &version, sizeof version, &known, err);
	/* A pointer to text; as much of it as its page has. */
	if (!failed && known) {
		size_t left = 4096 - (version & 4095), n = left < sizeof s->version - 1 ? left : sizeof s->version - 1;
		if (!process_read(v->thread.process, version, s->version, n))
			s->version[0] = '\0';
	}
	if (!failed && s->profiling_enabled)
		failed = read_bool(v, j, "prof.active", &s->active, err);
	if (!failed && s->profiling_enabled)
		failed = read_bool(v, j, "opt.prof_accum", &s->accumulates, err);
	if (!failed && s->profiling_built_in)
		failed = read_value(v, j, "prof.lg_sample", &number, sizeof number, &known, err);
	if (!failed && s->profiling_built_in && !known)
		failed = read_value(v, j, "opt.lg_prof_sample", &number, sizeof number, &known, err);
	s->lg_sample = number;
	return failed;
}

int attach_get_status(struct attach *a, struct attach_status *ret, struct attach_times *times, struct error *err)
{
	struct visit v;
	struct attach_status s = { 0 };
	int failed = begin(&v, a, err);
	if (failed)
		return failed;
	failed = read_status(&v, &s, err);
	end(&v, times);
	if (!failed)
		*ret = s;
	return failed;
}

static int refused(const struct attach *a, const char *name, int answer, struct error *err)
{
	return error_set(err, E_UNSUPPORTED, "process %d: its jemalloc refused %s: %s", (int)a->process.pid, name,
	                 strerror(answer));
}

/* One mallctl that writes. */
static int set(struct attach *a, const char *name, const struct value *new, struct attach_times *times,
               struct error *err)
{
	struct visit v;
	int answer = 0, failed = begin(&v, a, err);
	if (failed)
		return failed;
	failed = choose_enabled(&v, err);
	if (!failed)
		failed = control(&v, a->chosen, name, NULL, new, limit(&v, CALL_LIMIT_MS), &answer, err);
	end(&v, times);
	return failed || !answer ? failed : refused(a, name, answer, err);
}

int attach_set_active(struct attach *a, bool active, struct attach_times *times, struct error *err)
{
	uint8_t byte = active;
	struct value new = { &byte, sizeof byte };
	return set(a, "prof.active", &new, times, err);
}

int attach_reset(struct attach *a, int lg_sample, struct attach_times *times, struct error *err)
{
	uint64_t number = (uint64_t)lg_sample;
	struct value new = { &number, sizeof number };
	return set(a, "prof.reset", lg_sample < 0 ? NULL : &new, times, err);
}

/* --- dump --- */

/* jemalloc is given the name /proc/self/fd/N, so the process must see a /proc. */
static int check_proc(const struct attach *a, struct error *err)
{
	char path[64];
	struct statfs fs;
	struct stat st;
	snprintf(path, sizeof path, "/proc/%d/root/proc", (int)a->process.pid);
	bool there = statfs(path, &fs) == 0 && fs.f_type == PROC_MAGIC;
	snprintf(path, sizeof path, "/proc/%d/root/proc/self", (int)a->process.pid);
	if (there && lstat(path, &st) == 0)
		return 0;
	return error_set(err, E_UNSUPPORTED,
	                 "process %d sees no /proc (chroot, or a container without it), and jemalloc needs it to "
	                 "write a dump without touching a disk: mount it there (mount -t proc proc "
	                 "/proc/%d/root/proc)",
	                 (int)a->process.pid, (int)a->process.pid);
}

/* A memfd of the process; ours is *ret_fd. */
static int make_file(struct visit *v, int *ret_theirs, int *ret_fd, struct error *err)
{
	static const char name[] = "heapgauge-dump";
	struct caller *c = &v->caller;
	uint64_t arguments[6] = { c->room + NAME_AT, MFD_CLOEXEC };
	char path[64];
	int number;
	if (!process_write(v->thread.process, arguments[0], name, sizeof name))
		return reach(v, err);
	int failed = caller_system_call(c, SYS_memfd_create, arguments, &number, err);
	if (failed)
		return failed;
	if (number < 0)
		return error_set(err, E_UNSUPPORTED, "process %d cannot make a file in memory for the dump: %s%s",
		                 (int)v->thread.process, strerror(-number),
		                 number == -EPERM || number == -ENOSYS ? " (its sandbox forbids memfd_create)" : "");
	*ret_theirs = number;
	snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)v->thread.process, number);
	*ret_fd = open(path, O_RDWR | O_CLOEXEC);
	return *ret_fd >= 0 ? 0
	                    : error_set(err, E_IO, "process %d: cannot open the dump in it: %s", (int)v->thread.process,
	                                strerror(errno));
}

static int write_dump(struct visit *v, int theirs, struct error *err)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/self/fd/%d", theirs);
	uint64_t at = v->caller.room + VALUE_AT + 8;
	struct value new = { &at, sizeof at };
	int answer = 0;
	if (!process_write(v->thread.process, at, path, strlen(path) + 1))
		return reach(v, err);
	double begun = now_ms();
	int failed = control(v, v->attach->chosen, "prof.dump", NULL, &new, limit(v, DUMP_LIMIT_MS), &answer, err);
	v->dump_ms = now_ms() - begun;
	if (failed || !answer)
		return failed;
	return error_set(err, E_UNSUPPORTED, "process %d: its jemalloc could not write the dump: %s%s",
	                 (int)v->thread.process, strerror(answer),
	                 answer == EFAULT ? " (it cannot open /proc/self/fd/N, or is out of memory)" : "");
}

static int dump(struct visit *v, int *ret_fd, struct error *err)
{
	int theirs = -1, ours = -1, ignored;
	int failed = choose_enabled(v, err);
	if (!failed)
		failed = make_file(v, &theirs, &ours, err);
	if (!failed)
		failed = write_dump(v, theirs, err);
	if (theirs >= 0 && !v->caller.given_up && v->thread.seized) {
		uint64_t arguments[6] = { (uint64_t)theirs };
		struct error unheard;
		caller_system_call(&v->caller, SYS_close, arguments, &ignored, failed ? &unheard : err);
	}
	if (failed && ours >= 0)
		close(ours);
	if (!failed)
		*ret_fd = ours;
	return failed;
}

int attach_dump(struct attach *a, int *ret_fd, struct attach_times *times, struct error *err)
{
	struct visit v;
	int fd = -1, failed = check_proc(a, err);
	if (!failed)
		failed = begin(&v, a, err);
	if (failed)
		return failed;
	failed = dump(&v, &fd, err);
	end(&v, times);
	if (!failed)
		*ret_fd = fd;
	return failed;
}
