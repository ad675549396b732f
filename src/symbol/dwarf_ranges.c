/*
 * Range lists: one range by low and high address, a list of pairs in .debug_ranges (DWARF 2 to 4), or a list of typed entries in
 * .debug_rnglists (5). What cannot be read ends the list.
 */
#include "symbol/dwarf.h"
#include "symbol/dwarf_constants.h"

enum { LIST_NONE, LIST_ONE, LIST_PAIRS, LIST_TYPED };

static uint64_t all_ones(const struct unit *u)
{
	return u->address_bytes == 8 ? UINT64_MAX : u->address_bytes == 4 ? UINT32_MAX : UINT16_MAX;
}

static void begin_at(struct range_list *l, struct span section, uint64_t offset, uint8_t kind)
{
	if (offset >= section.n)
		return;
	l->at = section.at + offset;
	l->end = section.at + section.n;
	l->kind = kind;
}

/* DW_FORM_rnglistx: the table of offsets stands at the base, and they count from there. */
static bool list_by_index(const struct unit *u, uint64_t index, uint64_t *ret_offset)
{
	struct span s = u->file->rnglists;
	uint64_t at;
	if (__builtin_mul_overflow(index, (uint64_t)u->offset_bytes, &at) || __builtin_add_overflow(at, u->ranges_base, &at) || at > s.n ||
	    s.n - at < u->offset_bytes)
		return false;
	return !__builtin_add_overflow(read_sized(s.at + at, u->offset_bytes, u->file->swapped), u->ranges_base, ret_offset);
}

static void begin_list(struct range_list *l, const struct attribute *ranges)
{
	const struct unit *u = l->unit;
	uint64_t offset = attribute_number(ranges, u);
	const struct unit *linked = u->skeleton ? u->skeleton : u;
	l->base = linked->low;
	if (u->version < 5) {
		/* GNU's split units count from where their skeleton says. */
		if (u->skeleton && __builtin_add_overflow(offset, linked->ranges_offset, &offset))
			return;
		begin_at(l, linked->file->ranges, offset, LIST_PAIRS);
	} else if (ranges->form != DW_FORM_rnglistx || list_by_index(u, offset, &offset)) {
		begin_at(l, u->file->rnglists, offset, LIST_TYPED);
	}
}

static bool address_of(const struct attribute *a, const struct unit *u, uint64_t *ret)
{
	uint64_t value = attribute_number(a, u);
	if (form_is_address_index(a->form))
		return unit_address(u, value, ret);
	*ret = value;
	return true;
}

void ranges_begin(struct range_list *l, const struct unit *u, const struct attribute *low, const struct attribute *high,
                  const struct attribute *ranges)
{
	l->unit = u;
	l->kind = LIST_NONE;
	if (ranges->form) {
		begin_list(l, ranges);
		return;
	}
	if (!low->form || !high->form || !address_of(low, u, &l->low))
		return;
	bool ends = high->form == DW_FORM_addr || form_is_address_index(high->form);
	if (ends ? address_of(high, u, &l->high) : !__builtin_add_overflow(l->low, attribute_number(high, u), &l->high))
		l->kind = LIST_ONE;
}

static bool next_pair(struct range_list *l, uint64_t *ret_low, uint64_t *ret_high)
{
	const struct unit *u = l->unit;
	unsigned bytes = u->address_bytes;
	bool swapped = u->file->swapped;
	while ((size_t)(l->end - l->at) >= 2 * (size_t)bytes) {
		uint64_t low = read_sized(l->at, bytes, swapped), high = read_sized(l->at + bytes, bytes, swapped);
		l->at += 2 * (size_t)bytes;
		if (!low && !high)
			return false;
		if (low == all_ones(u)) {
			l->base = high;
			continue;
		}
		*ret_low = low + l->base;
		*ret_high = high + l->base;
		return true;
	}
	return false;
}

/* False at the end, and at what is damaged. *ret_is_range is false when only the base changed. */
static bool typed_entry(struct range_list *l, uint64_t *low, uint64_t *high, bool *ret_is_range)
{
	const struct unit *u = l->unit;
	unsigned bytes = u->address_bytes;
	bool swapped = u->file->swapped;
	uint8_t kind = *l->at++;
	*ret_is_range = true;
	switch (kind) {
	case DW_RLE_base_addressx:
		*ret_is_range = false;
		return unit_address(u, read_uleb(&l->at), &l->base);
	case DW_RLE_startx_endx: {
		uint64_t first = read_uleb(&l->at);
		return unit_address(u, first, low) && unit_address(u, read_uleb(&l->at), high);
	}
	case DW_RLE_startx_length:
		if (!unit_address(u, read_uleb(&l->at), low))
			return false;
		*high = *low + read_uleb(&l->at);
		return true;
	case DW_RLE_offset_pair:
		*low = l->base + read_uleb(&l->at);
		*high = l->base + read_uleb(&l->at);
		return true;
	case DW_RLE_base_address:
		*ret_is_range = false;
		l->base = read_sized(l->at, bytes, swapped);
		l->at += bytes;
		return true;
	case DW_RLE_start_end:
		*low = read_sized(l->at, bytes, swapped);
		*high = read_sized(l->at + bytes, bytes, swapped);
		l->at += 2 * (size_t)bytes;
		return true;
	case DW_RLE_start_length:
		*low = read_sized(l->at, bytes, swapped);
		l->at += bytes;
		*high = *low + read_uleb(&l->at);
		return true;
	default:
		return false;
	}
}

bool ranges_next(struct range_list *l, uint64_t *ret_low, uint64_t *ret_high)
{
	if (l->kind == LIST_ONE) {
		l->kind = LIST_NONE;
		*ret_low = l->low;
		*ret_high = l->high;
		return true;
	}
	if (l->kind == LIST_PAIRS && next_pair(l, ret_low, ret_high))
		return true;
	while (l->kind == LIST_TYPED && l->at < l->end) {
		bool is_range;
		if (!typed_entry(l, ret_low, ret_high, &is_range))
			break;
		if (is_range)
			return true;
	}
	l->kind = LIST_NONE;
	return false;
}
