/*
 * Everything a view has, for scripts. Frames are listed once; a row's stack names them by their index,
 * leaf first, as a dump does. low and high are the 95 % interval of the value, in a diff of
 * the change, and absent when the error is not known.
 */
#include "format/format.h"

#include "base/text.h"
#include "format/export.h"

#include <math.h>
#include <string.h>

static void add_string(const struct view *v, uint32_t string, struct buf *out)
{
	text_add_json(out, profile_text(v->profile, string), strings_length(&v->profile->strings, string));
}

static void add_number(const char *key, double value, struct buf *out)
{
	buf_adds(out, key);
	export_integer(out, value);
}

/* "value":1,"low":0,"high":2 */
static void add_amount(const struct view *v, const struct amount *a, struct buf *out)
{
	if (v->diff) {
		add_number("\"base\":", a->base, out);
		add_number(",\"new\":", a->now, out);
		add_number(",\"change\":", amount_change(a), out);
	} else {
		add_number("\"value\":", a->now, out);
	}
	if (!v->has_error)
		return;
	struct interval around = amount_interval(a);
	add_number(",\"low\":", floor(around.low), out);
	add_number(",\"high\":", ceil(around.high), out);
}

static void add_sources(const struct view *v, struct buf *out)
{
	const struct profile *p = v->profile;
	buf_adds(out, ",\n\"sources\":[");
	for (size_t i = 0; i < p->n_sources; i++) {
		const struct source *s = &p->sources[i];
		buf_adds(out, i ? ",\n{\"name\":" : "\n{\"name\":");
		add_string(v, s->name, out);
		if (s->rate > 0)
			add_number(",\"rate\":", s->rate, out);
		if (s->time_nanos)
			buf_printf(out, ",\"time_nanos\":%lld", (long long)s->time_nanos);
		if (s->duration_nanos)
			buf_printf(out, ",\"duration_nanos\":%lld", (long long)s->duration_nanos);
		if (s->pid)
			buf_printf(out, ",\"pid\":%llu", (unsigned long long)s->pid);
		buf_adds(out, s->base ? ",\"base\":true}" : ",\"base\":false}");
	}
	buf_addc(out, ']');
}

static void add_frame(const struct export *x, uint32_t name, struct buf *out)
{
	const struct export_frame *f = &x->names[name];
	const struct strings *s = &x->v->profile->strings;
	buf_adds(out, "{\"name\":");
	text_add_json(out, export_name(x, name), f->length);
	if (f->entry != PROFILE_NONE) {
		const struct entry *e = &x->v->entries[f->entry];
		if (strings_length(s, e->file)) {
			buf_adds(out, ",\"file\":");
			add_string(x->v, e->file, out);
		}
		if (e->line > 0)
			add_number(",\"line\":", (double)e->line, out);
		if (e->mapping != PROFILE_NONE) {
			buf_adds(out, ",\"binary\":");
			add_string(x->v, x->v->profile->mappings[e->mapping].file, out);
		}
		if (e->address)
			buf_printf(out, ",\"address\":\"0x%llx\"", (unsigned long long)e->address);
		if (e->inlined)
			buf_adds(out, ",\"inlined\":true");
	}
	buf_addc(out, '}');
}

static void add_row(const struct export *x, const struct export_stack *s, struct buf *out)
{
	buf_addc(out, '{');
	add_amount(x->v, &s->amount, out);
	if (s->thread) {
		buf_adds(out, ",\"thread\":");
		add_string(x->v, s->thread, out);
	}
	if (s->block_size)
		add_number(",\"block_size\":", (double)s->block_size, out);
	buf_adds(out, ",\"stack\":[");
	for (uint32_t k = s->n; k-- > 0;) {
		export_integer(out, x->frames[s->first + k]);
		if (k)
			buf_addc(out, ',');
	}
	buf_adds(out, "]}");
}

int json_write(struct view *v, struct buf *out, struct error *err)
{
	struct export x;
	int code = export_make(v, EXPORT_BY_ENTRY, true, &x, err);
	if (code)
		return code;
	buf_adds(out, "{\"type\":");
	text_add_json(out, v->type, strlen(v->type));
	buf_adds(out, ",\"unit\":");
	text_add_json(out, v->unit, strlen(v->unit));
	buf_adds(out, v->diff ? ",\"diff\":true" : ",\"diff\":false");
	buf_adds(out, ",\n\"total\":{");
	add_amount(v, &v->total, out);
	buf_adds(out, "},\n\"total_before_filters\":{");
	add_amount(v, &v->total_all, out);
	buf_addc(out, '}');
	add_sources(v, out);
	buf_adds(out, ",\n\"frames\":[");
	for (size_t i = 0; i < x.n_names; i++) {
		buf_adds(out, i ? ",\n" : "\n");
		add_frame(&x, (uint32_t)i, out);
	}
	buf_adds(out, "],\n\"rows\":[");
	for (size_t i = 0; i < x.n_stacks; i++) {
		buf_adds(out, i ? ",\n" : "\n");
		add_row(&x, &x.stacks[i], out);
	}
	buf_adds(out, "]}\n");
	export_finish(&x);
	return export_check(out, "JSON", err);
}
