/*
 * Making a stopped thread call a function, and putting it back as it was. See call.c for how the thread finds its way
 * back even when nobody is there any more to put it back.
 */
#ifndef ATTACH_CALL_H
#define ATTACH_CALL_H

#include "attach/code.h"
#include "attach/tracee.h"

#define CALL_XSTATE_BYTES 16384
#define CALL_ROOM 1024          /* bytes of the thread's stack that arguments may lie in */

struct caller {
	struct tracee *thread;
	const struct code *code;
	struct user_regs_struct regs;       /* as it was */
	uint64_t mask;                      /* of signals, as it was */
	size_t xstate_bytes;
	uint64_t errno_at;                  /* 0: unknown */
	int errno_was;
	uint64_t room;                      /* address of CALL_ROOM bytes */
	uint64_t frame;                     /* what sigreturn would restore from */
	uint64_t slot;                      /* the return address of a call, below it */
	int held_back;                      /* a SIGSTOP that came meanwhile */
	bool given_up;                      /* a call did not return in time: it goes back by itself */
	uint8_t xstate[CALL_XSTATE_BYTES];  /* floating point and vectors, as they were */
};

/* The thread stands at a safe point; nothing is changed when this fails. */
int caller_begin(struct caller *c, struct tracee *thread, const struct code *code, struct error *err);

/*
 * *ret: what it returned, an int. E_UNSUPPORTED when it has not returned after limit_ms: the thread then finishes the
 * call and goes on by itself, and nothing more can be called. E_IO when the process has ended or the function crashed.
 */
int caller_call(struct caller *c, uint64_t function, const uint64_t arguments[6], double limit_ms, int *ret,
                struct error *err);

/* A system call; *ret negative: -errno. */
int caller_system_call(struct caller *c, uint64_t number, const uint64_t arguments[6], int *ret, struct error *err);

/* All as it was, and let go. Also after a failure. */
void caller_end(struct caller *c);

#endif
