/*
 * Answers for addresses of one binary, as one block of bytes: what a worker hands to its parent and what the cache keeps. Strings
 * and frames are stored once; addresses are sorted, so an answer is found by bisection in the mapped bytes.
 *
 *   header | u64 addresses[n] | u32 first[n + 1] | u8 quality[n], padded to 8 | frames | strings, each ended by NUL
 *
 * In this machine's byte order: no other machine reads it.
 */
#ifndef SYMBOL_ANSWERS_H
#define SYMBOL_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/memory.h"

/* How much is known of an address: a higher one is worth asking again for when its source appears. */
enum answer_quality {
	ANSWER_NOTHING,              /* no frames */
	ANSWER_START,                /* "fn_2a300": where a function begins, by .eh_frame */
	ANSWER_EXPORTED,             /* .dynsym */
	ANSWER_SYMBOL,               /* .symtab */
	ANSWER_DEBUG,                /* debug information covers the address: as good as it gets */
};

/* Offsets into the strings; 0 is the empty string and means unknown. */
struct answer_frame {
	uint32_t function;           /* demangled */
	uint32_t system_name;        /* mangled; 0 when function is the name as it is */
	uint32_t file;
	uint32_t line, column, start_line;
};

/* --- reading --- */

struct answers {
	const uint64_t *addresses;   /* sorted, without repeats */
	const uint32_t *first;       /* frames[first[i] .. first[i + 1]): innermost inlined function first */
	const uint8_t *quality;
	const struct answer_frame *frames;
	const char *strings;
	size_t n, n_frames, strings_bytes;
};

/* Borrows bytes (8-aligned). E_FORMAT unless every offset in it is inside: a worker that was taken over can lie in names, not more. */
int answers_open(struct answers *a, const void *bytes, size_t n, struct error *err);
/* NULL for what is not known. */
static inline const char *answers_text(const struct answers *a, uint32_t offset)
{
	return offset ? a->strings + offset : NULL;
}

/* Index of the address, or SIZE_MAX. */
size_t answers_find(const struct answers *a, uint64_t address);

/* --- building --- */

struct answers_builder {
	uint64_t *addresses;         size_t n, addresses_capacity;
	uint32_t *first;             size_t first_capacity;
	uint8_t *quality;            size_t quality_capacity;
	struct answer_frame *frames; size_t n_frames, frames_capacity;
	struct buf strings;
	struct index index;          /* of strings, by their offset in the buf */
	uint32_t part;               /* its number, where offsets have it */
};

#define ANSWERS_PARTS_MAX 8

void answers_begin(struct answers_builder *b);
/* One of up to ANSWERS_PARTS_MAX that become one block; its offsets are to be used only in frames of those. */
void answers_begin_part(struct answers_builder *b, size_t number);
void answers_end(struct answers_builder *b);

/* Offset of a kept copy (up to a NUL in it); 0 for the empty text. UINT32_MAX when out of memory or past the limit of 512 MiB. */
uint32_t answers_string(struct answers_builder *b, const char *text, size_t length);
/* The same for what is put at the end of b->strings between the two calls; what begin returned is end's start. */
size_t answers_string_begin(struct answers_builder *b);
uint32_t answers_string_end(struct answers_builder *b, size_t start);
/* A string of this builder; until the next is added. */
const char *answers_string_text(const struct answers_builder *b, uint32_t offset);
/* Addresses come in ascending order (otherwise nobody opens the block). E_NOMEM. */
int answers_add(struct answers_builder *b, uint64_t address, enum answer_quality quality,
                const struct answer_frame *frames, size_t n, struct error *err);
/* The i-th of a, whose strings are kept, too; unless it has more frames than are worth it (64), and nothing happens. E_NOMEM. */
int answers_copy(struct answers_builder *b, const struct answers *a, size_t i);
/* The block, into an empty buf; the parts' addresses ascend from one to the next. E_NOMEM. */
int answers_write(const struct answers_builder *const *parts, size_t n, struct buf *ret, struct error *err);

#endif
