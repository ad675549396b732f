/*
 * Small blocks are cut one after the other from chunks; freeing one gives its place back only when it was the last. That is
 * enough: what runs here grows a few arrays and ends. Large blocks are mappings, so growing one moves no bytes.
 */
#define AGENT_MEMORY_PLAIN
#include "agent/memory.h"

#include <stdio.h>
#include <sys/mman.h>

#define CHUNK ((size_t)256 << 10)
#define LARGE ((size_t)64 << 10)
#define PAGE ((size_t)4096)
#define ALIGN 16

/* Before each block. */
struct head {
	size_t bytes;               /* of the block; large: of the mapping, head included, with LARGE_BIT */
	size_t unused;
};
#define LARGE_BIT ((size_t)1 << 63)

/* At the beginning of a chunk, and of a large block's mapping before its head. */
struct region {
	struct region *next, *before;
	size_t mapped, used;
};

_Static_assert(sizeof(struct head) % ALIGN == 0 && sizeof(struct region) % ALIGN == 0, "blocks are aligned");

static struct {
	struct region *chunks, *large;
	size_t mapped, limit;
} memory;

static size_t page_up(size_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

static struct region *map_region(struct region **list, size_t bytes)
{
	if (bytes > memory.limit || memory.mapped > memory.limit - bytes)
		return NULL;
	struct region *r = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r == MAP_FAILED)
		return NULL;
	/* A child made meanwhile has none of it: nobody there could give it back. */
	madvise(r, bytes, MADV_DONTFORK);
	*r = (struct region){ .next = *list, .mapped = bytes, .used = sizeof *r };
	if (*list)
		(*list)->before = r;
	*list = r;
	memory.mapped += bytes;
	return r;
}

static void unmap_region(struct region **list, struct region *r)
{
	if (r->before)
		r->before->next = r->next;
	else
		*list = r->next;
	if (r->next)
		r->next->before = r->before;
	memory.mapped -= r->mapped;
	munmap(r, r->mapped);
}

void agent_memory_begin(size_t limit_bytes)
{
	memory.limit = limit_bytes;
}

void agent_memory_end(void)
{
	while (memory.chunks)
		unmap_region(&memory.chunks, memory.chunks);
	while (memory.large)
		unmap_region(&memory.large, memory.large);
	memory.limit = 0;
}

void agent_memory_forget(void)
{
	memset(&memory, 0, sizeof memory);
}

static struct head *head_of(void *block)
{
	return (struct head *)block - 1;
}

static struct region *large_region(void *block)
{
	return (struct region *)((char *)head_of(block) - sizeof(struct region));
}

static void *large_block(struct region *r)
{
	struct head *h = (struct head *)(r + 1);
	*h = (struct head){ .bytes = r->mapped | LARGE_BIT };
	return h + 1;
}

#define OVERHEAD (sizeof(struct region) + sizeof(struct head))

void *agent_malloc(size_t n)
{
	if (n > PTRDIFF_MAX - OVERHEAD - PAGE)
		return NULL;
	if (n >= LARGE) {
		struct region *r = map_region(&memory.large, page_up(n + OVERHEAD));
		return r ? large_block(r) : NULL;
	}
	size_t bytes = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	struct region *c = memory.chunks;
	if (!c || c->mapped - c->used < bytes + sizeof(struct head))
		c = map_region(&memory.chunks, CHUNK);
	if (!c)
		return NULL;
	struct head *h = (struct head *)((char *)c + c->used);
	h->bytes = bytes;
	c->used += sizeof *h + bytes;
	return h + 1;
}

void *agent_calloc(size_t n, size_t each)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, each, &bytes))
		return NULL;
	void *block = agent_malloc(bytes);
	/* A fresh mapping is zero already, and its pages are best left untouched. */
	if (block && !(head_of(block)->bytes & LARGE_BIT))
		memset(block, 0, bytes);
	return block;
}

/* Is the block the last of the newest chunk? */
static bool is_last(const struct head *h)
{
	const struct region *c = memory.chunks;
	return c && (const char *)(h + 1) + h->bytes == (const char *)c + c->used;
}

void agent_free(void *block)
{
	if (!block)
		return;
	struct head *h = head_of(block);
	if (h->bytes & LARGE_BIT)
		unmap_region(&memory.large, large_region(block));
	else if (is_last(h))
		memory.chunks->used -= sizeof *h + h->bytes;
}

static void *grow_large(void *block, size_t n)
{
	struct region *r = large_region(block);
	size_t had = r->mapped, wanted = page_up(n + OVERHEAD);
	if (wanted > had && (wanted > memory.limit || memory.mapped - had > memory.limit - wanted))
		return NULL;
	struct region *moved = mremap(r, had, wanted, MREMAP_MAYMOVE);
	if (moved == MAP_FAILED)
		return NULL;
	moved->mapped = wanted;
	if (moved->before)
		moved->before->next = moved;
	else
		memory.large = moved;
	if (moved->next)
		moved->next->before = moved;
	memory.mapped += wanted - had;
	return large_block(moved);
}

void *agent_realloc(void *block, size_t n)
{
	if (!block)
		return agent_malloc(n);
	if (n > PTRDIFF_MAX - OVERHEAD - PAGE)
		return NULL;
	struct head *h = head_of(block);
	if (h->bytes & LARGE_BIT)
		return grow_large(block, n);
	if (n <= h->bytes)
		return block;
	void *moved = agent_malloc(n);
	if (!moved)
		return NULL;
	memcpy(moved, block, h->bytes);
	agent_free(block);
	return moved;
}

char *agent_strdup(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = agent_malloc(n);
	if (copy)
		memcpy(copy, text, n);
	return copy;
}

/* --- sorting: a heap, in place -------------------------------------------- */

struct sorter {
	char *items;
	size_t each;
	agent_compare *plain;
	agent_compare_r *compare;
	void *context;
};

static int compare_at(const struct sorter *s, size_t a, size_t b)
{
	const char *x = s->items + a * s->each, *y = s->items + b * s->each;
	return s->plain ? s->plain(x, y) : s->compare(x, y, s->context);
}

static void swap_at(const struct sorter *s, size_t a, size_t b)
{
	char *x = s->items + a * s->each, *y = s->items + b * s->each;
	for (size_t left = s->each; left > 0;) {
		char between[64];
		size_t n = left < sizeof between ? left : sizeof between;
		memcpy(between, x, n);
		memcpy(x, y, n);
		memcpy(y, between, n);
		x += n, y += n, left -= n;
	}
}

static void sink_down(const struct sorter *s, size_t at, size_t n)
{
	for (size_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && compare_at(s, child, child + 1) < 0)
			child++;
		if (compare_at(s, at, child) >= 0)
			return;
		swap_at(s, at, child);
	}
}

static void sort(const struct sorter *s, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sink_down(s, i, n);
	while (n > 1) {
		swap_at(s, 0, --n);
		sink_down(s, 0, n);
	}
}

void agent_sort(void *items, size_t n, size_t each, agent_compare *compare)
{
	sort(&(struct sorter){ .items = items, .each = each, .plain = compare }, n);
}

void agent_sort_r(void *items, size_t n, size_t each, agent_compare_r *compare, void *context)
{
	sort(&(struct sorter){ .items = items, .each = each, .compare = compare, .context = context }, n);
}

const char *agent_strerror(int number)
{
#ifdef __GLIBC__
	const char *text = strerrordesc_np(number);
	return text ? text : "unknown error";
#else
	return strerror(number);
#endif
}
