#include "agent/threads.h"

#include <signal.h>

#include "agent/jemalloc.h"
#include "agent/memory.h"
#include "agent/objects.h"

#define STACK_BYTES ((size_t)512 << 10)     /* of which little is ever touched */
#define STACK_BYTES_MAX ((size_t)1 << 30)

static int add_thread_locals(struct dl_phdr_info *info, size_t size, void *sum)
{
	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_TLS)
			*(size_t *)sum += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
	return 0;
}

/* Each thread's stack begins with the thread-local variables of the whole program, which may have more of them than we want stack. */
static size_t stack_bytes(void)
{
	size_t locals = 0, page = 65536;
	objects_each(add_thread_locals, &locals);
	locals = locals < STACK_BYTES_MAX - STACK_BYTES ? locals : STACK_BYTES_MAX - STACK_BYTES;
	return (STACK_BYTES + locals + page - 1) / page * page;
}

/* A real-time thread of the program's may start us: ours take no processor away from anybody. */
static void be_ordinary(pthread_attr_t *attributes)
{
	int policy;
	struct sched_param parameters;
	if (pthread_getschedparam(pthread_self(), &policy, &parameters) != 0 || (policy != SCHED_FIFO && policy != SCHED_RR))
		return;
	parameters.sched_priority = 0;
	pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
	pthread_attr_setschedparam(attributes, &parameters);
}

bool thread_start(pthread_t *ret_thread, void *(*run)(void *context), void *context)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	const struct jemalloc *j;
	if (pthread_attr_init(&attributes) != 0)
		return false;
	pthread_attr_setstacksize(&attributes, stack_bytes());
	be_ordinary(&attributes);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	/* The C library takes some hundred bytes for a thread: the only ones of ours in the host's heap, and not to be in its profile. */
	bool profiled = jemalloc_ready(&j) == HG_OK, active = profiled && jemalloc_set_thread_active(j, false);
	int code = pthread_create(ret_thread, &attributes, run, context);
	if (active)
		jemalloc_set_thread_active(j, true);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	errno = code;
	return code == 0;
}
