/*
 * A thread that waits in a system call leaves it to stop. Most calls the kernel then starts again by itself when the
 * thread goes on (it left -ERESTARTSYS or the like in rax, the call's number in orig_rax). A few end with EINTR
 * although no signal was handled (signal(7), "Interruption of system calls and library functions by stop signals");
 * those are started again here: number into rax, rip back to the instruction. Unless a signal has come that has a
 * handler: in a life without us it would have ended the call, so the EINTR is then the truth. A signal that the call
 * itself lets in (epoll_pwait) is kept out until the thread is in it again.
 */
#include "attach/tracee.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include "attach/permission.h"
#include "attach/process.h"

#define SLEEP_NS 1000000
#define SETTLE_NS 30000         /* a signal to the process is taken by another of its threads in that time, if by any */

double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* --- system calls that wait --- */

static const uint16_t restarted_by_kernel[] = {
	SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_poll, SYS_ppoll, SYS_select, SYS_pselect6, SYS_pause,
	SYS_rt_sigsuspend, SYS_wait4, SYS_waitid, SYS_restart_syscall,
};

static const uint16_t restarted_by_hand[] = {
	SYS_epoll_wait, SYS_epoll_pwait, 441 /* epoll_pwait2 */, SYS_rt_sigtimedwait, SYS_semop, SYS_semtimedop,
	SYS_msgrcv, SYS_msgsnd, SYS_io_getevents, 333 /* io_pgetevents */, 426 /* io_uring_enter */,
	/* On sockets with SO_RCVTIMEO or SO_SNDTIMEO; on others, pipes and the like the kernel does it. */
	SYS_read, SYS_readv, SYS_write, SYS_writev, SYS_recvfrom, SYS_recvmsg, SYS_recvmmsg, SYS_sendto, SYS_sendmsg,
	SYS_sendmmsg, SYS_accept, SYS_accept4, SYS_connect,
};

bool tracee_restarts_by_hand(uint64_t system_call)
{
	for (size_t i = 0; i < sizeof restarted_by_hand / sizeof *restarted_by_hand; i++)
		if (restarted_by_hand[i] == system_call)
			return true;
	return false;
}

bool tracee_can_wait_in(uint64_t system_call)
{
	for (size_t i = 0; i < sizeof restarted_by_kernel / sizeof *restarted_by_kernel; i++)
		if (restarted_by_kernel[i] == system_call)
			return true;
	return tracee_restarts_by_hand(system_call);
}

/* --- memory --- */

bool process_read(pid_t process, uint64_t address, void *to, size_t n)
{
	struct iovec ours = { to, n }, theirs = { (void *)(uintptr_t)address, n };
	return process_vm_readv(process, &ours, 1, &theirs, 1, 0) == (ssize_t)n;
}

bool process_write(pid_t process, uint64_t address, const void *from, size_t n)
{
	struct iovec ours = { (void *)(uintptr_t)from, n }, theirs = { (void *)(uintptr_t)address, n };
	return process_vm_writev(process, &ours, 1, &theirs, 1, 0) == (ssize_t)n;
}

/* --- stopping --- */

long tracee_request(const struct tracee *t, int what, uintptr_t address, uintptr_t data)
{
	return ptrace((enum __ptrace_request)what, t->thread, (void *)address, (void *)data);
}

int tracee_seize(struct tracee *t, pid_t process, pid_t thread, struct error *err)
{
	*t = (struct tracee){ .process = process, .thread = thread };
	uint64_t seccomp = 0;
	process_status_number(process, thread, "Seccomp", 10, &seccomp);
	/* A sandbox may kill its process for calls it doesn't know; root may have it look away. */
	if (seccomp && tracee_request(t, PTRACE_SEIZE, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_SUSPEND_SECCOMP) == 0)
		t->seized = true;
	else if (tracee_request(t, PTRACE_SEIZE, 0, PTRACE_O_TRACESYSGOOD) == 0)
		t->seized = true;
	return t->seized ? 0 : permission_refused(process, errno, err);
}

bool tracee_interrupt(struct tracee *t)
{
	t->stopped_at_ms = now_ms();
	return t->seized && tracee_request(t, PTRACE_INTERRUPT, 0, 0) == 0;
}

static enum tracee_event event_of(struct tracee *t, int status, int *ret_signal)
{
	if (!WIFSTOPPED(status)) {
		t->gone = true;
		t->seized = false;
		return TRACEE_GONE;
	}
	int signal = WSTOPSIG(status);
	if (status >> 16 == PTRACE_EVENT_STOP)
		return signal == SIGTRAP ? TRACEE_INTERRUPTED : TRACEE_GROUP_STOP;
	if (signal == (SIGTRAP | 0x80))
		return TRACEE_SYSTEM_CALL;
	*ret_signal = signal;
	return TRACEE_SIGNAL;
}

/* Sleeps until a child says something, or a moment; where SIGCHLD can't be waited for it is the moment. */
static void sleep_a_moment(double left_ms)
{
	sigset_t child;
	struct timespec moment = { 0, SLEEP_NS };
	if (left_ms < 1)
		moment.tv_nsec = (long)(left_ms * 1e6);
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	sigtimedwait(&child, NULL, &moment);
}

enum tracee_event tracee_wait(struct tracee *t, double deadline_ms, int *ret_signal)
{
	for (;;) {
		int status;
		pid_t done = waitpid(t->thread, &status, __WALL | WNOHANG);
		if (done == t->thread)
			return event_of(t, status, ret_signal);
		if (done < 0 && errno != EINTR) {
			t->gone = true;
			t->seized = false;
			return TRACEE_GONE;
		}
		double left = deadline_ms - now_ms();
		if (left <= 0)
			return TRACEE_NOTHING;
		sleep_a_moment(left);
	}
}

bool tracee_continue(struct tracee *t, int signal)
{
	return tracee_request(t, PTRACE_CONT, 0, (uintptr_t)signal) == 0;
}

bool tracee_read_registers(struct tracee *t)
{
	return tracee_request(t, PTRACE_GETREGS, 0, (uintptr_t)&t->regs) == 0;
}

static void detach(struct tracee *t)
{
	tracee_request(t, PTRACE_DETACH, 0, (uintptr_t)t->signal);
	t->seized = false;
}

bool tracee_stop(struct tracee *t, double limit_ms)
{
	int signal = 0;
	if (!tracee_interrupt(t))
		return false;
	switch (tracee_wait(t, now_ms() + limit_ms, &signal)) {
	case TRACEE_INTERRUPTED:
		if (tracee_read_registers(t))
			return true;
		break;
	case TRACEE_SIGNAL:
		t->signal = signal;
		break;
	case TRACEE_GONE:
	case TRACEE_NOTHING:    /* a thread that doesn't stop can't be let go either: that happens when we end */
		return false;
	case TRACEE_GROUP_STOP:
	case TRACEE_SYSTEM_CALL:
		break;
	}
	detach(t);
	return false;
}

/* --- letting go --- */

static bool has_pending(const struct tracee *t, const char *key)
{
	uint64_t pending = 0, blocked = 0, caught = 0;
	process_status_number(t->process, t->thread, key, 16, &pending);
	if (!pending)
		return false;
	process_status_number(t->process, t->thread, "SigBlk", 16, &blocked);
	process_status_number(t->process, t->thread, "SigCgt", 16, &caught);
	return (pending & ~blocked & caught) != 0;
}

/* Is there a signal that will be handled by this thread before it does anything else? */
static bool signal_comes(const struct tracee *t)
{
	const struct timespec settle = { 0, SETTLE_NS };
	bool shared = has_pending(t, "ShdPnd");
	for (int i = 0; i < 3 && shared; i++) {
		nanosleep(&settle, NULL);
		shared = has_pending(t, "ShdPnd");
	}
	return shared || has_pending(t, "SigPnd");
}

static bool was_cut_short(const struct tracee *t)
{
	uint8_t instruction[2];
	return (int64_t)t->regs.rax == -EINTR && (int64_t)t->regs.orig_rax >= 0 &&
	       tracee_restarts_by_hand(t->regs.orig_rax) && process_read(t->process, t->regs.rip - 2, instruction, 2) &&
	       memcmp(instruction, "\x0f\x05", 2) == 0;
}

static void put_back(struct tracee *t)
{
	struct user_regs_struct again = t->regs;
	uint64_t mask;
	if (!t->signal && was_cut_short(t)) {
		/* While such a call waits, its mask is in force; writing puts the thread's own back. */
		if (tracee_request(t, PTRACE_GETSIGMASK, sizeof mask, (uintptr_t)&mask) == 0)
			tracee_request(t, PTRACE_SETSIGMASK, sizeof mask, (uintptr_t)&mask);
		if (!signal_comes(t)) {
			again.rip -= 2;
			again.rax = t->regs.orig_rax;
			again.orig_rax = (unsigned long long)-1;
		}
	}
	tracee_request(t, PTRACE_SETREGS, 0, (uintptr_t)&again);
}

void tracee_let_go(struct tracee *t)
{
	if (!t->seized || t->gone)
		return;
	put_back(t);
	detach(t);
}

void tracee_go_on(struct tracee *t)
{
	if (!t->seized || t->gone)
		return;
	put_back(t);
	tracee_continue(t, t->signal);
	t->signal = 0;
}
