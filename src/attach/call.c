/*
 * Below what the thread uses of its stack (and the 128 bytes under it that code may use without saying) comes,
 * downwards: room for arguments, its floating point state, a signal frame with its registers, and the return address
 * of the call:
 *
 *   [ exchange ][ restorer | registers, signal mask ] ... [ x87 and SSE state ] ... [ arguments ] ... 128 bytes [ its stack
 *     ^ slot     ^ frame
 *
 * The function returns to "xchg %eax, %edi; ret" (or another register), which keeps its answer and goes on to the code
 * that signal handlers return to. That asks the kernel to restore everything from the frame, and the thread is back
 * where it was. We stop it as it asks (PTRACE_SYSCALL), have the kernel do a harmless futex call instead, and put
 * everything back ourselves: only a debugger can leave a system call interrupted in a way that the kernel continues (a
 * sleep then ends at its time). But should heapgauge be killed in the middle of the call, or give up waiting, the
 * thread goes home on its own.
 *
 * A static program may have no such code. Then "pop %rax; ret", a 15 and "syscall" stand between exchange and frame.
 *
 * Signals are blocked during the call, all but those of crashes.
 */
#include "attach/call.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>

#define RED_ZONE 128
#define FX_BYTES 512
#define FLAG_DIRECTION 0x400ull
#define FLAG_TRAP 0x100ull
#define STEP_MS 5000            /* for what takes microseconds */
#define FUTEX_WAKE_PRIVATE_OP 129

/* As the kernel lays it out in front of sigreturn; what follows the first words of the mask it does not read. */
struct frame {
	uint64_t restorer;
	ucontext_t context;
};

static uint64_t bit(int signal)
{
	return 1ull << (signal - 1);
}

static int ended(const struct caller *c, struct error *err)
{
	return error_set(err, E_IO, "process %d ended while it was attached to", (int)c->thread->process);
}

/* --- before and after --- */

static bool get_mask(const struct caller *c, uint64_t *ret)
{
	return tracee_request(c->thread, PTRACE_GETSIGMASK, sizeof *ret, (uintptr_t)ret) == 0;
}

static void set_mask(const struct caller *c, uint64_t mask)
{
	tracee_request(c->thread, PTRACE_SETSIGMASK, sizeof mask, (uintptr_t)&mask);
}

static void find_errno(struct caller *c)
{
	uint64_t offset = c->code->errno_offset;
	pid_t process = c->thread->process;
	if (c->code->errno_is == ERRNO_UNKNOWN ||
	    (c->code->errno_is == ERRNO_OFFSET_IN_MEMORY && !process_read(process, offset, &offset, sizeof offset)))
		return;
	if (process_read(process, c->regs.fs_base + offset, &c->errno_was, sizeof c->errno_was))
		c->errno_at = c->regs.fs_base + offset;
}

/* Where the thread goes on when it restores itself: in the instruction of the system call that it was in. */
static void fill_registers(const struct caller *c, gregset_t to)
{
	const struct user_regs_struct *r = &c->regs;
	int64_t answer = (int64_t)r->rax;
	bool again = (int64_t)r->orig_rax >= 0 &&
	             ((answer <= -512 && answer >= -516) || (answer == -EINTR && tracee_restarts_by_hand(r->orig_rax)));
	to[REG_R8] = (greg_t)r->r8, to[REG_R9] = (greg_t)r->r9;
	to[REG_R10] = (greg_t)r->r10, to[REG_R11] = (greg_t)r->r11;
	to[REG_R12] = (greg_t)r->r12, to[REG_R13] = (greg_t)r->r13;
	to[REG_R14] = (greg_t)r->r14, to[REG_R15] = (greg_t)r->r15;
	to[REG_RDI] = (greg_t)r->rdi, to[REG_RSI] = (greg_t)r->rsi;
	to[REG_RBP] = (greg_t)r->rbp, to[REG_RBX] = (greg_t)r->rbx;
	to[REG_RDX] = (greg_t)r->rdx, to[REG_RCX] = (greg_t)r->rcx;
	to[REG_RSP] = (greg_t)r->rsp, to[REG_EFL] = (greg_t)r->eflags;
	to[REG_RAX] = (greg_t)(again ? r->orig_rax : r->rax);
	to[REG_RIP] = (greg_t)(again ? r->rip - 2 : r->rip);
	to[REG_CSGSFS] = (greg_t)((r->cs & 0xffff) | (r->ss & 0xffff) << 48);
}

#define FLAGS_WITH_SS 6         /* UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS */
#define NO_STACK_MODE 0x5a5a    /* none that the kernel knows: it leaves the signal stack as it is */

static bool write_frame(struct caller *c, uint64_t float_at)
{
	struct frame f;
	memset(&f, 0, sizeof f);
	f.restorer = c->code->n_restorers ? c->code->restorers[0] : c->code->system_call;
	f.context.uc_flags = FLAGS_WITH_SS;
	f.context.uc_stack.ss_flags = NO_STACK_MODE;
	fill_registers(c, f.context.uc_mcontext.gregs);
	memcpy(&f.context.uc_sigmask, &c->mask, sizeof c->mask);
	uint8_t fx[FX_BYTES];
	memcpy(fx, c->xstate, sizeof fx);
	/* No more than x87 and SSE: the upper halves of vectors are nobody's across a call. */
	memset(fx + 464, 0, 48);
	f.context.uc_mcontext.fpregs = (fpregset_t)(uintptr_t)float_at;
	return process_write(c->thread->process, float_at, fx, sizeof fx) &&
	       process_write(c->thread->process, c->frame, &f, offsetof(struct frame, context.uc_sigmask) + 8);
}

int caller_begin(struct caller *c, struct tracee *thread, const struct code *code, struct error *err)
{
	*c = (struct caller){ .thread = thread, .code = code, .regs = thread->regs };
	struct iovec state = { c->xstate, sizeof c->xstate };
	if (!get_mask(c, &c->mask) || tracee_request(thread, PTRACE_GETREGSET, NT_X86_XSTATE, (uintptr_t)&state) < 0)
		return error_set(err, E_IO, "process %d: cannot read a thread's registers: %s", (int)thread->process,
		                 strerror(errno));
	c->xstate_bytes = state.iov_len;
	if (state.iov_len < FX_BYTES || state.iov_len == sizeof c->xstate)
		return error_set(err, E_UNSUPPORTED, "the registers of this processor are not understood (%zu bytes)",
		                 state.iov_len);
	c->room = (c->regs.rsp - RED_ZONE - CALL_ROOM) & ~63ull;
	uint64_t float_at = c->room - FX_BYTES;
	c->frame = (float_at - sizeof(struct frame)) & ~15ull;
	c->slot = c->frame - (c->code->n_restorers ? 8 : 24);
	if (!write_frame(c, float_at))
		return error_set(err, E_IO, "process %d: cannot write to a thread's stack: %s", (int)thread->process,
		                 strerror(errno));
	find_errno(c);
	return 0;
}

void caller_end(struct caller *c)
{
	struct tracee *t = c->thread;
	if (!t->seized)
		return;
	if (!c->given_up) {
		struct iovec state = { c->xstate, c->xstate_bytes };
		set_mask(c, c->mask);
		if (c->errno_at)
			process_write(t->process, c->errno_at, &c->errno_was, sizeof c->errno_was);
		tracee_request(t, PTRACE_SETREGSET, NT_X86_XSTATE, (uintptr_t)&state);
		t->regs = c->regs;
	}
	if (!t->signal)
		t->signal = c->held_back;
	tracee_let_go(t);
}

/* --- the call --- */

/* Back to where it asks for sigreturn, should nobody stop it. */
static void ask_again(const struct caller *c, struct user_regs_struct *r)
{
	r->rip = c->code->n_restorers ? c->code->restorers[0] : c->code->pop;
	r->rsp = c->code->n_restorers ? c->frame + 8 : c->slot + 16;
}

static int answer_of(const struct caller *c, const struct user_regs_struct *r)
{
	switch (c->code->exchanged) {
	case 2: return (int)r->rdx;
	case 3: return (int)r->rbx;
	case 5: return (int)r->rbp;
	case 6: return (int)r->rsi;
	default: return (int)r->rdi;
	}
}

/* It asks for sigreturn: the call is over. It is made to stop on its way out of a call that does nothing. */
static int take_answer(struct caller *c, const struct user_regs_struct *at, int *ret, struct error *err)
{
	struct user_regs_struct r = *at;
	int signal = 0;
	ask_again(c, &r);
	r.orig_rax = SYS_futex;
	r.rdi = c->room;
	r.rsi = FUTEX_WAKE_PRIVATE_OP;
	r.rdx = 1;
	if (tracee_request(c->thread, PTRACE_SETREGS, 0, (uintptr_t)&r) < 0 ||
	    tracee_request(c->thread, PTRACE_INTERRUPT, 0, 0) < 0 || !tracee_continue(c->thread, 0))
		return ended(c, err);
	for (;;) {
		enum tracee_event e = tracee_wait(c->thread, now_ms() + STEP_MS, &signal);
		if (e == TRACEE_INTERRUPTED || e == TRACEE_GROUP_STOP) {
			*ret = answer_of(c, at);
			return 0;
		}
		if (e != TRACEE_SIGNAL || !tracee_continue(c->thread, 0))
			return ended(c, err);
		c->held_back = signal;
	}
}

static bool is_crash(int signal)
{
	return signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE || signal == SIGTRAP ||
	       signal == SIGSYS || signal == SIGABRT;
}

/* The thread stands somewhere in the call; it goes on by itself. */
static int give_up(struct caller *c, double limit_ms, struct error *err)
{
	c->given_up = true;
	for (int signal = 0, tries = 0; tries < 100; tries++) {
		tracee_request(c->thread, PTRACE_INTERRUPT, 0, 0);
		enum tracee_event e = tracee_wait(c->thread, now_ms() + STEP_MS, &signal);
		if (e == TRACEE_GONE)
			return ended(c, err);
		c->thread->signal = e == TRACEE_SIGNAL ? signal : 0;
		if (e != TRACEE_NOTHING && tracee_read_registers(c->thread))
			break;
	}
	tracee_let_go(c->thread);
	return error_set(err, E_UNSUPPORTED,
	                 "process %d: jemalloc has not answered within %.0f s (something in the process holds one of "
	                 "its locks); the thread %d that was asked goes on by itself when it does",
	                 (int)c->thread->process, limit_ms / 1e3, (int)c->thread->thread);
}

/* Goes on until the thread asks to be put back. */
static int run(struct caller *c, double limit_ms, int *ret, struct error *err)
{
	struct tracee *t = c->thread;
	struct user_regs_struct r;
	double deadline = now_ms() + limit_ms;
	while (tracee_request(t, PTRACE_SYSCALL, 0, 0) == 0) {
		int signal = 0;
		switch (tracee_wait(t, deadline, &signal)) {
		case TRACEE_SYSTEM_CALL:
			if (tracee_request(t, PTRACE_GETREGS, 0, (uintptr_t)&r) == 0 &&
			    r.orig_rax == SYS_rt_sigreturn && r.rsp == c->frame + 8 && (int64_t)r.rax == -ENOSYS)
				return take_answer(c, &r, ret, err);
			break;
		case TRACEE_SIGNAL:
			if (is_crash(signal))
				return error_set(err, E_IO,
				                 "process %d: jemalloc's function ended in a crash (%s); the thread "
				                 "was put back where it was, but restart the process when you can",
				                 (int)t->process, strsignal(signal));
			c->held_back = signal;
			break;
		case TRACEE_INTERRUPTED:
		case TRACEE_GROUP_STOP:
			break;
		case TRACEE_GONE:
			return ended(c, err);
		case TRACEE_NOTHING:
			return give_up(c, limit_ms, err);
		}
	}
	return ended(c, err);
}

static int start(struct caller *c, struct user_regs_struct *r, double limit_ms, int *ret, struct error *err)
{
	const uint64_t way[3] = { c->code->exchange, c->code->pop, SYS_rt_sigreturn };
	if (c->given_up)
		return error_set(err, E_UNSUPPORTED, "process %d: jemalloc has not answered", (int)c->thread->process);
	r->rsp = c->slot;
	r->orig_rax = (unsigned long long)-1;
	r->eflags &= ~(FLAG_DIRECTION | FLAG_TRAP);
	if (!process_write(c->thread->process, c->slot, way, c->frame - c->slot) ||
	    tracee_request(c->thread, PTRACE_SETREGS, 0, (uintptr_t)r) < 0)
		return ended(c, err);
	/* Only now, when its way back is laid, which leads to the old mask. */
	set_mask(c, ~(bit(SIGSEGV) | bit(SIGBUS) | bit(SIGILL) | bit(SIGFPE) | bit(SIGTRAP) | bit(SIGSYS)));
	return run(c, limit_ms, ret, err);
}

int caller_call(struct caller *c, uint64_t function, const uint64_t arguments[6], double limit_ms, int *ret,
                struct error *err)
{
	struct user_regs_struct r = c->regs;
	r.rip = function;
	r.rdi = arguments[0];
	r.rsi = arguments[1];
	r.rdx = arguments[2];
	r.rcx = arguments[3];
	r.r8 = arguments[4];
	r.r9 = arguments[5];
	r.rax = 0;
	return start(c, &r, limit_ms, ret, err);
}

int caller_system_call(struct caller *c, uint64_t number, const uint64_t arguments[6], int *ret, struct error *err)
{
	struct user_regs_struct r = c->regs;
	r.rip = c->code->system_call;
	r.rax = number;
	r.rdi = arguments[0];
	r.rsi = arguments[1];
	r.rdx = arguments[2];
	r.r10 = arguments[3];
	r.r8 = arguments[4];
	r.r9 = arguments[5];
	return start(c, &r, STEP_MS, ret, err);
}
