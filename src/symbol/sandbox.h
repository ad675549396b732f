/*
 * What a process that reads foreign ELF and DWARF gives up before it begins: from then on it can read files, compute, and
 * write to the descriptors it already has. A bug in a reader is then a failed answer and not a way into the machine.
 *
 * Parts that the kernel does not have are left out, and the result says which; nothing here fails. All of it is for good, and
 * for the calling thread and those it starts: call it before there are others.
 */
#ifndef SYMBOL_SANDBOX_H
#define SYMBOL_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#define SANDBOX_ADDRESS_SPACE ((uint64_t)4 << 30)   /* bytes: the default */
#define SANDBOX_CPU_SECONDS 60
#define SANDBOX_DESCRIPTORS 4096

/* Which parts are in force. */
struct sandbox {
	bool limits;            /* address space, processor time, descriptors, no core file */
	bool no_privileges;     /* no set-user-id program gives any back; no other process of the user may look inside */
	int landlock;           /* the kernel's ABI; 0: no Landlock */
	bool filter;            /* seccomp */
};

/* All of them. address_space_bytes 0: SANDBOX_ADDRESS_SPACE. Limits that are lower already stay. */
void sandbox_enter(uint64_t address_space_bytes, struct sandbox *ret);

/*
 * The parts by themselves, so that a test can tell which one refuses what.
 *
 * Landlock: files and folders below "/" may be read, except those in /proc, /sys and /dev; nothing may be written, made, removed,
 * executed; no TCP (ABI 4), no ioctl of devices (5), no signals to others and no abstract sockets (6). Answers the ABI.
 *
 * The filter answers EPERM to every call that reading files, memory, threads and an orderly end do not need, and to the
 * forms of those it knows that do (openat for writing, fork, signals to others, executable memory); the process is killed
 * (SIGSYS) for execve, ptrace, sockets, other processes' memory, and what changes the system.
 */
bool sandbox_limits(uint64_t address_space_bytes);
bool sandbox_no_privileges(void);
int sandbox_landlock(void);
bool sandbox_filter(void);

#endif
