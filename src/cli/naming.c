#include "cli/naming.h"

#include "cli/live.h"
#include "cli/progress.h"

static struct debuginfod *client;

/* A new phase where the total becomes known; at the end the one that was interrupted. */
static void show_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
	static const char *shown;
	static uint64_t shown_total;
	(void)context;
	if (done == UINT64_MAX) {
		if (shown)
			progress_phase("finding names", 0);
		shown = NULL;
		return;
	}
	if (shown != what || shown_total != total)
		progress_phase(what, total);
	shown = what;
	shown_total = total;
	progress_set(done);
}

static const char *const *directories(const struct text_list *given)
{
	static const char *all[TEXT_LIST_MAX + LIVE_FILES_MAX + 1];
	size_t n = 0;
	for (; n < given->n; n++)
		all[n] = given->items[n];
	n += live_search(all + n);
	all[n] = NULL;
	return n ? all : NULL;
}

struct symbol_options naming_symbol_options(const struct names_settings *s)
{
	static const struct debuginfod_options how = { .progress = show_progress };
	if (!s->offline && !client)
		client = debuginfod_new(&how);
	return (struct symbol_options){
		.depth = SYMBOL_FULL,
		.search = directories(&s->debug_dir),
		.sysroot = s->sysroot,
		.debuginfod = s->offline ? NULL : client,
		.no_cache = s->no_cache,
		.memory_limit = s->memory_limit,
	};
}

void naming_finish(struct buf *warnings)
{
	debuginfod_warnings(client, warnings);
	debuginfod_free(client);
	client = NULL;
}
