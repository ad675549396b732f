/*
 * The boxes of a flame graph: a calling-context tree cut down to what a picture can hold,
 * with a place for every box.
 */
#ifndef REPORT_FLAME_BOXES_H
#define REPORT_FLAME_BOXES_H

#include "report/picture.h"

/*
 * A frame in its context, or the remainder of its parent: all callees that were cut, in one box.
 * Widths are amounts of the metric. The width of a stack is the larger of base and now, that of
 * a box is the sum over its stacks: what vanished and what is new both have their room, and a
 * parent is never narrower than its children. Without a diff that is the value.
 */
struct flame_box {
	uint32_t entry;             /* PROFILE_NONE: the root or a remainder */
	uint32_t merged;            /* a remainder: how many frames are in it; else 0 */
	uint32_t parent, depth;     /* the root: 0, 0 */
	double start, width;
	double children;            /* sum of the children's widths; what is left of width is the frame's own */
	struct amount amount;
	enum picture_change change; /* of a diff */
};

/*
 * In the order of a walk from the root (a box, then its children with all that is below them),
 * siblings widest first, a remainder last.
 */
struct flame_boxes {
	struct flame_box *boxes;
	size_t n, capacity;
	size_t frames;              /* of the whole tree that have a width */
	size_t cut;                 /* of these, how many are in remainders */
	double narrowest;           /* width of the narrowest frame kept */
};

/* The limit widest frames, and their remainders. */
int flame_boxes_make(struct view *v, const struct tree *t, size_t limit, struct flame_boxes *ret,
                     struct error *err);
void flame_boxes_finish(struct flame_boxes *b);

#endif
