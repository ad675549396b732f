/*
 * A flame graph as one SVG file. What stands in it twice is meant so: the picture itself, for
 * viewers that run no scripts, and the boxes as data, from which the script (flame.js)
 * draws any part of them at any width. The data holds more than the picture shows: boxes
 * too narrow to be seen now can be zoomed into.
 *
 * The root is at the top (an icicle): the first thing seen is where memory goes, not
 * the tip of the deepest stack, and the page grows downwards. A key turns it over.
 *
 * The file stays below SIZE_WANTED: the widest frames are kept, the others summed into "(other)".
 */
#include "report/report.h"

#include "base/text.h"
#include "report/flame_boxes.h"
#include "report/flame_modules.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_WANTED ((size_t)1950 * 1000)
#define MOST_BOXES 20000
#define FEWEST_BOXES 500

#define WIDTH_DEFAULT 1200
#define WIDTH_LEAST 400
#define WIDTH_MOST 20000
#define MARGIN 10.0
#define ROW 18                 /* pixels from one row to the next */
#define MOST_ROWS 400          /* of the picture; the script reaches the rest */
#define NARROWEST 0.3          /* pixels: narrower boxes of one parent are drawn as one */
#define CHARACTER 7.3          /* width of one in the boxes' font, rather too much */
#define LEGEND_CHARACTER 6.8       /* the same for the sans serif of title and legend, on average */
#define LEGEND_MOST 12         /* modules */

static const char script[] =
#include "report/flame_js.h"
	;

static const char style[] =
#include "report/flame_css.h"
	;

struct flame {
	struct view *v;
	const struct flame_options *o;
	struct flame_boxes boxes;
	struct flame_modules modules;
	double pixels;              /* per unit of width */
	uint32_t width, top, rows, legend_rows;
	uint32_t *frame_of_entry;   /* index in the data's list of frames + 1; 0: not in it */
	uint32_t *frames;           /* entries */
	size_t n_frames;
	struct buf name, label, json;    /* scratch */
	struct buf *out;
};

/* --- words --- */

/* " ±3.20 MiB", or " 1.1 MiB … 9.2 MiB" when the interval is lopsided. */
static void add_error(struct flame *f, const struct amount *a, struct buf *out)
{
	if (!f->v->has_error)
		return;
	struct interval around = amount_interval(a);
	double middle = f->v->diff ? amount_change(a) : a->now;
	double up = around.high - middle, down = middle - around.low;
	if (up == 0 && down == 0)
		return;
	buf_addc(out, ' ');
	if (fabs(up - down) <= 0.2 * fmax(up, down)) {
		buf_adds(out, "\xc2\xb1");
		picture_amount(f->v, fmax(up, down), out);
	} else {
		buf_addc(out, '(');
		picture_amount(f->v, around.low, out);
		buf_adds(out, " \xe2\x80\xa6 ");
		picture_amount(f->v, around.high, out);
		buf_addc(out, ')');
	}
}

static void add_xml(struct flame *f, const struct buf *text)
{
	text_add_xml(f->out, text->data ? text->data : "", text->len);
}

static void name_title(struct flame *f, struct buf *out)
{
	const struct profile *p = f->v->profile;
	if (f->o->title) {
		picture_text(f->o->title, strlen(f->o->title), out);
		return;
	}
	const char *program = p->n_mappings ? path_base(profile_text(p, p->mappings[0].file)) : "";
	if (*program) {
		picture_text(program, strlen(program), out);
		buf_adds(out, ": ");
	}
	picture_text(f->v->type, strlen(f->v->type), out);
	buf_adds(out, f->v->diff ? ", what changed" : "");
	buf_adds(out, f->o->inverted ? ", inverted: callers below callees" : "");
}

/* "inuse_space: 100 MiB → 123 MiB: +23 MiB ±4 MiB (95 %)" */
static void name_total(struct flame *f, struct buf *out)
{
	const struct view *v = f->v;
	picture_text(v->type, strlen(v->type), out);
	buf_adds(out, ": ");
	if (v->diff) {
		picture_amount(v, v->total.base, out);
		buf_adds(out, " \xe2\x86\x92 ");
		picture_amount(v, v->total.now, out);
		buf_adds(out, ", change ");
		picture_change(v, amount_change(&v->total), out);
	} else {
		picture_amount(v, v->total.now, out);
	}
	size_t before = out->len;
	add_error(f, &v->total, out);
	if (out->len > before)
		buf_adds(out, " (95 %)");
	if (v->total.now != v->total_all.now || v->total.base != v->total_all.base) {
		buf_adds(out, ", filtered from ");
		picture_amount(v, v->total_all.now, out);
	}
}

static void name_sources(struct flame *f, bool base, struct buf *out)
{
	const struct profile *p = f->v->profile;
	size_t n = 0;
	for (size_t i = 0; i < p->n_sources; i++) {
		if (p->sources[i].base != base || n++ > 2)
			continue;
		const char *name = path_base(profile_text(p, p->sources[i].name));
		buf_adds(out, n > 1 ? ", " : "");
		picture_text(name, strlen(name), out);
	}
	if (n > 3)
		buf_printf(out, " and %zu more", n - 3);
}

/* Where the numbers come from, and what the picture leaves out. */
static void name_sources_and_rest(struct flame *f, struct buf *out)
{
	if (f->v->diff) {
		buf_adds(out, "base: ");
		name_sources(f, true, out);
		buf_adds(out, "; now: ");
	}
	name_sources(f, false, out);
	if (out->len)
		buf_adds(out, "; ");
	text_add_count(out, (double)f->boxes.kept);
	buf_adds(out, " frames");
	if (f->boxes.cut) {
		buf_adds(out, ", smaller ones (below ");
		picture_amount(f->v, f->boxes.narrowest, out);
		buf_adds(out, ") summed up as (other)");
	}
	if (f->v->diff)
		buf_adds(out, "; width: the larger of base and now");
}

/* --- the picture --- */

static void add_pixels(struct flame *f, const char *attribute, double value)
{
	buf_addc(f->out, ' ');
	buf_adds(f->out, attribute);
	buf_adds(f->out, "=\"");
	picture_number(value, f->out);
	buf_addc(f->out, '"');
}

/* One line of text, cut to the width there is. */
static void add_line(struct flame *f, const char *class, double x, double y, const struct buf *text,
                     double character, double room)
{
	struct buf *fit = &f->label;
	buf_reset(fit);
	picture_fit(text->data ? text->data : "", text->len, (size_t)(room / character), fit);
	buf_printf(f->out, "<text class=\"%s\"", class);
	add_pixels(f, "x", x);
	add_pixels(f, "y", y);
	buf_addc(f->out, '>');
	add_xml(f, fit);
	buf_adds(f->out, "</text>\n");
}

static double pixel_width(const struct flame *f, const struct flame_box *b)
{
	return b->width * f->pixels;
}

/* Three strengths of a colour: how much of the box changed. */
static unsigned strength(const struct amount *a)
{
	double part = fabs(amount_change(a)) / fmax(fabs(a->base), fabs(a->now));
	return part < 0.1 ? 1 : part < 0.5 ? 2 : 3;
}

/* One character that stands for the class of a diff's box; flame.js has the same list. */
static char change_code(const struct flame_box *b)
{
	switch (b->change) {
	case CHANGE_NONE: return 's';
	case CHANGE_NOISE: return 'n';
	case CHANGE_GREW: return "123"[strength(&b->amount) - 1];
	case CHANGE_SHRANK: return "abc"[strength(&b->amount) - 1];
	case CHANGE_NEW: return '+';
	case CHANGE_GONE: return '-';
	}
	return 's';
}

static const char *change_class(char code)
{
	static const char codes[] = "sn123abc+-";
	static const char *const classes[] = { "same", "noise", "g1", "g2", "g3", "l1", "l2", "l3", "new", "gone" };
	return classes[strchr(codes, code) - codes];
}

static void add_class(struct flame *f, const struct flame_box *b, double width)
{
	buf_adds(f->out, " class=\"");
	if (f->v->diff) {
		buf_adds(f->out, change_class(change_code(b)));
		/* Too thin for an outline. */
		if (width < 4 && (b->change == CHANGE_NEW || b->change == CHANGE_GONE))
			buf_adds(f->out, " thin");
	} else if (b->entry == PROFILE_NONE) {
		buf_adds(f->out, b->merged ? "rest" : "root");
	} else {
		struct flame_colour c = flame_colour(&f->modules, f->v, b->entry);
		buf_printf(f->out, "m%u", c.hue);
		if (c.shade)
			buf_printf(f->out, " s%u", c.shade);
	}
	buf_addc(f->out, '"');
}

static const char *change_sign(enum picture_change change)
{
	switch (change) {
	case CHANGE_GREW:
	case CHANGE_NEW: return "+ ";
	case CHANGE_SHRANK:
	case CHANGE_GONE: return "\xe2\x88\x92 ";
	case CHANGE_NOISE: return "~ ";
	default: return "= ";
	}
}

static void name_box(struct flame *f, const struct flame_box *b, struct buf *out)
{
	if (b->entry != PROFILE_NONE)
		picture_name(f->v, b->entry, out);
	else if (b->merged)
		buf_printf(out, "(other: %u smaller)", b->merged);
	else
		buf_adds(out, "all");
}

static void add_box_amount(struct flame *f, const struct amount *a, struct buf *out)
{
	if (f->v->diff)
		picture_change(f->v, amount_change(a), out);
	else
		picture_amount(f->v, a->now, out);
}

/* The name and, where there is room, the amount; else the short name; else the start of that. */
static void add_label(struct flame *f, const struct flame_box *b, double x, double y, double width)
{
	double room_pixels = width - 8;
	if (room_pixels < 3 * CHARACTER)
		return;
	size_t room = (size_t)(room_pixels / CHARACTER);
	struct buf *name = &f->name, *label = &f->label;
	buf_reset(name);
	buf_reset(label);
	if (f->v->diff)
		buf_adds(label, change_sign(b->change));
	size_t sign = picture_columns(label->data ? label->data : "", label->len);
	name_box(f, b, name);
	size_t columns = picture_columns(name->data, name->len) + sign;
	bool amount = columns + 12 <= room;
	if (columns > room) {
		struct buf *json = &f->json;
		buf_reset(json);
		picture_short(name->data, name->len, json);
		picture_fit(json->data, json->len, room - sign, label);
	} else {
		buf_add(label, name->data, name->len);
	}
	if (!label->len || (sign && room - sign < 3))
		return;
	buf_adds(f->out, "<text");
	add_pixels(f, "x", x + 4);
	add_pixels(f, "y", y + 13);
	buf_addc(f->out, '>');
	add_xml(f, label);
	if (amount) {
		buf_adds(f->out, "<tspan dx=\"9\">");
		buf_reset(label);
		add_box_amount(f, &b->amount, label);
		add_xml(f, label);
		buf_adds(f->out, "</tspan>");
	}
	buf_adds(f->out, "</text>");
}

/* A gap of a pixel to the right, less for narrow boxes. */
static double drawn_width(double width)
{
	return width - fmin(1, width * 0.2);
}

static void add_box(struct flame *f, const struct flame_box *b, double x, double width)
{
	double y = f->top + (double)b->depth * ROW;
	buf_adds(f->out, "<rect");
	add_class(f, b, width);
	add_pixels(f, "x", x);
	add_pixels(f, "y", y);
	add_pixels(f, "width", drawn_width(width));
	buf_printf(f->out, " height=\"%d\"/>", ROW - 1);
	add_label(f, b, x, y, width);
	buf_addc(f->out, '\n');
}

/* From the first child that is too narrow to its parent's last: one box. */
static void add_narrow(struct flame *f, const struct flame_box *first)
{
	const struct flame_box *parent = &f->boxes.boxes[first->parent];
	double end = parent->start + parent->children;
	double width = (end - first->start) * f->pixels;
	if (width < NARROWEST)
		return;
	buf_printf(f->out, "<rect class=\"rest\"");
	add_pixels(f, "x", MARGIN + first->start * f->pixels);
	add_pixels(f, "y", f->top + (double)first->depth * ROW);
	add_pixels(f, "width", drawn_width(width));
	buf_printf(f->out, " height=\"%d\"/>\n", ROW - 1);
}

static void add_boxes(struct flame *f)
{
	buf_adds(f->out, "<g id=\"boxes\" class=\"boxes\">\n");
	/* The last parent whose narrow children were drawn as one. */
	uint32_t narrow_of = UINT32_MAX;
	for (size_t i = 0; i < f->boxes.n; i++) {
		const struct flame_box *b = &f->boxes.boxes[i];
		const struct flame_box *parent = &f->boxes.boxes[b->parent];
		if (b->depth >= f->rows || (i > 0 && pixel_width(f, parent) < NARROWEST))
			continue;
		if (i > 0 && narrow_of == b->parent)
			continue;
		if (i > 0 && pixel_width(f, b) < NARROWEST) {
			narrow_of = b->parent;
			add_narrow(f, b);
			continue;
		}
		double width = i > 0 ? pixel_width(f, b) : f->width - 2 * MARGIN;
		add_box(f, b, MARGIN + b->start * f->pixels, width);
	}
	buf_adds(f->out, "</g>\n");
}

/* --- the legend --- */

struct pen {
	double x, y;
};

/* A swatch with a word; a new line when it would pass the right margin. */
static void add_key(struct flame *f, struct pen *pen, const char *class, const struct buf *text, uint32_t hue,
                    bool draw)
{
	double width = 42 + (double)picture_columns(text->data, text->len) * LEGEND_CHARACTER;
	if (pen->x > MARGIN && pen->x + width > f->width - MARGIN) {
		pen->x = MARGIN;
		pen->y += ROW;
	}
	if (draw) {
		buf_adds(f->out, "<g class=\"key\" transform=\"translate(");
		picture_number(pen->x, f->out);
		buf_addc(f->out, ' ');
		picture_number(pen->y, f->out);
		buf_printf(f->out, ")\"><g class=\"boxes\"><rect class=\"%s", class);
		if (hue != UINT32_MAX)
			buf_printf(f->out, "%u", hue);
		buf_adds(f->out, "\" x=\"1\" y=\"2\" width=\"14\" height=\"12\"/></g><text class=\"line\" x=\"20\" y=\"12\">");
		add_xml(f, text);
		buf_adds(f->out, "</text></g>\n");
	}
	pen->x += width;
}

static void add_diff_legend(struct flame *f, struct pen *pen, bool draw)
{
	static const struct {
		const char *class, *text;
	} keys[] = {
		{ "g1", "+ grew by less than a tenth" }, { "g2", "+ less than half" }, { "g3", "+ more" },
		{ "new", "+ new" }, { "l1", "\xe2\x88\x92 shrank by less than a tenth" },
		{ "l2", "\xe2\x88\x92 less than half" }, { "l3", "\xe2\x88\x92 more" },
		{ "gone", "\xe2\x88\x92 gone" }, { "noise", "~ within sampling noise" }, { "same", "= the same" },
	};
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!f->v->has_error && strcmp(keys[i].class, "noise") == 0)
			continue;
		buf_reset(&f->label);
		buf_adds(&f->label, keys[i].text);
		add_key(f, pen, keys[i].class, &f->label, UINT32_MAX, draw);
	}
}

/* draw false: only finds out how many lines it takes. */
static double add_legend(struct flame *f, bool draw)
{
	struct pen pen = { MARGIN, 74 };
	if (f->v->diff) {
		add_diff_legend(f, &pen, draw);
		return pen.y + ROW;
	}
	if (f->modules.by_name)
		return pen.y;
	for (size_t i = 0; i < f->modules.n && i < LEGEND_MOST; i++) {
		const struct flame_module *m = &f->modules.modules[i];
		buf_reset(&f->label);
		bool several = m->hue == FLAME_HUE_REST && f->modules.n - i > 1;
		if (several) {
			buf_printf(&f->label, "%zu more", f->modules.n - i);
		} else {
			buf_reset(&f->name);
			flame_module_name(f->v, m, &f->name);
			picture_fit(f->name.data, f->name.len, 40, &f->label);
		}
		add_key(f, &pen, "m", &f->label, m->hue, draw);
		if (several)
			break;
	}
	return pen.y + (f->modules.n ? ROW : 0);
}

/* --- the data --- */

/* Whole numbers; a text of digits, or "0". */
static void json_integer(struct buf *j, double value)
{
	buf_printf(j, "%.0f", rint(value) + 0.0);
}

/* Three digits are enough for a bound: "123e5". Rounded away from the value, never towards it. */
static void json_bound(struct buf *j, double value, bool up)
{
	int exponent = 0;
	while (fabs(value) >= 1000) {
		value /= 10;
		exponent++;
	}
	json_integer(j, up ? ceil(value - 1e-9) : floor(value + 1e-9));
	if (exponent)
		buf_printf(j, "e%d", exponent);
}

static void json_name(struct buf *j, const struct buf *text)
{
	text_add_json(j, text->data ? text->data : "", text->len);
}

/* ["name", "short" or 0, "file:line" or 0, hue, shade, module, inlined] */
static void json_frame(struct flame *f, uint32_t entry)
{
	struct buf *j = &f->json, *name = &f->name, *other = &f->label;
	struct flame_colour c = flame_colour(&f->modules, f->v, entry);
	buf_reset(name);
	buf_reset(other);
	buf_addc(j, '[');
	picture_name(f->v, entry, name);
	json_name(j, name);
	picture_short(name->data, name->len, other);
	buf_addc(j, ',');
	if (other->len < name->len)
		json_name(j, other);
	else
		buf_addc(j, '0');
	buf_reset(other);
	picture_place(f->v, entry, other);
	buf_addc(j, ',');
	if (other->len)
		json_name(j, other);
	else
		buf_addc(j, '0');
	buf_printf(j, ",%u,%u,%d,%d]", c.hue, c.shade, (int)flame_module_of(&f->modules, f->v, entry),
	           f->v->entries[entry].inlined);
}

/* Entries that are drawn, numbered in order of appearance. */
static void number_frames(struct flame *f)
{
	memset(f->frame_of_entry, 0, f->v->n_entries * sizeof(*f->frame_of_entry));
	f->n_frames = 0;
	for (size_t i = 0; i < f->boxes.n; i++) {
		uint32_t entry = f->boxes.boxes[i].entry;
		if (entry == PROFILE_NONE || f->frame_of_entry[entry])
			continue;
		f->frames[f->n_frames++] = entry;
		f->frame_of_entry[entry] = (uint32_t)f->n_frames;
	}
}

enum column { COLUMN_FRAME, COLUMN_DEPTH, COLUMN_NOW, COLUMN_BASE, COLUMN_LOW, COLUMN_HIGH, COLUMN_WIDTH, COLUMN_MERGED };

static void json_cell(struct flame *f, const struct flame_box *b, enum column column)
{
	struct buf *j = &f->json;
	switch (column) {
	case COLUMN_FRAME: json_integer(j, b->entry == PROFILE_NONE ? -1 : (double)f->frame_of_entry[b->entry] - 1); break;
	case COLUMN_DEPTH: json_integer(j, b->depth); break;
	case COLUMN_NOW: json_integer(j, b->amount.now); break;
	case COLUMN_BASE: json_integer(j, b->amount.base); break;
	case COLUMN_LOW: json_bound(j, b->around.low, false); break;
	case COLUMN_HIGH: json_bound(j, b->around.high, true); break;
	case COLUMN_WIDTH: json_integer(j, b->width); break;
	case COLUMN_MERGED: json_integer(j, b->merged); break;
	}
}

static void json_column(struct flame *f, const char *key, enum column column)
{
	buf_printf(&f->json, ",\n\"%s\":[", key);
	for (size_t i = 0; i < f->boxes.n; i++) {
		if (i)
			buf_addc(&f->json, ',');
		json_cell(f, &f->boxes.boxes[i], column);
	}
	buf_addc(&f->json, ']');
}

static void json_frames_and_modules(struct flame *f)
{
	struct buf *j = &f->json;
	buf_adds(j, ",\n\"modules\":[");
	for (size_t i = 0; i < f->modules.n; i++) {
		buf_reset(&f->name);
		flame_module_name(f->v, &f->modules.modules[i], &f->name);
		buf_adds(j, i ? "," : "");
		json_name(j, &f->name);
	}
	buf_adds(j, "],\n\"frames\":[");
	for (size_t i = 0; i < f->n_frames; i++) {
		buf_adds(j, i ? ",\n" : "\n");
		json_frame(f, f->frames[i]);
	}
	buf_addc(j, ']');
}

static bool some_value_is_negative(const struct flame *f)
{
	for (size_t i = 0; i < f->boxes.n; i++)
		if (f->boxes.boxes[i].amount.now < 0)
			return true;
	return false;
}

static void json_data(struct flame *f)
{
	struct buf *j = &f->json;
	const struct view *v = f->v;
	buf_reset(j);
	buf_adds(j, "{\"type\":");
	text_add_json(j, v->type, strlen(v->type));
	buf_adds(j, ",\"unit\":");
	text_add_json(j, v->unit, strlen(v->unit));
	buf_printf(j, ",\"diff\":%d,\"error\":%d,\"top\":%u,\"row\":%d,\"total\":", v->diff, v->has_error,
	           f->top, ROW);
	json_integer(j, v->total_all.now);
	number_frames(f);
	json_frames_and_modules(f);
	json_column(f, "frame", COLUMN_FRAME);
	json_column(f, "depth", COLUMN_DEPTH);
	json_column(f, "now", COLUMN_NOW);
	if (v->diff)
		json_column(f, "base", COLUMN_BASE);
	if (v->has_error) {
		json_column(f, "low", COLUMN_LOW);
		json_column(f, "high", COLUMN_HIGH);
	}
	if (v->diff || some_value_is_negative(f))
		json_column(f, "width", COLUMN_WIDTH);
	if (f->boxes.cut)
		json_column(f, "merged", COLUMN_MERGED);
	if (v->diff) {
		buf_adds(j, ",\n\"change\":\"");
		for (size_t i = 0; i < f->boxes.n; i++)
			buf_addc(j, change_code(&f->boxes.boxes[i]));
		buf_addc(j, '"');
	}
	buf_adds(j, "}\n");
}

/*
 * JSON has < > & only inside of strings, where \u003c says the same and is no markup. U+FFFE and U+FFFF
 * (ef bf be, ef bf bf), which XML forbids, become U+FFFD.
 */
static void add_json_as_xml(struct buf *out, const struct buf *json)
{
	size_t kept = 0;
	for (size_t i = 0; i < json->len; i++) {
		char c = json->data[i];
		bool forbidden = (c == '\xbe' || c == '\xbf') && i >= 2 && json->data[i - 2] == '\xef' &&
		                 json->data[i - 1] == '\xbf';
		if (c != '<' && c != '>' && c != '&' && !forbidden)
			continue;
		buf_add(out, json->data + kept, i - kept);
		if (forbidden)
			buf_addc(out, '\xbd');
		else
			buf_printf(out, "\\u%04x", (unsigned)c);
		kept = i + 1;
	}
	buf_add(out, json->data + kept, json->len - kept);
}

/* --- the file --- */

static void measure(struct flame *f)
{
	const struct flame_boxes *b = &f->boxes;
	f->width = f->o->width ? f->o->width : WIDTH_DEFAULT;
	f->width = f->width < WIDTH_LEAST ? WIDTH_LEAST : f->width > WIDTH_MOST ? WIDTH_MOST : f->width;
	f->pixels = b->boxes[0].width > 0 ? (f->width - 2 * MARGIN) / b->boxes[0].width : 0;
	f->rows = 1;
	for (size_t i = 1; i < b->n; i++)
		if (pixel_width(f, &b->boxes[b->boxes[i].parent]) >= NARROWEST && b->boxes[i].depth >= f->rows)
			f->rows = b->boxes[i].depth + 1;
	if (f->rows > MOST_ROWS)
		f->rows = MOST_ROWS;
	f->top = (uint32_t)add_legend(f, false) + 6;
}

static void add_head(struct flame *f)
{
	struct buf *out = f->out, line;
	buf_init(&line, 1 << 20);
	uint32_t height = f->top + f->rows * ROW + 10;
	name_title(f, &line);
	buf_adds(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
	buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"%u\" height=\"%u\""
	                " viewBox=\"0 0 %u %u\">\n<title>", f->width, height, f->width, height);
	add_xml(f, &line);
	buf_adds(out, "</title>\n<style><![CDATA[\n");
	buf_adds(out, style);
	buf_adds(out, "]]></style>\n<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\""
	              " patternTransform=\"rotate(45)\"><rect class=\"hatch-back\" width=\"6\" height=\"6\"/>"
	              "<path class=\"hatch-line\" d=\"M0 0V6\"/></pattern></defs>\n"
	              "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n");
	double room = f->width - 2 * MARGIN;
	add_line(f, "title", MARGIN, 26, &line, 10.2, room > 900 ? room - 480 : room);
	buf_reset(&line);
	name_total(f, &line);
	add_line(f, "line", MARGIN, 46, &line, LEGEND_CHARACTER + 0.6, room > 900 ? room - 360 : room);
	buf_reset(&line);
	name_sources_and_rest(f, &line);
	add_line(f, "line dim", MARGIN, 63, &line, LEGEND_CHARACTER, room);
	buf_finish(&line);
	buf_adds(out, "<g id=\"legend\">\n");
	add_legend(f, true);
	buf_adds(out, "</g>\n");
}

static void write_svg(struct flame *f)
{
	measure(f);
	add_head(f);
	add_boxes(f);
	json_data(f);
	buf_adds(f->out, "<script type=\"application/json\" id=\"data\">");
	add_json_as_xml(f->out, &f->json);
	buf_adds(f->out, "</script>\n<script><![CDATA[\n");
	buf_adds(f->out, script);
	buf_adds(f->out, "]]></script>\n</svg>\n");
}

static int write_checked(struct flame *f, struct error *err)
{
	write_svg(f);
	if (f->out->failed || f->name.failed || f->label.failed || f->json.failed)
		return error_set(err, E_LIMIT, "the flame graph is larger than the output may be, or out of memory");
	return E_OK;
}

/* Writes to see how large it becomes, with fewer boxes until that is right; then for good, with the errors. */
static int write_within_size(struct flame *f, const struct flame_stacks *s, struct error *err)
{
	size_t start = f->out->len, wanted = f->v->has_error ? SIZE_WANTED * 9 / 10 : SIZE_WANTED;
	for (size_t limit = MOST_BOXES;;) {
		flame_boxes_finish(&f->boxes);
		int code = flame_boxes_make(f->v, s, limit, &f->boxes, err);
		if (!code)
			code = write_checked(f, err);
		if (code)
			return code;
		size_t size = f->out->len - start;
		f->out->len = start;
		if (size <= wanted || limit <= FEWEST_BOXES)
			break;
		size_t boxes = f->boxes.n < limit ? f->boxes.n : limit;
		limit = (size_t)((double)boxes * 0.95 * (double)wanted / (double)size);
		limit = limit < FEWEST_BOXES ? FEWEST_BOXES : limit;
	}
	int code = flame_boxes_judge(f->v, &f->boxes, err);
	return code ? code : write_checked(f, err);
}

int report_flame_svg(struct view *v, const struct flame_options *o, struct buf *out, struct error *err)
{
	struct flame f = { .v = v, .o = o, .out = out };
	struct flame_stacks s;
	int code = flame_stacks_make(v, o->inverted, &s, err);
	if (code)
		return code;
	buf_init(&f.name, BUF_MAX_DEFAULT);
	buf_init(&f.label, BUF_MAX_DEFAULT);
	buf_init(&f.json, BUF_MAX_DEFAULT);
	f.frame_of_entry = calloc(v->n_entries + 1, sizeof(*f.frame_of_entry));
	f.frames = calloc(v->n_entries + 1, sizeof(*f.frames));
	if (!f.frame_of_entry || !f.frames || !flame_modules_make(v, &s, o->inverted, &f.modules))
		code = error_nomem(err, "the flame graph");
	else
		code = write_within_size(&f, &s, err);
	free(f.frame_of_entry);
	free(f.frames);
	flame_modules_finish(&f.modules);
	flame_boxes_finish(&f.boxes);
	buf_finish(&f.name);
	buf_finish(&f.label);
	buf_finish(&f.json);
	flame_stacks_finish(&s);
	return code;
}
