/*
 * The table. It is made anew at each change and then takes the old one's place; a target that is in both is the same struct, so it keeps
 * its state, its turn and what is under way.
 */
#include "record/targets.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "record/schedule.h"
#include "record/target_make.h"

#define TARGETS_MAX 1000000
#define LIST_BYTES_MAX ((size_t)512 << 20)
/* So few are asked at once when they are new; more wait for their turns. */
#define AT_ONCE 20

static const char *const health_names[] = { "unknown", "up", "down" };

const char *target_health_name(enum target_health h)
{
	return health_names[h];
}

void targets_init(struct targets *t)
{
	*t = (struct targets){ .n = 0 };
	pthread_mutex_init(&t->lock, NULL);
}

void targets_finish(struct targets *t)
{
	for (size_t i = 0; i < t->n; i++)
		target_release(t->items[i]);
	free(t->items);
	pthread_mutex_destroy(&t->lock);
}

/* --- a new table --- */

struct making {
	const struct config *config;
	struct target **items;
	size_t n, capacity, n_dropped;
	const struct targets *old;
	struct index old_ids, ids, labels;  /* of old's and of ours */
	struct buf *say;
};

static bool same_old(const void *context, uint32_t item)
{
	const struct making *m = context;
	return m->old->items[item]->id == m->items[m->n - 1]->id;
}

static bool same_new(const void *context, uint32_t item)
{
	const struct making *m = context;
	return m->items[item]->id == m->items[m->n - 1]->id;
}

static bool same_labels(const void *context, uint32_t item)
{
	const struct making *m = context;
	const struct target *a = m->items[item], *b = m->items[m->n - 1];
	bool same = a->n_labels == b->n_labels;
	for (size_t i = 0; same && i < a->n_labels; i++)
		same = strcmp(a->labels[i].name, b->labels[i].name) == 0 && strcmp(a->labels[i].value, b->labels[i].value) == 0;
	return same;
}

/* The new target is the last item: it may be in the old table, or be there already. */
static int place(struct making *m, struct error *err)
{
	struct target *x = m->items[m->n - 1];
	uint64_t labels = target_labels_hash(x);
	if (index_find(&m->ids, x->id, same_new, m) != INDEX_NONE) {
		target_release(x);
		m->n--;
		return E_OK;
	}
	uint32_t other = index_find(&m->labels, labels, same_labels, m);
	uint32_t old = index_find(&m->old_ids, x->id, same_old, m);
	if (old != INDEX_NONE) {
		const struct config_job *job = x->job;
		target_release(x);
		x = m->items[m->n - 1] = target_take(m->old->items[old]);
		x->next_job = job;
	}
	x->next_refused = other == INDEX_NONE ? NULL : "it has the same labels as another target: their profiles could not be told apart (give one a label "
	                                          "in its group, or by relabel_configs)";
	if (!index_reserve(&m->ids) || !index_reserve(&m->labels))
		return error_nomem(err, "the targets");
	index_insert(&m->ids, x->id, (uint32_t)m->n - 1);
	if (other == INDEX_NONE)
		index_insert(&m->labels, labels, (uint32_t)m->n - 1);
	return E_OK;
}

static int add(struct making *m, const struct config_job *job, const char *address, const struct config_labels *own, struct error *err)
{
	struct error reason;
	struct target *x;
	int failed = target_make(m->config, job, address, own, &x, &reason);
	if (failed == E_NOMEM)
		return error_nomem(err, "the targets");
	if (failed)
		buf_printf(m->say, "%s: this target is left out\n", reason.text);
	if (!x) {
		m->n_dropped += !failed;
		return E_OK;
	}
	struct target **at = ARRAY_PUSH(m->items, m->n, m->capacity, TARGETS_MAX);
	if (!at) {
		target_release(x);
		return error_set(err, E_LIMIT, "no memory for the targets, or more than %d", TARGETS_MAX);
	}
	*at = x;
	return place(m, err);
}

static int add_groups(struct making *m, const struct config_job *job, const struct config_groups *groups, struct error *err)
{
	int failed = E_OK;
	for (size_t i = 0; i < groups->n && !failed; i++)
		for (size_t k = 0; k < groups->items[i].targets.n && !failed; k++)
			failed = add(m, job, groups->items[i].targets.items[k], &groups->items[i].labels, err);
	return failed;
}

static int add_job(struct making *m, const struct config_job *job, const struct targets_found *found, size_t n_found, struct error *err)
{
	size_t first = m->n;
	int failed = add_groups(m, job, &job->groups, err);
	for (size_t i = 0; i < n_found && !failed; i++)
		if (found[i].job == job)
			failed = add_groups(m, job, &found[i].groups, err);
	if (!failed && job->target_limit && m->n - first > job->target_limit) {
		for (size_t i = first; i < m->n; i++)
			m->items[i]->next_refused = "its job has more targets than its target_limit, so none of them is scraped";
		buf_printf(m->say, "job %.60s has %zu targets, its target_limit is %llu: none is scraped\n", job->name, m->n - first,
		           (unsigned long long)job->target_limit);
	}
	return failed;
}

static int index_old(struct making *m, struct error *err)
{
	for (size_t i = 0; i < m->old->n; i++) {
		if (!index_reserve(&m->old_ids))
			return error_nomem(err, "the targets");
		index_insert(&m->old_ids, m->old->items[i]->id, (uint32_t)i);
	}
	return E_OK;
}

/* New ones get their first turn; states say who isn't scraped. Under the lock. */
static void begin(struct making *m, int64_t now_ms, int64_t wall_ms)
{
	for (size_t i = 0; i < m->n; i++) {
		struct target *x = m->items[i];
		x->kept = true;
		x->job = x->next_job;
		bool was_refused = x->refused;
		x->refused = x->next_refused;
		if (x->refused) {
			x->health = TARGET_DOWN;
			x->next_ms = 0;
			snprintf(x->error, sizeof x->error, "%s", x->refused);
		} else if (!x->next_ms || was_refused) {
			int64_t wait_ms = m->n <= AT_ONCE ? (int64_t)(x->id % 100) : schedule_first(x->id, x->interval_ms, wall_ms);
			x->due_ms = now_ms + wait_ms;
			x->next_ms = wall_ms + wait_ms;
			x->health = TARGET_UNKNOWN;
			x->error[0] = '\0';
		}
	}
}

int targets_update(struct targets *t, const struct config *c, const struct targets_found *found, size_t n_found, int64_t now_ms,
                   int64_t wall_ms, struct buf *say, struct error *err)
{
	struct making m = { .config = c, .old = t, .say = say };
	int failed = index_old(&m, err);
	for (size_t i = 0; i < c->n_jobs && !failed; i++)
		failed = add_job(&m, &c->jobs[i], found, n_found, err);
	index_finish(&m.old_ids);
	index_finish(&m.ids);
	index_finish(&m.labels);
	struct target **before = m.items;
	size_t n_before = m.n;
	if (!failed) {
		pthread_mutex_lock(&t->lock);
		before = t->items;
		n_before = t->n;
		for (size_t i = 0; i < n_before; i++)
			before[i]->kept = false;
		begin(&m, now_ms, wall_ms);
		t->items = m.items;
		t->n = m.n;
		t->capacity = m.capacity;
		t->n_dropped = m.n_dropped;
		pthread_mutex_unlock(&t->lock);
	}
	for (size_t i = 0; i < n_before; i++)
		target_release(before[i]);
	free(before);
	return failed;
}

/* --- states --- */

void targets_next(struct targets *t, struct target *x, int64_t due_ms, int64_t next_ms)
{
	x->due_ms = due_ms;
	pthread_mutex_lock(&t->lock);
	x->next_ms = next_ms;
	pthread_mutex_unlock(&t->lock);
}

bool targets_report(struct targets *t, struct target *x, const struct target_outcome *o)
{
	pthread_mutex_lock(&t->lock);
	enum target_health before = x->health;
	x->health = o->error ? TARGET_DOWN : TARGET_UP;
	snprintf(x->error, sizeof x->error, "%s", o->error ? o->error : "");
	x->last_ms = o->began_ms;
	x->duration_ms = o->duration_ms;
	x->scrapes++;
	x->failures += o->error != NULL;
	x->restarts += o->restarted;
	if (!o->error) {
		x->series = o->series;
		x->samples = o->samples;
		x->bytes = o->bytes;
	}
	bool changed = before != x->health && !(before == TARGET_UNKNOWN && !o->error);
	pthread_mutex_unlock(&t->lock);
	return changed;
}

static const struct store_label *copy_labels(struct arena *a, const struct store_label *labels, size_t n)
{
	struct store_label *copy = arena_take(a, (n + 1) * sizeof *copy);
	for (size_t i = 0; copy && i < n; i++) {
		copy[i].name = arena_text(a, labels[i].name, strlen(labels[i].name));
		copy[i].value = arena_text(a, labels[i].value, strlen(labels[i].value));
	}
	return copy;
}

static void copy_state(struct arena *a, const struct target *x, struct target_state *to)
{
	*to = (struct target_state){
		.job = arena_text(a, x->job_name, strlen(x->job_name)),
		.url = arena_text(a, x->shown, strlen(x->shown)),
		.labels = copy_labels(a, x->labels, x->n_labels), .n_labels = x->n_labels,
		.discovered = copy_labels(a, x->discovered, x->n_discovered), .n_discovered = x->n_discovered,
		.health = x->health,
		.error = arena_text(a, x->error, strlen(x->error)),
		.last_ms = x->last_ms, .next_ms = x->next_ms, .duration_ms = x->duration_ms,
		.interval_ms = (uint32_t)x->interval_ms, .timeout_ms = (uint32_t)x->timeout_ms,
		.series = x->series, .samples = x->samples, .bytes = x->bytes,
		.scrapes = x->scrapes, .failures = x->failures, .restarts = x->restarts,
	};
}

int targets_list(struct targets *t, struct target_list *ret, struct error *err)
{
	struct target_list list = { .n = 0 };
	arena_init(&list.arena, LIST_BYTES_MAX);
	pthread_mutex_lock(&t->lock);
	list.n_dropped = t->n_dropped;
	list.items = arena_take(&list.arena, (t->n + 1) * sizeof *list.items);
	for (; list.items && list.n < t->n; list.n++)
		copy_state(&list.arena, t->items[list.n], &list.items[list.n]);
	pthread_mutex_unlock(&t->lock);
	if (list.arena.failed) {
		arena_finish(&list.arena);
		return error_nomem(err, "the list of targets");
	}
	*ret = list;
	return E_OK;
}

void target_list_finish(struct target_list *l)
{
	arena_finish(&l->arena);
}
