/* How much of the machine there is for this process. */
#ifndef BASE_PROCESSORS_H
#define BASE_PROCESSORS_H

/* Processors it may run on, at least 1: fewer than the machine's under taskset or a cpuset. */
unsigned processors_available(void);

#endif
