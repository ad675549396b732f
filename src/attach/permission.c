/* The kernel only says EPERM; who asks /proc finds out which of its rules it was. */
#include "attach/permission.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/process.h"

#define CAP_SYS_PTRACE_BIT 19

static void name_of(pid_t process, char *to, size_t room)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/comm", (int)process);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, to, room - 1) : 0;
	if (fd >= 0)
		close(fd);
	to[n > 0 ? n : 0] = '\0';
	to[strcspn(to, "\n")] = '\0';
}

/* Yama's setting; -1 where the kernel has no Yama. */
static int yama_scope(void)
{
	char digit = 0;
	int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, &digit, 1) : 0;
	if (fd >= 0)
		close(fd);
	return n == 1 && digit >= '0' && digit <= '3' ? digit - '0' : -1;
}

static int refused_by_yama(pid_t process, int scope, struct error *err)
{
	if (scope == 3)
		return error_set(err, E_IO,
		                 "process %d may not be traced: kernel.yama.ptrace_scope is 3, nobody may until the "
		                 "machine is started with another setting",
		                 (int)process);
	if (scope == 2)
		return error_set(err, E_IO,
		                 "process %d may not be traced: kernel.yama.ptrace_scope is 2, only those with "
		                 "CAP_SYS_PTRACE may: run heapgauge as root",
		                 (int)process);
	return error_set(err, E_IO,
	                 "process %d may not be traced: kernel.yama.ptrace_scope is 1, only a process's parents may: "
	                 "run heapgauge as root, or sysctl kernel.yama.ptrace_scope=0",
	                 (int)process);
}

int permission_refused(pid_t process, int reason, struct error *err)
{
	uint64_t uid = 0, tracer = 0, ours = 0;
	char name[32];
	if (reason == ESRCH)
		return error_set(err, E_IO, "process %d has ended", (int)process);
	if (process_status_number(process, process, "TracerPid", 10, &tracer) && tracer) {
		name_of((pid_t)tracer, name, sizeof name);
		return error_set(err, E_IO,
		                 "process %d is traced by process %llu (%s) already, and there can only be one: end "
		                 "that one first",
		                 (int)process, (unsigned long long)tracer, name);
	}
	if (reason != EPERM && reason != EACCES)
		return error_set(err, E_IO, "process %d cannot be traced: %s", (int)process, strerror(reason));
	process_status_number(getpid(), getpid(), "CapEff", 16, &ours);
	bool capable = ours >> CAP_SYS_PTRACE_BIT & 1;
	int scope = yama_scope();
	if (scope == 3 || (scope > 0 && !capable))
		return refused_by_yama(process, scope, err);
	if (process_status_number(process, process, "Uid", 10, &uid) && uid != geteuid() && !capable)
		return error_set(err, E_IO,
		                 "process %d belongs to user %llu and may not be traced by user %ld: run heapgauge "
		                 "as that user, as root, or with CAP_SYS_PTRACE",
		                 (int)process, (unsigned long long)uid, (long)geteuid());
	if (!capable)
		return error_set(err, E_IO,
		                 "process %d may not be traced: it has more rights than heapgauge (a setuid program, "
		                 "capabilities), or has forbidden it (PR_SET_DUMPABLE): run heapgauge as root, or in "
		                 "a container with --cap-add SYS_PTRACE",
		                 (int)process);
	return error_set(err, E_IO,
	                 "process %d may not be traced, though heapgauge has CAP_SYS_PTRACE: a sandbox of this "
	                 "machine (seccomp, SELinux, AppArmor) forbids it, or the process is in another user "
	                 "namespace",
	                 (int)process);
}

/* Is there a word in the line that begins so? For "x86_Thread_features:\tshstk". */
static bool status_has_word(pid_t process, const char *key, const char *word)
{
	char path[64], text[4096];
	snprintf(path, sizeof path, "/proc/%d/status", (int)process);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = '\0';
	char *line = strstr(text, key);
	if (!line)
		return false;
	line[strcspn(line, "\n")] = '\0';
	return strstr(line, word) != NULL;
}

int permission_check(pid_t process, struct error *err)
{
	uint64_t tracer = 0;
	if (process_status_number(process, process, "TracerPid", 10, &tracer) && tracer)
		return permission_refused(process, EPERM, err);
	if (status_has_word(process, "State:", "(stopped)"))
		return error_set(err, E_UNSUPPORTED,
		                 "process %d is stopped (SIGSTOP or ctrl-Z): let it go on first (kill -CONT %d)",
		                 (int)process, (int)process);
	if (status_has_word(process, "x86_Thread_features:", "shstk"))
		return error_set(err, E_UNSUPPORTED,
		                 "process %d has a shadow stack: calls into it are not supported; start it with "
		                 "heapgauge run instead",
		                 (int)process);
	return 0;
}
