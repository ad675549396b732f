/*
 * Profiles of many processes over weeks: what the recorder writes and its queries read. An interface; engine.h has what an engine
 * implements, and the URL's scheme picks it ("sqlite:FILE", or just a path).
 *
 *   struct profile -> stacks, frames and labels get dense numbers, once for the whole store
 *                  -> one open row per profile (durable when store_append returns)
 *                  -> sealed chunks of about 60 profiles of one series (tier RAW)
 *                  -> tiers of 5 minutes, an hour, a day: sum, max, last and count per stack
 *
 * A series is one process: its labels, and what tells it from the process before it at the same place. What is in use is never added up over
 * time: over a range it is averaged, or its last or largest value taken, in each series by itself, and then summed over the series. What was
 * allocated since the start counts up: over a range it is the increase, from the profile before it on (what was allocated before a series'
 * first profile is of no range).
 *
 * Frames are kept as (build id or path, offset in the file); names are put to them when there are any, late too (store_unnamed, store_put_names),
 * and then hold for all old profiles. A frame that came with names keeps them.
 *
 * From any thread. Writes take turns; reads don't wait for them. Times are milliseconds since 1970, ranges from <= t < to.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/error.h"
#include "profile/profile.h"

struct store;

enum store_tier { TIER_RAW, TIER_5_MINUTES, TIER_HOUR, TIER_DAY, TIERS };
const char *store_tier_name(enum store_tier t);        /* "raw", "5m", "1h", "1d" */

struct store_options {
	bool read_only;                     /* E_IO when there is none yet; else it is made */
	int64_t retention_ms[TIERS];        /* 0: 48 h, 15 d, 90 d, 2 y */
	uint64_t max_bytes;                 /* the oldest goes when it is larger; 0: no limit */
	unsigned chunk_profiles;            /* 0: 60 */
};

/* E_FORMAT: not a store, or of a newer version (says which; it isn't touched). E_LIMIT: another process writes to it. */
int store_open(const char *url, const struct store_options *o, struct store **ret, struct error *err);
/* What was acknowledged is kept, folded or not. */
void store_close(struct store *s);

/* --- series --- */

struct store_label {
	const char *name, *value;
};

/* Who it is: the process at the end of a target. */
struct store_identity {
	const struct store_label *labels;   /* sorted by name, no two alike, values not empty */
	size_t n_labels;
	uint64_t process;                   /* profile_process_identity, hash of pid and start time, ...; 0: can't be told */
	int64_t started_ms;                 /* 0: unknown */
	const char *build_id;               /* of the main program, lower-case hex; "": unknown */
};

/* Finds or adds; the number holds for the life of the store. */
int store_add_series(struct store *s, const struct store_identity *who, uint32_t *ret_series, struct error *err);

enum store_match { MATCH_EQUAL, MATCH_NOT_EQUAL, MATCH_REGEX, MATCH_NOT_REGEX };
struct store_matcher {
	const char *name;
	enum store_match match;
	const char *value;                  /* expressions: POSIX extended, the whole value. A label that isn't there is "" */
};

struct store_series_info {
	uint32_t series;
	struct store_identity who;
	int64_t first_ms, last_ms;          /* of its profiles */
	uint64_t n_profiles;                /* received, also those long folded away */
	unsigned metrics;                   /* bit m: it has enum metric m */
};

/* Those with profiles in [from, to), by first_ms. Freed by one store_series_free. E_USAGE: a bad expression. */
int store_find_series(struct store *s, const struct store_matcher *m, size_t n, int64_t from_ms, int64_t to_ms,
                      struct store_series_info **ret, size_t *ret_n, struct error *err);
void store_series_free(struct store_series_info *list, size_t n);

/* --- writing --- */

struct store_profile {
	uint32_t series;
	/* After the series' last one, and not in a bucket that was made already (an hour without a profile closes it): else E_USAGE. */
	int64_t time_ms;
	const struct profile *profile;      /* of heap metrics; other types are left out (E_USAGE when nothing is left) */
};

/*
 * All or none, and on the disk when it returns 0: a crash or kill later loses nothing of it. The more at once, the cheaper each.
 * E_IO: full disk, read-only, ...: the store is as it was, and the next call may work.
 */
int store_append(struct store *s, const struct store_profile *profiles, size_t n, struct error *err);

/* Numbers beside the profiles ("rss", "jemalloc_allocated", ...), at most STORE_GAUGES_MAX names per series. */
#define STORE_GAUGES_MAX 32
struct store_gauge {
	const char *name;
	double value;
};
int store_append_gauges(struct store *s, uint32_t series, int64_t time_ms, const struct store_gauge *gauges, size_t n, struct error *err);

/*
 * One step of what has to be done now and then: seal a chunk, roll up a tier, pin an hour's peak, drop what is too old or too much, give
 * space back, and once a day drop stacks and names that nothing has any more. Takes at most some 50 ms, so that writes go on in between. *ret_more: there is more to do now.
 */
int store_maintain(struct store *s, int64_t now_ms, bool *ret_more, struct error *err);

/* --- reading --- */

struct store_budget {
	uint64_t deadline_ns;               /* CLOCK_MONOTONIC; 0: none. E_LIMIT when it is over */
	size_t max_bytes;                   /* of memory for the answer and on the way to it; 0: 256 MiB. E_LIMIT */
	const atomic_bool *cancelled;       /* NULL: never. E_LIMIT */
};

struct store_range {
	const uint32_t *series;
	size_t n_series;
	int64_t from_ms, to_ms;
};

/* In the order of store_tier: sums of the totals of one profile, or of a bucket of several. */
struct store_point {
	uint32_t series;
	int64_t time_ms;                    /* of the profile; of a bucket: its beginning */
	uint32_t n;                         /* profiles in it */
	/* NAN: the series doesn't have the metric. Allocated amounts count up: all three are the last. */
	double mean[METRICS], max[METRICS], last[METRICS];
};
/* Totals over time, by series and time, no chunk is opened for them. step_ms 0: each profile (where they are still there), else buckets. */
int store_totals(struct store *s, const struct store_range *r, int64_t step_ms, const struct store_budget *b, struct store_point **ret,
                 size_t *ret_n, struct error *err);

struct store_gauge_point {
	uint32_t series;
	uint32_t name;                      /* into names */
	int64_t time_ms;
	double mean, max, last;
};
struct store_gauges {
	struct store_gauge_point *points;   /* by series, name, time */
	size_t n_points;
	const char **names;
	size_t n_names;
};
int store_read_gauges(struct store *s, const struct store_range *r, int64_t step_ms, const struct store_budget *b,
                      struct store_gauges *ret, struct error *err);
void store_gauges_finish(struct store_gauges *g);

/* When there are whole profiles of one series that can be read one by one: raw ones, pinned peaks, and the ends of buckets. At most max, spread evenly. */
int store_moments(struct store *s, uint32_t series, int64_t from_ms, int64_t to_ms, size_t max, int64_t **ret_times, size_t *ret_n,
                  struct error *err);

/* The last profile at or before time_ms, as it was received (values, rate, labels; frames by file and offset). E_USAGE: none. */
int store_read(struct store *s, uint32_t series, int64_t time_ms, const struct store_budget *b, struct profile **ret, struct error *err);

struct store_moment {
	uint32_t series;
	int64_t time_ms;
	uint32_t snapshot;                  /* of its source */
};
/*
 * Many of these side by side in one profile, each under a source of its own, in their order: as profile_series would join them, but what they
 * have in common is read once. Types: those that all series have. ret_found (n of them): false where store_read would find none; such a moment has
 * no source. E_USAGE when that is so of all.
 */
int store_read_moments(struct store *s, const struct store_moment *moments, size_t n, const struct store_budget *b, bool *ret_found,
                       struct profile **ret, struct error *err);

enum store_mode { STORE_LAST, STORE_AVERAGE, STORE_MAX };
const char *store_mode_name(enum store_mode m);        /* "last", "average", "max" */

/*
 * A range as one profile: each series is a source of its own. In use: in each series by mode, per stack (the largest values of two stacks may be
 * of two moments, so those of STORE_MAX don't add up to what was there at any time). Allocated: the increase in the range, whatever the mode.
 * Read from the coarsest tiers that tell the same, raw ones at the ends; where raw ones are gone the ends are rounded out to buckets.
 */
int store_merge(struct store *s, const struct store_range *r, enum store_mode mode, const struct store_budget *b, struct profile **ret,
                struct error *err);

/* --- names --- */

struct store_build {
	char *build_id;                     /* lower-case hex */
	char *path;                         /* as the process saw it */
	uint64_t unnamed;                   /* frames that are wanted names for */
};
/* Binaries with frames that have no names yet, or poor ones (store_ask_again), most of them first. Freed by one store_builds_free. */
int store_builds(struct store *s, struct store_build **ret, size_t *ret_n, struct error *err);
void store_builds_free(struct store_build *list, size_t n);

/*
 * Those frames of a binary, at most max: a profile with one mapping and locations without lines, no samples. build_id: of a binary
 * that has none its path, here and in store_ask_again.
 */
int store_unnamed(struct store *s, const char *build_id, size_t max, struct profile **ret, struct error *err);
/*
 * p: what store_unnamed gave, with lines where there are any now. All are remembered as asked for, until store_ask_again of their binary
 * (better debug information has come): then all are wanted again but those that came with names. Until new lines come the old ones stay.
 */
int store_put_names(struct store *s, const struct profile *p, struct error *err);
int store_ask_again(struct store *s, const char *build_id, struct error *err);

/* --- looking after it --- */

struct store_info {
	uint64_t bytes, free_bytes;         /* of the file(s) */
	uint64_t n_series, n_profiles, n_stacks, n_frames, n_builds;
	uint64_t n_open;                    /* profiles not in chunks yet */
	struct {
		uint64_t chunks, profiles, samples, bytes;
		int64_t first_ms, last_ms;
	} tiers[TIERS];
	uint64_t pinned;                    /* peaks kept whole */
};
int store_info(struct store *s, struct store_info *ret, struct error *err);
/* Everything is read. What is wrong: whole lines in findings (empty: nothing), *ret_profiles: how many could be read. */
int store_check(struct store *s, struct buf *findings, uint64_t *ret_profiles, struct error *err);
/* Gives all free space back to the file system. */
int store_compact(struct store *s, struct error *err);

#endif
