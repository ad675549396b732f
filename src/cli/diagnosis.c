/* What doctor asks of processes and files alike: names, build id, unwinder; and the advice that fits both. */
#include "cli/diagnosis.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/binary_names.h"
#include "symbol/sandbox.h"

void diagnosis_find(struct diagnosis *d, const char *name, enum answer answer, const char *format, ...)
{
	if (d->n_findings == FINDINGS_MAX)
		return;
	struct finding *f = &d->findings[d->n_findings++];
	f->name = name;
	f->answer = answer;
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(f->text, sizeof f->text, format, arguments);
	va_end(arguments);
}

void diagnosis_advise(struct diagnosis *d, bool needed, const char *command, const char *format, ...)
{
	for (size_t i = 0; command && i < d->n_remedies; i++)
		if (strcmp(d->remedies[i].command, command) == 0)
			return;
	if (d->n_remedies == REMEDIES_MAX)
		return;
	struct remedy *r = &d->remedies[d->n_remedies++];
	r->needed = needed;
	snprintf(r->command, sizeof r->command, "%s", command ? command : "");
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(r->why, sizeof r->why, format, arguments);
	va_end(arguments);
}

static size_t place_of(const char *name)
{
	static const char *const order[] = { "script", "allocator", "compiled in", "enabled", "active", "rate", "unwinder",
		                             "function names", "build id", "readers", "endpoint", "attach", "asked" };
	size_t i = 0;
	while (i < sizeof order / sizeof *order && strcmp(order[i], name) != 0)
		i++;
	return i;
}

static int by_place(const void *a, const void *b)
{
	size_t x = place_of(((const struct finding *)a)->name), y = place_of(((const struct finding *)b)->name);
	return (x > y) - (x < y);
}

void diagnosis_sort(struct diagnosis *d)
{
	qsort(d->findings, d->n_findings, sizeof *d->findings, by_place);
}

bool diagnosis_is_fine(const struct diagnosis *d)
{
	for (size_t i = 0; i < d->n_remedies; i++)
		if (d->remedies[i].needed)
			return false;
	return true;
}

/* What shuts in the processes that read debug information, on the machine where that is done: this one. */
static void diagnose_readers(struct diagnosis *d)
{
	struct sandbox s;
	if (!sandbox_probe(&s))
		diagnosis_find(d, "readers", ANSWER_UNKNOWN, "no process could be started to see what this kernel has to shut them in");
	else if (s.landlock && s.filter && s.limits && s.no_privileges)
		diagnosis_find(d, "readers", ANSWER_YES, "of debug information are shut in by Landlock (ABI %d), seccomp and limits", s.landlock);
	else
		diagnosis_find(d, "readers", ANSWER_NO, "of debug information are shut in by less than there could be%s%s%s%s",
		               s.landlock ? "" : "; this kernel has no Landlock", s.filter ? "" : "; seccomp refuses the filter",
		               s.limits ? "" : "; limits could not be set", s.no_privileges ? "" : "; privileges could not be given up");
}

void diagnose_names(struct diagnosis *d, const char *path)
{
	struct binary_names n;
	struct error err;
	diagnose_readers(d);
	if (binary_names_read(path, &n, &err)) {
		diagnosis_find(d, "function names", ANSWER_UNKNOWN, "%s", err.text);
		return;
	}
	bool lines = n.debug_info || n.debug_file[0];
	if (lines)
		diagnosis_find(d, "function names", ANSWER_YES, "with lines and inlined calls, from %s",
		               n.debug_file[0] ? n.debug_file : "its own debug information");
	else if (n.symtab || n.mini)
		diagnosis_find(d, "function names", ANSWER_YES, "from its symbol table; no lines: it has no debug information");
	else
		diagnosis_find(d, "function names", ANSWER_NO, "it is stripped: only exported functions have names");
	if (n.build_id[0])
		diagnosis_find(d, "build id", ANSWER_YES, "%s", n.build_id);
	else
		diagnosis_find(d, "build id", ANSWER_NO, "has none: profiles and debug files are told apart by path only");
	if (!lines && n.build_id[0])
		diagnosis_advise(d, false, NULL, "for %s, install the debug file with its build id (Debian: the -dbgsym package), or give a "
		                 "build with -g to --debug-dir", n.symtab || n.mini ? "lines and inlined calls"
		                                                                : "the names of its own functions");
	if (!n.build_id[0])
		diagnosis_advise(d, false, "-Wl,--build-id", "let its linker add a build id, so that profiles of different builds are told apart");
}

void diagnose_unwinder(struct diagnosis *d, const char *path)
{
	switch (binary_unwinder(path)) {
	case UNWINDER_LIBGCC:
		diagnosis_find(d, "unwinder", ANSWER_YES, "libgcc's: walks everything that has unwind tables");
		break;
	case UNWINDER_LIBUNWIND:
		diagnosis_find(d, "unwinder", ANSWER_YES, "libunwind");
		break;
	case UNWINDER_UNKNOWN:
		diagnosis_find(d, "unwinder", ANSWER_UNKNOWN, "neither libgcc's nor libunwind: frame pointers, if any; code built "
		               "without them then has short stacks");
		break;
	}
}

void advise_build(struct diagnosis *d, const char *variable, const char *path)
{
	if (strncmp(variable, "_RJEM_", 6) == 0 || binary_is_rust(path))
		diagnosis_advise(d, true, "tikv-jemallocator = { version = \"0.6\", features = [\"profiling\"] }",
		                 "its jemalloc was built without profiling; in Cargo.toml");
	else
		diagnosis_advise(d, true, "./configure --enable-prof", "the jemalloc in %.200s was built without profiling; build it "
		                 "with that, or let the program use a system's that has it (Debian's libjemalloc2)", path);
}

void advise_start(struct diagnosis *d, const char *variable)
{
	char command[sizeof d->remedies[0].command];
	if (d->pid) {
		snprintf(command, sizeof command, "heapgauge run -- %.500s …", d->program);
		diagnosis_advise(d, true, command, "start it with profiling on, an endpoint, and dumps at exit");
	}
	if (!*variable)
		return;
	snprintf(command, sizeof command, "%.40s=prof:true,prof_active:true,lg_prof_sample:19", variable);
	diagnosis_advise(d, d->pid != 0, command, "%s", d->pid ? "or only put this into its environment (a service's, a container's)"
	                 : "without heapgauge, put this into its environment (a service's, a container's)");
}
