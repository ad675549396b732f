/*
 * The slope of sampled values: the walk over increments against a plain dense implementation (Cholesky factors of the whole
 * matrix, Student's t by integration, quantiles by bisection), and the shapes of series drawn by hand.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "build.h"
#include "profile/operations.h"
#include "profile/series.h"

#define MOST 40

/* --- the dense twin --------------------------------------------------------- */

/* P(T < t) by Simpson's rule from 0: t = sqrt(nu) tan(u) makes the range finite and the density a power of the cosine. */
static double dense_cdf(double t, double nu)
{
	const int n = 200;
	double step = atan(t / sqrt(nu)) / n, sum = 0;
	for (int i = 0; i <= n; i++)
		sum += (i == 0 || i == n ? 1 : i % 2 ? 4 : 2) * pow(cos(i * step), nu - 1);
	return 0.5 + sum * step / 3 * exp(lgamma((nu + 1) / 2) - lgamma(nu / 2)) / sqrt(M_PI);
}

struct dense_fit {
	double centre, error, weight;
};

/* V = L L'; x becomes L^-1 x for the columns given. Returns log det V. */
static double dense_solve(size_t m, double V[MOST][MOST], double x[][MOST], size_t columns)
{
	double log_det = 0;
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j <= i; j++) {
			double sum = V[i][j];
			for (size_t k = 0; k < j; k++)
				sum -= V[i][k] * V[j][k];
			V[i][j] = i == j ? sqrt(sum) : sum / V[j][j];
		}
	for (size_t i = 0; i < m; i++)
		log_det += 2 * log(V[i][i]);
	for (size_t c = 0; c < columns; c++)
		for (size_t i = 0; i < m; i++) {
			for (size_t k = 0; k < i; k++)
				x[c][i] -= V[i][k] * x[c][k];
			x[c][i] /= V[i][i];
		}
	return log_det;
}

static double dot(size_t m, const double *a, const double *b)
{
	double sum = 0;
	for (size_t i = 0; i < m; i++)
		sum += a[i] * b[i];
	return sum;
}

/* Of the 17: the slope over everything (split 0), or after split, or the difference of after and before. */
enum wanted { WHOLE, LATER, CHANGE };

static double dense_one(const double *y, const double *t, size_t n, size_t split, enum wanted wanted, double rho,
                        struct dense_fit *f)
{
	size_t m = n - 1, p = wanted == WHOLE ? 1 : 2;
	double V[MOST][MOST], x[3][MOST] = { { 0 } };
	for (size_t i = 0; i < m; i++) {
		double dt = t[i + 1] - t[i];
		for (size_t j = 0; j < m; j++) {
			double tri = i == j ? 2 : i + 1 == j || j + 1 == i ? -1 : 0;
			double diagonal = i == j ? dt / ((t[n - 1] - t[0]) / (double)m) : 0;
			V[i][j] = isinf(rho) ? diagonal : rho * diagonal + tri;
		}
		x[p == 2 && i >= split][i] = dt;
		x[p][i] = y[i + 1] - y[i];
	}
	double log_det = dense_solve(m, V, x, p + 1), nu = (double)(m - p), a = dot(m, x[0], x[0]);
	if (wanted == WHOLE) {
		double b = dot(m, x[0], x[1]) / a, rest = 0;
		for (size_t i = 0; i < m; i++)
			rest += pow(x[1][i] - b * x[0][i], 2);
		*f = (struct dense_fit){ b, sqrt(rest / nu / a), 0 };
		return -0.5 * (log_det + log(a) + nu * log(rest / nu));
	}
	double c = dot(m, x[1], x[1]), h = dot(m, x[0], x[1]), det = a * c - h * h;
	double u = dot(m, x[0], x[2]), v = dot(m, x[1], x[2]), b0 = (c * u - h * v) / det, b1 = (a * v - h * u) / det, rest = 0;
	for (size_t i = 0; i < m; i++)
		rest += pow(x[2][i] - b0 * x[0][i] - b1 * x[1][i], 2);
	double variance = wanted == LATER ? a / det : (a + c + 2 * h) / det;
	*f = (struct dense_fit){ wanted == LATER ? b1 : b1 - b0, sqrt(rest / nu * variance), 0 };
	return -0.5 * (log_det + log(det) + nu * log(rest / nu));
}

static double dense_quantile(const struct dense_fit f[17], double nu, double p)
{
	double low = -1e6, high = 1e6;
	for (int i = 0; i < 50; i++) {
		double x = (low + high) / 2, sum = 0;
		for (int r = 0; r < 17; r++)
			sum += f[r].weight * dense_cdf((x - f[r].centre) / f[r].error, nu);
		if (sum < p)
			low = x;
		else
			high = x;
	}
	return low;
}

static struct slope dense_slope(const double *y, const double *t, size_t n, size_t split, enum wanted wanted)
{
	struct dense_fit f[17];
	double likelihood[17], sum = 0, best = -INFINITY, nu = (double)n - (wanted == WHOLE ? 2 : 3);
	struct slope s = { .rate = 0 };
	for (int r = 0; r < 17; r++) {
		double rho = r == 0 ? 0 : r == 16 ? INFINITY : exp(log(1e-3) + log(1e6) * (r - 1) / 14);
		likelihood[r] = dense_one(y, t, n, split, wanted, rho, &f[r]) + log(r == 0 ? 0.65 : 0.35 / 16);
		best = fmax(best, likelihood[r]);
	}
	for (int r = 0; r < 17; r++)
		sum += f[r].weight = exp(likelihood[r] - best);
	for (int r = 0; r < 17; r++) {
		f[r].weight /= sum;
		s.rate += f[r].weight * f[r].centre;
	}
	s.interval = (struct interval){ dense_quantile(f, nu, 0.025), dense_quantile(f, nu, 0.975) };
	return s;
}

/* --- slopes ----------------------------------------------------------------- */

struct drawn {
	struct estimate values[MOST];
	double y[MOST], t[MOST];
	struct trend_points points;
};

static void draw(struct drawn *d, size_t n, const double *y, double weight)
{
	for (size_t i = 0; i < n; i++) {
		d->y[i] = y[i];
		d->t[i] = (double)(i * 60 + (i % 3) * 7);
		d->values[i] = (struct estimate){ y[i], y[i] * weight, weight };
	}
	d->points = (struct trend_points){ d->values, d->t, n, NULL, NULL };
}

static void assert_near(double a, double b, double tolerance)
{
	if (!(fabs(a - b) <= tolerance))
		fail_msg("%.9g is not within %.3g of %.9g", a, tolerance, b);
}

static void assert_slope(const struct slope *s, struct slope want)
{
	double size = want.interval.high - want.interval.low;
	assert_near(s->rate, want.rate, 1e-6 * size);
	assert_near(s->interval.low, want.interval.low, 2e-3 * size);
	assert_near(s->interval.high, want.interval.high, 2e-3 * size);
}

static const double walk[] = { 100, 900, 1500, 1700, 3300, 3200, 4800, 5900, 6000, 7400, 9100, 9000, 9900, 12100 };
static const double noise[] = { 5000, 7000, 4100, 6300, 5200, 3900, 6900, 5600, 5900, 4800, 7200 };
static const double jagged[] = { 1000, 4000, 2500, 6100, 4200, 8300, 6600, 7000, 12000, 9100, 10500, 14800, 11000 };

static void slope_is_that_of_dense_matrices(void **state)
{
	(void)state;
	static const struct { const double *y; size_t n; } all[] = { { walk, 14 }, { noise, 11 }, { jagged, 13 }, { walk, 5 } };
	for (size_t i = 0; i < 4; i++) {
		struct drawn d;
		struct slope s, earlier, later, change;
		size_t n = all[i].n, split = (n - 1) / 2;
		draw(&d, n, all[i].y, 0);
		trend_slope(&d.points, 0, 0, &s);
		assert_slope(&s, dense_slope(d.y, d.t, n, 0, WHOLE));
		trend_halves(&d.points, split, 0, 0, &earlier, &later, &change);
		assert_slope(&later, dense_slope(d.y, d.t, n, split, LATER));
		assert_slope(&change, dense_slope(d.y, d.t, n, split, CHANGE));
	}
}

static void student_is_its_integral(void **state)
{
	(void)state;
	static const double ts[] = { -8, -2.5, -1, -0.1, 0, 0.3, 1.7, 4, 12 }, nus[] = { 1, 2, 3, 7, 30, 200 };
	for (size_t i = 0; i < sizeof nus / sizeof *nus; i++)
		for (size_t k = 0; k < sizeof ts / sizeof *ts; k++)
			assert_near(student_cdf(ts[k], nus[i]), dense_cdf(ts[k], nus[i]), 1e-8);
	for (double nu = 1; nu < 150; nu++)
		for (double t = -20; t <= 20; t += 0.37)
			assert_true(fabs(student_cdf_near(t, nu) - student_cdf(t, nu)) < 1e-13);
	assert_true(student_cdf_near(0.5, 2.5) == student_cdf(0.5, 2.5));
	/* Tables. */
	assert_near(student_cdf(12.7062, 1), 0.975, 1e-6);
	assert_near(student_cdf(2.22814, 10), 0.975, 1e-6);
}

static void rate_does_not_depend_on_units(void **state)
{
	(void)state;
	struct drawn d, scaled;
	struct slope a, b;
	draw(&d, 14, walk, 300);
	draw(&scaled, 14, walk, 300);
	for (size_t i = 0; i < 14; i++) {
		scaled.t[i] = d.t[i] / 3600;
		scaled.values[i].value *= 1024;
	}
	trend_slope(&d.points, 300, 300, &a);
	trend_slope(&scaled.points, 300 * 1024, 300 * 1024, &b);
	assert_near(b.rate / (3600 * 1024), a.rate, 1e-6 * fabs(a.rate));
	assert_near(b.interval.low / (3600 * 1024), a.interval.low, 1e-4 * fabs(a.rate));
	assert_near(b.p_value, a.p_value, 1e-6);
}

/* Ten samples that came at even times have no scatter, but the error of ten samples. */
static void error_is_at_least_that_of_sampling(void **state)
{
	(void)state;
	struct drawn d;
	struct slope s;
	double y[11];
	for (int i = 0; i < 11; i++)
		y[i] = i * 1000.0;
	draw(&d, 11, y, 1000);
	for (int i = 0; i < 11; i++)
		d.t[i] = i;
	trend_slope(&d.points, 1000, 1000, &s);
	assert_near(s.rate, 1000, 1e-6);
	double arm = 2.262 * sqrt(1000 * 1000 / 10.0);     /* t with 9 degrees of freedom */
	assert_near(s.interval.low, 1000 - arm, 1);
	assert_near(s.interval.high, 1000 + arm, 1);
	/* Exact values that lie on a line have no error. */
	trend_slope(&d.points, 0, 0, &s);
	assert_near(s.interval.low, 1000, 0.1);
	assert_near(s.interval.high, 1000, 0.1);
	assert_true(s.p_value < 1e-6);
}

static void what_stands_may_move_unseen(void **state)
{
	(void)state;
	struct drawn d;
	struct slope s;
	double y[6] = { 8000, 8000, 8000, 8000, 8000, 8000 };
	draw(&d, 6, y, 1000);
	trend_slope(&d.points, 1000, 1000, &s);
	double room = 3 * 1000 / d.t[5];
	assert_near(s.rate, 0, 0);
	assert_near(s.interval.low, -room, 1e-9);
	assert_near(s.interval.high, room, 1e-9);
	assert_true(s.p_value == 1);
	trend_slope(&d.points, 0, 0, &s);
	assert_true(s.interval.low == 0 && s.interval.high == 0);
}

static void two_moments_are_a_diff(void **state)
{
	(void)state;
	struct estimate values[2] = { { 4e7, 4e7 * 5e5, 5e5 }, { 9e7, 9e7 * 5e5, 5e5 } };
	double times[2] = { 0, 100 };
	struct trend_points p = { values, times, 2, NULL, NULL };
	struct trend t;
	trend_find(&p, &t);
	struct interval i = estimate_difference(values[1], values[0]);
	assert_near(t.slope.rate, 5e5, 1e-6);
	assert_near(t.slope.interval.low, i.low / 100, 1e-6);
	assert_near(t.slope.interval.high, i.high / 100, 1e-6);
	assert_int_equal(t.shape, SHAPE_GROWN);
	assert_false(t.has_halves || t.steady);
	/* What came and went in between says more than the whole amounts. */
	struct estimate came = { 6e7, 6e7 * 5e5, 5e5 }, went = { 1e7, 1e7 * 5e5, 5e5 };
	p.came = &came;
	p.went = &went;
	trend_find(&p, &t);
	i = estimate_difference(came, went);
	assert_near(t.slope.interval.low, i.low / 100, 1e-6);
}

/* --- shapes ----------------------------------------------------------------- */

static void assert_shape(const char *want, size_t n, const double *y, double weight, bool steady)
{
	struct drawn d;
	struct trend t;
	draw(&d, n, y, weight);
	trend_find(&d.points, &t);
	assert_string_equal(shape_name(t.shape), want);
	assert_int_equal(t.steady, steady);
}

static void shapes_have_their_names(void **state)
{
	(void)state;
	static const double slowing[] = { 0, 3000, 5500, 7600, 9300, 10600, 11500, 12200, 12900, 13500, 14100, 14700, 15300 };
	static const double plateau[] = { 0, 4000, 7600, 10100, 11600, 12000, 12000, 12100, 12000, 12000, 12100, 12000, 12000 };
	static const double step[] = { 3000, 3000, 3010, 3000, 3000, 13000, 13000, 13010, 13000, 13000, 13000 };
	static const double saw[] = { 1000, 4000, 7000, 1000, 4100, 7100, 900, 3900, 7200, 1100, 4000, 7000, 1000 };
	static const double late[] = { 0, 0, 0, 0, 0, 0, 1100, 2000, 2900, 4100, 5000, 6000, 7100 };
	static const double late_cache[] = { 0, 0, 0, 0, 0, 0, 5000, 7500, 8700, 9300, 9600, 9700, 9700 };
	static const double gone[] = { 7000, 7100, 6900, 7000, 7000, 0, 0, 0, 0, 0 };
	static const double shrinking[] = { 9000, 8000, 7100, 6000, 4900, 4000, 3000, 2100, 1000 };
	static const double flat[] = { 500, 500, 500, 500, 500, 500 };
	assert_shape("flat", 6, flat, 0, false);
	assert_shape("flat", 6, flat, 100, false);
	assert_shape("steady", 14, walk, 100, true);
	assert_shape("noise", 11, noise, 100, false);
	assert_shape("slowing", 13, slowing, 0, false);
	assert_shape("plateau", 13, plateau, 10, false);
	assert_shape("step", 11, step, 100, false);
	assert_shape("saw-tooth", 13, saw, 10, false);
	assert_shape("new", 13, late, 10, true);
	assert_shape("new", 13, late_cache, 10, false);
	assert_shape("gone", 10, gone, 100, false);
	assert_shape("shrinking", 9, shrinking, 10, false);
}

/* The same pictures in so few samples that they are no pictures. */
static void few_samples_make_no_shape(void **state)
{
	(void)state;
	static const double step[] = { 0, 0, 0, 0, 0, 1000, 1000, 1000, 1000, 1000 };
	static const double saw[] = { 0, 1000, 0, 1000, 1000, 0, 1000, 1000, 0 };
	assert_shape("noise", 10, step, 1000, false);
	assert_shape("noise", 9, saw, 1000, false);
}

/* --- series of profiles ----------------------------------------------------- */

static struct profile *moment(int k, bool with_time)
{
	struct build b = build_begin(1000, false, 0);
	b.p->sources[0].time_nanos = with_time ? (1000 + 10LL * k) * 1000000000 : 0;
	/* walk grows steadily, in two threads at two sizes; noise comes and goes; one stack stands. */
	build_sample(&b, "leak;handler;main", "one", 10, (int)walk[k] / 10, (int)walk[k], 0, 0);
	build_sample(&b, "leak;handler;main", "two", 20, (int)walk[k] / 20, (int)walk[k], 0, 0);
	if (k != 3)
		build_sample(&b, "churn;handler;main", NULL, 10, (int)noise[k] / 10, (int)noise[k], 0, 0);
	build_sample(&b, "table;main", NULL, 10, 5000, 50000, 0, 0);
	struct error err;
	assert_int_equal(profile_finish(b.p, &err), 0);
	return b.p;
}

static struct series *series_of(int n, bool with_time, const struct view_options *vo, struct series_options o,
                                struct profile **ret_joined, struct view **ret_view)
{
	struct profile *parts[MOST];
	struct error err = { 0 };
	struct series *s = NULL;
	for (int k = 0; k < n; k++)
		parts[k] = moment(k, with_time);
	assert_int_equal(profile_series((const struct profile *const *)parts, (size_t)n, ret_joined, &err), 0);
	for (int k = 0; k < n; k++)
		profile_free(parts[k]);
	assert_int_equal(view_new(*ret_joined, vo, ret_view, &err), 0);
	assert_int_equal(series_new(*ret_view, vo, &o, &s, &err), 0);
	return s;
}

static void drop_series(struct series *s, struct profile *p, struct view *v)
{
	series_free(s);
	view_free(v);
	profile_free(p);
}

static const char *leaf_of(const struct series *s, const struct growth *g)
{
	size_t n;
	uint32_t entry = s->options.by_stack ? series_frames(s, g, &n)[0] : (uint32_t)g->first_frame;
	return profile_text(s->view->profile, s->view->entries[entry].name);
}

static void series_rank_what_grows(void **state)
{
	(void)state;
	struct view_options vo = { .column = -1 };
	struct profile *p;
	struct view *v;
	struct series *s = series_of(11, true, &vo, (struct series_options){ .by_stack = true }, &p, &v);
	assert_int_equal(s->n_snapshots, 11);
	assert_true(s->timed);
	assert_int_equal(s->n_places, 3);
	const struct growth *g = &s->places[s->order[0]];
	assert_string_equal(leaf_of(s, g), "leak");
	assert_true(g->significant && g->trend.steady);
	assert_int_equal(s->n_steady, 1);
	/* Both threads, all sizes. */
	assert_near(g->values[0].value, 200, 0);
	assert_near(g->values[10].value, 2 * walk[10], 0);
	/* What is missing is nothing. */
	for (size_t i = 0; i < 3; i++)
		if (!strcmp(leaf_of(s, &s->places[i]), "churn"))
			assert_near(s->places[i].values[3].value, 0, 0);
	assert_near(s->total.values[10].value, 2 * walk[10] + noise[10] + 50000, 0);
	assert_true(growth_exceeds(g, 0));
	assert_true(growth_exceeds(g, g->trend.later.interval.low * 0.9 < g->trend.slope.interval.low * 0.9
	                                  ? g->trend.later.interval.low * 0.9 : g->trend.slope.interval.low * 0.9));
	assert_false(growth_exceeds(g, g->trend.slope.rate));
	drop_series(s, p, v);
}

static void series_by_function_and_filters(void **state)
{
	(void)state;
	struct view_options vo = { .column = -1, .ignore = "churn" };
	struct profile *p;
	struct view *v;
	struct series *s = series_of(11, true, &vo, (struct series_options){ .sort = SORT_CUM }, &p, &v);
	assert_int_equal(s->n_places, 4);     /* leak, handler, main, table */
	size_t handlers = 0;
	for (size_t i = 0; i < s->n_places; i++)
		if (!strcmp(leaf_of(s, &s->places[i]), "handler")) {
			handlers++;
			assert_near(s->places[i].values[10].value, 2 * walk[10], 0);
		}
	assert_int_equal(handlers, 1);
	drop_series(s, p, v);
	vo = (struct view_options){ .column = -1, .tagfocus = "thread=one" };
	s = series_of(11, true, &vo, (struct series_options){ .by_stack = true }, &p, &v);
	assert_int_equal(s->n_places, 1);
	assert_near(s->places[0].values[10].value, walk[10], 0);
	drop_series(s, p, v);
}

static void series_without_times(void **state)
{
	(void)state;
	struct view_options vo = { .column = -1 };
	struct profile *p;
	struct view *v;
	struct series *s = series_of(6, false, &vo, (struct series_options){ .by_stack = true }, &p, &v);
	assert_false(s->timed);
	assert_near(s->times[5], 5, 0);
	drop_series(s, p, v);
	s = series_of(6, false, &vo, (struct series_options){ .by_stack = true, .interval_seconds = 30 }, &p, &v);
	assert_true(s->timed);
	assert_near(s->times[5], 150, 0);
	drop_series(s, p, v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slope_is_that_of_dense_matrices),
		cmocka_unit_test(student_is_its_integral),
		cmocka_unit_test(rate_does_not_depend_on_units),
		cmocka_unit_test(error_is_at_least_that_of_sampling),
		cmocka_unit_test(what_stands_may_move_unseen),
		cmocka_unit_test(two_moments_are_a_diff),
		cmocka_unit_test(shapes_have_their_names),
		cmocka_unit_test(few_samples_make_no_shape),
		cmocka_unit_test(series_rank_what_grows),
		cmocka_unit_test(series_by_function_and_filters),
		cmocka_unit_test(series_without_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
