/* A rate that a leak ranking is held to, "1M/h": from text, and in the unit of a series' times. */
#include "report/report.h"

#include "base/text.h"

#include <string.h>

bool leaks_time_unit(const char *text, double *ret_seconds)
{
	static const struct {
		const char *name;
		double seconds;
	} units[] = { { "ms", 1e-3 }, { "s", 1 }, { "sec", 1 }, { "m", 60 }, { "min", 60 }, { "h", 3600 },
		      { "hour", 3600 }, { "d", 86400 }, { "day", 86400 } };
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strcmp(text, units[i].name) == 0) {
			*ret_seconds = units[i].seconds;
			return true;
		}
	return false;
}

bool leaks_gate_parse(const char *text, struct leaks_gate *ret)
{
	const char *slash = strchr(text, '/');
	char amount[32];
	size_t n = slash ? (size_t)(slash - text) : 0;
	uint64_t size;
	if (!slash || n >= sizeof amount)
		return false;
	memcpy(amount, text, n);
	amount[n] = '\0';
	*ret = (struct leaks_gate){ .text = text };
	if (!text_parse_bytes(amount, &size) ||
	    !(strcmp(slash + 1, "snapshot") == 0 || leaks_time_unit(slash + 1, &ret->seconds)))
		return false;
	ret->bytes = (double)size;
	return true;
}

int leaks_gate_rate(const struct leaks_gate *g, const struct series *s, double *ret, struct error *err)
{
	if (s->n_snapshots <= TREND_FEW)
		return error_set(err, E_USAGE, "the gate %s takes at least %d snapshots of one process, and %zu are there: fewer "
		                 "can't tell a leak from a cache that fills", g->text, TREND_FEW + 1, s->n_snapshots);
	if (!s->timed && g->seconds > 0)
		return error_set(err, E_USAGE, "--fail-above %s: the profiles don't tell when they were taken; say with --interval "
		                 "how far apart they are, or give the rate per /snapshot", g->text);
	if (s->timed && g->seconds == 0)
		*ret = g->bytes / (s->times[s->n_snapshots - 1] / (double)(s->n_snapshots - 1));
	else
		*ret = s->timed ? g->bytes / g->seconds : g->bytes;
	return 0;
}
