/*
 * An inverted join: the table is streamed once and each symbol looked up among the addresses,
 * so nothing is sorted or stored but the best candidate of each address. Where a few addresses are asked again and again, the
 * table is sorted once, and those symbols alone are streamed that can matter: what covers an address, and what begins last before it.
 */
#include "symbol/symtab.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "symbol/demangle.h"

/* Covering pairs we are ready to look at: damaged tables may have every symbol cover everything. */
#define PAIRS_BASE 1000000
#define PAIRS_PER_ADDRESS 200
#define NAME_BYTES_MAX 65536
#define COMPARED_BYTES 1024
#define SECTIONS_MAX (1u << 20)
#define BUCKETS_MAX (1u << 20)
#define SEGMENTS_MAX 64
#define FEW_SYMBOLS_MAX 65536                    /* that a few addresses can be about */

/* Small, since they lie as spread as the addresses do. */
struct candidate {
	uint64_t start;
	uint32_t name;       /* offset in the string table */
	uint16_t section;
	uint8_t rank;        /* 0: none */
	uint8_t binding;
};

struct table {
	struct symtab *symtab;
	const struct elf_image *image;
	const char *names;
	size_t names_bytes;
	bool complete;               /* knows every label */
	const uint64_t *addresses;
	size_t n;
	uint32_t *buckets;           /* first address of each equal part of the range they lie in, and n at the end */
	size_t n_buckets;
	unsigned shift;              /* a bucket is so many bits wide */
	struct candidate *best;      /* sized symbols that cover, per address */
	struct candidate *unsized;   /* at the first address past its start: taken over by those behind */
	uint64_t *floor;             /* likewise: the last symbol start at or before */
	uint64_t pairs;              /* still allowed */
	bool thumb;                  /* bit 0 of an address isn't part of it */
};

static bool make_buckets(struct table *t)
{
	uint64_t first = t->addresses[0], range = t->addresses[t->n - 1] - first;
	size_t want = 1;
	while (want < t->n && want < BUCKETS_MAX)
		want *= 2;
	while (range >> t->shift >= want)
		t->shift++;
	t->n_buckets = (size_t)(range >> t->shift) + 1;
	t->buckets = malloc((t->n_buckets + 1) * sizeof(*t->buckets));
	if (!t->buckets)
		return false;
	for (size_t i = 0, b = 0; b <= t->n_buckets; b++) {
		while (i < t->n && (t->addresses[i] - first) >> t->shift < b)
			i++;
		t->buckets[b] = (uint32_t)i;
	}
	return true;
}

/* Index of the first address >= value, which is not past the last one. */
static size_t lower_bound(const struct table *t, uint64_t value)
{
	if (value <= t->addresses[0])
		return 0;
	size_t b = (size_t)((value - t->addresses[0]) >> t->shift);
	size_t low = t->buckets[b];
	return low + lower_bound_u64(t->addresses + low, t->buckets[b + 1] - low, value);
}

/* Names are mangled or not, so leading underscores are compared only among the unmangled. */
static bool plainer(const char *a, const char *b)
{
	size_t under_a = strspn(a, "_"), under_b = strspn(b, "_");
	if (!name_is_mangled(a) && !name_is_mangled(b) && under_a != under_b)
		return under_a < under_b;
	size_t length_a = strnlen(a, COMPARED_BYTES), length_b = strnlen(b, COMPARED_BYTES);
	if (length_a != length_b)
		return length_a < length_b;
	return strncmp(a, b, COMPARED_BYTES) < 0;
}

static bool better(const struct table *t, const struct candidate *a, const struct candidate *b)
{
	if (a->rank != b->rank)
		return a->rank > b->rank;
	if (a->start != b->start)
		return a->start > b->start;
	bool local_a = a->binding == STB_LOCAL, local_b = b->binding == STB_LOCAL;
	if (local_a != local_b)
		return local_b;
	return a->name != b->name && plainer(t->names + a->name, t->names + b->name);
}

static bool add_sized(struct table *t, const struct candidate *c, uint64_t size, size_t first)
{
	uint64_t end;
	if (__builtin_add_overflow(c->start, size, &end))
		return true;
	for (size_t i = first; i < t->n && t->addresses[i] < end; i++) {
		if (t->pairs-- == 0)
			return false;
		if (!t->best[i].rank || better(t, c, &t->best[i]))
			t->best[i] = *c;
	}
	return true;
}

/* The end of the section or, in a file without section headers, of the segment; 0 when that isn't code. */
static uint64_t code_end(const struct table *t, uint64_t address, uint16_t section)
{
	struct elf_segment g;
	if (t->symtab->n_ends)
		return section < t->symtab->n_ends ? t->symtab->ends[section] : 0;
	for (uint32_t i = 0; i < SEGMENTS_MAX && elf_segment(t->image, i, &g); i++)
		if (g.type == PT_LOAD && (g.flags & PF_X) && address - g.address < g.memory_bytes)
			return g.address + g.memory_bytes;
	return 0;
}

/* Without looking at it: names lie all over the file. The first of a table is the empty one. */
static bool has_name(const struct table *t, const struct elf_symbol *s)
{
	uintptr_t in = (uintptr_t)s->name - (uintptr_t)t->names;
	return in > 0 && in < t->names_bytes;
}

/* Can it name code at all? */
static bool read_candidate(const struct table *t, const struct elf_symbol *s, struct candidate *ret)
{
	bool function = s->type == STT_FUNC || s->type == STT_GNU_IFUNC;
	if ((!function && s->type != STT_NOTYPE) || s->section == SHN_UNDEF || !has_name(t, s))
		return false;
	*ret = (struct candidate){ .start = s->value & ~(uint64_t)t->thumb, .name = (uint32_t)(s->name - t->names),
		                   .section = s->section, .rank = function ? 2 : 1, .binding = s->binding };
	return true;
}

/* False when the table can't be true. */
static bool add_symbol(struct table *t, const struct elf_symbol *s)
{
	struct candidate c;
	if (!read_candidate(t, s, &c) || c.start > t->addresses[t->n - 1] || !code_end(t, c.start, c.section))
		return true;
	size_t first = lower_bound(t, c.start);
	if (c.start > t->floor[first] || !t->floor[first])
		t->floor[first] = c.start;
	if (s->bytes)
		return add_sized(t, &c, s->bytes, first);
	/* A local label in the middle of a function names nothing; a function or a global one does. */
	bool names = t->complete && (c.rank == 2 || c.binding != STB_LOCAL);
	struct candidate *have = &t->unsized[first];
	if (names && (!have->rank || c.start > have->start || (c.start == have->start && better(t, &c, have))))
		*have = c;
	return true;
}

/* The candidate without size that reaches address i, now that every symbol was seen. */
static const struct candidate *unsized_for(const struct table *t, size_t i, const struct candidate *last, uint64_t floor)
{
	uint64_t address = t->addresses[i];
	bool reaches = last->rank && last->start == floor && address - floor < UNSIZED_MAX &&
	               address < code_end(t, floor, last->section);
	return reaches ? last : NULL;
}

static void choose(const struct table *t, enum symtab_kind kind, struct symtab_hit *hits)
{
	struct candidate last = { .rank = 0 };
	uint64_t floor = 0;
	for (size_t i = 0; i < t->n; i++) {
		if (t->floor[i] > floor)
			floor = t->floor[i];
		if (t->unsized[i].rank)
			last = t->unsized[i];
		const struct candidate *c = &t->best[i];
		if (!c->rank)
			c = unsized_for(t, i, &last, floor);
		const char *name = c && !hits[i].name ? t->names + c->name : NULL;
		if (!name || !*name || strnlen(name, NAME_BYTES_MAX) == NAME_BYTES_MAX)
			continue;
		hits[i] = (struct symtab_hit){ name, strcspn(name, "@"), c->start, kind };
		if (hits[i].length == 0)
			hits[i].length = strlen(name);
	}
}

/* --- which symbols --- */

static bool add_all(struct table *t)
{
	struct elf_symbols symbols = t->symtab->symbols;
	struct elf_symbol s;
	bool good = true;
	while (good && elf_symbols_next(&symbols, &s))
		good = add_symbol(t, &s);
	return good;
}

static bool sort_all(const struct table *t)
{
	struct symtab *y = t->symtab;
	struct elf_symbols symbols = y->symbols;
	struct elf_symbol s;
	struct candidate c;
	while (elf_symbols_next(&symbols, &s)) {
		uint64_t end;
		if (!read_candidate(t, &s, &c) || !code_end(t, c.start, c.section))
			continue;
		/* One that can't cover anything still stands where another one ends. */
		if (__builtin_add_overflow(c.start, s.bytes, &end))
			end = c.start;
		if (!intervals_add(&y->sorted, c.start, end, (uint32_t)(symbols.at - 1)))
			return false;
	}
	intervals_sort(&y->sorted);
	return true;
}

/* Symbols by their numbers. */
struct some {
	uint32_t *numbers;
	size_t n, capacity;
	bool too_many;
};

static void push(struct some *s, uint32_t number)
{
	uint32_t *slot = ARRAY_PUSH(s->numbers, s->n, s->capacity, FEW_SYMBOLS_MAX);
	if (slot)
		*slot = number;
	else
		s->too_many = true;
}

static void choose_some(const struct intervals *x, uint64_t address, struct some *ret)
{
	const struct interval *i;
	size_t at = intervals_before(x, address);
	for (size_t k = at; k > 0 && x->items[k - 1].low == x->items[at - 1].low && !ret->too_many; k--)
		push(ret, x->items[k - 1].value);
	while (!ret->too_many && (i = intervals_next(x, &at, address)) != NULL)
		push(ret, i->value);
}

static int compare_numbers(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* In the table's order. False when the table can't be true. */
static bool add_chosen(struct table *t, struct some *some)
{
	struct elf_symbols symbols = t->symtab->symbols;
	struct elf_symbol s;
	bool good = true;
	if (some->n)
		qsort(some->numbers, some->n, sizeof(*some->numbers), compare_numbers);
	for (size_t i = 0; i < some->n && good; i++) {
		if (i && some->numbers[i] == some->numbers[i - 1])
			continue;
		symbols.at = some->numbers[i];
		good = elf_symbols_next(&symbols, &s) && add_symbol(t, &s);
	}
	return good;
}

/* Those that can matter; all of them where that can't be told. */
static bool add_some(struct table *t)
{
	struct symtab *y = t->symtab;
	struct some some = { .too_many = false };
	if (!y->is_sorted && !y->cannot_sort) {
		y->is_sorted = sort_all(t);
		y->cannot_sort = !y->is_sorted;
		if (y->cannot_sort)
			intervals_finish(&y->sorted);
	}
	some.too_many = y->cannot_sort;
	for (size_t i = 0; i < t->n && !some.too_many; i++)
		choose_some(&y->sorted, t->addresses[i], &some);
	bool good = some.too_many ? add_all(t) : add_chosen(t, &some);
	free(some.numbers);
	return good;
}

/* --- all of it --- */

static bool read_code_sections(struct symtab *y)
{
	size_t n = y->image->n_sections < SECTIONS_MAX ? y->image->n_sections : SECTIONS_MAX;
	struct elf_section s;
	y->ends = calloc(n + 1, sizeof(*y->ends));
	if (!y->ends)
		return false;
	y->n_ends = n;
	for (uint32_t i = 1; i < n && elf_section(y->image, i, &s); i++)
		if (s.flags & SHF_EXECINSTR)
			y->ends[i] = s.address + s.bytes;
	return true;
}

void symtab_init(struct symtab *s, const struct elf_image *image, enum symtab_kind kind)
{
	*s = (struct symtab){ .image = image, .kind = kind };
}

void symtab_finish(struct symtab *s)
{
	free(s->ends);
	intervals_finish(&s->sorted);
	*s = (struct symtab){ 0 };
}

static bool open_table(struct symtab *s)
{
	if (s->opened)
		return true;
	s->exists = elf_symbols_begin(&s->symbols, s->image, s->kind == SYMTAB_DYNAMIC) && s->symbols.n < UINT32_MAX;
	s->opened = !s->exists || read_code_sections(s);
	return s->opened;
}

int symtab_join(struct symtab *s, const uint64_t *addresses, size_t n, bool few, struct symtab_hit *hits, struct error *err)
{
	if (n == 0 || n >= UINT32_MAX)
		return 0;
	if (!open_table(s))
		return error_nomem(err, "symbols");
	if (!s->exists)
		return 0;
	struct table t = { .symtab = s, .image = s->image, .complete = s->kind == SYMTAB_FULL, .addresses = addresses, .n = n };
	t.names = s->symbols.names;
	t.names_bytes = s->symbols.names_bytes;
	t.thumb = s->image->machine == EM_ARM;
	t.pairs = PAIRS_BASE + PAIRS_PER_ADDRESS * (uint64_t)n;
	t.best = calloc(n, sizeof(*t.best));
	t.unsized = calloc(n, sizeof(*t.unsized));
	t.floor = calloc(n, sizeof(*t.floor));
	bool ready = t.best && t.unsized && t.floor && make_buckets(&t);
	if (ready && (few ? add_some(&t) : add_all(&t)))
		choose(&t, s->kind, hits);
	free(t.best);
	free(t.unsized);
	free(t.floor);
	free(t.buckets);
	return ready ? 0 : error_nomem(err, "symbols");
}
