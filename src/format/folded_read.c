/*
 * Folded stacks: "main;work;alloc 123", one stack a line, root first, as the stackcollapse scripts of
 * FlameGraph print them. A function's name is all that is known of a frame. Two numbers at the
 * end of every line make it a diff: what was, and what is.
 *
 * Blank lines and lines that begin with '#' are skipped. Names may hold blanks; the count is what
 * follows the last one.
 */
#include "format/format.h"
#include "format/lines.h"

#include <inttypes.h>
#include <stdlib.h>

struct folded {
	struct lines lines;
	const struct read_limits *limits;
	struct profile *p;
	uint32_t *frames;               /* of the line at hand, leaf first once it is whole */
	size_t n_frames, frames_capacity;
	uint32_t *locations;            /* by the string of the name: location + 1; 0: none yet */
	size_t locations_capacity;
	unsigned columns;               /* numbers at the end of each line; 0: no line seen */
};

/* Takes the number off the end of [line, line + *n), and the blanks before it. */
static bool take_count(const char *line, size_t *n, uint64_t *ret_count)
{
	size_t begin = *n;
	while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
		begin--;
	if (begin == *n || begin == 0 || (line[begin - 1] != ' ' && line[begin - 1] != '\t'))
		return false;
	const char *at = line + begin;
	if (!lines_number(&at, line + *n, ret_count) || *ret_count > INT64_MAX)
		return false;
	while (begin > 0 && (line[begin - 1] == ' ' || line[begin - 1] == '\t'))
		begin--;
	*n = begin;
	return true;
}

/* The one location of a function's name, or PROFILE_NONE when memory is out. */
static uint32_t location_of(struct folded *f, const char *name, size_t n)
{
	struct profile *p = f->p;
	static const char unknown[] = "[unknown]";
	uint32_t string = n ? profile_string(p, name, n) : profile_cstring(p, unknown);
	if (p->failure.code)
		return 0;
	size_t had = f->locations_capacity;
	if (!memory_grow((void **)&f->locations, &f->locations_capacity, (size_t)string + 1,
	                 sizeof *f->locations, INDEX_NONE))
		return PROFILE_NONE;
	memset(f->locations + had, 0, (f->locations_capacity - had) * sizeof *f->locations);
	if (!f->locations[string]) {
		struct line line = { .function = profile_intern_function(
			                 p, &(struct function){ .name = string }) };
		f->locations[string] = profile_add_location(p, PROFILE_NONE, 0, false, &line, 1) + 1;
	}
	return f->locations[string] - 1;
}

static int add_frame(struct folded *f, const char *name, size_t n, struct error *err)
{
	if (f->n_frames >= f->limits->depth)
		return lines_error(&f->lines, err, E_LIMIT, "the stack has more than %u frames",
		                   f->limits->depth);
	uint32_t location = location_of(f, name, n);
	uint32_t *slot = location == PROFILE_NONE
	                     ? NULL
	                     : ARRAY_PUSH(f->frames, f->n_frames, f->frames_capacity, f->limits->depth);
	if (!slot)
		return error_nomem(err, "the frames of a stack");
	*slot = location;
	return E_OK;
}

/* The stack as it stands on the line, from its end, which is the leaf. */
static int add_frames(struct folded *f, const char *line, size_t n, struct error *err)
{
	f->n_frames = 0;
	if (n == 0)
		return E_OK;
	for (size_t end = n;;) {
		const char *semicolon = memrchr(line, ';', end);
		size_t begin = semicolon ? (size_t)(semicolon - line) + 1 : 0;
		int rc = add_frame(f, line + begin, end - begin, err);
		if (rc || begin == 0)
			return rc;
		end = begin - 1;
	}
}

static int add_line(struct folded *f, const char *line, size_t n, struct error *err)
{
	uint64_t count[2];
	if (memchr(line, '\0', n))
		return lines_error(&f->lines, err, E_FORMAT, "a zero byte; this is not folded text");
	if (!take_count(line, &n, &count[0])) {
		char quote[LINES_QUOTE];
		return lines_error(&f->lines, err, E_FORMAT, "no whole number ends the line \"%s\"",
		                   lines_quote(quote, line, n));
	}
	if (f->columns == 0) {
		size_t rest = n;
		f->columns = take_count(line, &rest, &count[1]) ? 2 : 1;
		/* The last source is the one that is looked at. */
		for (unsigned i = 0; i < f->columns; i++)
			profile_add_source(f->p, &(struct source){
				.name = profile_cstring(f->p, f->lines.in->name),
				.base = i + 1 < f->columns,
				.header_objects = -1,
				.header_bytes = -1,
			});
	}
	if (f->columns == 2) {
		count[1] = count[0];
		if (!take_count(line, &n, &count[0]))
			return lines_error(&f->lines, err, E_FORMAT,
			                   "one number, where the lines before have two");
	}
	int rc = add_frames(f, line, n, err);
	if (rc)
		return rc;
	uint32_t stack = profile_intern_stack(f->p, f->frames, f->n_frames);
	for (unsigned i = 0; i < f->columns; i++)
		if (count[i] || f->columns == 1)
			profile_add_sample(f->p, stack, 0, i, &(int64_t){ (int64_t)count[i] });
	return E_OK;
}

static int read_lines(struct folded *f, struct error *err)
{
	const char *line;
	size_t n;
	int rc;
	while ((rc = lines_next(&f->lines, &line, &n, err)) > 0) {
		bool blank = true;
		for (size_t i = 0; i < n && blank; i++)
			blank = line[i] == ' ' || line[i] == '\t';
		if (!blank && line[0] != '#')
			rc = add_line(f, line, n, err);
		if (rc < 0 || f->p->failure.code)
			break;
	}
	if (rc < 0)
		return rc;
	rc = profile_finish(f->p, err);
	if (rc)
		return error_prefix(err, "%s: ", f->lines.in->name);
	if (f->columns == 0)
		return error_set(err, E_FORMAT, "%s: no stacks in it; this is not folded text",
		                 f->lines.in->name);
	return E_OK;
}

int folded_read(struct stream *in, const struct read_limits *limits, struct read_report *report,
                struct profile **ret, struct error *err)
{
	struct folded f = { .limits = limits };
	int rc = lines_init(&f.lines, in, limits->profile_bytes, limits->input_bytes, err);
	if (rc)
		return rc;
	f.p = profile_new(limits->profile_bytes);
	if (f.p) {
		profile_add_type(f.p, "space", "bytes");
		rc = read_lines(&f, err);
	} else {
		rc = error_nomem(err, "reading folded stacks");
	}
	if (!rc && !f.lines.whole && report)
		buf_printf(&report->warnings,
		           "%s: line %" PRIu64 ", the last, has no newline; was the file cut?\n", in->name,
		           f.lines.number);
	lines_finish(&f.lines);
	free(f.frames);
	free(f.locations);
	if (rc)
		profile_free(f.p);
	else
		*ret = f.p;
	return rc;
}
