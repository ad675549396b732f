// Random profiles, in pprof's format: several snapshots of one process or of two, with threads, block sizes, inlined
// calls, frames without names, stacks that differ in nothing but addresses.
import { HEAP } from './encode.mjs';

export class Random {
  constructor(seed) {
    this.state = seed * 2654435761 >>> 0;
  }
  below(n) {
    this.state = this.state + 0x9e3779b9 >>> 0;
    let x = Math.imul(this.state ^ this.state >>> 16, 0x21f0aaad);
    x = Math.imul(x ^ x >>> 15, 0x735a2d97);
    return ((x ^ x >>> 15) >>> 0) % n;
  }
  of(items) {
    return items[this.below(items.length)];
  }
  chance(percent) {
    return this.below(100) < percent;
  }
}

// --- pprof, by hand ---

function varint(value) {
  let n = BigInt.asUintN(64, BigInt(value));
  const out = [];
  for (; n > 127n; n >>= 7n)
    out.push(Number(n & 127n) | 128);
  out.push(Number(n));
  return Buffer.from(out);
}

const field = (number, value) => Buffer.concat([varint(number << 3), varint(value)]);
const bytes = (number, data) => Buffer.concat([varint(number << 3 | 2), varint(data.length), data]);
const packed = (number, values) => bytes(number, Buffer.concat(values.map(varint)));
const message = (number, ...parts) => bytes(number, Buffer.concat(parts));

// A snapshot of a world as a pprof file.
export function writePprof(world, snapshot) {
  const strings = [''], ids = new Map([['', 0]]);
  const string = (text) => {
    if (!ids.has(text))
      ids.set(text, strings.push(text) - 1);
    return ids.get(text);
  };
  const functions = new Map(), out = [], { start } = snapshot;
  const functionOf = ({ name, file }) => {
    const key = `${name}\n${file}`;
    if (!functions.has(key))
      functions.set(key, functions.size + 1);
    return functions.get(key);
  };
  for (const t of world.types)
    out.push(message(1, field(1, string(t.type)), field(2, string(t.unit))));
  for (const s of snapshot.samples) {
    const labels = [];
    if (s.thread)
      labels.push(message(3, field(1, string('thread')), field(2, string(s.thread))));
    if (s.size)
      labels.push(message(3, field(1, string('bytes')), field(3, s.size), field(4, string('bytes'))));
    out.push(message(2, packed(1, s.stack.map((l) => l + 1)), packed(2, s.values), ...labels));
  }
  world.binaries.forEach((file, i) => out.push(message(3, field(1, i + 1), field(2, start + BigInt(i) * 0x1000000n),
    field(3, start + BigInt(i + 1) * 0x1000000n), field(5, string(file)), field(7, 1))));
  world.locations.forEach((l, i) => out.push(message(4, field(1, i + 1), field(2, l.binary + 1),
    field(3, start + BigInt(l.binary) * 0x1000000n + BigInt(l.offset)),
    ...l.lines.map((line) => message(4, field(1, functionOf(line)), field(2, line.line))))));
  for (const [key, id] of functions) {
    const [name, file] = key.split('\n');
    out.push(message(5, field(1, id), field(2, string(name)), field(3, string(name)), field(4, string(file))));
  }
  if (snapshot.rate)
    out.push(message(11, field(1, string('space')), field(2, string('bytes'))), field(12, snapshot.rate));
  return Buffer.concat([...out, ...strings.map((text) => bytes(6, Buffer.from(text)))]);
}

// --- worlds ---

const WORDS = ['parse', 'Tree::insert', 'serve', 'std::vector<int, char>::push_back', 'main', 'λ_näher', 'cache.fill',
  'io::<impl Read>::read', 'loop'];
const FILES = ['src/parse.c', 'src/tree.cc', '/usr/include/c++/vector', '', 'lib/io.rs'];

function makeLocations(r, n, nBinaries) {
  return Array.from({ length: n }, () => {
    const lines = Array.from({ length: r.of([0, 1, 1, 1, 1, 2, 3]) }, () => {
      const k = r.below(14);
      return { name: WORDS[k % WORDS.length] + (k < WORDS.length ? '' : k), file: FILES[k % FILES.length],
        line: r.below(4) };
    });
    return { binary: r.below(nBinaries), offset: 0x1000 + 16 * r.below(0xfffff), lines };
  });
}

function makeStacks(r, nLocations, n) {
  const stacks = [];
  while (stacks.length < n) {
    const from = stacks.length && r.chance(70) ? r.of(stacks) : [],
      keep = from.slice(from.length - r.below(from.length + 1));
    stacks.push([...Array.from({ length: r.below(6) + (r.chance(3) ? 0 : 1) }, () => r.below(nLocations)), ...keep]);
  }
  return stacks;
}

function makeValues(r, world, size, before) {
  const objects = 1 + r.below(r.of([3, 30, 3000])), mean = size || 8 + r.below(100000),
    space = (n) => size ? n * size : Math.round(n * mean);
  const inuse = r.chance(10) ? 0 : Math.max(0, (before?.inuse ?? 0) + objects - r.below(objects + 2));
  const alloc = (before?.alloc ?? 0) + objects + r.below(20);
  const off = r.chance(20) ? 1 : 0;    // sizes that don't multiply exactly
  const pairs = { inuse: [inuse, inuse ? space(inuse) + off : 0], alloc: [alloc, space(alloc)] };
  return { inuse, alloc, values: [...(world.alloc ? pairs.alloc : []), ...pairs.inuse] };
}

function makeSnapshot(r, world, before, start, rate) {
  const samples = [];
  for (const kind of world.kinds) {
    const previous = before?.get(kind);
    if (r.chance(previous ? 10 : 35))
      continue;
    const made = makeValues(r, world, kind.size, previous);
    samples.push({ ...kind, ...made });
    if (r.chance(5))
      samples.push({ ...kind, ...makeValues(r, world, kind.size) });
  }
  return { start, rate, samples, state: new Map(samples.map((s) => [s.kind, s])) };
}

// { oneProcess, alloc, rates, snapshots, size, binaries }: what is not said is left to chance.
export function makeWorld(seed, options = {}) {
  const r = new Random(seed), binaries = ['/opt/app/server', '/usr/lib/libgl.so.6', '/usr/lib/x86/libgl.so.6'].slice(0,
    options.binaries);
  const world = {
    seed, binaries, locations: makeLocations(r, 40, binaries.length), alloc: options.alloc ?? r.chance(60),
    oneProcess: options.oneProcess ?? r.chance(60),
  };
  world.types = world.alloc ? HEAP.types : HEAP.types.slice(2).map((t, i) => ({ ...t, times: i ? 0 : -1 }));
  world.metric = world.alloc ? HEAP.metric : { alloc_objects: -1, alloc_space: -1, inuse_objects: 0, inuse_space: 1 };
  // Places with the same lines but another address.
  const places = world.locations.length, other = (l) => ({ ...l, offset: l.offset + 8 });
  world.locations.push(...world.locations.map(other));
  const threads = ['', 't0 main', 't1 worker', 't2 worker', 't3', 'io'];
  world.kinds = [];
  for (const stack of makeStacks(r, places, options.size ?? 20 + r.below(60)))
    for (let i = r.below(3); i >= 0; i--) {
      const kind = { stack, thread: r.of(threads), size: r.chance(50) ? 16 * (1 + r.below(300)) : 0 };
      world.kinds.push(kind);
      if (r.chance(30))
        world.kinds.push({ ...kind, stack: stack.map((id) => r.chance(50) ? id + places : id) });
    }
  for (const kind of world.kinds)
    kind.kind = kind;
  const rate = r.of(options.rates ?? [524288, 524288, 524288, 65536, 4096, 1, 0]),
    start = 0x550000000000n + BigInt(r.below(1 << 20)) * 0x10000n;
  world.snapshots = [];
  for (let i = 0; i < (options.snapshots ?? 3); i++) {
    const from = world.oneProcess ? start : start + BigInt(i) * 0x100000000n;
    world.snapshots.push(makeSnapshot(r, world, world.oneProcess ? world.snapshots.at(-1)?.state : null, from,
      world.oneProcess || r.chance(70) ? rate : rate * 2));
  }
  return world;
}
