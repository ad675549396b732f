#!/usr/bin/env python3
"""make.py OUT: seeds of fuzz_units, from units.cc with the compilers that are here (gcc, clang 14, lld, dwz, llvm-dwp). See fuzz_units.c
for what an input is. What is kept in fuzz/corpus/units has in addition what fuzzing found."""
import os
import struct
import subprocess
import sys
import tempfile

NAMES = ["info", "types", "abbrev", "line", "str", "line_str", "ranges", "rnglists", "aranges", "addr", "str_offsets", "cu_index"]
NONE, ALT, DWO, DWP = range(4)
here = os.path.dirname(os.path.realpath(__file__))


def elf(path):
    """Sections by name (bytes), the order of bytes, and where the code is."""
    d = open(path, "rb").read()
    is64, order = d[4] == 2, "<" if d[5] == 1 else ">"
    at, = struct.unpack_from(order + ("Q" if is64 else "I"), d, 40 if is64 else 32)
    size, n, names_index = struct.unpack_from(order + "HHH", d, 58 if is64 else 46)
    headers = []
    for i in range(n):
        if is64:
            name, kind, _, address, offset, length = struct.unpack_from(order + "IIQQQQ", d, at + i * size)
        else:
            name, kind, _, address, offset, length = struct.unpack_from(order + "IIIIII", d, at + i * size)
        headers.append((name, kind, address, offset, length))
    names = headers[names_index][3]
    found, code = {}, (0, 0)
    for name, kind, address, offset, length in headers:
        text = d[names + name:d.index(b"\0", names + name)].decode()
        if kind != 8:
            found.setdefault(text, d[offset:offset + length])
        if text == ".text":
            code = (address, length)
    return found, order, code


def sections(found, suffix):
    return [found.get(".debug_" + name + ("" if name == "cu_index" and not suffix else suffix if name != "cu_index" else ""), b"") for name in NAMES]


def put(out, name, first, second=None, kind=NONE):
    found, order, (code, length) = elf(first)
    parts = sections(found, "")
    if second:
        other = elf(second)[0]
        parts += sections(other, "" if kind == ALT else ".dwo")
        if kind == DWP:
            parts[len(NAMES) + NAMES.index("cu_index")] = other.get(".debug_cu_index", b"")
    else:
        parts += [b""] * len(NAMES)
    for variant in range(2):
        flags = (order == ">") | (2 if variant else 0) | (4 if variant else 0) | kind << 3
        header = struct.pack("<BBHI", flags, 0xfe if variant else 0, min(length, 65535), code)
        body = b"".join(parts)
        data = header + b"".join(struct.pack("<H", len(p)) for p in parts) + body
        open(os.path.join(out, name + ("-symbols" if variant else "")), "wb").write(data)
        if variant == 0:
            print(f"{name}: {len(data)} bytes")


def run(*command, cwd=None):
    """False, too, for what takes forever: llvm-dwp 14 does over GCC's DWARF 5."""
    try:
        return subprocess.run(command, cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=20).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def link(to, compiler, *flags, source="units.cc", cwd=None):
    common = ["-x", "c++", "-fno-exceptions", "-fno-rtti", "-fno-asynchronous-unwind-tables", "-nostdlib", "-shared", "-fPIC", "-fdebug-prefix-map=%s=." % (cwd or os.getcwd()),
              "-Wl,--build-id=none", "-Wl,-z,norelro", "-Wl,-z,noseparate-code", "-Wl,-z,max-page-size=16"]
    if compiler == "g++":
        common.append("-gno-record-gcc-switches")
    return run(compiler, *common, *flags, "-o", to, source, cwd=cwd)


def main(out):
    out = os.path.realpath(out)
    os.makedirs(out, exist_ok=True)
    work = tempfile.TemporaryDirectory()
    os.chdir(work.name)
    text = open(os.path.join(here, "units.cc")).read()
    open("units.cc", "w").write(text)
    open("two.cc", "w").write(text.replace("int e(", "int e2(").replace("S::m", "S::m2").replace("int m(", "int m2(").replace("s.m(", "s.m2("))
    clang = "clang++-14"
    variants = {}
    for v in "2345":
        variants["gcc" + v] = ["g++", "-O1", "-gdwarf-" + v]
        variants["clang" + v] = [clang, "-O1", "-gdwarf-" + v]
    variants |= {
        "gcc4-64": ["g++", "-O1", "-gdwarf-4", "-gdwarf64"], "gcc5-64": ["g++", "-O1", "-gdwarf-5", "-gdwarf64"],
        "clang5-64": [clang, "-O1", "-gdwarf-5", "-gdwarf64"], "gcc3-strict": ["g++", "-O1", "-gdwarf-3", "-gstrict-dwarf"],
        "gcc5-O0": ["g++", "-O0", "-g"], "clang4-O0": [clang, "-O0", "-gdwarf-4"],
        "gcc4-types": ["g++", "-O1", "-gdwarf-4", "-fdebug-types-section"], "gcc5-types": ["g++", "-O1", "-g", "-fdebug-types-section"],
        "gcc5-sections": ["g++", "-O1", "-g", "-ffunction-sections"], "gcc4-sections": ["g++", "-O1", "-gdwarf-4", "-ffunction-sections"],
        "clang5-sections": [clang, "-O1", "-gdwarf-5", "-ffunction-sections"],
        "clang4-lines": [clang, "-O1", "-gdwarf-4", "-gmlt"], "gcc5-32": ["g++", "-m32", "-O1", "-g"],
        "clang5-mips": [clang, "-target", "mips-linux-gnu", "-fuse-ld=lld", "-O1", "-gdwarf-5"],
        "clang4-ppc64": [clang, "-target", "powerpc64-linux-gnu", "-fuse-ld=lld", "-O1", "-gdwarf-4"],
        "clang2-mips": [clang, "-target", "mips-linux-gnu", "-fuse-ld=lld", "-O1", "-gdwarf-2"],
    }
    # Units that refer to others, with abbreviations of their own.
    for v in "45":
        variants["gcc%s-lto" % v] = ["g++", "-O1", "-gdwarf-" + v, "-flto"]
        variants["gcc%s-two" % v] = ["g++", "-O1", "-gdwarf-" + v, "two.cc"]
    for name, (compiler, *flags) in variants.items():
        if link(name, compiler, *flags):
            put(out, name, name)
            if name.endswith(("-two", "-lto")) and run("dwz", name):
                put(out, name + "-dwz", name)
        else:
            print("without", name)
    for v in "45":
        for compiler, short in (("g++", "gcc"), (clang, "clang")):
            name = short + v + "-split"
            os.mkdir(name)
            open(name + "/u.cc", "w").write(text)
            if not link("program", compiler, "-O1", "-gdwarf-" + v, "-gsplit-dwarf", "-gno-pubnames", source="u.cc", cwd=os.path.realpath(name)):
                print("without", name)
                continue
            dwo = [f for f in os.listdir(name) if f.endswith(".dwo")]
            put(out, name, name + "/program", name + "/" + dwo[0], DWO)
            if run("llvm-dwp-14", name + "/" + dwo[0], "-o", name + "/dwp"):
                put(out, name + "-dwp", name + "/program", name + "/dwp", DWP)
        if link("one" + v, "g++", "-O1", "-gdwarf-" + v) and link("two" + v, "g++", "-O1", "-gdwarf-" + v, source="two.cc"):
            if run("dwz", "-m", "common" + v, "one" + v, "two" + v):
                put(out, "gcc" + v + "-dwz", "one" + v, "common" + v, ALT)


main(sys.argv[1])
