/*
 * speedscope's own JSON: one list of frames, and a sampled profile for each column. It knows
 * no amounts below zero, so a diff becomes four profiles to pick from.
 */
#include "format/format.h"

#include "base/text.h"
#include "format/export.h"

#include <string.h>

/* speedscope knows these units; all else is "none". */
static const char *unit_of(const struct view *v)
{
	static const char *const units[] = { "bytes", "nanoseconds", "microseconds", "milliseconds", "seconds" };
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(v->unit, units[i]) == 0)
			return units[i];
	return "none";
}

static void add_frame(const struct export *x, uint32_t name, struct buf *out)
{
	const struct strings *s = &x->v->profile->strings;
	const struct export_frame *f = &x->names[name];
	buf_adds(out, "{\"name\":");
	text_add_json(out, export_name(x, name), f->length);
	if (f->entry != PROFILE_NONE) {
		const struct entry *e = &x->v->entries[f->entry];
		if (strings_length(s, e->file)) {
			buf_adds(out, ",\"file\":");
			text_add_json(out, strings_get(s, e->file), strings_length(s, e->file));
		}
		if (e->line > 0) {
			buf_adds(out, ",\"line\":");
			export_integer(out, (double)e->line);
		}
	}
	buf_addc(out, '}');
}

static double add_samples(const struct export *x, const struct export_column *column, struct buf *out)
{
	double sum = 0;
	bool comma = false;
	buf_adds(out, "\"samples\":[");
	for (size_t i = 0; i < x->n_stacks; i++) {
		const struct export_stack *s = &x->stacks[i];
		double value = column->value(&s->amount);
		if (value <= 0)
			continue;
		sum += value;
		buf_adds(out, comma ? ",\n[" : "\n[");
		comma = true;
		for (uint32_t k = 0; k < s->n; k++) {
			if (k)
				buf_addc(out, ',');
			export_integer(out, x->frames[s->first + k]);
		}
		buf_addc(out, ']');
	}
	buf_addc(out, ']');
	return sum;
}

static void add_weights(const struct export *x, const struct export_column *column, struct buf *out)
{
	bool comma = false;
	buf_adds(out, ",\"weights\":[");
	for (size_t i = 0; i < x->n_stacks; i++) {
		double value = column->value(&x->stacks[i].amount);
		if (value <= 0)
			continue;
		if (comma)
			buf_addc(out, ',');
		comma = true;
		export_integer(out, value);
	}
	buf_addc(out, ']');
}

static void add_profile(const struct export *x, const struct export_column *column, struct buf *out)
{
	struct buf name;
	buf_init(&name, 1 << 16);
	buf_adds(&name, x->v->type);
	if (column->name) {
		buf_adds(&name, ": ");
		buf_adds(&name, column->name);
	}
	buf_adds(out, "{\"type\":\"sampled\",\"name\":");
	text_add_json(out, name.data, name.len);
	buf_finish(&name);
	buf_printf(out, ",\"unit\":\"%s\",\"startValue\":0,", unit_of(x->v));
	double sum = add_samples(x, column, out);
	add_weights(x, column, out);
	buf_adds(out, ",\"endValue\":");
	export_integer(out, sum);
	buf_addc(out, '}');
}

int speedscope_write(struct view *v, const char *title, struct buf *out, struct error *err)
{
	struct export x;
	int code = export_make(v, EXPORT_BY_ENTRY, false, &x, err);
	if (code)
		return code;
	struct export_column columns[EXPORT_COLUMNS];
	size_t n = export_columns(v, columns);
	buf_adds(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"exporter\":\"heapgauge\",\"name\":");
	text_add_json(out, title ? title : v->type, strlen(title ? title : v->type));
	buf_adds(out, ",\"activeProfileIndex\":0,\n\"shared\":{\"frames\":[");
	for (size_t i = 0; i < x.n_names; i++) {
		buf_adds(out, i ? ",\n" : "\n");
		add_frame(&x, (uint32_t)i, out);
	}
	buf_adds(out, "]},\n\"profiles\":[");
	for (size_t i = 0; i < n; i++) {
		buf_adds(out, i ? ",\n" : "\n");
		add_profile(&x, &columns[i], out);
	}
	buf_adds(out, "]}\n");
	export_finish(&x);
	return export_check(out, "speedscope", err);
}
