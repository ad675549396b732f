/*
 * Readers and writers. A reader turns bytes into a profile or a single error that names
 * the place; it never returns part of a profile as if it were whole. A writer turns a
 * profile or a view into bytes in a buf (which carries the limit).
 */
#ifndef FORMAT_FORMAT_H
#define FORMAT_FORMAT_H

#include "base/file.h"
#include "profile/profile.h"
#include "profile/view.h"

struct read_limits {
	size_t input_bytes;         /* of the (decompressed) input: E_LIMIT past it */
	size_t profile_bytes;       /* of any one array of the profile */
	uint32_t depth;             /* frames of one stack */
	uint32_t gzip_ratio;        /* decompressed / compressed, once past gzip_ratio_from bytes */
	size_t gzip_ratio_from;
	bool partial;               /* --partial: a truncated or damaged tail is reported as a warning, the rest is kept */
};

extern const struct read_limits read_limits_default;   /* 4 GiB, 8 GiB, 65,536, 200 after 64 MiB */

/* What a reader wants to say besides the profile; texts end in newline. May be NULL. */
struct read_report {
	struct buf warnings;
};

/*
 * Reads one profile, recognized by content: jemalloc dump, gperftools text, pprof, folded; each plain or
 * gzip. name is what messages and the source's name say. The only call that commands need.
 */
int format_read(struct stream *in, const struct read_limits *limits, struct read_report *report,
                struct profile **ret, struct error *err);

/* --- one format each (jeheap.c, gperf.c, pprof_read.c, folded.c) --- */

/*
 * jemalloc's heap_v2 text, streamed in blocks, lines of any length. One sample per (stack, thread)
 * with label thread ("t3" or "t3 name"); counts unsampled line by line, once. Unbiased dumps take the
 * stack's t* line as the sum and split it over its threads; raw dumps sum the finest lines.
 * Types: inuse_*, and alloc_* when any accumulated count is there.
 * A dump whose end is missing (no MAPPED_LIBRARIES and sums short of the header's) is E_TRUNCATED.
 */
int jeheap_read(struct stream *in, const struct read_limits *limits, struct read_report *report,
                struct profile **ret, struct error *err);

/* "heap profile: N: B [N: B] @ heap_v2/R|heapprofile|..." of gperftools and jemalloc 3. */
int gperf_read(struct stream *in, const struct read_limits *limits, struct read_report *report,
               struct profile **ret, struct error *err);

/*
 * profile.proto, already decompressed. Errors name the field and the byte offset. What google/pprof's reader accepts is
 * accepted. Samples that pprof -diff_base marked as the base (negative, label pprof::base) come under a base source, with
 * their sign restored. limits->partial changes nothing here: half a message is no profile.
 */
int pprof_read(const void *bytes, size_t n, const char *name, const struct read_limits *limits,
               struct profile **ret, struct error *err);

struct pprof_write_options {
	bool gzip;
	bool show_allocator;    /* no drop_frames but the profile's own: viewers keep the allocator's frames */
};

/*
 * As every viewer likes it (see pprof_write.c): only what samples use, dense ids, each location named ("binary!0xoffset"
 * when nothing else is known), UTF-8, drop_frames for the allocator unless the profile has its own. A diff's base is written
 * as pprof -diff_base does. Several sources become one: the latest time, the sum of the durations, the coarsest rate.
 */
int pprof_write(const struct profile *p, const struct pprof_write_options *o, struct buf *out,
                struct error *err);

/* "a;b;c 123" lines, root first. An unsampled profile with one type ("space", "bytes") and function names only. */
int folded_read(struct stream *in, const struct read_limits *limits, struct read_report *report,
                struct profile **ret, struct error *err);

/* --- heap_v2 becomes pprof while it is read: for the agent, which must not hold a profile (jeheap_stream.c) --- */

/* Takes the gzipped bytes as they come. What it returns besides E_OK ends the whole, with its err. */
typedef int pprof_sink(void *context, const void *bytes, size_t n, struct error *err);

enum jeheap_counts {
	/* What the header tells: raw when its threads, of different mean sizes, add up to the t* line. E_UNSUPPORTED when the
	   stacks show something else, as a single thread's raw counts can. */
	JEHEAP_COUNTS_BY_HEADER,
	JEHEAP_COUNTS_RAW,              /* jemalloc before 5.3, or its opt.prof_unbias is false */
	JEHEAP_COUNTS_UNBIASED,
};

struct jeheap_base;

struct jeheap_stream_options {
	enum jeheap_counts counts;
	int64_t time_nanos, duration_nanos;
	const char *comment;            /* NULL: none */
	const char *default_type;       /* "alloc_space"; NULL, or one that the dump does not have: inuse_space */
	/* The build id of the file that is mapped at start: how many bytes (at most 64; 0: unknown), and where. NULL: none. */
	size_t (*build_id)(void *context, const char *path, uint64_t start, const uint8_t **ret_bytes);
	void *build_id_context;
	struct jeheap_base *base;       /* NULL, or what is taken off, which uses it up: see below */
};

/*
 * Says what jeheap_read and pprof_write would, but for names: no functions, also none made up, so that pprof looks for them in
 * the files or at /debug/pprof/symbol; every frame that the dump has; locations by first appearance. Needs memory for
 * the distinct addresses, not for the stacks. in is read to its end, as it grows. Damage is always an error, limits->partial or
 * not, and then what the sink got has no end: it is never a whole gzip file. Besides what jeheap_read refuses, a dump that
 * ends without an empty line behind its stacks (E_TRUNCATED) unless its counts add up, and E_UNSUPPORTED for what
 * only its end could tell: see jeheap_counts, and accumulated counts that the header has not.
 */
int jeheap_to_pprof(struct stream *in, const struct read_limits *limits, const struct jeheap_stream_options *o,
                    pprof_sink *sink, void *context, struct error *err);

/*
 * What an earlier dump of the same process counts, some 40 bytes a stack. With it as base, samples are what has been allocated
 * since and is still live: for each stack and thread the amount now less that of the base, of each type, not below
 * zero; a block size is kept where both agree on it. A stack is known by a 64-bit hash of its addresses.
 */
int jeheap_base_read(struct stream *in, const struct read_limits *limits, enum jeheap_counts counts,
                     struct jeheap_base **ret, struct error *err);
void jeheap_base_free(struct jeheap_base *b);

/* --- text written from a view; deterministic, equal stacks merged --- */

int folded_write(struct view *v, struct buf *out, struct error *err);      /* a diff: two numbers, base and now */
int speedscope_write(struct view *v, const char *title, struct buf *out, struct error *err);
int callgrind_write(struct view *v, const char *command, struct buf *out, struct error *err);
int csv_write(struct view *v, struct buf *out, struct error *err);         /* one line per row: values, interval, thread, block size, stack */
int json_write(struct view *v, struct buf *out, struct error *err);        /* the same as JSON, with sources and totals */

/* --- gzip (gz.c) --- */

bool gz_is(const uint8_t *head, size_t n);
/* Whole buffer, all members; checks CRC and length; the output's limits are limits->input_bytes and the ratio. */
int gz_inflate(const void *bytes, size_t n, const char *name, const struct read_limits *limits,
               struct buf *out, struct error *err);
/*
 * One gzip member, appended to out, the same bytes however many threads there are, made of pieces of some GZ_PIECE bytes by a few
 * threads (deflate.c). Adding takes a piece's bytes and leaves it empty; a piece added for later is made by one of the
 * threads, of which each call has another buf: what context points to must not change before finish, which takes
 * the last piece and frees the writer. out is only touched then. NULL when out of memory.
 */
#define GZ_PIECE ((size_t)2 << 20)
struct gz_writer;
typedef void gz_make(const void *context, size_t first, size_t n, struct buf *to);
struct gz_writer *gz_writer_new(struct buf *out);
void gz_writer_add(struct gz_writer *g, struct buf *piece);
void gz_writer_add_later(struct gz_writer *g, gz_make *make, const void *context, size_t first, size_t n);
int gz_writer_finish(struct gz_writer *g, struct buf *piece, struct error *err);
/* All at once. */
int gz_deflate(const void *bytes, size_t n, struct buf *out, struct error *err);
/* Streaming: makes *out a stream of the decompressed bytes of in (borrowed until out is closed). */
int gz_stream(struct stream *in, const struct read_limits *limits, struct stream *ret_out, struct error *err);

/* --- maps (maps.c) --- */

/*
 * One line of /proc/PID/maps, of FreeBSD's /proc/curproc/map, or "start-end: path" (macOS, gperftools), without newline.
 * Paths may hold blanks; " (deleted)" is split off. 1: filled, 0: blank or not a mapping line.
 */
int maps_parse_line(const char *line, size_t n, struct mapping *ret, const char **ret_path,
                    size_t *ret_path_n);

/*
 * Mappings being collected, then looked up by address. After maps_add_line of all lines (1: one more, 0: not a mapping
 * line, negative: no memory), maps_finish sorts them and joins neighbours of one file that continue each other.
 * The kernel's \012 for a newline in a path is undone.
 */
struct maps;
struct maps *maps_new(void);
void maps_free(struct maps *m);
int maps_add_line(struct maps *m, struct profile *p, const char *line, size_t n, struct error *err);
/* The line before the mappings in a dump's text: "MAPPED_LIBRARIES:", or gperftools' "--- Memory map:". */
bool maps_begin(const char *line, size_t n);
/* One was seen that the kernel lists behind all files: [stack], [vsyscall]. */
bool maps_ended(const struct maps *m);
/* Before maps_finish. E_TRUNCATED when the list ends too early: an address lies behind the last mapping, and it hasn't ended. */
int maps_check_end(const struct maps *m, const char *name, const uint64_t *addresses, size_t n,
                   struct error *err);
/*
 * Adds to p the mappings that hold one of the addresses or are executable files, the main program first; then maps_find
 * gives profile indexes.
 */
int maps_finish(struct maps *m, struct profile *p, const uint64_t *addresses, size_t n,
                struct error *err);
uint32_t maps_find(const struct maps *m, uint64_t address);   /* profile mapping index or PROFILE_NONE */

#endif
