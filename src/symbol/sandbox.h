/*
 * What a process that reads foreign ELF and DWARF gives up before it begins: from then on it can compute, read the descriptors
 * it has, ask for more over one socket, and nothing else. A bug in a reader is then a failed answer and not a way into the
 * machine.
 *
 * Parts that the kernel does not have are left out, and the result says which; nothing here fails. All of it is for good, and
 * for the calling thread and those it starts: call it before there are others. Allocates nothing.
 */
#ifndef SYMBOL_SANDBOX_H
#define SYMBOL_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#define SANDBOX_MEMORY ((uint64_t)4 << 30)         /* bytes: the default */
#define SANDBOX_FILES_BYTES ((uint64_t)64 << 30)   /* addresses for files that are mapped */
#define SANDBOX_DESCRIPTORS 4096

struct sandbox_bounds {
	uint64_t memory_bytes;  /* of its own (RLIMIT_DATA), besides what it has when it enters; files it maps do not count */
	uint64_t cpu_seconds;   /* of all threads */
	uint64_t output_bytes;  /* it may write to a file */
};

/* Which parts are in force. */
struct sandbox {
	bool limits;            /* memory, addresses, processor time, output, descriptors, no core file */
	bool no_privileges;     /* no set-user-id program gives any back; no other process of the user may look inside */
	int landlock;           /* the kernel's ABI; 0: no Landlock */
	bool filter;            /* seccomp */
};

/* All of them. */
void sandbox_enter(const struct sandbox_bounds *b, int socket, struct sandbox *ret);

/* What this kernel gives, tried in a process of its own. False when that can't be had. */
bool sandbox_probe(struct sandbox *ret);

/*
 * The parts by themselves, so that a test can tell which one refuses what.
 *
 * Landlock: no file or folder may be opened, made, changed, removed, executed; no TCP (ABI 4), no ioctl of devices (5), no signals
 * to others and no abstract sockets (6). Answers the ABI.
 *
 * The filter answers EPERM to every call that memory, threads, and reading what is open do not need, and to the forms of those
 * it knows that do (fork, signals to others, executable or shared memory, messages elsewhere than through socket); the process is
 * killed (SIGSYS) for execve, ptrace, sockets, other processes' memory, and what changes the system.
 */
bool sandbox_limits(const struct sandbox_bounds *b);
bool sandbox_no_privileges(void);
int sandbox_landlock(void);
bool sandbox_filter(int socket);

#endif
