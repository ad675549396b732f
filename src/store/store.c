/* Which engine a URL means, and what needs none. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "store/engine.h"

static const struct store_engine *const engines[] = { &sqlite_engine };

const char *store_tier_name(enum store_tier t)
{
	static const char *const names[TIERS] = { "raw", "5m", "1h", "1d" };
	return names[t];
}

const char *store_mode_name(enum store_mode m)
{
	static const char *const names[] = { "last", "average", "max" };
	return names[m];
}

int store_open(const char *url, const struct store_options *o, struct store **ret, struct error *err)
{
	const char *colon = strchr(url, ':');
	for (size_t i = 0; colon && i < sizeof engines / sizeof *engines; i++) {
		size_t n = strlen(engines[i]->scheme);
		if ((size_t)(colon - url) == n && strncmp(url, engines[i]->scheme, n) == 0)
			return engines[i]->open(colon + 1, o, ret, err);
	}
	if (colon && strstr(url, "://") == colon)
		return error_set(err, E_USAGE, "%.200s: there is no store of that kind; a file is sqlite:FILE or just FILE", url);
	return sqlite_engine.open(url, o, ret, err);
}

void store_close(struct store *s)
{
	if (s)
		s->engine->close(s);
}

int store_add_series(struct store *s, const struct store_identity *who, uint32_t *ret_series, struct error *err)
{
	return s->engine->add_series(s, who, ret_series, err);
}

int store_find_series(struct store *s, const struct store_matcher *m, size_t n, int64_t from_ms, int64_t to_ms,
                      struct store_series_info **ret, size_t *ret_n, struct error *err)
{
	return s->engine->find_series(s, m, n, from_ms, to_ms, ret, ret_n, err);
}

/* One block: see sqlite_series.c; so an engine's list must be, too. */
void store_series_free(struct store_series_info *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free((void *)list[i].who.labels);
	free(list);
}

int store_append(struct store *s, const struct store_profile *profiles, size_t n, struct error *err)
{
	return s->engine->append(s, profiles, n, err);
}

int store_append_gauges(struct store *s, uint32_t series, int64_t time_ms, const struct store_gauge *gauges, size_t n, struct error *err)
{
	return s->engine->append_gauges(s, series, time_ms, gauges, n, err);
}

int store_maintain(struct store *s, int64_t now_ms, bool *ret_more, struct error *err)
{
	return s->engine->maintain(s, now_ms, ret_more, err);
}

int store_totals(struct store *s, const struct store_range *r, int64_t step_ms, const struct store_budget *b, struct store_point **ret,
                 size_t *ret_n, struct error *err)
{
	return s->engine->totals(s, r, step_ms, b, ret, ret_n, err);
}

int store_read_gauges(struct store *s, const struct store_range *r, int64_t step_ms, const struct store_budget *b,
                      struct store_gauges *ret, struct error *err)
{
	return s->engine->read_gauges(s, r, step_ms, b, ret, err);
}

void store_gauges_finish(struct store_gauges *g)
{
	if (!g)
		return;
	for (size_t i = 0; i < g->n_names; i++)
		free((char *)g->names[i]);
	free(g->names);
	free(g->points);
	*g = (struct store_gauges){ 0 };
}

int store_moments(struct store *s, uint32_t series, int64_t from_ms, int64_t to_ms, size_t max, int64_t **ret_times, size_t *ret_n,
                  struct error *err)
{
	return s->engine->moments(s, series, from_ms, to_ms, max, ret_times, ret_n, err);
}

int store_read(struct store *s, uint32_t series, int64_t time_ms, const struct store_budget *b, struct profile **ret, struct error *err)
{
	return s->engine->read(s, series, time_ms, b, ret, err);
}

int store_read_moments(struct store *s, const struct store_moment *moments, size_t n, const struct store_budget *b, bool *ret_found,
                       struct profile **ret, struct error *err)
{
	return s->engine->read_moments(s, moments, n, b, ret_found, ret, err);
}

int store_merge(struct store *s, const struct store_range *r, enum store_mode mode, const struct store_budget *b, struct profile **ret,
                struct error *err)
{
	return s->engine->merge(s, r, mode, b, ret, err);
}

int store_builds(struct store *s, struct store_build **ret, size_t *ret_n, struct error *err)
{
	return s->engine->builds(s, ret, ret_n, err);
}

void store_builds_free(struct store_build *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].build_id);
		free(list[i].path);
	}
	free(list);
}

int store_unnamed(struct store *s, const char *build_id, size_t max, struct profile **ret, struct error *err)
{
	return s->engine->unnamed(s, build_id, max, ret, err);
}

int store_put_names(struct store *s, const struct profile *p, struct error *err)
{
	return s->engine->put_names(s, p, err);
}

int store_ask_again(struct store *s, const char *build_id, struct error *err)
{
	return s->engine->ask_again(s, build_id, err);
}

int store_info(struct store *s, struct store_info *ret, struct error *err)
{
	return s->engine->info(s, ret, err);
}

int store_check(struct store *s, struct buf *findings, uint64_t *ret_profiles, struct error *err)
{
	return s->engine->check(s, findings, ret_profiles, err);
}

int store_compact(struct store *s, struct error *err)
{
	return s->engine->compact(s, err);
}
