/*
 * What goes into the cache with answers, so that later it can be told whether they would be better today: what the binary itself had, and
 * which requests for files nobody answered.
 */
#ifndef SYMBOL_NOTES_H
#define SYMBOL_NOTES_H

#include "symbol/cache.h"
#include "symbol/elf_file.h"
#include "symbol/files.h"
#include "symbol/symbol.h"

#define NOTE_KINDS (FILE_DWP + 1)

/* A source of files that remembers what it did not have. */
struct note_taker {
	struct file_source inner;
	bool seen[NOTE_KINDS];
	uint32_t n_requests;
	struct buf requests;
};
void note_taker_init(struct note_taker *t, struct file_source inner);
void note_taker_finish(struct note_taker *t);
struct file_source note_taker_files(struct note_taker *t);

/* A block of answers goes into the cache, with the note. */
void note_and_keep(const struct note_taker *t, const struct elf_file *binary, const struct symbol_options *o, const void *block,
                   size_t block_bytes);
/* Would the segment's poor answers be as poor today? A few calls of stat. */
bool note_holds(const struct cache_segment *s, const struct elf_file *binary, const struct symbol_options *o);

#endif
