#include "record/queue.h"

#include <stdlib.h>

#define METRICS_MAX ((size_t)4 << 20)
#define LABELS_BYTES_MAX ((size_t)64 << 10)

struct item *item_new(_Atomic uint64_t *body_bytes)
{
	struct item *i = calloc(1, sizeof *i);
	if (!i)
		return NULL;
	i->body_bytes = body_bytes;
	buf_init(&i->body, BUF_MAX_DEFAULT);
	buf_init(&i->metrics, METRICS_MAX);
	arena_init(&i->arena, LABELS_BYTES_MAX);
	return i;
}

void item_count(struct item *i)
{
	uint64_t now = i->body.capacity + i->metrics.capacity;
	atomic_fetch_add_explicit(i->body_bytes, now - i->counted_bytes, memory_order_relaxed);
	i->counted_bytes = now;
}

void item_free(struct item *i)
{
	if (!i)
		return;
	buf_finish(&i->body);
	buf_finish(&i->metrics);
	i->body.capacity = i->metrics.capacity = 0;
	item_count(i);
	arena_finish(&i->arena);
	target_release(i->target);
	free(i);
}

void queue_init(struct queue *q)
{
	*q = (struct queue){ .n = 0 };
	q->end = &q->first;
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->filled, NULL);
}

void queue_finish(struct queue *q)
{
	while (q->first) {
		struct item *next = q->first->next;
		item_free(q->first);
		q->first = next;
	}
	pthread_cond_destroy(&q->filled);
	pthread_mutex_destroy(&q->lock);
}

static size_t bytes_of(const struct item *i)
{
	return i->body.len + i->metrics.len;
}

bool queue_add(struct queue *q, struct item *i)
{
	pthread_mutex_lock(&q->lock);
	/* One that is larger than all of it is taken when there is nothing else. */
	bool fits = !q->closed && q->n < QUEUE_ITEMS && (q->n == 0 || q->bytes + bytes_of(i) <= QUEUE_BYTES);
	if (fits) {
		i->next = NULL;
		*q->end = i;
		q->end = &i->next;
		q->n++;
		q->bytes += bytes_of(i);
		pthread_cond_signal(&q->filled);
	}
	pthread_mutex_unlock(&q->lock);
	return fits;
}

struct item *queue_take(struct queue *q, size_t max, size_t max_bytes)
{
	pthread_mutex_lock(&q->lock);
	while (!q->first && !q->closed)
		pthread_cond_wait(&q->filled, &q->lock);
	struct item *taken = q->first, **last = &q->first;
	for (size_t n = 0, bytes = 0; *last && n < max && (n == 0 || bytes + bytes_of(*last) <= max_bytes); n++) {
		bytes += bytes_of(*last);
		q->bytes -= bytes_of(*last);
		q->n--;
		last = &(*last)->next;
	}
	struct item *rest = *last;
	*last = NULL;
	q->first = rest;
	if (!rest)
		q->end = &q->first;
	pthread_mutex_unlock(&q->lock);
	return taken;
}

void queue_close(struct queue *q)
{
	pthread_mutex_lock(&q->lock);
	q->closed = true;
	pthread_cond_broadcast(&q->filled);
	pthread_mutex_unlock(&q->lock);
}

void queue_size(struct queue *q, size_t *ret_n, size_t *ret_bytes)
{
	pthread_mutex_lock(&q->lock);
	*ret_n = q->n;
	*ret_bytes = q->bytes;
	pthread_mutex_unlock(&q->lock);
}
