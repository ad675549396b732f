#include "record/feed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A start time is worked out from clocks that are corrected now and then. */
#define CLOCK_MS 2000
/* How far back the store is asked whether it knows a process already. */
#define BACK_MS (7 * 86400000LL)

void feed_process_of(const struct profile *p, int64_t started_ms, struct feed_process *ret)
{
	const char *build_id = p->n_mappings ? profile_text(p, p->mappings[0].build_id) : "";
	ret->process = profile_process_identity(p);
	ret->started_ms = started_ms;
	snprintf(ret->build_id, sizeof ret->build_id, "%s", strlen(build_id) <= BUILD_ID_MAX ? build_id : "");
}

bool feed_same(const struct feed *f, const struct feed_process *now)
{
	const struct feed_process *last = &f->last;
	if (last->build_id[0] && now->build_id[0] && strcmp(last->build_id, now->build_id) != 0)
		return false;
	int64_t apart = last->started_ms && now->started_ms ? last->started_ms - now->started_ms : 0;
	if (apart > CLOCK_MS || apart < -CLOCK_MS)
		return false;
	bool other_layout = last->process && now->process && last->process != now->process;
	/* To the millisecond the same start: a layout seems to differ when a profile leaves mappings out. */
	return !other_layout || (last->started_ms && last->started_ms == now->started_ms);
}

/* What is known of the process is kept: one scrape of its metrics may fail. */
static void merge(struct feed_process *known, const struct feed_process *now)
{
	if (!known->process)
		known->process = now->process;
	if (!known->started_ms)
		known->started_ms = now->started_ms;
	if (!known->build_id[0])
		memcpy(known->build_id, now->build_id, sizeof known->build_id);
}

static bool same_labels(const struct store_identity *who, const struct store_label *labels, size_t n)
{
	bool same = who->n_labels == n;
	for (size_t i = 0; same && i < n; i++)
		same = strcmp(who->labels[i].name, labels[i].name) == 0 && strcmp(who->labels[i].value, labels[i].value) == 0;
	return same;
}

/*
 * What an earlier recorder stored of these labels last: start times are known a little differently each time, so the store alone would take
 * the same process for another one. That there is none, or that it can't be asked, changes nothing.
 */
static void recall(struct feed *f, struct store *s, const struct store_label *labels, size_t n_labels, int64_t now_ms)
{
	struct store_series_info *list;
	struct error ignored;
	size_t n;
	struct store_matcher *m = calloc(n_labels + 1, sizeof *m);
	for (size_t i = 0; m && i < n_labels; i++)
		m[i] = (struct store_matcher){ labels[i].name, MATCH_EQUAL, labels[i].value };
	if (m && !store_find_series(s, m, n_labels, now_ms - BACK_MS, INT64_MAX, &list, &n, &ignored)) {
		for (size_t i = 0; i < n; i++) {
			const struct store_identity *who = &list[i].who;
			if (!same_labels(who, labels, n_labels) || (f->known && list[i].last_ms < f->last_ms))
				continue;
			*f = (struct feed){ .known = true, .series = list[i].series, .last_ms = list[i].last_ms,
			                    .last = { .process = who->process, .started_ms = who->started_ms } };
			snprintf(f->last.build_id, sizeof f->last.build_id, "%s", who->build_id ? who->build_id : "");
		}
		store_series_free(list, n);
	}
	free(m);
}

/* One more restart? */
static bool may_restart(struct feed *f, int64_t time_ms)
{
	double back = time_ms > f->restarts_ms ? (double)(time_ms - f->restarts_ms) / 60000 : 0;
	f->restarts_used = f->restarts_used > back ? f->restarts_used - back : 0;
	f->restarts_ms = time_ms;
	if (f->restarts_used + 1 > FEED_RESTARTS)
		return false;
	f->restarts_used++;
	return true;
}

static int begin_series(struct feed *f, struct store *s, const struct store_label *labels, size_t n_labels, const struct feed_process *now,
                        struct error *err)
{
	struct store_identity who = { .labels = labels, .n_labels = n_labels, .process = now->process, .started_ms = now->started_ms,
	                              .build_id = now->build_id };
	int failed = store_add_series(s, &who, &f->series, err);
	if (failed)
		return failed;
	f->known = true;
	f->last = *now;
	f->last_ms = 0;
	return E_OK;
}

int feed_series(struct feed *f, struct store *s, const struct store_label *labels, size_t n_labels, const struct feed_process *now,
                bool one_process, int64_t *time_ms, bool *ret_restarted, struct error *err)
{
	if (!f->known)
		recall(f, s, labels, n_labels, *time_ms);
	bool same = f->known && feed_same(f, now);
	*ret_restarted = f->known && !same;
	if (*ret_restarted && one_process && !may_restart(f, *time_ms))
		return error_set(err, E_LIMIT, "nearly each answer is another process': is this the address of a load balancer? Give each process as a target "
		                 "of its own");
	int failed = same ? E_OK : begin_series(f, s, labels, n_labels, now, err);
	if (failed)
		return failed;
	if (same)
		merge(&f->last, now);
	if (*time_ms <= f->last_ms)
		*time_ms = f->last_ms + 1;
	return E_OK;
}
