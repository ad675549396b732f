/*
 * What a library inside another program would link: exactly the files of jeheap_stream_sources, and zlib.
 *
 *   convert COUNTS FILE [BASE]   header, raw or unbiased; writes pprof to standard output
 *   memory STACKS BYTES          converts a made-up dump of that many stacks, with one of half as many as base: is the most
 *                                memory that is taken at once, without the base, below that, and the same as for half as many?
 */
#include "format/format.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is allocated (with --wrap for the four) -------------------------- */

static size_t bytes, most;

static void *count(void *p)
{
	bytes += malloc_usable_size(p);
	most = bytes > most ? bytes : most;
	return p;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

void *__wrap_malloc(size_t n)
{
	return count(__real_malloc(n));
}

void *__wrap_calloc(size_t n, size_t size)
{
	return count(__real_calloc(n, size));
}

/* The old block and the new one, as where they cannot be moved by remapping. */
void *__wrap_realloc(void *p, size_t n)
{
	size_t old = malloc_usable_size(p);
	void *grown = __real_realloc(p, n);
	if (grown) {
		count(grown);
		bytes -= old;
	}
	return grown;
}

void __wrap_free(void *p)
{
	bytes -= malloc_usable_size(p);
	__real_free(p);
}

_Noreturn static void die(const char *text)
{
	fprintf(stderr, "jeheap_stream_client: %s\n", text);
	exit(1);
}

/* --- converting ----------------------------------------------------------- */

static int write_out(void *context, const void *block, size_t n, struct error *err)
{
	(void)context;
	return fwrite(block, 1, n, stdout) == n ? E_OK : error_set(err, E_IO, "cannot write");
}

static struct jeheap_base *base_of(struct stream *in, enum jeheap_counts counts)
{
	struct jeheap_base *base;
	struct error err;
	if (jeheap_base_read(in, &read_limits_default, counts, &base, &err))
		die(err.text);
	stream_close(in);
	return base;
}

static void open_file(struct stream *in, const char *path)
{
	struct error err;
	if (stream_open(in, path, &err))
		die(err.text);
}

static int convert(const char *word, const char *path, const char *base)
{
	struct stream in;
	struct error err;
	struct jeheap_stream_options o = { .counts = JEHEAP_COUNTS_BY_HEADER, .comment = "converted while it was read" };
	if (strcmp(word, "header"))
		o.counts = strcmp(word, "raw") ? JEHEAP_COUNTS_UNBIASED : JEHEAP_COUNTS_RAW;
	if (base) {
		open_file(&in, base);
		o.base = base_of(&in, o.counts);
	}
	open_file(&in, path);
	if (jeheap_to_pprof(&in, &read_limits_default, &o, write_out, NULL, &err))
		die(err.text);
	stream_close(&in);
	jeheap_base_free(o.base);
	return fflush(stdout) ? 1 : 0;
}

/* --- how much memory ------------------------------------------------------ */

enum { DEPTH = 41, ADDRESSES = 9000 };

/* A dump that is nowhere: its stacks are made as they are read. */
struct made_up {
	size_t stacks, next;
	char text[4096];
	size_t n, at;
};

static void make_stack(struct made_up *m, size_t i)
{
	uint64_t random = hash_u64(i + 1);
	m->n = (size_t)snprintf(m->text, sizeof m->text, "@");
	for (int k = 0; k < DEPTH; k++) {
		random = hash_u64(random + 1);
		m->n += (size_t)snprintf(m->text + m->n, sizeof m->text - m->n, " 0x%llx",
		                         0x7f1234000000ull + random % ADDRESSES * 16);
	}
	m->n += (size_t)snprintf(m->text + m->n, sizeof m->text - m->n, "\n  t*: 2: 500 [0: 0]\n  t%zu: 2: 500 [0: 0]\n", i % 9);
}

static int made_up_fill(struct stream *s, void *to, size_t room, size_t *ret_n, struct error *err)
{
	struct made_up *m = s->context;
	(void)err;
	if (m->at == m->n) {
		m->at = m->n = 0;
		if (m->next == 0)
			m->n = (size_t)snprintf(m->text, sizeof m->text, "heap_v2/524288\n  t*: 9: 9 [0: 0]\n");
		else if (m->next <= m->stacks)
			make_stack(m, m->next);
		else if (m->next == m->stacks + 1)
			m->n = (size_t)snprintf(m->text, sizeof m->text, "\nMAPPED_LIBRARIES:\n"
			                        "7f1234000000-7f1234100000 r-xp 00000000 08:01 77 /lib/libx.so\n");
		m->next++;
	}
	*ret_n = m->n - m->at < room ? m->n - m->at : room;
	memcpy(to, m->text + m->at, *ret_n);
	m->at += *ret_n;
	return E_OK;
}

static int count_out(void *context, const void *block, size_t n, struct error *err)
{
	size_t *sum = context;
	(void)block, (void)err;
	*sum += n;
	return E_OK;
}

/* The most that was taken at once. */
static size_t made_up(size_t stacks, size_t base_stacks)
{
	static struct made_up m;
	struct stream in = { .fill = made_up_fill, .name = "made up", .context = &m, .fd = -1 };
	struct jeheap_stream_options o = { .counts = JEHEAP_COUNTS_UNBIASED };
	struct error err;
	size_t written = 0;
	bytes = most = 0;
	m = (struct made_up){ .stacks = base_stacks };
	if (base_stacks)
		o.base = base_of(&in, o.counts);
	m = (struct made_up){ .stacks = stacks };
	in = (struct stream){ .fill = made_up_fill, .name = "made up", .context = &m, .fd = -1 };
	if (jeheap_to_pprof(&in, &read_limits_default, &o, count_out, &written, &err))
		die(err.text);
	stream_close(&in);
	jeheap_base_free(o.base);
	if (bytes)
		die("not all memory was given back");
	printf("%zu stacks, base of %zu: %zu bytes written, at most %zu bytes of memory at once\n", stacks, base_stacks, written,
	       most);
	return most;
}

static int memory(size_t stacks, size_t limit)
{
	size_t whole = made_up(stacks, 0), half = made_up(stacks / 2, 0);
	made_up(stacks, stacks / 2);
	/* Blocks may be a little larger than what was asked for. */
	return whole <= limit && whole < half + (64 << 10) ? 0 : 1;
}

int main(int argc, char **argv)
{
	size_t stacks, limit;
	if (argc >= 4 && !strcmp(argv[1], "convert"))
		return convert(argv[2], argv[3], argv[4]);
	if (argc == 4 && !strcmp(argv[1], "memory") && sscanf(argv[2], "%zu", &stacks) == 1 && sscanf(argv[3], "%zu", &limit) == 1)
		return memory(stacks, limit);
	fprintf(stderr, "usage: jeheap_stream_client convert header|raw|unbiased FILE [BASE] | memory STACKS BYTES\n");
	return 2;
}
