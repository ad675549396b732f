/* The arithmetic of sampling, against closed forms, tables and simulation. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "profile/estimate.h"

static void close_to(double value, double expected, double tolerance)
{
	if (!(fabs(value - expected) <= tolerance))
		fail_msg("%.9g is not %.9g within %g", value, expected, tolerance);
}

/* xorshift, so that a failure repeats */
static uint64_t seed = 88172645463325252u;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return ((double)(seed >> 11) + 0.5) / 9007199254740992.0;
}

static uint64_t binomial(uint64_t n, double p)
{
	uint64_t hits = 0;
	if (p > 0.2) {
		for (uint64_t i = 0; i < n; i++)
			hits += uniform() < p;
		return hits;
	}
	/* gaps between hits are geometric */
	for (double at = 0;;) {
		at += ceil(log(uniform()) / log1p(-p));
		if (at > (double)n)
			return hits;
		hits++;
	}
}

static void scale_follows_the_formula(void **state)
{
	(void)state;
	close_to(estimate_scale(1, 524288, 524288), 1 / (1 - exp(-1)), 1e-12);
	close_to(estimate_scale(4, 256, 524288), 524288.0 / 64 + 0.5, 0.01);
	assert_true(estimate_scale(0, 0, 524288) == 0);
	assert_true(estimate_scale(10, 0, 524288) == 1);
	assert_true(estimate_scale(123, 4567, 1) == 1);
	assert_true(estimate_scale(123, 4567, 0) == 1);
}

static void one_size_is_recognized_and_mixtures_are_not(void **state)
{
	(void)state;
	static const uint64_t classes[] = { 8, 16, 48, 128, 160, 320, 4096, 14336, 65536, 524288, 4194304 };
	double objects, bytes;
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		for (uint64_t n = 1; n < 2000; n = n * 3 + 1) {
			assert_int_equal(estimate_block_size(n, n * classes[i], 1, true, NULL, NULL), classes[i]);
			assert_int_equal(estimate_block_size(n, n * classes[i], 65536, false, NULL, NULL),
			                 classes[i]);
			/* what jemalloc >= 5.3 prints */
			double p = -expm1(-(double)classes[i] / 65536);
			double c = (double)n * round(8 / p) / 8, b = (double)n * round((double)classes[i] / p);
			double bent = b * -expm1(-b / c / 65536);
			uint64_t shown_n = (uint64_t)round(bent / (b / c)), shown_b = (uint64_t)round(bent);
			assert_int_equal(estimate_block_size(shown_n, shown_b, 65536, true, &objects, &bytes),
			                 classes[i]);
			close_to(objects, (double)n / p, 1e-6 * objects);
			close_to(bytes, (double)(n * classes[i]) / p, 1e-6 * bytes);
		}
	assert_int_equal(estimate_block_size(3, 100, 1, true, NULL, NULL), 0);
	assert_int_equal(estimate_block_size(2, 2 * 72, 1, true, NULL, NULL), 0);
	assert_int_equal(estimate_block_size(0, 0, 1, true, NULL, NULL), 0);
	assert_int_equal(estimate_block_size(9, 5, 1, true, NULL, NULL), 0);
	assert_int_equal(estimate_block_size(1, UINT64_MAX, 1, true, NULL, NULL), 0);
}

static void variance_of_one_size_is_binomial(void **state)
{
	(void)state;
	double rates[] = { 4096, 65536, 524288 };
	double sizes[] = { 16, 4096, 65536, 1 << 20, 8 << 20 };
	for (size_t r = 0; r < 3; r++)
		for (size_t s = 0; s < 5; s++) {
			double p = -expm1(-sizes[s] / rates[r]), n = 100;
			struct estimate e = estimate_bytes(n, n * sizes[s], (uint64_t)sizes[s], rates[r]);
			close_to(e.variance, n * sizes[s] * sizes[s] * (1 - p) / p, 1e-6 * e.variance + 1e-9);
			struct estimate o = estimate_objects(n, n * sizes[s], (uint64_t)sizes[s], rates[r]);
			close_to(o.variance, n * (1 - p) / p, 1e-6 * o.variance + 1e-9);
		}
}

/* Whatever the mixture, the bound from the mean is not below the true variance, nor above B R. */
static void mixed_bound_is_safe(void **state)
{
	(void)state;
	double rate = 65536;
	for (int trial = 0; trial < 20000; trial++) {
		double objects = 0, bytes = 0, variance = 0;
		for (int k = 0; k < 1 + trial % 5; k++) {
			double size = exp(log(16) + uniform() * log(4194304 / 16.0));
			double n = 1 + floor(exp(uniform() * 9));
			double p = -expm1(-size / rate);
			objects += n;
			bytes += n * size;
			variance += n * size * size * (1 - p) / p;
		}
		struct estimate e = estimate_bytes(objects, bytes, 0, rate);
		assert_true(e.variance >= variance * (1 - 1e-9));
		assert_true(e.variance <= bytes * rate * (1 + 1e-9));
	}
}

static void exact_rate_has_no_error(void **state)
{
	(void)state;
	struct estimate e = estimate_bytes(10, 1000, 0, 1);
	struct interval i = estimate_interval(e);
	assert_true(e.variance == 0 && i.low == 1000 && i.high == 1000);
	assert_true(isinf(estimate_samples(e)));
	assert_true(estimate_p_value(e, e) == 1);
	assert_true(estimate_p_value(e, estimate_bytes(9, 900, 0, 1)) == 0);
}

/* Garwood's table for Poisson counts: 0 -> (0, 3.0 one-sided), 1 -> (0.0253, 5.57), 4 -> (1.09, 10.24). */
static void few_samples_use_the_poisson_interval(void **state)
{
	(void)state;
	static const double table[][3] = { { 1, 0.0253, 5.572 }, { 2, 0.2422, 7.225 }, { 4, 1.0899, 10.242 },
		                           { 9, 4.1154, 17.085 } };
	for (size_t i = 0; i < 4; i++) {
		struct estimate e = { table[i][0], table[i][0], 1 };
		struct interval v = estimate_interval(e);
		close_to(v.low, table[i][1], 0.001);
		close_to(v.high, table[i][2], 0.001);
	}
	/* gamma quantiles by bisection on the plain series, at shapes that are no whole numbers */
	static const double shapes[][3] = { { 0.5, 0.000491035, 4.674202 }, { 0.05, 0, 3.793225 },
		                            { 3.7, 0.940872, 9.805001 }, { 9.99, 4.788507, 18.377372 } };
	for (size_t i = 0; i < 4; i++) {
		struct estimate e = { shapes[i][0], shapes[i][0], 1 };
		struct interval v = estimate_interval(e);
		close_to(v.low, shapes[i][1], 2e-6);
		close_to(v.high, shapes[i][2], 2e-6);
	}
	struct estimate nothing = { 0, 0, 524288 };
	assert_true(estimate_interval(nothing).high == 3.0 * 524288);
	struct estimate many = { 100, 100, 1 };
	close_to(estimate_interval(many).low, 100 - 19.6, 0.01);
	close_to(estimate_interval(many).high, 100 + 19.6, 0.01);
}

struct coverage {
	long in, all;
};

static void check_coverage(const char *what, struct coverage c, double low, double high)
{
	double share = (double)c.in / (double)c.all;
	print_message("# %s: %.4f of %ld\n", what, share, c.all);
	if (share < low || share > high)
		fail_msg("%s: %.4f covered, not within %.3f-%.3f", what, share, low, high);
}

static void intervals_cover_one_size(void **state)
{
	(void)state;
	double rate = 65536;
	struct coverage many = { 0 }, few = { 0 };
	for (int trial = 0; trial < 60000; trial++) {
		double size = exp(log(16) + uniform() * log(131072 / 16.0));
		double p = -expm1(-size / rate);
		uint64_t blocks = (uint64_t)ceil(exp(log(0.5) + uniform() * log(800)) / p);
		uint64_t seen = binomial(blocks, p);
		struct estimate e = estimate_bytes((double)seen / p, (double)seen * size / p, (uint64_t)size, rate);
		e.variance = seen ? e.variance * (size / (double)(uint64_t)size) : 0;
		struct interval i = estimate_interval(e);
		if (seen == 0)
			i = (struct interval){ 0, 3 * rate };
		double truth = (double)blocks * size;
		struct coverage *c = seen >= 10 ? &many : &few;
		c->all++;
		c->in += truth >= i.low && truth <= i.high;
	}
	check_coverage("one size, ten samples or more", many, 0.93, 0.97);
	check_coverage("one size, fewer samples", few, 0.93, 1);
}

static void differences_cover(void **state)
{
	(void)state;
	double rate = 65536, size = 512, p = -expm1(-size / rate);
	struct coverage apart = { 0 }, between = { 0 }, zero = { 0 };
	for (int trial = 0; trial < 40000; trial++) {
		double came = floor(exp(uniform() * log(60000))), went = floor(exp(uniform() * log(60000)));
		double a = (double)binomial((uint64_t)came, p) / p, b = (double)binomial((uint64_t)went, p) / p;
		struct estimate g = estimate_bytes(a, a * size, 512, rate), l = estimate_bytes(b, b * size, 512, rate);
		struct interval i = estimate_difference(g, l);
		double truth = (came - went) * size;
		between.all++;
		between.in += truth >= i.low && truth <= i.high;
		double b2 = (double)binomial((uint64_t)came, p) / p;
		struct estimate again = estimate_bytes(b2, b2 * size, 512, rate);
		i = estimate_difference(g, again);
		apart.all++;
		apart.in += i.low <= 0 && i.high >= 0;
		zero.all++;
		zero.in += estimate_p_value(g, again) > 0.05;
	}
	check_coverage("difference", between, 0.93, 1);
	check_coverage("difference of equals", apart, 0.93, 1);
	check_coverage("p-value of equals above 0.05", zero, 0.93, 1);
}

static void many_tests_are_corrected(void **state)
{
	(void)state;
	double p[6] = { 0.041, 0.001, 0.9, 0.008, 0.039, 0.6 };
	bool s[6];
	assert_true(estimate_significant(p, 6, 0.05, s));
	bool expected[6] = { false, true, false, true, false, false };
	for (int i = 0; i < 6; i++)
		assert_int_equal(s[i], expected[i]);
	assert_true(estimate_significant(p, 0, 0.05, s));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(scale_follows_the_formula),
		cmocka_unit_test(one_size_is_recognized_and_mixtures_are_not),
		cmocka_unit_test(variance_of_one_size_is_binomial),
		cmocka_unit_test(mixed_bound_is_safe),
		cmocka_unit_test(exact_rate_has_no_error),
		cmocka_unit_test(few_samples_use_the_poisson_interval),
		cmocka_unit_test(intervals_cover_one_size),
		cmocka_unit_test(differences_cover),
		cmocka_unit_test(many_tests_are_corrected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
