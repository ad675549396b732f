#include "base/processors.h"

#include <sched.h>

unsigned processors_available(void)
{
	cpu_set_t set;
	/* Fails where there are more than 1024. */
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : CPU_SETSIZE;
	return n > 0 ? (unsigned)n : 1;
}
