/*
 * Values of attributes. A form tells how many bytes a value has and what they are: itself, an offset, or an index into a table
 * whose place the unit's first entry tells.
 */
#include <string.h>

#include "symbol/dwarf.h"
#include "symbol/dwarf_constants.h"

uint64_t read_sized(const uint8_t *p, unsigned bytes, bool swapped)
{
	switch (bytes) {
	case 1:
		return *p;
	case 2:
		return read_u16(p, swapped);
	case 4:
		return read_u32(p, swapped);
	case 8:
		return read_u64(p, swapped);
	default:
		return 0;
	}
}

bool form_is_leb(unsigned form)
{
	switch (form) {
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return true;
	default:
		return false;
	}
}

int form_bytes(unsigned form, const struct unit *u)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sup8:
	case DW_FORM_ref_sig8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return u->address_bytes;
	case DW_FORM_ref_addr:
		return u->version <= 2 ? u->address_bytes : u->offset_bytes;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return u->offset_bytes;
	default:
		return -1;
	}
}

static const uint8_t *over(const uint8_t *p, const uint8_t *end, uint64_t bytes)
{
	return p <= end && bytes <= (uint64_t)(end - p) ? p + bytes : NULL;
}

const uint8_t *form_skip(unsigned form, const uint8_t *p, const uint8_t *end, const struct unit *u)
{
	int fixed = form_bytes(form, u);
	if (fixed >= 0)
		return over(p, end, (uint64_t)fixed);
	if (p >= end)
		return NULL;
	uint64_t n;
	switch (form) {
	case DW_FORM_string: {
		const uint8_t *nul = memchr(p, 0, (size_t)(end - p));
		return nul ? nul + 1 : NULL;
	}
	case DW_FORM_block1:
		return over(p + 1, end, *p);
	case DW_FORM_block2:
		return over(p + 2, end, read_u16(p, u->file->swapped));
	case DW_FORM_block4:
		return over(p + 4, end, read_u32(p, u->file->swapped));
	case DW_FORM_block:
	case DW_FORM_exprloc:
		n = read_uleb(&p);
		return over(p, end, n);
	case DW_FORM_indirect:
		n = read_uleb(&p);
		/* One that leads to itself has no end. */
		return n == DW_FORM_indirect || n == DW_FORM_implicit_const || n > UINT16_MAX ? NULL : form_skip((unsigned)n, p, end, u);
	default:
		if (!form_is_leb(form))
			return NULL;
		skip_leb(&p);
		return over(p, end, 0);
	}
}

uint64_t form_number(unsigned form, int64_t implicit, const uint8_t **p, const struct unit *u)
{
	bool swapped = u->file->swapped;
	switch (form) {
	/* The common ones first-hand: this is asked for each entry with code. */
	case DW_FORM_data1:
	case DW_FORM_addrx1:
		return *(*p)++;
	case DW_FORM_data2:
		*p += 2;
		return read_u16(*p - 2, swapped);
	case DW_FORM_data4:
	case DW_FORM_ref4:
		*p += 4;
		return read_u32(*p - 4, swapped);
	case DW_FORM_addr:
		*p += u->address_bytes;
		return u->address_bytes == 8 ? read_u64(*p - 8, swapped) : read_u32(*p - 4, swapped);
	case DW_FORM_flag_present:
		return 1;
	case DW_FORM_implicit_const:
		return (uint64_t)implicit;
	case DW_FORM_strx3:
	case DW_FORM_addrx3: {
		const uint8_t *b = *p;
		*p += 3;
		return swapped ? (uint64_t)b[0] << 16 | (uint64_t)b[1] << 8 | b[2] : (uint64_t)b[2] << 16 | (uint64_t)b[1] << 8 | b[0];
	}
	case DW_FORM_sdata:
		return (uint64_t)read_sleb(p);
	case DW_FORM_indirect: {
		uint64_t actual = read_uleb(p);
		return actual == DW_FORM_indirect || actual > UINT16_MAX ? 0 : form_number((unsigned)actual, 0, p, u);
	}
	default: {
		if (form_is_leb(form))
			return read_uleb(p);
		int bytes = form_bytes(form, u);
		if (bytes <= 0)
			return 0;
		uint64_t value = read_sized(*p, (unsigned)bytes, swapped);
		*p += bytes;
		return value;
	}
	}
}

uint64_t attribute_number(const struct attribute *a, const struct unit *u)
{
	const uint8_t *p = a->at;
	return a->form ? form_number(a->form, a->implicit, &p, u) : 0;
}

bool form_is_address_index(unsigned form)
{
	return form == DW_FORM_addrx || form == DW_FORM_addrx1 || form == DW_FORM_addrx2 || form == DW_FORM_addrx3 ||
	       form == DW_FORM_addrx4 || form == DW_FORM_GNU_addr_index;
}

/* --- strings --- */

/* s ends in a NUL: dwarf_file_open() has seen to that. */
static const char *string_in(struct span s, uint64_t offset)
{
	return offset < s.n ? (const char *)s.at + offset : NULL;
}

static const char *string_by_index(uint64_t index, const struct unit *u)
{
	struct span table = u->file->str_offsets;
	uint64_t at;
	if (__builtin_mul_overflow(index, (uint64_t)u->offset_bytes, &at) || __builtin_add_overflow(at, u->strings_base, &at) ||
	    at > table.n || table.n - at < u->offset_bytes)
		return NULL;
	return string_in(u->file->str, read_sized(table.at + at, u->offset_bytes, u->file->swapped));
}

const char *form_string(unsigned form, const uint8_t *p, const struct unit *u)
{
	const struct dwarf_file *f = u->file;
	switch (form) {
	case DW_FORM_string:
		return memchr(p, 0, NAME_BYTES_MAX) ? (const char *)p : NULL;
	case DW_FORM_strp:
		return string_in(f->str, read_sized(p, u->offset_bytes, f->swapped));
	case DW_FORM_line_strp:
		return string_in(f->line_str, read_sized(p, u->offset_bytes, f->swapped));
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
		return f->alt ? string_in(f->alt->str, read_sized(p, u->offset_bytes, f->swapped)) : NULL;
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return string_by_index(form_number(form, 0, &p, u), u);
	default:
		return NULL;
	}
}

/* --- addresses and references --- */

bool unit_address(const struct unit *u, uint64_t index, uint64_t *ret)
{
	/* A split unit's addresses are in the file that was linked. */
	const struct unit *owner = u->skeleton ? u->skeleton : u;
	struct span table = owner->file->addr;
	uint64_t at;
	if (__builtin_mul_overflow(index, (uint64_t)u->address_bytes, &at) || __builtin_add_overflow(at, owner->addresses_base, &at) ||
	    at > table.n || table.n - at < u->address_bytes)
		return false;
	*ret = read_sized(table.at + at, u->address_bytes, owner->file->swapped);
	return true;
}

bool form_reference(unsigned form, uint64_t value, const struct unit *u, const struct dwarf_file **ret_file, uint64_t *ret_offset)
{
	switch (form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		*ret_file = u->file;
		return !__builtin_add_overflow(value, u->offset, ret_offset) && *ret_offset < u->end;
	case DW_FORM_ref_addr:
		*ret_file = u->file;
		*ret_offset = value;
		return value < u->file->info.n;
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8:
	case DW_FORM_GNU_ref_alt:
		*ret_file = u->file->alt;
		*ret_offset = value;
		return *ret_file && value < (*ret_file)->info.n;
	default:
		return false;
	}
}
