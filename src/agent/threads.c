#include "agent/threads.h"

#include <signal.h>

#include "agent/jemalloc.h"

#define STACK_BYTES ((size_t)512 << 10)     /* of which little is ever touched */

bool thread_start(pthread_t *ret_thread, void *(*run)(void *context), void *context)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	const struct jemalloc *j;
	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* The C library takes some hundred bytes for a thread: the only ones of ours in the host's heap, and not to be in its profile. */
	bool profiled = jemalloc_ready(&j) == HG_OK, active = profiled && jemalloc_set_thread_active(j, false);
	bool started = pthread_create(ret_thread, &attributes, run, context) == 0;
	if (active)
		jemalloc_set_thread_active(j, true);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}
