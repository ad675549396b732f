// A data block from a description, as docs/page.md has it: for tests of what reads blocks.
//
// { types: [{ type, unit, times }], metric, snapshots, sources, samples, … }: whatever else is there goes into the
// header. A sample: { frames: [{ name, file, line, binary, inlined, unnamed }] (root first), thread, size, text,
// source, rest, stack, values }; stack tells stacks of equal frames apart.
import { gzipSync } from 'node:zlib';

function leb(numbers) {
  const out = [];
  for (let n of numbers) {
    n = BigInt(n);
    for (; n > 127n; n >>= 7n)
      out.push(Number(n & 127n) | 128);
    out.push(Number(n));
  }
  return Buffer.from(out);
}

export const zigzag = (n) => BigInt(n) < 0n ? -2n * BigInt(n) - 1n : 2n * BigInt(n);

class Table {
  items = [];
  ids = new Map();
  constructor(...first) {
    first.forEach((item) => this.add(item));
  }
  add(item, key = JSON.stringify(item)) {
    if (!this.ids.has(key)) {
      this.ids.set(key, this.items.length);
      this.items.push(item);
    }
    return this.ids.get(key);
  }
}

// The tree of all samples' frames; its nodes in order.
function makeNodes(samples, frames) {
  const root = { children: new Map() };
  for (const s of samples) {
    let at = root;
    for (const f of s.frames) {
      const id = frames.add(f);
      if (!at.children.has(id))
        at.children.set(id, { frame: id, children: new Map() });
      at = at.children.get(id);
    }
    s.leaf = at;
  }
  const nodes = [], waiting = [{ node: root, depth: 0 }];
  while (waiting.length) {
    const { node, depth } = waiting.pop();
    node.id = nodes.length;
    nodes.push({ frame: node.frame, depth });
    for (const child of [...node.children.values()].reverse())
      waiting.push({ node: child, depth: depth + 1 });
  }
  return nodes;
}

export function encodeBlock(description, change = (parts) => parts) {
  const { types, samples: given, sources, snapshots, ...rest } = description;
  const samples = given.map((s) => ({ ...s })), strings = new Table(''), mappings = new Table(), frames = new Table();
  const labels = new Table({ thread: '', size: 0, text: '' }), string = (text) => strings.add(text ?? '');
  const nodes = makeNodes(samples, frames);
  for (const s of samples)
    s.labels = labels.add({ thread: s.thread ?? '', size: s.size ?? 0, text: s.text ?? '' });
  samples.sort((a, b) => a.leaf.id - b.leaf.id || (a.stack ?? 0) - (b.stack ?? 0) || a.labels - b.labels
    || a.source - b.source);
  const mapping = frames.items.map((f) => f.binary === undefined ? 0 : 1 + mappings.add(f.binary));
  const frameNumbers = (of) => frames.items.map(of), previous = (i, of) => i ? of(samples[i - 1]) : 0;
  const streams = {
    mapping_file: mappings.items.map(string),
    frame_name: frameNumbers((f) => string(f.name)), frame_file: frameNumbers((f) => string(f.file)),
    frame_line: frameNumbers((f) => f.line ?? 0), frame_mapping: mapping,
    frame_flags: frameNumbers((f) => (f.inlined ? 1 : 0) | (f.unnamed ? 2 : 0)),
    node_up: nodes.slice(1).map((node, i) => nodes[i].depth + 1 - node.depth),
    node_frame: nodes.slice(1).map((node) => node.frame),
    label_thread: labels.items.map((l) => string(l.thread)), label_size: labels.items.map((l) => l.size),
    label_text: labels.items.map((l) => string(l.text)),
    row_node: samples.map((s, i) => s.leaf.id - previous(i, (p) => p.leaf.id)),
    row_stack: samples.map((s, i) => i && samples[i - 1].leaf === s.leaf && samples[i - 1].stack !== s.stack ? 1 : 0),
    row_labels: samples.map((s) => s.labels), row_source: samples.map((s) => s.source),
    row_rest: samples.map((s) => s.rest ?? 0),
  };
  types.forEach((t, k) => {
    streams[`value_${k}`] = samples.map((s) => {
      const product = t.times >= 0 ? BigInt(s.values[t.times]) * BigInt(s.size ?? 0) : 0n;
      return zigzag(BigInt(s.values[k]) - product);
    });
  });
  const bytes = strings.items.map((text) => Buffer.from(text));
  const parts = change({
    header: {
      version: 1, title: null, program: null, types, default_type: types.length - 1, snapshots, base: null, sources,
      view: { metric: types.at(-1).type, by: 'function', inverted: false, focus: '', ignore: '', hide: '', show: '',
        show_from: '' },
      notes: [], command: ['heapgauge'], rest: null, ...rest,
      counts: {
        strings: strings.items.length, mappings: mappings.items.length, frames: frames.items.length,
        nodes: nodes.length,
        labels: labels.items.length, rows: samples.length,
      },
    },
    streams: {
      string_lengths: leb(bytes.map((b) => b.length)), string_bytes: Buffer.concat(bytes),
      ...Object.fromEntries(Object.entries(streams).map(([name, numbers]) => [name, leb(numbers)])),
    },
  });
  return packBlock(parts);
}

// Header and streams as one block.
export function packBlock({ header, streams, magic = 'HGPAGE1\n' }) {
  const list = Object.entries(streams).map(([name, data]) => ({ name, bytes: data.length }));
  const text = Buffer.from(JSON.stringify({ streams: list, ...header })), size = Buffer.alloc(4);
  size.writeUInt32LE(text.length);
  return gzipSync(Buffer.concat([Buffer.from(magic), size, text, ...Object.values(streams)]));
}

// The four heap metrics, as most profiles have them.
export const HEAP = {
  types: [
    { type: 'alloc_objects', unit: 'count', times: -1 }, { type: 'alloc_space', unit: 'bytes', times: 0 },
    { type: 'inuse_objects', unit: 'count', times: -1 }, { type: 'inuse_space', unit: 'bytes', times: 2 },
  ],
  metric: { alloc_objects: 0, alloc_space: 1, inuse_objects: 2, inuse_space: 3 },
};

// What a view looks like when nothing is asked for.
export const PLAIN = {
  column: 3, at: 0, base: null, by: 'function', focus: '', ignore: '', hide: '', show: '', showFrom: '', binary: '',
  thread: null,
  collapseRecursion: false,
};
