/*
 * A configuration is right, and then it says sensible things and its rules can be applied, or it gives an error of one line with its
 * place.
 */
#include "record/config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_error(const struct error *err)
{
	if (!err->code || !err->text[0] || strchr(err->text, '\n') || strncmp(err->text, "fuzz", 4) != 0)
		abort();
}

/* Rules of the file on labels of its own. */
static void apply(const struct config *c, const struct config_job *job)
{
	struct arena a;
	arena_init(&a, (size_t)1 << 20);
	struct labels l = { .arena = &a };
	labels_set(&l, "__address__", "host:80");
	labels_set(&l, "job", job->name);
	for (size_t i = 0; i < c->external_labels.n; i++)
		labels_set(&l, c->external_labels.items[i].name, c->external_labels.items[i].value);
	relabel(&l, job->relabel, job->n_relabel < 8 ? job->n_relabel : 8);
	labels_sort(&l);
	for (size_t i = 0; i < l.n; i++)
		if (!l.items[i].name[0] || !l.items[i].value[0])
			abort();
	arena_finish(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct error err = { 0 };
	struct config *c;
	if (n > 4096)
		return 0;
	if (config_parse("fuzz", "/f", (const char *)data, n, &c, &err)) {
		check_error(&err);
		return 0;
	}
	for (size_t i = 0; i < c->n_jobs; i++) {
		const struct config_job *job = &c->jobs[i];
		if (!job->name[0] || job->interval_ms < 100 || job->timeout_ms <= 0 || job->timeout_ms > job->interval_ms || job->profile_path[0] != '/')
			abort();
		apply(c, job);
	}
	config_free(c);
	return 0;
}
