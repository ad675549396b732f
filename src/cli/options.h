/*
 * Options as tables. A command lists its options once; parsing, the help text and the
 * shell completion all read that list, and a test holds the man pages to it.
 *
 * A group is a table shared by several commands; its options fill one struct that lies
 * at some offset in the command's settings.
 */
#ifndef CLI_OPTIONS_H
#define CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/nearest.h"

#define TEXT_LIST_MAX 64

/* A repeatable option's texts, borrowed from argv; NULL-terminated. */
struct text_list {
	const char *items[TEXT_LIST_MAX + 1];
	size_t n;
};

enum option_kind {
	OPTION_ON,          /* bool becomes true */
	OPTION_OFF,         /* bool becomes false */
	OPTION_TEXT,        /* const char * */
	OPTION_MAYBE,       /* const char *: what follows "--name=", or ""; a letter takes nothing */
	OPTION_LIST,        /* struct text_list */
	OPTION_NUMBER,      /* uint32_t */
	OPTION_FRACTION,    /* double, 0 to 1 */
	OPTION_SIZE,        /* uint64_t: bytes, "64k", "1.5MiB" */
	OPTION_CHOICE,      /* int: position of the word in argument, "a|b|c" */
	OPTION_CONSTANT,    /* const char * becomes argument */
};

struct option_spec {
	const char *name;       /* --name */
	char letter;            /* -l, or 0 */
	bool hidden;            /* an accepted alias: not in the help */
	enum option_kind kind;
	const char *argument;   /* what the help calls it; the words of a choice */
	const char *help;       /* one sentence, no full stop */
	size_t at;              /* of the target in the group's struct */
};

struct option_group {
	const char *title;
	const struct option_spec *specs;
	size_t n;
	size_t at;              /* of the group's struct in the settings */
};

#define OPTIONS_MAX 64      /* of one command, all groups */

/*
 * Fills settings from argv[1..argc); argv is permuted so that the operands come last, unless stop_early
 * (options end at the first operand). *ret_first: index of the first operand; *ret_help: --help was seen
 * (parsing then stops). E_USAGE names the option and, when it is unknown, the nearest one.
 */
int options_parse(const struct option_group *groups, void *settings, bool stop_early, int argc,
                  char **argv, int *ret_first, bool *ret_help, struct error *err);

/* The options as help text, wrapped at 80 columns. */
void options_help(const struct option_group *groups, struct buf *out);
/* "--name" words, hidden ones left out, separated by blanks. */
void options_words(const struct option_group *groups, struct buf *out);

#endif
