/*
 * Drops stacks that nothing in the store has any more, and what only they used. sqlite_sweep.c says how; here is what those who write have to
 * do with it: each number of a string, build, frame or label set that they are going to use they say, so that one which was found a moment
 * before isn't dropped. All under write_lock.
 */
#ifndef STORE_SQLITE_SWEEP_H
#define STORE_SQLITE_SWEEP_H

#include "base/error.h"
#include "store/idmap.h"

enum sweep_of { SWEEP_STRINGS, SWEEP_BUILDS, SWEEP_FRAMES, SWEEP_LABELS, SWEEP_OFS };

struct sweep {
	unsigned pass;                  /* that is at work; 0: none */
	int64_t at;                     /* the number it looked at last */
	uint32_t cut;                   /* no profile or bucket in the store is of a day before this */
	uint32_t last_cut;              /* of the sweep before */
	uint32_t day;                   /* when the last one was begun */
	bool dropped;                   /* what was used by something that is gone has to be looked for */
	bool failed;                    /* no memory: this sweep must not go on */
	struct {
		uint8_t *bits;
		size_t capacity;
	} used[SWEEP_OFS];              /* a bit for each number */
	struct idmap kept;              /* what is noted already, and of which day */
};

void sweep_init(struct sweep *w);
void sweep_finish(struct sweep *w);
void sweep_mark(struct sweep *w, enum sweep_of of, uint64_t number);

static inline void sweep_use(struct sweep *w, enum sweep_of of, uint32_t number)
{
	if (w->pass)
		sweep_mark(w, of, number);
}

/* A profile of this day has come. */
static inline void sweep_day(struct sweep *w, uint32_t day)
{
	w->cut = day < w->cut ? day : w->cut;
}

#define SWEEP_NEVER INT32_MAX

struct connection;
/* A chunk says this string or build beside its rows: it is kept as long as there is anything of this day, or SWEEP_NEVER dropped. */
int sweep_keep(struct sweep *w, struct connection *c, enum sweep_of of, uint32_t number, uint32_t day, struct error *err);

struct sqlite_store;
/* For some 25 ms. *ret_more: it goes on. */
int sweep_step(struct sqlite_store *s, int64_t now_ms, bool *ret_more, struct error *err);

#endif
