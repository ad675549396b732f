/*
 * grow STAY GROW [end]: leaves STAY blocks of 1000 bytes from stay_here and GROW of 3000 from grow_here in
 * use (usable sizes 1024 and 3072), then ends: "exit" (default), "churn" (the same, after 300 MiB that were freed
 * at once), "status:N", "_exit", "signal:N", or "wait" until a signal comes ("wait-term": SIGTERM makes it exit with 3).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile last;

__attribute__((noinline)) static void stay_here(void)
{
	last = malloc(1000);
}

__attribute__((noinline)) static void grow_here(void)
{
	last = malloc(3000);
}

static unsigned number(const char *text)
{
	unsigned n = 0;
	return text && sscanf(text, "%9u", &n) == 1 ? n : 0;
}

static volatile sig_atomic_t told;

static void on_term(int signal_number)
{
	told = signal_number;
}

static int wait_for_signal(int with_handler)
{
	sigset_t term, before;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &before);
	if (with_handler)
		signal(SIGTERM, on_term);
	puts("ready");
	fflush(stdout);
	while (!told)
		sigsuspend(&before);
	return 3;
}

static int end(const char *how)
{
	if (strncmp(how, "status:", 7) == 0)
		return (int)number(how + 7);
	if (strcmp(how, "churn") == 0)
		for (int i = 0; i < 300; i++) {
			last = malloc(1 << 20);
			free(last);
		}
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	if (strncmp(how, "signal:", 7) == 0)
		raise((int)number(how + 7));
	if (strncmp(how, "wait", 4) == 0)
		return wait_for_signal(strcmp(how, "wait-term") == 0);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned stay = number(argc > 1 ? argv[1] : NULL), grow = number(argc > 2 ? argv[2] : NULL);
	for (unsigned i = 0; i < stay; i++)
		stay_here();
	for (unsigned i = 0; i < grow; i++)
		grow_here();
	return end(argc > 3 ? argv[3] : "exit");
}
