/*
 * Names of each kind in each form. Wanted are the forms that c++filt and pprof give; demangle.sh asks c++filt for whole
 * libraries.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "symbol/demangle.h"

struct names {
	const char *mangled, *full, *templates, *simple;     /* NULL: as the one before */
};

static const struct names table[] = {
	/* not mangled */
	{ "", "", NULL, NULL },
	{ "main", "main", NULL, NULL },
	{ "_Z", "_Z", NULL, NULL },
	{ "_start", "_start", NULL, NULL },
	{ "_Release", "_Release", NULL, NULL },
	{ "_DYNAMIC", "_DYNAMIC", NULL, NULL },
	{ "main.main.func1", "main.main.func1", NULL, NULL },
	/* C++ */
	{ "_ZN2ns5Class6methodEiPKc", "ns::Class::method(int, char const*)", "ns::Class::method", NULL },
	{ "_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()", "(anonymous namespace)::f", NULL },
	{ "_ZNKSt6vectorIiSaIiEEixEm", "std::vector<int, std::allocator<int> >::operator[](unsigned long) const",
	  "std::vector<int, std::allocator<int> >::operator[]", "std::vector::operator[]" },
	{ "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc",
	  "std::basic_ostream<char, std::char_traits<char> >& std::operator<< <std::char_traits<char> >"
	  "(std::basic_ostream<char, std::char_traits<char> >&, char const*)",
	  "std::operator<< <std::char_traits<char> >", "std::operator<<" },
	{ "_ZZ4mainENKUliE_clEi", "main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()", NULL },
	{ "_ZZN2ns1fEiENKUlvE_clEv", "ns::f(int)::{lambda()#1}::operator()() const", "ns::f::{lambda()#1}::operator()", NULL },
	{ "_ZN1AcvSt6vectorIiSaIiEEEv", "A::operator std::vector<int, std::allocator<int> >()",
	  "A::operator std::vector<int, std::allocator<int> >", "A::operator std::vector" },
	{ "_Z1fILb1EEvSt8functionIFviEE", "void f<true>(std::function<void (int)>)", "f<true>", "f" },
	{ "_ZThn8_N1A1fEv", "non-virtual thunk to A::f()", "non-virtual thunk to A::f", NULL },
	{ "_ZN1AptEv", "A::operator->()", "A::operator->", NULL },
	{ "_ZN1AgtERKS_", "A::operator>(A const&)", "A::operator>", NULL },
	{ "_Znwm", "operator new(unsigned long)", "operator new", NULL },
	{ "_GLOBAL__I_main", "global constructors keyed to main", NULL, NULL },
	/* Rust: legacy, v0 */
	{ "_ZN4core3ptr13drop_in_place17h0123456789abcdefE", "core::ptr::drop_in_place", NULL, NULL },
	{ "_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar17h930b740aa94f1d3aE",
	  "<Test + 'static as foo::Bar<Test>>::bar", NULL, NULL },
	{ "_RNvC6_123foo3bar", "123foo::bar", NULL, NULL },
	{ "_RNvNtNtCsfEOYDRpO4Ta_11miniz_oxide7inflate4core9init_tree", "miniz_oxide::inflate::core::init_tree", NULL, NULL },
	{ "_RINvNtC3std3mem8align_ofjdE", "std::mem::align_of::<usize, f64>", NULL, "std::mem::align_of" },
	/* D */
	{ "_Dmain", "D main", NULL, NULL },
	{ "_D1d__T1STiZQf1fMFNaNbNiNfiZi", "d.S!(int).S.f(int)", "d.S!(int).S.f", "d.S.S.f" },
	/* parts and copies of functions */
	{ "foo.cold", "foo", NULL, NULL },
	{ "foo.constprop.0.isra.0.cold.17", "foo", NULL, NULL },
	{ "foo.lto_priv.3", "foo", NULL, NULL },
	{ ".cold", ".cold", NULL, NULL },
	{ "foo.scold", "foo.scold", NULL, NULL },
	{ "_ZN12_GLOBAL__N_11fEv.cold", "(anonymous namespace)::f()", "(anonymous namespace)::f", NULL },
	{ "_ZN12_GLOBAL__N_11fEv.part.0.llvm.1234", "(anonymous namespace)::f()", "(anonymous namespace)::f", NULL },
	{ "_ZN4core3ptr13drop_in_place17h0123456789abcdefE.llvm.12345", "core::ptr::drop_in_place", NULL, NULL },
	{ "_RINvNtC3std3mem8align_ofjdE.llvm.12345.cold", "std::mem::align_of::<usize, f64>", NULL, "std::mem::align_of" },
	{ "_Z1fv.avx2", "f() [clone .avx2]", "f", NULL },
	{ "memcpy.avx2", "memcpy.avx2", NULL, NULL },
};

static void assert_form(const char *mangled, enum demangle_mode mode, const char *want)
{
	struct buf b;
	buf_init(&b, 1 << 20);
	buf_adds(&b, "> ");
	demangle(mangled, mode, &b);
	assert_memory_equal(b.data, "> ", 2);
	assert_string_equal(b.data + 2, want);
	buf_finish(&b);
}

static void names_have_four_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
		const struct names *n = &table[i];
		const char *templates = n->templates ? n->templates : n->full;
		assert_form(n->mangled, DEMANGLE_FULL, n->full);
		assert_form(n->mangled, DEMANGLE_TEMPLATES, templates);
		assert_form(n->mangled, DEMANGLE_SIMPLE, n->simple ? n->simple : templates);
		assert_form(n->mangled, DEMANGLE_NONE, n->mangled);
	}
}

static const struct names plain_table[] = {
	{ NULL, "main", NULL, NULL },
	{ NULL, "ns::vector<int>::push(int)", "ns::vector<int>::push", "ns::vector::push" },
	{ NULL, "ns::<lambda(int)>::operator()", NULL, NULL },
	{ NULL, "f(void (*)(int)) const::g", "f::g", NULL },
	{ NULL, "A<(x>y)>::f", NULL, "A::f" },
	{ NULL, "A<(B)1, C<D> >::operator->*", NULL, "A::operator->*" },
	{ NULL, "operator<=><int>", NULL, "operator<=>" },
	{ NULL, "operators<int>(int)", "operators<int>", "operators" },
	{ NULL, "<alloc::vec::Vec<T> as Drop>::drop::<u8>", NULL, "<alloc::vec::Vec<T> as Drop>::drop" },
	{ NULL, "core::fmt::num::<impl core::fmt::Display for u32>::fmt", NULL, NULL },
	{ NULL, "core::ops::FnOnce::call_once{{vtable.shim}}", NULL, NULL },
	{ NULL, "a<b", NULL, NULL },                    /* no pairs: left alone */
	{ NULL, "a)b", NULL, NULL },
	{ NULL, "(int)", NULL, NULL },
};

static void plain_names_are_reduced(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof plain_table / sizeof *plain_table; i++) {
		const struct names *n = &plain_table[i];
		const char *templates = n->templates ? n->templates : n->full;
		const char *want[] = { n->full, templates, n->simple ? n->simple : templates, n->full };
		for (enum demangle_mode mode = DEMANGLE_FULL; mode <= DEMANGLE_NONE; mode++) {
			struct buf b;
			buf_init(&b, 1 << 10);
			demangle_reduce(n->full, mode, &b);
			assert_string_equal(b.data, want[mode]);
			buf_finish(&b);
		}
	}
}

static void long_and_hostile_names_are_bounded(void **state)
{
	(void)state;
	struct buf name, b;
	buf_init(&name, 1 << 20);
	buf_init(&b, 1 << 20);
	/* 1,500 characters are real C++; libiberty by itself stops at 1,024. */
	buf_adds(&name, "_Z1fI");
	for (int i = 0; i < 300; i++)
		buf_adds(&name, "3abcI");
	buf_adds(&name, "i");
	for (int i = 0; i < 301; i++)
		buf_adds(&name, "E");
	buf_adds(&name, "vv");
	demangle(name.data, DEMANGLE_FULL, &b);
	assert_memory_equal(b.data, "void f<abc<abc<", 15);
	/* Doubles with every step: 2^30 without a limit. */
	buf_reset(&name);
	buf_reset(&b);
	buf_adds(&name, "_Z1fSt4pairIiiE");
	for (int i = 0; i < 30; i++)
		buf_printf(&name, "S_IS%c_S%c_E", "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i],
		           "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i]);
	demangle(name.data, DEMANGLE_FULL, &b);
	assert_string_equal(b.data, name.data);
	/* Nesting that libiberty gives up on (after recursing some way), and length without end. */
	buf_reset(&name);
	buf_reset(&b);
	buf_adds(&name, "_Z1f");
	while (name.len < 4095)
		buf_addc(&name, 'P');
	buf_addc(&name, 'i');
	demangle(name.data, DEMANGLE_FULL, &b);
	assert_string_equal(b.data, name.data);
	while (name.len < 200000)
		buf_addc(&name, 'P');
	buf_reset(&b);
	demangle(name.data, DEMANGLE_FULL, &b);
	assert_string_equal(b.data, name.data);
	buf_finish(&name);
	buf_finish(&b);
}

/* D's references back double, too. */
static void references_of_d_are_bounded(void **state)
{
	(void)state;
	struct buf name, b;
	buf_init(&name, 1 << 20);
	buf_init(&b, 1 << 20);
	buf_adds(&name, "_D3abcFS3fooS3bar");
	for (int i = 0; i < 60; i++)
		buf_adds(&name, "H");
	for (int i = 0; i < 60; i++)
		buf_adds(&name, "QbQd");
	buf_adds(&name, "Zv");
	demangle(name.data, DEMANGLE_FULL, &b);
	assert_string_equal(b.data, name.data);
	buf_finish(&name);
	buf_finish(&b);
}

/* Lines of names on standard input, each in full: for comparing with c++filt. */
static int filter(void)
{
	static char line[1 << 20];
	while (fgets(line, sizeof line, stdin)) {
		struct buf b;
		buf_init(&b, 1 << 20);
		line[strcspn(line, "\n")] = '\0';
		demangle(line, DEMANGLE_FULL, &b);
		puts(b.data);
		buf_finish(&b);
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "filter") == 0)
		return filter();
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_have_four_forms),
		cmocka_unit_test(plain_names_are_reduced),
		cmocka_unit_test(long_and_hostile_names_are_bounded),
		cmocka_unit_test(references_of_d_are_bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
