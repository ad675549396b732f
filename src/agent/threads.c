#include "agent/threads.h"

#include <signal.h>

#define STACK_BYTES ((size_t)512 << 10)     /* of which little is ever touched */

bool thread_start(pthread_t *ret_thread, void *(*run)(void *context), void *context)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool started = pthread_create(ret_thread, &attributes, run, context) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return started;
}
