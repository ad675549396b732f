/*
 * The thread: a round goes through the binaries that have frames without names, then sleeps until the next one, an upload or the end. A
 * binary that was asked for in vain, or that goes on getting new frames, waits longer each time: reading its debug information once for many
 * frames is as cheap as for one. Names that only stand for an address ("app!0x12") are not put into the store: a better one may come.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "profile/operations.h"
#include "record/symbols_private.h"
#include "symbol/symbol.h"

#define FRAMES_AT_ONCE 20000
#define POLL_S 10
#define WAIT_MAX_S 600
#define FILE_BYTES ((uint64_t)2 << 30)
#define FOLDER_BYTES ((uint64_t)20 << 30)
#define BUILDS_MAX ((size_t)1 << 16)

/* A binary that was looked at. */
struct waiting_build {
	char build_id[BUILD_ID_TEXT];
	int64_t next_s;                     /* not before */
	unsigned wait_s;
};

static int64_t now_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

static void say(const struct symbols *s, const char *text, size_t n)
{
	char line[512];
	if (!s->settings.say)
		return;
	snprintf(line, sizeof line, "symbols: %.*s", (int)(n < 400 ? n : 400), text);
	s->settings.say(s->settings.say_context, line);
}

static bool is_stopping(struct symbols *s)
{
	pthread_mutex_lock(&s->lock);
	bool stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	return stop;
}

/* --- names --- */

/* Lines that tell nothing but the address are taken back. Returns how many locations have a name. */
static size_t forget_made_up(struct profile *p)
{
	size_t named = 0;
	for (size_t i = 0; i < p->n_locations; i++) {
		struct location *l = &p->locations[i];
		bool known = false;
		for (uint32_t k = 0; k < l->n_lines; k++)
			known = known || !function_is_unnamed(profile_text(p, p->functions[p->lines[l->first_line + k].function].name));
		if (!known)
			l->n_lines = 0;
		named += known;
	}
	return named;
}

static void say_lines(const struct symbols *s, const struct buf *lines)
{
	const char *at = lines->data, *end = at ? at + lines->len : at;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t n = newline ? (size_t)(newline - at) : (size_t)(end - at);
		say(s, at, n);
		at += n + 1;
	}
}

/* *ret_n: how many frames were asked for. */
static int name_build(struct symbols *s, const char *build_id, size_t *ret_n, struct error *err)
{
	struct profile *p = NULL;
	struct buf warnings;
	struct symbol_options o = { .depth = SYMBOL_FULL, .search = s->search, .no_cache = true };
	*ret_n = 0;
	int failed = store_unnamed(s->settings.store, build_id, FRAMES_AT_ONCE, &p, err);
	if (failed || p->n_locations == 0) {
		profile_free(p);
		return failed;
	}
	*ret_n = p->n_locations;
	buf_init(&warnings, 1 << 16);
	o.debuginfod = debuginfod_new(NULL);
	failed = symbol_profile(p, &o, &warnings, err);
	debuginfod_free(o.debuginfod);
	size_t named = failed ? 0 : forget_made_up(p);
	if (!failed)
		failed = store_put_names(s->settings.store, p, err);
	say_lines(s, &warnings);
	buf_finish(&warnings);
	pthread_mutex_lock(&s->lock);
	s->totals.named += failed ? 0 : named;
	s->totals.failed += failed != 0;
	pthread_mutex_unlock(&s->lock);
	profile_free(p);
	return failed;
}

/* --- rounds --- */

static struct waiting_build *find_waiting(struct symbols *s, const char *build_id)
{
	for (size_t i = 0; i < s->n_waiting; i++)
		if (strcmp(s->waiting[i].build_id, build_id) == 0)
			return &s->waiting[i];
	struct waiting_build *w = ARRAY_PUSH(s->waiting, s->n_waiting, s->waiting_capacity, BUILDS_MAX);
	if (w) {
		*w = (struct waiting_build){ .wait_s = s->settings.poll_s / 2 };
		snprintf(w->build_id, sizeof w->build_id, "%s", build_id);
	}
	return w;
}

static void look_at(struct symbols *s, const struct store_build *b)
{
	struct error err;
	size_t n;
	struct waiting_build *w = symbols_build_id_valid(b->build_id) ? find_waiting(s, b->build_id) : NULL;
	if (!w || now_s() < w->next_s)
		return;
	do {
		if (name_build(s, b->build_id, &n, &err)) {
			say(s, err.text, strlen(err.text));
			break;
		}
	} while (n == FRAMES_AT_ONCE && !is_stopping(s));
	w->wait_s = w->wait_s * 2 < WAIT_MAX_S ? w->wait_s * 2 + 1 : WAIT_MAX_S;
	w->next_s = now_s() + w->wait_s;
}

static void round_of_builds(struct symbols *s)
{
	struct store_build *builds = NULL;
	struct error err;
	uint64_t unnamed = 0;
	size_t n = 0;
	if (store_builds(s->settings.store, &builds, &n, &err)) {
		say(s, err.text, strlen(err.text));
		return;
	}
	for (size_t i = 0; i < n; i++)
		unnamed += builds[i].unnamed;
	pthread_mutex_lock(&s->lock);
	s->totals.unnamed = unnamed;
	bool stop = s->stop;
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < n && !stop; i++) {
		look_at(s, &builds[i]);
		pthread_mutex_lock(&s->lock);
		stop = s->stop || s->arrived;       /* who uploads waits for an answer */
		pthread_mutex_unlock(&s->lock);
	}
	store_builds_free(builds, n);
}

/* --- uploads --- */

static void answer_upload(const struct upload *u, int code, const struct error *err)
{
	char text[sizeof err->text + 64];
	struct buf body;
	buf_init(&body, HTTP_SHORT_MAX);
	if (code) {
		/* What errors say of paths here is nobody else's. */
		snprintf(text, sizeof text, "%s", code == E_USAGE || code == E_LIMIT ? err->text : "the file can't be kept: is the disk full?");
		for (char *c = text; *c; c++)
			*c = *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? '\'' : *c;
		buf_printf(&body, "{\"error\":\"%s\"}\n", text);
	} else {
		buf_printf(&body, "{\"build_id\":\"%s\",\"kind\":\"%s\",\"bytes\":%llu}\n", u->build_id, symbols_kind_names[u->kind],
		           (unsigned long long)u->received);
	}
	if (u->symbols->server)
		http_ticket_answer(u->symbols->server, u->ticket, !code ? 200 : code == E_USAGE ? 400 : code == E_LIMIT ? 413 : 507,
		                   "application/json", NULL, body.data, body.len);
	buf_finish(&body);
}

/* Its frames are asked for again, at once. */
static void ask_again(struct symbols *s, const char *build_id)
{
	struct error err;
	struct waiting_build *w = find_waiting(s, build_id);
	if (w)
		*w = (struct waiting_build){ .wait_s = s->settings.poll_s / 2 };
	if (w)
		snprintf(w->build_id, sizeof w->build_id, "%s", build_id);
	if (store_ask_again(s->settings.store, build_id, &err))
		say(s, err.text, strlen(err.text));
}

static void take_upload(struct symbols *s, struct upload *u)
{
	struct error err = { 0 };
	char path[PATH_MAX];
	struct stat before = { .st_size = 0 };
	if (!symbols_file_path(s, u->build_id, u->kind, path) || stat(path, &before) < 0)
		before.st_size = 0;
	int code = symbols_file_finish(u, &err);
	if (code)
		say(s, err.text, strlen(err.text));
	else
		ask_again(s, u->build_id);
	pthread_mutex_lock(&s->lock);
	if (!code) {
		s->folder_bytes += u->received - (uint64_t)before.st_size;
		s->totals.uploads++;
		s->totals.upload_bytes += u->received;
	} else {
		s->totals.refused++;
	}
	pthread_mutex_unlock(&s->lock);
	answer_upload(u, code, &err);
	symbols_upload_free(u);
}

void symbols_arrived(struct upload *u)
{
	struct symbols *s = u->symbols;
	pthread_mutex_lock(&s->lock);
	struct upload **end = &s->arrived;
	while (*end)
		end = &(*end)->next;
	*end = u;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

/* --- the thread --- */

/* Until there is an upload, or it is time for a round. False: the end. */
static bool wait_for_work(struct symbols *s, struct upload **ret_upload)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += s->settings.poll_s;
	pthread_mutex_lock(&s->lock);
	while (!s->stop && !s->arrived && pthread_cond_timedwait(&s->wake, &s->lock, &until) == 0) {
	}
	struct upload *u = s->arrived;
	if (u)
		s->arrived = u->next;
	bool go_on = !s->stop;
	pthread_mutex_unlock(&s->lock);
	*ret_upload = u;
	return go_on || u;
}

static void *look_after(void *context)
{
	struct symbols *s = context;
	struct upload *u;
	round_of_builds(s);
	while (wait_for_work(s, &u)) {
		if (u)
			take_upload(s, u);
		pthread_mutex_lock(&s->lock);
		bool more = s->arrived || s->stop;
		pthread_mutex_unlock(&s->lock);
		if (!more)
			round_of_builds(s);
	}
	return NULL;
}

/* --- life --- */

static int make_search(struct symbols *s, struct error *err)
{
	size_t n = 0, at = 0;
	while (s->settings.search && s->settings.search[n])
		n++;
	s->search = calloc(n + 2, sizeof *s->search);
	if (!s->search)
		return error_nomem(err, "the folders of symbols");
	if (s->settings.folder)
		s->search[at++] = s->settings.folder;
	for (size_t i = 0; i < n; i++)
		s->search[at++] = s->settings.search[i];
	return 0;
}

int symbols_new(const struct symbols_settings *settings, struct symbols **ret, struct error *err)
{
	pthread_condattr_t monotonic;
	struct symbols *s = calloc(1, sizeof *s);
	if (!s)
		return error_nomem(err, "symbols");
	s->settings = *settings;
	s->settings.poll_s = settings->poll_s ? settings->poll_s : POLL_S;
	s->settings.file_max_bytes = settings->file_max_bytes ? settings->file_max_bytes : FILE_BYTES;
	s->settings.folder_max_bytes = settings->folder_max_bytes ? settings->folder_max_bytes : FOLDER_BYTES;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (settings->debuginfod && *settings->debuginfod)
		setenv("DEBUGINFOD_URLS", settings->debuginfod, 1);
	else if (settings->debuginfod)
		unsetenv("DEBUGINFOD_URLS");
	s->folder_bytes = symbols_files_clean(s);
	int failed = make_search(s, err);
	if (!failed) {
		int code = pthread_create(&s->thread, NULL, look_after, s);
		s->started = !code;
		failed = code ? error_set(err, E_IO, "no thread can be started: %s", strerror(code)) : 0;
	}
	if (failed) {
		symbols_free(s);
		return failed;
	}
	*ret = s;
	return 0;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	s->stop = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	if (s->started)
		pthread_join(s->thread, NULL);
	while (s->arrived) {
		struct upload *u = s->arrived;
		s->arrived = u->next;
		symbols_upload_free(u);
	}
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	free(s->waiting);
	free(s->search);
	free(s);
}

void symbols_metrics(struct symbols *s, struct buf *out)
{
	pthread_mutex_lock(&s->lock);
	__typeof__(s->totals) t = s->totals;
	uint64_t bytes = s->folder_bytes;
	pthread_mutex_unlock(&s->lock);
	const struct {
		const char *name, *type, *help;
		uint64_t value;
	} lines[] = {
		{ "uploads_total", "counter", "Files taken.", t.uploads },
		{ "upload_bytes_total", "counter", "Bytes of files taken.", t.upload_bytes },
		{ "uploads_refused_total", "counter", "Files that were not what they were said to be, or couldn't be kept.", t.refused },
		{ "frames_named_total", "counter", "Frames that got names.", t.named },
		{ "failures_total", "counter", "Binaries that could not be read, or names that could not be stored.", t.failed },
		{ "frames_unnamed", "gauge", "Frames in the store without names.", t.unnamed },
		{ "folder_bytes", "gauge", "Bytes of all uploaded files.", bytes },
	};
	for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
		buf_printf(out, "# HELP heapgauge_symbols_%s %s\n# TYPE heapgauge_symbols_%s %s\nheapgauge_symbols_%s %llu\n", lines[i].name,
		           lines[i].help, lines[i].name, lines[i].type, lines[i].name, (unsigned long long)lines[i].value);
}
