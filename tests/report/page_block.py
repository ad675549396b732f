"""A data block of docs/page.md decoded with nothing but that page at hand, and a page's HTML."""
import base64
import gzip
import json
import re

MAGIC = b"HGPAGE1\n"


class Stream:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        value = self.number()
        return value >> 1 ^ -(value & 1)

    def all(self, n, signed=False):
        numbers = [self.signed() if signed else self.number() for _ in range(n)]
        assert self.at == len(self.data), "a stream is longer than its numbers"
        return numbers


class Row:
    def __init__(self, node, new_stack, labels, source, rest, values):
        self.node, self.new_stack, self.labels, self.source, self.rest, self.values = node, new_stack, labels, source, rest, values


class Block:
    def __init__(self, compressed):
        raw = gzip.decompress(compressed)
        assert raw[:8] == MAGIC, raw[:8]
        n = int.from_bytes(raw[8:12], "little")
        self.header = json.loads(raw[12:12 + n].decode())
        at, self.streams = 12 + n, {}
        for s in self.header["streams"]:
            self.streams[s["name"]] = Stream(raw[at:at + s["bytes"]])
            at += s["bytes"]
        assert at == len(raw), "streams end at %d of %d bytes" % (at, len(raw))
        self.read()

    def read(self):
        counts, take = self.header["counts"], self.streams
        lengths, data = take["string_lengths"].all(counts["strings"]), take["string_bytes"].data
        self.strings, at = [], 0
        for length in lengths:
            self.strings.append(data[at:at + length].decode())      # strict: it has to be UTF-8
            at += length
        assert at == len(data) and self.strings[0] == ""
        self.mappings = [self.strings[i] for i in take["mapping_file"].all(counts["mappings"])]
        columns = [take["frame_" + c].all(counts["frames"]) for c in ("name", "file", "line", "mapping", "flags")]
        self.frames = [(self.strings[n], self.strings[f], line, self.mappings[m - 1] if m else None, flags)
                       for n, f, line, m, flags in zip(*columns)]
        assert len(set(zip(*columns))) == counts["frames"], "a frame is there twice"
        self.parent, self.frame, self.depth = [None], [None], [0]
        last = [0]
        for up, frame in zip(take["node_up"].all(counts["nodes"] - 1), take["node_frame"].all(counts["nodes"] - 1)):
            assert 0 <= up < len(last)  or up == 0
            del last[len(last) - up:]
            self.parent.append(last[-1])
            self.depth.append(len(last))
            self.frame.append(frame)
            last.append(len(self.parent) - 1)
        columns = [take["label_" + c].all(counts["labels"]) for c in ("thread", "size", "text")]
        self.labels = [(self.strings[t], size, self.strings[text]) for t, size, text in zip(*columns)]
        assert self.labels[0] == ("", 0, "")
        self.read_rows(counts["rows"])

    def read_rows(self, n):
        take, types = self.streams, self.header["types"]
        columns = [take["row_" + c].all(n) for c in ("node", "stack", "labels", "source", "rest")]
        values = [take["value_%d" % i].all(n, signed=True) for i in range(len(types))]
        self.rows, node = [], 0
        for i in range(n):
            step, new_stack, labels, source, rest = (c[i] for c in columns)
            node += step
            row, size = [v[i] for v in values], self.labels[labels][1]
            for t, kind in enumerate(types):
                if kind["times"] >= 0 and size:
                    row[t] += row[kind["times"]] * size
            assert node < len(self.parent) and source < len(self.header["sources"]) and (not new_stack or step == 0)
            self.rows.append(Row(node, new_stack, labels, source, rest, row))

    def stack(self, node):
        """Frames of a node, root first."""
        frames = []
        while node:
            frames.append(self.frames[self.frame[node]])
            node = self.parent[node]
        return frames[::-1]

    def totals(self):
        """By type and source."""
        sums = {}
        for r in self.rows:
            for t, value in enumerate(r.values):
                key = self.header["types"][t]["type"], r.source
                sums[key] = sums.get(key, 0) + value
        return sums


def of_page(html):
    """The block in an HTML file (bytes)."""
    found = re.findall(rb'<script id="heapgauge-data" type="application/octet-stream">([A-Za-z0-9+/=]*)</script>', html)
    assert len(found) == 1, "%d data blocks" % len(found)
    return Block(base64.b64decode(found[0], validate=True))
