/*
 * What a heap_v2 dump says, line by line, before anything is unsampled: whether its counts are raw
 * and whether its end is missing is known only after all of it was read. Private to jeheap*.c.
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

enum section { SECTION_HEADER, SECTION_STACKS, SECTION_GAP, SECTION_MAPS };

struct dump {
	const char *name;
	double rate;
	size_t limit_bytes;             /* of any one array */
	struct profile *profile;
	struct frames frames;
	size_t n_addresses;             /* of frames, those that stacks have */
	struct maps *maps;
	struct thread *threads;         size_t n_threads, threads_capacity;
	struct index thread_index;
	struct count_line *lines;       size_t n_lines, lines_capacity;
	struct accum *accum;            size_t n_accum, accum_capacity;   /* of the first n_accum lines; the others have none */
	struct counts header;           /* the header's t* line */
	struct counts header_threads;   /* sum of its thread lines */
	struct counts stacks;           /* sum of the stacks' t* lines */
	double most_objects, most_bytes;    /* more than the estimates of all lines can add up to */
	double least_mean, greatest_mean;   /* bytes per object of any line */
	size_t n_stacks;
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
	/* Filled by jeheap_add_samples: */
	double total_bytes;             /* in use, estimated */
	double mixed_lines;             /* stacks whose blocks have several sizes: rounded by the writer */
};

struct counts dump_line(const struct dump *d, size_t i);

/* jeheap_check.c: E_TRUNCATED with the reason when the end of the dump is or may be missing. */
int jeheap_check_end(struct dump *d, struct read_report *report, struct error *err);
/* Are the counts raw (jemalloc <= 5.2, prof_unbias:false)? Finest lines are then added up. */
bool jeheap_is_raw(const struct dump *d);
/*
 * After the samples: says when the stacks account for clearly less than the header, or mappings are
 * missing.
 */
void jeheap_warn(const struct dump *d, bool raw, struct read_report *report);

/* jeheap_samples.c: unsamples every line, once, and adds types, source and samples. */
int jeheap_add_samples(struct dump *d, bool raw, struct error *err);

#endif
