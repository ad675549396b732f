/*
 * symbolize: a profile with names, as a file or as a picture. It is also what the agent starts for an
 * answer with names: then in a sandbox, the profile on its standard input.
 */
#include <string.h>

#include "cli/command.h"
#include "cli/target.h"
#include "symbol/sandbox.h"

struct symbolize_settings {
	struct target_settings what;
	int to;                         /* index in targets */
	const char *output;
	bool sandbox;
	uint64_t memory_limit;          /* 0: the default */
};

#define TO_WORDS "pprof|folded|svg|html|text|json"
static const enum target targets[] = { TO_PPROF, TO_FOLDED, TO_SVG, TO_HTML, TO_TEXT, TO_JSON };

/* What the kernel does not have is worth a sentence, and no more: the answer is the same. */
static void say_missing(const struct sandbox *s)
{
	struct buf text;
	buf_init(&text, 4096);
	if (!s->limits)
		buf_adds(&text, "--sandbox: its limits could not be set\n");
	if (!s->no_privileges)
		buf_adds(&text, "--sandbox: privileges could not be given up\n");
	if (!s->landlock)
		buf_adds(&text, "--sandbox: this kernel has no Landlock, so files are kept from being written by seccomp alone\n");
	if (!s->filter)
		buf_adds(&text, "--sandbox: seccomp refused the filter of system calls\n");
	print_warnings(&text);
	buf_finish(&text);
}

static int check(const struct symbolize_settings *s, struct error *err)
{
	if (s->memory_limit && !s->sandbox)
		return error_set(err, E_USAGE, "--memory-limit belongs to --sandbox");
	if (s->sandbox && s->output && strcmp(s->output, "-") != 0)
		return error_set(err, E_USAGE, "--sandbox forbids making files: leave -o away and redirect standard output, > %.100s",
		                 s->output);
	return 0;
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct symbolize_settings *s = settings;
	struct sandbox sandbox;
	int failed = check(s, err);
	if (failed)
		return failed;
	if (s->sandbox)
		sandbox_enter(s->memory_limit, &sandbox);
	failed = target_run(&s->what, targets[s->to], s->output, operands, n, err);
	if (!failed && s->sandbox)
		say_missing(&sandbox);
	return failed;
}

static const struct option_spec own_options[] = {
	{ "to", 0, false, OPTION_CHOICE, TO_WORDS, "the form: a profile, or a report made from it (default pprof)",
	  offsetof(struct symbolize_settings, to) },
	{ "sandbox", 0, false, OPTION_ON, NULL,
	  "give up all rights but reading files and writing to standard output, before the profile is read",
	  offsetof(struct symbolize_settings, sandbox) },
	{ "memory-limit", 0, false, OPTION_SIZE, "SIZE", "of addresses, in the sandbox (default 4G)",
	  offsetof(struct symbolize_settings, memory_limit) },
	{ "title", 0, false, OPTION_TEXT, "TEXT", "headline of a picture", offsetof(struct symbolize_settings, what.title) },
	{ "name", 0, false, OPTION_TEXT, "TEXT", "what reports call a profile that comes through standard input",
	  offsetof(struct symbolize_settings, what.load.stdin_name) },
	{ "output", 'o', false, OPTION_TEXT, "FILE", "write to FILE: whole or not at all",
	  offsetof(struct symbolize_settings, output) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	GROUP_VIEW(offsetof(struct symbolize_settings, what.view)),
	GROUP_BASE(offsetof(struct symbolize_settings, what.load)),
	GROUP_LOAD(offsetof(struct symbolize_settings, what.load)),
	{ NULL, NULL, 0, 0 },
};

static const struct symbolize_settings defaults = { .what = { .load = LOAD_DEFAULTS, .view = { .by = TARGET_BY_UNSET } } };

const struct command cmd_symbolize = {
	.name = "symbolize",
	.operands = "PROFILE…",
	.summary = "add names, files, lines and inlined calls to a profile",
	.description =
	    "Looks up what a profile's addresses are called, in the binaries it names or those with the\n"
	    "same build ids, and writes it again, or a report made from it.\n",
	.example = "  curl -s localhost:6060/debug/pprof/heap | heapgauge symbolize - > named.pb.gz\n"
	           "  heapgauge symbolize --sandbox --to html stranger.pb.gz > heap.html\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
