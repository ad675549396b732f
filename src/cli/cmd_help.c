/*
 * help: the list of commands, one command's page, or (for the shell completion) bare words.
 */
#include "base/buf.h"
#include "cli/command.h"

struct help_settings {
	bool words;
};

static void list_commands(struct buf *out)
{
	buf_adds(out, "Usage: heapgauge COMMAND [options] …\n\n"
	              "Finds out where the memory of a native program went, from the heap profiles that\n"
	              "jemalloc, gperftools, Go and others write.\n\n"
	              "Commands:\n");
	for (size_t i = 0; commands[i]; i++)
		buf_printf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	buf_adds(out, "\nA PROFILE is a jemalloc or gperftools heap dump, a pprof file or folded text, plain or\n"
	              "gzip, recognized by content; - is standard input. Of something that runs: pid:N,\n"
	              "http://host:port, unix:/socket.\n\n"
	              "'heapgauge help COMMAND' explains one. Where to begin:\n"
	              "  heapgauge run -- ./program        runs it with heap profiling on\n"
	              "  heapgauge top pid:1234            who holds the memory of a process\n"
	              "  heapgauge doctor 1234             what to change when that doesn't work\n"
	              "  heapgauge top DUMP                who holds the memory\n"
	              "  heapgauge diff OLDER NEWER        what grew in between\n"
	              "\nExit status: 0 done, 1 failed, 2 wrong usage.\n");
}

static void list_words(const struct command *c, struct buf *out)
{
	if (c) {
		options_words(c->groups, out);
	} else {
		for (size_t i = 0; commands[i]; i++)
			buf_printf(out, "%s%s", i ? " " : "", commands[i]->name);
	}
	buf_addc(out, '\n');
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct help_settings *s = settings;
	const struct command *c = n ? command_find(operands[0]) : NULL;
	if (n && !c)
		return command_unknown(operands[0], err);
	if (c && !s->words)
		return print_command_help(c, err);
	struct buf text;
	buf_init(&text, 1 << 16);
	if (s->words)
		list_words(c, &text);
	else
		list_commands(&text);
	int failed = print_text(&text, err);
	buf_finish(&text);
	return failed;
}

static const struct option_spec own_options[] = {
	{ "words", 0, false, OPTION_ON, NULL,
	  "only the commands' names, or one command's options: for shell completion",
	  offsetof(struct help_settings, words) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, 1, 0 },
	{ NULL, NULL, 0, 0 },
};

static const struct help_settings defaults;

const struct command cmd_help = {
	.name = "help",
	.operands = "[COMMAND]",
	.summary = "explain a command",
	.description = "Lists the commands, or explains one and its options.\n",
	.example = "  heapgauge help diff\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.max_operands = 1,
	.run = run,
};
