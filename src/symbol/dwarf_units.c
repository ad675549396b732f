/*
 * The units of a file. Their headers are read at once, their first entries when they are needed: these tell where the unit's code
 * is, and where its strings, addresses and lines begin.
 */
#include <stdlib.h>

#include "symbol/dwarf.h"
#include "symbol/dwarf_constants.h"

#define UNITS_MAX ((size_t)1 << 26)
#define ROOTS_BASE 100000000u

/* --- headers --- */

/* One unit's header at p. False when it isn't whole; version 0: none that we know. */
static bool read_header(const struct dwarf_file *f, const uint8_t *p, struct unit *ret)
{
	const uint8_t *section = f->info.at, *end = section + f->info.n;
	*ret = (struct unit){ .offset = (uint64_t)(p - section), .offset_bytes = 4, .type = UNIT_COMPILE };
	uint64_t bytes = read_u32(p, f->swapped);
	p += 4;
	if (bytes == UINT32_MAX) {
		bytes = read_u64(p, f->swapped);
		p += 8;
		ret->offset_bytes = 8;
	}
	if (p > end || bytes < 7 || bytes > (uint64_t)(end - p))
		return false;
	ret->end = (uint64_t)(p - section) + bytes;
	ret->version = read_u16(p, f->swapped);
	p += 2;
	if (ret->version >= 5) {
		ret->type = *p++;
		ret->address_bytes = *p++;
		ret->abbrevs = read_sized(p, ret->offset_bytes, f->swapped);
		p += ret->offset_bytes;
	} else {
		ret->abbrevs = read_sized(p, ret->offset_bytes, f->swapped);
		p += ret->offset_bytes;
		ret->address_bytes = *p++;
	}
	if (ret->type == UNIT_SKELETON || ret->type == UNIT_SPLIT_COMPILE) {
		ret->id = read_u64(p, f->swapped);
		p += 8;
	} else if (ret->type == UNIT_TYPE || ret->type == UNIT_SPLIT_TYPE) {
		p += 8 + ret->offset_bytes;
	}
	ret->first_entry = (uint64_t)(p - section);
	if (ret->version < 2 || ret->version > 5 || (ret->address_bytes != 4 && ret->address_bytes != 8) || ret->first_entry >= ret->end)
		ret->version = 0;
	return true;
}

static int read_units(struct dwarf_file *f, struct error *err)
{
	uint64_t at = 0;
	while (at < f->info.n) {
		struct unit u;
		if (!read_header(f, f->info.at + at, &u))
			break;
		at = u.end;
		if (!u.version)
			continue;
		struct unit *slot = ARRAY_PUSH(f->units, f->n_units, f->units_capacity, UNITS_MAX);
		if (!slot)
			return error_nomem(err, "debug information");
		*slot = u;
		slot->file = f;
	}
	return 0;
}

/* A section of strings, without what behind the last NUL is none. */
static struct span strings(struct debug_sections *sections, enum debug_section which)
{
	struct span s = sections_get(sections, which);
	const uint8_t *last = s.at ? memrchr(s.at, 0, s.n) : NULL;
	return last ? (struct span){ s.at, (size_t)(last - s.at) + 1 } : (struct span){ NULL, 0 };
}

int dwarf_file_open(struct dwarf_file *f, struct debug_sections *sections, struct error *err)
{
	*f = (struct dwarf_file){ .sections = sections, .swapped = sections->swapped };
	pthread_mutex_init(&f->lock, NULL);
	f->info = sections_get(sections, DEBUG_INFO);
	f->abbrev = sections_get(sections, DEBUG_ABBREV);
	f->line = sections_get(sections, DEBUG_LINE);
	f->str = strings(sections, DEBUG_STR);
	f->line_str = strings(sections, DEBUG_LINE_STR);
	f->ranges = sections_get(sections, DEBUG_RANGES);
	f->rnglists = sections_get(sections, DEBUG_RNGLISTS);
	f->addr = sections_get(sections, DEBUG_ADDR);
	f->str_offsets = sections_get(sections, DEBUG_STR_OFFSETS);
	/* Units share abbreviations: looking for each unit's own entry must not read them all again and again. */
	f->roots.left = ROOTS_BASE + 16 * (f->info.n + f->abbrev.n);
	return read_units(f, err);
}

int dwarf_file_part(struct dwarf_file *f, const struct dwarf_file *whole, struct span info, struct error *err)
{
	*f = *whole;
	f->units = NULL;
	f->n_units = f->units_capacity = 0;
	pthread_mutex_init(&f->lock, NULL);
	f->info = info;
	return read_units(f, err);
}

void dwarf_file_close(struct dwarf_file *f)
{
	if (!f || (!f->sections && !f->units))
		return;
	pthread_mutex_destroy(&f->lock);
	free(f->units);
	*f = (struct dwarf_file){ 0 };
}

/* The last unit that begins at or before. */
static struct unit *unit_before(const struct dwarf_file *f, uint64_t offset)
{
	size_t low = 0, n = f->n_units;
	while (n > 0) {
		size_t half = n / 2;
		bool right = f->units[low + half].offset <= offset;
		low += right ? half + 1 : 0;
		n = right ? n - half - 1 : half;
	}
	return low ? &f->units[low - 1] : NULL;
}

struct unit *unit_at(const struct dwarf_file *f, uint64_t offset)
{
	struct unit *u = unit_before(f, offset);
	return u && offset >= u->first_entry && offset < u->end ? u : NULL;
}

struct unit *unit_beginning(const struct dwarf_file *f, uint64_t offset)
{
	struct unit *u = unit_before(f, offset);
	return u && u->offset == offset ? u : NULL;
}

/* --- the first entry --- */

struct root {
	struct attribute name, folder, split_name, split_name_old;
};

static void root_attribute(struct unit *u, struct root *r, const struct attribute *a)
{
	switch (a->name) {
	case DW_AT_name:
		r->name = *a;
		break;
	case DW_AT_comp_dir:
		r->folder = *a;
		break;
	case DW_AT_dwo_name:
		r->split_name = *a;
		break;
	case DW_AT_GNU_dwo_name:
		r->split_name_old = *a;
		break;
	case DW_AT_low_pc:
		u->low_pc = *a;
		break;
	case DW_AT_high_pc:
		u->high_pc = *a;
		break;
	case DW_AT_ranges:
		u->ranges = *a;
		break;
	case DW_AT_language:
		u->language = (uint16_t)attribute_number(a, u);
		break;
	case DW_AT_stmt_list:
		u->lines = attribute_number(a, u);
		u->has_lines = true;
		break;
	case DW_AT_str_offsets_base:
		u->strings_base = attribute_number(a, u);
		break;
	case DW_AT_addr_base:
	case DW_AT_GNU_addr_base:
		u->addresses_base = attribute_number(a, u);
		break;
	case DW_AT_rnglists_base:
		u->ranges_base = attribute_number(a, u);
		break;
	case DW_AT_GNU_ranges_base:
		u->ranges_offset = attribute_number(a, u);
		break;
	case DW_AT_GNU_dwo_id:
		u->id = attribute_number(a, u);
		break;
	default:
		break;
	}
}

static const char *text_of(const struct attribute *a, const struct unit *u)
{
	return a->form ? form_string(a->form, a->at, u) : NULL;
}

static void read_root(struct unit *u)
{
	struct root r = { 0 };
	struct abbrev b;
	struct attribute a;
	const uint8_t *p = u->file->info.at + u->first_entry;
	uint64_t header = u->offset_bytes == 8 ? 16 : 8;
	if (u->file->is_split) {
		u->strings_base = u->version >= 5 ? header : 0;
		u->ranges_base = header + 4;
	}
	if (u->first_entry >= u->end || !abbrev_find(u, read_uleb(&p), &u->file->roots, &b))
		return;
	u->is_partial = b.tag == DW_TAG_partial_unit;
	for (const uint8_t *spec = b.spec; attribute_next(u, &spec, &p, &a);)
		root_attribute(u, &r, &a);
	/* Now that it is known where indexes point. */
	u->name = text_of(&r.name, u);
	u->folder = text_of(&r.folder, u);
	u->split_name = text_of(r.split_name.form ? &r.split_name : &r.split_name_old, u);
	if (u->low_pc.form) {
		u->low = attribute_number(&u->low_pc, u);
		if (form_is_address_index(u->low_pc.form) && !unit_address(u, u->low, &u->low))
			u->low = 0;
	}
}

void unit_root(struct unit *u)
{
	if (atomic_load_explicit(&u->rooted, memory_order_acquire))
		return;
	pthread_mutex_lock(&u->file->lock);
	if (!atomic_load_explicit(&u->rooted, memory_order_relaxed)) {
		read_root(u);
		atomic_store_explicit(&u->rooted, true, memory_order_release);
	}
	pthread_mutex_unlock(&u->file->lock);
}

/* --- .debug_aranges --- */

/* The pairs of one set; false when the walk shall end. */
static bool read_set(const struct dwarf_file *f, struct unit *u, const uint8_t *p, const uint8_t *end, unsigned bytes,
                     arange_found *found, void *context)
{
	for (; (size_t)(end - p) >= 2 * (size_t)bytes; p += 2 * (size_t)bytes) {
		uint64_t low = read_sized(p, bytes, f->swapped), size = read_sized(p + bytes, bytes, f->swapped), high;
		if (!low && !size)
			break;
		u->in_aranges = true;
		if (size && !__builtin_add_overflow(low, size, &high) && !found(context, u, low, high))
			return false;
	}
	return true;
}

void dwarf_aranges(struct dwarf_file *f, arange_found *found, void *context)
{
	struct span s = sections_get(f->sections, DEBUG_ARANGES);
	const uint8_t *p = s.at, *section_end = s.at ? s.at + s.n : NULL;
	while (p && section_end - p >= 12) {
		const uint8_t *set = p;
		unsigned offset_bytes = 4;
		uint64_t bytes = read_u32(p, f->swapped);
		p += 4;
		if (bytes == UINT32_MAX) {
			bytes = read_u64(p, f->swapped);
			p += 8;
			offset_bytes = 8;
		}
		if (p > section_end || bytes > (uint64_t)(section_end - p))
			return;
		const uint8_t *end = p + bytes;
		uint64_t unit = read_sized(p + 2, offset_bytes, f->swapped);
		unsigned address_bytes = p[2 + offset_bytes];
		p += 4 + offset_bytes;
		/* Pairs are aligned to their size, counted from the set. */
		size_t pair = 2 * (size_t)address_bytes, header = (size_t)(p - set);
		struct unit *u = unit_beginning(f, unit);
		if (u && (address_bytes == 4 || address_bytes == 8)) {
			p = set + (header + pair - 1) / pair * pair;
			if (p <= end && !read_set(f, u, p, end, address_bytes, found, context))
				return;
		}
		p = end;
	}
}
