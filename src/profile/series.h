/*
 * A series: what each place (a stack, a function, ...) held at each snapshot of one process, and how it grew. Made from
 * a view of the profile that profile_series made of the snapshots; the view's rows and totals mean nothing there, since
 * what is in use is never added up over time.
 */
#ifndef PROFILE_SERIES_H
#define PROFILE_SERIES_H

#include "profile/trend.h"
#include "profile/view.h"

/* Of all the places looked at, this part of those called significant may be false. */
#define SERIES_FALSE_DISCOVERY 0.05

struct series_options {
	bool by_stack;              /* a place is a whole stack of the view's entries; else one entry */
	enum view_sort sort;        /* by entry: what it holds itself, or with its callees */
	double interval_seconds;    /* between snapshots; 0: their own times */
};

/* How one place, or all together, grew. */
struct growth {
	struct trend trend;
	const struct estimate *values;      /* n_snapshots; borrowed from the series */
	bool significant;                   /* after Benjamini-Hochberg; of the total: by itself */
	size_t first_frame;                 /* by stack: into series.frames, entries leaf first; else the entry */
	uint32_t n_frames;                  /* by stack; else 1 */
};

struct series {
	struct view *view;                  /* borrowed */
	struct series_options options;
	size_t n_snapshots;
	bool timed;                         /* times are seconds; else snapshots, counted from 0 */
	double *times;                      /* since the first */
	struct growth *places;    size_t n_places, places_capacity;
	uint32_t *order;                    /* of places: steady growth (of few snapshots: any) by the least it is, other growth, noise, what shrank */
	uint32_t *frames;         size_t n_frames, frames_capacity;
	struct growth total;
	size_t n_steady, n_grown, n_shrunk;   /* significant and steady; other shapes that grew; significantly shrunk, or gone */
	struct series_cells *cells;
};

/*
 * o: the options the view was made with (its label filters are asked again). The sources' snapshot numbers tell which
 * snapshot a sample is of; their times must ascend, else the series is not timed. E_USAGE with less than two snapshots.
 */
int series_new(struct view *v, const struct view_options *vo, const struct series_options *o, struct series **ret,
               struct error *err);
void series_free(struct series *s);

/* The entries of a place, leaf first. */
const uint32_t *series_frames(const struct series *s, const struct growth *g, size_t *ret_n);

/*
 * Does it grow faster than rate (per second, or per snapshot), surely: significantly and steadily, and by the lower bound
 * both over the whole time and over its later half? Never with TREND_FEW snapshots.
 */
bool growth_exceeds(const struct growth *g, double rate);

#endif
