#include "agent/forks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/dump.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Read without the lock, to see whether it is oneself: a signal's handler may fork the very thread that holds it. */
static _Atomic(pthread_t) holder;
/* Under the lock: */
static unsigned depth;

void forks_hold(void)
{
	if (atomic_load(&holder) != pthread_self()) {
		pthread_mutex_lock(&lock);
		atomic_store(&holder, pthread_self());
	}
	depth++;
}

void forks_go_on(void)
{
	if (--depth > 0)
		return;
	atomic_store(&holder, (pthread_t)0);
	pthread_mutex_unlock(&lock);
}

/* --- descriptors ------------------------------------------------------------ */

/*
 * Which file it was is kept, too, so that nothing has to be taken out again: what was closed, here or by the server, and has become another
 * file is not touched. The newest push out the oldest.
 */
#define OWNED 128

static struct owned {
	atomic_int fd;                  /* + 1; 0: none */
	dev_t device;
	ino_t inode;
} owned[OWNED];
static atomic_uint next;

static struct owned *place_for(int fd)
{
	for (size_t i = 0; i < OWNED; i++)
		if (atomic_load(&owned[i].fd) == fd + 1)
			return &owned[i];
	return &owned[atomic_fetch_add(&next, 1) % OWNED];
}

int forks_own(int fd)
{
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return fd;
	struct owned *o = place_for(fd);
	/* A child that is made just now finds a file that isn't this one, and leaves it open. */
	atomic_store(&o->fd, 0);
	o->device = st.st_dev;
	o->inode = st.st_ino;
	atomic_store(&o->fd, fd + 1);
	return fd;
}

static bool is_same(const struct owned *o)
{
	struct stat st;
	int fd = atomic_load(&o->fd) - 1;
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == o->device && st.st_ino == o->inode;
}

bool forks_owns(int fd)
{
	for (size_t i = 0; i < OWNED; i++)
		if (atomic_load(&owned[i].fd) == fd + 1)
			return is_same(&owned[i]);
	return false;
}

static void close_owned(void)
{
	for (size_t i = 0; i < OWNED; i++) {
		if (is_same(&owned[i]))
			close(atomic_load(&owned[i].fd) - 1);
		atomic_store(&owned[i].fd, 0);
	}
}

/* --- the handlers ------------------------------------------------------------ */

static void before(void)
{
	forks_hold();
}

static void in_parent(void)
{
	forks_go_on();
}

static void in_child(void)
{
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	lock = fresh;
	atomic_store(&holder, (pthread_t)0);
	depth = 0;
	jemalloc_after_fork();
	dump_after_fork();
	agent_after_fork();
	close_owned();
}

static void register_handlers(void)
{
	pthread_atfork(before, in_parent, in_child);
}

void forks_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, register_handlers);
}

/* Handlers in the child are called in the order in which they were registered: jemalloc's, which frees its locks, was before. */
void forks_watch_jemalloc(void)
{
	forks_watch();
	pthread_atfork(NULL, NULL, agent_put_back_after_fork);
}
