/*
 * Between those who receive profiles and the one thread that stores them: bounded in number and in bytes. What doesn't fit isn't taken.
 */
#ifndef RECORD_QUEUE_H
#define RECORD_QUEUE_H

#include <pthread.h>

#include "base/buf.h"
#include "http/server.h"
#include "record/targets_private.h"

#define QUEUE_ITEMS ((size_t)1024)
#define QUEUE_BYTES ((size_t)64 << 20)
#define PUSH_LABELS_MAX 64

/* What was received, of a target or of a push. Bytes at hand are counted in body_bytes. */
struct item {
	struct item *next;
	struct buf body;
	struct buf metrics;                 /* Prometheus' text, or empty */
	int64_t time_ms;                    /* since 1970: when it was asked for, or came */
	int64_t began_ms;                   /* CLOCK_MONOTONIC */
	uint64_t body_limit, sample_limit;
	struct target *target;              /* a reference; NULL: a push */
	struct arena arena;                 /* a push's labels, sorted */
	struct store_label *labels;
	size_t n_labels;
	struct http_ticket ticket;
	_Atomic uint64_t *body_bytes;
	uint64_t counted_bytes;
};

/* NULL: no memory. */
struct item *item_new(_Atomic uint64_t *body_bytes);
void item_free(struct item *i);        /* NULL is fine */
/* Its bytes as they are now, into body_bytes. */
void item_count(struct item *i);

struct queue {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct item *first, **end;
	size_t n, bytes;
	bool closed;
};

void queue_init(struct queue *q);
void queue_finish(struct queue *q);
/* False, and the item stays the caller's: it is full or closed. */
bool queue_add(struct queue *q, struct item *i);
/*
 * Waits for something, then takes up to max items of together about so many bytes, at least one; linked by next. NULL: it is closed and empty.
 */
struct item *queue_take(struct queue *q, size_t max, size_t max_bytes);
/* Takes no more; what is in it can still be taken. */
void queue_close(struct queue *q);
void queue_size(struct queue *q, size_t *ret_n, size_t *ret_bytes);

#endif
