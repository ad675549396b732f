/*
 * How a profile's parts are written down: shared by those who write them (sqlite_translate.c), read them back (sqlite_profile.c) and
 * put names to them later (sqlite_names.c). Strings are store-wide numbers in the table strings; 0 is the empty one.
 */
#ifndef STORE_SQLITE_TRANSLATE_H
#define STORE_SQLITE_TRANSLATE_H

#include "store/sqlite_private.h"

/* What an offset of a frame of this build is: location_file_offset(), and how a mapping is made so that it comes out again. */
enum build_kind {
	BUILD_NONE,             /* no mapping: the address itself. Build number 0, no row */
	BUILD_FILE,             /* offset in the file */
	BUILD_FILE_SPACE,       /* address as the file's symbol table has it (mapping_is_file_space) */
	BUILD_MEMORY,           /* memory without a file: the address in the process */
};
enum build_kind build_kind_of(const struct profile *p, const struct mapping *m);
/* By build id, else by path; 0: there is none, or *ret_failed. */
uint32_t find_build(struct connection *c, enum build_kind kind, const char *build_id, const char *path, size_t path_n, int *ret_failed,
                    struct error *err);

/*
 * Lines of a location: their number; of each the function's name, system name, file (strings), its first line, line, column.
 * What a frame came with (own) has before that whether it was folded.
 */
typedef uint32_t string_number(void *context, uint32_t string);
void add_lines(struct buf *to, const struct profile *p, const struct location *l, string_number *number, void *context);

/* A column of numbers, one after the other; at is NULL when it is NULL. */
struct varint_reader column_numbers(sqlite3_stmt *q, int column);
/* The strings that a frame (its columns own and names) or a label set refers to, 0 for none. False: damaged, or visit says so. */
typedef bool string_visitor(void *context, uint64_t string);
bool frame_strings(sqlite3_stmt *q, int own, int names, string_visitor *visit, void *context);
bool label_strings(sqlite3_stmt *q, int column, string_visitor *visit, void *context);

/* The info of a slot: everything about a profile but its samples and its time. */
struct slot_info {
	struct source source;           /* name: a store's string */
	uint32_t main_build;
	int default_metric;             /* -1: none */
	uint32_t period_type, period_unit, drop_frames, keep_frames, doc_url;   /* a store's strings */
	int64_t period;
	struct varint_reader comments;
	uint64_t n_comments;
};
/* time_ms: of the slot, from which source.time_nanos is counted. False: damaged. */
bool slot_info_read(const uint8_t *bytes, size_t n, int64_t time_ms, struct slot_info *ret);

#endif
