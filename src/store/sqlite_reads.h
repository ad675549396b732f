/* The engine's calls, by file; each is store.h's of that name. */
#ifndef STORE_SQLITE_READS_H
#define STORE_SQLITE_READS_H

#include "store/sqlite_private.h"

/* sqlite_read.c */
int sqlite_read(struct store *s, uint32_t series, int64_t time_ms, const struct store_budget *b, struct profile **ret, struct error *err);
int sqlite_read_moments(struct store *s, const struct store_moment *moments, size_t n, const struct store_budget *b, bool *ret_found,
                        struct profile **ret, struct error *err);
int sqlite_merge(struct store *s, const struct store_range *r, enum store_mode mode, const struct store_budget *b, struct profile **ret,
                 struct error *err);
int sqlite_moments(struct store *s, uint32_t series, int64_t from_ms, int64_t to_ms, size_t max, int64_t **ret_times, size_t *ret_n,
                   struct error *err);

/* sqlite_totals.c */
int sqlite_totals(struct store *s, const struct store_range *r, int64_t step_ms, const struct store_budget *b, struct store_point **ret,
                  size_t *ret_n, struct error *err);

/* sqlite_gauges.c */
int sqlite_append_gauges(struct store *s, uint32_t series, int64_t time_ms, const struct store_gauge *gauges, size_t n, struct error *err);
int sqlite_read_gauges(struct store *s, const struct store_range *r, int64_t step_ms, const struct store_budget *b, struct store_gauges *ret,
                       struct error *err);

/* sqlite_names.c */
int sqlite_builds(struct store *s, struct store_build **ret, size_t *ret_n, struct error *err);
int sqlite_unnamed(struct store *s, const char *build_id, size_t max, struct profile **ret, struct error *err);
int sqlite_put_names(struct store *s, const struct profile *p, struct error *err);
int sqlite_ask_again(struct store *s, const char *build_id, struct error *err);

/* sqlite_maintain.c */
int give_back(struct sqlite_store *s, struct error *err);           /* some empty pages; W */
int sqlite_maintain(struct store *s, int64_t now_ms, bool *ret_more, struct error *err);

/* sqlite_check.c */
int sqlite_info(struct store *s, struct store_info *ret, struct error *err);
int sqlite_check(struct store *s, struct buf *findings, uint64_t *ret_profiles, struct error *err);
int sqlite_compact(struct store *s, struct error *err);

#endif
