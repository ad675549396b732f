/* A program that doesn't run: what `heapgauge run` would make of it. */
#include <stdio.h>
#include <string.h>

#include "cli/diagnosis.h"
#include "cli/launch.h"
#include "cli/preload.h"
#include "profile/profile.h"

static void find_allocator(struct diagnosis *d, const struct program *p)
{
	const struct jemalloc *its = &p->jemalloc, *used = p->preload[0] ? &p->preloaded : its;
	if (p->preload[0])
		diagnosis_find(d, "allocator", ANSWER_YES, "glibc's malloc; 'heapgauge run' puts jemalloc %s under it (%s)",
		               used->version, used->path);
	else
		diagnosis_find(d, "allocator", ANSWER_YES, "jemalloc %s in %s, reads %s%s%s", used->version, used->path,
		               used->variables[0], used->n_variables > 1 ? " or " : "",
		               used->n_variables > 1 ? used->variables[1] : "");
	diagnosis_find(d, "compiled in", used->without_profiling ? ANSWER_NO : used->thread_names ? ANSWER_YES : ANSWER_UNKNOWN,
	               used->without_profiling ? "its jemalloc was built without heap profiling"
	               : used->thread_names ? "heap profiling" : "heap profiling, as far as can be told before it runs");
	if (used->without_profiling)
		advise_build(d, used->variables[0], used->path);
	else
		diagnose_unwinder(d, used->path);
}

static void find_agent(struct diagnosis *d, const struct program *p)
{
	struct preload agent;
	struct preload_settings none = { .listen = NULL };
	if (preload_prepare(&none, p, &agent, NULL) == 0 && agent.library[0])
		diagnosis_find(d, "endpoint", ANSWER_YES, "'heapgauge run' opens one");
	else
		diagnosis_find(d, "endpoint", ANSWER_NO, "%s", agent.why_not);
}

int diagnose_file(const char *name, struct diagnosis *ret, struct error *err)
{
	static struct program p;
	struct error why;
	struct diagnosis d = { .pid = 0 };
	int failed = launch_inspect(name, NULL, &p, &why);
	if (failed && !p.path[0]) {
		*err = why;
		return failed;
	}
	snprintf(d.name, sizeof d.name, "%s", path_base(name));
	snprintf(d.program, sizeof d.program, "%s", p.path);
	if (strcmp(p.path, p.real) != 0)
		diagnosis_find(&d, "script", ANSWER_YES, "read by %s, which is what is looked at", p.real);
	if (failed) {
		diagnosis_find(&d, "allocator", ANSWER_NO, "%s", "nothing that could be profiled");
		diagnosis_advise(&d, true, NULL, "%s", why.text);
	} else {
		find_allocator(&d, &p);
		find_agent(&d, &p);
	}
	if (p.real[0])
		diagnose_names(&d, p.real);
	if (diagnosis_is_fine(&d)) {
		snprintf(d.how, sizeof d.how, "heapgauge run -- %s", d.program);
		if (!p.preload[0])
			advise_start(&d, p.jemalloc.variables[0]);
	}
	diagnosis_sort(&d);
	*ret = d;
	return 0;
}
