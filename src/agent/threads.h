/* Threads inside somebody else's program: small, and deaf to its signals. */
#ifndef AGENT_THREADS_H
#define AGENT_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* With all signals blocked from its first instruction on; false when there are no means for one more: errno. */
bool thread_start(pthread_t *ret_thread, void *(*run)(void *context), void *context);

#endif
