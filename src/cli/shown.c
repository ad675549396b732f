/*
 * Each PROFILE has a line of snapshots. A round reads what may be new and puts it at the end of its line; then all lines and the base are
 * joined anew, and named. Names come from the answer cache from the second time on.
 */
#include "cli/shown.h"

#include <stdlib.h>
#include <string.h>

#include "cli/live.h"
#include "cli/load.h"
#include "cli/progress.h"
#include "profile/operations.h"

/* --- reading --- */

static bool joined(const struct shown *s)
{
	return s->n_inputs > 1 || s->inputs[0].live;
}

static int read_input(const struct shown *s, struct shown_input *i, struct error *err)
{
	struct buf warnings;
	struct profile *p;
	buf_init(&warnings, 1 << 20);
	if (i->followed && stat(i->path, &i->seen) < 0)
		i->seen = (struct stat){ 0 };
	int failed = load_input(s->settings.load, i->path, joined(s), &warnings, &p, err);
	if (failed) {
		buf_finish(&warnings);
		return failed;
	}
	buf_finish(&i->warnings);
	i->warnings = warnings;
	profile_free(i->now);
	i->now = p;
	return 0;
}

static bool file_changed(struct shown_input *i)
{
	struct stat st;
	if (!i->followed || stat(i->path, &st) < 0)
		return false;
	const struct stat *old = &i->seen;
	return st.st_size != old->st_size || st.st_ino != old->st_ino || st.st_dev != old->st_dev ||
	       st.st_mtim.tv_sec != old->st_mtim.tv_sec || st.st_mtim.tv_nsec != old->st_mtim.tv_nsec;
}

/* --- lines --- */

/* Every second one goes, but for the first and the last: the older it is, the wider its neighbours are apart. */
static void thin_out(struct shown_line *l)
{
	size_t kept = 0;
	for (size_t i = 0; i < l->n; i++) {
		if (i % 2 == 1 && i + 1 < l->n)
			profile_free(l->snapshots[i]);
		else
			l->snapshots[kept++] = l->snapshots[i];
	}
	l->n = kept;
}

/* Takes p over. */
static int line_add(struct shown_line *l, struct profile *p, struct error *err)
{
	if (!l->live && l->n > 0) {
		profile_free(l->snapshots[0]);
		l->snapshots[0] = p;
		return 0;
	}
	if (l->n == SHOWN_SNAPSHOTS_MAX)
		thin_out(l);
	struct profile **slot = ARRAY_PUSH(l->snapshots, l->n, l->capacity, SHOWN_SNAPSHOTS_MAX);
	if (!slot) {
		profile_free(p);
		return error_nomem(err, "one more snapshot");
	}
	*slot = p;
	return 0;
}

static size_t first_path(const struct shown *s)
{
	return s->n_inputs - s->n_paths;
}

/* What was read goes where it belongs. Merged ones stay with their inputs, the sum is the snapshot. */
static int place_inputs(struct shown *s, struct error *err)
{
	int failed = 0;
	if (first_path(s) && s->inputs[0].now) {
		profile_free(s->base);
		s->base = s->inputs[0].now;
		s->inputs[0].now = NULL;
	}
	if (s->settings.load->merge && s->n_paths > 1) {
		struct profile **all = calloc(s->n_paths, sizeof *all), *sum;
		for (size_t i = 0; all && i < s->n_paths; i++)
			all[i] = s->inputs[first_path(s) + i].now;
		failed = all ? profile_merge(all, s->n_paths, &sum, err) : error_nomem(err, "the list of profiles");
		free(all);
		return failed ? failed : line_add(&s->lines[0], sum, err);
	}
	for (size_t i = 0; i < s->n_paths && !failed; i++) {
		struct shown_input *input = &s->inputs[first_path(s) + i];
		if (input->now)
			failed = line_add(&s->lines[i], input->now, err);
		input->now = NULL;
	}
	return failed;
}

static void add_notes(struct shown *s, const struct buf *of_names)
{
	buf_reset(&s->notes);
	for (size_t i = 0; i < s->n_inputs; i++) {
		const struct shown_input *input = &s->inputs[i];
		buf_add(&s->notes, input->warnings.data, input->warnings.len);
		if (input->failure[0])
			buf_printf(&s->notes, "%s; what was read before is shown\n", input->failure);
	}
	buf_add(&s->notes, of_names->data, of_names->len);
}

/* Everything side by side, with names. */
static int join_all(struct shown *s, struct error *err)
{
	size_t n = 0, most = 1;
	for (size_t i = 0; i < s->n_lines; i++)
		most += s->lines[i].n;
	struct profile **list = calloc(most, sizeof *list), *all = NULL;
	struct buf of_names;
	if (!list)
		return error_nomem(err, "the list of snapshots");
	buf_init(&of_names, 1 << 20);
	if (s->base)
		list[n++] = s->base;
	for (size_t i = 0; i < s->n_lines; i++)
		for (size_t k = 0; k < s->lines[i].n; k++)
			list[n++] = s->lines[i].snapshots[k];
	load_order(list + (s->base != NULL), n - (s->base != NULL));
	int failed = profile_series((const struct profile *const *)list, n, &all, err);
	if (!failed)
		failed = load_symbols(s->settings.load, all, &of_names, err);
	if (failed) {
		profile_free(all);
	} else {
		profile_free(s->all);
		s->all = all;
		add_notes(s, &of_names);
	}
	buf_finish(&of_names);
	free(list);
	return failed;
}

/* --- life --- */

static void init_input(struct shown_input *i, const char *path, bool base)
{
	*i = (struct shown_input){ .path = path, .base = base, .live = live_is(path) };
	i->followed = !i->live && strcmp(path, "-") != 0;
	buf_init(&i->warnings, 1 << 20);
}

int shown_init(struct shown *s, const struct page_settings *settings, int64_t refresh_ms, int64_t now_ms, char *const *paths, size_t n,
               struct buf *warnings, struct error *err)
{
	const struct load_settings *load = settings->load;
	*s = (struct shown){
		.settings = *settings, .paths = paths, .n_paths = n, .refresh_ms = refresh_ms, .refreshed_ms = now_ms,
		.n_lines = load->merge ? 1 : n, .inputs = calloc(n + 1, sizeof *s->inputs), .lines = calloc(n, sizeof *s->lines),
	};
	buf_init(&s->notes, 1 << 22);
	int failed = load_check_paths(load, paths, n, err);
	if (!failed && (!s->inputs || !s->lines))
		failed = error_nomem(err, "the list of profiles");
	if (failed)
		return failed;
	if (load->base)
		init_input(&s->inputs[s->n_inputs++], load->base, true);
	for (size_t i = 0; i < n; i++) {
		init_input(&s->inputs[s->n_inputs++], paths[i], false);
		s->lines[load->merge ? 0 : i].live |= live_is(paths[i]);
	}
	for (size_t i = 0; i < s->n_inputs && !failed; i++)
		failed = read_input(s, &s->inputs[i], err);
	if (!failed)
		failed = place_inputs(s, err);
	if (!failed)
		failed = join_all(s, err);
	if (!failed)
		buf_add(warnings, s->notes.data, s->notes.len);
	return failed;
}

void shown_finish(struct shown *s)
{
	for (size_t i = 0; s->inputs && i < s->n_inputs; i++) {
		profile_free(s->inputs[i].now);
		buf_finish(&s->inputs[i].warnings);
	}
	for (size_t i = 0; s->lines && i < s->n_lines; i++) {
		for (size_t k = 0; k < s->lines[i].n; k++)
			profile_free(s->lines[i].snapshots[k]);
		free(s->lines[i].snapshots);
	}
	free(s->inputs);
	free(s->lines);
	profile_free(s->base);
	profile_free(s->all);
	buf_finish(&s->notes);
}

/* --- what is new --- */

enum { NOTHING_NEW = 0, NEW_NOTE = 1, NEW_PROFILE = 2 };     /* flags */

static int refresh_input(const struct shown *s, struct shown_input *i, struct buf *said)
{
	struct error err;
	char before[sizeof i->failure];
	memcpy(before, i->failure, sizeof before);
	if (!read_input(s, i, &err)) {
		i->failure[0] = '\0';
		return NEW_PROFILE;
	}
	memcpy(i->failure, err.text, sizeof i->failure);
	if (strcmp(before, i->failure) == 0)
		return NOTHING_NEW;
	buf_printf(said, "%s; what was read before is still shown\n", i->failure);
	return NEW_NOTE;
}

bool shown_refresh(struct shown *s, int64_t now_ms, struct buf *said)
{
	struct error err;
	int news = NOTHING_NEW;
	bool ask = s->refresh_ms > 0 && now_ms - s->refreshed_ms >= s->refresh_ms;
	for (size_t i = 0; i < s->n_inputs; i++) {
		struct shown_input *input = &s->inputs[i];
		if (input->live ? ask && !input->base : file_changed(input))
			news |= refresh_input(s, input, said);
	}
	if (ask)
		s->refreshed_ms = now_ms;
	int failed = news & NEW_PROFILE ? place_inputs(s, &err) : 0;
	if (!failed && news)
		failed = join_all(s, &err);
	if (failed)
		buf_printf(said, "%s; what was read before is still shown\n", err.text);
	progress_stop();
	return news && !failed;
}

int shown_block(struct shown *s, size_t limit_bytes, struct buf *out, bool *ret_complete, struct error *err)
{
	struct page_plan plan;
	int failed = page_plan_make(&s->settings, s->paths, s->n_paths, s->all, s->base ? 0 : PROFILE_NONE, &s->notes, &plan, err);
	plan.options.limit_bytes = limit_bytes;
	if (!failed)
		failed = page_block(s->all, &plan.options, out, ret_complete, err);
	page_plan_finish(&plan);
	return failed;
}

bool shown_source_files(const struct shown *s, struct strings *ret)
{
	const struct profile *p = s->all;
	bool ok = strings_init(ret);
	for (size_t i = 0; ok && i < p->n_functions; i++) {
		uint32_t file = p->functions[i].file;
		ok = strings_add(ret, profile_text(p, file), strings_length(&p->strings, file), SIZE_MAX) != INDEX_NONE;
	}
	if (!ok)
		strings_finish(ret);
	return ok;
}
