/*
 * What a forked child has to find in order. It has the thread that forked and none of ours: our locks are new there, our memory is not copied
 * (memory.c), the files that we had open are closed, and sampling is put back if a span had changed it.
 *
 * Not everything can be put right afterwards: who forks while a thread of ours lists the loaded objects would leave the dynamic linker's lock
 * taken in the child for ever. For such moments, and only for moments, forks wait.
 */
#ifndef AGENT_FORKS_H
#define AGENT_FORKS_H

#include <stdbool.h>

/* Sees to all of this, from now on. Any number of times. */
void forks_watch(void);
/*
 * Another jemalloc was found, and has been asked something: it has its own handlers then, and ours that calls it has to come behind them.
 */
void forks_watch_jemalloc(void);

/* No fork in between. Nothing that could wait for jemalloc, or long for anything, may be done. One thread may hold it twice. */
void forks_hold(void);
void forks_go_on(void);

/* The descriptor is ours: a child closes it, if it still is the same file. Negative ones pass. Returns fd. */
int forks_own(int fd);
/* It still is what forks_own was told: the host has not closed it, to open something else under its number. */
bool forks_owns(int fd);

#endif
