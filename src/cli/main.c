/*
 * heapgauge COMMAND [options] …: finds the command, parses its options, runs it, and says
 * on one line what went wrong when something did.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/libiberty.h>

#include "base/file.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/progress.h"

const struct command *const commands[] = {
	&cmd_top, &cmd_tree, &cmd_peek, &cmd_traces, &cmd_diff, &cmd_leaks, &cmd_flame, &cmd_view, &cmd_record, &cmd_store, &cmd_convert,
	&cmd_symbolize, &cmd_addr, &cmd_run, &cmd_attach, &cmd_doctor, &cmd_upload_symbols, &cmd_help, &cmd_version, NULL,
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

int command_unknown(const char *name, struct error *err)
{
	const char *names[sizeof commands / sizeof *commands];
	size_t n = 0;
	for (; commands[n]; n++)
		names[n] = commands[n]->name;
	const char *near = nearest_word(name, names, n);
	if (near)
		return error_set(err, E_USAGE, "unknown command '%.60s': did you mean '%s'?", name, near);
	return error_set(err, E_USAGE, "unknown command '%.60s'", name);
}

bool command_is_addr2line(void)
{
	static const char name[] = "addr2line";
	size_t length = strlen(program_invocation_short_name), n = sizeof name - 1;
	/* Also "x86_64-linux-gnu-addr2line". */
	return length >= n && strcmp(program_invocation_short_name + length - n, name) == 0;
}

static void command_help(const struct command *c, struct buf *out)
{
	buf_printf(out, "Usage: heapgauge %s %s%s%s\n\n%s", c->name,
	           c->groups->specs ? "[options]" : "", c->groups->specs && *c->operands ? " " : "",
	           c->operands, c->description);
	options_help(c->groups, out);
	if (c->example)
		buf_printf(out, "\nExample:\n%s", c->example);
}

int print_text(struct buf *text, struct error *err)
{
	struct output o;
	if (text->failed)
		return error_nomem(err, "the text to print");
	int failed = output_open(&o, NULL, err);
	if (failed)
		return failed;
	failed = output_write(&o, text->data, text->len, err);
	if (!failed)
		failed = output_commit(&o, err);
	output_abort(&o);
	return failed;
}

int print_command_help(const struct command *c, struct error *err)
{
	struct buf text;
	buf_init(&text, 1 << 20);
	command_help(c, &text);
	int failed = print_text(&text, err);
	buf_finish(&text);
	return failed;
}

/* One line on standard error in one piece. */
static void say(const char *before, const char *text, size_t length)
{
	struct buf line;
	buf_init(&line, 1 << 16);
	buf_adds(&line, before);
	text_add_terminal(&line, text, length);
	buf_addc(&line, '\n');
	if (line.data && !line.failed)
		fwrite(line.data, 1, line.len, stderr);
	buf_finish(&line);
}

#define WARNINGS_MAX 20

void print_warnings(const struct buf *text)
{
	const char *at = text->data;
	const char *end = at ? at + text->len : at;
	for (size_t n = 0; at < end; n++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = newline ? (size_t)(newline - at) : (size_t)(end - at);
		if (n == WARNINGS_MAX) {
			fprintf(stderr, "heapgauge: warning: and more of the kind\n");
			return;
		}
		say("heapgauge: warning: ", at, length);
		at = newline ? newline + 1 : end;
	}
}

static int fail(const struct command *c, const struct error *err)
{
	progress_stop();
	say("heapgauge: ", err->text, strlen(err->text));
	if (err->code != E_USAGE)
		return EXIT_FAILED;
	if (c)
		fprintf(stderr, "Try 'heapgauge help %s'.\n", c->name);
	else
		fprintf(stderr, "Try 'heapgauge help'.\n");
	return EXIT_USAGE;
}

static int check_operands(const struct command *c, size_t n, char **operands, struct error *err)
{
	if (n < c->min_operands)
		return error_set(err, E_USAGE, "%s needs %s", c->name, c->operands);
	if (n > c->max_operands)
		return error_set(err, E_USAGE, "%s takes %s: '%.100s' is too much", c->name,
		                 *c->operands ? c->operands : "no operand", operands[c->max_operands]);
	return 0;
}

static int run_command(const struct command *c, int argc, char **argv)
{
	union {
		char bytes[SETTINGS_BYTES];
		max_align_t align;
	} settings = { { 0 } };
	struct error err = { 0 };
	int first = argc;
	bool help;
	if (c->settings_bytes)
		memcpy(settings.bytes, c->defaults, c->settings_bytes);
	if (options_parse(c->groups, settings.bytes, c->stop_early, argc, argv, &first, &help, &err))
		return fail(c, &err);
	if (help)
		return print_command_help(c, &err) ? fail(c, &err) : EXIT_DONE;
	size_t n = (size_t)(argc - first);
	if (check_operands(c, n, argv + first, &err))
		return fail(c, &err);
	int status = c->run(settings.bytes, argv + first, n, &err);
	progress_stop();
	return status < 0 ? fail(c, &err) : status;
}

static int command_main(const struct command *c, int argc, char **argv)
{
	char **expanded = argv;
	if (c == &cmd_addr)
		expandargv(&argc, &expanded);   /* @FILE; ends the program when out of memory */
	int status = run_command(c, argc, expanded);
	if (expanded != argv)
		freeargv(expanded);
	return status;
}

int main(int argc, char **argv)
{
	struct error err = { 0 };
	output_catch_signals();
	if (command_is_addr2line())
		return command_main(&cmd_addr, argc, argv);
	if (argc < 2) {
		error_set(&err, E_USAGE, "a command is missing");
		return fail(NULL, &err);
	}
	const char *name = argv[1];
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	else if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0)
		name = "version";
	const struct command *c = command_find(name);
	if (!c) {
		command_unknown(name, &err);
		return fail(NULL, &err);
	}
	return command_main(c, argc - 1, argv + 1);
}
