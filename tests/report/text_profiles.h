/* The profiles that the tests of the text and JSON reports look at, small enough to check by hand. */
#ifndef TESTS_REPORT_TEXT_PROFILES_H
#define TESTS_REPORT_TEXT_PROFILES_H

#include "../profile/build.h"

#include "profile/operations.h"
#include "report/report.h"

#define MIB ((int64_t)1 << 20)

/* Sets what a dump of pid 42 taken some minutes after 2026-11-21 03:30 UTC says of itself. */
static inline void profiles_origin(struct build *b, const char *name, int minutes)
{
	struct source *s = &b->p->sources[b->source];
	s->name = profile_cstring(b->p, name);
	s->pid = 42;
	s->time_nanos = (int64_t)1795231800 * 1000000000 + (int64_t)minutes * 60 * 1000000000;
}

/* 100 MiB in four stacks of a server, sampled every 64 KiB. */
static inline struct profile *profiles_server(double rate)
{
	struct build b = build_begin(rate, false, 0);
	profiles_origin(&b, "server.42.0.heap", 0);
	build_sample(&b, "parse;handle;run;main", "worker", 1024, 65536, 64 * MIB, 0, 0);
	build_sample(&b, "cache_put;handle;run;main", "worker", 4096, 6144, 24 * MIB, 0, 0);
	build_sample(&b, "load;init;main", "", 0, 1024, 11 * MIB, 0, 0);
	build_sample(&b, "log_line;run;main", "", 128, 8192, 1 * MIB, 0, 0);
	return build_end(&b);
}

/* The same process ten minutes later: parse leaks, load is freed, session is new, cache_put wavers. */
static inline struct profile *profiles_server_later(double rate)
{
	struct build b = build_begin(rate, false, 0);
	profiles_origin(&b, "server.42.1.heap", 10);
	build_sample(&b, "parse;handle;run;main", "worker", 1024, 163840, 160 * MIB, 0, 0);
	build_sample(&b, "cache_put;handle;run;main", "worker", 4096, 6400, 25 * MIB, 0, 0);
	build_sample(&b, "session;handle;run;main", "worker", 512, 16384, 8 * MIB, 0, 0);
	build_sample(&b, "log_line;run;main", "", 128, 8192, 1 * MIB, 0, 0);
	return build_end(&b);
}

/* base is freed. */
static inline struct profile *profiles_diff(struct profile *base, struct profile *now)
{
	struct profile *both = NULL;
	if (!base || !now || profile_diff(base, now, &both, NULL))
		both = NULL;
	profile_free(base);
	profile_free(now);
	return both;
}

static inline struct view *profiles_view(struct profile *p, enum granularity by, const char *focus)
{
	struct view_options o = { .by = by, .column = -1, .focus = focus };
	struct view *v = NULL;
	return p && view_new(p, &o, &v, NULL) == 0 ? v : NULL;
}

#endif
