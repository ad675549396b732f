/*
 * Blocks go round: free, filled by the thread, ready, walked by the reader, free again. Where a block ends depends on the
 * data alone, not on who was faster. The last one holds what the thread did not look at.
 */
#include "format/ahead.h"

#include <pthread.h>
#include <stdlib.h>

#define BLOCKS 4

struct stack_ahead {
	size_t at;                  /* of the character behind "@", in the block */
	size_t first, n;            /* in the block's frames */
	uint64_t hash;
	size_t addresses;           /* distinct ones, up to and with this stack */
};

struct block {
	struct block *next;
	char *data;                 size_t n, capacity;
	size_t wanted;              /* bytes to fill it with */
	uint32_t *frames;           size_t n_frames, frames_capacity;
	struct stack_ahead *stacks; size_t n_stacks, stacks_capacity;
	size_t next_stack;          /* of those, the first that the reader has not passed */
};

struct ahead {
	struct lines_feed feed;
	pthread_t thread;
	size_t block_bytes;
	/* The thread's until it is joined, then the reader's. */
	struct lines lines;         /* stream and limits, for reading and for errors that nobody sees */
	struct frames *frames;
	char *carry;                size_t carry_n, carry_capacity;   /* the beginning of a line */
	bool ended, too_many;       /* why it stopped: the end of the input, past the limit for it, */
	struct error error;         /* an error of reading, or, with none of these, something unusual */
	/* The reader's. */
	bool joined;
	struct block *current;      /* what l->data points into; NULL: l->data is l's own */
	/* Shared, by lock; change is for each. */
	pthread_mutex_t lock;
	pthread_cond_t change;
	struct block *ready, *free;
	size_t n_blocks, most_blocks;
	bool cancelled;             /* the reader wants no more */
	bool stopped;               /* no block comes behind those that are ready */
};

/* The feed of l is its first member. */
static struct ahead *ahead_of(const struct lines *l)
{
	return (struct ahead *)l->feed;
}

static void block_free(struct block *b)
{
	if (!b)
		return;
	free(b->data);
	free(b->frames);
	free(b->stacks);
	free(b);
}

/* --- the thread ----------------------------------------------------------- */

static struct block *block_new(size_t bytes)
{
	struct block *b = calloc(1, sizeof(*b));
	if (b && !(b->data = malloc(bytes))) {
		free(b);
		return NULL;
	}
	if (b)
		b->capacity = bytes;
	return b;
}

/* With the lock held: a block that is free, or a new one as long as there may be more. */
static struct block *free_or_new(struct ahead *a)
{
	struct block *b = a->free;
	if (b) {
		a->free = b->next;
		return b;
	}
	if (a->n_blocks < a->most_blocks && (b = block_new(a->block_bytes)))
		a->n_blocks++;
	/* When there is no memory for another, those there are must do. */
	else if (a->n_blocks > 0)
		a->most_blocks = a->n_blocks;
	return b;
}

/* A block to fill; NULL when cancelled, or out of memory for even one, which ends all reading. */
static struct block *take_free(struct ahead *a)
{
	struct block *b = NULL;
	pthread_mutex_lock(&a->lock);
	while (!a->cancelled && !(b = free_or_new(a)) && a->n_blocks > 0)
		pthread_cond_wait(&a->change, &a->lock);
	bool failed = !b && !a->cancelled;
	pthread_mutex_unlock(&a->lock);
	if (failed)
		error_nomem(&a->error, "the lines of the input");
	if (b)
		b->n = b->n_frames = b->n_stacks = b->next_stack = 0;
	return b;
}

static void give(struct ahead *a, struct block *b, bool last)
{
	pthread_mutex_lock(&a->lock);
	struct block **end = &a->ready;
	while (*end)
		end = &(*end)->next;
	if (b)
		b->next = NULL;
	*end = b;
	a->stopped = last;
	pthread_cond_broadcast(&a->change);
	pthread_mutex_unlock(&a->lock);
}

/* Reads behind what the block holds until it is full. False: the input ended, or must not be read any further. */
static bool fill(struct ahead *a, struct block *b)
{
	struct lines *l = &a->lines;
	while (b->n < b->wanted) {
		size_t n;
		if (stream_read(l->in, b->data + b->n, b->wanted - b->n, &n, &a->error))
			return false;
		a->ended = n == 0;
		a->too_many = n > l->left;
		if (a->ended || a->too_many)
			return false;
		l->left -= n;
		b->n += n;
	}
	return true;
}

/* Reads the frames from at to end, where the line has its newline. */
static bool read_stack(struct ahead *a, struct block *b, const char *at, const char *end)
{
	struct frames *f = a->frames;
	struct error ignored;
	/* Room for one more, so that a stack without frames points somewhere, too. */
	if (frames_read(f, &a->lines, at, end, &ignored) ||
	    !memory_grow((void **)&b->frames, &b->frames_capacity, b->n_frames + f->stack_n + 1, sizeof(*b->frames),
	                 SIZE_MAX / sizeof(*b->frames)))
		return false;
	struct stack_ahead *s = ARRAY_PUSH(b->stacks, b->n_stacks, b->stacks_capacity, SIZE_MAX / sizeof(*b->stacks));
	if (!s)
		return false;
	*s = (struct stack_ahead){ (size_t)(at - b->data), b->n_frames, f->stack_n,
		                   profile_stack_hash(f->stack, f->stack_n), f->n };
	if (f->stack_n > 0)
		memcpy(b->frames + b->n_frames, f->stack, f->stack_n * sizeof(*f->stack));
	b->n_frames += f->stack_n;
	return true;
}

/* Reads the stacks of the block's whole lines. Returns where the first line begins that it leaves to the reader. */
static size_t read_stacks(struct ahead *a, struct block *b)
{
	const char *line = b->data, *newline;
	while ((newline = memchr(line, '\n', (size_t)(b->data + b->n - line)))) {
		const char *at = line, *end = newline;
		while (at < end && (*at == ' ' || *at == '\t'))
			at++;
		end -= end > at && end[-1] == '\r';
		if (at < end && *at == '@' && !read_stack(a, b, at + 1, end))
			break;
		line = newline + 1;
	}
	return (size_t)(line - b->data);
}

/* What the block has behind at begins the next one. */
static bool carry(struct ahead *a, struct block *b, size_t at)
{
	a->carry_n = b->n - at;
	if (!memory_grow((void **)&a->carry, &a->carry_capacity, a->carry_n, 1, SIZE_MAX))
		return false;
	if (a->carry_n > 0)
		memcpy(a->carry, b->data + at, a->carry_n);
	b->n = at;
	return true;
}

/* A block begins with what was carried over. */
static struct block *begin_block(struct ahead *a)
{
	struct block *b = take_free(a);
	if (!b)
		return NULL;
	b->wanted = a->carry_n + a->block_bytes;
	if (!memory_grow((void **)&b->data, &b->capacity, b->wanted, 1, SIZE_MAX)) {
		error_nomem(&a->error, "the lines of the input");
		block_free(b);
		return NULL;
	}
	if (a->carry_n > 0)
		memcpy(b->data, a->carry, a->carry_n);
	b->n = a->carry_n;
	return b;
}

/*
 * The last block counts as not looked at: the input ends in it, its first line is longer than a block or wrong, for
 * which the reader has the words, or there is no memory for what would be carried over.
 */
static void *work(void *context)
{
	struct ahead *a = context;
	bool last = false;
	while (!last) {
		struct block *b = begin_block(a);
		size_t at = b && fill(a, b) ? read_stacks(a, b) : 0;
		last = at == 0 || !carry(a, b, at);
		give(a, b, last);
	}
	return NULL;
}

/* --- the reader ----------------------------------------------------------- */

static void free_list(struct block *b)
{
	for (struct block *next; b; b = next) {
		next = b->next;
		block_free(b);
	}
}

/* The thread has ended, or is told to. */
static void end_thread(struct ahead *a)
{
	pthread_mutex_lock(&a->lock);
	a->cancelled = true;
	pthread_cond_broadcast(&a->change);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	free_list(a->ready);
	free_list(a->free);
	free(a->carry);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->change);
	a->ready = a->free = NULL;
	a->carry = NULL;
	a->joined = true;
}

static void ahead_finish(struct lines *l)
{
	struct ahead *a = ahead_of(l);
	if (!a->joined)
		end_thread(a);
	if (a->current)
		l->data = NULL;         /* it was the block's */
	block_free(a->current);
	free(a);
	l->feed = NULL;
}

/* Gives the block that was walked back, and waits for the next one. NULL: there is none. */
static struct block *next_block(struct ahead *a, bool *ret_last)
{
	pthread_mutex_lock(&a->lock);
	if (a->current) {
		a->current->next = a->free;
		a->free = a->current;
		pthread_cond_broadcast(&a->change);
	}
	while (!a->ready && !a->stopped)
		pthread_cond_wait(&a->change, &a->lock);
	struct block *b = a->ready;
	if (b)
		a->ready = b->next;
	*ret_last = a->stopped && !a->ready;
	pthread_mutex_unlock(&a->lock);
	a->current = b;
	return b;
}

/* Why there is nothing behind what the thread has left. */
static int end_error(const struct lines *l, struct error *err)
{
	const struct ahead *a = ahead_of(l);
	if (a->too_many)
		return lines_too_many(l, err);
	if (err)
		*err = a->error;
	return a->error.code;
}

/*
 * The thread has stopped: what it left becomes l's own, and l goes on alone, unless the input must not be read any
 * further: then ahead stays, with the reason, for the next call.
 */
static void take_over(struct lines *l)
{
	struct ahead *a = ahead_of(l);
	end_thread(a);
	l->left = a->lines.left;
	l->ended = a->ended;
	if (a->current) {
		l->capacity = a->current->capacity;
		a->current->data = NULL;
		block_free(a->current);
		a->current = NULL;
	}
	if (!a->too_many && !a->error.code)
		ahead_finish(l);
}

static int ahead_next(struct lines *l, struct error *err)
{
	struct ahead *a = ahead_of(l);
	bool last, own = !a->current;
	if (a->joined)
		return end_error(l, err);
	struct block *b = next_block(a, &last);
	if (own)
		free(l->data);
	l->data = b ? b->data : NULL;
	l->at = 0;
	l->end = b ? b->n : 0;
	if (!b) {
		end_thread(a);
		return end_error(l, err);
	}
	if (last)
		take_over(l);
	return E_OK;
}

void ahead_start(struct lines *l, struct frames *f, size_t block_bytes)
{
	struct ahead *a = calloc(1, sizeof(*a));
	if (!a)
		return;
	a->lines = *l;
	a->lines.data = NULL;
	a->feed = (struct lines_feed){ ahead_next, ahead_finish };
	a->frames = f;
	a->block_bytes = block_bytes;
	a->most_blocks = BLOCKS;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->change, NULL);
	if (pthread_create(&a->thread, NULL, work, a) == 0) {
		l->feed = &a->feed;
		return;
	}
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->change);
	free(a);
}

bool ahead_stack(const struct lines *l, const char *behind_at, struct ahead_stack *ret)
{
	struct block *b = l->feed ? ahead_of(l)->current : NULL;
	size_t at = (size_t)(behind_at - l->data);
	if (!b)
		return false;
	while (b->next_stack < b->n_stacks && b->stacks[b->next_stack].at < at)
		b->next_stack++;
	const struct stack_ahead *s = b->stacks + b->next_stack;
	if (b->next_stack == b->n_stacks || s->at != at)
		return false;
	*ret = (struct ahead_stack){ b->frames + s->first, s->n, s->hash,
		                     b->next_stack + 1 < b->n_stacks ? s[1].hash : 0, s->addresses };
	return true;
}
