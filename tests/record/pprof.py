"""profile.proto, as much of it as a heap profile needs, written and read with nothing but the format's description at hand."""
import gzip

TYPES = ("alloc_objects", "alloc_space", "inuse_objects", "inuse_space")


def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def packed(number, values):
    return field(number, b"".join(varint(v) for v in values))


def encode(stacks, path="/bin/app", build_id="", rate=524288, time_ms=0, base=0x400000, names=None, size=0x100000):
    """stacks: {(offset in the file from the leaf, ...): four values}. names: {offset: function}; else frames have none."""
    strings = [""]

    def text(s):
        if s not in strings:
            strings.append(s)
        return strings.index(s)

    out = b"".join(field(1, field(1, text(t)) + field(2, text("bytes" if t.endswith("space") else "count"))) for t in TYPES)
    offsets = sorted({o for stack in stacks for o in stack})
    number = {o: i + 1 for i, o in enumerate(offsets)}
    for stack, values in stacks.items():
        out += field(2, packed(1, [number[o] for o in stack]) + packed(2, values))
    out += field(3, field(1, 1) + field(2, base) + field(3, base + size) + field(4, 0) + field(5, text(path)) + field(6, text(build_id)))
    for o in offsets:
        line = field(4, field(1, number[o])) if names and o in names else b""
        out += field(4, field(1, number[o]) + field(2, 1) + field(3, base + o) + line)
    for o in offsets:
        if names and o in names:
            out += field(5, field(1, number[o]) + field(2, text(names[o])) + field(3, text(names[o])))
    out += field(11, field(1, text("space")) + field(2, text("bytes"))) + field(12, rate)
    if time_ms:
        out += field(9, time_ms * 1000000)
    return gzip.compress(out + b"".join(field(6, s.encode()) for s in strings), 1)


def fields(data):
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 0:
            yield tag >> 3, number()
        else:
            assert tag & 7 == 2, "wire type %d" % (tag & 7)
            n = number()
            yield tag >> 3, data[at:at + n]
            at += n


def numbers(value):
    if isinstance(value, int):
        return [value]
    out, at = [], 0
    while at < len(value):
        n = shift = 0
        while True:
            byte = value[at]
            at += 1
            n |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        out.append(n)
    return out


def signed(n):
    return n - (1 << 64) if n >> 63 else n


class Profile:
    """types, sums: {stack of frames from the leaf: values}; a frame is its function's name, or its offset in the file."""

    def __init__(self, data):
        strings, types, samples, locations, functions, mappings = [], [], [], {}, {}, {}
        self.period = 0
        for key, value in fields(gzip.decompress(data)):
            if key == 6:
                strings.append(value.decode())
            elif key == 1:
                types.append(dict(fields(value))[1])
            elif key == 2:
                sample = {1: [], 2: []}
                for k, v in fields(value):
                    sample.setdefault(k, []).extend(numbers(v) if k < 3 else [v])
                samples.append(sample)
            elif key == 3:
                m = dict(fields(value))
                mappings[m[1]] = m
            elif key == 4:
                lines = [dict(fields(v)) for k, v in fields(value) if k == 4]
                one = {k: v for k, v in fields(value) if k != 4}
                one["lines"] = [line.get(1, 0) for line in lines]
                locations[one[1]] = one
            elif key == 5:
                f = dict(fields(value))
                functions[f[1]] = f
            elif key == 12:
                self.period = value
        self.types = [strings[t] for t in types]
        self.labels = [{} for _ in samples]
        self.sums = {}
        self.bases = {}

        def frame(location):
            one = locations[location]
            named = [strings[functions[f].get(2, 0)] for f in one["lines"]]
            if named and "!" not in named[0]:
                return named[0]
            m = mappings[one[2]]
            return one[3] - m.get(2, 0) + m.get(4, 0)

        for sample in samples:
            stack = tuple(frame(n) for n in sample[1])
            values = [signed(v) for v in sample[2]]
            labels = [strings[dict(fields(v))[1]] for v in sample.get(3, [])]
            to = self.bases if "pprof::base" in labels else self.sums
            to[stack] = tuple(a + b for a, b in zip(to.get(stack, (0,) * len(values)), values))
        self.build_ids = [strings[m.get(6, 0)] for m in mappings.values()]

    def column(self, name):
        i = self.types.index(name)
        return {stack: values[i] for stack, values in self.sums.items() if values[i]}

    def total(self, name):
        return sum(self.column(name).values())
