/* flame: the call tree as a picture, SVG or within the web page: one file that needs nothing else. */
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/pages.h"
#include "cli/settings.h"
#include "cli/show.h"

enum { AS_UNSET = -1, AS_SVG, AS_HTML };

static const char *const default_files[] = { "heapgauge-flame.svg", "heapgauge-flame.html" };

struct flame_settings {
	struct show_settings show;
	int format;
	struct flame_options own;
	uint64_t max_size;
};

static int render(struct view *v, const void *context, const struct report_style *style,
                  struct buf *out, struct error *err)
{
	const struct flame_settings *s = context;
	(void)style;
	return report_flame_svg(v, &s->own, out, err);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);
	return n > m && strcmp(text + n - m, end) == 0;
}

/* What the name of the output asks for, when --to does not. A program without the page draws. */
static int format_of(const char *path)
{
	if (path && ends_with(path, ".svg"))
		return AS_SVG;
	if (path && (ends_with(path, ".html") || ends_with(path, ".htm")))
		return AS_HTML;
	return page_available(NULL) ? AS_SVG : AS_HTML;
}

static int write_page(const struct flame_settings *s, char **operands, size_t n, struct error *err)
{
	const struct page_settings how = {
		.load = &s->show.load, .view = &s->show.view, .title = s->own.title, .inverted = s->own.inverted,
	};
	struct buf out, warnings;
	buf_init(&out, BUF_MAX_DEFAULT);
	buf_init(&warnings, 1 << 20);
	int failed = page_render(&how, s->max_size, operands, n, &warnings, &out, err);
	if (!failed)
		failed = write_whole(s->show.text.output, &out, err);
	if (!failed)
		print_warnings(&warnings);
	buf_finish(&out);
	buf_finish(&warnings);
	return failed;
}

/* A picture is no use on a terminal: there it goes into a file, whose name is printed. */
static int run(const void *settings, char **operands, size_t n, struct error *err)
{
	struct flame_settings s = *(const struct flame_settings *)settings;
	bool into_file = !s.show.text.output && isatty(STDOUT_FILENO);
	if (s.format == AS_UNSET)
		s.format = format_of(s.show.text.output);
	if (into_file)
		s.show.text.output = default_files[s.format];
	int failed = s.format == AS_HTML ? write_page(&s, operands, n, err)
	                                 : show_profiles(&s.show, operands, n, render, &s, err);
	if (failed || !into_file)
		return failed;
	struct buf text;
	buf_init(&text, 4096);
	buf_printf(&text, "wrote %s: open it in a browser\n", default_files[s.format]);
	failed = print_text(&text, err);
	buf_finish(&text);
	return failed;
}

static const struct option_spec own_options[] = {
	{ "to", 0, false, OPTION_CHOICE, "svg|html", "a picture, or the page with it (default: what the suffix of -o says, else html)",
	  offsetof(struct flame_settings, format) },
	{ "invert", 0, false, OPTION_ON, NULL, "allocating functions at the root, their callers above",
	  offsetof(struct flame_settings, own.inverted) },
	{ "title", 0, false, OPTION_TEXT, "TEXT", "headline of the picture",
	  offsetof(struct flame_settings, own.title) },
	{ "width", 0, false, OPTION_NUMBER, "PIXELS", "of the SVG (default 1200)",
	  offsetof(struct flame_settings, own.width) },
	{ "max-size", 0, false, OPTION_SIZE, "SIZE",
	  "of the page: lighter stacks are added up to fit (default 2000000 bytes; 0: all are told)",
	  offsetof(struct flame_settings, max_size) },
	{ "output", 'o', false, OPTION_TEXT, "FILE",
	  "write to FILE, whole or not at all (default on a terminal: heapgauge-flame.html or .svg)",
	  offsetof(struct flame_settings, show.text.output) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, sizeof own_options / sizeof *own_options, 0 },
	GROUP_VIEW(offsetof(struct flame_settings, show.view)),
	GROUP_BASE(offsetof(struct flame_settings, show.load)),
	GROUP_LOAD(offsetof(struct flame_settings, show.load)),
	{ NULL, NULL, 0, 0 },
};

static const struct flame_settings defaults = { .show = SHOW_DEFAULTS, .format = AS_UNSET, .max_size = PAGE_SIZE_DEFAULT };

const struct command cmd_flame = {
	.name = "flame",
	.operands = "PROFILE…",
	.summary = "one HTML page with all views, or a flame graph as SVG",
	.description =
	    "Writes the web page that 'heapgauge view' shows, as one file that needs nothing else: flame graph,\n"
	    "tables, stacks and, of several PROFILEs, oldest first, what grows. Or draws the call tree as an SVG\n"
	    "for tickets. Both work in any browser, offline. With --base growth and shrinking are coloured and\n"
	    "noise is grey.\n",
	.example = "  heapgauge flame -o heap.html app.1234.0.i0.heap app.1234.9.i9.heap\n"
	           "  heapgauge flame --base app.1234.0.i0.heap -o growth.svg app.1234.9.i9.heap\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
