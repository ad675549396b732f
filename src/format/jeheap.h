/*
 * What a heap_v2 dump says, line by line, before anything is unsampled. jeheap.c reads it and gives each stack to a sink:
 * the model keeps the lines of all (jeheap_read.c), for whether counts are raw and whether the end is missing is
 * sure only after all of it was read; jeheap_stream.c writes each stack at once. Private to jeheap*.c.
 */
#ifndef FORMAT_JEHEAP_H
#define FORMAT_JEHEAP_H

#include "format/counts.h"
#include "format/format.h"
#include "format/frames.h"

struct thread {
	uint64_t uid;
	uint32_t label;             /* string: "t3" or "t3 name" */
	bool listed;                /* has a line in the dump's header */
	struct counts header;
};

/*
 * A count line. A stack's lines follow each other: its t* line (thread STAR), then one a thread;
 * when there is one thread and it has all, just one line with that thread and ALONE.
 */
#define STAR 0x7fffffffu
#define ALONE 0x80000000u

struct count_line {
	uint64_t objects, bytes;
	uint32_t stack;
	uint32_t thread;            /* index into threads, or STAR; with ALONE or not */
};

struct accum {
	uint64_t objects, bytes;
};

#define DUMP_LINE_MAX ((size_t)1 << 20)     /* bytes of a line that are always allowed; a stack of the full depth is, too */

enum section { SECTION_HEADER, SECTION_STACKS, SECTION_GAP, SECTION_MAPS };

struct dump;

/* Who takes the stacks while the dump is read. */
struct dump_sink {
	/* Reads the frames from at to end, where l's line has its newline; sets open_stack and n_addresses. */
	int (*frames)(struct dump *d, const struct lines *l, const char *at, const char *end, struct error *err);
	/* The open stack has all its count lines, from open_line on; it may take them out. NULL: they are kept. */
	int (*counts)(struct dump *d, struct error *err);
};

struct dump {
	const char *name;
	const struct dump_sink *sink;
	void *sink_context;
	double rate;
	size_t limit_bytes;             /* of any one array */
	struct profile *profile;
	struct frames frames;
	size_t n_addresses;             /* of frames, those that stacks have */
	struct maps *maps;
	struct thread *threads;         size_t n_threads, threads_capacity;
	struct index thread_index;
	struct count_line *lines;       size_t n_lines, lines_capacity;   /* those that the sink has left */
	struct accum *accum;            size_t n_accum, accum_capacity;   /* of the first n_accum lines; the others have none */
	struct counts header;           /* the header's t* line */
	struct counts header_threads;   /* sum of its thread lines */
	struct counts stacks;           /* sum of the stacks' t* lines */
	double most_objects, most_bytes;    /* more than the estimates of all lines can add up to */
	double least_mean, greatest_mean;   /* bytes per object of any line */
	size_t n_stacks;
	bool last_alone;                /* the last stack has its t* line and no more */
	size_t skipped;                 /* lines of the mappings that were none */
	bool has_header;                /* its t* line */
	size_t n_bent;                  /* stacks whose t* line is not the sum of its threads' lines */
	bool last_bent;                 /* the last stack is one of them */
	bool eights;                    /* all bytes are multiples of 8, as size classes are */
	bool open;                      /* a stack's lines are being read */
	size_t open_line;               /* where they begin, in lines */
	bool open_star;                 /* its t* line was there */
	struct counts open_threads;     /* sum of its thread lines */
	uint32_t open_stack;
	enum section section;
	bool gap;                       /* an empty line behind the stacks: all of them were written */
	bool cut;                       /* the end is missing (limits->partial) */
	/* Filled by the unsampler: */
	double total_bytes;             /* in use, estimated */
	double mixed_lines;             /* stacks whose blocks have several sizes: rounded by the writer */
};

/*
 * jeheap.c. dump_init before all, for a *d and *l of zeros; dump_finish and lines_finish after it in any case. dump_read reads
 * and checks the whole dump; what the profile has then is strings.
 */
int dump_init(struct dump *d, struct lines *l, struct stream *in, const struct read_limits *limits, struct error *err);
int dump_read(struct dump *d, struct lines *l, const struct read_limits *limits, struct read_report *report,
              struct error *err);
void dump_finish(struct dump *d);
struct counts dump_line(const struct dump *d, size_t i);
/* The profile's sticky failure. */
int dump_failed(const struct dump *d, struct error *err);

/* jeheap_check.c: E_TRUNCATED with the reason when the end of the dump is or may be missing. */
int jeheap_check_end(struct dump *d, struct read_report *report, struct error *err);
/* Are the counts raw (jemalloc <= 5.2, prof_unbias:false)? Finest lines are then added up. */
bool jeheap_is_raw(const struct dump *d);
/* The same from the header alone, whose threads show it when their blocks differ in size. */
bool jeheap_header_is_raw(const struct dump *d);
/*
 * After the samples: says when the stacks account for clearly less than the header, or mappings are
 * missing.
 */
void jeheap_warn(const struct dump *d, bool raw, struct read_report *report);

/* jeheap_samples.c: unsamples the lines of a stack, each once, and emits its samples. */
struct dump_sample {
	uint32_t stack;
	uint32_t thread;                /* or STAR: none */
	uint64_t block_size;
	const int64_t *values;
};

typedef int dump_emit(void *context, const struct dump_sample *sample, struct error *err);

struct unsampler;
/* with_accum: values for accumulated counts come first. NULL when out of memory. */
struct unsampler *unsampler_new(struct dump *d, bool raw, bool with_accum, dump_emit *emit, void *context);
void unsampler_free(struct unsampler *u);
/* The stack whose lines begin at first; *ret_n: how many it has. */
int unsampler_add(struct unsampler *u, size_t first, size_t *ret_n, struct error *err);
/* The estimate of one pair of counts. */
void unsampler_scale(struct unsampler *u, uint64_t objects, uint64_t bytes, double *ret_objects, double *ret_bytes);
/* The label set of a sample, in the dump's profile. */
uint32_t unsampler_labels(struct unsampler *u, const struct dump_sample *sample);

/* What of the header both have: types and period. */
void dump_add_types(struct dump *d, bool with_accum);

#endif
