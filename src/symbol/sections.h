/*
 * The sections with debug information of one ELF file, ready to be read: mapped where they lie, or decompressed (SHF_COMPRESSED
 * with zlib or zstd, and the older .zdebug_*) when they are first asked for.
 *
 * Every span may be read up to SPAN_SLACK bytes past its end (what is there means nothing): readers check once per entry
 * instead of once per byte.
 */
#ifndef SYMBOL_SECTIONS_H
#define SYMBOL_SECTIONS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/elf_image.h"
#include "base/error.h"

#define SPAN_SLACK ELF_IMAGE_SLACK

struct span {
	const uint8_t *at;           /* NULL: there is no such section */
	size_t n;
};

/*
 * .debug_info and so on. Of a .dwo or .dwp file those that end in ".dwo": also of an object file that has both, as
 * -gsplit-dwarf=single makes them. Of several sections of one name (object files), the first that is in no COMDAT group:
 * groups hold type units, which name no addresses.
 */
enum debug_section {
	DEBUG_INFO,
	DEBUG_TYPES,                 /* DWARF 4's type units */
	DEBUG_ABBREV,
	DEBUG_LINE,
	DEBUG_STR,
	DEBUG_LINE_STR,
	DEBUG_RANGES,
	DEBUG_RNGLISTS,
	DEBUG_ARANGES,
	DEBUG_ADDR,
	DEBUG_STR_OFFSETS,
	DEBUG_CU_INDEX,              /* of a .dwp */
	DEBUG_SECTIONS
};

struct debug_sections {
	const struct elf_image *image;       /* borrowed: must stay open */
	bool swapped;                        /* the other byte order than this machine's */
	bool split;                          /* those that end in ".dwo" are meant */
	uint64_t limit_bytes;                /* of decompressed bytes still allowed */
	struct span of[DEBUG_SECTIONS];      /* filled on demand; use sections_get() */
	bool asked[DEBUG_SECTIONS];          /* and answered, unless busy: a thread is at it, others wait for done */
	bool busy[DEBUG_SECTIONS];
	bool owned[DEBUG_SECTIONS];          /* mapped by us, with the slack */
	bool damaged;                        /* some section could not be decompressed, or is past the limit */
	bool too_big;                        /* it was past the limit, or past the memory that is there */
	pthread_mutex_t lock;                /* guards all of the above but image, swapped and split; not held while decompressing */
	pthread_cond_t done;
};

/* limit_bytes: of all that is decompressed. No section is read yet. */
void sections_init(struct debug_sections *s, const struct elf_image *image, uint64_t limit_bytes);
void sections_finish(struct debug_sections *s);

/* { NULL, 0 } when there is none or it is damaged. From any thread. */
struct span sections_get(struct debug_sections *s, enum debug_section which);
/* Decompresses what a join will read, by up to that many threads at once. Where there is little of it, nothing is done yet. */
void sections_unpack(struct debug_sections *s, size_t threads);
/* Bytes it has, decompressed, as it says itself; without decompressing it. */
uint64_t sections_bytes(const struct debug_sections *s, enum debug_section which);

#endif
