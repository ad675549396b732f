/*
 * Which frames are the allocator's own. A heap profile's stacks all begin (at the leaf) inside
 * malloc; nobody wants to read that. By mapping when jemalloc is a library, by name when it is
 * linked in, whatever prefix it was given.
 */
#include "profile/operations.h"

#include <stdlib.h>
#include <string.h>

/*
 * The names are lists for two readers: function_is_allocator(), and the regular expression that other programs are given.
 * X(name) is expanded for each.
 */

/* Entry points; a prefix (je_, _rjem_, __rjem_je_, tc_, ...) may stand before them. */
#define ENTRY_POINTS(X) \
	X("malloc") X("calloc") X("realloc") X("free") X("cfree") X("memalign") X("posix_memalign") \
	X("aligned_alloc") X("valloc") X("pvalloc") X("reallocarray") X("free_sized") X("free_aligned_sized") \
	X("mallocx") X("rallocx") X("xallocx") X("sallocx") X("dallocx") X("sdallocx") X("nallocx") \
	X("newImpl") X("fallbackNewImpl") X("handleOOM") \
	X("malloc_default") X("realloc_default") X("free_default") X("sdallocx_default") \
	/* Static in jemalloc: no prefix, even in a prefixed build. */ \
	X("prof_backtrace_impl") X("prof_alloc_prep") X("prof_tctx_create") X("imalloc") X("imalloc_body") \
	X("irallocx_prof") X("do_rallocx") X("do_realloc_nonnull") X("do_realloc_nonnull_zero")

/* How jemalloc's insides begin, after a prefix that ends in je_ (or none, in a static build with its own names). */
#define INTERNALS(X) \
	X("prof_backtrace") X("prof_tctx_create") X("prof_alloc_prep") X("prof_sample") X("prof_unwind") \
	X("imalloc") X("ialloc") X("ifree") X("arena_malloc") X("arena_ralloc") X("arena_palloc") X("large_malloc") \
	X("large_palloc") X("large_ralloc") X("tcache_alloc") X("malloc_slow") X("do_rallocx") X("do_realloc") \
	X("fallback_impl") X("operator_new")

/* How the shims of C++ and Rust (the __rustc:: ones since 1.87) begin. None of them calls code of others. */
#define SHIMS(X) \
	X("operator new") X("operator delete") \
	X("__rust_alloc") X("__rust_realloc") X("__rust_dealloc") X("__rust_no_alloc_shim") \
	X("__rg_alloc") X("__rg_realloc") X("__rg_dealloc") X("__rdl_alloc") X("__rdl_realloc") X("__rdl_dealloc") \
	X("__rustc::__rust_") X("__rustc::__rg_") X("__rustc::__rdl_") \
	X("alloc::alloc::alloc") X("alloc::alloc::realloc") X("alloc::alloc::dealloc") \
	X("alloc::alloc::exchange_malloc") X("alloc::alloc::Global") X("<alloc::alloc::Global") \
	X("std::alloc::") X("core::alloc::") \
	X("tikv_jemallocator::") X("jemallocator::") X("<tikv_jemallocator::") X("<jemallocator::")

/* C++'s allocators, before "<". Besides allocate() they have construct(), which calls everything. */
#define ALLOCATORS(X) \
	X("std::__new_allocator") X("std::allocator") X("std::allocator_traits") X("__gnu_cxx::new_allocator")

#define ITEM(name) name,
#define ITEM_BEFORE_BRACKET(name) name "<",

static const char *const entry_points[] = { ENTRY_POINTS(ITEM) };
static const char *const internals[] = { INTERNALS(ITEM) };
static const char *const shims[] = { SHIMS(ITEM) ALLOCATORS(ITEM_BEFORE_BRACKET) };

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* Skips a jemalloc prefix: nothing, je_, _rjem_, _rjem_je_, or some name_ that ends in je_. */
static const char *skip_prefix(const char *name, bool *ret_prefixed)
{
	static const char *const known[] = { "_rjem_je_", "__rjem_je_", "_rjem_", "__rjem_", "je_",
		                             "__libc_", "__je_", "tc_" };
	*ret_prefixed = false;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (starts_with(name, known[i])) {
			*ret_prefixed = true;
			return name + strlen(known[i]);
		}
	const char *je = strstr(name, "_je_");
	if (je && je - name < 32 && !memchr(name, ':', (size_t)(je - name)) &&
	    !memchr(name, ' ', (size_t)(je - name))) {
		*ret_prefixed = true;
		return je + 4;
	}
	return name;
}

bool function_is_allocator(const char *name)
{
	bool prefixed;
	/* Templates are demangled with what they return. */
	const char *bare = skip_prefix(name + (starts_with(name, "void* ") ? 6 : 0), &prefixed);
	size_t n = strcspn(bare, "(.@<");     /* arguments, .part.0, @plt */
	for (size_t i = 0; i < sizeof entry_points / sizeof *entry_points; i++)
		if (strlen(entry_points[i]) == n && !memcmp(entry_points[i], bare, n))
			return true;
	for (size_t i = 0; prefixed && i < sizeof internals / sizeof *internals; i++)
		if (starts_with(bare, internals[i]))
			return true;
	for (size_t i = 0; i < sizeof shims / sizeof *shims; i++)
		if (starts_with(name, shims[i]))
			return true;
	return strstr(name, " as core::alloc::global::GlobalAlloc>::") ||
	       strstr(name, " as core::alloc::Allocator>::");
}

bool function_is_unnamed(const char *name)
{
	const char *mark = strrchr(name, '!');
	if (!mark || (!starts_with(mark, "!0x") && !starts_with(mark, "!fn_")))
		return false;
	const char *digits = mark + (mark[1] == '0' ? 3 : 4);
	size_t n = strspn(digits, "0123456789abcdef");
	return n > 0 && digits[n] == '\0';
}

bool mapping_is_allocator(const char *path)
{
	const char *base = path_base(path);
	return starts_with(base, "libjemalloc") || starts_with(base, "libtcmalloc");
}

/*
 * What is cut there is a frame that matches as a whole and everything beneath it, wherever in the stack it stands: what
 * calls code of others, construct() for one, must not match. The first word is one of the list, which the others
 * follow, each behind a bar.
 */
#define OR(name) "|" name
#define PREFIXES "[^: ]{0,31}_je_|__?rjem_|je_|__libc_|tc_"

const char allocator_drop_frames[] =
	"(void[*] )?(" PREFIXES ")?(malloc" ENTRY_POINTS(OR) ")([.(@<].*)?"
	"|(void[*] )?(" PREFIXES ")(imalloc" INTERNALS(OR) ").*"
	"|(operator new" SHIMS(OR) ").*"
	"|(std::allocator" ALLOCATORS(OR) ")<.*>::allocate.*"
	"|.* as core::alloc::(global::GlobalAlloc|Allocator)>::.*"
	"|lib(je|tc)malloc[^!]*!(0x|fn_).*";

bool location_is_allocator(const struct profile *p, uint32_t location)
{
	const struct location *l = &p->locations[location];
	if (l->mapping != PROFILE_NONE &&
	    mapping_is_allocator(profile_text(p, p->mappings[l->mapping].file)))
		return true;
	/* Inlined frames: the location goes only when all of it is the allocator's. */
	for (uint32_t i = 0; i < l->n_lines; i++) {
		const struct function *f = &p->functions[p->lines[l->first_line + i].function];
		if (!function_is_allocator(profile_text(p, f->name)))
			return false;
	}
	return l->n_lines > 0;
}

size_t allocator_leaf_frames(const uint8_t *flags, size_t n)
{
	size_t cut = 0;
	for (size_t i = 0; i < n && i < ALLOCATOR_MAX_FRAMES; i++) {
		if (flags[i] & FRAME_ALLOCATOR)
			cut = i + 1;
		else if (!(flags[i] & FRAME_UNNAMED))
			break;
	}
	return cut == n && n > 0 ? n - 1 : cut;
}

static uint8_t frame_flags(const struct profile *p, uint32_t location)
{
	const struct location *l = &p->locations[location];
	if (location_is_allocator(p, location))
		return FRAME_ALLOCATOR;
	if (l->n_lines == 0)
		return FRAME_UNNAMED;
	const struct function *f = &p->functions[p->lines[l->first_line].function];
	return function_is_unnamed(profile_text(p, f->name)) ? FRAME_UNNAMED : 0;
}

/* A location whose innermost lines are shims inlined into user code loses those lines. */
static void trim_inlined(struct profile *p, uint32_t location)
{
	struct location *l = &p->locations[location];
	while (l->n_lines > 1) {
		const struct function *f = &p->functions[p->lines[l->first_line].function];
		if (!function_is_allocator(profile_text(p, f->name)))
			break;
		l->first_line++;
		l->n_lines--;
	}
}

int profile_trim_allocator(struct profile *p, struct error *err)
{
	uint8_t *flags = malloc(p->n_locations ? p->n_locations : 1);
	if (!flags)
		return error_nomem(err, "trimming");
	for (size_t i = 0; i < p->n_locations; i++)
		flags[i] = frame_flags(p, (uint32_t)i);
	for (size_t i = 0; i < p->n_stacks; i++) {
		struct stack *s = &p->stacks[i];
		uint8_t leaf[ALLOCATOR_MAX_FRAMES];
		size_t n = s->n < ALLOCATOR_MAX_FRAMES ? s->n : ALLOCATOR_MAX_FRAMES;
		for (size_t k = 0; k < n; k++)
			leaf[k] = flags[p->frames[s->first + k]];
		size_t cut = allocator_leaf_frames(leaf, n);
		if (cut == 0 && s->n == 1)
			continue;
		s->first += cut;
		s->n -= (uint32_t)cut;
		if (s->n > 0)
			trim_inlined(p, p->frames[s->first]);
	}
	free(flags);
	/* Stacks may now be equal to each other, and no longer what the index holds. */
	index_finish(&p->stack_index);
	return E_OK;
}
