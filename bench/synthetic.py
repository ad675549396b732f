"""A pprof file as large profiles of big programs are: 100,000 stacks of 20 to 60 frames over 20,000 functions.

Written byte by byte here, so that neither reader gets the other's idea of the format.
"""
import gzip
import random

STACKS, FUNCTIONS, LEAST, MOST = 100000, 20000, 20, 60


def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    """A varint field, or a length-delimited one when value is bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def write(path):
    rng = random.Random(1)
    strings = ["", "inuse_objects", "count", "inuse_space", "bytes", "space", "/opt/program/bin/program"]
    for i in range(FUNCTIONS):
        strings.append("component%d::Class%d::method_%d(int, char const*)" % (i % 40, i % 700, i))
    for i in range(800):
        strings.append("/src/component%d/file_%d.cc" % (i % 40, i))
    first_function, first_file = 7, 7 + FUNCTIONS
    parts = [field(1, field(1, 1) + field(2, 2)), field(1, field(1, 3) + field(2, 4))]
    parts.append(field(3, field(1, 1) + field(2, 0x400000) + field(3, 0x8000000) + field(5, 6) +
                       b"".join(field(n, 1) for n in (7, 8, 9))))
    locations = []
    for i in range(FUNCTIONS):
        parts.append(field(5, field(1, i + 1) + field(2, first_function + i) + field(3, first_function + i) +
                           field(4, first_file + i % 800) + field(5, i % 3000)))
        for site in range(2):
            number = 2 * i + site + 1
            line = field(1, i + 1) + field(2, i % 3000 + 3 + site)
            parts.append(field(4, field(1, number) + field(2, 1) + field(3, 0x400000 + number * 24) + field(4, line)))
            locations.append(varint(number))
    for i in range(STACKS):
        frames = b"".join(rng.choices(locations, k=rng.randint(LEAST, MOST)))
        objects = rng.randint(1, 1000)
        values = varint(objects) + varint(objects * rng.choice((16, 48, 256, 4096)))
        parts.append(field(2, field(1, frames) + field(2, values)))
    parts += [field(6, text.encode()) for text in strings]
    parts += [field(9, 1700000000000000000), field(11, field(1, 5) + field(2, 4)), field(12, 524288)]
    with gzip.open(path, "wb", 6) as out:
        out.write(b"".join(parts))
