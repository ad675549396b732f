/*
 * The arithmetic of Poisson sampling: what a sampled count stands for, and how sure
 * that is. Formulas and their proofs by simulation: docs/arithmetic.md.
 *
 * An object of s bytes is sampled with p(s) = 1 - exp(-s/R). A dump line of n objects
 * and b bytes stands for N = n k objects and B = b k bytes, k = 1/p(b/n).
 */
#ifndef PROFILE_ESTIMATE_H
#define PROFILE_ESTIMATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ESTIMATE_Z95 1.959963984540054
/* Nothing sampled: with 95 % confidence there is less than this many R bytes. */
#define ESTIMATE_ZERO_BOUND 3.0
/* Below this many samples the Poisson interval is used instead of the normal one. */
#define ESTIMATE_FEW_SAMPLES 10.0

/* k for one line; 1 when rate <= 1 (exact), 0 when n == 0. */
double estimate_scale(double n, double b, double rate);

/*
 * The size class of which all n printed blocks of the line are, or 0 when they are mixed.
 * unbiased: the counts were printed by jemalloc >= 5.3 with prof_unbias, whose own
 * rounding is replayed. *ret_objects and *ret_bytes (may be NULL) then get the exact estimates.
 */
uint64_t estimate_block_size(uint64_t n, uint64_t b, double rate, bool unbiased,
                             double *ret_objects, double *ret_bytes);

/*
 * A sum of independent sampled amounts in one unit (bytes or objects).
 * weight: the most that one unseen sample could add to it (for R = 1: 0).
 */
struct estimate {
	double value;
	double variance;
	double weight;
};

/* What one sample's (objects, bytes) estimates say about its bytes, or its objects. */
struct estimate estimate_bytes(double objects, double bytes, uint64_t block_size, double rate);
struct estimate estimate_objects(double objects, double bytes, uint64_t block_size, double rate);
static inline void estimate_add(struct estimate *sum, struct estimate more)
{
	sum->value += more.value;
	sum->variance += more.variance;
	sum->weight = more.weight > sum->weight ? more.weight : sum->weight;
}

struct interval {
	double low, high;
};

/* How many samples of equal weight would be as uncertain: value^2 / variance. INFINITY when exact. */
double estimate_samples(struct estimate e);
/* 95 % interval of the true amount. Never below zero. */
struct interval estimate_interval(struct estimate e);
/*
 * 95 % interval of gained - lost for two independent amounts (what came and went, or
 * two whole profiles): the square-and-add rule on the two intervals, so that it holds for few samples too.
 */
struct interval estimate_difference(struct estimate gained, struct estimate lost);
/* Two-sided p-value of "nothing changed". 1 when both are zero; 0 when exact and different. */
double estimate_p_value(struct estimate gained, struct estimate lost);

/*
 * Benjamini-Hochberg: of n p-values, which stay significant when the false-discovery
 * rate is held at q. ret_significant: n flags. False when out of memory.
 */
bool estimate_significant(const double *p_values, size_t n, double q, bool *ret_significant);

#endif
