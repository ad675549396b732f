/*
 * Between the files that read DWARF 2 to 5 (dwarf_*.c). Nobody else includes this; dwarf_join.h is the way in.
 *
 *   dwarf_join.c    addresses -> units; units -> threads; nodes -> frames
 *   dwarf_units.c   the units of a file: headers, what their first entry says, .debug_aranges
 *   dwarf_abbrev.c  abbreviations, compiled to what a walk needs to step over an entry at once
 *   dwarf_form.c    values of attributes: numbers, strings, addresses, references
 *   dwarf_ranges.c  range lists
 *   dwarf_scan.c    one walk over a unit's entries -> code nodes of the asked addresses
 *   dwarf_lines.c   a unit's line program, run past the asked addresses
 *   dwarf_names.c   code nodes -> names, scopes, places they are called from
 *   dwarf_split.c   .dwo and .dwp files
 *   dwarf_keep.c    what is kept of units when a few addresses are asked again and again
 *
 * All of it is written by strangers. Readers may run over a section's end by less than SPAN_SLACK and look once an entry whether they
 * did; offsets are checked before they are followed; walks only go forward; and what could still be asked for too often (lists
 * that many entries point to, tables that many units share) is paid for out of a budget that real files need a small part of.
 */
#ifndef SYMBOL_DWARF_H
#define SYMBOL_DWARF_H

#include <stdatomic.h>

#include "base/memory.h"
#include "symbol/dwarf_join.h"
#include "symbol/intervals.h"

#define NODE_NONE UINT32_MAX
#define NODES_MAX ((size_t)1 << 26)
#define NAME_BYTES_MAX ((size_t)64 << 10)       /* longer names are damage */
#define RECENT_NAMES 2048
#define TEXT_COST 8u                             /* of the budget, for each byte of a text that is put together and kept */
#define ORIGINS_MAX 16                          /* steps from an entry to the one that has its name */

/* --- bytes ------------------------------------------------------------------ */

static inline uint16_t read_u16(const uint8_t *p, bool swapped)
{
	uint16_t v;
	memcpy(&v, p, sizeof v);
	return swapped ? __builtin_bswap16(v) : v;
}

static inline uint32_t read_u32(const uint8_t *p, bool swapped)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return swapped ? __builtin_bswap32(v) : v;
}

static inline uint64_t read_u64(const uint8_t *p, bool swapped)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return swapped ? __builtin_bswap64(v) : v;
}

/* Of 1, 2, 4 or 8 bytes. */
uint64_t read_sized(const uint8_t *p, unsigned bytes, bool swapped);

/* At most ten bytes of a number are looked at, so it ends inside the slack. */
static inline uint64_t read_uleb(const uint8_t **at)
{
	const uint8_t *p = *at;
	uint64_t value = *p++;
	if (__builtin_expect(value < 0x80, 1)) {
		*at = p;
		return value;
	}
	value &= 0x7f;
	for (unsigned shift = 7; shift < 70; shift += 7) {
		uint8_t byte = *p++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			break;
	}
	*at = p;
	return value;
}

static inline int64_t read_sleb(const uint8_t **at)
{
	const uint8_t *p = *at;
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte = 0x80;
	for (; shift < 70 && byte >= 0x80; shift += 7) {
		byte = *p++;
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
	}
	if (shift < 64 && (byte & 0x40))
		value |= ~(uint64_t)0 << shift;
	*at = p;
	return (int64_t)value;
}

static inline void skip_leb(const uint8_t **at)
{
	const uint8_t *p = *at;
	for (unsigned i = 0; i < 10 && *p++ >= 0x80; i++)
		continue;
	*at = p;
}

/* --- what is allowed ------------------------------------------------------------ */

struct budget {
	uint64_t left;               /* in units of about a nanosecond of work */
	bool exceeded;
};

static inline bool spend(struct budget *b, uint64_t amount)
{
	if (b->left < amount)
		b->exceeded = true;
	else
		b->left -= amount;
	return !b->exceeded;
}

/* --- files and units ---------------------------------------------------------- */

enum unit_type { UNIT_COMPILE = 1, UNIT_TYPE, UNIT_PARTIAL, UNIT_SKELETON, UNIT_SPLIT_COMPILE, UNIT_SPLIT_TYPE };

struct dwarf_file;
struct kept_unit;

/* An attribute's value, not yet looked at. */
struct attribute {
	uint16_t name, form;         /* form 0: the entry does not have it */
	int64_t implicit;            /* of DW_FORM_implicit_const */
	const uint8_t *at;
};

struct unit {
	struct dwarf_file *file;
	uint64_t offset, end;                /* in the file's DEBUG_INFO */
	uint64_t first_entry;
	uint64_t abbrevs;                    /* offset of its abbreviations */
	uint64_t id;                         /* of a split unit and its skeleton; 0: none */
	uint16_t version;
	uint8_t address_bytes, offset_bytes, type;
	bool in_aranges;
	/* From its first entry; written once, under the file's lock, before rooted. */
	atomic_bool rooted;                  /* release and acquire: what follows is there */
	bool has_lines, is_partial;          /* partial: only a place for others to refer to (dwz) */
	uint16_t language;
	uint64_t low, lines;
	uint64_t strings_base, addresses_base, ranges_base, ranges_offset;
	const char *name, *folder, *split_name;
	struct attribute low_pc, high_pc, ranges;
	const struct unit *skeleton;         /* of a split unit: has its addresses */
	const struct unit *split;            /* of a skeleton: the unit with its tree, or NULL; guarded by the lock of the split files */
	bool asked_split;                    /* likewise: split tells */
	struct kept_unit *kept;              /* NULL: nothing */
	/* Addresses asked: asked[first_asked .. first_asked + n_asked) of the join. */
	size_t first_asked, n_asked;
};

struct dwarf_file {
	struct debug_sections *sections;
	struct span info, abbrev, line, str, line_str, ranges, rnglists, addr, str_offsets;
	bool swapped, is_split;
	struct unit *units;
	size_t n_units, units_capacity;
	struct dwarf_file *alt;              /* dwz's common file, or NULL */
	pthread_mutex_t lock;                /* for reading units' first entries, and roots */
	struct budget roots;
};

/* One asked address of a unit. */
struct asked {
	uint64_t address;
	uint32_t index;
};

/* The first of n addresses >= value. */
static inline size_t asked_lower_bound(const struct asked *items, size_t n, uint64_t value)
{
	size_t low = 0;
	while (n > 0) {
		size_t half = n / 2;
		bool right = items[low + half].address < value;
		low += right ? half + 1 : 0;
		n = right ? n - half - 1 : half;
	}
	return low;
}

/* --- abbreviations --------------------------------------------------------------- */

/* How to get over an entry's attributes. */
enum step_kind {
	STEP_UNKNOWN,                /* no such abbreviation: damage */
	STEP_FIXED,                  /* size bytes */
	STEP_BLOCK,                  /* size bytes, a counted block, then more bytes */
	STEP_STRING,                 /* the same with a text that ends in NUL */
	STEP_NUMBER,                 /* the same with a LEB128 number */
	STEP_GENERAL,                /* anything else: by its operations */
};

enum step_class {
	ENTRY_PLAIN,                 /* its attributes don't matter */
	ENTRY_SCOPE,                 /* has no code, but entries below that may: walked into always */
	ENTRY_FUNCTION,              /* a function with code */
	ENTRY_INLINED,               /* an inlined call with code */
	ENTRY_BLOCK,                 /* a lexical block with code */
};

struct step {
	uint16_t size;
	uint8_t kind, entry;
	bool children;
	uint8_t more;                /* bytes behind the one of variable size */
	uint8_t back;                /* from the entry's end back to a sibling's four-byte reference; 0: it has none there */
};

/* What a walk wants to know of entries with code. */
enum wanted { WANT_LOW, WANT_HIGH, WANT_RANGES, WANT_SIBLING, WANT_ORIGIN, WANT_CALL_FILE, WANT_CALL_LINE, WANT_CALL_COLUMN, WANTED };

struct operation {
	uint8_t kind, want;
	uint16_t form;
	uint32_t bytes;              /* fixed ones */
	int64_t implicit;
};

struct abbrev {
	const uint8_t *spec;         /* its pairs of attribute and form */
	uint32_t operations;         /* index of the first */
	uint16_t tag;
	bool known, children;
};

/* Of one unit, or of several that share it. */
struct abbrevs {
	const struct dwarf_file *file;
	uint64_t offset;
	uint8_t address_bytes, offset_bytes;
	uint16_t version;
	bool compiled;                       /* steps and operations are there, too */
	struct abbrev *items;    size_t n, items_capacity;       /* by code */
	struct step *steps;      size_t steps_capacity;
	struct operation *operations; size_t n_operations, operations_capacity;
};

/* --- one thread's work ---------------------------------------------------------------- */

/* A function or an inlined call whose code has some of the addresses. */
struct node {
	const struct unit *unit;
	uint64_t entry;              /* offset of its entry in the unit's file */
	uint64_t origin;             /* as the attribute has it: see origin_form */
	uint64_t code;               /* functions: where their code begins */
	uint32_t parent;             /* the node it was inlined into; NODE_NONE for a function */
	uint32_t call_file, call_line, call_column;
	uint32_t asked;              /* index of the first of its addresses */
	uint16_t origin_form;        /* 0: none */
	bool used;                   /* some address ended up in it */
	/* Filled by names_of_unit(): */
	bool is_linkage;
	uint32_t start_line;
	uint32_t name, scope, call_path;     /* texts */
};

/* What is known of one address. Each belongs to one unit, so to one thread, at a time. */
struct place {
	uint32_t node;               /* innermost, of that thread; NODE_NONE */
	uint16_t thread;                     /* whose node that is */
	uint16_t line_thread;                /* whose text the path is */
	bool has_line;
	uint32_t line, column, path;
};

/* What an entry and its origins are called. */
struct entry_name {
	const struct dwarf_file *file;
	uint64_t offset;
	const char *name;
	uint32_t text;                           /* the name's */
	const struct dwarf_file *scope_file;     /* the entry that stands in the function's scope */
	uint64_t scope_offset;
	uint32_t start_line;
	bool is_linkage;
};

/* Where the out-of-line code of an inlined function begins. */
struct concrete {
	const struct dwarf_file *file;
	uint64_t origin, code;
};

struct arena_block;

struct dwarf_worker {
	struct dwarf_join *join;
	uint16_t number;
	struct node *nodes;      size_t n_nodes, nodes_capacity;
	struct abbrevs abbrevs;              /* compiled: of the unit that is walked */
	struct abbrevs *others;  size_t n_others, others_capacity;      /* only looked up in */
	struct index other_index;
	struct entry_name *names; size_t n_names, names_capacity;
	struct index name_index;
	uint32_t recent_names[RECENT_NAMES]; /* by hash: the index + 1 of the one that was asked for last */
	struct concrete *concretes; size_t n_concretes, concretes_capacity;
	const struct kept_unit *kept;        /* of the unit that is worked on: has its concretes; NULL: nothing is kept */
	struct dwarf_text *texts; size_t n_texts, texts_capacity;
	struct index text_index;             /* of names, by where they stand */
	struct arena_block *arena;
	size_t arena_left;
	struct budget budget;
	bool damaged;
	bool no_memory;
};

/* --- dwarf_form.c --- */

/* One LEB128 number: itself, an index or an offset. */
bool form_is_leb(unsigned form);
/* Bytes of a value of that form, or -1 when they vary. */
int form_bytes(unsigned form, const struct unit *u);
/* Over a value; NULL when it is of an unknown form or runs past end. */
const uint8_t *form_skip(unsigned form, const uint8_t *p, const uint8_t *end, const struct unit *u);
/* Numbers of any kind, offsets and indexes as they stand there; 0 for what is no number. Moves *p. */
uint64_t form_number(unsigned form, int64_t implicit, const uint8_t **p, const struct unit *u);
uint64_t attribute_number(const struct attribute *a, const struct unit *u);
/* Ends inside its section or the slack behind it; else NULL. It may be absurdly long. */
const char *form_string(unsigned form, const uint8_t *p, const struct unit *u);
bool form_is_address_index(unsigned form);
/* A unit's address by its index; false when it is past the table. */
bool unit_address(const struct unit *u, uint64_t index, uint64_t *ret);
/* The entry that a reference means; false when it is none that can be followed. */
bool form_reference(unsigned form, uint64_t value, const struct unit *u, const struct dwarf_file **ret_file, uint64_t *ret_offset);

/* --- dwarf_abbrev.c --- */

/* The abbreviations of u; NULL when they are damaged, or out of memory. compiled: with steps; valid until the next compiled ones. */
const struct abbrevs *abbrevs_of(struct dwarf_worker *w, const struct unit *u, bool compiled);
void abbrevs_finish(struct abbrevs *a);
/* One declaration without a table: for the first entry of a unit. False when there is none of that code. */
bool abbrev_find(const struct unit *u, uint64_t code, struct budget *budget, struct abbrev *ret);
/* The next attribute of an entry: *spec and *p move on. False at the end, or at damage. */
bool attribute_next(const struct unit *u, const uint8_t **spec, const uint8_t **p, struct attribute *ret);

/* --- dwarf_units.c --- */

int dwarf_file_open(struct dwarf_file *f, struct debug_sections *sections, struct error *err);
/* The units of a part of its DEBUG_INFO, from a whole file that stays open. */
int dwarf_file_part(struct dwarf_file *f, const struct dwarf_file *whole, struct span info, struct error *err);
void dwarf_file_close(struct dwarf_file *f);
/* The unit that begins there, or NULL. */
struct unit *unit_beginning(const struct dwarf_file *f, uint64_t offset);
/* The unit an offset lies in, or NULL. */
struct unit *unit_at(const struct dwarf_file *f, uint64_t offset);
/* Reads its first entry, once. */
void unit_root(struct unit *u);
/* Calls found() for each entry of .debug_aranges whose unit exists. */
typedef bool arange_found(void *context, struct unit *u, uint64_t low, uint64_t high);
void dwarf_aranges(struct dwarf_file *f, arange_found *found, void *context);

/* --- dwarf_ranges.c --- */

struct range_list {
	const struct unit *unit;
	const uint8_t *at, *end;
	uint64_t base;
	uint64_t low, high;          /* of a plain range */
	uint8_t kind;                /* 0: nothing more, 1: one range, 2: .debug_ranges, 3: .debug_rnglists */
};

/* The ranges of an entry, from its attributes (form 0: absent). */
void ranges_begin(struct range_list *l, const struct unit *u, const struct attribute *low, const struct attribute *high,
                  const struct attribute *ranges);
bool ranges_next(struct range_list *l, uint64_t *ret_low, uint64_t *ret_high);

/* --- dwarf_scan.c --- */

/* tree: u itself, or its split unit. */
void scan_unit(struct dwarf_worker *w, const struct unit *tree, const struct asked *asked, size_t n);
/* Finds all functions of k->tree; everywhere: as of the second walk. False when that can't be done. */
bool scan_functions(struct dwarf_worker *w, struct kept_unit *k, bool everywhere);
/* What scan_unit() does, by the functions that were found. */
void scan_kept(struct dwarf_worker *w, struct kept_unit *k, const struct asked *asked, size_t n);
/*
 * One walk over u that goes down only where one of the entries is: sorted offsets. For each that is found, the offsets of the entries it
 * lies in, outermost first, without the unit's own; not for those deeper than SCOPES_MAX.
 */
#define SCOPES_MAX 64
typedef void path_found(void *context, size_t entry, const uint64_t *path, size_t n);
void scan_paths(struct dwarf_worker *w, const struct unit *u, const uint64_t *entries, size_t n, path_found *found, void *context);
bool language_has_scopes(unsigned language);

/* --- dwarf_lines.c --- */

struct line_table {
	const struct unit *unit;
	const uint8_t *program, *end;
	const char **folders;    size_t n_folders, folders_capacity;
	struct line_file *files; size_t n_files, files_capacity;
	uint16_t version;
	uint8_t least_bytes, opcode_base, line_range, address_bytes, offset_bytes;
	int8_t line_base;
	bool no_memory;
	const uint8_t *lengths;      /* of standard opcodes */
	uint32_t serial;             /* of the question, when it is kept; else 0 */
};

struct line_file {
	const char *name;
	uint64_t folder;
	uint32_t path;               /* DWARF_NO_TEXT, or of another question: not put together yet */
	uint32_t serial;             /* of the question that path is of */
};

/* Rows that stand together, in ascending order: where to go on behind the first of them, and what that said. */
struct chunk {
	const uint8_t *from, *to;    /* to: behind the first row that is no more of them */
	uint64_t address;
	uint32_t file, line, column;
};

/* False when u has no lines, or they are damaged. line_table_finish() in any case. */
bool lines_begin(struct dwarf_worker *w, const struct unit *u, struct line_table *t);
void lines_run(struct dwarf_worker *w, struct line_table *t, const struct asked *asked, size_t n);
/* Cuts the program into chunks; false when that can't be done. */
bool lines_cut(struct dwarf_worker *w, struct kept_unit *k);
/* What lines_run() does, by the chunks. */
void lines_run_kept(struct dwarf_worker *w, struct kept_unit *k, const struct asked *asked, size_t n);
/* The path of a file by its number: a text, or DWARF_NO_TEXT. */
uint32_t lines_path(struct dwarf_worker *w, struct line_table *t, uint64_t file);
void line_table_finish(struct line_table *t);

/* --- dwarf_names.c --- */

void sort_concretes(struct concrete *all, size_t n);
/* Names the nodes from first on that are used. t (may be NULL): the files they are called from. */
void names_of_nodes(struct dwarf_worker *w, size_t first, struct line_table *t);

/* --- dwarf_split.c --- */

struct split_files;
/* The unit with the tree of a skeleton; NULL when its file can't be had. */
const struct unit *split_unit(struct dwarf_worker *w, struct unit *skeleton);
struct split_files *split_files_new(void);
/* Is some section of those that were opened more than there is memory for? */
bool split_files_too_big(const struct split_files *s);
void split_files_free(struct split_files *s);

/* --- dwarf_keep.c --- */

/* Of a unit that few addresses were asked of. */
struct kept_unit {
	const struct unit *tree;
	/* By the first walk, and by the one that goes everywhere; the value: their entry, from the unit's beginning. */
	struct intervals functions[2];
	bool scanned[2], stepped_over;       /* stepped_over: by the first walk */
	struct concrete *concretes; size_t n_concretes;     /* sorted */
	bool has_lines;
	struct line_table lines;
	struct intervals rows;               /* the value: which of chunks */
	struct chunk *chunks;    size_t n_chunks, chunks_capacity;
	bool damaged;                        /* reading it met damage: whatever it is asked */
	bool cannot;                         /* it can't be kept: read it as if nothing were */
};

/* What work_on_unit() does, by what is kept. False when nothing can be. */
bool kept_work(struct dwarf_worker *w, struct unit *u, int parts);
/* Forgets everything that is kept, if it is too much. */
void kept_trim(struct dwarf *d);
void kept_forget(struct dwarf *d);

/* --- dwarf_join.c --- */

struct kept {
	struct abbrevs **tables; size_t n_tables, tables_capacity;
	struct index table_index;
	struct intervals claims[2];          /* the value: which of the units; [1]: what .debug_aranges may have left out */
	bool claimed[2], cannot_claim;
	uint64_t bytes, limit;               /* roughly */
	uint32_t serial;                     /* of the question */
};

struct dwarf {
	struct dwarf_input in;
	struct dwarf_file main, alt;
	struct split_files *split;           /* has a lock of its own */
	struct kept kept;                    /* one thread's, since only few addresses use it */
};

struct dwarf_join {
	struct dwarf *dwarf;
	const struct dwarf_question *question;
	struct dwarf_file *main;
	const uint64_t *addresses;
	size_t n;
	struct asked *asked;                 /* by unit */
	struct place *places;                /* per address */
};

enum { WORK_TREE = 1, WORK_LINES = 2 };

/* Nodes that some address ended up in get their mark. */
void mark_used(struct dwarf_worker *w, const struct asked *asked, size_t n);
/* 8-aligned memory that lives as long as the result; NULL: out of memory, which is remembered. */
void *worker_memory(struct dwarf_worker *w, size_t bytes);
/* A text of the worker's table. DWARF_NO_TEXT: out of memory, which is remembered. */
uint32_t worker_text(struct dwarf_worker *w, const char *at, bool is_name);
/* The same for a name that may be there already. */
uint32_t worker_name(struct dwarf_worker *w, const char *at);
/* Can code be there? What the linker threw away is left at addresses 0, 1, -1, -2. */
bool join_has_code(const struct dwarf_join *j, uint64_t address);
/* Is the i-th address in a function, as far as symbols tell? Padding is in none. */
bool join_is_function(const struct dwarf_join *j, size_t i);

#endif
