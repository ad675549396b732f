/* flame: the call tree as a picture, one SVG or HTML file that needs nothing else. */
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/settings.h"
#include "cli/show.h"

enum { AS_UNSET = -1, AS_SVG, AS_HTML };

static const char *const default_files[] = { "heapgauge-flame.svg", "heapgauge-flame.html" };

struct flame_settings {
	struct show_settings show;
	int format;
	struct flame_options own;
};

static int render(struct view *v, const void *context, const struct report_style *style,
                  struct buf *out, struct error *err)
{
	const struct flame_settings *s = context;
	(void)style;
	return s->format == AS_HTML ? report_flame_html(v, &s->own, out, err) : report_flame_svg(v, &s->own, out, err);
}

/* What the name of the output asks for, when --to does not. */
static int format_of(const char *path)
{
	size_t n = path ? strlen(path) : 0;
	return (n > 5 && strcmp(path + n - 5, ".html") == 0) || (n > 4 && strcmp(path + n - 4, ".htm") == 0) ? AS_HTML : AS_SVG;
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
	int failed = show_profiles(&s.show, operands, n, render, &s, err);
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
	{ "to", 0, false, OPTION_CHOICE, "svg|html", "the kind of file (default: what the suffix of -o says, else svg)",
	  offsetof(struct flame_settings, format) },
	{ "invert", 0, false, OPTION_ON, NULL, "allocating functions at the root, their callers above",
	  offsetof(struct flame_settings, own.inverted) },
	{ "title", 0, false, OPTION_TEXT, "TEXT", "headline of the picture",
	  offsetof(struct flame_settings, own.title) },
	{ "width", 0, false, OPTION_NUMBER, "PIXELS", "of the picture (default 1200)",
	  offsetof(struct flame_settings, own.width) },
	{ "output", 'o', false, OPTION_TEXT, "FILE",
	  "write to FILE, whole or not at all (default on a terminal: heapgauge-flame.svg or .html)",
	  offsetof(struct flame_settings, show.text.output) },
};

static const struct option_group groups[] = {
	{ "Options", own_options, 5, 0 },
	GROUP_VIEW(offsetof(struct flame_settings, show.view)),
	GROUP_BASE(offsetof(struct flame_settings, show.load)),
	GROUP_LOAD(offsetof(struct flame_settings, show.load)),
	{ NULL, NULL, 0, 0 },
};

static const struct flame_settings defaults = { .show = SHOW_DEFAULTS, .format = AS_UNSET };

const struct command cmd_flame = {
	.name = "flame",
	.operands = "PROFILE…",
	.summary = "flame graph as a standalone SVG or HTML page",
	.description =
	    "Draws the call tree as an SVG or a page that works in any browser, offline: hover for figures, click\n"
	    "to zoom, search by regular expression. With --base growth and shrinking are coloured and\n"
	    "noise is grey.\n",
	.example = "  heapgauge flame -o heap.svg app.1234.0.f.heap\n"
	           "  heapgauge flame --base app.1234.0.i0.heap -o growth.svg app.1234.9.i9.heap\n",
	.groups = groups,
	.defaults = &defaults,
	.settings_bytes = sizeof defaults,
	.min_operands = 1,
	.max_operands = SIZE_MAX,
	.run = run,
};
