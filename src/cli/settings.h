/*
 * The option groups that several commands share, and what they fill. The sentences and
 * names are in settings.c; pprof's and jeprof's names are kept where there are any.
 */
#ifndef CLI_SETTINGS_H
#define CLI_SETTINGS_H

#include "cli/options.h"
#include "profile/view.h"
#include "symbol/symbol.h"

/* Where names come from, besides the binaries themselves. */
struct names_settings {
	struct text_list debug_dir;
	const char *sysroot;
	bool offline, no_cache;
	uint64_t memory_limit;          /* bytes; 0: the default */
};

/* How PROFILEs are read and named. */
struct load_settings {
	struct names_settings names;
	int symbols;                    /* enum symbol_depth */
	int demangle;                   /* enum demangle_mode */
	const char *binary;
	const char *perf_map;
	const char *base;
	const char *token_file;
	const char *stdin_name;         /* what "-" is called; NULL: "standard input" */
	bool merge, partial;
};

/* What of it is looked at. */
struct view_settings {
	int by;                         /* enum granularity */
	const char *metric;
	const char *focus, *ignore, *hide, *show, *show_from, *tagfocus, *tagignore;
	bool show_allocator, no_inlines;
};

enum { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/* Where it goes and how it looks there. */
struct text_settings {
	const char *output;
	bool json;
	int colour;
	uint32_t width;
};

/* What every command that shows profiles starts its own settings with. */
struct show_settings {
	struct load_settings load;
	struct view_settings view;
	struct text_settings text;
};

#define BY_WORDS "function|line|file|binary|thread|address"     /* of enum granularity */

#define LOAD_DEFAULTS { .symbols = SYMBOL_FULL }
#define SHOW_DEFAULTS { .load = LOAD_DEFAULTS }

#define LOAD_OPTIONS_N 3
#define NAMING_OPTIONS_N 4
#define NAMES_OPTIONS_N 6
#define BASE_OPTIONS_N 1
#define VIEW_OPTIONS_N 16
#define TEXT_OPTIONS_N 5

extern const struct option_spec load_options[LOAD_OPTIONS_N], naming_options[NAMING_OPTIONS_N],
    names_options[NAMES_OPTIONS_N], base_options[BASE_OPTIONS_N],
    view_options[VIEW_OPTIONS_N], text_options[TEXT_OPTIONS_N];

/* Three groups: all that fill a struct load_settings. */
#define GROUP_LOAD(at) \
	{ "Reading", load_options, LOAD_OPTIONS_N, (at) }, \
	{ "Names", naming_options, NAMING_OPTIONS_N, (at) }, \
	GROUP_NAMES((at) + offsetof(struct load_settings, names))
#define GROUP_NAMES(at) { "Where names come from", names_options, NAMES_OPTIONS_N, (at) }
#define GROUP_BASE(at) { "Comparing", base_options, BASE_OPTIONS_N, (at) }
#define GROUP_VIEW(at) { "What is shown", view_options, VIEW_OPTIONS_N, (at) }
/* For a command with a --by of its own, which is the first of them. */
#define GROUP_VIEW_WITHOUT_BY(at) { "What is shown", view_options + 1, VIEW_OPTIONS_N - 1, (at) }
#define GROUP_TEXT(at) { "Output", text_options, TEXT_OPTIONS_N, (at) }

/* E_USAGE when metric is none of p's types; the sentence lists those it has. *ret_column -1: the default. */
int metric_column(const struct profile *p, const char *metric, int *ret_column, struct error *err);

#endif
