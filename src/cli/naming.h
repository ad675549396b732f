/*
 * From the options about names to what symbol.h wants: directories, servers to ask, and the line that says how far they are.
 */
#ifndef CLI_NAMING_H
#define CLI_NAMING_H

#include "cli/settings.h"

/*
 * The directories are those of --debug-dir, then what live_find_files() found; they are valid until the next call. All calls
 * share one client for debuginfod, so that its budget is the command's.
 */
struct symbol_options naming_symbol_options(const struct names_settings *s);

/* Adds what there is to say about servers; then, and at the end of the command, forgets them. */
void naming_finish(struct buf *warnings);

#endif
