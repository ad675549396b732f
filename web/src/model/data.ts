// A data block (docs/page.md), decoded into typed arrays. Everything that is read is checked, so that what comes after
// can trust indexes and lengths: a damaged block gives a sentence, never a wrong picture.
import type { BeginView, Granularity, PageData, SampleType, Snapshot, Source } from '../types';
import { NONE } from '../types';

export class DataError extends Error {
  override name = 'DataError';
}

const MAGIC = 'HGPAGE1\n';
const VERSION = 1;
const GRANULARITIES: Granularity[] = ['function', 'line', 'file', 'binary', 'thread'];

function damaged(what: string): never {
  throw new DataError(`the profile data in this page are damaged: ${what}`);
}

// The bytes of a base64 text, as it stands in a page; blanks don't count.
export function fromBase64(text: string): Uint8Array {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    damaged('they are not base64');
  }
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++)
    bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function gunzip(bytes: Uint8Array): Promise<Uint8Array> {
  if (bytes.length < 18 || bytes[0] !== 0x1f || bytes[1] !== 0x8b)
    damaged(bytes.length < 18 ? 'they are cut short' : 'they are not compressed the way heapgauge does it');
  try {
    const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    damaged('they are cut short, or a part was changed (their checksum does not fit)');
  }
}

// --- the header ---

type Json = { [key: string]: unknown };

function object(value: unknown, what: string): Json {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    damaged(`the header's ${what} is no object`);
  return value as Json;
}

function list(value: unknown, what: string): unknown[] {
  if (!Array.isArray(value))
    damaged(`the header's ${what} is no list`);
  return value;
}

function text(value: unknown, what: string): string {
  if (typeof value !== 'string')
    damaged(`the header's ${what} is no text`);
  return value;
}

const textOrNull = (value: unknown, what: string) => value === null || value === undefined ? null : text(value, what);

function number(value: unknown, what: string): number {
  if (typeof value !== 'number' || !Number.isFinite(value))
    damaged(`the header's ${what} is no number`);
  return value;
}

const numberOrNull = (value: unknown, what: string) => value === null || value === undefined ? null
  : number(value, what);

function index(value: unknown, least: number, below: number, what: string): number {
  const n = number(value, what);
  if (!Number.isInteger(n) || n < least || n >= below)
    damaged(`the header's ${what} is ${n}, and should be from ${least} to ${below - 1}`);
  return n;
}

const COUNTS = ['strings', 'mappings', 'frames', 'nodes', 'labels', 'rows'] as const;
type Counts = Record<typeof COUNTS[number], number>;

function readCounts(value: unknown): Counts {
  const o = object(value, 'counts'), counts = {} as Counts;
  for (const key of COUNTS)
    counts[key] = index(o[key], key === 'strings' || key === 'nodes' || key === 'labels' ? 1 : 0, NONE,
      `count of ${key}`);
  return counts;
}

function readTypes(value: unknown): SampleType[] {
  const types = list(value, 'types').map((item, i, all) => {
    const o = object(item, 'sample type');
    return {
      type: text(o.type, 'sample type'), unit: text(o.unit, 'unit'),
      times: index(o.times ?? -1, -1, all.length, `times of type ${i}`),
    };
  });
  if (types.length === 0)
    damaged('the header names no sample type');
  for (const t of types)
    if (t.times >= 0 && types[t.times].times >= 0)
      damaged(`type ${t.type} is a multiple of one that is a multiple itself`);
  return types;
}

function readMetrics(value: unknown, nTypes: number): number[] {
  const o = object(value, 'metric');
  return ['alloc_objects', 'alloc_space', 'inuse_objects', 'inuse_space']
    .map((name) => index(o[name] ?? -1, -1, nTypes, `metric ${name}`));
}

function readSources(value: unknown, nSnapshots: number): Source[] {
  return list(value, 'sources').map((item) => {
    const o = object(item, 'source'), rate = number(o.rate ?? 0, 'rate');
    if (rate < 0)
      damaged('the header gives a source a negative rate');
    return {
      name: text(o.name, 'name of a source'), snapshot: index(o.snapshot, 0, nSnapshots, 'snapshot of a source'), rate,
      time_ms: numberOrNull(o.time_ms, 'time of a source'), process: textOrNull(o.process, 'process of a source'),
      pid: numberOrNull(o.pid, 'pid of a source'), raw_counts: o.raw_counts === true,
    };
  });
}

function readView(value: unknown): BeginView {
  const o = object(value ?? {}, 'view'), word = (key: string) => text(o[key] ?? '', `view's ${key}`);
  const by = word('by') as Granularity;
  return {
    metric: word('metric'), by: GRANULARITIES.includes(by) ? by : 'function', inverted: o.inverted === true,
    focus: word('focus'),
    ignore: word('ignore'), hide: word('hide'), show: word('show'), show_from: word('show_from'),
  };
}

function readRest(value: unknown): PageData['rest'] {
  if (value === null || value === undefined)
    return null;
  const o = object(value, 'rest');
  return { rows: number(o.rows, 'rest'), stacks: number(o.stacks, 'rest'), part: number(o.part, 'rest') };
}

interface Block { header: Json; bytes: Uint8Array; streams: Map<string, { start: number; end: number }> }

// Finds the header and where each stream lies.
function openBlock(bytes: Uint8Array): Block {
  const magic = new TextDecoder('latin1').decode(bytes.subarray(0, 8));
  if (magic !== MAGIC && /^HGPAGE\d+\n?/.test(magic))
    throw new DataError('the profile data in this page were written by a newer heapgauge than the page itself; '
      + 'open them with that one');
  if (magic !== MAGIC)
    damaged('they do not begin as heapgauge\'s do');
  if (bytes.length < 12)
    damaged('they are cut short');
  const size = new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true);
  if (size > bytes.length - 12)
    damaged('they are cut short within the header');
  let parsed: unknown;
  try {
    parsed = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(12, 12 + size)));
  } catch {
    damaged('the header is no JSON');
  }
  const header = object(parsed, 'whole'), version = number(header.version, 'version');
  if (version > VERSION)
    throw new DataError(`the profile data in this page are of version ${version}, the page knows version ${VERSION}: `
      + 'they were written by a newer heapgauge; open them with that one');
  const streams: Block['streams'] = new Map();
  let at = 12 + size;
  for (const item of list(header.streams, 'streams')) {
    const o = object(item, 'stream'), name = text(o.name, 'name of a stream'),
      n = index(o.bytes, 0, NONE, `size of ${name}`);
    if (n > bytes.length - at)
      damaged(`they are cut short within ${name}`);
    if (streams.has(name))
      damaged(`${name} is there twice`);
    streams.set(name, { start: at, end: at + n });
    at += n;
  }
  if (at !== bytes.length)
    damaged('something stands behind their end');
  return { header, bytes, streams };
}

// --- the streams ---

function stream(block: Block, name: string, n: number): { start: number; end: number } {
  const found = block.streams.get(name);
  if (!found)
    damaged(`${name} is missing`);
  if (found.end - found.start < n)
    damaged(`${name} has fewer than ${n} numbers`);
  return found;
}

// n numbers below 2^32.
function readNumbers(block: Block, name: string, n: number): Uint32Array {
  const { start, end } = stream(block, name, n), bytes = block.bytes, out = new Uint32Array(n);
  let at = start;
  for (let i = 0; i < n; i++) {
    if (at >= end)
      damaged(`${name} has fewer than ${n} numbers`);
    let byte = bytes[at++], value = byte & 127;
    for (let shift = 7; byte > 127; shift += 7) {
      if (at >= end)
        damaged(`${name} ends within a number`);
      byte = bytes[at++];
      if (shift > 28 || (shift === 28 && byte > 15))
        damaged(`${name} holds a number that is too large`);
      value |= (byte & 127) << shift;
    }
    out[i] = value;
  }
  if (at !== end)
    damaged(`${name} has more than ${n} numbers`);
  return out;
}

// n numbers of 64 bits, zigzag when signed; each is rounded once.
function readWide(block: Block, name: string, n: number, signed: boolean): Float64Array {
  const { start, end } = stream(block, name, n), bytes = block.bytes, out = new Float64Array(n);
  let at = start;
  for (let i = 0; i < n; i++) {
    const parts = [0, 0, 0];       // 28, 28 and 8 bits
    let byte = 128, count = 0;
    for (; byte > 127; count++) {
      if (at >= end)
        damaged(`${name} has fewer than ${n} numbers`);
      byte = bytes[at++];
      if (count === 9 && byte > 1)
        damaged(`${name} holds a number that is too large`);
      parts[count >> 2] |= (byte & 127) << 7 * (count & 3);
    }
    let low = (parts[0] | parts[1] << 28) >>> 0, high = (parts[1] >>> 4 | parts[2] << 24) >>> 0;
    const negative = signed && (low & 1) === 1;
    if (signed) {
      low = (low >>> 1 | high << 31) >>> 0;
      high >>>= 1;
    }
    out[i] = negative ? -(high * 4294967296 + (low + 1)) : high * 4294967296 + low;
  }
  if (at !== end)
    damaged(`${name} has more than ${n} numbers`);
  return out;
}

function checkBelow(numbers: Uint32Array, limit: number, name: string): Uint32Array {
  for (let i = 0; i < numbers.length; i++)
    if (numbers[i] >= limit)
      damaged(`${name} points at number ${numbers[i]} of ${limit}`);
  return numbers;
}

// All strings are decoded at once and then cut, which is much faster than one by one.
function readStrings(block: Block, n: number): string[] {
  const lengths = readNumbers(block, 'string_lengths', n), { start, end } = stream(block, 'string_bytes', 0);
  let all: string;
  try {
    all = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(block.bytes.subarray(start, end));
  } catch {
    damaged('string_bytes is no UTF-8');
  }
  const strings = new Array<string>(n), ascii = all.length === end - start;
  let at = start, unit = 0;
  for (let i = 0; i < n; i++) {
    const stop = at + lengths[i];
    if (stop > end)
      damaged('string_bytes is too short');
    let units = lengths[i];
    if (!ascii)
      for (let k = at; k < stop; k++) {
        const byte = block.bytes[k];
        units -= (byte & 0xc0) === 0x80 ? 1 : 0;
        units += byte >= 0xf0 ? 1 : 0;
      }
    strings[i] = all.slice(unit, unit += units);
    at = stop;
  }
  if (at !== end)
    damaged('string_bytes is too long');
  return strings;
}

function readNodes(block: Block, n: number, nFrames: number): PageData['nodes'] {
  const up = readNumbers(block, 'node_up', n - 1), frames = readNumbers(block, 'node_frame', n - 1);
  checkBelow(frames, nFrames, 'node_frame');
  const parent = new Uint32Array(n), depth = new Uint32Array(n), frame = new Uint32Array(n),
    path = new Uint32Array(n + 1);
  frame[0] = NONE;
  frame.set(frames, 1);
  for (let i = 1, at = 0; i < n; i++) {
    if (up[i - 1] > at)
      damaged('node_up leaves the tree');
    at += 1 - up[i - 1];
    depth[i] = at;
    parent[i] = path[at - 1];
    path[at] = i;
  }
  return { n, parent, frame, depth };
}

function readValues(block: Block, types: SampleType[], rowLabels: Uint32Array, size: Float64Array): Float64Array[] {
  const n = rowLabels.length, values = types.map((_, i) => readWide(block, `value_${i}`, n, true));
  types.forEach((t, i) => {
    if (t.times < 0)
      return;
    const to = values[i], from = values[t.times];
    for (let row = 0; row < n; row++) {
      const product = from[row] * size[rowLabels[row]], sum = to[row] + product;
      if (product === 0)
        continue;
      const safe = Math.abs(product) <= Number.MAX_SAFE_INTEGER && Math.abs(to[row]) <= Number.MAX_SAFE_INTEGER;
      to[row] = safe ? sum : Number(BigInt(from[row]) * BigInt(size[rowLabels[row]]) + BigInt(to[row]));
    }
  });
  return values;
}

function readRows(block: Block, counts: Counts, types: SampleType[], nSources: number,
    size: Float64Array): PageData['rows'] {
  const n = counts.rows, node = readNumbers(block, 'row_node', n);
  for (let i = 0, at = 0; i < n; i++) {
    at += node[i];
    if (at >= counts.nodes)
      damaged('row_node points behind the last node');
    node[i] = at;
  }
  const labels = checkBelow(readNumbers(block, 'row_labels', n), counts.labels, 'row_labels');
  return {
    n, node, labels, source: checkBelow(readNumbers(block, 'row_source', n), nSources, 'row_source'),
    rest: readNumbers(block, 'row_rest', n),
    newStack: new Uint8Array(checkBelow(readNumbers(block, 'row_stack', n), 2, 'row_stack')),
    values: readValues(block, types, labels, size),
  };
}

function readFrames(block: Block, counts: Counts): PageData['frames'] {
  const n = counts.frames, mapping = new Int32Array(n);
  const from = checkBelow(readNumbers(block, 'frame_mapping', n), counts.mappings + 1, 'frame_mapping');
  for (let i = 0; i < n; i++)
    mapping[i] = from[i] - 1;
  return {
    n, mapping, name: checkBelow(readNumbers(block, 'frame_name', n), counts.strings, 'frame_name'),
    file: checkBelow(readNumbers(block, 'frame_file', n), counts.strings, 'frame_file'),
    line: readNumbers(block, 'frame_line', n), flags: new Uint8Array(checkBelow(readNumbers(block, 'frame_flags', n),
      256, 'frame_flags')),
  };
}

// The profile data of a page, or a DataError that says what is wrong with them.
export async function decodeBlock(compressed: Uint8Array): Promise<PageData> {
  const block = openBlock(await gunzip(compressed)), h = block.header, counts = readCounts(h.counts),
    types = readTypes(h.types);
  const snapshots: Snapshot[] = list(h.snapshots, 'snapshots').map((item) => {
    const o = object(item, 'snapshot');
    return { name: text(o.name, 'name of a snapshot'), time_ms: numberOrNull(o.time_ms, 'time of a snapshot') };
  });
  const sources = readSources(h.sources, snapshots.length), string = (name: string, n: number) =>
    checkBelow(readNumbers(block, name, n), counts.strings, name);
  const labels = {
    n: counts.labels, thread: string('label_thread', counts.labels),
    size: readWide(block, 'label_size', counts.labels, false),
    text: string('label_text', counts.labels),
  };
  return {
    title: textOrNull(h.title, 'title'), program: textOrNull(h.program, 'program'), types,
    defaultType: index(h.default_type, 0, types.length, 'default type'), metric: readMetrics(h.metric, types.length),
    snapshots,
    base: h.base === null || h.base === undefined ? null : index(h.base, 0, snapshots.length, 'base'), sources,
    view: readView(h.view), notes: list(h.notes ?? [], 'notes').map((note) => text(note, 'note')),
    command: list(h.command ?? [], 'command').map((word) => text(word, 'command')), rest: readRest(h.rest),
    strings: readStrings(block, counts.strings),
    mappings: { n: counts.mappings, file: string('mapping_file', counts.mappings) },
    frames: readFrames(block, counts), nodes: readNodes(block, counts.nodes, counts.frames), labels,
    rows: readRows(block, counts, types, sources.length, labels.size),
  };
}
