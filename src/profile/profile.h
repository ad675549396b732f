/*
 * The model. A profile is a set of samples: a stack with labels and one value per
 * sample type. Everything is stored once and named by a dense number: strings,
 * mappings, functions, locations, stacks, label sets.
 *
 *   sample -> stack -> locations (leaf first) -> mapping + address   (before symbols)
 *                                             -> lines -> functions  (after)
 *          -> label set (thread, block size, ...)
 *          -> source: the process and rate the numbers came from
 *
 * Addresses are those of the process the profile came from, already one less than the
 * return address, so that they lie inside the call. What makes two frames the same is
 * not the address but (build id or path, offset in the file): location_file_offset().
 * Values are estimates (unsampled); estimate.h tells their error.
 *
 * Building: call the profile_add_ and profile_intern_ functions. Failure (no memory, a
 * limit) is sticky: they then return 0 and do nothing, and profile_finish tells why.
 * A profile belongs to one thread at a time.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include "base/error.h"
#include "base/memory.h"
#include "base/strings.h"

#define PROFILE_NONE UINT32_MAX
#define PROFILE_MAX_DEPTH 65536         /* frames of one stack */

/* pprof's names; indexes of profile.metric[]. */
enum metric { ALLOC_OBJECTS, ALLOC_SPACE, INUSE_OBJECTS, INUSE_SPACE, METRICS };

const char *metric_name(enum metric m);            /* "inuse_space" */
const char *metric_unit(enum metric m);            /* "bytes", "count" */

struct sample_type {
	uint32_t type, unit;                       /* strings */
};

struct mapping {
	uint64_t start, limit;                     /* addresses in the process */
	uint64_t offset;                           /* of start in the file */
	uint32_t file;                             /* path, as the process saw it, without " (deleted)" */
	uint32_t build_id;                         /* lower-case hex, or the empty string */
	uint64_t inode;                            /* 0 when unknown */
	bool executable;
	bool deleted;                              /* the file was already gone */
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct function {
	uint32_t name;                             /* demangled */
	uint32_t system_name;                      /* as the linker saw it */
	uint32_t file;
	int64_t start_line;
};

struct line {
	uint32_t function;                         /* index into functions */
	uint32_t column;
	int64_t line;                              /* 0: unknown */
};

struct location {
	uint64_t address;
	uint32_t mapping;                          /* index, or PROFILE_NONE */
	uint32_t first_line, n_lines;              /* into lines: innermost inlined function first */
	bool folded;
};

struct stack {
	uint64_t first;                            /* into frames: location indexes, leaf first */
	uint32_t n;
};

/* A label is text (str) or a number with a unit (when str is 0). */
struct label {
	uint32_t key, str, unit;
	int64_t number;
};

/* Label set 0 is the empty one. */
struct label_set {
	uint32_t first, n;                         /* into labels */
	uint32_t thread;                           /* text of the label "thread", or 0 */
	uint64_t block_size;                       /* of the numeric label "bytes": all blocks have it; 0: mixed or unknown */
};

/* Where samples came from: one process at one time, at one rate. */
struct source {
	uint32_t name;                             /* the file or address it was read from */
	double rate;                               /* R: mean bytes between samples; <= 1 exact; 0 unknown: no error bars */
	int64_t time_nanos, duration_nanos;
	uint64_t process;                          /* identity of the process (see source_process); 0: can't be told */
	uint64_t pid;                              /* 0: unknown */
	bool base;                                 /* of a diff: the profile that is subtracted */
	uint32_t snapshot;                         /* of a series: which of its profiles, from 0 (profile_series) */
	bool raw_counts;                           /* dump of a jemalloc that doesn't unbias (<= 5.2) */
	/* What the dump's header accounts for (estimates): a check, never a sum. < 0: none. */
	double header_objects, header_bytes;
};

struct sample {
	uint32_t stack, labels, source;
};

struct profile {
	struct strings strings;
	struct sample_type *types;       size_t n_types, types_capacity;
	struct mapping *mappings;        size_t n_mappings, mappings_capacity;    /* [0] is the main program */
	struct function *functions;      size_t n_functions, functions_capacity;
	struct line *lines;              size_t n_lines, lines_capacity;
	struct location *locations;      size_t n_locations, locations_capacity;
	uint32_t *frames;                size_t n_frames, frames_capacity;
	struct stack *stacks;            size_t n_stacks, stacks_capacity;
	struct label *labels;            size_t n_labels, labels_capacity;
	struct label_set *label_sets;    size_t n_label_sets, label_sets_capacity;
	struct source *sources;          size_t n_sources, sources_capacity;
	struct sample *samples;          size_t n_samples, samples_capacity;
	int64_t *values;                 size_t n_values, values_capacity;        /* n_samples * n_types */

	int metric[METRICS];             /* column of each metric in values, or -1 (set by profile_finish) */
	uint32_t default_type;           /* string; 0: the last type */
	uint32_t period_type, period_unit;   /* strings */
	int64_t period;                  /* 0: unknown */
	uint32_t drop_frames, keep_frames, doc_url;   /* strings */
	uint32_t *comments;              size_t n_comments, comments_capacity;

	struct index function_index, location_index, stack_index, label_set_index;
	size_t limit_bytes;              /* of any one array; 0: none */
	struct error failure;            /* sticky */
};

/* New empty profile with label set 0; NULL when out of memory. limit_bytes 0: 8 GiB an array. */
struct profile *profile_new(size_t limit_bytes);
void profile_free(struct profile *p);

uint32_t profile_string(struct profile *p, const char *text, size_t length);
uint32_t profile_cstring(struct profile *p, const char *text);
static inline const char *profile_text(const struct profile *p, uint32_t string)
{
	return strings_get(&p->strings, string);
}

/* All types before the first sample. */
uint32_t profile_add_type(struct profile *p, const char *type, const char *unit);
/* Just the heap's: alloc_objects, alloc_space (when with_alloc), inuse_objects, inuse_space. */
void profile_add_heap_types(struct profile *p, bool with_alloc);
uint32_t profile_add_mapping(struct profile *p, const struct mapping *m);
uint32_t profile_add_source(struct profile *p, const struct source *s);

/* Finds or adds. */
uint32_t profile_intern_function(struct profile *p, const struct function *f);
uint32_t profile_intern_location(struct profile *p, uint32_t mapping, uint64_t address);  /* without lines */
uint32_t profile_intern_stack(struct profile *p, const uint32_t *locations, size_t n);
/* The same for someone who has the hash, which may have been computed by another thread, and index_prefetched. */
uint32_t profile_intern_hashed_stack(struct profile *p, const uint32_t *locations, size_t n, uint64_t hash);
static inline uint64_t profile_stack_hash(const uint32_t *locations, size_t n)
{
	return hash_bytes(locations, n * sizeof *locations);
}
uint32_t profile_intern_labels(struct profile *p, const struct label *labels, size_t n);
/* Labels a heap dump has: thread (0: none) and block size (0: none). */
uint32_t profile_intern_heap_labels(struct profile *p, uint32_t thread, uint64_t block_size);

/* Always adds (pprof files carry their own locations). lines may be NULL when n is 0. */
uint32_t profile_add_location(struct profile *p, uint32_t mapping, uint64_t address, bool folded,
                              const struct line *lines, size_t n);
/* Replaces a location's lines (a symbolizer's answer). */
void profile_set_lines(struct profile *p, uint32_t location, const struct line *lines, size_t n);

void profile_add_comment(struct profile *p, const char *text);
/* Sums of values stop at the ends of their range. */
static inline int64_t value_sum(int64_t a, int64_t b)
{
	int64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? a < 0 ? INT64_MIN : INT64_MAX : sum;
}

/* values: n_types of them. Equal samples may be added more than once: they count together. */
void profile_add_sample(struct profile *p, uint32_t stack, uint32_t labels, uint32_t source,
                        const int64_t *values);

/* Finds the metrics' columns; gives the sticky failure if there was one. Call once after building. */
int profile_finish(struct profile *p, struct error *err);

/* Column of a type by name ("inuse_space", also pprof's "space" and "objects"), or -1. */
int profile_type_column(const struct profile *p, const char *name);
/* The column that default_type names, else inuse_space, else the last. */
int profile_default_column(const struct profile *p);

/*
 * Offset in its file of what a location's address points at. The address itself when it lies in no mapping or in
 * memory without a file (a JIT's, the heap): there is nothing else that would tell two such places apart.
 */
uint64_t location_file_offset(const struct profile *p, const struct location *l);

/* Last part of a path, for "libfoo.so!0x1234". */
const char *path_base(const char *path);

/*
 * Identity of the process: its address-space layout, which ASLR makes its own. 0 when
 * nothing in it is random (no mappings, or a fixed layout): then it can't be told.
 * Equal for all dumps of one process, also after conversion to pprof.
 */
uint64_t profile_process_identity(const struct profile *p);

#endif
