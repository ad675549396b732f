#!/usr/bin/env python3
"""hostile.py SYMBOL-COMPARE: ELF files made by hand to take for ever, to take all memory, or to lead astray. Each must be answered within a
second and with little memory.

What is not about time says what the answer must be: the rest of the file is readable after all.
"""
import os
import re
import resource
import struct
import subprocess
import sys
import tempfile
import zlib

COMPARE = os.path.abspath(sys.argv[1])
SANITIZED = bool(os.environ.get("SANITIZED"))
SECONDS = 20.0 if SANITIZED else 1.0
DATA_MIB = 320                   # of memory that is not of files: a million units take 240
TEXT, TEXT_BYTES = 0x1000, 0x10000
MANY = 1000000

TAG_BLOCK, TAG_CU, TAG_IMPORT, TAG_INLINED, TAG_SUB, TAG_NAMESPACE, TAG_PARTIAL = 0x0b, 0x11, 0x3d, 0x1d, 0x2e, 0x39, 0x3c
NAME, STMT_LIST, LOW, HIGH, ORIGIN, SPECIFICATION, RANGES, INLINE, IMPORT, CALL_LINE, LINKAGE, SIBLING = \
    0x03, 0x10, 0x11, 0x12, 0x31, 0x47, 0x55, 0x20, 0x18, 0x59, 0x6e, 0x01
ADDR, BLOCK, DATA1, DATA4, DATA8, STRING, UDATA, REF4, REF_UDATA, REF_ADDR, INDIRECT, SEC_OFFSET, EXPRLOC, RNGLISTX, STRX, ADDRX = \
    0x01, 0x09, 0x0b, 0x06, 0x07, 0x08, 0x0f, 0x13, 0x15, 0x10, 0x16, 0x17, 0x18, 0x23, 0x1a, 0x1b


def uleb(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def u16(n):
    return struct.pack("<H", n)


def u32(n):
    return struct.pack("<I", n & 0xffffffff)


def u64(n):
    return struct.pack("<Q", n & 0xffffffffffffffff)


def abbrev(code, tag, children, *pairs):
    return uleb(code) + uleb(tag) + bytes([children]) + b"".join(uleb(n) + uleb(f) for n, f in pairs) + b"\0\0"


def unit(body, version=4, abbrevs=0, length=None):
    head = u16(version) + (b"\1\x08" + u32(abbrevs) if version == 5 else u32(abbrevs) + b"\x08")
    return u32(len(head) + len(body) if length is None else length) + head + body


FIRST = {4: 11, 5: 12}           # offset of a unit's first entry

# A unit's entry and a function, for those that want nothing else of them.
CU = abbrev(1, TAG_CU, 1, (NAME, STRING), (LOW, ADDR), (HIGH, DATA4))
SUB = abbrev(2, TAG_SUB, 1, (NAME, STRING), (LOW, ADDR), (HIGH, DATA4))


def cu(name=b"unit.c"):
    return uleb(1) + name + b"\0" + u64(TEXT) + u32(TEXT_BYTES)


def sub(name=b"function", low=TEXT, size=TEXT_BYTES):
    return uleb(2) + name + b"\0" + u64(low) + u32(size)


def elf(sections, symbols=b"", names=b"\0"):
    """sections: name -> bytes, or (bytes, flags). The code is zeros."""
    table, strings, offset = [], b"\0", 0x1000 + TEXT_BYTES
    parts = [(".text", 1, 6, TEXT, 0x1000, TEXT_BYTES, 0, 0)]
    blob = bytearray(TEXT_BYTES)
    if symbols:
        sections = {**sections, ".strtab": names, ".symtab": symbols}
    for name, data in sections.items():
        data, flags = data if isinstance(data, tuple) else (data, 0)
        kind = 2 if name == ".symtab" else 3 if name == ".strtab" else 1
        link = 1 + list(sections).index(".strtab") + 1 if name == ".symtab" else 0
        address = 0x100000 if name == ".eh_frame" else 0
        parts.append((name, kind, flags | (2 if address else 0), address, 0x1000 + len(blob), len(data), link, 24 if kind == 2 else 0))
        blob += data
    parts.append((".shstrtab", 3, 0, 0, 0, 0, 0, 0))
    for name, *_ in parts:
        table.append(len(strings))
        strings += name.encode() + b"\0"
    offset = 0x1000 + len(blob)
    parts[-1] = (".shstrtab", 3, 0, 0, offset, len(strings), 0, 0)
    headers = bytes(64) + b"".join(struct.pack("<IIQQQQIIQQ", at, kind, flags, address, where, size, link, 0, 1, entry)
                                   for at, (_, kind, flags, address, where, size, link, entry) in zip(table, parts))
    start = offset + len(strings)
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, TEXT, 64, start, 0, 64, 56, 1, 64, len(parts) + 1, len(parts))
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0x1000, TEXT, TEXT, TEXT_BYTES, TEXT_BYTES, 0x1000)
    return (header + segment).ljust(0x1000, b"\0") + bytes(blob) + strings + headers


def dwarf(info, abbrevs, **more):
    return elf({".debug_info": info, ".debug_abbrev": abbrevs + b"\0", **{"." + k: v for k, v in more.items()}})


def line4(program, files=b"\0", version=4, opcode_base=13, line_range=14, header_length=None, least=1):
    lengths = bytes([0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1]) + bytes(max(0, opcode_base - 13))
    head = bytes([least, 1, 1, 0xfb, line_range, opcode_base]) + lengths[:max(opcode_base - 1, 0)] + b"\0" + files
    body = u16(version) + u32(len(head) if header_length is None else header_length) + head + program
    return u32(len(body)) + body


SET_ADDRESS = b"\0\x09\x02" + u64(TEXT)
END = b"\0\1\1"
CU_LINES = abbrev(1, TAG_CU, 1, (NAME, STRING), (LOW, ADDR), (HIGH, DATA4), (STMT_LIST, SEC_OFFSET))


def with_lines(lines, version=4):
    return dwarf(unit(cu() + u32(0) + sub() + b"\0\0", version), CU_LINES + SUB, debug_line=lines)


# --- the files ---------------------------------------------------------------------

def origin_loops():
    """Inlined calls whose origins lead to each other and to themselves."""
    inlined = abbrev(3, TAG_INLINED, 0, (ORIGIN, REF4), (LOW, ADDR), (HIGH, DATA4))
    other = abbrev(4, TAG_SUB, 0, (ORIGIN, REF4)) + abbrev(5, TAG_SUB, 0, (SPECIFICATION, REF4))
    head = cu() + sub()
    at = FIRST[4] + len(head)
    size = 1 + 4 + 8 + 4
    own = b"".join(uleb(3) + u32(at + size * i) + u64(TEXT + 16 * i) + u32(16) for i in range(2))
    a = at + size * 4
    more = b"".join(uleb(3) + u32(a) + u64(TEXT + 64 + 16 * i) + u32(16) for i in range(2))
    return dwarf(unit(head + own + more + uleb(4) + u32(a + 5) + uleb(5) + u32(a) + b"\0\0"), CU + SUB + inlined + other), "function"


def origin_chain():
    """Half a million entries, each the origin of the one before."""
    inlined = abbrev(3, TAG_INLINED, 0, (ORIGIN, REF4), (LOW, ADDR), (HIGH, DATA4)) + abbrev(4, TAG_SUB, 0, (ORIGIN, REF4))
    head = cu() + sub()
    at = FIRST[4] + len(head) + 17
    chain = b"".join(uleb(4) + u32(at + 5 * (i + 1)) for i in range(MANY // 2))
    return dwarf(unit(head + uleb(3) + u32(at) + u64(TEXT) + u32(TEXT_BYTES) + chain + b"\0\0"), CU + SUB + inlined), "function"


def indirect_loop():
    """A form that says that the form is said in the data, a million times."""
    odd = abbrev(1, TAG_CU, 1, (CALL_LINE, INDIRECT), (NAME, STRING))
    return dwarf(unit(uleb(1) + bytes([INDIRECT]) * MANY + bytes([DATA1, 1]) + b"name\0\0"), odd), None


def indirect_in_function():
    odd = abbrev(3, TAG_BLOCK, 0, (CALL_LINE, INDIRECT))
    return dwarf(unit(cu() + sub() + uleb(3) + bytes([INDIRECT]) * MANY + bytes([DATA1, 1]) + b"\0\0"), CU + SUB + odd), "function"


def deep_blocks():
    """Entries a million deep that have no code."""
    return dwarf(unit(cu() + sub() + uleb(3) * MANY + b"\0" * (MANY + 2)), CU + SUB + abbrev(3, TAG_BLOCK, 1)), "function"


def deep_namespaces():
    """A function below a million namespaces, whose scope somebody may want to name."""
    ns = abbrev(3, TAG_NAMESPACE, 1, (NAME, STRING))
    return dwarf(unit(cu() + (uleb(3) + b"n\0") * MANY + sub() + b"\0" * (MANY + 2)), CU + SUB + ns), None


def deep_functions():
    """The same with functions around functions, all of which have the code."""
    return dwarf(unit(cu() + sub() * (MANY // 4) + b"\0" * (MANY // 4 + 1)), CU + SUB), None


def deep_inlines():
    """A quarter of a million inlined calls around each other, all of which have the address."""
    inlined = abbrev(3, TAG_INLINED, 1, (ORIGIN, REF4), (LOW, ADDR), (HIGH, DATA4))
    one = uleb(3) + u32(FIRST[4] + len(cu())) + u64(TEXT) + u32(TEXT_BYTES)
    return dwarf(unit(cu() + sub() + one * (MANY // 4) + b"\0" * (MANY // 4 + 2)), CU + SUB + inlined), None


def wide_inlines():
    """Side by side, all of which have all addresses."""
    inlined = abbrev(3, TAG_INLINED, 0, (ORIGIN, REF4), (LOW, ADDR), (HIGH, DATA4))
    one = uleb(3) + u32(FIRST[4] + len(cu())) + u64(TEXT) + u32(TEXT_BYTES)
    return dwarf(unit(cu() + sub() + one * MANY + b"\0\0"), CU + SUB + inlined), None


def too_many_frames():
    """More than all answers together may have. The addresses have a symbol, too."""
    inlined = abbrev(3, TAG_INLINED, 1, (ORIGIN, REF4), (LOW, ADDR), (HIGH, DATA4))
    one = uleb(3) + u32(FIRST[4] + len(cu())) + u64(TEXT) + u32(TEXT_BYTES)
    info = unit(cu() + sub() + one * 600 + b"\0" * 602)
    symbol = struct.pack("<IBBHQQ", 1, 0x12, 0, 1, TEXT, TEXT_BYTES)
    return elf({".debug_info": info, ".debug_abbrev": CU + SUB + inlined + b"\0"}, bytes(24) + symbol, b"\0symbol\0"), None


too_many_frames.addresses = 6000
too_many_frames.damaged = True


def never_ending_children():
    """Entries that say they have children, and no end of them."""
    return dwarf(unit(cu() + sub() + uleb(3) * MANY), CU + SUB + abbrev(3, TAG_BLOCK, 1)), "function"


def sibling_loops():
    """Siblings that lie before."""
    odd = abbrev(3, TAG_BLOCK, 1, (SIBLING, REF4))
    head = cu() + sub()
    at = FIRST[4] + len(head)
    return dwarf(unit(head + (uleb(3) + u32(at)) * 1000 + b"\0" * 1002), CU + SUB + odd), "function"


def unit_lies():
    """A unit that says it is longer than the file, behind one that is right; and one of no length."""
    good = unit(cu() + sub() + b"\0\0")
    return dwarf(good + unit(cu(), length=0xffffff00) + u32(0) * 100, CU + SUB), "function"


def unit_lies_64():
    good = unit(cu() + sub() + b"\0\0")
    return dwarf(good + u32(0xffffffff) + u64(0x7fffffffffffffff) + u16(5), CU + SUB), "function"


def empty_units():
    """A million units of nothing."""
    return dwarf((u32(7) + u16(4) + u32(0) + b"\x08") * MANY, CU + SUB), None


def tiny_units():
    """And of next to nothing."""
    return dwarf((u32(8) + u16(4) + u32(0) + b"\x08\0") * MANY, CU + SUB), None


def small_units():
    """A quarter of a million that each have an entry of their own without code."""
    return dwarf(unit(uleb(3)) * (MANY // 4), CU + SUB + abbrev(3, TAG_CU, 0)), None


def claiming_units():
    """20,000 units that all say the whole code is theirs."""
    return dwarf(unit(cu() + sub() + b"\0\0") * 20000, CU + SUB), "function"


def claiming_ranges():
    """2,000 units with 2,000 ranges each, all the whole code."""
    root = abbrev(1, TAG_CU, 1, (NAME, STRING), (RANGES, SEC_OFFSET))
    ranges = (u64(TEXT) + u64(TEXT + TEXT_BYTES)) * 2000 + u64(0) + u64(0)
    return dwarf(unit(uleb(1) + b"u\0" + u32(0) + sub() + b"\0\0") * 2000, root + SUB, debug_ranges=ranges), None


def aranges_lie():
    """.debug_aranges: of 4 GB, of addresses of 255 bytes, and a million entries for all code."""
    good = unit(cu() + sub() + b"\0\0")
    entries = (u64(TEXT) + u64(TEXT_BYTES)) * (MANY // 4) + u64(0) * 2
    body = u16(2) + u32(0) + b"\x08\0" + u32(0) + entries
    odd = u32(0xfffffff0) + u16(2) + u32(0) + b"\xff\xff"
    return dwarf(good, CU + SUB, debug_aranges=u32(len(body)) + body + odd), "function"


def block_lies():
    """Blocks of 2^64 - 1 bytes."""
    odd = abbrev(3, TAG_BLOCK, 0, (CALL_LINE, EXPRLOC)) + abbrev(4, TAG_BLOCK, 0, (CALL_LINE, BLOCK))
    return dwarf(unit(cu() + sub() + uleb(3) + uleb(2 ** 64 - 1) + uleb(4) + uleb(2 ** 63) + b"\0\0"), CU + SUB + odd), "function"


def abbrev_codes():
    """Declarations of code 2^32, 2^63 and 2^64 - 1."""
    odd = b"".join(abbrev(code, TAG_BLOCK, 0) for code in (2 ** 32 - 1, 2 ** 32, 2 ** 63, 2 ** 64 - 1))
    return dwarf(unit(cu() + sub() + uleb(2 ** 63) + b"\0\0"), CU + SUB + odd), "function"


def abbrev_attributes():
    """A declaration of a million attributes, each of no bytes, used ten thousand times."""
    odd = abbrev(3, TAG_BLOCK, 0, *[(CALL_LINE, 0x19)] * MANY)
    return dwarf(unit(cu() + sub() + uleb(3) * 10000 + b"\0\0"), CU + SUB + odd), None


def abbrev_tables():
    """20,000 units with tables of 20,000 declarations, each unit's beginning one further."""
    table = b"".join(abbrev(i + 10, TAG_BLOCK, 0) for i in range(20000))
    units, at, i = [], 0, 0
    for i in range(20000):
        units.append(unit(uleb(i + 10) + b"\0", abbrevs=at))
        at += len(abbrev(i + 10, TAG_BLOCK, 0))
    return dwarf(b"".join(units), table), None


def abbrev_tables_used():
    """The same, and the units have code."""
    shared = CU + SUB + b"".join(abbrev(i + 10, TAG_BLOCK, 0) for i in range(100000))
    return dwarf(b"".join(unit(cu() + sub(low=TEXT + 2 * i, size=2) + b"\0\0", abbrevs=0) for i in range(20000)), shared), None


def origins_across_units():
    """20,000 inlined calls whose origins are in as many units with big tables of declarations."""
    big = CU + SUB + abbrev(3, TAG_INLINED, 0, (ORIGIN, REF_ADDR), (LOW, ADDR), (HIGH, DATA4)) + b"".join(abbrev(i + 10, TAG_BLOCK, 0) for i in range(20000))
    small = unit(uleb(2) + b"far\0" + u64(0) + u32(0) + b"\0")
    n = 20000
    body = cu() + sub()
    total = FIRST[4] + len(body) + n * 17 + 2
    body += b"".join(uleb(3) + u32(total + i * len(small) + FIRST[4]) + u64(TEXT + i * 3) + u32(3) for i in range(n)) + b"\0\0"
    return dwarf(unit(body) + small * n, big), None


def import_loop():
    """Units that include each other."""
    odd = abbrev(3, TAG_IMPORT, 0, (IMPORT, REF_ADDR))
    return dwarf(unit(cu() + (uleb(3) + u32(11)) * 1000 + sub() + b"\0\0"), CU + SUB + odd), "function"


def line_counts():
    """Version 5: 2^32 files of four bytes each, that is more than there are."""
    head = bytes([1, 1, 1, 0xfb, 14, 13]) + bytes(12) + b"\1" + uleb(1) + uleb(0x08) + uleb(1) + b"d\0" + b"\1" + uleb(1) + uleb(0x06) + uleb(2 ** 32)
    body = u16(5) + b"\x08\0" + u32(len(head)) + head + SET_ADDRESS + END
    return with_lines(u32(len(body)) + body, 5), "function"


def line_empty_entries():
    """Version 5: 2^63 folders and files that have no bytes at all."""
    head = bytes([1, 1, 1, 0xfb, 14, 13]) + bytes(12) + b"\0" + uleb(2 ** 63) + b"\0" + uleb(2 ** 63)
    body = u16(5) + b"\x08\0" + u32(len(head)) + head + SET_ADDRESS + END
    return with_lines(u32(len(body)) + body, 5), "function"


def line_formats():
    """Version 5: 255 fields a file, of which none has bytes."""
    head = bytes([1, 1, 1, 0xfb, 14, 13]) + bytes(12) + b"\xff" + (uleb(1) + uleb(0x19)) * 255 + uleb(2 ** 40) + b"\0\0"
    body = u16(5) + b"\x08\0" + u32(len(head)) + head + SET_ADDRESS + END
    return with_lines(u32(len(body)) + body, 5), "function"


def line_files():
    """A table of a million files, shared by 5,000 units."""
    lines = line4(SET_ADDRESS + bytes([14]) * 100 + END, files=b"f\0\0\0\0" * MANY + b"\0")
    units = b"".join(unit(cu() + u32(0) + sub(low=TEXT + 8 * i, size=8) + b"\0\0") for i in range(5000))
    return dwarf(units, CU_LINES + SUB, debug_line=lines), None


def line_divides():
    return with_lines(line4(SET_ADDRESS + bytes([200]) * 100 + END, line_range=0)), "function"


def lines_of_one_unit():
    """The lines of the bigger unit are damaged, those of the other are not: that is told."""
    bad, good = line4(SET_ADDRESS + bytes([200]) * 100 + END, line_range=0), line4(SET_ADDRESS + bytes([20]) * 100 + END)
    half = TEXT_BYTES // 2
    head = [uleb(1) + b"unit.c\0" + u64(TEXT + half * i) + u32(half) + u32(len(bad) * i) for i in range(2)]
    units = [unit(head[i] + sub(low=TEXT + half * i, size=half) + b"\0\0" + bytes(100 * (1 - i))) for i in range(2)]
    return dwarf(units[0] + units[1], CU_LINES + SUB, debug_line=bad + good), "function"


lines_of_one_unit.damaged = True


def line_opcodes():
    return with_lines(line4(SET_ADDRESS + bytes([1]) * 100 + END, opcode_base=0)), "function"


def line_header_lies():
    return with_lines(line4(SET_ADDRESS + END, header_length=0xfffffff0)), "function"


def line_rows():
    """Sixteen million rows at the same place."""
    return with_lines(line4(SET_ADDRESS + b"\1" * (16 * MANY) + END)), None


def line_sequences():
    """A million sequences that all begin where the code does."""
    return with_lines(line4((SET_ADDRESS + b"\x02" + uleb(TEXT_BYTES) + END) * MANY)), None


def line_shared():
    """A million rows, the lines of 5,000 units."""
    lines = line4(SET_ADDRESS + b"\1" * MANY + b"\x02" + uleb(TEXT_BYTES) + END)
    units = b"".join(unit(cu() + u32(0) + sub(low=TEXT + 8 * i, size=8) + b"\0\0") for i in range(5000))
    return dwarf(units, CU_LINES + SUB, debug_line=lines), None


def ranges_without_end():
    root = abbrev(1, TAG_CU, 1, (NAME, STRING), (RANGES, SEC_OFFSET))
    ranges = (u64(TEXT) + u64(TEXT + 8)) * MANY
    return dwarf(unit(uleb(1) + b"u\0" + u32(0) + sub() + b"\0\0"), root + SUB, debug_ranges=ranges), None


def ranges_shared():
    """A function's list of 100,000 ranges, which 100,000 blocks have."""
    block = abbrev(3, TAG_INLINED, 0, (ORIGIN, REF4), (RANGES, SEC_OFFSET))
    ranges = (u64(TEXT + 8) + u64(TEXT + 8)) * 100000 + (u64(TEXT) + u64(TEXT + 8)) + u64(0) * 2
    body = cu() + sub() + (uleb(3) + u32(FIRST[4] + len(cu())) + u32(0)) * 100000 + b"\0\0"
    return dwarf(unit(body), CU + SUB + block, debug_ranges=ranges), None


def rnglists_lie():
    """A table of 2^32 lists."""
    root = abbrev(1, TAG_CU, 1, (NAME, STRING), (RANGES, RNGLISTX), (0x74, SEC_OFFSET))
    lists = u32(0xfffffff0) + u16(5) + b"\x08\0" + u32(0xffffffff) + u32(0xfffffff0)
    return dwarf(unit(uleb(1) + b"u\0" + uleb(2 ** 62) + u32(12) + sub() + b"\0\0", 5), root + SUB, debug_rnglists=lists), None


def indexes_lie():
    """Strings and addresses of numbers up to 2^64 - 1."""
    root = abbrev(1, TAG_CU, 1, (NAME, STRX), (LOW, ADDRX), (HIGH, DATA4), (0x72, SEC_OFFSET), (0x73, SEC_OFFSET))
    body = uleb(1) + uleb(2 ** 61) + uleb(2 ** 61) + u32(16) + u32(0xfffffff0) + u32(0xfffffff8) + sub() + b"\0\0"
    return dwarf(unit(body, 5), root + SUB, debug_str_offsets=u32(8) + u32(0), debug_addr=u32(8) + u64(0)), None


def long_name():
    """A name of sixteen million letters, and one without an end."""
    tail = abbrev(3, TAG_SUB, 0, (LOW, ADDR), (HIGH, DATA4), (NAME, STRING))
    return dwarf(unit(cu() + sub(b"n" * (16 * MANY), TEXT, 0x8000) + b"\0" + uleb(3) + u64(TEXT + 0x8000) + u32(0x8000) + b"x" * MANY), CU + SUB + tail), None


def mangled_bombs():
    """Names that demangle to gigabytes."""
    bomb = b"_Z1f" + b"".join(b"S%X_" % i + b"S%X_" % i for i in range(30)) + b"i"
    nested = b"_Z1fI" + b"N1aI" * 2000 + b"i" + b"E" * 4001 + b"vT_"
    body = b"".join(uleb(3) + name + b"\0" + u64(TEXT + 0x100 * i) + u32(0x100)
                    for i, name in enumerate([bomb, nested, b"_Z" + b"P" * 100000 + b"i", b"_R" + b"NvC1a" * 20000, b"_ZN" + b"4deepE" * 1000] * 20))
    return dwarf(unit(cu() + body + b"\0"), CU + abbrev(3, TAG_SUB, 0, (LINKAGE, STRING), (LOW, ADDR), (HIGH, DATA4))), None


def overlapping_symbols():
    """300,000 symbols that all have all of the code."""
    symbols = bytes(24) + b"".join(struct.pack("<IBBHQQ", 1, 0x12, 0, 1, TEXT, TEXT_BYTES - i % 100) for i in range(300000))
    return elf({}, symbols, b"\0all\0"), None


def nested_symbols():
    """Each a little shorter at both ends."""
    n = TEXT_BYTES // 2
    symbols = bytes(24) + b"".join(struct.pack("<IBBHQQ", 1, 0x12, 0, 1, TEXT + i, TEXT_BYTES - 2 * i) for i in range(n))
    return elf({}, symbols, b"\0all\0"), "all"


def unwind_loops():
    """Unwind entries of all code, whose common part is an entry, too; of no length; and of 2^64 - 1."""
    one = u32(20) + u32(0) + b"\1zR\0\1\x78\x10\1\x1b" + bytes(7)
    entry = b"".join(u32(20) + u32(28 + 24 * i) + u32(0) + u32(0xffffffff) + bytes(8) for i in range(100000))
    return elf({".eh_frame": one + entry + u32(0xffffffff) + u64(2 ** 64 - 1) + u32(0)}), None


def compressed_lies():
    """A section that says that 2^60 bytes are packed into it; one of 100 bytes that unpacks to more; and a bomb."""
    good = CU + SUB + b"\0"
    info = unit(cu() + sub() + b"\0\0")

    def packed(data, size):
        return u32(1) + u32(0) + u64(size) + u64(1) + zlib.compress(data), 0x800

    return elf({".debug_info": packed(info, len(info)), ".debug_abbrev": packed(good, len(good)), ".debug_line": packed(b"x", 2 ** 60),
                ".debug_str": packed(bytes(MANY), 100), ".debug_ranges": packed(bytes(100), 0)}), "function"


def compressed_bomb():
    """64 MB of zeros as units of no length."""
    data = bytes(64 * MANY)
    return elf({".debug_info": (u32(1) + u32(0) + u64(len(data)) + u64(1) + zlib.compress(data), 0x800), ".debug_abbrev": CU + SUB + b"\0"}), None


def split_itself():
    """A unit whose split file is this file."""
    root = abbrev(1, TAG_CU, 1, (LOW, ADDR), (HIGH, DATA4), (0x76, STRING))
    head = u16(5) + b"\4\x08" + u32(0) + u64(77)
    body = uleb(1) + u64(TEXT) + u32(TEXT_BYTES) + b"split_itself\0" + sub() + b"\0\0"
    info = u32(len(head) + len(body)) + head + body
    tables = {".debug_info": info, ".debug_abbrev": root + SUB + b"\0", ".debug_info.dwo": info, ".debug_abbrev.dwo": root + SUB + b"\0"}
    return elf(tables), None


def common_itself():
    """A file whose common part (dwz) is this file."""
    info = unit(cu() + sub() + uleb(3) + u32(0x0b) + u64(TEXT) + u32(16) + b"\0\0")
    odd = abbrev(3, TAG_INLINED, 0, (ORIGIN, 0x1f20), (LOW, ADDR), (HIGH, DATA4))
    return elf({".debug_info": info, ".debug_abbrev": CU + SUB + odd + b"\0", ".gnu_debugaltlink": b"common_itself\0" + bytes(20)}), "function"


CASES = [origin_loops, origin_chain, indirect_loop, indirect_in_function, deep_blocks, deep_namespaces, deep_functions, deep_inlines, wide_inlines,
         too_many_frames, never_ending_children, sibling_loops, unit_lies, unit_lies_64, empty_units, tiny_units, small_units, claiming_units, claiming_ranges, aranges_lie, block_lies,
         abbrev_codes, abbrev_attributes, abbrev_tables, abbrev_tables_used, origins_across_units, import_loop, line_counts, line_empty_entries,
         line_formats, line_files, line_divides, lines_of_one_unit, line_opcodes, line_header_lies, line_rows, line_sequences, line_shared, ranges_without_end,
         ranges_shared, rnglists_lie, indexes_lie, long_name, mangled_bombs, overlapping_symbols, nested_symbols, unwind_loops, compressed_lies,
         compressed_bomb, split_itself, common_itself]


def limit_memory():
    if not SANITIZED:
        resource.setrlimit(resource.RLIMIT_DATA, (DATA_MIB << 20, DATA_MIB << 20))


def ask(path, *options):
    try:
        done = subprocess.run([COMPARE, *options, os.path.basename(path)], cwd=os.path.dirname(path), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=60, errors="replace", check=False, preexec_fn=limit_memory)
    except subprocess.TimeoutExpired:
        return "takes more than a minute", False
    return done.stdout, done.returncode == 0


def judge(path, wanted, case):
    """What is wrong, or nothing; and the figures."""
    out, good = ask(path, "-q", "-n", str(getattr(case, "addresses", 2000)))
    figures = re.search(r"cpu (\S+) anonymous", out)
    if not good or not figures:
        return "fails", out
    if float(figures[1]) > SECONDS:
        return "takes too long", out
    if getattr(case, "damaged", False) and " damaged" not in out:
        return "does not say that it is damaged", out
    if wanted:
        text, _ = ask(path, "-p", "-n", "50")
        if wanted not in text:
            return "does not answer " + wanted, text[:500]
    return "", out


def main():
    names = sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        for case in CASES:
            if names and case.__name__ not in names:
                continue
            count += 1
            path = folder + "/" + case.__name__
            data, wanted = case()
            with open(path, "wb") as out:
                out.write(data)
            wrong, why = judge(path, wanted, case)
            print("%sok %d - %s%s" % ("not " if wrong else "", count, case.__name__, ": " + wrong if wrong else ""), flush=True)
            for line in why.splitlines()[:20] if wrong else []:
                print("# " + line)
            os.remove(path)
        print("1..%d" % count)


main()
