/*
 * The query API over a store that a test fills as it likes, at times of its own: api_driver STORE [key=value ...]. Keys: threads, waiting,
 * timeout_ms, max_bytes, chunk, folder (of uploads), poll_s.
 *
 * Commands come by standard input, a line each, their parts separated by tabs; each is answered by one line, "ok ..." or "error ...":
 *   series NAME=VALUE,... PROCESS STARTED_MS BUILD_ID    -> ok NUMBER
 *   profile SERIES TIME_MS FILE
 *   gauges SERIES TIME_MS NAME=VALUE,...
 *   maintain NOW_MS
 *   metrics                                              -> lines, then ok
 * The first line that it prints is its address.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "format/format.h"
#include "record/api.h"

#define LABELS_MAX 32

static struct store *store;

static uint64_t number(const char *text)
{
	uint64_t value = 0;
	if (!text || !text_parse_u64(text, strlen(text), 10, &value)) {
		fprintf(stderr, "not a number: %s\n", text ? text : "nothing");
		exit(2);
	}
	return value;
}

static void finish(int failed, const struct error *err)
{
	if (failed)
		printf("error %s\n", err->text);
	else
		printf("ok\n");
}

/* --- commands --- */

static void add_series(char **words, struct error *err)
{
	struct store_label labels[LABELS_MAX];
	struct store_identity who = { .labels = labels, .process = number(words[2]), .started_ms = (int64_t)number(words[3]), .build_id = words[4] };
	uint32_t series;
	char *rest = words[1], *pair;
	while ((pair = strsep(&rest, ",")) && *pair && who.n_labels < LABELS_MAX) {
		char *equals = strchr(pair, '=');
		*equals = '\0';
		labels[who.n_labels++] = (struct store_label){ pair, equals + 1 };
	}
	if (store_add_series(store, &who, &series, err))
		printf("error %s\n", err->text);
	else
		printf("ok %u\n", series);
}

static int add_profile(char **words, struct error *err)
{
	struct profile *p = NULL;
	struct stream in;
	int failed = stream_open(&in, words[3], err);
	if (failed)
		return failed;
	failed = format_read(&in, &read_limits_default, NULL, &p, err);
	stream_close(&in);
	if (failed)
		return failed;
	struct store_profile one = { (uint32_t)number(words[1]), (int64_t)number(words[2]), p };
	failed = store_append(store, &one, 1, err);
	profile_free(p);
	return failed;
}

static int add_gauges(char **words, struct error *err)
{
	struct store_gauge gauges[STORE_GAUGES_MAX];
	size_t n = 0;
	char *rest = words[3], *pair;
	while ((pair = strsep(&rest, ",")) && *pair && n < STORE_GAUGES_MAX) {
		char *equals = strchr(pair, '=');
		*equals = '\0';
		gauges[n++] = (struct store_gauge){ pair, (double)number(equals + 1) };
	}
	return store_append_gauges(store, (uint32_t)number(words[1]), (int64_t)number(words[2]), gauges, n, err);
}

static int maintain(char **words, struct error *err)
{
	bool more = true;
	int failed = 0;
	while (more && !failed)
		failed = store_maintain(store, (int64_t)number(words[1]), &more, err);
	return failed;
}

static void print_metrics(struct api *api, struct symbols *symbols)
{
	struct buf text;
	buf_init(&text, 1 << 20);
	api_metrics(api, &text);
	if (symbols)
		symbols_metrics(symbols, &text);
	fwrite(text.data, 1, text.len, stdout);
	buf_finish(&text);
}

static void obey(char *line, struct api *api, struct symbols *symbols)
{
	struct error err = { 0 };
	char *words[5] = { NULL }, *rest = line;
	int failed = 0;
	for (size_t n = 0; n < 5 && rest; n++)
		words[n] = strsep(&rest, "\t");
	if (strcmp(words[0], "series") == 0) {
		add_series(words, &err);
		return;
	}
	if (strcmp(words[0], "profile") == 0)
		failed = add_profile(words, &err);
	else if (strcmp(words[0], "gauges") == 0)
		failed = add_gauges(words, &err);
	else if (strcmp(words[0], "maintain") == 0)
		failed = maintain(words, &err);
	else if (strcmp(words[0], "metrics") == 0)
		print_metrics(api, symbols);
	else
		failed = error_set(&err, E_USAGE, "no such command");
	finish(failed, &err);
}

/* --- life --- */

static void *run(void *server)
{
	http_server_run(server);
	return NULL;
}

static void say(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "%s\n", line);
}

static void die(const struct error *err)
{
	fprintf(stderr, "%s\n", err->text);
	exit(1);
}

int main(int argc, char **argv)
{
	struct store_options how = { .max_bytes = 0 };
	struct api_settings s = { .title = "test", .version = "1" };
	struct symbols_settings names = { .folder = NULL };
	struct http_access access = { .local_socket = false };
	struct http_settings http = { .limits = { .connections = 128, .head_bytes = 32 << 10 } };
	struct symbols *symbols = NULL;
	struct http_server *server;
	struct api *api;
	struct error err;
	pthread_t thread;
	size_t n;
	for (int i = 2; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		*equals = '\0';
		const char *value = equals + 1;
		if (strcmp(argv[i], "threads") == 0)
			s.threads = (unsigned)number(value);
		else if (strcmp(argv[i], "waiting") == 0)
			s.waiting = (unsigned)number(value);
		else if (strcmp(argv[i], "timeout_ms") == 0)
			s.timeout_ms = (uint32_t)number(value);
		else if (strcmp(argv[i], "max_bytes") == 0)
			s.max_bytes = number(value);
		else if (strcmp(argv[i], "chunk") == 0)
			how.chunk_profiles = (unsigned)number(value);
		else if (strcmp(argv[i], "folder") == 0)
			names.folder = value;
		else if (strcmp(argv[i], "poll_s") == 0)
			names.poll_s = (unsigned)number(value);
		else if (strcmp(argv[i], "file_max_bytes") == 0)
			names.file_max_bytes = number(value);
		else if (strcmp(argv[i], "folder_max_bytes") == 0)
			names.folder_max_bytes = number(value);
	}
	if (argc < 2 || store_open(argv[1], &how, &store, &err))
		die(&err);
	names.store = s.store = store;
	names.say = say;
	if (names.folder && symbols_new(&names, &symbols, &err))
		die(&err);
	s.symbols = symbols;
	if (api_new(&s, &api, &err))
		die(&err);
	const struct http_route *routes = api_routes(api, &n);
	struct http_route *table = calloc(n + 1, sizeof *table);
	memcpy(table, routes, n * sizeof *table);
	http.routes = table;
	if (http_server_new("127.0.0.1:0", false, &access, &http, &server, &err) || api_start(api, server, &err))
		die(&err);
	pthread_create(&thread, NULL, run, server);
	printf("%s\n", http_server_url(server));
	fflush(stdout);
	for (char line[4096]; fgets(line, sizeof line, stdin);) {
		line[strcspn(line, "\n")] = '\0';
		obey(line, api, symbols);
		fflush(stdout);
	}
	http_server_stop(server);
	pthread_join(thread, NULL);
	api_free(api);
	symbols_free(symbols);
	http_server_free(server);
	free(table);
	store_close(store);
	return 0;
}
