// C++: templates, lambdas, unnamed namespaces, methods of local classes, constructors, exceptions.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace outer {
namespace {

int hidden(int x)
{
	return x * 3 + 1;
}

__attribute__((noinline)) int hidden_apart(std::vector<int> &v, int x)
{
	v.push_back(hidden(x));
	return v.back();
}

struct Hidden {
	__attribute__((noinline)) int method(int x) const { return x ^ factor; }
	int factor = 5;
};

} // namespace

template <typename T, int N> struct Ring {
	T items[N];
	unsigned at = 0;
	__attribute__((noinline)) T &push(const T &value)
	{
		items[at % N] = value;
		return items[at++ % N];
	}
	T &last() { return items[(at - 1) % N]; }
};

class Shape {
public:
	explicit Shape(std::string n) : name(std::move(n)) {}
	virtual ~Shape() = default;
	virtual double area() const = 0;
	const std::string &title() const { return name; }
	static std::unique_ptr<Shape> make(const std::string &kind, double size);

private:
	std::string name;
};

class Square : public Shape {
public:
	explicit Square(double s) : Shape("square"), side(s) {}
	double area() const override { return side * side; }

private:
	double side;
};

class Circle : public Shape {
public:
	explicit Circle(double r) : Shape("circle"), radius(r) {}
	double area() const override { return radius * radius * 3.14159; }
	bool operator<(const Circle &other) const { return radius < other.radius; }

private:
	double radius;
};

std::unique_ptr<Shape> Shape::make(const std::string &kind, double size)
{
	if (kind == "square")
		return std::make_unique<Square>(size);
	if (kind == "circle")
		return std::make_unique<Circle>(size);
	throw std::invalid_argument("no such shape: " + kind);
}

__attribute__((noinline)) double total(const std::vector<std::unique_ptr<Shape>> &shapes)
{
	double sum = 0;
	std::for_each(shapes.begin(), shapes.end(), [&sum](const auto &s) { sum += s->area(); });
	return sum;
}

__attribute__((noinline)) int local_class(int x)
{
	struct Local {
		int base;
		__attribute__((noinline)) int add(int y)
		{
			struct Deeper {
				__attribute__((noinline)) static int minus(int z) { return z - 1; }
			};
			return Deeper::minus(base + y);
		}
	};
	Local l{x};
	return l.add(2) + l.add(3);
}

template <typename F> __attribute__((noinline)) auto apply(F f, int x) -> decltype(f(x))
{
	return f(x);
}

} // namespace outer

static __attribute__((noinline)) std::map<std::string, int> count(const std::vector<std::string> &words)
{
	std::map<std::string, int> counts;
	for (const auto &w : words)
		counts[w]++;
	return counts;
}

int main(int argc, char **argv)
{
	std::vector<std::unique_ptr<outer::Shape>> shapes;
	std::vector<std::string> words(argv, argv + argc);
	std::vector<int> numbers;
	outer::Ring<long, 4> ring;
	outer::Ring<std::string, 2> names;
	std::function<int(int)> twice = [argc](int x) { return x * 2 + argc; };
	for (int i = 0; i < 10; i++) {
		try {
			shapes.push_back(outer::Shape::make(i % 3 ? "square" : i % 2 ? "circle" : "blob", i));
		} catch (const std::invalid_argument &e) {
			words.emplace_back(e.what());
		}
		ring.push(outer::hidden_apart(numbers, i));
		names.push(words.back());
	}
	int sum = outer::apply([&](int x) { return outer::apply([=](int y) { return x + y + twice(y); }, x); }, argc);
	std::sort(numbers.begin(), numbers.end(), [](int a, int b) { return a > b; });
	sum += outer::local_class(sum) + outer::Hidden().method(sum) + static_cast<int>(ring.last());
	return static_cast<int>(outer::total(shapes)) + sum + static_cast<int>(count(words).size()) == 7;
}
