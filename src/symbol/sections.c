/*
 * A section is found by name, once, and is either given out where it is mapped or unpacked into memory of its own. What a
 * compressed section says of its size is believed only as far as its format can reach: deflate makes at most 1,032 bytes
 * of one, zstd 32,768.
 */
#include "symbol/sections.h"

#include <elf.h>
#include <libdeflate.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif
#define DEFLATE_RATIO_MAX 1032
#define ZSTD_RATIO_MAX 32768
#define RATIO_FREE 65536         /* bytes that may always come out */
#define UNPACK_MIN ((uint64_t)4 << 20)   /* bytes worth a thread */
#define UNPACK_THREADS 4

static const char *const names[DEBUG_SECTIONS] = {
	[DEBUG_INFO] = "info",
	[DEBUG_TYPES] = "types",
	[DEBUG_ABBREV] = "abbrev",
	[DEBUG_LINE] = "line",
	[DEBUG_STR] = "str",
	[DEBUG_LINE_STR] = "line_str",
	[DEBUG_RANGES] = "ranges",
	[DEBUG_RNGLISTS] = "rnglists",
	[DEBUG_ARANGES] = "aranges",
	[DEBUG_ADDR] = "addr",
	[DEBUG_STR_OFFSETS] = "str_offsets",
	[DEBUG_CU_INDEX] = "cu_index",
};

enum packing { PLAIN, DEFLATE, ZSTD, UNKNOWN };

/* A section as it lies in the file. */
struct packed {
	const uint8_t *at;           /* NULL: there is none, or it isn't whole */
	size_t n;
	enum packing packing;
	uint64_t bytes;              /* unpacked, as it says */
};

/* The part of ".debug_NAME" or ".zdebug_NAME" behind the underscore, or NULL. */
static const char *part_of_name(const char *name, bool *ret_legacy)
{
	*ret_legacy = name[0] == '.' && name[1] == 'z';
	if (name[0] != '.' || strncmp(name + 1 + *ret_legacy, "debug_", 6) != 0)
		return NULL;
	return name + 7 + *ret_legacy;
}

static bool is_named(const struct debug_sections *s, enum debug_section which, const char *part)
{
	size_t n = strlen(names[which]);
	bool suffix = s->split && which != DEBUG_CU_INDEX;
	return strncmp(part, names[which], n) == 0 && strcmp(part + n, suffix ? ".dwo" : "") == 0;
}

static bool find(const struct debug_sections *s, enum debug_section which, struct elf_section *ret, bool *ret_legacy)
{
	struct elf_section x;
	bool found = false, legacy;
	for (uint32_t i = 0; elf_section(s->image, i, &x); i++) {
		const char *part = part_of_name(x.name, &legacy);
		if (!part || x.type == SHT_NOBITS || !x.bytes || !is_named(s, which, part) ||
		    (found && (x.flags & SHF_GROUP)))
			continue;
		*ret = x;
		*ret_legacy = legacy;
		found = true;
		if (!(x.flags & SHF_GROUP))
			break;
	}
	return found;
}

static enum packing packing_of(uint32_t type)
{
	switch (type) {
	case ELFCOMPRESS_ZLIB: return DEFLATE;
	case ELFCOMPRESS_ZSTD: return ZSTD;
	default: return UNKNOWN;
	}
}

/* SHF_COMPRESSED: a header with the type and the size comes first. */
static void open_compressed(const struct elf_image *e, struct packed *p)
{
	size_t header = e->is64 ? sizeof(Elf64_Chdr) : sizeof(Elf32_Chdr);
	uint32_t type;
	if (p->n < header) {
		p->packing = UNKNOWN;
		return;
	}
	memcpy(&type, p->at, sizeof(type));
	type = e->swapped ? __builtin_bswap32(type) : type;
	if (e->is64) {
		memcpy(&p->bytes, p->at + offsetof(Elf64_Chdr, ch_size), 8);
		p->bytes = e->swapped ? __builtin_bswap64(p->bytes) : p->bytes;
	} else {
		uint32_t bytes;
		memcpy(&bytes, p->at + offsetof(Elf32_Chdr, ch_size), 4);
		p->bytes = e->swapped ? __builtin_bswap32(bytes) : bytes;
	}
	p->packing = packing_of(type);
	p->at += header;
	p->n -= header;
}

/* .zdebug_*: "ZLIB" and the size, big-endian, come first; where they don't, it isn't compressed. */
static void open_legacy(struct packed *p)
{
	if (p->n < 12 || memcmp(p->at, "ZLIB", 4) != 0)
		return;
	p->bytes = 0;
	for (size_t i = 4; i < 12; i++)
		p->bytes = p->bytes << 8 | p->at[i];
	p->packing = DEFLATE;
	p->at += 12;
	p->n -= 12;
}

static bool look(const struct debug_sections *s, enum debug_section which, struct packed *ret)
{
	struct elf_section x;
	bool legacy;
	if (!find(s, which, &x, &legacy))
		return false;
	*ret = (struct packed){ elf_section_bytes(s->image, &x), x.bytes, PLAIN, x.bytes };
	if (ret->at && (x.flags & SHF_COMPRESSED))
		open_compressed(s->image, ret);
	else if (ret->at && legacy)
		open_legacy(ret);
	return true;
}

/* Could that many bytes come out? */
static bool is_credible(const struct packed *p)
{
	uint64_t ratio = p->packing == ZSTD ? ZSTD_RATIO_MAX : DEFLATE_RATIO_MAX;
	return p->bytes > 0 && p->bytes < SIZE_MAX / 2 &&
	       (p->bytes <= RATIO_FREE || (p->bytes - RATIO_FREE) / ratio <= p->n);
}

static bool unpack(const struct packed *p, uint8_t *to)
{
	if (p->packing == PLAIN) {
		memcpy(to, p->at, p->n);
		return true;
	}
	if (p->packing == ZSTD)
		return ZSTD_decompress(to, p->bytes, p->at, p->n) == p->bytes;
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	bool good = d && libdeflate_zlib_decompress(d, p->at, p->n, to, p->bytes, NULL) == LIBDEFLATE_SUCCESS;
	libdeflate_free_decompressor(d);
	return good;
}

/* NULL when it is damaged; with *ret_too_big, when there is no memory. */
static const uint8_t *unpack_mapped(const struct packed *p, bool *ret_too_big)
{
	size_t n = p->bytes + SPAN_SLACK;
	uint8_t *to = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*ret_too_big = to == MAP_FAILED;
	if (*ret_too_big)
		return NULL;
	/* A page fault costs as much as unpacking a page. */
	madvise(to, n, MADV_HUGEPAGE);
	if (unpack(p, to))
		return to;
	munmap(to, n);
	return NULL;
}

void sections_init(struct debug_sections *s, const struct elf_image *image, uint64_t limit_bytes)
{
	struct elf_section x;
	bool plain, split, legacy;
	*s = (struct debug_sections){ .image = image, .swapped = image->swapped, .limit_bytes = limit_bytes };
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->done, NULL);
	plain = find(s, DEBUG_INFO, &x, &legacy);
	s->split = true;
	split = find(s, DEBUG_INFO, &x, &legacy);
	s->split = split && (!plain || image->type == ET_REL);
}

void sections_finish(struct debug_sections *s)
{
	if (!s || !s->image)
		return;
	for (size_t i = 0; i < DEBUG_SECTIONS; i++)
		if (s->owned[i])
			munmap((void *)(uintptr_t)s->of[i].at, s->of[i].n + SPAN_SLACK);
	pthread_cond_destroy(&s->done);
	pthread_mutex_destroy(&s->lock);
	memset(s, 0, sizeof(*s));
}

/* Takes its bytes from the limit. The lock is held. */
static bool is_allowed(struct debug_sections *s, const struct packed *p)
{
	if (!p->at || p->packing == UNKNOWN || !is_credible(p))
		return false;
	if (p->packing == PLAIN)
		return true;
	if (p->bytes > s->limit_bytes) {
		s->too_big = true;
		return false;
	}
	s->limit_bytes -= p->bytes;
	return true;
}

/* The lock is held, but not meanwhile. */
static void read_section(struct debug_sections *s, enum debug_section which)
{
	struct packed p;
	if (!look(s, which, &p))
		return;
	if (!is_allowed(s, &p)) {
		s->damaged = true;
		return;
	}
	if (p.packing == PLAIN && s->image->mapped) {
		s->of[which] = (struct span){ p.at, p.n };
		return;
	}
	s->busy[which] = true;
	pthread_mutex_unlock(&s->lock);
	bool too_big;
	const uint8_t *at = unpack_mapped(&p, &too_big);
	pthread_mutex_lock(&s->lock);
	s->too_big |= too_big;
	if (at)
		s->of[which] = (struct span){ at, p.bytes };
	else
		s->damaged = true;
	s->owned[which] = at != NULL;
	s->busy[which] = false;
	pthread_cond_broadcast(&s->done);
}

struct span sections_get(struct debug_sections *s, enum debug_section which)
{
	pthread_mutex_lock(&s->lock);
	while (s->busy[which])
		pthread_cond_wait(&s->done, &s->lock);
	if (!s->asked[which]) {
		s->asked[which] = true;
		read_section(s, which);
	}
	struct span span = s->of[which];
	pthread_mutex_unlock(&s->lock);
	return span;
}

uint64_t sections_bytes(const struct debug_sections *s, enum debug_section which)
{
	struct packed p;
	return look(s, which, &p) && p.at && p.packing != UNKNOWN ? p.bytes : 0;
}

/* Sections that are compressed, biggest first. */
struct unpacking {
	struct debug_sections *sections;
	enum debug_section order[DEBUG_SECTIONS];
	size_t n;
	atomic_size_t next;          /* relaxed: it only hands out numbers */
};

static void *unpack_some(void *context)
{
	struct unpacking *u = context;
	size_t i;
	while ((i = atomic_fetch_add_explicit(&u->next, 1, memory_order_relaxed)) < u->n)
		sections_get(u->sections, u->order[i]);
	return NULL;
}

void sections_unpack(struct debug_sections *s, size_t threads)
{
	struct unpacking u = { .sections = s };
	uint64_t bytes[DEBUG_SECTIONS], all = 0;
	pthread_t helpers[UNPACK_THREADS];
	size_t started = 0;
	for (enum debug_section which = 0; which < DEBUG_SECTIONS; which++) {
		struct packed p;
		if (!look(s, which, &p) || !p.at || p.packing == PLAIN)
			continue;
		size_t i = u.n++;
		for (; i > 0 && bytes[i - 1] < p.bytes; i--) {
			bytes[i] = bytes[i - 1];
			u.order[i] = u.order[i - 1];
		}
		bytes[i] = p.bytes;
		u.order[i] = which;
		all = p.bytes < UINT64_MAX - all ? all + p.bytes : UINT64_MAX;
	}
	if (all < UNPACK_MIN)
		return;
	while (started < UNPACK_THREADS && started + 1 < threads && started + 1 < u.n &&
	       pthread_create(&helpers[started], NULL, unpack_some, &u) == 0)
		started++;
	unpack_some(&u);
	while (started > 0)
		pthread_join(helpers[--started], NULL);
}
