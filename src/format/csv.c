/*
 * A table for spreadsheets and scripts: one line for each stack, thread and block size, stacks root first as
 * in folded text. The bounds are those of the 95 % interval, of the change in a diff.
 */
#include "format/format.h"

#include "base/text.h"
#include "format/export.h"

#include <math.h>
#include <string.h>

static void add_header(const struct view *v, struct buf *out)
{
	struct buf name;
	buf_init(&name, 1 << 16);
	if (v->diff) {
		buf_adds(&name, v->type);
		buf_adds(&name, "_base");
		text_add_csv(out, name.data, name.len);
		buf_reset(&name);
		buf_adds(&name, v->type);
		buf_adds(&name, "_new");
		buf_addc(out, ',');
		text_add_csv(out, name.data, name.len);
		buf_adds(out, ",change");
	} else {
		text_add_csv(out, v->type, strlen(v->type));
	}
	buf_finish(&name);
	buf_adds(out, ",low,high,thread,block_size,stack\n");
}

static void add_amount(const struct view *v, const struct amount *a, struct buf *out)
{
	if (v->diff) {
		export_integer(out, a->base);
		buf_addc(out, ',');
		export_integer(out, a->now);
		buf_addc(out, ',');
		export_integer(out, amount_change(a));
	} else {
		export_integer(out, a->now);
	}
	buf_addc(out, ',');
	struct interval around = { 0 };
	if (v->has_error) {
		around = amount_interval(a);
		export_integer(out, floor(around.low));
	}
	buf_addc(out, ',');
	if (v->has_error)
		export_integer(out, ceil(around.high));
}

int csv_write(struct view *v, struct buf *out, struct error *err)
{
	struct export x;
	int code = export_make(v, EXPORT_BY_TEXT, true, &x, err);
	if (code)
		return code;
	struct buf stack;
	buf_init(&stack, BUF_MAX_DEFAULT);
	add_header(v, out);
	for (size_t i = 0; i < x.n_stacks; i++) {
		const struct export_stack *s = &x.stacks[i];
		add_amount(v, &s->amount, out);
		buf_addc(out, ',');
		text_add_csv(out, profile_text(v->profile, s->thread), strings_length(&v->profile->strings, s->thread));
		buf_addc(out, ',');
		if (s->block_size)
			export_integer(out, (double)s->block_size);
		buf_addc(out, ',');
		buf_reset(&stack);
		for (uint32_t k = 0; k < s->n; k++) {
			uint32_t name = x.frames[s->first + k];
			if (k)
				buf_addc(&stack, ';');
			buf_add(&stack, export_name(&x, name), x.names[name].length);
		}
		text_add_csv(out, stack.data, stack.len);
		buf_addc(out, '\n');
	}
	out->failed |= stack.failed;
	buf_finish(&stack);
	export_finish(&x);
	return export_check(out, "CSV", err);
}
