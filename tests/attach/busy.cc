/*
 * busy MODE [THREADS]: a program that gives attach a hard time. It says "ready PID", runs until its standard input
 * ends, then checks its own memory and says "MODE rounds=N bad=N". Linked with jemalloc, or with one inside.
 *
 *   churn    all threads allocate and free all the time, C and C++
 *   spin     all threads count, none allocates or waits
 *   parked   the only thread waits in a hook that jemalloc calls with its locks held
 *   handler  the only thread waits in a signal's handler that interrupted jemalloc
 *   aside    the only thread waits on a stack of its own making
 *   forks    threads allocate while others fork and wait for their children, which allocate too
 *   held     a thread never lets go of jemalloc's lock for dumps; others wait in system calls
 */
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <poll.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

extern "C" int mallctl(const char *, void *, size_t *, void *, size_t) __attribute__((weak));
#ifdef PREFIXED
extern "C" void *je_malloc(size_t);
extern "C" void je_free(void *);
#define malloc je_malloc
#define free je_free
#endif

static std::atomic<bool> over;
static std::atomic<unsigned long> rounds, bad;

struct block {
	unsigned char *bytes;
	size_t n;
	unsigned char mark;
};

__attribute__((noinline)) static unsigned char *take(size_t n)
{
	return static_cast<unsigned char *>(malloc(n));
}

static void put_in(block &b, unsigned number)
{
	b.n = 16 + number % 3000;
	b.mark = static_cast<unsigned char>(number);
#ifdef PREFIXED
	b.bytes = take(b.n);
#else
	b.bytes = number & 1 ? take(b.n) : new unsigned char[b.n];
#endif
	memset(b.bytes, b.mark, b.n);
}

static void take_out(block &b, bool odd)
{
	if (b.bytes[0] != b.mark || b.bytes[b.n - 1] != b.mark)
		bad++;
#ifdef PREFIXED
	(void)odd;
	free(b.bytes);
#else
	if (odd)
		free(b.bytes);
	else
		delete[] b.bytes;
#endif
}

static void *churn(void *seed)
{
	static const unsigned N = 2000;
	block *blocks = new block[N]();
	unsigned state = static_cast<unsigned>(reinterpret_cast<uintptr_t>(seed)) * 2654435761u + 1;
	bool *odd = new bool[N]();
	for (unsigned i = 0; !over; i++) {
		state = state * 1664525u + 1013904223u;
		unsigned at = (state >> 8) % N;
		if (blocks[at].bytes)
			take_out(blocks[at], odd[at]);
		put_in(blocks[at], state >> 4);
		odd[at] = (state >> 4) & 1;
		if (i % 1024 == 0)
			rounds++;
	}
	for (unsigned i = 0; i < N; i++)
		if (blocks[i].bytes)
			take_out(blocks[i], odd[i]);
	delete[] odd;
	delete[] blocks;
	return nullptr;
}

static void *spin(void *)
{
	struct pollfd p = { STDIN_FILENO, POLLIN, 0 };
	for (unsigned long i = 1; !over; i++)
		if (i % 4000000000ul == 0)      /* a system call that doesn't wait, about once a second */
			over = poll(&p, 1, 0) > 0;
	return nullptr;
}

static void wait_for_end()
{
	char c;
	while (read(STDIN_FILENO, &c, 1) > 0) {
	}
	over = true;
}

static void ready()
{
	printf("ready %d\n", static_cast<int>(getpid()));
	fflush(stdout);
}

/* --- parked --- */

struct hooks {
	void *(*alloc)(hooks *, void *, size_t, size_t, bool *, bool *, unsigned);
	void *others[8];
};

static hooks *before;

static void *waits_then_allocates(hooks *, void *at, size_t n, size_t alignment, bool *zero, bool *commit, unsigned arena)
{
	ready();
	wait_for_end();
	return before->alloc(before, at, n, alignment, zero, commit, arena);
}

static void park()
{
	unsigned arena = 0;
	size_t n = sizeof arena;
	char name[64];
	static hooks ours;
	hooks *now = &ours;
	if (!mallctl || mallctl("arenas.create", &arena, &n, nullptr, 0))
		abort();
	snprintf(name, sizeof name, "arena.%u.extent_hooks", arena);
	n = sizeof before;
	if (mallctl(name, &before, &n, nullptr, 0))
		abort();
	ours = *before;
	ours.alloc = waits_then_allocates;
	if (mallctl(name, nullptr, nullptr, &now, sizeof now) || mallctl("thread.arena", nullptr, nullptr, &arena, sizeof arena))
		abort();
	free(malloc(64 << 20));
}

/* --- handler --- */

static uintptr_t low, high;     /* of jemalloc's code */

static void find_jemalloc()
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];
	while (f && fgets(line, sizeof line, f)) {
		unsigned long a, b;
		char rights[8];
		if (strstr(line, "jemalloc") && sscanf(line, "%lx-%lx %7s", &a, &b, rights) == 3 && rights[2] == 'x')
			low = a, high = b;
	}
	if (f)
		fclose(f);
}

static void on_alarm(int, siginfo_t *, void *context)
{
	uintptr_t at = static_cast<uintptr_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
	if (at < low || at >= high)
		return;
	static const char text[] = "ready\n";
	if (write(STDOUT_FILENO, text, sizeof text - 1) < 0)
		abort();
	wait_for_end();
}

static void interrupt_itself()
{
	struct sigaction a = {};
	itimerval often = { { 0, 1000 }, { 0, 1000 } }, never = {};
	find_jemalloc();
	a.sa_sigaction = on_alarm;
	a.sa_flags = SA_SIGINFO;
	sigaction(SIGALRM, &a, nullptr);
	setitimer(ITIMER_REAL, &often, nullptr);
	churn(nullptr);
	setitimer(ITIMER_REAL, &never, nullptr);
}

/* --- aside --- */

static void wait_aside()
{
	static ucontext_t here, there;
	size_t n = 1 << 20;
	getcontext(&there);
	there.uc_stack.ss_sp = malloc(n);
	there.uc_stack.ss_size = n;
	there.uc_link = &here;
	makecontext(&there, [] { ready(); wait_for_end(); }, 0);
	swapcontext(&here, &there);
}

/* --- forks --- */

static void *fork_often(void *)
{
	while (!over) {
		pid_t child = fork();
		if (child == 0) {
			void *volatile p = malloc(1000);
			memset(p, 1, 1000);
			_exit(p ? 0 : 1);
		}
		int status = 1;
		while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
			bad++;
		if (child < 0 || status)
			bad++;
		rounds++;
	}
	return nullptr;
}

/* --- held --- */

static void *hold_for_ever(void *)
{
	/* A dump into a FIFO that nobody reads: prof.dump waits with its lock. */
	const char *path = getenv("BUSY_FIFO");
	if (mallctl)
		mallctl("prof.dump", nullptr, nullptr, &path, sizeof path);
	return nullptr;
}

static void run_threads(const char *mode, unsigned n)
{
	pthread_t threads[64];
	void *(*first)(void *) = !strcmp(mode, "spin") ? spin : !strcmp(mode, "forks") ? fork_often : !strcmp(mode, "held") ?
		hold_for_ever : churn;
	void *(*others)(void *) = first == spin ? spin : churn;
	for (unsigned i = 0; i < n; i++)
		pthread_create(&threads[i], nullptr, i ? others : first, reinterpret_cast<void *>(static_cast<uintptr_t>(i + 1)));
	ready();
	if (first == spin)
		spin(nullptr);
	else
		wait_for_end();
	if (first == hold_for_ever)
		_exit(0);
	for (unsigned i = 0; i < n; i++)
		pthread_join(threads[i], nullptr);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	unsigned n = argc > 2 ? static_cast<unsigned>(strtoul(argv[2], nullptr, 10)) : 4;
	if (!strcmp(argv[1], "parked"))
		park();
	else if (!strcmp(argv[1], "handler"))
		interrupt_itself();
	else if (!strcmp(argv[1], "aside"))
		wait_aside();
	else
		run_threads(argv[1], n > 64 ? 64 : n);
	printf("%s rounds=%lu bad=%lu\n", argv[1], rounds.load(), bad.load());
	return bad != 0;
}
