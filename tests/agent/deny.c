/* deny CALL[,CALL] PROGRAM [ARGUMENT...]: the program runs with these system calls refused (EPERM): memfd_create, clone. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int n, char **words)
{
	struct sock_filter program[16];
	unsigned short at = 0;
	const struct { const char *name; unsigned number; } calls[] = {
		{ "memfd_create", SYS_memfd_create }, { "clone", SYS_clone }, { "clone", SYS_clone3 },
	};
	if (n < 3)
		return 2;
	program[at++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		if (!strstr(words[1], calls[i].name))
			continue;
		program[at++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
		program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	program[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { .len = at, .filter = program };
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
		fprintf(stderr, "deny: %s\n", strerror(errno));
		return 125;
	}
	execv(words[2], words + 2);
	return 126;
}
