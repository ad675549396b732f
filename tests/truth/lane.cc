/* The lane in C++: templates, namespaces, operator new. */
#include "lane.h"

#include <new>

namespace cplusplus {

template <int level, int digit> __attribute__((noinline)) void *step(unsigned path, size_t size);

template <int level> void *next(unsigned path, size_t size)
{
	switch (path & 3) {
	case 0: return step<level, 0>(path >> 2, size);
	case 1: return step<level, 1>(path >> 2, size);
	case 2: return step<level, 2>(path >> 2, size);
	default: return step<level, 3>(path >> 2, size);
	}
}

template <> __attribute__((always_inline)) inline void *next<LANE_LEVELS>(unsigned path, size_t size)
{
	return path & 1 ? operator new[](size) : operator new(size);
}

template <int level, int digit> void *step(unsigned path, size_t size)
{
	void *p = next<level + 1>(path, size);
	__asm__ volatile("# %c1" : "+r"(p) : "i"(level * 4 + digit));   /* none is merged with another */
	return p;
}

struct again {
	unsigned turns;
	__attribute__((noinline)) void *operator()(unsigned path, size_t size)
	{
		void *p;
		if (turns) {
			again less = { turns - 1 };
			p = less(path, size);
		} else {
			p = next<0>(path, size);
		}
		__asm__ volatile("" : "+r"(p));
		return p;
	}
};

}

extern "C" void *cplusplus_allocate(unsigned path, size_t size)
{
	cplusplus::again first = { path % 5 };
	void *p = first(path, size);
	__asm__ volatile("" : "+r"(p));
	return p;
}
