/*
 * Which units have which addresses. The ranges in a unit's own entry are authoritative; an address
 * that no unit claims that way is looked up in .debug_aranges.
 */
#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "symbol/debug_info.h"

size_t asked_lower_bound(const struct asked *items, size_t n, uint64_t value)
{
	size_t low = 0;
	while (n > 0) {
		size_t half = n / 2;
		if (items[low + half].address < value) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low;
}

bool range_next(struct debug_info *d, Dwarf_Die *die, struct range_walk *w)
{
	while (debug_spend(&d->budget, &d->budget.ranges, 1)) {
		w->at = dwarf_ranges(die, w->at, &w->base, &w->low, &w->high);
		if (w->at < 0)
			d->damaged = true;
		if (w->at <= 0)
			return false;
		/* Code the linker discarded is left at address 0, 1, -1 or -2. */
		if (w->low < w->high && elf_file_has_code(d->binary, w->low))
			return true;
	}
	return false;
}

bool code_entry(struct debug_info *d, Dwarf_Die *die, uint64_t *ret_address)
{
	struct range_walk w = { 0 };
	if (!range_next(d, die, &w))
		return false;
	*ret_address = w.low;
	return true;
}

bool language_has_scopes(int language)
{
	return language == DW_LANG_C_plus_plus || language == DW_LANG_C_plus_plus_03 ||
	       language == DW_LANG_C_plus_plus_11 || language == DW_LANG_C_plus_plus_14 ||
	       language == 0x2b || language == 0x3a || /* C++17, C++20: not in every dwarf.h */
	       language == DW_LANG_Rust;
}

/* Bytes of the sections whose names contain that; decompressed ones, since libdw has just done so. */
static uint64_t section_bytes(Elf *elf, const char *part)
{
	uint64_t sum = 0;
	size_t names;
	if (elf_getshdrstrndx(elf, &names) < 0)
		return 0;
	for (Elf_Scn *s = NULL; (s = elf_nextscn(elf, s));) {
		GElf_Shdr h;
		const char *name = gelf_getshdr(s, &h) ? elf_strptr(elf, names, h.sh_name) : NULL;
		if (name && strstr(name, part))
			sum += h.sh_size;
	}
	return sum;
}

static double thread_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int debug_info_open(struct debug_info *d, const struct elf_file *file,
                    const struct elf_file *binary, struct names *names)
{
	memset(d, 0, sizeof(*d));
	d->binary = binary;
	d->names = names;
	/* Not even opened when libdw would follow a link into a FIFO or a device. */
	if (!file->has_debug_info || file->strange_links)
		return E_UNSUPPORTED;
	d->dwarf = dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
	if (!d->dwarf)
		return E_FORMAT;
	/* Entries are walked at most twice and looked at for scopes once; split units are in other files. */
	uint64_t entries = section_bytes(file->elf, "debug_info");
	d->budget.entry_bytes = ((uint64_t)256 << 20) + 4 * entries;
	d->budget.ranges = 5000000 + entries + 4 * section_bytes(file->elf, "debug_r");
	d->budget.rows = 10000000 + 2 * section_bytes(file->elf, "debug_line");
	d->budget.seconds = thread_seconds() + 120 + (double)file->bytes / (16 << 20);
	return 0;
}

void debug_info_finish(struct debug_info *d)
{
	if (!d)
		return;
	dwarf_end(d->dwarf);
	free(d->places);
	free(d->nodes);
	free(d->concretes);
	memset(d, 0, sizeof(*d));
}

/*
 * The entry with the unit's tree: of a split unit, that in its .dwo file. libdw opens the file that
 * the unit names, so it is made sure that it is a regular one.
 */
static bool unit_tree(Dwarf_CU *cu, uint8_t type, Dwarf_Die *unit, Dwarf_Die *ret)
{
	*ret = *unit;
	if (type != DW_UT_skeleton)
		return true;
	Dwarf_Attribute a;
	const char *folder = dwarf_formstring(dwarf_attr(unit, DW_AT_comp_dir, &a));
	const char *name = dwarf_formstring(dwarf_attr(unit, DW_AT_dwo_name, &a));
	if (!name)
		name = dwarf_formstring(dwarf_attr(unit, DW_AT_GNU_dwo_name, &a));
	char path[4096];
	size_t prefix = name && *name != '/' && folder ? strlen(folder) + 1 : 0;
	if (!name || prefix + strlen(name) >= sizeof(path))
		return false;
	if (prefix) {
		memcpy(path, folder, prefix - 1);
		path[prefix - 1] = '/';
	}
	memcpy(path + prefix, name, strlen(name) + 1);
	struct stat st;
	if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	Dwarf_Die split;
	memset(&split, 0, sizeof(split));
	if (dwarf_cu_info(cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) < 0 || !split.addr)
		return false;
	*ret = split;
	return true;
}

static int compare_asked(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;
	return x->index < y->index ? -1 : x->index > y->index;
}

static void sort_asked(struct asked_list *l)
{
	bool sorted = true;
	for (size_t i = 1; i < l->n && sorted; i++)
		sorted = l->items[i - 1].index < l->items[i].index;
	if (sorted)
		return;
	qsort(l->items, l->n, sizeof(*l->items), compare_asked);
	size_t kept = 0;
	for (size_t i = 0; i < l->n; i++)
		if (kept == 0 || l->items[kept - 1].index != l->items[i].index)
			l->items[kept++] = l->items[i];
	l->n = kept;
}

static int collect(struct debug_info *d, Dwarf_Die *unit, struct asked_list *l, struct error *err)
{
	l->n = 0;
	for (struct range_walk w = { 0 }; range_next(d, unit, &w);) {
		size_t low = 0, n = d->n;
		while (n > 0) {
			size_t half = n / 2;
			bool right = d->addresses[low + half] < w.low;
			low += right ? half + 1 : 0;
			n = right ? n - half - 1 : half;
		}
		for (; low < d->n && d->addresses[low] < w.high; low++) {
			if (!debug_spend(&d->budget, &d->budget.hits, 1))
				return 0;
			struct asked *slot = ARRAY_PUSH(l->items, l->n, l->capacity, NODES_MAX);
			if (!slot)
				return error_nomem(err, "debug information");
			*slot = (struct asked){ d->addresses[low], (uint32_t)low };
			d->places[low].has_unit = true;
		}
	}
	sort_asked(l);
	return 0;
}

static int join_unit(struct debug_info *d, Dwarf_CU *cu, uint8_t type, Dwarf_Die *unit,
                     const struct asked_list *asked, struct error *err)
{
	Dwarf_Die tree;
	if (thread_seconds() > d->budget.seconds)
		d->budget.exceeded = true;
	if (d->budget.exceeded)
		return 0;
	if (unit_tree(cu, type, unit, &tree)) {
		int rc = scan_unit(d, &tree, asked, err);
		if (rc)
			return rc;
	}
	return lines_unit(d, unit, asked, err);
}

/* Addresses that no unit claims in its own entry. */
static int join_by_aranges(struct debug_info *d, struct asked_list *l, struct error *err)
{
	Dwarf_Aranges *table = NULL;
	size_t n;
	int rc = 0;
	for (size_t i = 0; i < d->n && rc == 0 && !d->budget.exceeded; i++) {
		if (d->places[i].has_unit)
			continue;
		if (!table && dwarf_getaranges(d->dwarf, &table, &n))
			return 0;
		Dwarf_Addr start;
		Dwarf_Word bytes;
		Dwarf_Off offset;
		Dwarf_Arange *range = dwarf_getarange_addr(table, d->addresses[i]);
		if (!range || dwarf_getarangeinfo(range, &start, &bytes, &offset))
			continue;
		l->n = 0;
		for (size_t k = i; k < d->n && d->addresses[k] - start < bytes; k++) {
			struct asked *slot = ARRAY_PUSH(l->items, l->n, l->capacity, NODES_MAX);
			if (!slot)
				return error_nomem(err, "debug information");
			*slot = (struct asked){ d->addresses[k], (uint32_t)k };
			d->places[k].has_unit = true;
		}
		Dwarf_Die unit;
		uint8_t type;
		if (l->n && dwarf_offdie(d->dwarf, offset, &unit) &&
		    !dwarf_cu_info(unit.cu, NULL, &type, NULL, NULL, NULL, NULL, NULL))
			rc = join_unit(d, unit.cu, type, &unit, l, err);
	}
	return rc;
}

int debug_info_join(struct debug_info *d, const uint64_t *addresses, size_t n,
                    const struct symtab_hit *symbols, bool have_symtab, struct error *err)
{
	d->addresses = addresses;
	d->n = n;
	d->symbols = symbols;
	d->have_symtab = have_symtab;
	d->budget.hits = 20000000 + 2000 * (uint64_t)n;
	d->places = calloc(n ? n : 1, sizeof(*d->places));
	if (!d->places)
		return error_nomem(err, "debug information");
	for (size_t i = 0; i < n; i++)
		d->places[i].node = NODE_NONE;
	struct asked_list asked = { 0 };
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	uint8_t type;
	int rc = 0, more = 1;
	while (rc == 0 && !d->budget.exceeded &&
	       (more = dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &unit, NULL)) == 0) {
		if (!unit.addr || type == DW_UT_type || type == DW_UT_split_type)
			continue;
		rc = collect(d, &unit, &asked, err);
		if (rc == 0 && asked.n)
			rc = join_unit(d, cu, type, &unit, &asked, err);
	}
	if (more < 0 || d->budget.exceeded)
		d->damaged = true;
	if (rc == 0 && !d->budget.exceeded)
		rc = join_by_aranges(d, &asked, err);
	free(asked.items);
	return rc;
}
