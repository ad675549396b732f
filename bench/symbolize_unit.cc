/*
 * A piece of a large C++ program, for symbolize_cost.py: templates of the standard library over types of its own, which all
 * keep memory. It is compiled once and linked many times under different entry names, each with code and debug information of its own.
 */
#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

template <int N> struct record {
	std::string name;
	std::vector<int> numbers;
	std::map<std::string, std::unique_ptr<record<N - 1>>> parts;
	std::unordered_map<int, std::shared_ptr<record<N - 1>>> index;
	std::function<int(const record &)> rank;
	std::tuple<int, std::string, std::set<long>> key;
	std::list<std::deque<char>> rest;
};
template <> struct record<0> { std::string name; };

template <int N> std::shared_ptr<record<N>> make(int seed)
{
	auto r = std::make_shared<record<N>>();
	r->name = std::string(100 + seed % 50, 'a' + N % 26);
	r->numbers.resize(20 + N % 7);
	std::iota(r->numbers.begin(), r->numbers.end(), seed);
	std::sort(r->numbers.begin(), r->numbers.end(), [](int a, int b) { return (a ^ N) > (b ^ N); });
	r->rank = [seed, text = r->name](const record<N> &x) { return (int)x.numbers.size() + seed + (int)text.size(); };
	std::get<2>(r->key).insert(seed);
	r->rest.emplace_back(10, 'x');
	if constexpr (N > 1) {
		r->index.emplace(seed, make<N - 1>(seed + 1));
		r->parts[r->name] = std::make_unique<record<N - 1>>();
	}
	return r;
}

template <int N> int kept(int seed)
{
	static std::vector<std::shared_ptr<record<N>>> all;
	all.push_back(make<N>(seed));
	return (int)all.size();
}
}

extern "C" int unit_run(int seed);
int unit_run(int seed) { return kept<DEPTH>(seed); }
