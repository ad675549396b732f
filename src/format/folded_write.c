/* One line a stack, root first: "main;serve;parse 4096", in a diff "main;serve;parse 1024 4096". */
#include "format/format.h"

#include "format/export.h"

#include <string.h>

/* The line is put together in place: there are millions of frames. */
static bool add_stack(const struct export *x, const struct export_stack *s, struct buf *out)
{
	size_t bytes = 0;
	for (uint32_t i = 0; i < s->n; i++)
		bytes += x->names[x->frames[s->first + i]].length + 1;
	if (!buf_reserve(out, bytes))
		return false;
	char *to = out->data + out->len;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct export_frame *f = &x->names[x->frames[s->first + i]];
		memcpy(to, x->text.data + f->at, f->length);
		to += f->length;
		*to++ = ';';
	}
	to[-1] = ' ';
	out->len += bytes;
	return true;
}

int folded_write(struct view *v, struct buf *out, struct error *err)
{
	struct export x;
	int code = export_make(v, EXPORT_BY_TEXT, false, &x, err);
	if (code)
		return code;
	for (size_t i = 0; i < x.n_stacks; i++) {
		const struct amount *a = &x.stacks[i].amount;
		/* Two threads may have cancelled out. */
		if ((a->now == 0 && a->base == 0) || !add_stack(&x, &x.stacks[i], out))
			continue;
		if (v->diff) {
			export_integer(out, a->base);
			buf_addc(out, ' ');
		}
		export_integer(out, a->now);
		buf_addc(out, '\n');
	}
	export_finish(&x);
	return export_check(out, "folded", err);
}
