/*
 * From the PROFILEs of a command line to one profile with names.
 */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H

#include "cli/settings.h"
#include "profile/profile.h"

/* What jemalloc's file names tell: <prefix>.<pid>.<seq>.f.heap, or .i<n>, .m<n>, .u<n> for f. */
struct dump_name {
	uint64_t pid, seq;
	char kind;                  /* f: at exit, i: by allocated bytes, m: asked for, u: new maximum */
};

/* path may have folders before the name; false when it is not such a name. */
bool dump_name_parse(const char *path, struct dump_name *ret);

/*
 * Reads every path (or "-"), with s->base subtracts that one, with s->merge adds up different processes.
 * Frames stay unnamed. Texts for the user (whole lines) are added to warnings.
 * Several paths without merge, two dumps of one process, and "-" twice are E_USAGE.
 */
int load_profiles(const struct load_settings *s, char *const *paths, size_t n,
                  struct buf *warnings, struct profile **ret, struct error *err);

/*
 * The same side by side, for the web page: each path is a snapshot of its own (profile_series), oldest first where times are known;
 * with s->merge they are one. *ret_base: the snapshot that is s->base, the first one, or PROFILE_NONE.
 */
int load_snapshots(const struct load_settings *s, char *const *paths, size_t n, struct buf *warnings, struct profile **ret,
                   uint32_t *ret_base, struct error *err);

/* E_USAGE when "-" is there twice. */
int load_check_paths(const struct load_settings *s, char *const *paths, size_t n, struct error *err);
/* One of them, unnamed; joined: it will be put together with others. */
int load_input(const struct load_settings *s, const char *path, bool joined, struct buf *warnings, struct profile **ret,
               struct error *err);
/*
 * Oldest first: by jemalloc's numbers when all are dumps of one process with its names, else by time; as they are when neither tells.
 * Equal ones keep their order. What they were ordered by, in words; NULL when none was moved.
 */
const char *load_order(struct profile **inputs, size_t n);

/* Just one file, unnamed. */
int load_one(const struct load_settings *s, const char *path, struct buf *warnings,
             struct profile **ret, struct error *err);

/* Names the frames as s asks for; kept apart so that build ids can come first. */
int load_symbols(const struct load_settings *s, struct profile *p, struct buf *warnings,
                 struct error *err);
/* What symbol.h wants to know. */
struct symbol_options load_symbol_options(const struct load_settings *s);

#endif
