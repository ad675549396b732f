/*
 * Everything that reading an input's lines and stacks says, as text: with a thread that reads ahead it must be the same
 * as without.
 */
#ifndef TESTS_FORMAT_AHEAD_LOG_H
#define TESTS_FORMAT_AHEAD_LOG_H

#include "format/ahead.h"

/* Returns the first error, of a stack or of the lines. *ret_addresses: how many of f's the stacks have. */
static inline int log_lines(struct lines *l, struct frames *f, struct buf *log, size_t *ret_addresses)
{
	const char *line;
	size_t n;
	struct error err = { 0 };
	int rc, bad = E_OK;
	*ret_addresses = 0;
	while ((rc = lines_next(l, &line, &n, &err)) == 1) {
		buf_printf(log, "%llu %d %zu ", (unsigned long long)l->number, l->whole, n);
		buf_add(log, line, n);
		buf_addc(log, '\n');
		size_t blanks = 0;
		while (blanks < n && (line[blanks] == ' ' || line[blanks] == '\t'))
			blanks++;
		if (bad || !l->whole || blanks == n || line[blanks] != '@')
			continue;
		struct ahead_stack stack;
		if (!ahead_stack(l, line + blanks + 1, &stack)) {
			/* After the first bad stack a reader looks at no other. */
			bad = frames_read(f, l, line + blanks + 1, line + n, &err);
			stack.frames = f->stack;
			stack.n = f->stack_n;
			stack.addresses = f->n;
			if (bad)
				buf_printf(log, "bad: %s\n", err.text);
		} else if (stack.hash != profile_stack_hash(stack.frames, stack.n)) {
			buf_printf(log, "the hash is another\n");
		}
		if (!bad)
			*ret_addresses = stack.addresses;
		for (size_t i = 0; !bad && i < stack.n; i++)
			buf_printf(log, " %u", stack.frames[i]);
		buf_addc(log, '\n');
	}
	buf_printf(log, "ends with %d %s\n", rc, rc ? err.text : "");
	return bad ? bad : rc;
}

/* block_bytes 0: without the thread. Returns the first error. */
static inline int ahead_log(struct stream *in, size_t block_bytes, size_t line_max, uint64_t input_max,
                            const struct read_limits *limits, struct buf *log)
{
	struct frames f = { 0 };
	struct lines l = { 0 };
	struct error err = { 0 };
	size_t addresses = 0;
	int rc = lines_init(&l, in, line_max, input_max, &err);
	if (rc == E_OK)
		rc = frames_init(&f, limits, &err);
	if (rc == E_OK) {
		if (block_bytes)
			ahead_start(&l, &f, block_bytes);
		rc = log_lines(&l, &f, log, &addresses);
	} else {
		buf_printf(log, "ends with %d %s\n", rc, err.text);
	}
	lines_finish(&l);
	for (size_t i = 0; i < addresses; i++)
		buf_printf(log, "%llx ", (unsigned long long)f.addresses[i]);
	frames_finish(&f);
	return rc;
}

#endif
