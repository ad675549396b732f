/* view: the web page on PROFILEs, served to a browser on this machine for as long as the command runs. */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/pages.h"
#include "cli/progress.h"
#include "cli/serve.h"

struct view_command {
	struct load_settings load;
	struct view_settings view;
	const char *listen, *title;
	bool no_browser, inverted;
	uint32_t refresh_seconds;
	uint64_t max_size;
};

extern char **environ;

/* In a session of its own: a Ctrl-C here is not the browser's. That there may be no xdg-open is no failure: the address is printed. */
static void open_browser(const char *url)
{
	char *const words[] = { (char *)"xdg-open", (char *)(uintptr_t)url, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t defaults;
	pid_t pid;
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	posix_spawnattr_setsigdefault(&how, &defaults);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
	for (int fd = 0; fd < 3; fd++)
		posix_spawn_file_actions_addopen(&files, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
	posix_spawnp(&pid, words[0], &files, &how, words, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
}

static bool has_display(void)
{
	const char *x = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
	return (x && *x) || (wayland && *wayland);
}

static void started(const char *url, const void *context)
{
	const struct view_command *s = context;
	struct buf line;
	struct error err;
	progress_stop();
	buf_init(&line, 4096);
	buf_printf(&line, "%s\n", url);
	print_text(&line, &err);
	buf_finish(&line);
	if (isatty(STDERR_FILENO))
		fputs("Ctrl-C ends it.\n", stderr);
	if (!s->no_browser && has_display())
		open_browser(url);
}

static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	const struct view_command *s = settings;
	const struct page_settings page = { .load = &s->load, .view = &s->view, .title = s->title, .inverted = s->inverted };
	const struct serve_settings how = {
		.listen = s->listen, .max_bytes = s->max_size, .started = started, .say = print_warnings, .context = s,
	};
	struct shown shown;
	struct buf warnings;
	struct timespec now;
	bool busy = false;
	int failed = page_available(err);
	if (failed)
		return failed;
	buf_init(&warnings, 1 << 20);
	clock_gettime(CLOCK_MONOTONIC, &now);
	failed = shown_init(&shown, &page, s->refresh_seconds * 1000LL, now.tv_sec * 1000LL + now.tv_nsec / 1000000, operands, n, &warnings,
	                    err);
	if (!failed)
		print_warnings(&warnings);
	if (!failed)
		failed = serve(&shown, &how, &busy, err);
	buf_finish(&warnings);
	/* Somebody is still at work with it, and nothing of that is worth waiting for. */
	if (busy)
		_exit(EXIT_DONE);
	shown_finish(&shown);
	return failed;
}

static const struct option_spec own_options[] = {
	{ "listen", 0, false, OPTION_TEXT, "ADDRESS:PORT", "where to serve, an address of this machine's own (default 127.0.0.1 and any free port)",
	  offsetof(struct view_command, listen) },
	{ "no-browser", 0, false, OPTION_ON, NULL, "only print the address (default: open it when there is a display)",
	  offsetof(struct view_command, no_browser) },
	{ "refresh", 0, false, OPTION_NUMBER, "SECONDS",
	  "how often http, unix and pid:N PROFILEs are asked again, for one more snapshot (default 10; 0: never)",
	  offsetof(struct view_command, refresh_seconds) },
	{ "max-size", 0, false, OPTION_SIZE, "SIZE",
	  "of what the page gets first: lighter stacks come when they are asked for (default 2000000 bytes; 0: everything)",
	  offsetof(struct view_command, max_size) },
	{ "invert", 0, false, OPTION_ON, NULL, "begin with allocating functions at the root, their callers above",
	  offsetof(struct view_command, inverted) },
	{ "title", 0, false, OPTION_TEXT, "TEXT", "headline of the page", offsetof(struct view_command, title) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	GROUP_VIEW(offsetof(struct view_command, view)),
	GROUP_BASE(offsetof(struct view_command, load)),
	GROUP_LOAD(offsetof(struct view_command, load)),
	{ NULL, NULL, 0, 0 },
};

static const struct view_command defaults = {
	.load = LOAD_DEFAULTS, .listen = "127.0.0.1:0", .refresh_seconds = 10, .max_size = PAGE_SIZE_DEFAULT,
};

const struct command cmd_view = {
	.name = "view",
	.operands = "PROFILE…",
	.summary = "all views in the browser: what grows, flame graph, tables, stacks",
	.description =
	    "Serves a web page on the PROFILEs, to this machine only, until Ctrl-C, and prints its address.\n"
	    "Several are snapshots, oldest first: the page ranks what grows and compares any two. Files are\n"
	    "read again when they change; pid:N, http and unix PROFILEs every ten seconds, each time as one\n"
	    "more snapshot.\n",
	.example = "  heapgauge view app.1234.*.heap\n"
	           "  heapgauge view --refresh 60 pid:1234\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
