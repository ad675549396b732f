/*
 * run: starts a program under jemalloc with profiling on, waits for it, and names the
 * dumps it left. The program keeps its terminal, its arguments and its exit status; only
 * its environment has a few words more.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/process.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/dumps.h"
#include "cli/launch.h"
#include "cli/preload.h"
#include "cli/target.h"
#include "profile/profile.h"

struct run_settings {
	const char *folder, *library, *on_exit;
	struct preload_settings agent;
	uint64_t rate, every;
	bool accum, active, quiet;
};

#define UNSET UINT64_MAX
#define DEFAULT_RATE ((uint64_t)512 << 10)
#define DEFAULT_EVERY ((uint64_t)1 << 30)
#define NAME_MAX_BYTES 64
#define CONF_MAX (4 * PATH_MAX)
#define ENDPOINT_TICK_MS 20
#define ENDPOINT_WAIT_MS 2000

/* A run on its way: what is told the child, and what it tells back. */
struct job {
	const struct run_settings *s;
	char **arguments;
	struct program program;
	struct preload agent;
	char name[NAME_MAX_BYTES + 1];      /* of the dump files */
	char folder[PATH_MAX];
	struct timespec started;
	sigset_t mask_before;
	pid_t child;
	char endpoint[256];                 /* "": not seen yet */
};

/* --- options --- */

static int check_power(const char *option, uint64_t bytes, struct error *err)
{
	if (bytes && !(bytes & (bytes - 1)))
		return 0;
	return error_set(err, E_USAGE, "--%s %llu: jemalloc takes only powers of two, like 262144 or 1m", option,
	                 (unsigned long long)bytes);
}

/* Found out now, not in hours. */
static int check_output(const char *path, struct error *err)
{
	struct output o;
	int failed = output_open(&o, path, err);
	if (!failed)
		output_abort(&o);
	return failed;
}

static int check(const struct run_settings *s, struct error *err)
{
	int failed = 0;
	if (s->rate != UNSET)
		failed = check_power("rate", s->rate, err);
	if (!failed && s->every != UNSET && s->every != 0)
		failed = check_power("every", s->every, err);
	if (!failed && s->on_exit)
		failed = check_output(s->on_exit, err);
	return failed;
}

static unsigned log2_of(uint64_t power)
{
	return 63u - (unsigned)__builtin_clzll(power);
}

/* --- in the child: folder and environment --- */

/* The file name prefix may hold anything but what ends a value in MALLOC_CONF. */
static void choose_name(struct job *j)
{
	const char *base = path_base(j->arguments[0]);
	size_t n = 0;
	for (; base[n] && n < NAME_MAX_BYTES; n++)
		j->name[n] = (unsigned char)base[n] <= ' ' || strchr(",:%\177", base[n]) ? '_' : base[n];
	j->name[n] = '\0';
}

/* Makes the folder; the full path, since the program may change its directory. */
static int make_folder(struct job *j, struct error *err)
{
	char given[PATH_MAX];
	if (j->s->folder)
		snprintf(given, sizeof given, "%s", j->s->folder);
	else
		snprintf(given, sizeof given, "heapgauge.%s.%ld", j->name, (long)getpid());
	if (mkdir(given, 0777) < 0 && !(errno == EEXIST && j->s->folder))
		return error_set(err, E_IO, "%.200s: cannot make this folder: %s (choose another with -d)", given,
		                 strerror(errno));
	if (!realpath(given, j->folder) || access(j->folder, W_OK | X_OK) < 0)
		return error_set(err, E_IO, "%.200s: cannot write there: %s (choose another with -d)", given,
		                 strerror(errno));
	if (strchr(j->folder, ','))
		return error_set(err, E_USAGE, "%.200s: jemalloc takes no path with a comma: choose another with -d",
		                 j->folder);
	return 0;
}

static bool user_has_set(const char *users, const char *key)
{
	size_t n = strlen(key);
	for (const char *at = users; at && (at = strstr(at, key)); at += n)
		if ((at == users || at[-1] == ',') && at[n] == ':')
			return true;
	return false;
}

/* The one the program will run with. */
static const struct jemalloc *used_jemalloc(const struct job *j)
{
	return j->program.preload[0] ? &j->program.preloaded : &j->program.jemalloc;
}

static bool reads_variable(const struct jemalloc *jemalloc, const char *variable)
{
	for (size_t i = 0; i < jemalloc->n_variables; i++)
		if (strcmp(jemalloc->variables[i], variable) == 0)
			return true;
	return false;
}

/*
 * The user's own words come first and ours after them, since the last one wins; what is only a default of
 * ours is left out when the user said something else.
 */
static int set_conf(const struct job *j, const char *variable, const char *suffix, struct error *err)
{
	const struct run_settings *s = j->s;
	const struct jemalloc *used = used_jemalloc(j);
	const char *users = getenv(variable);
	struct buf conf;
	buf_init(&conf, CONF_MAX);
	if (users && *users)
		buf_printf(&conf, "%s,", users);
	buf_printf(&conf, "prof:true,prof_final:true,prof_prefix:%s/%s%s", j->folder, j->name, suffix);
	buf_printf(&conf, ",prof_active:%s", s->active ? "true" : "false");
	if (s->rate != UNSET || !user_has_set(users, "lg_prof_sample"))
		buf_printf(&conf, ",lg_prof_sample:%u", log2_of(s->rate != UNSET ? s->rate : DEFAULT_RATE));
	uint64_t every = s->every != UNSET ? s->every : DEFAULT_EVERY;
	if (every && (s->every != UNSET || !user_has_set(users, "lg_prof_interval")))
		buf_printf(&conf, ",lg_prof_interval:%u", log2_of(every));
	if (s->accum)
		buf_adds(&conf, ",prof_accum:true");
	if (used->thread_names && reads_variable(used, variable))
		buf_adds(&conf, ",prof_sys_thread_name:true");
	int failed = 0;
	if (conf.failed)
		failed = error_set(err, E_LIMIT, "%s is too long to add to it", variable);
	else if (setenv(variable, conf.data, 1) < 0)
		failed = error_nomem(err, "the environment");
	buf_finish(&conf);
	return failed;
}

/* jemalloc first, then the agent, then what the user has. */
static int set_preload(const struct job *j, struct error *err)
{
	const char *const libraries[] = { j->program.preload, j->agent.library, getenv("LD_PRELOAD") };
	struct buf all;
	buf_init(&all, CONF_MAX);
	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++)
		if (libraries[i] && *libraries[i])
			buf_printf(&all, "%s%s", all.len ? ":" : "", libraries[i]);
	int failed = all.failed ? error_set(err, E_LIMIT, "LD_PRELOAD is too long to add to it") : 0;
	if (!failed && all.len && setenv("LD_PRELOAD", all.data, 1) < 0)
		failed = error_nomem(err, "the environment");
	buf_finish(&all);
	return failed;
}

/*
 * MALLOC_CONF and Rust's _RJEM_MALLOC_CONF always, since the program may start others, and whatever
 * its own jemalloc reads. Two jemallocs in one process must not write to the same names.
 */
static int set_environment(const struct job *j, struct error *err)
{
	const struct jemalloc *own = &j->program.jemalloc;
	bool two = own->n_variables > 1;
	int failed = set_conf(j, "MALLOC_CONF", "", err);
	if (!failed)
		failed = set_conf(j, "_RJEM_MALLOC_CONF", two ? ".rjem" : "", err);
	for (size_t i = 0; i < own->n_variables && !failed; i++) {
		const char *variable = own->variables[i];
		char suffix[48] = "";
		if (strcmp(variable, "MALLOC_CONF") == 0 || strcmp(variable, "_RJEM_MALLOC_CONF") == 0)
			continue;
		if (two)
			snprintf(suffix, sizeof suffix, ".%zu", i);
		failed = set_conf(j, variable, suffix, err);
	}
	if (!failed)
		failed = set_preload(j, err);
	if (!failed)
		failed = preload_environment(&j->s->agent, &j->agent, err);
	return failed;
}

/* What the child tells: its folder before exec, an error when something failed. */
struct news {
	struct error err;
	char folder[PATH_MAX];
};

static void child_main(struct job *j, int pipe_end)
{
	struct news news = { 0 };
	sigprocmask(SIG_SETMASK, &j->mask_before, NULL);
	if (!make_folder(j, &news.err) && !set_environment(j, &news.err)) {
		memcpy(news.folder, j->folder, sizeof news.folder);
		if (write(pipe_end, &news, sizeof news) == sizeof news)
			execv(j->program.path, j->arguments);
		error_set(&news.err, E_IO, "%.200s: cannot run: %s", j->program.path, strerror(errno));
	}
	ssize_t told = write(pipe_end, &news, sizeof news);
	_exit(told == sizeof news ? 127 : 126);
}

/* --- in the parent --- */

static const int passed_on[] = { SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 };

/* Signals are taken from a queue, so that none is lost before the child is there. */
static void hold_signals(struct job *j, sigset_t *held)
{
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(held);
	sigaddset(held, SIGCHLD);
	for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
		sigaddset(held, passed_on[i]);
	sigprocmask(SIG_BLOCK, held, &j->mask_before);
}

static bool read_full(int fd, void *to, size_t n)
{
	size_t done = 0;
	while (done < n) {
		ssize_t got = read(fd, (char *)to + done, n - done);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		done += (size_t)got;
	}
	return true;
}

/* The folder, or the error that kept the program from starting; exec closes the pipe. */
static int hear(struct job *j, int pipe_end, struct error *err)
{
	struct news first = { 0 }, second = { 0 };
	if (!read_full(pipe_end, &first, sizeof first))
		error_set(&first.err, E_IO, "the process that was to become %.100s ended too early", j->name);
	else if (!first.err.code && read_full(pipe_end, &second, sizeof second))
		first.err = second.err;
	if (!first.err.code) {
		memcpy(j->folder, first.folder, sizeof j->folder);
		return 0;
	}
	while (waitpid(j->child, NULL, 0) < 0 && errno == EINTR) {
	}
	*err = first.err;
	if (first.folder[0] && !j->s->folder)
		rmdir(first.folder);
	return err->code;
}

static int start(struct job *j, struct error *err)
{
	int ends[2];
	clock_gettime(CLOCK_REALTIME_COARSE, &j->started);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return error_set(err, E_IO, "cannot make a pipe: %s", strerror(errno));
	j->child = fork();
	if (j->child == 0)
		child_main(j, ends[1]);
	close(ends[1]);
	int failed = j->child < 0 ? error_set(err, E_IO, "cannot start a process: %s", strerror(errno))
	                          : hear(j, ends[0], err);
	close(ends[0]);
	return failed;
}

static void begin_line(const struct job *j, struct buf *out)
{
	buf_init(out, 1 << 16);
	buf_printf(out, "heapgauge: %s (process %ld): ", j->name, (long)j->child);
}

static void end_line(struct buf *out)
{
	buf_addc(out, '\n');
	if (!out->failed)
		fwrite(out->data, 1, out->len, stderr);
	buf_finish(out);
}

static void say_no_endpoint(const struct job *j, const char *why)
{
	struct buf out;
	begin_line(j, &out);
	buf_adds(&out, "no endpoint, only dumps: ");
	text_add_terminal(&out, why, strlen(why));
	end_line(&out);
}

/* Where it listens. True when there is nothing more to wait for: the agent itself has said why it doesn't. */
static bool find_endpoint(struct job *j, int64_t waited_ms)
{
	struct buf out;
	if (!process_endpoint(j->child, j->endpoint, sizeof j->endpoint)) {
		j->endpoint[0] = '\0';
		if (waited_ms >= ENDPOINT_WAIT_MS && !j->s->quiet)
			say_no_endpoint(j, "no agent has answered in it");
		return waited_ms >= ENDPOINT_WAIT_MS;
	}
	if (j->s->quiet)
		return true;
	begin_line(j, &out);
	buf_adds(&out, "profiles at ");
	text_add_terminal(&out, j->endpoint, strlen(j->endpoint));
	buf_printf(&out, " (heapgauge top pid:%ld)", (long)j->child);
	end_line(&out);
	return true;
}

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000LL + now.tv_nsec / 1000000;
}

/* Waits; passes signals on, except those the terminal sent to the whole group already. Meanwhile looks for its endpoint. */
static int wait_for_child(struct job *j, const sigset_t *held)
{
	const struct timespec tick = { 0, ENDPOINT_TICK_MS * 1000000L };
	bool looking = preload_listens(&j->s->agent, &j->agent);
	int64_t began = now_ms();
	for (;;) {
		int status;
		pid_t done = waitpid(j->child, &status, WNOHANG);
		if (looking && done != j->child)
			looking = !find_endpoint(j, now_ms() - began);
		if (done == j->child)
			return status;
		siginfo_t info;
		int number = looking ? sigtimedwait(held, &info, &tick) : sigwaitinfo(held, &info);
		if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL)
			kill(j->child, number);
	}
}

/* --- afterwards --- */

/* A killed program leaves its socket. It goes when it is one, and nobody answers there. */
static void remove_socket(const struct job *j)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *path = j->endpoint + 5;
	struct stat st;
	if (strncmp(j->endpoint, "unix:", 5) != 0 || strlen(path) >= sizeof a.sun_path || lstat(path, &st) < 0 ||
	    !S_ISSOCK(st.st_mode))
		return;
	memcpy(a.sun_path, path, strlen(path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) < 0 && errno == ECONNREFUSED)
		unlink(path);
	if (fd >= 0)
		close(fd);
}

static void say_end(const struct job *j, int status, struct buf *out)
{
	buf_printf(out, "heapgauge: %s (process %ld) ", j->name, (long)j->child);
	if (WIFSIGNALED(status))
		buf_printf(out, "was ended by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		buf_printf(out, "exited with status %d", WEXITSTATUS(status));
}

static void say_why_none(const struct job *j, int status, struct buf *out)
{
	const struct jemalloc *used = used_jemalloc(j);
	buf_adds(out, " and left no dump: ");
	if (used->without_profiling)
		buf_printf(out, "the jemalloc in %s looks built without heap profiling (it then says \"Invalid conf pair: "
		           "prof:true\" when it starts); build it with --enable-prof, in Rust with the feature "
		           "\"profiling\"", used->path);
	else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && !j->program.dynamic)
		buf_adds(out, "a jemalloc that serves malloc() of a static glibc program cannot unwind stacks yet when it is first "
		              "called, and aborts if profiling is on: link the program dynamically");
	else if (WIFSIGNALED(status))
		buf_adds(out, "a signal ends it before it can write the one of its exit; stop it in the way it offers, or "
		              "get dumps on the way with a smaller --every");
	else
		buf_printf(out, "either jemalloc said \"Invalid conf pair: prof:true\" above (built without profiling: build it "
		           "with --enable-prof), or the program left by _exit without its exit handlers (get dumps on the "
		           "way with a smaller --every), or it could not write to %s", j->folder);
	buf_addc(out, '\n');
}

/* Dumps there are, but none at exit: the last is older than the end. */
static void say_no_final(const struct job *j, const struct dumps *d, int status, struct buf *out)
{
	const struct dump *last = NULL;
	for (size_t i = 0; i < d->n; i++)
		if (d->items[i].parts.pid == (uint64_t)j->child)
			last = &d->items[i];
	if (!last || last->parts.kind == 'f')
		return;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	buf_printf(out, "There is no dump of its exit: %s. The last one is %lld s old.\n",
	           WIFSIGNALED(status) ? "the signal ended it before it could write one"
	                               : "it left without its exit handlers",
	           (long long)(now.tv_sec - last->written.tv_sec));
}

static const char *folder_as_typed(const struct job *j)
{
	if (j->s->folder)
		return j->s->folder;
	return path_base(j->folder);
}

/* --on-exit: the dump of the exit as a named pprof file. */
static int keep_final(const struct job *j, const struct dumps *d, int status, struct error *err)
{
	char path[PATH_MAX + NAME_MAX + 2];
	size_t i = dumps_final(d, (uint64_t)j->child);
	if (i == d->n)
		return error_set(err, E_IO, "%.200s: not written, there is no dump of %.100s's exit: %s", j->s->on_exit, j->name,
		                 WIFSIGNALED(status) ? "a signal ended it" : "it left without its exit handlers");
	snprintf(path, sizeof path, "%s/%s", j->folder, d->items[i].name);
	static const struct target_settings named = { .load = LOAD_DEFAULTS, .view = { .by = TARGET_BY_UNSET } };
	int failed = target_run(&named, TO_PPROF, j->s->on_exit, (char *[]){ path }, 1, err);
	if (!failed && !j->s->quiet)
		fprintf(stderr, "heapgauge: its profile at exit is in %s\n", j->s->on_exit);
	return failed;
}

static int tell(const struct job *j, int status, struct error *err)
{
	struct dumps found = { 0 };
	struct buf out;
	int failed = dumps_find(j->folder, j->started, &found, err);
	if (failed)
		return failed;
	buf_init(&out, 1 << 20);
	say_end(j, status, &out);
	if (found.n) {
		buf_printf(&out, " and left %zu dump%s in %s\n", found.n, found.n == 1 ? "" : "s", folder_as_typed(j));
		say_no_final(j, &found, status, &out);
		dumps_describe(&found, folder_as_typed(j), (uint64_t)j->child, &out);
	} else {
		say_why_none(j, status, &out);
		if (!j->s->folder)
			rmdir(j->folder);
	}
	if (!out.failed && (!j->s->quiet || !found.n))
		fwrite(out.data, 1, out.len, stderr);
	buf_finish(&out);
	if (j->s->on_exit)
		failed = keep_final(j, &found, status, err);
	dumps_finish(&found);
	return failed;
}

static void say_error(const struct error *err)
{
	struct buf out;
	buf_init(&out, 1 << 14);
	buf_adds(&out, "heapgauge: ");
	text_add_terminal(&out, err->text, strlen(err->text));
	end_line(&out);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	static struct job j;    /* large, and one is enough */
	sigset_t held;
	(void)n;
	j.s = settings;
	j.arguments = operands;
	int failed = check(j.s, err);
	if (!failed)
		failed = launch_inspect(operands[0], j.s->library, &j.program, err);
	if (!failed)
		failed = preload_prepare(&j.s->agent, &j.program, &j.agent, err);
	if (failed)
		return failed;
	choose_name(&j);
	hold_signals(&j, &held);
	failed = start(&j, err);
	if (failed)
		return failed;
	if (j.agent.why_not[0] && !j.s->quiet)
		say_no_endpoint(&j, j.agent.why_not);
	int status = wait_for_child(&j, &held);
	sigprocmask(SIG_SETMASK, &j.mask_before, NULL);
	remove_socket(&j);
	failed = tell(&j, status, err);
	int its = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (!failed || its == 0)
		return failed ? failed : its;
	/* The program's own failure is what the caller asks about. */
	say_error(err);
	return its;
}

static const struct option_spec own_options[] = {
	{ "dir", 'd', false, OPTION_TEXT, "DIR",
	  "folder for the dumps (default heapgauge.NAME.PID, here); made if it isn't there",
	  offsetof(struct run_settings, folder) },
	{ "rate", 0, false, OPTION_SIZE, "BYTES",
	  "one sample for every BYTES allocated, a power of two (default 512k; 1: every allocation)",
	  offsetof(struct run_settings, rate) },
	{ "every", 0, false, OPTION_SIZE, "BYTES",
	  "a dump for every BYTES allocated, a power of two (default 1g; 0: only at exit)",
	  offsetof(struct run_settings, every) },
	{ "accum", 0, false, OPTION_ON, NULL,
	  "also count what was freed again: alloc_space, and narrower differences", offsetof(struct run_settings, accum) },
	{ "active", 0, false, OPTION_ON, NULL, "sample from the start (default)",
	  offsetof(struct run_settings, active) },
	{ "inactive", 0, false, OPTION_OFF, NULL,
	  "be ready, but sample only when asked to: POST /heapgauge/activate, or 'heapgauge attach PID activate'",
	  offsetof(struct run_settings, active) },
	{ "listen", 0, false, OPTION_TEXT, "ADDR",
	  "where the program gives its profiles: unix:/path, 127.0.0.1:PORT (0: any), or none (default a unix socket)",
	  offsetof(struct run_settings, agent.listen) },
	{ "token-file", 0, false, OPTION_TEXT, "FILE", "who asks there must send the token in FILE",
	  offsetof(struct run_settings, agent.token_file) },
	{ "snapshots", 0, false, OPTION_TEXT, "DIR",
	  "keep the last profiles in DIR while memory runs out, so that they are there after an OOM kill",
	  offsetof(struct run_settings, agent.snapshots) },
	{ "on-exit", 0, false, OPTION_TEXT, "FILE",
	  "when it has ended, write its profile at exit to FILE: pprof, named, whole or not at all",
	  offsetof(struct run_settings, on_exit) },
	{ "jemalloc", 0, false, OPTION_TEXT, "FILE",
	  "the library to preload where a program has no jemalloc (default libjemalloc.so.2)",
	  offsetof(struct run_settings, library) },
	{ "quiet", 'q', false, OPTION_ON, NULL, "do not list the dumps", offsetof(struct run_settings, quiet) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	{ NULL, NULL, 0, 0 },
};

static const struct run_settings defaults = { .rate = UNSET, .every = UNSET, .active = true };

const struct command cmd_run = {
	.name = "run",
	.operands = "[--] CMD [ARG]…",
	.summary = "start a program with heap profiling on",
	.description =
	    "Starts CMD under jemalloc with profiling: its own jemalloc, or, when it has none, the system's,\n"
	    "preloaded. jemalloc writes dumps into a folder, one for every so many allocated bytes and one at\n"
	    "exit; afterwards they are listed with what to do next. An agent in CMD answers to\n"
	    "'heapgauge top pid:N' while it runs. Signals are passed on, and the exit status is CMD's own,\n"
	    "or 128 + the number of the signal that ended it.\n"
	    "\n"
	    "A dump at exit needs an exit: main returns or calls exit(). After SIGKILL, _exit() or a signal the\n"
	    "program doesn't handle there are only those written on the way. No root is needed.\n",
	.example = "  heapgauge run -- ./server --port 8080\n"
	           "  heapgauge run -d dumps --rate 64k --every 256m -- redis-server --save ''\n"
	           "  heapgauge run -q --every 0 --on-exit heap.pb.gz -- ./tests\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.stop_early = true,
	.run = run,
};
