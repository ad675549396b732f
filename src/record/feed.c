#include "record/feed.h"

#include <stdio.h>
#include <string.h>

/* A start time is worked out from clocks that are corrected now and then. */
#define CLOCK_MS 2000

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

int feed_series(struct feed *f, struct store *s, const struct store_label *labels, size_t n_labels, const struct feed_process *now,
                int64_t *time_ms, bool *ret_restarted, struct error *err)
{
	bool same = f->known && feed_same(f, now);
	*ret_restarted = f->known && !same;
	if (!same) {
		struct store_identity who = { .labels = labels, .n_labels = n_labels, .process = now->process, .started_ms = now->started_ms,
		                              .build_id = now->build_id };
		uint32_t series;
		int failed = store_add_series(s, &who, &series, err);
		if (failed)
			return failed;
		*f = (struct feed){ .known = true, .last = *now, .series = series };
	} else {
		merge(&f->last, now);
	}
	if (*time_ms <= f->last_ms)
		*time_ms = f->last_ms + 1;
	return E_OK;
}
