/*
 * Whole-profile operations. Frames are matched by (build id or path, offset in the
 * file) and, between different builds, by function name after symbolization.
 */
#ifndef PROFILE_OPERATIONS_H
#define PROFILE_OPERATIONS_H

#include "profile/profile.h"

/*
 * One profile holding the samples of all, each under its own source. Types are matched by name; only
 * those all have are kept (E_USAGE when none is). Inputs are left as they were.
 * E_USAGE with a sentence pointing to `diff` and `leaks` when two are of one process: a gauge is
 * never added up over time.
 */
int profile_merge(struct profile *const *inputs, size_t n, struct profile **ret, struct error *err);

/*
 * Profiles side by side, which may be moments of one process: nothing is added up, each has its own sources, and these say
 * by their number (source.snapshot) which of the inputs they are of. Types as in profile_merge. E_USAGE when no type is common.
 */
int profile_series(const struct profile *const *inputs, size_t n, struct profile **ret, struct error *err);

/* base's samples are marked (source.base); views then show now - base. E_USAGE when no type is common. */
int profile_diff(const struct profile *base, const struct profile *now, struct profile **ret,
                 struct error *err);

/* Same process, by identity and by pid where both are known. False when it can't be told. */
bool profile_same_process(const struct profile *a, const struct profile *b);

/*
 * Is [start, limit) what a file can have had in memory? Some writers of pprof don't know and put 0 and 0, or 0 and
 * 2^64 - 1. Of those that begin at 0 all addresses are the file's own, as its symbol table has them: google/pprof
 * reads them so too, and jemalloc_pprof (Rust) relies on it.
 */
bool mapping_has_extent(const struct mapping *m);
bool mapping_is_file_space(const struct mapping *m);

/*
 * Is this frame the allocator's own, or a language's shim over it? By mapping (libjemalloc) or by
 * function name (any prefix: je_, _rjem_je_, ...). Used for trimming at the leaf.
 */
bool location_is_allocator(const struct profile *p, uint32_t location);
bool function_is_allocator(const char *name);
bool mapping_is_allocator(const char *path);

/* Is that what stands for a name nobody knows: "binary!0x1234", or "binary!fn_1230" where only the function's start is known? */
bool function_is_unnamed(const char *name);

/* How deep from the leaf the allocator is looked for, and what is known of a frame there. */
#define ALLOCATOR_MAX_FRAMES 24
enum { FRAME_ALLOCATOR = 1, FRAME_UNNAMED = 2 };
/*
 * How many frames at the leaf to cut, given their flags (leaf first): up to the last allocator frame that only
 * allocator or unnamed frames (a stripped jemalloc's insides) precede. Never all of them.
 */
size_t allocator_leaf_frames(const uint8_t *flags, size_t n);

/*
 * The same as regular expression text for pprof's drop_frames, which must match a whole name. POSIX's extended syntax and
 * RE2's.
 */
extern const char allocator_drop_frames[];

/* Stacks cut at the leaf: allocator frames removed for good (a converter's --trim). In place. */
int profile_trim_allocator(struct profile *p, struct error *err);

#endif
