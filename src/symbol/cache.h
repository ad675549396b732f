/*
 * Answers that were worked out before, a file for each build id in $XDG_CACHE_HOME/heapgauge (else ~/.cache/heapgauge): blocks of answers
 * (answers.h), one behind the other, each with a note of whoever put it there. A build id names what is in a binary, so answers never
 * become wrong; they can become poor, when more debug information is found than there was, and the note is to tell.
 *
 *   header | segment: head, note, padding, block, padding | segment | ...
 *
 * Several processes read and write at once. Files only grow, or are replaced as a whole, so what was mapped stays. A writer
 * that is killed leaves a segment whose checksum is wrong: nobody reads it, the next writer puts its own there. What is damaged, of
 * another version, or of another user is as if it weren't there, and so is the cache where it can't be written; nothing
 * here fails.
 *
 * HEAPGAUGE_CACHE=off: there is no cache.
 */
#ifndef SYMBOL_CACHE_H
#define SYMBOL_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/answers.h"

/* To be raised when answers for the same files come out differently: better names, other frames. */
#define CACHE_NAMES 1

#define CACHE_FILE_MAX ((size_t)32 << 20)       /* bytes of one file: about 170,000 addresses */
#define CACHE_ALL_MAX ((uint64_t)512 << 20)     /* of all files; those that were not used for longest go first */
#define CACHE_SEGMENTS 16                       /* with one more some are merged into one */

struct cache_segment {
	struct answers answers;
	const char *note;
	size_t note_bytes, block_bytes;
	uint64_t time;               /* seconds since 1970 when it was found out */
	bool was_judged, holds;      /* its poor answers; the reader's to fill */
};

struct cache_file {
	struct cache_segment segments[CACHE_SEGMENTS];  /* newest first */
	size_t n;
	void *mapping;
	size_t mapping_bytes;
};

/* What is there for a build id (lower-case hex; of less than 8 bytes it is too little of a name). c has no segments when nothing is. */
void cache_open(struct cache_file *c, const char *build_id);
void cache_close(struct cache_file *c);

/* Keeps a block with its note (at most CACHE_NOTE_MAX bytes). */
#define CACHE_NOTE_MAX ((size_t)64 << 10)
void cache_append(const char *build_id, const void *block, size_t block_bytes, const void *note, size_t note_bytes);

/* The segments in those bytes (8-aligned), which stay the caller's; where the next one would go, or 0 when they are no cache file. */
size_t cache_read(struct cache_file *c, const void *bytes, size_t n, const char *build_id);

#endif
