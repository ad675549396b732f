/*
 * libheapgauge_preload.so: the library with a beginning of its own, for programs that don't call it. "heapgauge run" puts it under a
 * program and says in HEAPGAUGE_AGENT what it shall do; without that variable it does nothing. Whatever goes wrong, the program runs on.
 */
#include <heapgauge.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/jemalloc.h"
#include "agent/memory.h"

static void say(const char *text)
{
	char line[700];
	int n = snprintf(line, sizeof line, "heapgauge: no endpoint in process %ld: %s\n", (long)getpid(), text);
	ssize_t ignored = write(STDERR_FILENO, line, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1);
	(void)ignored;
}

/*
 * Programs that this one starts inherit all of it, and can't have the same port: that is no news. So the first one leaves word for them. (A
 * program that takes this one's place by exec has its number, and its port.)
 */
#define STARTED "HEAPGAUGE_AGENT_PROCESS"

static void leave_word(void)
{
	char number[24];
	snprintf(number, sizeof number, "%ld", (long)getpid());
	setenv(STARTED, number, 1);
}

static bool is_below_another(void)
{
	char number[24];
	const char *started = getenv(STARTED);
	snprintf(number, sizeof number, "%ld", (long)getpid());
	return started && strcmp(started, number) != 0;
}

__attribute__((constructor)) static void start(void)
{
	static char storage[8192];
	char sentence[512] = "";
	struct hg_agent_options o;
	struct error err;
	hg_agent *agent;
	const char *text = secure_getenv("HEAPGAUGE_AGENT");
	if (!text || !*text)
		return;
	if (agent_options_parse(text, &o, storage, sizeof storage, &err)) {
		say(err.text);
		return;
	}
	/* A process without jemalloc, such as a shell that starts the program, has nothing to show. */
	if (jemalloc_find(NULL))
		return;
	o.error = sentence;
	o.error_size = sizeof sentence;
	if (hg_agent_start(&o, &agent) == HG_OK)
		leave_word();
	else if (!is_below_another())
		say(sentence);
}
