/*
 * Three walls, each of which would nearly do. Landlock knows paths and no calls, seccomp knows calls and no paths, the limits
 * know neither and stop what computes or grows forever. The numbers of Landlock are written out here, since the headers
 * of Debian 12 know only its first years; the kernel is asked for its ABI and all rights that it knows are given up.
 *
 * The filter is a list: load the call's number, compare, answer. Calls that are allowed in some forms only are followed
 * by a test of the argument that makes the difference. Nothing here allocates: it runs behind a fork.
 */
#include "symbol/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

/* --- limits --- */

/* soft and hard, where they are not lower already. */
static bool lower(int resource, rlim_t soft, rlim_t hard)
{
	struct rlimit now;
	if (getrlimit(resource, &now) < 0)
		return false;
	now.rlim_max = hard < now.rlim_max ? hard : now.rlim_max;
	now.rlim_cur = soft < now.rlim_cur ? soft : now.rlim_cur;
	/* Every unit's file may be open at once: here the soft limit may rise. */
	if (resource == RLIMIT_NOFILE || now.rlim_cur > now.rlim_max)
		now.rlim_cur = now.rlim_max;
	return setrlimit(resource, &now) == 0;
}

/* Bytes of a line of /proc/self/statm: all that is mapped (field 0), or what is private and writable (field 5). */
static bool mapped_bytes(const char *line, int field, uint64_t *ret)
{
	for (; field > 0; field--) {
		line += strcspn(line, " \n");
		line += *line == ' ';
	}
	uint64_t pages;
	if (!text_parse_u64(line, strcspn(line, " \n"), 10, &pages))
		return false;
	*ret = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return true;
}

/* What the process has already, from the one that it was forked from, comes on top. */
static bool limit_memory(uint64_t bytes)
{
	char line[256];
	uint64_t all, written;
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : -1;
	if (fd >= 0)
		close(fd);
	line[n > 0 ? n : 0] = '\0';
	return mapped_bytes(line, 0, &all) && mapped_bytes(line, 5, &written) &&
	       lower(RLIMIT_DATA, written + bytes, written + bytes) &&
	       lower(RLIMIT_AS, all + bytes + SANDBOX_FILES_BYTES, all + bytes + SANDBOX_FILES_BYTES);
}

bool sandbox_limits(const struct sandbox_bounds *b)
{
	/* At the soft one it is told (SIGXCPU), which says why; the hard one kills. */
	bool done = lower(RLIMIT_CPU, b->cpu_seconds, b->cpu_seconds + 5) && lower(RLIMIT_FSIZE, b->output_bytes, b->output_bytes) &&
	            lower(RLIMIT_NOFILE, SANDBOX_DESCRIPTORS, SANDBOX_DESCRIPTORS) && lower(RLIMIT_CORE, 0, 0);
#ifdef SANITIZED
	/* A sanitizer's shadow alone is terabytes. */
	(void)limit_memory;
	return done;
#else
	return limit_memory(b->memory_bytes) && done;
#endif
}

bool sandbox_no_privileges(void)
{
	bool done = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 && done;
}

/* --- Landlock --- */

#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

#define LANDLOCK_VERSION 1              /* flag of landlock_create_ruleset */
/* struct landlock_ruleset_attr as of ABI 6; older kernels are given a shorter one. */
struct ruleset {
	uint64_t files, network, scopes;
};

/* Every right that an ABI knows about: all of them are taken. */
static uint64_t all_file_rights(int abi)
{
	static const int n_rights[] = { 0, 13, 14, 15, 15, 16 };
	int last = (int)(sizeof n_rights / sizeof *n_rights) - 1;
	return ((uint64_t)1 << n_rights[abi < last ? abi : last]) - 1;
}

int sandbox_landlock(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, (size_t)0, LANDLOCK_VERSION);
	if (abi < 1)
		return 0;
	struct ruleset attributes = { all_file_rights((int)abi), abi >= 4 ? 3 : 0, abi >= 6 ? 3 : 0 };
	size_t size = abi >= 6 ? sizeof attributes : abi >= 4 ? offsetof(struct ruleset, scopes)
	                                                      : offsetof(struct ruleset, network);
	int ruleset = (int)syscall(SYS_landlock_create_ruleset, &attributes, size, 0);
	if (ruleset < 0)
		return 0;
	/* Without a single rule: no file at all. */
	bool done = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
	close(ruleset);
	return done ? (int)abi : 0;
}

/* --- seccomp --- */

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#endif

#ifdef ARCHITECTURE

#define KILL SECCOMP_RET_KILL_PROCESS
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

static const int allowed[] = {
	/* descriptors that are there */
	SYS_read, SYS_pread64, SYS_write, SYS_close, SYS_lseek, SYS_fstat,
	/* memory; mmap and mprotect are below */
	SYS_brk, SYS_munmap, SYS_mremap, SYS_madvise,
	/* threads; clone is below */
	SYS_futex, SYS_set_robust_list, SYS_rseq, SYS_sched_yield, SYS_sched_getaffinity, SYS_membarrier, SYS_gettid, SYS_getpid,
	SYS_exit,
	/* signals that come */
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack, SYS_restart_syscall,
	/* time, chance, and who one is */
	SYS_clock_gettime, SYS_clock_getres, SYS_clock_nanosleep, SYS_nanosleep, SYS_gettimeofday, SYS_getrandom, SYS_uname,
	SYS_sysinfo, SYS_getrusage, SYS_getuid, SYS_geteuid, SYS_getgid, SYS_getegid, SYS_getppid,
	SYS_exit_group,
};

/* Nothing we link with ever calls these: who does is no longer our program. */
static const int deadly[] = {
	SYS_execve, SYS_execveat, SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_socket, SYS_socketpair, SYS_connect,
	SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_sendto, SYS_recvfrom, SYS_bpf,
	SYS_perf_event_open, SYS_userfaultfd, SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns,
	SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot, SYS_keyctl, SYS_add_key, SYS_request_key,
	SYS_open_by_handle_at, 425 /* io_uring_setup */, 438 /* pidfd_getfd */, 424 /* pidfd_send_signal */,
};

#define YOUNGEST 450            /* of the calls of Linux 6.1 */
#define FILTER_MAX 512

struct program {
	struct sock_filter code[FILTER_MAX];
	unsigned short n;
};

static void add(struct program *p, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false)
{
	if (p->n < FILTER_MAX)
		p->code[p->n++] = (struct sock_filter){ code, if_true, if_false, k };
}

static void load(struct program *p, size_t offset)
{
	add(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(struct program *p, uint32_t what)
{
	add(p, BPF_RET | BPF_K, what, 0, 0);
}

static void answer_call(struct program *p, int call, uint32_t what)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 1);
	answer(p, what);
}

/* The half of an argument that flags and small numbers are in; both architectures are little-endian. */
static size_t argument_offset(unsigned argument)
{
	return offsetof(struct seccomp_data, args) + argument * sizeof(uint64_t);
}

/* The call is allowed when argument & mask is wanted; the call's number is in the accumulator before. */
static void allow_when(struct program *p, int call, unsigned argument, uint32_t mask, uint32_t wanted)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 5);
	load(p, argument_offset(argument));
	add(p, BPF_ALU | BPF_AND | BPF_K, mask, 0, 0);
	add(p, BPF_JMP | BPF_JEQ | BPF_K, wanted, 0, 1);
	answer(p, SECCOMP_RET_ALLOW);
	answer(p, REFUSE);
}

/* Private, or memory could be had that RLIMIT_DATA doesn't count; and never code. */
static void allow_memory(struct program *p)
{
	add(p, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)SYS_mmap, 0, 8);
	load(p, argument_offset(2));
	add(p, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1);
	answer(p, REFUSE);
	load(p, argument_offset(3));
	add(p, BPF_ALU | BPF_AND | BPF_K, MAP_TYPE, 0, 0);
	add(p, BPF_JMP | BPF_JEQ | BPF_K, MAP_PRIVATE, 0, 1);
	answer(p, SECCOMP_RET_ALLOW);
	answer(p, REFUSE);
}

static void build(struct program *p, int socket)
{
	load(p, offsetof(struct seccomp_data, arch));
	add(p, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
	answer(p, KILL);
	load(p, offsetof(struct seccomp_data, nr));
#ifdef __x86_64__
	/* The numbers of x32. */
	add(p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
	answer(p, KILL);
#endif
	/* What a C library of the future tries first: it knows what to do without. */
	add(p, BPF_JMP | BPF_JGT | BPF_K, YOUNGEST, 0, 1);
	answer(p, SECCOMP_RET_ERRNO | ENOSYS);
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
		answer_call(p, allowed[i], SECCOMP_RET_ALLOW);
	for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++)
		answer_call(p, deadly[i], KILL);
	allow_when(p, SYS_recvmsg, 0, UINT32_MAX, (uint32_t)socket);
	allow_when(p, SYS_sendmsg, 0, UINT32_MAX, (uint32_t)socket);
	/* fstat(), as the C library says it. With a path it would tell sizes and dates of files, which no filter can see. */
	allow_when(p, SYS_newfstatat, 3, UINT32_MAX, AT_EMPTY_PATH);
	allow_memory(p);
	allow_when(p, SYS_mprotect, 2, PROT_EXEC, 0);
	allow_when(p, SYS_clone, 0, CLONE_THREAD, CLONE_THREAD);
	/* Its flags lie in memory, where no filter can see them; the C library then takes clone. */
	answer_call(p, 435 /* clone3 */, SECCOMP_RET_ERRNO | ENOSYS);
	/* To itself: raise() and abort(). */
	allow_when(p, SYS_tgkill, 0, UINT32_MAX, (uint32_t)getpid());
	/* Only of itself, and limits can't be raised. */
	allow_when(p, SYS_prlimit64, 0, UINT32_MAX, 0);
	answer(p, REFUSE);
}

bool sandbox_filter(int socket)
{
	struct program p = { .n = 0 };
	build(&p, socket);
	struct sock_fprog whole = { p.n, p.code };
	return p.n < FILTER_MAX && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole, 0, 0) == 0;
}

#else

bool sandbox_filter(int socket)
{
	(void)socket;
	return false;
}

#endif

/* --- all --- */

void sandbox_enter(const struct sandbox_bounds *b, int socket, struct sandbox *ret)
{
	struct sandbox got = { 0 };
	got.limits = sandbox_limits(b);
	got.no_privileges = sandbox_no_privileges();
	got.landlock = sandbox_landlock();
	got.filter = sandbox_filter(socket);
	*ret = got;
}

bool sandbox_probe(struct sandbox *ret)
{
	static const struct sandbox_bounds bounds = { SANDBOX_MEMORY, 5, 4096 };
	int ends[2], status;
	struct sandbox got;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return false;
	pid_t pid = fork();
	if (pid == 0) {
		sandbox_enter(&bounds, -1, &got);
		_exit(write(ends[1], &got, sizeof got) == (ssize_t)sizeof got ? 0 : 1);
	}
	close(ends[1]);
	bool done = pid > 0 && read(ends[0], &got, sizeof got) == (ssize_t)sizeof got;
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (done)
		*ret = got;
	return done;
}
