/*
 * Names for addresses. Batch in, batch out: all addresses of one binary are asked at
 * once, and the answers are kept and nothing else. Behind this header: finding the file that matches a
 * mapping, a cache of answers, and workers without rights that read ELF symbol tables and DWARF.
 */
#ifndef SYMBOL_SYMBOL_H
#define SYMBOL_SYMBOL_H

#include "base/buf.h"
#include "base/error.h"
#include "profile/profile.h"
#include "symbol/debuginfod.h"
#include "symbol/demangle.h"

enum symbol_depth {
	SYMBOL_NONE,         /* binary!0xoffset only */
	SYMBOL_TABLE,        /* .symtab and .dynsym */
	SYMBOL_FULL,         /* and file:line and inlined functions from DWARF */
};

struct symbol_options {
	enum symbol_depth depth;
	const char *binary;          /* --binary: use this file for the main program */
	const char *const *search;   /* --debug-dir: further directories, NULL-terminated; may be NULL */
	const char *sysroot;         /* --sysroot: paths of binaries and debug files are below it; NULL: "/" */
	struct debuginfod *debuginfod;       /* asked when no file is at hand; NULL: never */
	bool no_cache;               /* --no-cache: neither ask nor write the answer cache */
	enum demangle_mode demangle; /* of frames' function; system_name is always the linked one */
	const char *perf_map;        /* --perf-map: names of code outside files; NULL: none */
	uint64_t memory_limit;       /* --memory-limit: bytes that reading one binary may take; 0: SANDBOX_MEMORY */
	uint32_t timeout_ms;         /* of reading in all; 0: WORKER_TIMEOUT_MS */
};

/* One frame of an answer; names are demangled, borrowed until the answers are freed. */
struct symbol_frame {
	const char *function;        /* NULL: unknown */
	const char *system_name;     /* mangled; NULL when the same */
	const char *file;            /* NULL: unknown */
	uint32_t line, column, start_line;
	bool is_start;               /* function is no name but says where the function begins: "fn_2a300" */
};

/* Answers for n addresses, in the order asked. */
struct symbol_answers {
	size_t n;
	bool damaged;                       /* not all of the debug information could be read */
	struct error poor;                  /* code 0, or why names are those of symbol tables, without lines and inlined functions; "PATH: ..." */
	void *storage;
};

#define SYMBOL_FRAMES_MAX 512               /* no address has more */

/* Frames of the i-th address, innermost inlined function first, into room for SYMBOL_FRAMES_MAX; 0: unknown. From any thread. */
size_t symbol_answer(const struct symbol_answers *a, size_t i, struct symbol_frame *ret);
/* The i-th and those behind it will be asked for next: what lies all over memory for them is fetched meanwhile. */
void symbol_answer_expect(const struct symbol_answers *a, size_t i);

/*
 * Resolves file offsets in the binary at path. build_id (hex, may be "") must equal the file's when both have one:
 * E_FORMAT otherwise ("... is not the file the profile was taken from"), or when reading it crashed. An unreadable file is E_IO,
 * one that takes too long, or whose names are beyond all measure, E_LIMIT. If only its debug information is so, answers are poor.
 */
int symbol_resolve(const char *path, const char *build_id, const uint64_t *file_offsets, size_t n,
                   enum symbol_depth depth, const struct symbol_options *o,
                   struct symbol_answers *ret, struct error *err);
/* The same for the file's own virtual addresses, as nm prints them. */
int symbol_resolve_addresses(const char *path, const char *build_id, const uint64_t *addresses, size_t n,
                             enum symbol_depth depth, const struct symbol_options *o,
                             struct symbol_answers *ret, struct error *err);
void symbol_answers_finish(struct symbol_answers *a);

/*
 * The same again and again, for whoever waits for an answer before the next question: what is read for one is kept for the
 * next, in a worker that stays. Questions of a few addresses (64) gain most. From one thread, which lives as long as the talk.
 */
struct symbol_talk;
/* What o points to stays the caller's. Nothing is read yet but the file's headers. */
int symbol_talk_begin(struct symbol_talk **ret, const char *path, const char *build_id, enum symbol_depth depth,
                      const struct symbol_options *o, struct error *err);
/* As symbol_resolve_addresses(). Answers are finished before the talk ends. */
int symbol_talk_ask(struct symbol_talk *t, const uint64_t *addresses, size_t n, struct symbol_answers *ret, struct error *err);
void symbol_talk_end(struct symbol_talk *t);

/*
 * Names every location of the profile that has no lines yet. What cannot be read leaves its frames
 * unnamed and one line in warnings (may be NULL) a binary. Afterwards, locations still without a
 * function get one named "binary!0xoffset", so that every viewer shows something.
 */
int symbol_profile(struct profile *p, const struct symbol_options *o, struct buf *warnings,
                   struct error *err);

/* Fills build ids of the mappings whose files exist and have code where the profile has it mapped. */
int symbol_build_ids(struct profile *p, const struct symbol_options *o, struct buf *warnings,
                     struct error *err);

#endif
