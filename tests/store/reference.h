/* The same as a store, with plain arithmetic over all profiles: what ranges have to say. */
#ifndef TESTS_STORE_REFERENCE_H
#define TESTS_STORE_REFERENCE_H

#include <math.h>

#include "random_profile.h"
#include "store/store.h"

struct reference_row {
	int64_t sum[2], max[2], last[2], increase[2], before[2], now[2];
	unsigned in;
	bool in_last;
};

struct reference {
	struct strings keys;
	struct reference_row *rows;
	unsigned n;
	bool has_before;
};

static inline struct reference_row *reference_row(struct reference *r, char *key)
{
	uint32_t before = (uint32_t)r->keys.n, at = strings_add(&r->keys, key, strlen(key), SIZE_MAX);
	if (at >= before) {
		r->rows = realloc(r->rows, (at + 1) * sizeof *r->rows);
		r->rows[at] = (struct reference_row){ .max = { INT64_MIN, INT64_MIN } };
	}
	free(key);
	return &r->rows[at];
}

static inline void reference_init(struct reference *r)
{
	*r = (struct reference){ 0 };
	strings_init(&r->keys);
	r->rows = calloc(1, sizeof *r->rows);
}

static inline void reference_finish(struct reference *r)
{
	strings_finish(&r->keys);
	free(r->rows);
}

/* in_range false: only what the next one is compared with. */
static inline void reference_add(struct reference *r, const struct profile *p, bool in_range)
{
	for (size_t i = 0; i < r->keys.n; i++)
		r->rows[i].now[0] = r->rows[i].now[1] = 0, r->rows[i].in_last = false;
	for (size_t i = 0; i < p->n_samples; i++) {
		const int64_t *v = p->values + i * p->n_types;
		struct reference_row *row = reference_row(r, sample_text(p, i, WITH_SIZE));
		for (int m = INUSE_OBJECTS, k = 0; m < METRICS && in_range; m++, k++) {
			int64_t value = p->metric[m] < 0 ? 0 : v[p->metric[m]];
			row->sum[k] += value;
			row->max[k] = value > row->max[k] ? value : row->max[k];
			row->last[k] = value;
		}
		row->in += in_range;
		row->in_last = in_range;
		row = reference_row(r, sample_text(p, i, 0));
		for (int k = 0; k < 2; k++)
			row->now[k] += p->metric[k] < 0 ? 0 : v[p->metric[k]];
	}
	for (size_t i = 0; i < r->keys.n; i++)
		for (int k = 0; k < 2; k++) {
			struct reference_row *row = &r->rows[i];
			if (in_range && r->has_before)
				row->increase[k] += row->now[k] >= row->before[k] ? row->now[k] - row->before[k] : row->now[k];
			row->before[k] = row->now[k];
		}
	r->has_before = true;
	r->n += in_range;
}

static inline int64_t reference_value(const struct reference *r, const struct reference_row *row, int m, enum store_mode mode)
{
	int k = m - INUSE_OBJECTS;
	if (m < INUSE_OBJECTS)
		return row->increase[m];
	if (mode == STORE_LAST)
		return row->in_last ? row->last[k] : 0;
	if (mode == STORE_AVERAGE)
		return llround((double)row->sum[k] / r->n);
	return row->in ? row->max[k] : 0;
}

/* Does p have just these values? Its rows in one source. */
static inline bool reference_agrees(struct reference *r, const struct profile *p, enum store_mode mode)
{
	size_t wanted = 0;
	for (size_t i = 0; i < r->keys.n; i++)
		for (int m = 0; m < METRICS; m++)
			if (p->metric[m] >= 0 && reference_value(r, &r->rows[i], m, mode)) {
				wanted++;
				break;
			}
	if (wanted != p->n_samples)
		fprintf(stderr, "%zu samples instead of %zu\n", p->n_samples, wanted);
	bool same = wanted == p->n_samples;
	for (size_t i = 0; i < p->n_samples && same; i++) {
		struct reference_row *row = reference_row(r, sample_text(p, i, WITH_SIZE));
		for (int m = 0; m < METRICS; m++) {
			int64_t value = p->metric[m] < 0 ? 0 : p->values[i * p->n_types + (size_t)p->metric[m]];
			int64_t right = p->metric[m] < 0 ? 0 : reference_value(r, row, m, mode);
			if (value == right)
				continue;
			char *text = sample_text(p, i, WITH_SIZE);
			fprintf(stderr, "%s: %s %lld instead of %lld\n", text, metric_name((enum metric)m), (long long)value, (long long)right);
			free(text);
			same = false;
		}
	}
	return same;
}

#endif
