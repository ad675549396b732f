/*
 * Generalized least squares on increments. The covariance is tridiagonal, so a factor of it needs one number of
 * memory: a single walk over the increments gives all inner products x' V^-1 y (forward substitution of the L D L'
 * factors) and the determinant, for one slope or for the two of a halved range.
 */
#include "profile/trend.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define N_RHO 17
#define PRIOR_WALKLESS 0.65     /* that there is no random walk (rho = 0); the other 16 share the rest evenly */
#define LEAST_WEIGHT 1e-4       /* parts of the mixture below this don't move a quantile */
#define SUM_NU 128              /* degrees of freedom up to which Student's t is summed up */

/* --- Student's t ---------------------------------------------------------- */

/* Regularized incomplete beta function I_x(a, b), x < (a + 1) / (a + b + 2): Lentz's continued fraction. */
static double beta_fraction(double a, double b, double x, double log_beta)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1);
	d = 1 / (fabs(d) < DBL_MIN ? DBL_MIN : d);
	double f = d;
	for (int m = 1; m < 300; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 / (1 + even * d);
		c = 1 + even / c;
		f *= c * d;
		d = 1 / (1 + odd * d);
		c = 1 + odd / c;
		f *= c * d;
		if (fabs(c * d - 1) < 1e-12)
			break;
	}
	return f * exp(a * log(x) + b * log1p(-x) - log_beta) / a;
}

/*
 * One Student's t for many values of t. With cos^2 = nu / (nu + t^2) and whole nu the chance of |T| < t is
 * sin * (1 + cos^2 * 1/2 + cos^4 * 1/2 * 3/4 + ...) for even nu, and (angle + sin * cos * (1 + cos^2 * 2/3 + ...)) * 2 / pi
 * for odd ones, nu / 2 terms (Abramowitz and Stegun 26.7.3 and 4): exact to 1e-15, but a tail that is smaller is lost in it.
 */
struct student {
	double nu, log_beta;            /* log B(nu / 2, 1 / 2) */
	double terms[SUM_NU / 2];
	size_t n_terms;
	bool odd;
};

static struct student student_new(double nu)
{
	struct student s = { .nu = nu, .log_beta = lgamma(nu / 2) + lgamma(0.5) - lgamma((nu + 1) / 2) };
	if (nu > SUM_NU || nu != floor(nu))
		return s;
	s.odd = fmod(nu, 2) != 0;
	double term = 1;
	for (double k = s.odd ? 3 : 2; k <= nu; k += 2) {
		s.terms[s.n_terms++] = term;
		term *= (k - 1) / k;
	}
	return s;
}

/* Also of the far tails, to twelve digits. */
static double student_at(const struct student *s, double t)
{
	double nu = s->nu, x = nu / (nu + t * t), a = nu / 2, tail;
	if (t == 0)
		return 0.5;
	if (!(x > 0))
		tail = 0;
	else if (x < (a + 1) / (a + 2.5))
		tail = beta_fraction(a, 0.5, x, s->log_beta);
	else
		tail = 1 - beta_fraction(0.5, a, t * t / (nu + t * t), s->log_beta);
	return t > 0 ? 1 - tail / 2 : tail / 2;
}

/* The same to 1e-14, ten times as fast. */
static double student_near(const struct student *s, double t)
{
	if (s->n_terms == 0)
		return student_at(s, t);
	double x = s->nu / (s->nu + t * t), sum = 0, sine = t / sqrt(s->nu + t * t);
	for (size_t i = s->n_terms; i-- > 0;)
		sum = sum * x + s->terms[i];
	double within = s->odd ? (atan(t / sqrt(s->nu)) + sine * sqrt(x) * sum) * M_2_PI : sine * sum;
	return 0.5 + within / 2;
}

double student_cdf(double t, double nu)
{
	struct student s = student_new(nu);
	return student_at(&s, t);
}

double student_cdf_near(double t, double nu)
{
	struct student s = student_new(nu);
	return student_near(&s, t);
}

/* --- one covariance ------------------------------------------------------- */

#define MOST_COLUMNS 2

/* One slope, or two; [n_slopes] is the increments themselves. */
struct design {
	const struct trend_points *points;
	size_t n_slopes, split;     /* with two: the second begins at increment split */
	double mean_dt;             /* of an increment: rho has no unit */
};

/* What the fit with one rho says. */
struct fit {
	double rate[MOST_COLUMNS];
	double cov[MOST_COLUMNS][MOST_COLUMNS];     /* of rate */
	double weight;                              /* in the mixture */
};

/* sums[i][j] = x_i' V^-1 x_j, V = rho diag(dt) + T, or diag(dt) when rho is infinite. Returns log det V. */
static double inner_products(const struct design *g, double rho, double sums[MOST_COLUMNS + 1][MOST_COLUMNS + 1])
{
	const struct trend_points *p = g->points;
	double carried[MOST_COLUMNS + 1] = { 0 }, log_det = 0, last = 0;
	memset(sums, 0, (MOST_COLUMNS + 1) * sizeof *sums);
	for (size_t i = 0; i + 1 < p->n; i++) {
		double dt = (p->times[i + 1] - p->times[i]) / g->mean_dt;
		double x[MOST_COLUMNS + 1] = { 0 };
		x[g->n_slopes == 2 && i >= g->split] = dt;
		x[g->n_slopes] = p->values[i + 1].value - p->values[i].value;
		double pivot = isinf(rho) ? dt : rho * dt + 2;
		if (!isinf(rho) && i > 0) {
			pivot -= 1 / last;
			for (size_t k = 0; k <= g->n_slopes; k++)
				x[k] += carried[k] / last;
		}
		for (size_t k = 0; k <= g->n_slopes; k++)
			for (size_t l = 0; l <= k; l++)
				sums[k][l] += x[k] * x[l] / pivot;
		memcpy(carried, x, sizeof carried);
		last = pivot;
		log_det += log(pivot);
	}
	return log_det;
}

/* Returns the logarithm of the restricted likelihood, least: of the residual variance. */
static double fit_rho(const struct design *g, double rho, double least, struct fit *f)
{
	double s[MOST_COLUMNS + 1][MOST_COLUMNS + 1];
	double log_det = inner_products(g, rho, s), nu = (double)(g->points->n - 1 - g->n_slopes), rest, det;
	memset(f, 0, sizeof *f);
	if (g->n_slopes == 1) {
		det = s[0][0];
		f->rate[0] = s[1][0] / det;
		rest = s[1][1] - s[1][0] * f->rate[0];
		f->cov[0][0] = 1 / det;
	} else {
		det = s[0][0] * s[1][1] - s[1][0] * s[1][0];
		f->cov[0][0] = s[1][1] / det;
		f->cov[1][1] = s[0][0] / det;
		f->cov[0][1] = f->cov[1][0] = -s[1][0] / det;
		f->rate[0] = (s[1][1] * s[2][0] - s[1][0] * s[2][1]) / det;
		f->rate[1] = (s[0][0] * s[2][1] - s[1][0] * s[2][0]) / det;
		rest = s[2][2] - f->rate[0] * s[2][0] - f->rate[1] * s[2][1];
	}
	double variance = fmax(rest / nu, least);
	for (size_t i = 0; i < g->n_slopes; i++)
		for (size_t k = 0; k < g->n_slopes; k++)
			f->cov[i][k] *= variance;
	return -0.5 * (log_det + log(det) + nu * log(variance));
}

static double rho_at(size_t i)
{
	if (i == 0)
		return 0;
	return i == N_RHO - 1 ? INFINITY : pow(10, -3 + 6.0 * (double)(i - 1) / (N_RHO - 3));
}

/* All fits, their rates per unit of time, their weights adding up to 1. */
static void fit_all(const struct design *g, struct fit fits[N_RHO])
{
	const struct trend_points *p = g->points;
	double likelihood[N_RHO], best = -INFINITY, size = 0, sum = 0;
	for (size_t i = 0; i < p->n; i++)
		size = fmax(size, fabs(p->values[i].value));
	/* Values are rounded to whole numbers, and sums of them to 53 bits. */
	double least = fmax(1e-4, size * size * 1e-24);
	for (size_t r = 0; r < N_RHO; r++) {
		double prior = r == 0 ? PRIOR_WALKLESS : (1 - PRIOR_WALKLESS) / (N_RHO - 1);
		likelihood[r] = fit_rho(g, rho_at(r), least, &fits[r]) + log(prior);
		best = fmax(best, likelihood[r]);
	}
	for (size_t r = 0; r < N_RHO; r++)
		sum += fits[r].weight = exp(likelihood[r] - best);
	for (size_t r = 0; r < N_RHO; r++) {
		fits[r].weight /= sum;
		for (size_t i = 0; i < MOST_COLUMNS; i++) {
			fits[r].rate[i] /= g->mean_dt;
			for (size_t k = 0; k < MOST_COLUMNS; k++)
				fits[r].cov[i][k] /= g->mean_dt * g->mean_dt;
		}
	}
}

/* --- the mixture ---------------------------------------------------------- */

struct part {
	double weight, centre, error;
};

struct mixture {
	struct part parts[N_RHO];
	size_t n;
	struct student student;
};

static double mixture_cdf(const struct mixture *m, double x, double cdf(const struct student *, double))
{
	double sum = 0, all = 0;
	for (size_t i = 0; i < m->n; i++) {
		const struct part *q = &m->parts[i];
		double below = q->error > 0 ? cdf(&m->student, (x - q->centre) / q->error)
		               : x == q->centre ? 0.5 : x > q->centre;
		sum += q->weight * below;
		all += q->weight;
	}
	return sum / all;
}

/* A bracket from the parts, then regula falsi with the Illinois rule on it. */
static double mixture_quantile(const struct mixture *m, double p)
{
	double low = INFINITY, high = -INFINITY, error = 0;
	for (size_t i = 0; i < m->n; i++) {
		low = fmin(low, m->parts[i].centre);
		high = fmax(high, m->parts[i].centre);
		error = fmax(error, m->parts[i].error);
	}
	if (!(error > 0) && low == high)
		return low;
	double step = fmax(error, (high - low) / 2) * 3;
	double at_low = mixture_cdf(m, low -= step, student_near) - p, at_high = mixture_cdf(m, high += step, student_near) - p;
	for (int i = 0; i < 60 && at_low > 0; i++, step *= 2)
		at_low = mixture_cdf(m, low -= step, student_near) - p;
	for (int i = 0; i < 60 && at_high < 0; i++, step *= 2)
		at_high = mixture_cdf(m, high += step, student_near) - p;
	int side = 0;
	for (int i = 0; i < 100 && high - low > 1e-5 * error; i++) {
		double x = i % 4 == 3 ? (low + high) / 2 : (low * at_high - high * at_low) / (at_high - at_low);
		double at = mixture_cdf(m, x, student_near) - p;
		if (at < 0) {
			low = x;
			at_low = at;
			at_high *= side == -1 ? 0.5 : 1;
			side = -1;
		} else {
			high = x;
			at_high = at;
			at_low *= side == 1 ? 0.5 : 1;
			side = 1;
		}
		if (fabs(at) < 1e-7)
			return x;
	}
	return (low + high) / 2;
}

/* Nothing moved: what could have, unseen. */
static struct slope standing(double zero_weight, double duration)
{
	double room = ESTIMATE_ZERO_BOUND * zero_weight / duration;
	return (struct slope){ .interval = { -room, room }, .p_value = 1 };
}

/* The slope rate[second] - rate[first], or rate[second] alone when first is none (SIZE_MAX). */
static struct slope mix(const struct fit fits[N_RHO], size_t second, size_t first, double nu, double weight,
                        const double durations[MOST_COLUMNS])
{
	struct mixture m = { .student = student_new(nu) };
	double means[MOST_COLUMNS] = { 0 }, least = 0;
	bool both = first != SIZE_MAX;
	for (size_t r = 0; r < N_RHO; r++)
		for (size_t i = 0; i < MOST_COLUMNS; i++)
			means[i] += fits[r].weight * fits[r].rate[i];
	least = fabs(means[second]) * weight / durations[second];
	if (both)
		least += fabs(means[first]) * weight / durations[first];
	for (size_t r = 0; r < N_RHO; r++) {
		const struct fit *f = &fits[r];
		if (f->weight < LEAST_WEIGHT)
			continue;
		double variance = f->cov[second][second];
		if (both)
			variance += f->cov[first][first] - 2 * f->cov[first][second];
		m.parts[m.n++] = (struct part){ f->weight, f->rate[second] - (both ? f->rate[first] : 0),
			                        sqrt(fmax(variance, least)) };
	}
	struct slope s = { .rate = means[second] - (both ? means[first] : 0) };
	s.interval = (struct interval){ mixture_quantile(&m, 0.025), mixture_quantile(&m, 0.975) };
	double below = mixture_cdf(&m, 0, student_at);
	s.p_value = fmin(1, 2 * fmin(below, 1 - below));
	return s;
}

static bool stands(const struct trend_points *p, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++)
		if (p->values[i + 1].value != p->values[i].value)
			return false;
	return true;
}

void trend_slope(const struct trend_points *p, double weight, double zero_weight, struct slope *ret)
{
	double durations[MOST_COLUMNS] = { p->times[p->n - 1] - p->times[0], 1 };
	struct design g = { p, 1, 0, durations[0] / (double)(p->n - 1) };
	struct fit fits[N_RHO];
	if (stands(p, 0, p->n - 1)) {
		*ret = standing(zero_weight, durations[0]);
		return;
	}
	fit_all(&g, fits);
	*ret = mix(fits, 0, SIZE_MAX, (double)(p->n - 2), weight, durations);
}

void trend_halves(const struct trend_points *p, size_t split, double weight, double zero_weight,
                  struct slope *ret_earlier, struct slope *ret_later, struct slope *ret_change)
{
	double durations[MOST_COLUMNS] = { p->times[split] - p->times[0], p->times[p->n - 1] - p->times[split] };
	double nu = (double)(p->n - 3);
	struct design g = { p, 2, split, (durations[0] + durations[1]) / (double)(p->n - 1) };
	struct fit fits[N_RHO];
	if (stands(p, 0, p->n - 1)) {
		*ret_earlier = standing(zero_weight, durations[0]);
		*ret_later = standing(zero_weight, durations[1]);
		*ret_change = standing(zero_weight, fmin(durations[0], durations[1]));
		return;
	}
	fit_all(&g, fits);
	*ret_earlier = mix(fits, 0, SIZE_MAX, nu, weight, durations);
	*ret_later = mix(fits, 1, SIZE_MAX, nu, weight, durations);
	*ret_change = mix(fits, 1, 0, nu, weight, durations);
}
