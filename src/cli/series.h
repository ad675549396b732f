/*
 * From the PROFILEs of a command line to the series of one process.
 */
#ifndef CLI_SERIES_H
#define CLI_SERIES_H

#include "cli/settings.h"
#include "profile/profile.h"

/*
 * Reads every path, puts them in order (by jemalloc's numbers or by time; as given when neither tells) and joins those of one
 * process: where the process changes the series is cut, and its longest part taken, the latest of equals. Frames stay unnamed.
 * What was done is told in notes, whole lines. E_USAGE when no part has least snapshots.
 */
int load_series(const struct load_settings *s, char *const *paths, size_t n, size_t least, struct buf *warnings,
                struct buf *notes, struct profile **ret, struct error *err);

#endif
