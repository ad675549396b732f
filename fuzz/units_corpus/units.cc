// As little as has an inlined call, a method, a block, and a function in an unnamed namespace: for make.py.
namespace n {
struct S {
	int m(int x) const;
};
static inline __attribute__((always_inline)) int in(int x)
{
	int y = x * 3;
	asm volatile("" : "+r"(y));
	return y;
}
int S::m(int x) const { return in(x) + 1; }
namespace {
__attribute__((noinline)) int h(int x) { return in(x) * 5; }
}
}
extern "C" int e(int x)
{
	n::S s;
	if (x > 2) {
		volatile int k = x;
		return n::in(k) + n::h(x);
	}
	return s.m(x);
}
