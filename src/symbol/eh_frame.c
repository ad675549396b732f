/*
 * .eh_frame is a list of entries: a CIE says how pointers are written, and each FDE behind it names its CIE and the range of
 * code it is for. .eh_frame_hdr has their beginnings sorted, so an address is found by bisection and checked against its
 * FDE's range; without that table every FDE is read once and looked up among the addresses.
 *
 * A pointer's encoding: the low four bits say how it is written, the next three what it counts from.
 */
#include "symbol/eh_frame.h"

#include "base/memory.h"

#include <elf.h>
#include <string.h>

enum {
	WRITTEN_WORD = 0x00, WRITTEN_ULEB = 0x01, WRITTEN_U2 = 0x02, WRITTEN_U4 = 0x03, WRITTEN_U8 = 0x04,
	WRITTEN_SLEB = 0x09, WRITTEN_S2 = 0x0a, WRITTEN_S4 = 0x0b, WRITTEN_S8 = 0x0c,
	FROM_ZERO = 0x00, FROM_HERE = 0x10, FROM_TABLE = 0x30,
	INDIRECT = 0x80, OMITTED = 0xff,
};

#define AUGMENTATION_MAX 16
/* FDEs that cover the same addresses again and again are no real ones. */
#define PAIRS_BASE 1000000
#define PAIRS_PER_ADDRESS 64

/* Bytes of the file that are loaded at an address. */
struct part {
	const uint8_t *bytes;
	size_t n;
	uint64_t address;
	bool is64, swapped;
};

struct cursor {
	const struct part *part;
	size_t at, end;              /* at > end: something was cut off */
};

struct fde {
	uint64_t start, bytes;
};

/* How the FDEs of the last CIE are written. */
struct cie {
	size_t at;
	bool known;
	uint8_t encoding;
};

/* --- numbers --- */

static uint64_t take(struct cursor *c, size_t n)
{
	uint64_t value = 0;
	if (c->at > c->end || c->end - c->at < n) {
		c->at = SIZE_MAX;
		return 0;
	}
	const uint8_t *at = c->part->bytes + c->at;
	bool big = (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__) != c->part->swapped;
	for (size_t i = 0; i < n; i++)
		value = value << 8 | at[big ? i : n - 1 - i];
	c->at += n;
	return value;
}

static uint64_t take_leb(struct cursor *c, bool is_signed)
{
	uint64_t value = 0, byte;
	unsigned shift = 0;
	do {
		byte = take(c, 1);
		if (shift < 64)
			value |= (byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && c->at <= c->end);
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= UINT64_MAX << shift;
	return value;
}

static uint64_t take_signed(struct cursor *c, size_t n)
{
	unsigned unused = 64 - 8 * (unsigned)n;
	return (uint64_t)((int64_t)(take(c, n) << unused) >> unused);
}

/* False for what can't be followed here. table: what FROM_TABLE counts from, 0: nothing. */
static bool take_pointer(struct cursor *c, uint8_t encoding, uint64_t table, uint64_t *ret)
{
	uint64_t here = c->part->address + c->at, value;
	size_t word = c->part->is64 ? 8 : 4;
	switch (encoding & 0x0f) {
	case WRITTEN_WORD: value = take(c, word); break;
	case WRITTEN_ULEB: value = take_leb(c, false); break;
	case WRITTEN_U2: value = take(c, 2); break;
	case WRITTEN_U4: value = take(c, 4); break;
	case WRITTEN_U8: value = take(c, 8); break;
	case WRITTEN_SLEB: value = take_leb(c, true); break;
	case WRITTEN_S2: value = take_signed(c, 2); break;
	case WRITTEN_S4: value = take_signed(c, 4); break;
	case WRITTEN_S8: value = take_signed(c, 8); break;
	default: return false;
	}
	switch (encoding & 0x70) {
	case FROM_ZERO: break;
	case FROM_HERE: value += here; break;
	case FROM_TABLE:
		if (!table)
			return false;
		value += table;
		break;
	default: return false;
	}
	*ret = c->part->is64 ? value : (uint32_t)value;
	return c->at <= c->end && !(encoding & INDIRECT);
}

/* --- entries --- */

/* From the length on; ret: what follows it. False at the end. */
static bool open_entry(const struct part *frame, size_t at, struct cursor *ret)
{
	*ret = (struct cursor){ frame, at, frame->n };
	uint64_t n = take(ret, 4);
	if (n == 0xffffffff)
		n = take(ret, 8);
	if (ret->at > ret->end || n > ret->end - ret->at)
		return false;
	ret->end = ret->at + n;
	return true;
}

/* What the letters of the augmentation tell of the FDEs. */
static bool read_augmentation(struct cursor *c, const char *letters, uint8_t *ret_encoding)
{
	uint64_t ignored;
	take_leb(c, false);
	for (const char *l = letters; *l; l++)
		switch (*l) {
		case 'L': take(c, 1); break;
		case 'R': *ret_encoding = (uint8_t)take(c, 1); break;
		case 'P': {
			/* Only its length matters, not where it leads. */
			uint8_t encoding = (uint8_t)take(c, 1);
			if (!take_pointer(c, encoding & 0x0f, 0, &ignored))
				return false;
			break;
		}
		case 'S': case 'B': case 'G': break;
		default: return false;
		}
	return c->at <= c->end;
}

static bool read_cie(const struct part *frame, size_t at, uint8_t *ret_encoding)
{
	struct cursor c;
	char letters[AUGMENTATION_MAX];
	size_t n = 0;
	if (!open_entry(frame, at, &c) || take(&c, 4) != 0)
		return false;
	uint64_t version = take(&c, 1);
	do
		letters[n] = (char)take(&c, 1);
	while (letters[n] && ++n < AUGMENTATION_MAX);
	if (n == AUGMENTATION_MAX || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4)
		take(&c, 2);
	take_leb(&c, false);
	take_leb(&c, true);
	if (version == 1)
		take(&c, 1);
	else
		take_leb(&c, false);
	*ret_encoding = WRITTEN_WORD;
	if (letters[0] == 'z')
		return read_augmentation(&c, letters + 1, ret_encoding);
	return letters[0] == '\0' && c.at <= c.end;
}

/* ret_next: of the entry behind it. False at the end; ret->bytes 0: no FDE, or one that can't be read. */
static bool read_fde(const struct part *frame, size_t at, struct cie *cie, struct fde *ret, size_t *ret_next)
{
	struct cursor c;
	*ret = (struct fde){ 0 };
	if (!open_entry(frame, at, &c))
		return false;
	*ret_next = c.end;
	size_t id_at = c.at;
	uint64_t back = c.at < c.end ? take(&c, 4) : 0, start, bytes;
	if (!back || back > id_at)
		return true;
	if (!cie->known || cie->at != id_at - back) {
		cie->at = id_at - back;
		cie->known = read_cie(frame, cie->at, &cie->encoding);
	}
	if (cie->known && take_pointer(&c, cie->encoding, 0, &start) &&
	    take_pointer(&c, cie->encoding & 0x0f, 0, &bytes))
		*ret = (struct fde){ start, bytes };
	return true;
}

/* --- where they are --- */

static bool find_section(const struct elf_image *e, const char *name, struct part *ret)
{
	struct elf_section s;
	const uint8_t *bytes = elf_section_named(e, name, &s) ? elf_section_bytes(e, &s) : NULL;
	if (!bytes || (s.flags & SHF_COMPRESSED))
		return false;
	*ret = (struct part){ bytes, s.bytes, s.address, e->is64, e->swapped };
	return true;
}

/* The loaded bytes from an address on. */
static bool find_address(const struct elf_image *e, uint64_t address, struct part *ret)
{
	struct elf_segment s;
	for (uint32_t i = 0; elf_segment(e, i, &s); i++) {
		uint64_t in = address - s.address;
		if (s.type != PT_LOAD || in >= s.file_bytes || s.offset > e->n || in >= e->n - s.offset)
			continue;
		uint64_t left = e->n - s.offset - in, of_segment = s.file_bytes - in;
		*ret = (struct part){ e->bytes + s.offset + in, left < of_segment ? left : of_segment, address, e->is64,
			              e->swapped };
		return true;
	}
	return false;
}

static bool find_table(const struct elf_image *e, struct part *ret)
{
	struct elf_segment s;
	if (find_section(e, ".eh_frame_hdr", ret))
		return true;
	for (uint32_t i = 0; elf_segment(e, i, &s); i++)
		if (s.type == PT_GNU_EH_FRAME && find_address(e, s.address, ret)) {
			ret->n = s.file_bytes < ret->n ? s.file_bytes : ret->n;
			return true;
		}
	return false;
}

/* --- the sorted table --- */

struct table {
	struct part part;
	size_t at, n;                /* pairs of 32-bit distances from part.address: of the code, of its FDE; n 0: not usable */
	uint64_t frame_address;      /* 0: not said */
};

static void open_table(const struct elf_image *e, struct table *t)
{
	*t = (struct table){ .n = 0 };
	if (!find_table(e, &t->part))
		return;
	struct cursor c = { &t->part, 0, t->part.n };
	uint64_t version = take(&c, 1), count;
	uint8_t frame = (uint8_t)take(&c, 1), counted = (uint8_t)take(&c, 1), written = (uint8_t)take(&c, 1);
	if (version != 1 || !take_pointer(&c, frame, t->part.address, &t->frame_address))
		return;
	if (written != (FROM_TABLE | WRITTEN_S4) || counted == OMITTED || !take_pointer(&c, counted, t->part.address, &count))
		return;
	t->at = c.at;
	t->n = count <= (c.end - c.at) / 8 ? (size_t)count : (c.end - c.at) / 8;
}

static uint64_t table_number(const struct table *t, size_t i, unsigned which)
{
	struct cursor c = { &t->part, t->at + 8 * i + 4 * which, t->part.n };
	uint64_t value = t->part.address + take_signed(&c, 4);
	return t->part.is64 ? value : (uint32_t)value;
}

static void look_up(const struct table *t, const struct part *frame, const uint64_t *addresses, size_t n, uint64_t *starts)
{
	struct cie cie = { .known = false };
	size_t low = 0, next;
	for (size_t i = 0; i < n; i++) {
		/* The last entry that begins at or before the address; they ascend, as the addresses do. */
		size_t left = t->n - low;
		while (left > 1) {
			size_t half = left / 2;
			if (table_number(t, low + half, 0) <= addresses[i]) {
				low += half;
				left -= half;
			} else {
				left = half;
			}
		}
		struct fde f;
		uint64_t at = table_number(t, low, 1) - frame->address;
		if (at < frame->n && read_fde(frame, (size_t)at, &cie, &f, &next) && addresses[i] >= f.start &&
		    addresses[i] - f.start < f.bytes)
			starts[i] = f.start;
	}
}

/* --- without it --- */

static void walk(const struct part *frame, const uint64_t *addresses, size_t n, uint64_t *starts)
{
	struct cie cie = { .known = false };
	struct fde f;
	uint64_t pairs = PAIRS_BASE + PAIRS_PER_ADDRESS * (uint64_t)n;
	for (size_t at = 0; at < frame->n && read_fde(frame, at, &cie, &f, &at);) {
		if (!f.bytes || f.start > addresses[n - 1])
			continue;
		for (size_t i = lower_bound_u64(addresses, n, f.start); i < n && addresses[i] - f.start < f.bytes; i++) {
			if (pairs-- == 0)
				return;
			if (starts[i] == EH_FRAME_NONE || starts[i] < f.start)
				starts[i] = f.start;
		}
	}
}

void eh_frame_starts(const struct elf_image *e, const uint64_t *addresses, size_t n, uint64_t *starts)
{
	struct table table;
	struct part frame;
	for (size_t i = 0; i < n; i++)
		starts[i] = EH_FRAME_NONE;
	if (n == 0 || e->type == ET_REL)
		return;
	open_table(e, &table);
	if (!find_section(e, ".eh_frame", &frame) && !(table.frame_address && find_address(e, table.frame_address, &frame)))
		return;
	/* Reading every FDE once is as much work as that many bisections. */
	if (table.n && n < table.n)
		look_up(&table, &frame, addresses, n, starts);
	else
		walk(&frame, addresses, n, starts);
}
