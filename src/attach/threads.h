/* The threads of a process and what they do, as /proc tells. */
#ifndef ATTACH_THREADS_H
#define ATTACH_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/error.h"

struct thread {
	pid_t id;
	char state;             /* R, S, D, T, t, Z */
	bool waits;             /* in a system call that it can be interrupted in without the program seeing it */
	unsigned
		trouble; /* of those: 0 the kernel continues it exactly, 1 it is started again, 2 with its time limit anew */
};

struct threads {
	struct thread *items;
	size_t n, capacity;
};

/* Those least trouble first. E_IO when the process has ended. */
int threads_list(struct threads *t, pid_t process, struct error *err);
void threads_finish(struct threads *t);

#endif
