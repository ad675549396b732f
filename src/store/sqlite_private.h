/*
 * What the files of the SQLite engine share. One connection writes, under write_lock, which also protects everything marked W below;
 * reads take a connection of their own from the pool and see the store as it was when they began.
 *
 * Lock order: write_lock, then pool_lock.
 */
#ifndef STORE_SQLITE_PRIVATE_H
#define STORE_SQLITE_PRIVATE_H

#include <pthread.h>
#include <sqlite3.h>

#include "store/chunk.h"
#include "store/engine.h"
#include "store/idmap.h"
#include "store/sqlite_sweep.h"

#define STORE_APPLICATION_ID 0x68676374         /* "hgct" */
#define STORE_VERSION 2
#define STORE_PAGE_BYTES 8192

/* Beside the tiers of store.h: peaks that are kept whole, as chunks of one slot. */
#define TIER_PIN TIERS

/* Every statement there is: its name, its text. Prepared when first used. */
#define SQLITE_STATEMENTS(X)                                                                                                       \
	X(BEGIN_WRITE, "BEGIN IMMEDIATE")                                                                                          \
	X(BEGIN_READ, "BEGIN")                                                                                                     \
	X(COMMIT, "COMMIT")                                                                                                        \
	X(ROLLBACK, "ROLLBACK")                                                                                                    \
	X(FIND_STRING, "SELECT id, text FROM strings WHERE hash = ?1")                                                             \
	X(ADD_STRING, "INSERT INTO strings(hash, text) VALUES(?1, ?2)")                                                            \
	X(GET_STRING, "SELECT text FROM strings WHERE id = ?1")                                                                    \
	X(FIND_BUILD, "SELECT id FROM builds WHERE build_id = ?1 AND path = ?2 AND kind = ?3")                                     \
	X(FIND_BUILD_BY_ID, "SELECT id FROM builds WHERE build_id = ?1 AND kind = ?2")                                             \
	X(ADD_BUILD, "INSERT INTO builds(kind, build_id, path) VALUES(?1, ?2, ?3)")                                                \
	X(GET_BUILD, "SELECT kind, build_id, path FROM builds WHERE id = ?1")                                                      \
	X(FIND_FRAME, "SELECT id, own FROM frames WHERE build = ?1 AND offset = ?2")                                               \
	X(ADD_FRAME, "INSERT INTO frames(build, offset, own, asked) VALUES(?1, ?2, ?3, 0)")                                        \
	X(GET_FRAME, "SELECT build, offset, own, names FROM frames WHERE id = ?1")                                                 \
	X(FIND_STACK, "SELECT id, frames FROM stacks WHERE hash = ?1")                                                             \
	X(ADD_STACK, "INSERT INTO stacks(hash, frames) VALUES(?1, ?2)")                                                            \
	X(GET_STACK, "SELECT frames FROM stacks WHERE id = ?1")                                                                    \
	X(FIND_LABELS, "SELECT id, data FROM labels WHERE hash = ?1")                                                              \
	X(ADD_LABELS, "INSERT INTO labels(hash, data, base) VALUES(?1, ?2, ?3)")                                                   \
	X(GET_LABELS, "SELECT data, base FROM labels WHERE id = ?1")                                                               \
	X(FIND_ROW, "SELECT id, seen FROM rows WHERE stack = ?1 AND labels = ?2 AND nth = ?3")                                     \
	X(ADD_ROW, "INSERT INTO rows(stack, labels, nth, base, seen) VALUES(?1, ?2, ?3, ?4, ?5)")                                  \
	X(SEE_ROW, "UPDATE rows SET seen = max(seen, ?2) WHERE id IN (?1, (SELECT base FROM rows WHERE id = ?1))")                 \
	X(GET_ROW, "SELECT stack, labels, base FROM rows WHERE id = ?1")                                                           \
	X(FIND_SERIES, "SELECT id, labels, build_id FROM series WHERE hash = ?1 AND process = ?2 AND started = ?3")                \
	X(ADD_SERIES, "INSERT INTO series(hash, labels, process, started, build_id, n, metrics) VALUES(?1, ?2, ?3, ?4, ?5, 0, 0)") \
	X(ALL_SERIES, "SELECT id, labels, process, started, build_id, first, last, n, metrics FROM series ORDER BY id")            \
	X(GET_SERIES, "SELECT id, labels, process, started, build_id, first, last, n, metrics FROM series WHERE id = ?1")          \
	X(SERIES_OPEN, "SELECT count(*), max(t), min(t) FROM open WHERE series = ?1")                                              \
	X(SERIES_FIRST, "UPDATE series SET metrics = ?2, first = ?3 WHERE id = ?1")                                                \
	X(SERIES_METRICS, "UPDATE series SET metrics = ?2 WHERE id = ?1")                                                          \
	X(SERIES_SEALED, "UPDATE series SET last = ?2, n = n + ?3 WHERE id = ?1")                                                  \
	X(ADD_OPEN, "INSERT INTO open (series, t, head, data) VALUES(?1, ?2, ?3, ?4)")                                              \
	X(RANGE_OPEN, "SELECT id, t, head, data FROM open WHERE series = ?1 AND t >= ?2 AND t < ?3 ORDER BY t")                    \
	X(HEADS_OPEN, "SELECT id, t, head FROM open WHERE series = ?1 AND t >= ?2 AND t < ?3 ORDER BY t")                          \
	X(LAST_OPEN, "SELECT id, t, head, data FROM open WHERE series = ?1 AND t <= ?2 ORDER BY t DESC LIMIT 1")                   \
	X(ADD_CHUNK, "INSERT INTO chunks(series, tier, t0, t1, n, samples, head, data) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")    \
	X(RANGE_CHUNKS, "SELECT id, t0, head, data FROM chunks WHERE series = ?1 AND tier = ?2 AND t0 >= coalesce("               \
	                "(SELECT max(t0) FROM chunks WHERE series = ?1 AND tier = ?2 AND t0 <= ?3), ?3) AND t0 < ?4 ORDER BY t0")  \
	X(HEADS_CHUNKS, "SELECT id, t0, head FROM chunks WHERE series = ?1 AND tier = ?2 AND t0 >= coalesce("                     \
	                "(SELECT max(t0) FROM chunks WHERE series = ?1 AND tier = ?2 AND t0 <= ?3), ?3) AND t0 < ?4 ORDER BY t0")  \
	X(LAST_CHUNK, "SELECT id, t0, head, data FROM chunks WHERE series = ?1 AND tier = ?2 AND t0 <= ?3 ORDER BY t0 DESC LIMIT 1") \
	X(FIRST_CHUNK, "SELECT t0 FROM chunks WHERE series = ?1 AND tier = ?2 ORDER BY t0 LIMIT 1")                                \
	X(HAS_CHUNK, "SELECT 1 FROM chunks WHERE series = ?1 AND tier = ?2 AND t0 = ?3")                                           \
	X(FIRST_OPEN, "SELECT t FROM open WHERE series = ?1 ORDER BY t LIMIT 1")                                                   \
	X(ADD_GAUGES, "INSERT INTO gauges(series, tier, t, t1, data) VALUES(?1, ?2, ?3, ?4, ?5)")                                  \
	X(RANGE_GAUGES, "SELECT t, data FROM gauges WHERE series = ?1 AND tier = ?2 AND t >= coalesce("                            \
	                "(SELECT max(t) FROM gauges WHERE series = ?1 AND tier = ?2 AND t <= ?3), ?3) AND t < ?4 ORDER BY t")      \
	X(FIRST_GAUGES, "SELECT t FROM gauges WHERE series = ?1 AND tier = ?2 ORDER BY t LIMIT 1")                                 \
	X(END_GAUGES, "SELECT t1 FROM gauges WHERE series = ?1 AND tier = ?2 ORDER BY t DESC LIMIT 1")                             \
	X(UNNAMED_BUILDS, "SELECT b.build_id, b.path, n FROM (SELECT build, count(*) AS n FROM frames WHERE own IS NULL AND asked = 0 "      \
	                  "GROUP BY build) JOIN builds b ON b.id = build WHERE b.kind IN (1, 2) ORDER BY n DESC, b.id")     \
	X(UNNAMED, "SELECT f.id FROM builds b JOIN frames f ON f.build = b.id AND f.own IS NULL AND f.asked = 0 "                       \
	           "WHERE (b.build_id = ?1 OR (b.build_id = '' AND b.path = CAST(?1 AS BLOB))) AND b.kind IN (1, 2) LIMIT ?2")      \
	X(PUT_NAMES, "UPDATE frames SET names = coalesce(?3, names), asked = 1 WHERE build = ?1 AND offset = ?2 AND own IS NULL")  \
	X(ASK_AGAIN, "UPDATE frames SET asked = 0 WHERE asked = 1 AND own IS NULL AND build IN "                                   \
	             "(SELECT id FROM builds WHERE build_id = ?1 OR (build_id = '' AND path = CAST(?1 AS BLOB)))")                 \
	X(SEAL_OPEN, "SELECT id, t, head, data FROM open WHERE series = ?1 ORDER BY t LIMIT ?2")                                   \
	X(SEAL_TIER, "SELECT id, t0, head, data FROM chunks WHERE series = ?1 AND tier = ?2 AND n = 1 AND t0 < ?3 ORDER BY t0 LIMIT ?4") \
	X(DELETE_OPEN, "DELETE FROM open WHERE id = ?1")                                                                           \
	X(DELETE_CHUNK, "DELETE FROM chunks WHERE id = ?1")                                                                        \
	X(SEAL_GAUGES, "SELECT id, t, data FROM gauges WHERE series = ?1 AND tier = ?2 AND t = t1 AND t < ?3 ORDER BY t LIMIT ?4")  \
	X(DELETE_GAUGES, "DELETE FROM gauges WHERE id = ?1")                                                                       \
	X(COUNT_GAUGES, "SELECT count(*) FROM gauges WHERE series = ?1 AND tier = 0 AND t = t1")                                   \
	X(OLD_CHUNKS, "SELECT id, t1 FROM chunks WHERE tier = ?1 AND t1 < ?2 ORDER BY t1 LIMIT ?3")                                \
	X(OLD_GAUGES, "SELECT id, t1 FROM gauges WHERE tier = ?1 AND t1 < ?2 ORDER BY t1 LIMIT ?3")                                \
	X(DELETE_SERIES, "DELETE FROM series WHERE id = ?1 AND NOT EXISTS(SELECT 1 FROM chunks WHERE series = ?1) "               \
	                 "AND NOT EXISTS(SELECT 1 FROM open WHERE series = ?1) AND NOT EXISTS(SELECT 1 FROM gauges WHERE series = ?1)") \
	X(SERIES_IDS, "SELECT id FROM series")                                                                                     \
	X(PAGES, "PRAGMA page_count")                                                                                              \
	X(FREE_PAGES, "PRAGMA freelist_count")                                                                                     \
	X(GIVE_BACK, "PRAGMA incremental_vacuum(256)")                                                                             \
	X(CHECKPOINT, "PRAGMA wal_checkpoint(TRUNCATE)")                                                                           \
	X(COUNT_SERIES, "SELECT count(*) FROM series")                                                                             \
	X(COUNT_STACKS, "SELECT count(*) FROM stacks")                                                                             \
	X(COUNT_FRAMES, "SELECT count(*) FROM frames")                                                                             \
	X(COUNT_BUILDS, "SELECT count(*) FROM builds")                                                                             \
	X(COUNT_OPEN, "SELECT count(*) FROM open")                                                                                 \
	X(COUNT_RECEIVED, "SELECT sum(n) FROM series")                                                                             \
	X(TIER_SUMS, "SELECT tier, count(*), sum(n), sum(samples), sum(length(head) + length(data)), min(t0), max(t1) FROM chunks " \
	             "GROUP BY tier")                                                                                              \
	X(ROW_IDS, "SELECT id FROM rows NOT INDEXED")                                                                              \
	X(FRAME_IDS, "SELECT id FROM frames NOT INDEXED")                                                                          \
	X(QUICK_CHECK, "PRAGMA quick_check")                                                                                       \
	X(STRING_IDS, "SELECT id FROM strings NOT INDEXED")                                                                        \
	X(BUILD_IDS, "SELECT id FROM builds NOT INDEXED")                                                                          \
	X(ORPHANS, "SELECT r.id FROM rows r LEFT JOIN stacks s ON s.id = r.stack LEFT JOIN labels l ON l.id = r.labels "           \
	           "LEFT JOIN rows b ON b.id = r.base "                                                                            \
	           "WHERE s.id IS NULL OR (r.labels > 0 AND l.id IS NULL) OR (r.base IS NOT NULL AND b.id IS NULL)")               \
	X(ALL_FRAMES, "SELECT id, build, own, names FROM frames")                                                                  \
	X(ALL_LABELS, "SELECT id, data FROM labels")                                                                               \
	X(ALL_STACKS, "SELECT id, frames FROM stacks")                                                                             \
	X(CHUNK_IDS, "SELECT id, tier FROM chunks ORDER BY series, tier, t0")                                                      \
	X(OPEN_IDS, "SELECT id FROM open ORDER BY series, t")                                                                      \
	X(GAUGES_IDS, "SELECT id FROM gauges ORDER BY series, tier, t")                                                            \
	X(CHECK_CHUNK, "SELECT head, data FROM chunks WHERE id = ?1")                                                              \
	X(CHECK_OPEN, "SELECT head, data FROM open WHERE id = ?1")                                                                 \
	X(CHECK_GAUGES, "SELECT data FROM gauges WHERE id = ?1")                                                                   \
	X(KEEP, "INSERT INTO kept(id, seen) VALUES(?1, ?2) ON CONFLICT(id) DO UPDATE SET seen = max(seen, ?2)")                    \
	X(UNFINISHED_SWEEP, "SELECT 1 FROM kept WHERE id = 0")                                                                     \
	X(SWEEP_SERIES, "SELECT id, min("                                                                                          \
	                "coalesce((SELECT min(t) FROM open WHERE series = s.id), 9223372036854775807), "                           \
	                "coalesce((SELECT min(t0) FROM chunks WHERE series = s.id AND tier = 0), 9223372036854775807), "           \
	                "coalesce((SELECT min(t0) FROM chunks WHERE series = s.id AND tier = 1), 9223372036854775807), "           \
	                "coalesce((SELECT min(t0) FROM chunks WHERE series = s.id AND tier = 2), 9223372036854775807), "           \
	                "coalesce((SELECT min(t0) FROM chunks WHERE series = s.id AND tier = 3), 9223372036854775807), "           \
	                "coalesce((SELECT min(t0) FROM chunks WHERE series = s.id AND tier = 4), 9223372036854775807)) "           \
	                "FROM series s WHERE id > ?1 ORDER BY id LIMIT ?2")                                                        \
	X(SWEEP_ROWS, "SELECT id, seen FROM rows WHERE id < ?1 ORDER BY id DESC LIMIT ?2")                                         \
	X(SWEEP_KEPT, "SELECT id, seen FROM kept WHERE id > ?1 ORDER BY id LIMIT ?2")                                              \
	X(SWEEP_STACKS, "SELECT id, frames FROM stacks WHERE id > ?1 ORDER BY id LIMIT ?2")                                        \
	X(SWEEP_ROW_LABELS, "SELECT id, labels FROM rows WHERE id > ?1 ORDER BY id LIMIT ?2")                                      \
	X(SWEEP_LABEL_BASES, "SELECT id, base FROM labels WHERE id > ?1 ORDER BY id LIMIT ?2")                                     \
	X(SWEEP_FRAMES, "SELECT id, build, own, names FROM frames WHERE id > ?1 ORDER BY id LIMIT ?2")                             \
	X(SWEEP_LABELS, "SELECT id, data FROM labels WHERE id > ?1 ORDER BY id LIMIT ?2")                                          \
	X(SWEEP_STRINGS, "SELECT id FROM strings WHERE id > ?1 ORDER BY id LIMIT ?2")                                              \
	X(SWEEP_BUILDS, "SELECT id FROM builds WHERE id > ?1 ORDER BY id LIMIT ?2")                                                \
	X(DROP_ROW, "DELETE FROM rows WHERE id = ?1")                                                                              \
	X(DROP_STACK, "DELETE FROM stacks WHERE id = ?1 AND NOT EXISTS(SELECT 1 FROM rows WHERE stack = ?1)")                      \
	X(DROP_KEPT, "DELETE FROM kept WHERE id = ?1")                                                                             \
	X(DROP_FRAME, "DELETE FROM frames WHERE id = ?1")                                                                          \
	X(DROP_LABELS, "DELETE FROM labels WHERE id = ?1")                                                                         \
	X(DROP_STRING, "DELETE FROM strings WHERE id = ?1")                                                                        \
	X(DROP_BUILD, "DELETE FROM builds WHERE id = ?1")                                                                          \
	X(SERIES_BEGAN, "SELECT first FROM series WHERE id = ?1 AND first IS NOT NULL")                                            \
	X(END_CHUNK, "SELECT t1 FROM chunks WHERE series = ?1 AND tier = ?2 ORDER BY t0 DESC LIMIT 1")

enum sqlite_statement {
#define X(name, text) S_##name,
	SQLITE_STATEMENTS(X)
#undef X
	STATEMENTS
};

struct connection {
	sqlite3 *db;
	const char *path;               /* for messages */
	sqlite3_stmt *statements[STATEMENTS];
};

/* What the writer knows of a series without asking: W. */
struct series_state {
	bool known;
	unsigned metrics;
	int64_t last_ms;                /* nothing comes at or before it any more; INT64_MIN: nothing came yet */
	int64_t gauges_ms;              /* the same for gauges */
	int64_t profile_ms;             /* of the last profile */
	int64_t first_open_ms;
	uint64_t n_open, open_samples;
	uint32_t n_gauges;              /* raw moments not in blocks yet */
	/* Of the first profile or bucket of the finer tier that isn't in a bucket of this one; INT64_MAX: none. */
	int64_t pending_ms[TIERS], gauges_pending_ms[TIERS];
	bool has_pending;               /* the two above were looked for */
	int64_t retry_ms;               /* a chunk of it can't be read: it is left alone until then */
};

struct work {
	enum work_kind { WORK_SEAL, WORK_ROLL, WORK_GAUGES, WORK_FORGET } kind;
	uint32_t series;
};

struct translator;

#define POOL_MAX 8

struct sqlite_store {
	struct store store;
	char *path;
	struct store_options options;   /* with the defaults filled in */
	bool immutable;                 /* read-only, and nobody else can write: opened without shared memory */
	int lock_fd;                    /* -1: read only */
	pthread_mutex_t write_lock;
	struct connection writer;       /* W */
	struct series_state *series;    /* W: by number */
	size_t series_capacity;
	struct translator *translator;  /* W: profiles to rows */
	struct sweep sweep;             /* W */
	struct work *work;              /* W: what store_maintain has still to do, the last one first */
	size_t work_n, work_capacity;
	bool work_done;                 /* W: all of it; what is too old or too much goes before there is more */
	pthread_mutex_t pool_lock;
	struct connection *pool[POOL_MAX];   /* pool_lock: idle ones */
	size_t pool_n;
};

/* --- sqlite_db.c --- */

/* Words what SQLite says; a code of base/error.h. doing: "appending a profile". */
int db_failed(struct connection *c, const char *doing, struct error *err);
/* Prepared and without bindings; NULL: err is worded. */
sqlite3_stmt *db_statement(struct connection *c, enum sqlite_statement s, struct error *err);
/* A statement without rows. Resets it. */
int db_run(struct connection *c, sqlite3_stmt *statement, const char *doing, struct error *err);
int db_do(struct connection *c, enum sqlite_statement s, const char *doing, struct error *err);
/* 1: a row, 0: no more (the statement is reset), negative: failed (reset). */
int db_step(struct connection *c, sqlite3_stmt *statement, const char *doing, struct error *err);
int db_open(struct sqlite_store *s, struct connection *c, bool writer, struct error *err);
void db_close(struct connection *c);

/* The first column of the first row, 0 when there is none. */
int db_number(struct connection *c, enum sqlite_statement which, int64_t *ret, struct error *err);

/* A reading connection, its transaction begun. */
struct connection *db_begin_read(struct sqlite_store *s, struct error *err);
void db_end_read(struct sqlite_store *s, struct connection *c);
/* E_USAGE for a store that was opened to be read. Takes write_lock and begins; failed: neither. */
int db_begin_write(struct sqlite_store *s, struct error *err);
/* failed: rolls back, and returns that. */
int db_finish_write(struct sqlite_store *s, int failed, struct error *err);
/* The same, and gives write_lock back. */
int db_end_write(struct sqlite_store *s, int failed, struct error *err);

/* The result is whole only when it was not over: E_LIMIT. */
struct spending {
	const struct store_budget *budget;
	size_t bytes, unasked;          /* unasked: since clock and cancelled were looked at */
};
int spend(struct spending *s, size_t bytes, struct error *err);     /* and looks at clock and cancelled; with few bytes, now and then */
size_t spending_limit(const struct store_budget *b);

/* --- the calls, by file --- */

/* sqlite_series.c */
int sqlite_add_series(struct store *s, const struct store_identity *who, uint32_t *ret_series, struct error *err);
int sqlite_find_series(struct store *s, const struct store_matcher *m, size_t n, int64_t from_ms, int64_t to_ms,
                       struct store_series_info **ret, size_t *ret_n, struct error *err);
/* The writer's state of a series: E_USAGE when there is no such. W. */
int series_state(struct sqlite_store *s, uint32_t series, struct series_state **ret, struct error *err);
int series_identity(struct connection *c, uint32_t series, struct store_series_info *ret, struct error *err);   /* freed by store_series_free's way */

/* sqlite_append.c */
int sqlite_append(struct store *s, const struct store_profile *profiles, size_t n, struct error *err);

/* sqlite_translate.c: from a profile to rows with numbers. All W. */
struct translator *translator_new(struct sweep *sweep);
void translator_free(struct translator *t);
void translator_forget(struct translator *t);                       /* a transaction was rolled back, or numbers are going to be dropped */
/* Head (one slot) and data of an open profile. */
int translate(struct sqlite_store *s, const struct store_profile *p, struct buf *head, struct buf *data, unsigned *ret_metrics,
              struct error *err);
int translator_string(struct sqlite_store *s, const char *text, size_t n, uint32_t *ret, struct error *err);

#endif
