/*
 * Uploads, as their bytes come on the server's thread (begin -> pieces -> arrived -> symbols.c answers), and what is asked about symbols.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/query_routes.h"
#include "record/symbols_private.h"
#include "report/json.h"

#define BUILDS_ASKED_MAX 100

/* --- uploads --- */

static struct upload *upload_of(struct http_exchange *x)
{
	struct upload *u;
	memcpy(&u, http_exchange_user(x), sizeof u);
	return u;
}

static void set_upload(struct http_exchange *x, struct upload *u)
{
	memcpy(http_exchange_user(x), &u, sizeof u);
}

/* What the request says it will be; false when it is answered. */
static bool read_upload(struct symbols *s, struct http_exchange *x, struct upload *u)
{
	static const char *const names[] = { "build_id", "kind", NULL };
	const struct http_request *r = http_exchange_request(x);
	char kind[16];
	if (!api_check_parameters(x, names))
		return false;
	if (http_query(r, "build_id", u->build_id, sizeof u->build_id) < 0 || !symbols_build_id_valid(u->build_id)) {
		api_answer_error(x, 400, "build_id: %d to %d hexadecimal digits, in lower case", BUILD_ID_MIN, BUILD_ID_TEXT - 1);
		return false;
	}
	http_query(r, "kind", kind, sizeof kind);
	while (u->kind < SYMBOLS_KINDS && strcmp(kind, symbols_kind_names[u->kind]) != 0)
		u->kind++;
	if (u->kind == SYMBOLS_KINDS) {
		api_answer_error(x, 400, "kind: binary or debug");
		return false;
	}
	u->expected = r->length;
	if (r->length > s->settings.file_max_bytes) {
		api_answer_error(x, 413, "more than the %llu MiB that one file may have", (unsigned long long)(s->settings.file_max_bytes >> 20));
		return false;
	}
	return true;
}

/* Room for one more; false when it is answered. */
static bool reserve(struct symbols *s, struct http_exchange *x, const struct upload *u)
{
	pthread_mutex_lock(&s->lock);
	bool busy = s->n_uploads >= UPLOADS_MAX, full = s->folder_bytes + s->reserved + u->expected > s->settings.folder_max_bytes;
	if (!busy && !full) {
		s->n_uploads++;
		s->reserved += u->expected;
	}
	pthread_mutex_unlock(&s->lock);
	if (busy)
		api_answer_error(x, 429, "%d uploads are under way already: try again", UPLOADS_MAX);
	else if (full)
		api_answer_error(x, 413, "more than the %llu MiB that all uploaded files may have: remove old ones from the folder beside the store",
		                 (unsigned long long)(s->settings.folder_max_bytes >> 20));
	return !busy && !full;
}

/* NULL when it is answered. */
static struct upload *begin_upload(struct symbols *s, struct http_exchange *x)
{
	struct error err;
	struct upload *u = calloc(1, sizeof *u);
	if (!u) {
		api_answer_error(x, 503, "out of memory");
		return NULL;
	}
	u->symbols = s;
	u->fd = -1;
	if (!read_upload(s, x, u) || !reserve(s, x, u)) {
		free(u);
		return NULL;
	}
	if (symbols_file_begin(u, &err)) {
		api_answer_error(x, 507, "the file can't be kept: the folder for uploads can't be written to");
		symbols_upload_free(u);
		return NULL;
	}
	set_upload(x, u);
	return u;
}

static void upload_body(void *context, struct http_exchange *x, const char *bytes, size_t n)
{
	struct upload *u = upload_of(x);
	if (!u)
		u = begin_upload(context, x);
	for (size_t at = 0; u && at < n;) {
		ssize_t written = write(u->fd, bytes + at, n - at);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0) {
			api_answer_error(x, 507, "the file can't be kept: %s", written ? strerror(errno) : "nothing more can be written");
			return;
		}
		at += (size_t)written;
		u->received += (size_t)written;
	}
}

static void upload_whole(void *context, struct http_exchange *x)
{
	struct upload *u = upload_of(x);
	(void)context;
	if (!u) {
		api_answer_error(x, 400, "the body is empty: it should be the file");
		return;
	}
	set_upload(x, NULL);
	u->ticket = http_park(x);
	symbols_arrived(u);
}

/* One that hasn't arrived never will. */
static void upload_over(void *context, struct http_exchange *x, bool answered)
{
	(void)context;
	(void)answered;
	symbols_upload_free(upload_of(x));
	set_upload(x, NULL);
}

const struct http_route *symbols_routes(struct symbols *s, size_t *ret_n)
{
	*ret_n = 0;
	if (!s || !s->settings.folder)
		return NULL;
	s->routes[0] = (struct http_route){
		.path = "/api/v1/symbols/upload", .methods = HTTP_POST, .body_max = s->settings.file_max_bytes, .handle = upload_whole,
		.body = upload_body, .patient = true, .context = s, .over = upload_over,
	};
	*ret_n = 1;
	return s->routes;
}

void symbols_set_server(struct symbols *s, struct http_server *server)
{
	if (s)
		s->server = server;
}

/* --- what is asked --- */

static void add_file(void *context, const char *build_id, enum symbols_kind kind, uint64_t bytes)
{
	struct json *j = context;
	json_open(j, NULL, '{');
	json_cstring(j, "build_id", build_id);
	json_cstring(j, "kind", symbols_kind_names[kind]);
	json_integer(j, "bytes", (int64_t)bytes);
	json_close(j, '}');
}

int query_symbols(struct query *q, struct error *err)
{
	struct json j = { .out = &q->out };
	struct store_build *builds = NULL;
	size_t n = 0;
	int failed = store_builds(q->api->settings.store, &builds, &n, err);
	if (failed)
		return failed;
	json_open(&j, NULL, '{');
	json_open(&j, "unnamed", '[');
	for (size_t i = 0; i < n; i++) {
		json_open(&j, NULL, '{');
		json_cstring(&j, "build_id", builds[i].build_id);
		json_cstring(&j, "path", builds[i].path);
		json_integer(&j, "frames", (int64_t)builds[i].unnamed);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_open(&j, "uploads", '[');
	if (q->api->settings.symbols)
		symbols_files_each(q->api->settings.symbols, add_file, &j);
	json_close(&j, ']');
	json_close(&j, '}');
	buf_addc(&q->out, '\n');
	store_builds_free(builds, n);
	return 0;
}

static void add_missing(struct json *j, const struct symbols *s, const char *build_id, const struct store_build *builds, size_t n)
{
	bool of_binary = false, of_debug = false, known = false;
	bool binary = s && symbols_file_has(s, build_id, SYMBOLS_BINARY, &of_binary);
	bool debug = s && symbols_file_has(s, build_id, SYMBOLS_DEBUG, &of_debug);
	for (size_t i = 0; i < n && !known; i++)
		known = strcmp(builds[i].build_id, build_id) == 0;
	json_open(j, NULL, '{');
	json_cstring(j, "build_id", build_id);
	json_bool(j, "binary", !binary);
	json_bool(j, "debug", !(debug && of_debug) && !of_binary);
	json_bool(j, "known", known);
	json_close(j, '}');
}

int query_symbols_missing(struct query *q, struct error *err)
{
	struct params p = { .q = q, .err = err };
	struct json j = { .out = &q->out };
	struct store_build *builds = NULL;
	const char **ids;
	size_t n_builds = 0, n = param_list(&p, "build_id", &ids);
	if (!p.failed && (n == 0 || n > BUILDS_ASKED_MAX))
		p.failed = error_set(err, E_USAGE, "build_id: of which ones? At most %d at a time", BUILDS_ASKED_MAX);
	for (size_t i = 0; i < n && !p.failed; i++)
		if (!symbols_build_id_valid(ids[i]))
			p.failed = error_set(err, E_USAGE, "build_id: %d to %d hexadecimal digits, in lower case, not '%.60s'", BUILD_ID_MIN,
			                     BUILD_ID_TEXT - 1, ids[i]);
	int failed = p.failed ? p.failed : store_builds(q->api->settings.store, &builds, &n_builds, err);
	if (failed)
		return failed;
	json_open(&j, NULL, '{');
	json_open(&j, "builds", '[');
	for (size_t i = 0; i < n; i++)
		add_missing(&j, q->api->settings.symbols, ids[i], builds, n_builds);
	json_close(&j, ']');
	json_close(&j, '}');
	buf_addc(&q->out, '\n');
	store_builds_free(builds, n_builds);
	return 0;
}
