/*
 * hold trace PID         traces a process until standard input ends
 * hold forbid CMD …      runs a command that may not use ptrace
 * hold hidden            may not be looked into by its own user, until standard input ends
 * hold zombie            has a child that has ended, says its number, until standard input ends
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for_end(void)
{
	char c;
	fflush(stdout);
	while (read(STDIN_FILENO, &c, 1) > 0) {
	}
}

static int forbid(char **command)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 3;
	execvp(command[0], command);
	return 127;
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "forbid") == 0)
		return forbid(argv + 2);
	if (argc > 2 && strcmp(argv[1], "trace") == 0) {
		if (ptrace(PTRACE_SEIZE, (pid_t)strtol(argv[2], NULL, 10), NULL, NULL))
			return 3;
		printf("ready\n");
		wait_for_end();
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "hidden") == 0) {
		prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
		printf("ready\n");
		wait_for_end();
		return 0;
	}
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	sleep(1);
	printf("ready %d\n", (int)child);
	wait_for_end();
	return 0;
}
