/*
 * One thread of another process under ptrace: seized (never PTRACE_ATTACH, which sends it a SIGSTOP), stopped, read,
 * and let go so that it notices nothing: signals that came meanwhile are passed on, an interrupted system call goes
 * on.
 */
#ifndef ATTACH_TRACEE_H
#define ATTACH_TRACEE_H

#include <sys/types.h>
#include <sys/user.h>

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tracee {
	pid_t process, thread;
	bool seized, gone;
	struct user_regs_struct regs;       /* as it stopped, and as it is let go */
	double stopped_at_ms;               /* when it was asked to stop, or hit a breakpoint */
	int signal;                         /* was about to be delivered: it is, when the thread is let go */
};

enum tracee_event {
	TRACEE_INTERRUPTED,     /* because tracee_interrupt asked for it */
	TRACEE_GROUP_STOP,      /* its process is stopped by SIGSTOP or its like */
	TRACEE_SIGNAL,          /* *ret_signal is about to be delivered */
	TRACEE_SYSTEM_CALL,     /* before or after one, when that was asked for */
	TRACEE_GONE,            /* has ended, or executes another program */
	TRACEE_NOTHING,         /* until the deadline */
};

double now_ms(void);

/* E_IO: not permitted, and why (see attach/permission.h); or it has ended. It goes on running. */
int tracee_seize(struct tracee *t, pid_t process, pid_t thread, struct error *err);
/* ptrace(what, thread, address, data). */
long tracee_request(const struct tracee *t, int what, uintptr_t address, uintptr_t data);
bool tracee_interrupt(struct tracee *t);
enum tracee_event tracee_wait(struct tracee *t, double deadline_ms, int *ret_signal);
/* Interrupts it, waits until it stands, reads its registers. False: it doesn't stop or has ended; it is let go. */
bool tracee_stop(struct tracee *t, double limit_ms);
/* Fills regs, after tracee_wait said that it stands. */
bool tracee_read_registers(struct tracee *t);
bool tracee_continue(struct tracee *t, int signal);
/*
 * With the registers of regs, and not traced any more. A system call that was interrupted goes on; some the kernel
 * does not start again by itself, see tracee.c. Does nothing to one that is gone or was let go.
 */
void tracee_let_go(struct tracee *t);
/* The same, but it stays traced. */
void tracee_go_on(struct tracee *t);

/* System calls that wait, and that can be interrupted without the program seeing it. */
bool tracee_can_wait_in(uint64_t system_call);
/* Of those, such that the kernel answers EINTR in. */
bool tracee_restarts_by_hand(uint64_t system_call);

bool process_read(pid_t process, uint64_t address, void *to, size_t n);
bool process_write(pid_t process, uint64_t address, const void *from, size_t n);

#endif
