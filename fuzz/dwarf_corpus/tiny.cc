// Little of everything that has entries of its own in debug information: for make.sh. Nothing is included.
extern "C" volatile int sink;
volatile int sink;

namespace outer {
template <typename T> struct Box {
	T value;
	__attribute__((always_inline)) T twice() const { return value + value; }
};

namespace {
__attribute__((noinline)) int hidden(int x)
{
	struct Local {
		int value;
		__attribute__((noinline)) int get() const { sink = value; return value * 3; }
	} local = { x };
	auto more = [&](int y) __attribute__((noinline)) { sink = y; return local.get() + y; };
	return more(x + 1);
}
}

struct Base {
	virtual int f(int x) { return x; }
};
struct Derived : Base {
	int f(int x) override;
};
}

static inline __attribute__((always_inline)) int innermost(int x)
{
	sink = x;
	return x * 7;
}

static inline __attribute__((always_inline)) int middle(int x)
{
	int sum = 0;
	for (int i = 0; i < x; i++) {
		outer::Box<int> box = { innermost(i) };
		sum += box.twice();
	}
	return sum;
}

__attribute__((cold, noinline)) static void never(int x)
{
	sink = innermost(x);
}

int outer::Derived::f(int x)
{
	if (__builtin_expect(x > 1000, 0))
		never(x);
	return hidden(middle(x)) + middle(x + 1);
}

extern "C" int entry(int x)
{
	outer::Derived d;
	return d.f(x) + innermost(x);
}
