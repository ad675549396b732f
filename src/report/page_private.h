/*
 * What the parts of a page's data block share: page_tables.c (frames, labels and strings as the page numbers them), page_tree.c (which
 * stacks are told, and their tree), page_block.c (streams, and how much fits).
 */
#ifndef REPORT_PAGE_PRIVATE_H
#define REPORT_PAGE_PRIVATE_H

#include "report/page.h"

struct page_frame {
	uint32_t entry, mapping;            /* mapping: string of its file, or 0 */
	uint8_t flags;                      /* PAGE_INLINED, PAGE_ADDRESS */
};
enum { PAGE_INLINED = 1, PAGE_ADDRESS = 2 };

struct page_labels {
	uint32_t thread, text;              /* strings of the profile */
	uint64_t size;
};

struct page_rank {
	double weight;                      /* the largest of the default type's sums over the snapshots */
	uint32_t stack;
};

/* What of a profile any choice of stacks draws on; made once. */
struct page_source {
	struct profile *p;
	struct view *v;
	const struct page_options *o;
	int column;                         /* the default type's */
	bool *keep_labels;                  /* per label set: do the tag filters let it stay? */
	uint32_t n_snapshots;
	struct page_frame *frames;   size_t n_frames, frames_capacity;
	/* Frames of stack i, root first: stack_frames[first_frame[i] .. first_frame[i + 1]); none of a stack without samples. */
	uint32_t *stack_frames;      size_t n_stack_frames, stack_frames_capacity;
	size_t *first_frame;
	struct page_labels *labels;  size_t n_labels, labels_capacity;
	uint32_t *labels_of;                /* per label set of the profile */
	uint32_t *thread_labels_of;         /* the same with nothing but its thread */
	int *times;                         /* per type: column of the objects that it is sizes times, or -1 */
	/* Samples that are kept, by stack; those of stack i are samples[first_sample[i] .. first_sample[i + 1]). */
	uint32_t *samples;
	size_t *first_sample;
	struct page_rank *ranks;            /* stacks that have samples, the heaviest first */
	size_t n_ranks;
	double value;                       /* sum of what samples have of the default type, without signs */
};

int page_source_make(struct profile *p, const struct page_options *o, struct page_source *ret, struct error *err);
void page_source_finish(struct page_source *s);
struct page_node {
	uint32_t parent, frame;
	uint32_t first_child, last_child, next_sibling;     /* 0: none */
	uint32_t first_row, last_row;       /* + 1; 0: none */
	double folded;                      /* weight of the stacks folded into it */
};

struct page_row {
	uint32_t next;                      /* of the node: + 1; 0: none */
	uint32_t stack;                     /* of the profile; PROFILE_NONE: an (other) */
	uint32_t labels, source;            /* labels: of page_source */
	uint32_t rest;                      /* of an (other): rows in it */
	size_t values;                      /* in the profile's values, or of an (other) in sums */
};

/* One choice of stacks. Node 0 is the root. */
struct page_tree {
	struct page_node *nodes;     size_t n_nodes, nodes_capacity;
	struct page_row *rows;       size_t n_rows, rows_capacity;
	int64_t *sums;               size_t n_sums, sums_capacity;
	struct index node_index, rest_index;
	bool *told;                         /* per rank: are its rows there? Else they are in an (other) */
	uint8_t *frame_used, *name_used;    /* per frame, per string */
	size_t folded_rows, folded_stacks;
	double folded_value;                /* as in page_source */
	double cost;                        /* about how many bytes the block will have, compressed */
};

/* As many of the heaviest stacks as cost at most budget (INFINITY: all); the others folded. Finish it in any case. */
int page_tree_make(struct page_source *s, double budget, struct page_tree *ret, struct error *err);
void page_tree_finish(struct page_tree *t);

#endif
