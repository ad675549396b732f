/*
 * upload-symbols: gives a recorder the binaries and debug files of a release, those that it doesn't have. For each FILE the build id is read
 * and its debug file found as the symbolizer finds it; the recorder is asked once which of all these it lacks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/fetch.h"
#include "cli/live.h"
#include "cli/naming.h"
#include "cli/progress.h"
#include "http/access.h"
#include "symbol/locate.h"

#define FILES_MAX ((size_t)1 << 16)
#define ANSWER_BYTES ((size_t)1 << 20)
#define ASKED_AT_ONCE 50
#define BUSY_TRIES 10                   /* a second apart */

struct upload_settings {
	struct names_settings names;
	const char *to, *token_file;
	bool force;
};

/* A file that is sent, or is there already. */
struct item {
	struct elf_file file;
	bool debug;
	bool wanted;
};

struct uploading {
	const struct upload_settings *settings;
	const char *token;
	struct item *items;         size_t n, capacity;
	struct buf text;                    /* what is printed at the end */
	struct buf warnings;
};

/* --- which files --- */

static bool has_code(const struct elf_file *f)
{
	for (size_t i = 0; i < f->n_segments; i++)
		if (f->segments[i].executable && f->segments[i].file_bytes)
			return true;
	return false;
}

/* Takes file over. What was named twice is sent once. */
static int add_item(struct uploading *u, struct elf_file *file, bool debug, struct error *err)
{
	for (size_t i = 0; i < u->n; i++)
		if (u->items[i].debug == debug && strcmp(u->items[i].file.build_id, file->build_id) == 0) {
			elf_file_finish(file);
			return 0;
		}
	struct item *item = ARRAY_PUSH(u->items, u->n, u->capacity, FILES_MAX);
	if (!item) {
		elf_file_finish(file);
		return error_nomem(err, "the list of files");
	}
	*item = (struct item){ .file = *file, .debug = debug, .wanted = true };
	return 0;
}

/* What dwz has moved out of a debug file. */
static int add_common_file(struct uploading *u, const struct elf_file *of, const struct symbol_options *o, struct error *err)
{
	struct file_request r = { .kind = FILE_ALT, .of = of->path };
	struct locator locator;
	struct elf_file common;
	char id[BUILD_ID_TEXT], path[PATH_MAX];
	r.name = elf_file_altlink(of, id);
	r.build_id = id;
	if (!r.name)
		return 0;
	locator_init(&locator, o, &u->warnings);
	struct file_source files = locator_files(&locator);
	int fd = files.open(files.context, &r, path, sizeof path);
	locator_finish(&locator);
	if (fd < 0) {
		buf_printf(&u->warnings, "%s shares debug information with %s, which is not there: some names will lack\n", of->path, r.name);
		return 0;
	}
	int failed = elf_file_open_fd(&common, fd, path, err);
	if (failed) {
		elf_file_finish(&common);
		return failed;
	}
	return add_item(u, &common, true, err);
}

static int add_debug_file(struct uploading *u, const struct elf_file *of, const struct symbol_options *o, struct error *err)
{
	struct elf_file debug;
	if (!locate_debug_file(of, o, &debug)) {
		if (!of->has_symtab && !of->has_mini)
			buf_printf(&u->warnings, "%s is stripped, and its debug file was not found: frames in it will have few names "
			           "(--debug-dir says where to look)\n", of->path);
		return 0;
	}
	int failed = add_common_file(u, &debug, o, err);
	if (failed) {
		elf_file_finish(&debug);
		return failed;
	}
	return add_item(u, &debug, true, err);
}

static int add_file(struct uploading *u, const char *path, const struct symbol_options *o, struct error *err)
{
	struct elf_file file;
	int failed = elf_file_open(&file, path, err);
	if (!failed && !file.build_id[0])
		failed = error_set(err, E_FORMAT, "%.300s: has no build id to know it by: link with -Wl,--build-id", path);
	bool debug = !failed && !has_code(&file);
	if (!failed && debug && !file.has_debug_info && !file.has_symtab)
		failed = error_set(err, E_FORMAT, "%.300s: has neither code nor debug information", path);
	if (!failed && file.has_debug_info)
		failed = add_common_file(u, &file, o, err);
	else if (!failed && !debug)
		failed = add_debug_file(u, &file, o, err);
	if (failed) {
		elf_file_finish(&file);
		return failed;
	}
	return add_item(u, &file, debug, err);
}

/* --- the recorder --- */

/* Below the address that was given; "unix:/sock" is asked for the path behind a '?'. */
static int address_of(const struct uploading *u, const char *path, const char *query, struct fetch_address *ret, struct error *err)
{
	struct buf text;
	const char *to = u->settings->to;
	size_t n = strlen(to);
	while (n && to[n - 1] == '/')
		n--;
	buf_init(&text, 1 << 16);
	buf_add(&text, to, n);
	buf_printf(&text, "%s%s?%s", strncmp(to, "unix:", 5) == 0 ? "?" : "", path, query);
	int failed = text.failed ? error_set(err, E_LIMIT, "the address is too long") : fetch_address_parse(text.data, NULL, ret, err);
	buf_finish(&text);
	return failed;
}

/* What the answer says of one kind of file of a build id. */
static bool is_missing(const char *answer, const struct item *item)
{
	char key[BUILD_ID_TEXT + 32];
	snprintf(key, sizeof key, "\"build_id\":\"%s\"", item->file.build_id);
	const char *at = strstr(answer, key), *end = at ? strchr(at, '}') : NULL;
	const char *word = item->debug ? "\"debug\":true" : "\"binary\":true";
	const char *found = at ? strstr(at, word) : NULL;
	return !at || (found && end && found < end);
}

static int ask_some(struct uploading *u, size_t first, size_t n, struct error *err)
{
	struct fetch_address address;
	struct buf query, answer;
	buf_init(&query, 1 << 15);
	buf_init(&answer, ANSWER_BYTES);
	for (size_t i = 0; i < n; i++)
		buf_printf(&query, "%sbuild_id=%s", i ? "&" : "", u->items[first + i].file.build_id);
	int failed = address_of(u, "/api/v1/symbols/missing", query.data, &address, err);
	if (!failed) {
		failed = fetch(&address, u->token, &answer, err);
		fetch_address_finish(&address);
	}
	if (!failed && (!answer.data || !strstr(answer.data, "\"builds\"")))
		failed = error_set(err, E_FORMAT, "%.200s: this is no heapgauge recorder", u->settings->to);
	for (size_t i = 0; i < n && !failed; i++)
		u->items[first + i].wanted = u->settings->force || is_missing(answer.data, &u->items[first + i]);
	buf_finish(&query);
	buf_finish(&answer);
	return failed;
}

/* The sentence of {"error":"..."} that an error repeats as it came. */
static void unwrap(struct error *err)
{
	char *at = strstr(err->text, "{\"error\":\""), *end;
	if (!at)
		return;
	memmove(at, at + 10, strlen(at + 10) + 1);
	end = strrchr(at, '"');
	if (end)
		*end = '\0';
}

static int send_item(struct uploading *u, const struct item *item, struct error *err)
{
	struct fetch_address address;
	struct buf answer;
	char query[BUILD_ID_TEXT + 64];
	long status = 0;
	snprintf(query, sizeof query, "build_id=%s&kind=%s", item->file.build_id, item->debug ? "debug" : "binary");
	int failed = address_of(u, "/api/v1/symbols/upload", query, &address, err);
	if (failed)
		return failed;
	buf_init(&answer, ANSWER_BYTES);
	for (int i = 0; i < BUSY_TRIES; i++) {
		buf_reset(&answer);
		failed = fetch_send(&address, u->token, item->file.fd, item->file.bytes, &answer, &status, err);
		if (status != 429)
			break;
		nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	}
	if (failed) {
		unwrap(err);
		error_prefix(err, "%.120s: not sent: ", item->file.path);
	}
	buf_finish(&answer);
	fetch_address_finish(&address);
	return failed;
}

/* --- all of it --- */

static void say_item(struct uploading *u, const struct item *item)
{
	buf_printf(&u->text, "%-7s ", item->wanted ? "sent" : "there");
	buf_printf(&u->text, "%s  %-6s  ", item->file.build_id, item->debug ? "debug" : "binary");
	text_add_bytes(&u->text, (double)item->file.bytes);
	buf_adds(&u->text, "  ");
	text_add_terminal(&u->text, item->file.path, strlen(item->file.path));
	buf_addc(&u->text, '\n');
}

static int upload(struct uploading *u, char **paths, size_t n, struct error *err)
{
	struct symbol_options o = naming_symbol_options(&u->settings->names);
	int failed = 0;
	for (size_t i = 0; i < n && !failed; i++)
		failed = add_file(u, paths[i], &o, err);
	naming_finish(&u->warnings);
	for (size_t i = 0; i < u->n && !failed; i += ASKED_AT_ONCE)
		failed = ask_some(u, i, u->n - i < ASKED_AT_ONCE ? u->n - i : ASKED_AT_ONCE, err);
	for (size_t i = 0; i < u->n && !failed; i++) {
		if (u->items[i].wanted)
			failed = send_item(u, &u->items[i], err);
		if (!failed)
			say_item(u, &u->items[i]);
	}
	return failed;
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	struct uploading u = { .settings = settings };
	char token[HTTP_TOKEN_MAX + 1];
	struct error unprinted;
	if (!u.settings->to)
		return error_set(err, E_USAGE, "--to is missing: the recorder's address, like http://recorder:7071");
	int failed = live_token(u.settings->token_file, token, &u.token, err);
	if (failed)
		return failed;
	buf_init(&u.text, 1 << 24);
	buf_init(&u.warnings, 1 << 20);
	failed = upload(&u, operands, n, err);
	progress_stop();
	/* What was sent before a failure was sent. */
	if (u.text.len && print_text(&u.text, failed ? &unprinted : err) && !failed)
		failed = err->code;
	print_warnings(&u.warnings);
	for (size_t i = 0; i < u.n; i++)
		elf_file_finish(&u.items[i].file);
	free(u.items);
	buf_finish(&u.text);
	buf_finish(&u.warnings);
	return failed;
}

static const struct option_spec own_options[] = {
	{ "to", 0, false, OPTION_TEXT, "URL", "the recorder: http://host:port, https://…, unix:/socket",
	  offsetof(struct upload_settings, to) },
	{ "token-file", 0, false, OPTION_TEXT, "FILE", "send the token in FILE (default: what HEAPGAUGE_TOKEN_FILE names)",
	  offsetof(struct upload_settings, token_file) },
	{ "force", 0, false, OPTION_ON, NULL, "send what the recorder has already, too", offsetof(struct upload_settings, force) },
	{ "debug-dir", 0, false, OPTION_LIST, "DIR", "look for debug files in DIR too; repeatable",
	  offsetof(struct upload_settings, names.debug_dir) },
	{ "sysroot", 0, false, OPTION_TEXT, "DIR", "look for debug files below DIR, where another system's root is",
	  offsetof(struct upload_settings, names.sysroot) },
	{ "offline", 0, false, OPTION_ON, NULL, "do not ask the servers of DEBUGINFOD_URLS", offsetof(struct upload_settings, names.offline) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	{ NULL, NULL, 0, 0 },
};

static const struct upload_settings defaults = { .force = false };

const struct command cmd_upload_symbols = {
	.name = "upload-symbols",
	.operands = "FILE…",
	.summary = "give a recorder the binaries and debug files of a release",
	.description =
	    "Sends programs, libraries and their debug files to a recorder, which names frames with them, also\n"
	    "those of profiles it has already. Files are known by build id; what the recorder has is not sent\n"
	    "again. Meant for the step of a release that has the files before they are stripped or thrown away.\n",
	.example = "  heapgauge upload-symbols --to http://recorder:7071 build/server build/*.so\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
