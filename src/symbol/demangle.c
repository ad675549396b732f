/*
 * Demangling through libiberty: Rust first (its legacy names are valid C++ ones with a hash behind), then Itanium C++;
 * D has a prefix of its own. The hashes that tell builds of a Rust crate apart are dropped by it.
 *
 * libiberty refuses names past 1,024 characters unless its recursion limit is lifted, and real C++ has longer ones, so the
 * limit is lifted up to MANGLED_MAX: that bounds the stack it takes (measured: under 1 MiB). A short name can also expand
 * without end through substitutions; past PLAIN_MAX we jump out of the callback, which the C++ demangler permits because it
 * allocates nothing on the heap. D's has no callback: there the growth is estimated beforehand.
 *
 * The shorter modes ask libiberty for a name without its parameters, and cut what is left (those of enclosing functions,
 * template arguments) out of the text, by its brackets.
 */
#include "symbol/demangle.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <libiberty/demangle.h>

#define MANGLED_MAX 4096
#define PLAIN_MAX ((size_t)64 << 10)
#define D_GROWTH_MAX 4e6
#define BRACKETS_MAX 256

/* --- suffixes --- */

static const char *const dropped[] = {
	"cold", "part", "isra", "constprop", "lto_priv", "llvm", "localalias", "clone", "__part", "__uniq", "specialized",
	"argprom", "argelim", "retelim",
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_dropped(const char *word, size_t length)
{
	for (size_t i = 0; i < sizeof dropped / sizeof *dropped; i++)
		if (strlen(dropped[i]) == length && memcmp(dropped[i], word, length) == 0)
			return true;
	return false;
}

/* Where the last ".word", with the ".123" behind it, begins; length when the last word is none of ours. */
static size_t last_suffix(const char *name, size_t length)
{
	size_t end = length;
	for (;;) {
		const char *dot = memrchr(name, '.', end);
		if (!dot || dot == name)
			return length;
		size_t at = (size_t)(dot - name), word = at + 1;
		size_t i = word;
		while (i < end && is_digit(name[i]))
			i++;
		if (i < end || word == end)
			return is_dropped(name + word, end - word) ? at : length;
		end = at;
	}
}

size_t demangle_without_suffix(const char *name)
{
	size_t length = strlen(name);
	for (;;) {
		size_t shorter = last_suffix(name, length);
		if (shorter == length)
			return length;
		length = shorter;
	}
}

/* --- libiberty --- */

struct sink {
	struct buf *out;
	size_t start;
	jmp_buf enough;
};

static void sink_add(const char *text, size_t length, void *context)
{
	struct sink *s = context;
	buf_add(s->out, text, length);
	if (s->out->failed || s->out->len - s->start > PLAIN_MAX)
		longjmp(s->enough, 1);
}

static bool demangle_cxx_or_rust(const char *name, size_t length, enum demangle_mode mode, struct buf *b)
{
	struct sink s = { .out = b, .start = b->len };
	if (setjmp(s.enough))
		return false;
	/* Rust's older names are C++ ones that end in a hash: "17h" and sixteen digits. */
	if ((name[1] == 'R' || memmem(name, length, "17h", 3)) && rust_demangle_callback(name, 0, sink_add, &s))
		return true;
	b->len = s.start;
	int options = DMGL_ANSI | (mode == DEMANGLE_FULL ? DMGL_PARAMS : 0) | (length > 1000 ? DMGL_NO_RECURSE_LIMIT : 0);
	return cplus_demangle_v3_callback(name, options, sink_add, &s);
}

/* The distance that a "Q" of D refers back: digits of base 26, the last of them lower-case. 0 when it is none. */
static size_t d_distance(const char *c)
{
	size_t n = 0;
	for (c++; *c >= 'A' && *c <= 'Z' && n < MANGLED_MAX; c++)
		n = n * 26 + (size_t)(*c - 'A');
	return *c >= 'a' && *c <= 'z' ? n * 26 + (size_t)(*c - 'a') : 0;
}

/* Where the type at name[at] ends, if it is a plain one or refers to another; else limit, before which it ends. */
static size_t d_type_end(const char *name, size_t at, size_t limit)
{
	size_t end = at + strspn(name + at, "APOxy");
	return name[end] == 'Q' || (name[end] >= 'a' && name[end] <= 'w') ? end + 1 : limit;
}

/* How much text D's references back can make of a name, at most: a type that is referred to is made again each time. */
static double d_growth(const char *name, size_t length)
{
	double before[MANGLED_MAX + 1] = { 0 };          /* of the characters before each */
	for (size_t i = 0; i < length; i++) {
		size_t distance = name[i] == 'Q' ? d_distance(name + i) : 0;
		size_t from = i - distance;
		before[i + 1] = before[i] + 1;
		if (distance && distance <= i && !is_digit(name[from]))
			before[i + 1] += before[d_type_end(name, from, i)] - before[from];
	}
	return before[length];
}

static bool demangle_d(const char *name, size_t length, struct buf *b)
{
	char *plain = d_growth(name, length) > D_GROWTH_MAX ? NULL : dlang_demangle(name, 0);
	size_t n = plain ? strlen(plain) : 0;
	if (n && n <= PLAIN_MAX)
		buf_add(b, plain, n);
	free(plain);
	return n && n <= PLAIN_MAX;
}

static bool demangle_any(const char *name, size_t length, enum demangle_mode mode, struct buf *b)
{
	size_t start = b->len;
	bool done = name[1] == 'D' ? demangle_d(name, length, b) : demangle_cxx_or_rust(name, length, mode, b);
	if (done && b->len > start && !b->failed)
		return true;
	buf_cut(b, start);
	return false;
}

static bool may_be_demangled(const char *name, size_t length)
{
	return name[0] == '_' && length > 2 && length <= MANGLED_MAX &&
	       (name[1] == 'Z' || name[1] == 'R' || name[1] == 'D' || !strncmp(name, "_GLOBAL_", 8));
}

void demangle(const char *name, enum demangle_mode mode, struct buf *b)
{
	if (mode == DEMANGLE_NONE) {
		buf_adds(b, name);
		return;
	}
	size_t start = b->len, length = demangle_without_suffix(name);
	if (!may_be_demangled(name, length)) {
		buf_add(b, name, length);
		return;
	}
	char plain[MANGLED_MAX + 1];
	memcpy(plain, name, length);
	plain[length] = '\0';
	if (!demangle_any(plain, length, mode, b)) {
		buf_adds(b, name);
		return;
	}
	if (mode == DEMANGLE_FULL)
		return;
	struct buf reduced;
	buf_init(&reduced, b->max);
	demangle_reduce(b->data + start, mode, &reduced);
	buf_cut(b, start);
	buf_add(b, reduced.len ? reduced.data : "", reduced.len);
	b->failed |= reduced.failed;
	buf_finish(&reduced);
}

/* --- reducing --- */

/* Past the bracket that closes the one at text; NULL when there is none. "->" and comparisons in parentheses close nothing. */
static const char *past_group(const char *text)
{
	char open[BRACKETS_MAX];
	size_t n = 0;
	const char *c = text;
	do {
		char closes = *c == ')' ? '(' : *c == ']' ? '[' : *c == '}' ? '{' : '\0';
		if (*c == '(' || *c == '[' || *c == '{' || *c == '<') {
			if (n == BRACKETS_MAX)
				return NULL;
			open[n++] = *c;
		} else if (closes) {
			while (n && open[n - 1] != closes)
				n--;
			if (n == 0)
				return NULL;
			n--;
		} else if (*c == '>' && c[-1] != '-' && open[n - 1] == '<') {
			n--;
		}
		if (!*c)
			return NULL;
		c++;
	} while (n);
	return c;
}

static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (c & 0x80);
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Of operators, those with a bracket; longer ones first. */
static const char *const signs[] = {
	"<=>", "<<=", ">>=", "->*", "()", "[]", "<<", ">>", "<=", ">=", "->", "<", ">",
};

/* Past "operator" and its sign at text ("operator()", "operator<<"); text when there is no such. */
static const char *past_operator(const char *text, const char *whole)
{
	if (!begins(text, "operator") || (text > whole && is_word(text[-1])))
		return text;
	const char *sign = text + 8;
	for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
		if (begins(sign, signs[i]))
			return sign + strlen(signs[i]);
	return text;
}

/* Is the "<" here part of a name: Rust's "<A as B>::f" and "<impl A for B>", a compiler's "<lambda(int)>"? */
static bool is_name(const char *bracket, const char *whole)
{
	return bracket == whole || begins(bracket, "<impl ") || begins(bracket, "<lambda") || begins(bracket, "<unnamed");
}

/* What has to happen with the group at c. */
enum cut { KEEP, CUT, CUT_TO_SCOPE };

static enum cut cut_of(const char *c, const char *whole, enum demangle_mode mode)
{
	bool simple = mode == DEMANGLE_SIMPLE;
	if (*c == '<')
		return simple && !is_name(c, whole) ? CUT : KEEP;
	if (*c != '(' || begins(c, "(anonymous namespace)") || begins(c, "(anonymous class)"))
		return KEEP;
	if (c > whole && c[-1] == '!')                   /* D's template arguments */
		return simple ? CUT : KEEP;
	return CUT_TO_SCOPE;
}

/* Takes back what led to a group that is left out: Rust's "::" before "<", D's "!", a blank. */
static void trim(struct buf *b, size_t start, char bracket)
{
	size_t n = b->len;
	if (bracket == '<' && n >= start + 2 && b->data[n - 1] == ':')
		n -= 2;
	else if (n > start && (b->data[n - 1] == '!' || b->data[n - 1] == ' '))
		n--;
	buf_cut(b, n);
}

void demangle_reduce(const char *plain, enum demangle_mode mode, struct buf *b)
{
	size_t start = b->len;
	const char *c = plain;
	while (*c && mode != DEMANGLE_FULL && mode != DEMANGLE_NONE) {
		const char *next = past_operator(c, plain);
		enum cut cut = KEEP;
		if (next == c && (*c == '<' || *c == '(' || *c == '{' || *c == '[')) {
			next = past_group(c);
			if (!next)
				break;
			cut = c == plain ? KEEP : cut_of(c, plain, mode);
		}
		if (next == c)
			next++;
		if (cut == KEEP)
			buf_add(b, c, (size_t)(next - c));
		else
			trim(b, start, *c);
		if (cut == CUT_TO_SCOPE)
			while (*next && !begins(next, "::"))
				next++;
		c = next;
	}
	if (!*c && b->len > start)
		return;
	/* All of it, or brackets that don't match: as it is. */
	buf_cut(b, start);
	buf_adds(b, plain);
}
