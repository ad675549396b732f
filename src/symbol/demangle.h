/*
 * Readable names from what linkers use: C++ (Itanium), Rust (legacy and v0), D. Names are input of strangers: what is too long, or
 * grows too long, stays as it is.
 *
 * A part that the compiler split off or copied (foo.cold, foo.part.0, foo.isra.0, foo.constprop.0, foo.lto_priv.0,
 * foo.llvm.123) has the name of its function, as in debug information, so that both count as one. Other suffixes, which tell
 * versions of a function apart (foo.avx2), stay: "foo() [clone .avx2]".
 */
#ifndef SYMBOL_DEMANGLE_H
#define SYMBOL_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* The words of --demangle, with the meanings that pprof's -symbolize=demangle= gives them. */
enum demangle_mode {
	DEMANGLE_FULL,               /* void ns::f<int>(std::vector<int>) */
	DEMANGLE_TEMPLATES,          /* ns::f<int>: neither parameters nor return type */
	DEMANGLE_SIMPLE,             /* ns::f: nor template arguments */
	DEMANGLE_NONE,               /* _ZN2ns1fIiEEvSt6vectorIiE: as linked */
};

/* The name in that form, appended to b; the name itself when it is not mangled. Thread safe; keeps nothing. */
void demangle(const char *name, enum demangle_mode mode, struct buf *b);

/*
 * A name in full, demangled by whoever or composed from debug information ("ns::f<int>(int)"), reduced to mode and appended to b:
 * for names whose mangled form is not known.
 */
void demangle_reduce(const char *plain, enum demangle_mode mode, struct buf *b);

/* Is it a linker's name of C++ or Rust? Enough to tell it from a plain one, not to be sure that it can be demangled. */
static inline bool name_is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* Length of the name without the suffixes that are dropped. */
size_t demangle_without_suffix(const char *name);

#endif
