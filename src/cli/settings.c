/* The options that commands share. */
#include "cli/settings.h"

#include "base/buf.h"

#define AT(type, field) offsetof(struct type, field)

const struct option_spec load_options[LOAD_OPTIONS_N] = {
	{ "token-file", 0, false, OPTION_TEXT, "FILE",
	  "send the token in FILE to http and unix PROFILEs (default: what HEAPGAUGE_TOKEN_FILE names)",
	  AT(load_settings, token_file) },
	{ "merge", 0, false, OPTION_ON, NULL, "add up the PROFILEs of different processes",
	  AT(load_settings, merge) },
	{ "partial", 0, false, OPTION_ON, NULL,
	  "of a damaged file take what could be read, and say what was lost", AT(load_settings, partial) },
};

const struct option_spec naming_options[NAMING_OPTIONS_N] = {
	{ "symbols", 0, false, OPTION_CHOICE, "none|table|full",
	  "names from nowhere, ELF symbol tables, or also DWARF with lines and inlined calls (default full)",
	  AT(load_settings, symbols) },
	{ "demangle", 0, false, OPTION_CHOICE, "full|templates|simple|none",
	  "names of C++, Rust and D in full (default), without parameters, also without template arguments, or as linked",
	  AT(load_settings, demangle) },
	{ "binary", 0, false, OPTION_TEXT, "FILE", "take the main program's names from FILE",
	  AT(load_settings, binary) },
	{ "perf-map", 0, false, OPTION_TEXT, "FILE",
	  "names of code a JIT made, from FILE (default: /tmp/perf-PID.map of a process given as pid:N)",
	  AT(load_settings, perf_map) },
};

const struct option_spec names_options[NAMES_OPTIONS_N] = {
	{ "debug-dir", 0, false, OPTION_LIST, "DIR",
	  "look for binaries and their debug files in DIR too; repeatable", AT(names_settings, debug_dir) },
	{ "symbol-path", 0, true, OPTION_LIST, "DIR", "same", AT(names_settings, debug_dir) },
	{ "sysroot", 0, false, OPTION_TEXT, "DIR",
	  "look for binaries and debug files below DIR, where another system's root is", AT(names_settings, sysroot) },
	{ "offline", 0, false, OPTION_ON, NULL, "do not ask the servers of DEBUGINFOD_URLS", AT(names_settings, offline) },
	{ "no-cache", 0, false, OPTION_ON, NULL, "neither use nor keep answers of earlier runs", AT(names_settings, no_cache) },
	{ "memory-limit", 0, false, OPTION_SIZE, "SIZE",
	  "what reading one binary's debug information may take, besides mapped files (default 4G)", AT(names_settings, memory_limit) },
};

const struct option_spec base_options[BASE_OPTIONS_N] = {
	{ "base", 0, false, OPTION_TEXT, "FILE", "subtract the profile FILE: shows the change since",
	  AT(load_settings, base) },
};

const struct option_spec view_options[VIEW_OPTIONS_N] = {
	{ "by", 0, false, OPTION_CHOICE, BY_WORDS,
	  "what counts as one place (default function)", AT(view_settings, by) },
	{ "metric", 0, false, OPTION_TEXT, "NAME",
	  "inuse_space (default), inuse_objects, alloc_space, alloc_objects, or another type the profile has",
	  AT(view_settings, metric) },
	{ "sample-index", 0, true, OPTION_TEXT, "NAME", "pprof's name for --metric", AT(view_settings, metric) },
	{ "inuse-space", 0, true, OPTION_CONSTANT, "inuse_space", "jeprof's name", AT(view_settings, metric) },
	{ "inuse-objects", 0, true, OPTION_CONSTANT, "inuse_objects", "jeprof's name", AT(view_settings, metric) },
	{ "alloc-space", 0, true, OPTION_CONSTANT, "alloc_space", "jeprof's name", AT(view_settings, metric) },
	{ "alloc-objects", 0, true, OPTION_CONSTANT, "alloc_objects", "jeprof's name", AT(view_settings, metric) },
	{ "focus", 0, false, OPTION_TEXT, "RE", "only samples with a frame that matches RE", AT(view_settings, focus) },
	{ "ignore", 0, false, OPTION_TEXT, "RE", "without samples that have such a frame", AT(view_settings, ignore) },
	{ "hide", 0, false, OPTION_TEXT, "RE", "leave matching frames out of the stacks", AT(view_settings, hide) },
	{ "show", 0, false, OPTION_TEXT, "RE", "leave all others out", AT(view_settings, show) },
	{ "show-from", 0, false, OPTION_TEXT, "RE", "cut the callers above the outermost match", AT(view_settings, show_from) },
	{ "tagfocus", 0, false, OPTION_TEXT, "TAG",
	  "only samples with this label: RE, key=RE, or a range of block sizes like 64kb:1mb", AT(view_settings, tagfocus) },
	{ "tagignore", 0, false, OPTION_TEXT, "TAG", "without samples that have it", AT(view_settings, tagignore) },
	{ "show-allocator", 0, false, OPTION_ON, NULL, "keep the allocator's own frames at the leaf",
	  AT(view_settings, show_allocator) },
	{ "no-inlines", 0, false, OPTION_ON, NULL, "count inlined functions as the one they are part of",
	  AT(view_settings, no_inlines) },
};

const struct option_spec text_options[TEXT_OPTIONS_N] = {
	{ "output", 'o', false, OPTION_TEXT, "FILE", "write to FILE: whole or not at all",
	  AT(text_settings, output) },
	{ "json", 0, false, OPTION_ON, NULL, "JSON for programs", AT(text_settings, json) },
	{ "colour", 0, false, OPTION_CHOICE, "auto|always|never",
	  "colours; auto: on a terminal, unless NO_COLOR is set", AT(text_settings, colour) },
	{ "color", 0, true, OPTION_CHOICE, "auto|always|never", "same", AT(text_settings, colour) },
	{ "width", 0, false, OPTION_NUMBER, "COLUMNS", "of the output; 0: the terminal's, no limit into a file or pipe",
	  AT(text_settings, width) },
};

int metric_column(const struct profile *p, const char *metric, int *ret_column, struct error *err)
{
	*ret_column = -1;
	if (!metric)
		return 0;
	*ret_column = profile_type_column(p, metric);
	if (*ret_column >= 0)
		return 0;
	struct buf has;
	buf_init(&has, 300);
	for (size_t i = 0; i < p->n_types; i++)
		buf_printf(&has, "%s%s", i ? ", " : "", profile_text(p, p->types[i].type));
	int code = error_set(err, E_USAGE, "--metric %s: the profile has only %s", metric,
	                     has.len ? has.data : "nothing");
	buf_finish(&has);
	return code;
}
