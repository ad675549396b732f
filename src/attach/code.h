/*
 * What must be known of a process's code before a thread of it is made to call something: where a thread must not be
 * (the allocator, the loader, fork), and a few instructions that lie about in it and serve a call.
 */
#ifndef ATTACH_CODE_H
#define ATTACH_CODE_H

#include "attach/process.h"

struct code_range {
	uint64_t start, end;
};

#define CODE_RESTORERS 16

/* Where the thread's errno is: at fs_base + offset, and the offset may lie in memory. */
enum code_errno { ERRNO_UNKNOWN, ERRNO_AT_OFFSET, ERRNO_OFFSET_IN_MEMORY };

struct code {
	struct code_range *unsafe;          /* in order, apart */
	size_t n_unsafe, unsafe_capacity;
	uint64_t exchange;                  /* xchg %eax, another; ret */
	unsigned exchanged;                 /* the other's number: 2 edx, 3 ebx, 5 ebp, 6 esi, 7 edi */
	uint64_t system_call;               /* syscall; ret */
	uint64_t pop;                       /* pop %rax; ret */
	uint64_t restorers
		[CODE_RESTORERS]; /* mov $15, %eax; syscall: where signal handlers return to, to ask for rt_sigreturn */
	size_t n_restorers;
	enum code_errno errno_is;
	uint64_t errno_offset;
};

/* E_UNSUPPORTED when the instructions aren't there. c is safe to finish in any case. */
int code_find(struct code *c, const struct process *p, struct error *err);
void code_finish(struct code *c);

bool code_is_unsafe(const struct code *c, uint64_t address);
bool code_is_restorer(const struct code *c, uint64_t address);

/* Do the n bytes before a return address end in a call? n: at most 7. */
bool code_ends_in_call(const uint8_t *bytes, size_t n);

#endif
