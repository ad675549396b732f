/*
 * Demangling through libiberty: Rust first (its legacy names are valid C++ ones with a hash
 * behind), then Itanium C++.
 *
 * Names are input of strangers. libiberty refuses names past 1,024 characters unless its
 * recursion limit is lifted, and real C++ has longer ones, so the limit is lifted up to
 * MANGLED_MAX: that bounds the stack it takes (measured: under 1 MiB). A short name can also
 * expand without end through substitutions; past PLAIN_MAX we jump out of the callback, which
 * the C++ demangler permits because it allocates nothing on the heap.
 */
#include <setjmp.h>
#include <string.h>

#include <libiberty/demangle.h>

#include "symbol/symbol.h"

#define MANGLED_MAX 4096
#define PLAIN_MAX ((size_t)64 << 10)

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

static bool demangle(const char *name, size_t length, struct sink *s)
{
	if (setjmp(s->enough))
		return false;
	if (rust_demangle_callback(name, 0, sink_add, s))
		return true;
	s->out->len = s->start;
	int options = DMGL_PARAMS | DMGL_ANSI | (length > 1000 ? DMGL_NO_RECURSE_LIMIT : 0);
	return cplus_demangle_v3_callback(name, options, sink_add, s);
}

void symbol_demangle(const char *name, struct buf *b)
{
	size_t length = strlen(name);
	bool mangled = name[0] == '_' && length <= MANGLED_MAX &&
	               (name[1] == 'Z' || name[1] == 'R' || !strncmp(name, "_GLOBAL_", 8));
	struct sink s = { .out = b, .start = b->len };
	if (mangled && demangle(name, length, &s) && b->len > s.start)
		return;
	b->len = s.start;
	buf_add(b, name, length);
}
