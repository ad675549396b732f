/*
 * A profile in the form that was asked for: what convert and symbolize have in common. pprof carries
 * the whole profile, all types, unfiltered; the others are made from a view of one type.
 */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

#include "cli/settings.h"

enum target {
	TO_UNSET = -1,
	TO_PPROF, TO_FOLDED, TO_JSON, TO_CSV, TO_CALLGRIND, TO_SPEEDSCOPE, TO_DOT, TO_SVG, TO_HTML,
	TO_TEXT,                /* what top prints */
};

#define TARGET_BY_UNSET (-1)    /* of view.by: function, or line where the format has a place for lines */

struct target_settings {
	struct load_settings load;
	struct view_settings view;
	const char *title;      /* NULL: made from the profile */
	bool raw;               /* without names */
};

/*
 * Reads the PROFILEs, names them, and writes the result to output (NULL, "-": standard output), whole or not at all. E_USAGE when to
 * can't be written like that: filters on pprof, pprof on a terminal.
 */
int target_run(const struct target_settings *s, enum target to, const char *output, char **paths, size_t n,
               struct error *err);

#endif
