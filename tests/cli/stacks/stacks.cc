/*
 * The same as stacks.c with what C++ has. A star alone stands for frames of other files (the C++ library's), in a name for
 * anything (compilers spell lambdas differently).
 *
 * stack 64K: keep@k1 Box<int>::Box@p1 make@p2 main@m1
 * stack 80K: keep@k1 Box<Pair<char>*>::Box@p1 Holder::fill@p3 Holder::Holder@p4 main@m2
 * stack 96K: keep@k1 *operator()@p5 shapes::apply<*>@p6 shapes::with_lambda@p7 main@m3
 * stack 112K: keep@k1 shapes::Derived::make@p8 shapes::virtually@p9 main@m4
 * stack 128K: * grow@p10 fill_vector@p11 main@m5
 * stack 160K: keep@k1 fold<3>@p12 fold<2>@p13 fold<1>@p13 fold<0>@p13 folded@p14 main@m6
 */
#include <jemalloc/jemalloc.h>

#include <cstdlib>
#include <vector>

#define INLINE inline __attribute__((always_inline))
#define APART __attribute__((noinline))

#define K ((size_t)1024)

static void *volatile kept[64];
static volatile int counter, where;      /* where: so that no two functions are the same code */

static INLINE void keep(size_t n)
{
	void *p = malloc(n); /*k1*/
	if (!p)
		abort();
	kept[counter++] = p;
}

template <typename T> struct Pair {
	T a, b;
};

template <typename T> struct Box {
	T value{};
	INLINE explicit Box(size_t n)
	{
		keep(n + sizeof(T) * 0); /*p1*/
	}
};

static APART void make(size_t n)
{
	Box<int> box(n); /*p2*/
	counter += box.value;
}

struct Holder {
	INLINE void fill(size_t n)
	{
		Box<Pair<char>> box(n); /*p3*/
		counter += box.value.a;
	}
	APART explicit Holder(size_t n)
	{
		fill(n); /*p4*/
		where = 1;
	}
};

namespace shapes {
template <typename F> INLINE void apply(F f)
{
	f(0); /*p6*/
}

static APART void with_lambda(size_t n)
{
	auto more = [&](size_t k) __attribute__((always_inline)) {
		keep(n + k); /*p5*/
	};
	apply(more); /*p7*/
	where = 2;
}

struct Base {
	virtual ~Base() = default;
	virtual void make(size_t n) = 0;
};

struct Derived : Base {
	APART void make(size_t n) override
	{
		keep(n); /*p8*/
		where = 3;
	}
};

static Base *volatile object;

static APART void virtually(size_t n)
{
	object->make(n); /*p9*/
	where = 4;
}
}

static std::vector<char> letters;

static INLINE void grow(size_t n)
{
	letters.reserve(n); /*p10*/
}

static APART void fill_vector(size_t n)
{
	grow(n); /*p11*/
	where = 5;
}

template <int N> INLINE void fold(size_t n)
{
	if constexpr (N == 3)
		keep(n); /*p12*/
	else
		fold<N + 1>(n); /*p13*/
}

static APART void folded(size_t n)
{
	fold<0>(n); /*p14*/
	where = 6;
}

int main(int argc, char **argv)
{
	const char *path = argv[1];
	if (argc != 2)
		return 2;
	static shapes::Derived derived;
	shapes::object = &derived;
	make(64 * K); /*m1*/
	Holder holder(80 * K); /*m2*/
	shapes::with_lambda(96 * K); /*m3*/
	shapes::virtually(112 * K); /*m4*/
	fill_vector(128 * K); /*m5*/
	folded(160 * K); /*m6*/
	return mallctl("prof.dump", nullptr, nullptr, &path, sizeof(path)) != 0;
}
