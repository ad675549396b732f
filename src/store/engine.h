/* What an engine implements: each call is the one of store.h with that name, and promises the same. */
#ifndef STORE_ENGINE_H
#define STORE_ENGINE_H

#include "store/store.h"

struct store_engine {
	const char *scheme;             /* of its URLs */
	int (*open)(const char *where, const struct store_options *o, struct store **ret, struct error *err);
	void (*close)(struct store *s);
	int (*add_series)(struct store *s, const struct store_identity *who, uint32_t *ret_series, struct error *err);
	int (*find_series)(struct store *s, const struct store_matcher *m, size_t n, int64_t from_ms, int64_t to_ms,
	                   struct store_series_info **ret, size_t *ret_n, struct error *err);
	int (*append)(struct store *s, const struct store_profile *profiles, size_t n, struct error *err);
	int (*append_gauges)(struct store *s, uint32_t series, int64_t time_ms, const struct store_gauge *gauges, size_t n,
	                     struct error *err);
	int (*maintain)(struct store *s, int64_t now_ms, bool *ret_more, struct error *err);
	int (*totals)(struct store *s, const struct store_range *r, int64_t step_ms, const struct store_budget *b,
	              struct store_point **ret, size_t *ret_n, struct error *err);
	int (*read_gauges)(struct store *s, const struct store_range *r, int64_t step_ms, const struct store_budget *b,
	                   struct store_gauges *ret, struct error *err);
	int (*moments)(struct store *s, uint32_t series, int64_t from_ms, int64_t to_ms, size_t max, int64_t **ret_times, size_t *ret_n,
	               struct error *err);
	int (*read)(struct store *s, uint32_t series, int64_t time_ms, const struct store_budget *b, struct profile **ret,
	            struct error *err);
	int (*read_moments)(struct store *s, const struct store_moment *moments, size_t n, const struct store_budget *b, bool *ret_found,
	                    struct profile **ret, struct error *err);
	int (*merge)(struct store *s, const struct store_range *r, enum store_mode mode, const struct store_budget *b,
	             struct profile **ret, struct error *err);
	int (*builds)(struct store *s, struct store_build **ret, size_t *ret_n, struct error *err);
	int (*unnamed)(struct store *s, const char *build_id, size_t max, struct profile **ret, struct error *err);
	int (*put_names)(struct store *s, const struct profile *p, struct error *err);
	int (*ask_again)(struct store *s, const char *build_id, struct error *err);
	int (*info)(struct store *s, struct store_info *ret, struct error *err);
	int (*check)(struct store *s, struct buf *findings, uint64_t *ret_profiles, struct error *err);
	int (*compact)(struct store *s, struct error *err);
};

/* An engine's own struct begins with this one. */
struct store {
	const struct store_engine *engine;
};

extern const struct store_engine sqlite_engine;

#endif
