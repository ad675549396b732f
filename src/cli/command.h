/*
 * What a command is. Each lives in its own cmd_<name>.c and is listed once, in main.c.
 */
#ifndef CLI_COMMAND_H
#define CLI_COMMAND_H

#include "cli/options.h"

/* Exit statuses; `run` passes on the status of what it ran. */
enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_GATE = 3 };

struct command {
	const char *name;
	const char *operands;                 /* "PROFILE…" */
	const char *summary;                  /* one line, for the list of commands */
	const char *description;              /* whole lines, for its help */
	const char *example;                  /* one or more whole lines */
	const struct option_group *groups;    /* ends with specs NULL */
	const void *defaults;                 /* of settings; settings_bytes of them */
	size_t settings_bytes;                /* at most SETTINGS_BYTES */
	size_t min_operands, max_operands;
	bool stop_early;                      /* options end at the first operand */
	/* An exit status, or a negative code with err worded. E_USAGE becomes exit status 2. */
	int (*run)(const void *settings, char **operands, size_t n, struct error *err);
};

#define SETTINGS_BYTES 2048

extern const struct command cmd_addr, cmd_top, cmd_tree, cmd_peek, cmd_traces, cmd_diff, cmd_leaks, cmd_flame, cmd_view, cmd_record, cmd_convert,
    cmd_store, cmd_symbolize, cmd_run, cmd_attach, cmd_doctor, cmd_upload_symbols, cmd_help, cmd_version;

/* All commands in the order of the help, NULL-terminated. */
extern const struct command *const commands[];
const struct command *command_find(const char *name);
/* E_USAGE with the nearest command's name. */
int command_unknown(const char *name, struct error *err);
/* Was the program started as addr2line, by a link of that name? */
bool command_is_addr2line(void);
int print_command_help(const struct command *c, struct error *err);

/* Whole text to standard output, through base's struct output. */
int print_text(struct buf *text, struct error *err);
/* Each line of text to standard error after "heapgauge: warning: ", made harmless for a terminal. */
void print_warnings(const struct buf *text);

#endif
