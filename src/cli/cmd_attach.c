/* attach: asks or tells the jemalloc of a running process that has no endpoint. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"

struct attach_settings {
	const char *output;
	uint64_t rate;
	uint32_t wait_ms;
	bool json;
};

enum action { STATUS, ACTIVATE, DEACTIVATE, RESET, DUMP, ACTIONS };

static const char *const action_names[ACTIONS] = { "status", "activate", "deactivate", "reset", "dump" };

/* One visit: what was asked for, and what is to be said about it. */
struct job {
	const struct attach_settings *s;
	enum action action;
	pid_t pid;
	struct attach *attach;
	struct attach_times times;
	struct buf out;
};

/* --- arguments --- */

static int read_arguments(struct job *j, char **operands, size_t n, struct error *err)
{
	uint64_t pid;
	const struct attach_settings *s = j->s;
	if (!text_parse_u64(operands[0], strlen(operands[0]), 10, &pid) || pid == 0 || pid > INT_MAX)
		return error_set(err, E_USAGE, "'%.60s' is no process number", operands[0]);
	j->pid = (pid_t)pid;
	j->action = STATUS;
	while (n > 1 && j->action < ACTIONS && strcmp(operands[1], action_names[j->action]) != 0)
		j->action++;
	if (j->action == ACTIONS) {
		const char *near = nearest_word(operands[1], action_names, ACTIONS);
		return error_set(err, E_USAGE,
		                 "attach knows status, activate, deactivate, reset and dump, not '%.60s'%s%s%s",
		                 operands[1], near ? ": did you mean '" : "", near ? near : "", near ? "'?" : "");
	}
	if (s->rate && j->action != RESET)
		return error_set(err, E_USAGE,
		                 "--rate belongs to reset: jemalloc changes its rate only when it forgets its samples");
	if (s->rate & (s->rate - 1))
		return error_set(err, E_USAGE, "--rate %llu: jemalloc takes only powers of two, like 262144 or 1m",
		                 (unsigned long long)s->rate);
	if (s->output && j->action != DUMP)
		return error_set(err, E_USAGE, "-o belongs to dump");
	if (s->json && j->action != STATUS)
		return error_set(err, E_USAGE, "--json belongs to status");
	return 0;
}

/* --- words --- */

static void say_stop(const struct job *j, struct buf *out)
{
	buf_printf(out, "thread %d was stopped for %.2f ms %s", (int)j->times.thread, j->times.stopped_ms,
	           j->times.at_breakpoint ? "at an entry of the allocator" : "in a system call");
	if (j->action == DUMP)
		buf_printf(out, ", and %.2f ms inside prof.dump", j->times.dump_ms);
	buf_addc(out, '\n');
}

static const struct process_jemalloc *jemalloc_of(const struct job *j)
{
	return attach_jemalloc(j->attach);
}

static const char *yes(bool b)
{
	return b ? "yes" : "no";
}

/* What changes a "no", in the words of doctor. */
static void say_profiling(const struct job *j, const struct attach_status *s, struct buf *out)
{
	if (!s->profiling_built_in)
		buf_adds(out, "not built in (a jemalloc built with --enable-prof has it)");
	else if (!s->profiling_enabled)
		buf_printf(out, "off since the start (start it with %s=prof:true,prof_active:false)",
		           jemalloc_of(j)->conf_variable);
	else
		buf_printf(out, "on, %s", s->active ? "active" : "not active");
}

static void status_text(const struct job *j, const struct attach_status *s, struct buf *out)
{
	const struct process *p = attach_process(j->attach);
	buf_printf(out, "process     %d ", (int)p->pid);
	text_add_terminal(out, p->exe, strlen(p->exe));
	buf_printf(out, "\njemalloc    %s in ", s->version);
	text_add_terminal(out, jemalloc_of(j)->path, strlen(jemalloc_of(j)->path));
	buf_printf(out, ", reads %s\nprofiling   ", jemalloc_of(j)->conf_variable);
	say_profiling(j, s, out);
	if (s->profiling_built_in) {
		buf_adds(out, "\nrate        one sample for ");
		text_add_bytes(out, (double)(1ull << (s->lg_sample & 63)));
		buf_printf(out, " (lg_sample %u)", (unsigned)s->lg_sample);
	}
	if (s->profiling_enabled)
		buf_printf(out, "\naccumulates %s", yes(s->accumulates));
	buf_printf(out, "\nendpoint    ");
	if (p->endpoint[0])
		text_add_terminal(out, p->endpoint, strlen(p->endpoint));
	else
		buf_adds(out, "none");
	buf_addc(out, '\n');
	say_stop(j, out);
}

static void add_text(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, "\"%s\": ", key);
	if (*value)
		text_add_json(out, value, strlen(value));
	else
		buf_adds(out, "null");
	buf_adds(out, ", ");
}

static const char *truth(bool b)
{
	return b ? "true" : "false";
}

static void status_json(const struct job *j, const struct attach_status *s, struct buf *out)
{
	const struct process *p = attach_process(j->attach);
	buf_printf(out, "{\"report\": \"attach\", \"version\": 1, \"pid\": %d, ", (int)p->pid);
	add_text(out, "program", p->exe);
	add_text(out, "endpoint", p->endpoint);
	buf_adds(out, "\"jemalloc\": {");
	add_text(out, "file", jemalloc_of(j)->path);
	add_text(out, "version", s->version);
	buf_adds(out, "\"prefix\": ");
	text_add_json(out, jemalloc_of(j)->prefix, strlen(jemalloc_of(j)->prefix));
	buf_printf(out, ", \"variable\": \"%s\"}, ", jemalloc_of(j)->conf_variable);
	buf_printf(out, "\"profiling\": {\"built_in\": %s, \"enabled\": %s, \"active\": %s, \"accumulates\": %s, ",
	           truth(s->profiling_built_in), truth(s->profiling_enabled), truth(s->active), truth(s->accumulates));
	if (s->profiling_built_in)
		buf_printf(out, "\"rate\": %llu}, ", 1ull << (s->lg_sample & 63));
	else
		buf_adds(out, "\"rate\": null}, ");
	buf_printf(out, "\"thread\": %d, \"stopped_ms\": %.3f, \"at_breakpoint\": %s}\n", (int)j->times.thread,
	           j->times.stopped_ms, truth(j->times.at_breakpoint));
}

/* --- actions --- */

static int status(struct job *j, struct error *err)
{
	struct attach_status s;
	int failed = attach_get_status(j->attach, &s, &j->times, err);
	if (failed)
		return failed;
	(j->s->json ? status_json : status_text)(j, &s, &j->out);
	return 0;
}

static int switch_to(struct job *j, bool active, struct error *err)
{
	int failed = attach_set_active(j->attach, active, &j->times, err);
	if (failed)
		return failed;
	buf_printf(&j->out, "process %d: sampling is %s\n", (int)j->pid,
	           active ? "on; what was allocated before is not in the profile" : "off; the samples there are stay");
	say_stop(j, &j->out);
	return 0;
}

static int reset(struct job *j, struct error *err)
{
	int lg = j->s->rate ? 63 - __builtin_clzll(j->s->rate) : -1;
	int failed = attach_reset(j->attach, lg, &j->times, err);
	if (failed)
		return failed;
	buf_printf(&j->out, "process %d: all samples are forgotten", (int)j->pid);
	if (j->s->rate) {
		buf_adds(&j->out, "; from now on one for ");
		text_add_bytes(&j->out, (double)j->s->rate);
	}
	buf_addc(&j->out, '\n');
	say_stop(j, &j->out);
	return 0;
}

static int copy_to(struct output *o, int fd, uint64_t *ret_bytes, struct error *err)
{
	char name[64];
	uint8_t block[65536];
	struct stream in;
	size_t n;
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	int failed = stream_open(&in, name, err);
	if (failed)
		return failed;
	*ret_bytes = 0;
	while (!(failed = stream_read(&in, block, sizeof block, &n, err)) && n &&
	       !(failed = output_write(o, block, n, err)))
		*ret_bytes += n;
	stream_close(&in);
	return failed;
}

static int write_out(struct job *j, int fd, struct error *err)
{
	struct output o;
	uint64_t bytes;
	int failed = output_open(&o, j->s->output, err);
	if (failed)
		return failed;
	failed = copy_to(&o, fd, &bytes, err);
	if (!failed)
		failed = output_commit(&o, err);
	output_abort(&o);
	if (failed)
		return failed;
	struct buf note;
	buf_init(&note, 4096);
	buf_printf(&note, "heapgauge: process %d: dump of %llu bytes; ", (int)j->pid, (unsigned long long)bytes);
	say_stop(j, &note);
	if (note.data)
		fwrite(note.data, 1, note.len, stderr);
	buf_finish(&note);
	return 0;
}

static bool goes_to_terminal(const struct attach_settings *s)
{
	return (!s->output || strcmp(s->output, "-") == 0) && isatty(STDOUT_FILENO);
}

static int dump(struct job *j, struct error *err)
{
	int fd;
	if (goes_to_terminal(j->s))
		return error_set(err, E_USAGE,
		                 "a dump is nothing for a terminal: give a file with -o, or look at it with "
		                 "heapgauge top pid:%d",
		                 (int)j->pid);
	int failed = attach_dump(j->attach, &fd, &j->times, err);
	if (failed)
		return failed;
	failed = write_out(j, fd, err);
	close(fd);
	return failed;
}

static int act(struct job *j, struct error *err)
{
	switch (j->action) {
	case ACTIVATE: return switch_to(j, true, err);
	case DEACTIVATE: return switch_to(j, false, err);
	case RESET: return reset(j, err);
	case DUMP: return dump(j, err);
	case STATUS:
	case ACTIONS: break;
	}
	return status(j, err);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	struct job j = { .s = settings };
	struct attach_options o = { .wait_ms = j.s->wait_ms };
	int failed = read_arguments(&j, operands, n, err);
	if (!failed)
		failed = attach_open(&j.attach, j.pid, &o, err);
	if (failed)
		return failed;
	j.pid = attach_process(j.attach)->pid;
	buf_init(&j.out, 1 << 16);
	failed = act(&j, err);
	if (!failed && j.action != DUMP)
		failed = print_text(&j.out, err);
	buf_finish(&j.out);
	attach_close(j.attach);
	return failed;
}

static const struct option_spec own_options[] = {
	{ "rate", 0, false, OPTION_SIZE, "BYTES",
	  "with reset: one sample for every BYTES allocated from now on, a power of two",
	  offsetof(struct attach_settings, rate) },
	{ "wait", 0, false, OPTION_NUMBER, "MS", "for a place where a thread can be called from (default 2000)",
	  offsetof(struct attach_settings, wait_ms) },
	{ "json", 0, false, OPTION_ON, NULL, "with status: as JSON", offsetof(struct attach_settings, json) },
	{ "output", 'o', false, OPTION_TEXT, "FILE", "with dump: write to FILE: whole or not at all",
	  offsetof(struct attach_settings, output) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	{ NULL, NULL, 0, 0 },
};

static const struct attach_settings defaults = { 0 };

const struct command cmd_attach = {
	.name = "attach",
	.operands = "PID [ACTION]",
	.summary = "status, activate, deactivate, reset or dump a process that has no endpoint",
	.description =
	    "Asks the jemalloc of a running process for its status (the default), switches sampling on and off\n"
	    "(activate, deactivate), makes it forget its samples (reset) or writes its heap profile (dump).\n"
	    "One thread of the process is stopped for a fraction of a millisecond, where that is safe. The\n"
	    "process must have been started with profiling on: prof:true, it need not be active.\n",
	.example = "  heapgauge attach 1234\n"
	           "  heapgauge attach 1234 activate\n"
	           "  heapgauge attach -o app.heap 1234 dump\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = 2,
	.run = run,
};
