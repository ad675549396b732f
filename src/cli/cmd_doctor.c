/* doctor: can this process or program be profiled, and what has to be changed if not. */
#include <string.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/diagnosis.h"
#include "report/json.h"

struct doctor_settings {
	struct diagnosis_options how;
	bool json;
};

static const char *const words[] = { [ANSWER_NO] = "no", [ANSWER_YES] = "yes", [ANSWER_UNKNOWN] = "?" };

/* --- output --- */

static void add_remedies(const struct diagnosis *d, bool needed, const char *title, struct buf *out)
{
	bool any = false;
	for (size_t i = 0; i < d->n_remedies; i++) {
		const struct remedy *r = &d->remedies[i];
		if (r->needed != needed)
			continue;
		if (!any)
			buf_printf(out, "\n%s\n", title);
		any = true;
		buf_adds(out, "- ");
		text_add_terminal(out, r->why, strlen(r->why));
		buf_adds(out, r->command[0] ? ":\n    " : "");
		text_add_terminal(out, r->command, strlen(r->command));
		buf_addc(out, '\n');
	}
}

static void write_text(const struct diagnosis *d, struct buf *out)
{
	text_add_terminal(out, d->name, strlen(d->name));
	if (d->pid)
		buf_printf(out, ", process %ld", (long)d->pid);
	buf_adds(out, ": ");
	text_add_terminal(out, d->program, strlen(d->program));
	buf_adds(out, "\n\n");
	for (size_t i = 0; i < d->n_findings; i++) {
		const struct finding *f = &d->findings[i];
		buf_printf(out, "%-15s %-4s ", f->name, words[f->answer]);
		text_add_terminal(out, f->text, strlen(f->text));
		buf_addc(out, '\n');
	}
	if (diagnosis_is_fine(d)) {
		buf_adds(out, "\nIt can be profiled as it is:\n    ");
		text_add_terminal(out, d->how, strlen(d->how));
		buf_addc(out, '\n');
	}
	add_remedies(d, true, "To do:", out);
	add_remedies(d, false, "Also:", out);
}

static void write_json(const struct diagnosis *d, struct buf *out)
{
	struct json j = { .out = out };
	json_open(&j, NULL, '{');
	json_cstring(&j, "report", "doctor");
	json_integer(&j, "version", 1);
	json_cstring(&j, "name", d->name);
	json_cstring(&j, "program", d->program);
	if (d->pid)
		json_integer(&j, "pid", d->pid);
	else
		json_null(&j, "pid");
	json_bool(&j, "can_be_profiled", diagnosis_is_fine(d));
	if (d->how[0])
		json_cstring(&j, "how", d->how);
	else
		json_null(&j, "how");
	json_open(&j, "findings", '[');
	for (size_t i = 0; i < d->n_findings; i++) {
		const struct finding *f = &d->findings[i];
		json_open(&j, NULL, '{');
		json_cstring(&j, "name", f->name);
		if (f->answer == ANSWER_UNKNOWN)
			json_null(&j, "answer");
		else
			json_bool(&j, "answer", f->answer == ANSWER_YES);
		json_cstring(&j, "text", f->text);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "to_do", '[');
	for (size_t i = 0; i < d->n_remedies; i++) {
		const struct remedy *r = &d->remedies[i];
		json_open(&j, NULL, '{');
		json_bool(&j, "needed", r->needed);
		json_cstring(&j, "why", r->why);
		json_cstring(&j, "command", r->command);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
	buf_addc(out, '\n');
}

/* --- the command --- */

/* "1234" or "pid:1234"; false: it is a file's name. */
static bool parse_pid(const char *text, uint64_t *ret)
{
	if (strncmp(text, "pid:", 4) == 0)
		text += 4;
	return text_parse_u64(text, strlen(text), 10, ret);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct doctor_settings *s = settings;
	static struct diagnosis d;
	struct buf out;
	uint64_t pid;
	(void)n;
	int failed;
	if (!parse_pid(operands[0], &pid))
		failed = diagnose_file(operands[0], &d, err);
	else if (pid == 0 || pid > INT32_MAX)
		failed = error_set(err, E_USAGE, "%.60s: give the number of a process, or the path of a program", operands[0]);
	else
		failed = diagnose_process((pid_t)pid, &s->how, &d, err);
	if (failed)
		return failed;
	buf_init(&out, 1 << 20);
	if (s->json)
		write_json(&d, &out);
	else
		write_text(&d, &out);
	failed = print_text(&out, err);
	buf_finish(&out);
	if (failed)
		return failed;
	return diagnosis_is_fine(&d) ? EXIT_DONE : EXIT_FAILED;
}

static const struct option_spec own_options[] = {
	{ "no-attach", 0, false, OPTION_OFF, NULL,
	  "do not stop a process without an endpoint for the moment it takes to ask its jemalloc",
	  offsetof(struct doctor_settings, how.attach) },
	{ "token-file", 0, false, OPTION_TEXT, "FILE",
	  "send the token in FILE to its endpoint (default: what HEAPGAUGE_TOKEN_FILE names)",
	  offsetof(struct doctor_settings, how.token_file) },
	{ "json", 0, false, OPTION_ON, NULL, "JSON for programs", offsetof(struct doctor_settings, json) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	{ NULL, NULL, 0, 0 },
};

static const struct doctor_settings defaults = { .how = { .attach = true } };

const struct command cmd_doctor = {
	.name = "doctor",
	.operands = "PID|BINARY",
	.summary = "can it be profiled, and what to change if not",
	.description =
	    "Looks at a process, or at a program that doesn't run: its allocator, whether heap profiling is\n"
	    "compiled in, switched on and active, the sampling rate, how stacks are unwound, where names\n"
	    "come from, and how a profile can be had. For each \"no\" it gives the exact thing to change.\n"
	    "A process without an endpoint is stopped for about a millisecond to ask its jemalloc.\n"
	    "\n"
	    "Exit status: 0 when it can be profiled as it is, 1 when not.\n",
	.example = "  heapgauge doctor $(pidof redis-server)\n"
	           "  heapgauge doctor ./server\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = 1,
	.run = run,
};
