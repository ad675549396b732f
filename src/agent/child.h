/*
 * The symbolizer, as a process of its own: the heapgauge program is started with nothing of the host but a profile to read and a place
 * to write to, has what is dangerous read by processes without rights (symbol/worker.h), and is gone when it has answered. The host's heap, descriptors,
 * environment and signals play no part: nothing is copied or allocated, all descriptors from 3 on are closed, the environment is
 * empty, memory that runs out takes this process first, it dies with the host, and its end raises no SIGCHLD and is seen by no wait().
 */
#ifndef AGENT_CHILD_H
#define AGENT_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct child_request {
	const char *program;            /* path of heapgauge */
	const char *const *arguments;   /* behind the program's name, NULL-terminated */
	int input;                      /* becomes its standard input, from the position it has; stays the caller's */
	uint64_t output_max;            /* bytes; more is E_LIMIT */
	unsigned timeout_ms;
	bool (*cancelled)(void *context);   /* asked a few times a second; NULL: never */
	void *context;
};

/*
 * Runs it to its end. *ret_fd: a memfd with what it wrote, from offset 0, of *ret_n bytes; the caller closes it. Failure carries the last line
 * of its standard error. Allocates nothing. E_UNSUPPORTED: the program can't be started; E_FORMAT: it failed; E_LIMIT: output or time,
 * or cancelled. Blocks; any thread, and several at once.
 */
int child_run(const struct child_request *r, int *ret_fd, uint64_t *ret_n, struct error *err);

/* A heapgauge program: configured, beside the file this code is in (../bin of a lib directory, too), or in the usual places; "" when there is none. */
void child_find_program(const char *configured, char *to, size_t room);

#endif
