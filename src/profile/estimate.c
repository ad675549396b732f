/*
 * What sampled counts stand for and how sure that is.
 *
 * One size: a block of s bytes is seen with p = 1 - exp(-s/R); n seen stand for n/p blocks, and
 * Var(B) = B s (1-p)/p. Written with u = s/R and h(u) = u^2/(e^u - 1) that is N R^2 h(u). A line of mixed
 * sizes shows only the mean u; h is concave up to its top at u = 1.594, so N R^2 h(min(u, 1.594)) is at
 * least the true variance whatever the sizes were.
 */
#include "profile/estimate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define H_TOP_U 1.593624260040040   /* where h is largest: u = 2 (1 - e^-u) */

double estimate_scale(double n, double b, double rate)
{
	if (!(n > 0) || !(b > 0))
		return n > 0 ? 1 : 0;
	if (!(rate > 1))
		return 1;
	return -1 / expm1(-(b / n) / rate);
}

/* h(u), and its limit u for small u. */
static double h(double u)
{
	return u < 1e-9 ? u : u * u / expm1(u);
}

/* --- block size of a line ------------------------------------------------ */

/*
 * jemalloc's size classes with a quantum of 16: 8, then multiples of 16 up to 128, then four a doubling.
 * The largest class <= size.
 */
static uint64_t size_class_floor(uint64_t size)
{
	if (size < 16)
		return 8;
	if (size < 128)
		return size & ~(uint64_t)15;
	unsigned lg = 63 - (unsigned)__builtin_clzll(size);
	uint64_t step = (uint64_t)1 << (lg - 2);
	return size & ~(step - 1);
}

static uint64_t size_class_next(uint64_t class)
{
	if (class < 16)
		return 16;
	if (class < 128)
		return class + 16;
	unsigned lg = 63 - (unsigned)__builtin_clzll(class);
	return class + ((uint64_t)1 << (lg - 2));
}

/*
 * jemalloc >= 5.3 keeps, per size class, the unbiased count in eighths and the unbiased bytes, both rounded, and
 * prints them bent so that the reader's formula undoes it. Returns how many samples of that class print as (n, b), or 0.
 */
static uint64_t samples_printed_as(uint64_t class, uint64_t n, uint64_t b, double rate)
{
	double p = -expm1(-(double)class / rate);
	double one_block = round((double)class / p);
	double samples = round((double)b * estimate_scale((double)n, (double)b, rate) / one_block);
	double objects = samples * round(8 / p) / 8;
	double bytes = samples * one_block;
	double mean = bytes / objects;
	double bent = bytes * -expm1(-mean / rate);
	bool same = samples >= 1 && samples < 1e15 && fabs(bent / mean - (double)n) <= 0.5 + 1e-6 &&
	            fabs(bent - (double)b) <= 0.5 + 1e-6;
	return same ? (uint64_t)samples : 0;
}

uint64_t estimate_block_size(uint64_t n, uint64_t b, double rate, bool unbiased, double *ret_objects,
                             double *ret_bytes)
{
	if (n == 0 || b < n || b > INT64_MAX)
		return 0;
	uint64_t found = 0, samples = n;
	if (rate <= 1 || !unbiased) {
		uint64_t size = b / n;
		if (size * n == b && size_class_floor(size) == size)
			found = size;
	} else {
		/* The printed mean is within 7 % of the class: the count's eighths see to that. */
		double mean = (double)b / (double)n;
		uint64_t class = size_class_floor((uint64_t)(mean * 0.9));
		for (int i = 0; i < 4 && !found; i++, class = size_class_next(class)) {
			uint64_t printed = samples_printed_as(class, n, b, rate);
			if (printed) {
				found = class;
				samples = printed;
			}
		}
	}
	if (found && ret_objects && ret_bytes) {
		double p = rate <= 1 ? 1 : -expm1(-(double)found / rate);
		*ret_objects = (double)samples / p;
		*ret_bytes = *ret_objects * (double)found;
	}
	return found;
}

/* --- variance ------------------------------------------------------------ */

struct estimate estimate_bytes(double objects, double bytes, uint64_t block_size, double rate)
{
	struct estimate e = { .value = bytes };
	if (!(rate > 1))
		return e;
	e.weight = rate;
	if (!(bytes > 0))
		return e;
	if (block_size) {
		double u = (double)block_size / rate;
		e.variance = bytes * rate * (h(u) / u);
		/* one block seen counts s/p bytes, of which the seen s are certain */
		e.weight = rate * (h(u) / u);
	} else if (!(objects > 0)) {
		e.variance = bytes * rate;
	} else {
		double u = fmin(bytes / objects / rate, H_TOP_U);
		e.variance = fmin(objects * rate * rate * h(u), bytes * rate);
	}
	return e;
}

struct estimate estimate_objects(double objects, double bytes, uint64_t block_size, double rate)
{
	struct estimate e = { .value = objects };
	if (!(rate > 1) || !(objects > 0))
		return e;
	/*
	 * One size: Var(N) = N (1-p)/p. Mixed: (1-p)/p = 1/(e^u - 1) is convex in u, so the mean
	 * gives no bound; blocks can't be smaller than 8 bytes, but the share of small ones is what the
	 * bytes allow. Taken as one size, which is right for the usual narrow mixtures.
	 */
	double size = block_size ? (double)block_size : fmax(bytes / objects, 8);
	double factor = 1 / expm1(size / rate);
	e.variance = objects * factor;
	e.weight = factor;
	return e;
}

/* --- intervals ----------------------------------------------------------- */

/*
 * Regularized lower incomplete gamma function P(a, x): series below a + 1, continued fraction above.
 * log_gamma is lgamma(a). *ret_density: its derivative.
 */
static double gamma_p(double a, double log_gamma, double x, double *ret_density)
{
	double front = exp(a * log(x) - x - log_gamma);
	*ret_density = front / x;
	if (x < a + 1) {
		double term = 1 / a, sum = term;
		for (int i = 1; i < 500 && term > sum * 1e-12; i++) {
			term *= x / (a + i);
			sum += term;
		}
		return front * sum;
	}
	double b = x + 1 - a, c = 1e300, d = 1 / b, f = d;
	for (int i = 1; i < 500; i++) {
		double an = -i * (i - a);
		b += 2;
		d = 1 / (an * d + b);
		c = b + an / c;
		double step = c * d;
		f *= step;
		if (fabs(step - 1) < 1e-12)
			break;
	}
	return 1 - front * f;
}

/*
 * x with P(a, x) = p: Newton's steps from the cube-root approximation of Wilson and Hilferty (z: the normal quantile
 * of p) or, far below the mean, from the first term of the series; a bracket catches steps that go astray.
 */
static double gamma_quantile(double a, double p, double z)
{
	double log_gamma = lgamma(a), low = 0, high = a + 10 * sqrt(a) + 20;
	double cube = 1 - 1 / (9 * a) + z / (3 * sqrt(a));
	double x = cube > 0.2 ? a * cube * cube * cube : exp((log(p * a) + log_gamma) / a);
	for (int i = 0; i < 100; i++) {
		if (!(x > low && x < high))
			x = (low + high) / 2;
		if (x <= 0)
			return 0;
		double density, off = gamma_p(a, log_gamma, x, &density) - p;
		if (off < 0)
			low = x;
		else
			high = x;
		double step = density > 0 ? off / density : 0;
		if (fabs(step) <= 1e-9 * x || high - low <= 1e-12 * high)
			return density > 0 ? fmax(0, x - step) : x;
		x -= step;
	}
	return x;
}

double estimate_samples(struct estimate e)
{
	if (!(e.variance > 0))
		return e.value > 0 && !(e.weight > 0) ? INFINITY : 0;
	return e.value * e.value / e.variance;
}

/*
 * Few samples: the gamma interval for a weighted Poisson sum (Fay and Feuer 1997): below, the value seen as
 * value^2/variance samples of equal weight; above, with one more unseen sample of the largest weight.
 */
struct interval estimate_interval(struct estimate e)
{
	if (!(e.variance > 0)) {
		double room = e.value > 0 ? 0 : ESTIMATE_ZERO_BOUND * e.weight;
		return (struct interval){ e.value, e.value + room };
	}
	double samples = estimate_samples(e);
	if (samples >= ESTIMATE_FEW_SAMPLES) {
		double half = ESTIMATE_Z95 * sqrt(e.variance);
		return (struct interval){ fmax(0, e.value - half), e.value + half };
	}
	double unit = e.variance / e.value;
	double above = e.value + e.weight;
	double above_variance = e.variance + e.weight * e.weight;
	double above_samples = above * above / above_variance;
	return (struct interval){
		unit * gamma_quantile(samples, 0.025, -ESTIMATE_Z95),
		above_variance / above * gamma_quantile(above_samples, 0.975, ESTIMATE_Z95),
	};
}

struct interval estimate_difference(struct estimate gained, struct estimate lost)
{
	struct interval g = estimate_interval(gained), l = estimate_interval(lost);
	double change = gained.value - lost.value;
	return (struct interval){
		change - hypot(gained.value - g.low, l.high - lost.value),
		change + hypot(g.high - gained.value, lost.value - l.low),
	};
}

double estimate_p_value(struct estimate gained, struct estimate lost)
{
	double change = gained.value - lost.value;
	if (change == 0)
		return 1;
	if (!(gained.variance + lost.variance > 0) && !(gained.weight + lost.weight > 0))
		return 0;
	/* The distance to zero in units of the interval's arm on that side, which is 1.96 sigma long. */
	struct interval i = estimate_difference(gained, lost);
	double arm = change > 0 ? change - i.low : i.high - change;
	if (!(arm > 0))
		return 0;
	return erfc(fabs(change) / arm * ESTIMATE_Z95 / M_SQRT2);
}

/* --- many at once -------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

bool estimate_significant(const double *p_values, size_t n, double q, bool *ret_significant)
{
	if (n == 0)
		return true;
	double *sorted = malloc(n * sizeof *sorted);
	if (!sorted)
		return false;
	memcpy(sorted, p_values, n * sizeof *sorted);
	qsort(sorted, n, sizeof *sorted, compare_doubles);
	double cut = -1;
	for (size_t i = 0; i < n; i++)
		if (sorted[i] <= q * (double)(i + 1) / (double)n)
			cut = sorted[i];
	for (size_t i = 0; i < n; i++)
		ret_significant[i] = p_values[i] <= cut;
	free(sorted);
	return true;
}
