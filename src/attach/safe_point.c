/*
 * Where may a thread be made to call the allocator? Not at any place: in the middle of malloc it holds locks that the
 * call would wait for for ever. Two kinds of places are known to be good:
 *
 * 1. It waits in a system call, and no frame of the allocator, of the loader or of fork is on its stack (stack.c).
 * Then it
 *    holds none of their locks. Threads are tried one after another; only the one that is tried stands, for some microseconds.
 * 2. It is about to enter the allocator from outside. Debug registers (which neither change its code nor are inherited
 * by
 *    children) make threads stop at the entries; the first that does is taken. All debug registers are cleared before anything else is done.
 *
 * The first costs the process nothing, the second a few microseconds for each thread. They take turns until the time
 * is over.
 */
#include "attach/safe_point.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <time.h>

#include "attach/stack.h"
#include "attach/threads.h"

#define STOP_MS 10000           /* only one that has begun to wait for a disk takes more than some microseconds */
#define TURN_MS 50              /* at the breakpoints, at first */
#define TURN_MAX_MS 400
#define ROUNDS_PER_TURN 4       /* over the threads that wait, for one at the breakpoints */
#define WATCHED_MAX 256
#define BREAKPOINTS 4           /* debug registers of the processor */
#define ALONE 8                 /* threads that are watched one by one, before all are */
#define ALONE_MS 10
#define PAUSE_NS 2000000        /* between two rounds over threads that wait */

/* --- waiting in a system call --- */

/* Left by a system call that waited, in a way that it can go on. */
static bool was_waiting(const struct tracee *t)
{
	int64_t answer = (int64_t)t->regs.rax, call = (int64_t)t->regs.orig_rax;
	if (call < 0 || !tracee_can_wait_in((uint64_t)call))
		return false;
	return (answer <= -512 && answer >= -516) || (answer == -EINTR && tracee_restarts_by_hand((uint64_t)call));
}

/* A thread may end while it is looked at: that is no failure. *ret_gone says so. */
static int seize(const struct safe_point_search *s, pid_t thread, struct tracee *ret, bool *ret_gone, struct error *err)
{
	uint64_t number;
	int failed = tracee_seize(ret, s->process->pid, thread, err);
	*ret_gone = failed && !process_status_number(s->process->pid, thread, "Tgid", 10, &number);
	return *ret_gone ? 0 : failed;
}

static struct unwinder *unwinder_of(struct safe_point_search *s)
{
	if (!*s->unwinder)
		*s->unwinder = unwinder_new(s->process);
	return *s->unwinder;
}

/*
 * Its stack has words that lead into the allocator. If they are leftovers, its frames tell. Reading their tables takes
 * milliseconds the first time: then they are worked out while it goes on waiting, and count when it is found as it was.
 * Later that takes little. It stands when this returns true.
 */
static bool is_clear_by_frames(struct safe_point_search *s, struct tracee *t)
{
	struct tracee as_it_was = *t;
	bool gone;
	struct error ignored;
	if (*s->unwinder && unwinder_is_clear(*s->unwinder, t, s->code, false))
		return true;
	tracee_let_go(t);
	struct unwinder *u = unwinder_of(s);
	if (!u || !unwinder_is_clear(u, &as_it_was, s->code, false) ||
	    seize(s, as_it_was.thread, t, &gone, &ignored) || gone || !tracee_stop(t, STOP_MS))
		return false;
	if (was_waiting(t) && unwinder_still_holds(u, t))
		return true;
	tracee_let_go(t);
	return false;
}

static bool try_blocked(struct safe_point_search *s, const struct process *map, struct tracee *t)
{
	s->ret_tried++;
	if (!tracee_stop(t, STOP_MS))
		return false;
	enum stack_verdict verdict = was_waiting(t) ? stack_check(t, map, s->code, false) : STACK_FOREIGN;
	if (verdict == STACK_SAFE)
		return true;
	if (verdict == STACK_IN_ALLOCATOR)
		return is_clear_by_frames(s, t);
	tracee_let_go(t);
	return false;
}

static int find_blocked(struct safe_point_search *s, const struct process *map, const struct threads *threads,
                        struct tracee *ret, bool *ret_found, struct error *err)
{
	for (size_t i = 0; i < threads->n && !*ret_found; i++) {
		bool gone;
		if (!threads->items[i].waits)
			continue;
		int failed = seize(s, threads->items[i].id, ret, &gone, err);
		if (failed)
			return failed;
		*ret_found = !gone && try_blocked(s, map, ret);
	}
	return 0;
}

/* --- at an entry of the allocator --- */

struct watch {
	struct tracee tracee;
	bool planted;
};

struct watches {
	struct watch *items;
	size_t n;
	uint64_t entries[BREAKPOINTS];
	size_t n_entries;
};

static bool poke(const struct tracee *t, size_t number, uint64_t value)
{
	return tracee_request(t, PTRACE_POKEUSER, offsetof(struct user, u_debugreg[0]) + number * sizeof value,
	                      value) == 0;
}

static bool plant(struct watch *w, const struct watches *all)
{
	uint64_t control = 0;
	for (size_t i = 0; i < all->n_entries; i++) {
		if (!poke(&w->tracee, i, all->entries[i]))
			return false;
		control |= 1ull << (2 * i);     /* on, for this thread; its kind, 0, is execution */
	}
	return w->planted = poke(&w->tracee, 7, control);
}

static void clear(struct watch *w)
{
	if (w->planted && !w->tracee.gone)
		poke(&w->tracee, 7, 0);
	w->planted = false;
}

static bool is_at_entry(const struct watches *all, const struct tracee *t)
{
	for (size_t i = 0; i < all->n_entries; i++)
		if (t->regs.rip == all->entries[i])
			return true;
	return false;
}

static bool is_breakpoint(const struct watches *all, struct watch *w, int signal)
{
	siginfo_t info;
	return signal == SIGTRAP && tracee_request(&w->tracee, PTRACE_GETSIGINFO, 0, (uintptr_t)&info) == 0 &&
	       info.si_code == TRAP_HWBKPT && tracee_read_registers(&w->tracee) && is_at_entry(all, &w->tracee);
}

/* It may stop for our asking just when it has hit a breakpoint: the signal of that is still in its queue. */
static bool has_hit(const struct watch *w)
{
	siginfo_t queued[32];
	struct __ptrace_peeksiginfo_args from_start = { 0, 0, 32 };
	long n = tracee_request(&w->tracee, PTRACE_PEEKSIGINFO, (uintptr_t)&from_start, (uintptr_t)queued);
	for (long i = 0; i < n; i++)
		if (queued[i].si_signo == SIGTRAP && queued[i].si_code == TRAP_HWBKPT)
			return true;
	return false;
}

/*
 * Stops it, whatever it takes, clears its debug registers and lets it go: a breakpoint that stayed would end its
 * process. It may take the time of a disk, when it waits for one.
 */
static void unwatch(const struct watches *all, struct watch *w)
{
	struct tracee *t = &w->tracee;
	if (!t->seized || t->gone)
		return;
	tracee_interrupt(t);
	for (bool standing = false; !standing;) {
		int signal = 0;
		enum tracee_event e = tracee_wait(t, now_ms() + 1000, &signal);
		if (e == TRACEE_GONE)
			return;
		if (e == TRACEE_NOTHING)
			continue;
		clear(w);
		standing = e == TRACEE_SIGNAL || !has_hit(w);
		if (!standing)
			tracee_continue(t, 0);
		else if (e == TRACEE_SIGNAL && !is_breakpoint(all, w, signal))
			t->signal = signal;
	}
	if (tracee_read_registers(t))
		tracee_let_go(t);
}

/* Some would have to be stopped in a call that they couldn't go on with: they go without. */
static bool may_be_watched(const struct thread *t)
{
	return t->state == 'R' || (t->state == 'S' && t->waits);
}

/* Up to most of them, without the first few. */
static int watch_some(struct safe_point_search *s, const struct threads *threads, size_t without, size_t most,
                      struct watches *all, struct error *err)
{
	for (size_t i = 0; i < threads->n && all->n < most; i++) {
		/* From the back: running threads, the likelier ones, come last in the list. */
		const struct thread *thread = &threads->items[threads->n - 1 - i];
		struct watch *w = &all->items[all->n];
		bool gone;
		*w = (struct watch){ 0 };
		if (!may_be_watched(thread))
			continue;
		if (without) {
			without--;
			continue;
		}
		int failed = seize(s, thread->id, &w->tracee, &gone, err);
		if (failed)
			return failed;
		if (gone || !tracee_stop(&w->tracee, STOP_MS))
			continue;
		all->n++;
		if (!plant(w, all)) {
			int reason = errno;
			unwatch(all, w);
			return error_set(err, E_UNSUPPORTED,
			                 "this machine lends no debug registers (%s), and no thread of process %d "
			                 "waits where it can be called from",
			                 strerror(reason), (int)s->process->pid);
		}
		tracee_go_on(&w->tracee);
	}
	return 0;
}

static bool is_clear_at_entry(struct safe_point_search *s, const struct process *map, const struct tracee *t)
{
	enum stack_verdict verdict = stack_check(t, map, s->code, true);
	return verdict == STACK_SAFE || (verdict == STACK_IN_ALLOCATOR && *s->unwinder &&
	                                 unwinder_is_clear(*s->unwinder, t, s->code, true));
}

/* What one of the watched threads has to say. True: it stands at a safe point. */
static bool hear(struct safe_point_search *s, const struct process *map, const struct watches *all, struct watch *w)
{
	struct tracee *t = &w->tracee;
	int signal = 0;
	if (t->gone)
		return false;
	switch (tracee_wait(t, 0, &signal)) {
	case TRACEE_SIGNAL:
		if (!is_breakpoint(all, w, signal)) {
			tracee_continue(t, signal);
			return false;
		}
		t->stopped_at_ms = now_ms();
		if (is_clear_at_entry(s, map, t))
			return true;
		s->ret_tried++;
		tracee_continue(t, 0);  /* the kernel has set the flag that passes the breakpoint once */
		return false;
	case TRACEE_GROUP_STOP:
		tracee_request(t, PTRACE_LISTEN, 0, 0);
		return false;
	case TRACEE_INTERRUPTED:
	case TRACEE_SYSTEM_CALL:
		tracee_continue(t, 0);
		return false;
	case TRACEE_GONE:
	case TRACEE_NOTHING:
		break;
	}
	return false;
}

static struct watch *wait_for_hit(struct safe_point_search *s, const struct process *map, const struct watches *all,
                                  double deadline)
{
	const struct timespec moment = { 0, 50000 };
	for (unsigned round = 0; now_ms() < deadline; round++) {
		for (size_t i = 0; i < all->n; i++)
			if (hear(s, map, all, &all->items[i]))
				return &all->items[i];
		if (round < 100)
			sched_yield();
		else
			nanosleep(&moment, NULL);
	}
	return NULL;
}

/* Watches one thread, or all, until the deadline; the rest are let go before the one that was found does anything. */
static int watch(struct safe_point_search *s, const struct process *map, const struct threads *threads, size_t without,
                 size_t most, struct watches *all, double deadline, struct tracee *ret, bool *ret_found,
                 struct error *err)
{
	all->n = 0;
	int failed = watch_some(s, threads, without, most, all, err);
	struct watch *hit = failed ? NULL : wait_for_hit(s, map, all, deadline);
	if (hit) {
		clear(hit);
		*ret = hit->tracee;
		*ret_found = true;
	}
	for (size_t i = 0; i < all->n; i++)
		if (&all->items[i] != hit)
			unwatch(all, &all->items[i]);
	return failed;
}

/*
 * The busiest threads first, one by one, since a thread that is found stands while others are let go; then all at once.
 */
static int find_at_breakpoint(struct safe_point_search *s, const struct process *map, const struct threads *threads,
                              double deadline, size_t first_entry, struct tracee *ret, bool *ret_found,
                              struct error *err)
{
	const struct process_jemalloc *j = s->jemalloc;
	struct watches all = { 0 };
	int failed = 0;
	for (size_t i = first_entry; i < j->n_entries && all.n_entries < BREAKPOINTS; i++)
		all.entries[all.n_entries++] = j->entries[i];
	all.items = calloc(WATCHED_MAX, sizeof *all.items);
	if (!all.items)
		return error_nomem(err, "the threads of the process");
	unwinder_of(s);         /* before anything stands */
	for (size_t i = 0; i < ALONE && i < threads->n && !failed && !*ret_found && now_ms() < deadline; i++)
		failed = watch(s, map, threads, i, 1, &all, now_ms() + ALONE_MS, ret, ret_found, err);
	if (!failed && !*ret_found)
		failed = watch(s, map, threads, 0, WATCHED_MAX, &all, deadline, ret, ret_found, err);
	free(all.items);
	return failed;
}

/* --- both --- */

static int none_came(const struct safe_point_search *s, struct error *err)
{
	return error_set(err, E_UNSUPPORTED,
	                 "process %d: no thread came to a place where it can safely be called from within %.1f s (%u "
	                 "were looked at): none waits in a system call outside the allocator, and none allocates; "
	                 "try again, or start it with heapgauge run to get an endpoint",
	                 (int)s->process->pid, s->wait_ms / 1e3, s->ret_tried);
}

static int take_turns(struct safe_point_search *s, struct threads *threads, struct tracee *ret, bool *ret_found,
                      struct error *err)
{
	const struct timespec pause = { 0, PAUSE_NS };
	double deadline = now_ms() + s->wait_ms, turn = TURN_MS;
	size_t first_entry = 0;
	unsigned round = 0;
	int failed;
	do {
		struct process map;
		failed = process_open_map(&map, s->process->pid, err);
		if (!failed)
			failed = threads_list(threads, s->process->pid, err);
		if (!failed && !s->breakpoint_only) {
			s->ret_at_breakpoint = false;
			failed = find_blocked(s, &map, threads, ret, ret_found, err);
		}
		if (!failed && !*ret_found && !s->blocked_only &&
		    (s->breakpoint_only || ++round % ROUNDS_PER_TURN == 0)) {
			double until = now_ms() + turn < deadline ? now_ms() + turn : deadline;
			s->ret_at_breakpoint = true;
			failed = find_at_breakpoint(s, &map, threads, until, first_entry, ret, ret_found, err);
			first_entry = first_entry || s->jemalloc->n_entries <= BREAKPOINTS ? 0 : BREAKPOINTS;
			turn = 2 * turn < TURN_MAX_MS ? 2 * turn : TURN_MAX_MS;
		}
		if (!failed && !*ret_found)
			nanosleep(&pause, NULL);
		process_close(&map);
	} while (!failed && !*ret_found && now_ms() < deadline);
	return failed;
}

int safe_point_find(struct safe_point_search *s, struct tracee *ret, struct error *err)
{
	struct threads threads = { 0 };
	bool found = false;
	s->ret_tried = 0;
	int failed = take_turns(s, &threads, ret, &found, err);
	threads_finish(&threads);
	return failed || found ? failed : none_came(s, err);
}
