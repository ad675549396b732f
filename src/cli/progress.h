/*
 * "reading x … 45 %" on standard error, when that is a terminal and the work takes
 * longer than a second. One thread draws; the work only bumps a counter.
 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

#include <stdint.h>

/* Begins a phase; what is copied. total 0: unknown, then no percentage. Starts drawing if need be. */
void progress_phase(const char *what, uint64_t total);
/* How much of total is done. Any thread. */
void progress_set(uint64_t done);
/* Wipes the line and ends the thread. Before anything else is printed; harmless when nothing runs. */
void progress_stop(void);

#endif
