/*
 * An inverted join: the table is streamed once and each symbol looked up among the addresses,
 * so nothing is sorted or stored but the best candidate of each address.
 */
#include "symbol/symtab.h"

#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Covering pairs we are ready to look at: damaged tables may have every symbol cover everything. */
#define PAIRS_BASE 1000000
#define PAIRS_PER_ADDRESS 200
#define NAME_BYTES_MAX 65536
#define COMPARED_BYTES 1024

struct candidate {
	uint64_t start;
	uint32_t name;       /* offset in the string table */
	uint8_t rank;        /* 0: none */
	uint8_t binding;
};

struct table {
	Elf *elf;
	const char *strings;         /* the names, up to the last NUL */
	size_t strings_bytes;
	bool complete;               /* knows every label */
	const uint64_t *addresses;
	size_t n;
	struct candidate *best;      /* sized symbols that cover, per address */
	struct candidate *unsized;   /* at the first address past its start: taken over by those behind */
	uint64_t *floor;             /* likewise: the last symbol start at or before */
	uint64_t pairs;              /* still allowed */
	uint64_t *ends;              /* of executable sections, by section number; 0: not executable */
	size_t n_ends;
	bool thumb;                  /* bit 0 of an address isn't part of it */
};

/* First address >= value. */
static size_t lower_bound(const uint64_t *addresses, size_t n, uint64_t value)
{
	size_t low = 0;
	while (n > 0) {
		size_t half = n / 2;
		if (addresses[low + half] < value) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

/* A candidate's name, or NULL. */
static const char *name_of(const struct table *t, const struct candidate *c)
{
	return c->name < t->strings_bytes ? t->strings + c->name : NULL;
}

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* Names are mangled or not, so leading underscores are compared only among the unmangled. */
static bool plainer(const char *a, const char *b)
{
	if (!a || !b)
		return a != NULL;
	size_t under_a = strspn(a, "_"), under_b = strspn(b, "_");
	if (!is_mangled(a) && !is_mangled(b) && under_a != under_b)
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
	return a->name != b->name && plainer(name_of(t, a), name_of(t, b));
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

/* False when the table can't be true. */
static bool add_symbol(struct table *t, const GElf_Sym *s)
{
	unsigned type = GELF_ST_TYPE(s->st_info);
	bool function = type == STT_FUNC || type == STT_GNU_IFUNC;
	if (!function && type != STT_NOTYPE)
		return true;
	if (s->st_shndx == SHN_UNDEF || s->st_shndx >= t->n_ends || !t->ends[s->st_shndx])
		return true;
	struct candidate c = { s->st_value & ~(uint64_t)t->thumb, s->st_name, function ? 2 : 1,
		               (uint8_t)GELF_ST_BIND(s->st_info) };
	size_t first = lower_bound(t->addresses, t->n, c.start);
	if (first == t->n)
		return true;
	if (c.start > t->floor[first] || !t->floor[first])
		t->floor[first] = c.start;
	if (s->st_size)
		return add_sized(t, &c, s->st_size, first);
	/* A local label in the middle of a function names nothing; a function or a global one does. */
	bool names = t->complete && (function || c.binding != STB_LOCAL);
	struct candidate *have = &t->unsized[first];
	if (names && (!have->rank || c.start > have->start ||
	              (c.start == have->start && better(t, &c, have))))
		*have = c;
	return true;
}

static bool read_code_sections(struct table *t)
{
	size_t n;
	if (elf_getshdrnum(t->elf, &n) < 0 || n > 1 << 20)
		return false;
	t->ends = calloc(n + 1, sizeof(*t->ends));
	if (!t->ends)
		return false;
	t->n_ends = n;
	for (size_t i = 1; i < n; i++) {
		GElf_Shdr h;
		if (gelf_getshdr(elf_getscn(t->elf, i), &h) && (h.sh_flags & SHF_EXECINSTR))
			t->ends[i] = h.sh_addr + h.sh_size;
	}
	return true;
}

static bool read_strings(struct table *t, size_t section)
{
	Elf_Scn *s = elf_getscn(t->elf, section);
	Elf_Data *data = s ? elf_getdata(s, NULL) : NULL;
	const char *end = data && data->d_buf ? memrchr(data->d_buf, '\0', data->d_size) : NULL;
	if (!end)
		return false;
	t->strings = data->d_buf;
	t->strings_bytes = (size_t)(end - t->strings) + 1;
	return true;
}

static bool stream(struct table *t, Elf_Scn *section, const GElf_Shdr *h)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t entry = gelf_fsize(t->elf, ELF_T_SYM, 1, EV_CURRENT);
	if (!data || !data->d_buf || !entry)
		return true;
	if (!read_strings(t, h->sh_link))
		return true;
	size_t n = data->d_size / entry;
	for (size_t i = 1; i < n && i < INT32_MAX; i++) {
		GElf_Sym s;
		if (gelf_getsym(data, (int)i, &s) && !add_symbol(t, &s))
			return false;
	}
	return true;
}

/* The candidate without size that reaches address i, now that every symbol was seen. */
static const struct candidate *unsized_for(const struct table *t, size_t i,
                                           const struct candidate *last, uint64_t floor)
{
	if (!last->rank || last->start != floor || t->addresses[i] - floor >= UNSIZED_MAX)
		return NULL;
	for (size_t s = 1; s < t->n_ends; s++)
		if (t->ends[s] > floor && t->ends[s] <= t->addresses[i])
			return NULL;             /* a section ends in between */
	return last;
}

static void choose(const struct table *t, struct symtab_hit *hits)
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
		const char *name = c && !hits[i].name ? name_of(t, c) : NULL;
		if (!name || !*name || strnlen(name, NAME_BYTES_MAX) == NAME_BYTES_MAX)
			continue;
		hits[i] = (struct symtab_hit){ name, strcspn(name, "@"), c->start };
		if (hits[i].length == 0)
			hits[i].length = strlen(name);
	}
}

int symtab_join(Elf *elf, enum symtab_kind kind, const uint64_t *addresses, size_t n,
                struct symtab_hit *hits, struct error *err)
{
	struct table t = { .elf = elf, .complete = kind == SYMTAB_FULL,
	                   .addresses = addresses, .n = n };
	uint32_t type = kind == SYMTAB_DYNAMIC ? SHT_DYNSYM : SHT_SYMTAB;
	GElf_Ehdr header;
	if (n == 0 || !gelf_getehdr(elf, &header))
		return 0;
	t.thumb = header.e_machine == EM_ARM;
	t.pairs = PAIRS_BASE + PAIRS_PER_ADDRESS * (uint64_t)n;
	t.best = calloc(n, sizeof(*t.best));
	t.unsized = calloc(n, sizeof(*t.unsized));
	t.floor = calloc(n, sizeof(*t.floor));
	int rc = 0;
	if (!t.best || !t.unsized || !t.floor || !read_code_sections(&t))
		rc = error_nomem(err, "symbols");
	for (Elf_Scn *s = NULL; rc == 0 && (s = elf_nextscn(elf, s));) {
		GElf_Shdr h;
		if (gelf_getshdr(s, &h) && h.sh_type == type) {
			if (stream(&t, s, &h))
				choose(&t, hits);
			break;
		}
	}
	free(t.best);
	free(t.unsized);
	free(t.floor);
	free(t.ends);
	return rc;
}
