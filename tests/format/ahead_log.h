/*
 * Everything that reading an input's lines and stacks says, as text: with a thread that reads ahead it must be the same
 * as without.
 */
#ifndef TESTS_FORMAT_AHEAD_LOG_H
#define TESTS_FORMAT_AHEAD_LOG_H

#include "format/ahead.h"

static inline void log_lines(struct lines *l, struct frames *f, struct buf *log)
{
	const char *line;
	size_t n;
	struct error err = { 0 };
	bool bad = false;
	int rc;
	while ((rc = lines_next(l, &line, &n, &err)) == 1) {
		buf_printf(log, "%llu %d %zu ", (unsigned long long)l->number, l->whole, n);
		buf_add(log, line, n);
		buf_addc(log, '\n');
		size_t blanks = 0;
		while (blanks < n && line[blanks] == ' ')
			blanks++;
		if (bad || !l->whole || blanks == n || line[blanks] != '@')
			continue;
		struct ahead_stack stack;
		if (!ahead_stack(l, line + blanks + 1, &stack)) {
			/* After the first bad stack a reader looks at no other. */
			bad = frames_read(f, l, line + blanks + 1, line + n, &err) != E_OK;
			stack.frames = f->stack;
			stack.n = f->stack_n;
			if (bad)
				buf_printf(log, "bad: %s\n", err.text);
		} else if (stack.hash != profile_stack_hash(stack.frames, stack.n)) {
			buf_printf(log, "the hash is another\n");
		}
		for (size_t i = 0; !bad && i < stack.n; i++)
			buf_printf(log, " %u", stack.frames[i]);
		buf_addc(log, '\n');
	}
	buf_printf(log, "ends with %d %s\n", rc, rc ? err.text : "");
}

/* block_bytes 0: without the thread. */
static inline void ahead_log(struct stream *in, size_t block_bytes, size_t line_max, uint64_t input_max,
                             const struct read_limits *limits, struct buf *log)
{
	struct frames f = { 0 };
	struct lines l = { 0 };
	struct error err = { 0 };
	if (lines_init(&l, in, line_max, input_max, &err) == E_OK && frames_init(&f, limits, &err) == E_OK) {
		if (block_bytes)
			ahead_start(&l, &f, block_bytes);
		log_lines(&l, &f, log);
	}
	lines_finish(&l);
	for (size_t i = 0; i < f.n; i++)
		buf_printf(log, "%llx ", (unsigned long long)f.addresses[i]);
	frames_finish(&f);
}

#endif
