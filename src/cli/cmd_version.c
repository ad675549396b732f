/* version: one line, for bug reports. */
#include "base/buf.h"
#include "cli/command.h"

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	(void)settings;
	(void)operands;
	(void)n;
	struct buf text;
	buf_init(&text, 4096);
	buf_adds(&text, "heapgauge " HEAPGAUGE_VERSION "\n");
	int failed = print_text(&text, err);
	buf_finish(&text);
	return failed;
}

static const struct option_group groups[] = { { NULL, NULL, 0, 0 } };

const struct command cmd_version = {
	.name = "version",
	.operands = "",
	.summary = "print the version",
	.description = "Prints the version.\n",
	.groups = groups,
	.run = run,
};
