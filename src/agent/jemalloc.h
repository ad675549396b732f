/*
 * The jemalloc of this process: where it is, what it says of itself, and the few controls that profiling has. Any thread may call these; none
 * allocates. Results are the HG_ codes of heapgauge.h.
 */
#ifndef AGENT_JEMALLOC_H
#define AGENT_JEMALLOC_H

#include <heapgauge.h>
#include <stdbool.h>

struct jemalloc {
	hg_mallctl_function *mallctl;       /* NULL: none */
	char prefix[32];
	char conf_variable[48];
	char path[256];                     /* of the file it is in; "" when it was given to us */
	char version[64];
	bool profiling_built_in;            /* config.prof */
	bool profiling_enabled;             /* opt.prof */
	bool accumulates;                   /* opt.prof_accum */
	bool raw_counts;                    /* before 5.3: dumps hold what was counted, not bent for jeprof */
	char prof_off_advice[320];          /* what to do about HG_PROF_OFF, with its variable */
};

/*
 * Finds it, once; when there was none, again after more libraries were loaded. HG_OK or HG_NO_JEMALLOC.
 * *ret_jemalloc (may be NULL) is never changed afterwards, and never goes away: after jemalloc_use others see another one.
 */
int jemalloc_find(const struct jemalloc **ret_jemalloc);
int jemalloc_use(hg_mallctl_function *function, const char *conf_variable);
/* How often its samples were forgotten, by whomever it was through jemalloc_reset; odd: just now. */
unsigned jemalloc_resets(void);
/* Found, built with profiling, and enabled: or the code that says what is missing. */
int jemalloc_ready(const struct jemalloc **ret_jemalloc);

bool jemalloc_active(const struct jemalloc *j);
int jemalloc_set_active(const struct jemalloc *j, bool active);
unsigned jemalloc_lg_sample(const struct jemalloc *j);
int jemalloc_reset(const struct jemalloc *j, int lg_sample);
/* May what this thread allocates be sampled? Returns what was so before. */
bool jemalloc_set_thread_active(const struct jemalloc *j, bool active);
/* To that file: HG_OK, HG_PROF_OFF, or HG_IO. Takes as long as it takes. */
int jemalloc_dump(const struct jemalloc *j, const char *path);
/* A number such as "stats.allocated"; 0 when there is none. */
uint64_t jemalloc_number(const struct jemalloc *j, const char *name);
/* Makes stats.* those of now. */
void jemalloc_refresh(const struct jemalloc *j);

/* What to do about a code, with this process' names in it; the static texts of hg_strerror. */
const char *jemalloc_advice(int code);

/* In a forked child: nobody holds the lock there. */
void jemalloc_after_fork(void);

#endif
