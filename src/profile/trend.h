/*
 * How fast an amount grows that is known only by sampling, and how sure that is.
 *
 * What leaks is sampled once and stays, so the error of a growing amount is a random walk: neighbouring values share
 * it, and the interval of a textbook regression covers the truth 13 to 57 times of 100. The increments don't share it.
 * The model, for snapshots at times t with increments d_i of length dt_i:
 *
 *   d = rate dt + noise,  Cov(noise) = sigma^2 (rho diag(dt) + T),  T tridiagonal: -1, 2, -1
 *
 * rho diag(dt) is the random walk: the sampling of what stays, and slow churn. T is noise of each value by itself: fast
 * churn, the program's own and its sampling. How much there is of each (rho) is not known: 17 values from 0 to infinity
 * are each fitted by generalized least squares with sigma^2 by restricted maximum likelihood, and the interval is that
 * of the mixture of their t distributions, weighted by likelihood and prior. The variance is never taken for less than
 * what sampling alone would do to the leaked bytes, |rate| weight / duration. Derivation, and how often the interval
 * covers the truth: docs/arithmetic.md.
 *
 * With up to TREND_FEW snapshots the model has too little to go by: there it is the difference of the first and the last
 * (estimate.h), which knows of sampling only and not of the program's own ups and downs.
 */
#ifndef PROFILE_TREND_H
#define PROFILE_TREND_H

#include "profile/estimate.h"

#define TREND_FEW 4

/* A rate per unit of time, its 95 % interval, and the two-sided p-value of "it does not grow or shrink". */
struct slope {
	double rate;
	struct interval interval;
	double p_value;
};

/* One amount at n >= 2 moments, times ascending. Missing values are zeros. */
struct trend_points {
	const struct estimate *values;
	const double *times;
	size_t n;
	/*
	 * What was allocated and freed between one moment and the next, n - 1 each, for the error of a difference; both
	 * NULL when that is not known. Looked at only with TREND_FEW moments and fewer.
	 */
	const struct estimate *came, *went;
};

enum shape {
	SHAPE_NOISE,        /* no growth beyond what chance does */
	SHAPE_FLAT,         /* did not move at all */
	SHAPE_GROWN,        /* of TREND_FEW moments no more can be said */
	SHAPE_STEADY,       /* grows, in the later half at least half as fast as in the earlier */
	SHAPE_NEW,          /* was not there for the first third; what it did since is in steady */
	SHAPE_SLOWING,      /* grows, but the later half by less than half as much: a cache that warms up */
	SHAPE_PLATEAU,      /* grew, and stands since */
	SHAPE_STEP,         /* one increment holds most of the growth */
	SHAPE_SAW_TOOTH,    /* falls back to near its low again and again */
	SHAPE_SHRINKING,
	SHAPE_GONE,         /* was there, and is not for the last third */
	SHAPES
};

/* "steady", "saw-tooth", ... */
const char *shape_name(enum shape shape);

struct trend {
	struct slope slope;
	bool has_halves;            /* with more than TREND_FEW moments, when it grew at any time */
	struct slope earlier, later;
	struct slope change;        /* later - earlier */
	enum shape shape;
	bool steady;                /* SHAPE_STEADY, or new and steady since it is there */
};

void trend_find(const struct trend_points *p, struct trend *ret);

/*
 * The slope alone, by the model; at least three moments. weight: of one sample, for the least variance (0: exact
 * values); zero_weight: of the largest sample that may have gone unseen, for an amount that did not move at all.
 */
void trend_slope(const struct trend_points *p, double weight, double zero_weight, struct slope *ret);
/* Two slopes that meet at moment split (both sides at least one increment, n >= 4), and later - earlier. */
void trend_halves(const struct trend_points *p, size_t split, double weight, double zero_weight,
                  struct slope *ret_earlier, struct slope *ret_later, struct slope *ret_change);

/* Distribution function of Student's t with nu degrees of freedom; near: to 1e-13 in all, for when a far tail's own digits don't matter. */
double student_cdf(double t, double nu);
double student_cdf_near(double t, double nu);

#endif
