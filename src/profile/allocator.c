/*
 * Which frames are the allocator's own. A heap profile's stacks all begin (at the leaf) inside
 * malloc; nobody wants to read that. By mapping when jemalloc is a library, by name when it is
 * linked in, whatever prefix it was given.
 */
#include "profile/operations.h"

#include <stdlib.h>
#include <string.h>

/* Entry points; a prefix (je_, _rjem_, __rjem_je_, tc_, ...) may stand before them. */
static const char *const entry_points[] = {
	"malloc", "calloc", "realloc", "free", "cfree", "memalign", "posix_memalign", "aligned_alloc",
	"valloc", "pvalloc", "mallocx", "rallocx", "xallocx", "sallocx", "dallocx", "sdallocx",
	"nallocx", "malloc_default", "realloc_default", "reallocarray", "newImpl",
	/* Static in jemalloc: no prefix, even in a prefixed build. */
	"prof_backtrace_impl", "prof_alloc_prep", "prof_tctx_create", "imalloc", "imalloc_body",
	"irallocx_prof", "do_rallocx",
};

/* jemalloc's insides, after a prefix that ends in je_ (or none, in a static build with its own names). */
static const char *const internals[] = {
	"prof_backtrace", "prof_tctx_create", "prof_alloc_prep", "prof_sample", "prof_unwind",
	"imalloc", "ialloc", "ifree", "arena_malloc", "arena_ralloc", "arena_palloc", "large_malloc",
	"large_palloc", "tcache_alloc", "malloc_slow", "do_rallocx", "fallback_impl", "operator_new",
};

static const char *const shims[] = {
	"operator new",                       /* C++ */
	"std::__new_allocator", "std::allocator<", "std::allocator_traits<", "__gnu_cxx::new_allocator",
	"fallbackNewImpl", "newImpl", "handleOOM",
	"__rust_alloc", "__rust_realloc", "__rg_alloc", "__rg_realloc", "__rdl_alloc", "__rdl_realloc",
	"__rust_no_alloc_shim", "__rustc::",  /* Rust, the latter since 1.87 */
	"alloc::alloc::alloc", "alloc::alloc::realloc", "alloc::alloc::exchange_malloc",
	"alloc::alloc::Global", "<alloc::alloc::Global", "std::alloc::", "core::alloc::",
	"tikv_jemallocator::", "jemallocator::", "<tikv_jemallocator::", "<jemallocator::",
};

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
	const char *bare = skip_prefix(name, &prefixed);
	size_t n = strcspn(bare, "(.@");      /* arguments, .part.0, @plt */
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

bool mapping_is_allocator(const char *path)
{
	const char *base = path_base(path);
	return starts_with(base, "libjemalloc") || starts_with(base, "libtcmalloc");
}

const char allocator_drop_frames[] =
	"(.*je_|_rjem_|__rjem_|tc_|__libc_)?(malloc|calloc|realloc|free|memalign|posix_memalign|"
	"aligned_alloc|valloc|pvalloc|mallocx|rallocx|xallocx|reallocarray|malloc_default)"
	"|.*je_(prof_|imalloc|ialloc|arena_|large_|tcache_|malloc_slow).*"
	"|operator new.*|__rust_(re)?alloc.*|__rdl_(re)?alloc.*|__rg_(re)?alloc.*"
	"|alloc::alloc::.*|libjemalloc\\.so.*|libtcmalloc.*";

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
	return strstr(profile_text(p, f->name), "!0x") ? FRAME_UNNAMED : 0;
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
