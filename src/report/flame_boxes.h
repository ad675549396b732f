/*
 * The boxes of a flame graph: the widest part of a calling-context tree that a picture can
 * hold, with a place for every box. The tree itself, which may have millions of nodes, is
 * never built: stacks are put in order once, and a box is a range of them.
 */
#ifndef REPORT_FLAME_BOXES_H
#define REPORT_FLAME_BOXES_H

#include "base/sequences.h"
#include "report/picture.h"

/* Rows of the view as sequences of entries, root first (inverted: leaf first); item: the row. */
struct flame_stacks {
	uint32_t *frames;            size_t n_frames, frames_capacity;   /* entries */
	struct sequence *stacks;     size_t n, capacity;                 /* ordered by their frames */
	/* Of each stack, in the same order: summing them for many boxes is a walk straight ahead. */
	struct amount *amounts;
	double *widths;              /* the larger of base and now */
};

int flame_stacks_make(struct view *v, bool inverted, struct flame_stacks *ret, struct error *err);
void flame_stacks_finish(struct flame_stacks *s);

/*
 * A frame in its context, or the remainder of its parent: all callees that were cut, in one box.
 * Widths are amounts of the metric. The width of a stack is the larger of base and now, that of
 * a box is the sum over its stacks: what vanished and what is new both have their room, and a
 * parent is never narrower than its children. Without a diff that is the value.
 */
struct flame_box {
	uint32_t entry;             /* PROFILE_NONE: the root or a remainder */
	uint32_t merged;            /* a remainder: how many callees are in it; else 0 */
	uint32_t parent, depth;     /* the root: 0, 0 */
	double start, width;
	double children;            /* sum of the children's widths; what is left of width is the frame's own */
	struct amount amount;
	struct interval around;     /* 95 %, when the view has errors */
	enum picture_change change; /* of a diff */
};

/*
 * In the order of a walk from the root (a box, then its children with all that is below them),
 * siblings widest first, a remainder last.
 */
struct flame_boxes {
	struct flame_box *boxes;
	size_t n, capacity;
	size_t kept;                /* without remainders and the root */
	double narrowest;           /* width of the narrowest frame kept */
	bool cut;                   /* there are remainders */
};

/* The limit widest frames, and their remainders; not judged yet. */
int flame_boxes_make(struct view *v, const struct flame_stacks *s, size_t limit, struct flame_boxes *ret,
                     struct error *err);
/* Fills in around and change: for what is drawn in the end, since small samples' intervals take time. */
int flame_boxes_judge(struct view *v, struct flame_boxes *b, struct error *err);
void flame_boxes_finish(struct flame_boxes *b);

#endif
