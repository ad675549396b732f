// A view as a gzipped pprof profile: all metrics of its rows. The base of a diff is told as `go tool pprof -diff_base`
// does: negative values with the label pprof::base. Frames that are hidden are left out; inlined calls share a location
// with who they are part of.
import type { View } from '../../types';
import { FRAME_INLINED, FRAME_UNNAMED } from '../entries';
import { passingRows } from '../view';

// Bytes of a protobuf message, written one behind the other.
class Writer {
  private bytes = new Uint8Array(1024);
  n = 0;

  private room(n: number): void {
    if (this.n + n <= this.bytes.length)
      return;
    const more = new Uint8Array(2 * (this.n + n));
    more.set(this.bytes.subarray(0, this.n));
    this.bytes = more;
  }

  // Whole numbers, also below zero: 64 bits.
  varint(value: number): void {
    this.room(10);
    if (value < 0 || value > Number.MAX_SAFE_INTEGER) {
      for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
        this.bytes[this.n++] = Number(rest & 127n) | (rest > 127n ? 128 : 0);
        if (rest <= 127n)
          return;
      }
    }
    for (; value > 127; value = Math.floor(value / 128))
      this.bytes[this.n++] = value % 128 | 128;
    this.bytes[this.n++] = value;
  }

  number(field: number, value: number): this {
    if (value !== 0) {
      this.varint(field << 3);
      this.varint(value);
    }
    return this;
  }

  data(field: number, data: Uint8Array): this {
    this.varint(field << 3 | 2);
    this.varint(data.length);
    this.room(data.length);
    this.bytes.set(data, this.n);
    this.n += data.length;
    return this;
  }

  packed(field: number, values: number[]): this {
    const inner = new Writer();
    values.forEach((value) => inner.varint(value));
    return this.data(field, inner.done());
  }

  done(): Uint8Array {
    return this.bytes.subarray(0, this.n);
  }
}

class Strings {
  private ids = new Map([['', 0]]);
  list = [''];
  id(text: string): number {
    const known = this.ids.get(text);
    if (known !== undefined)
      return known;
    this.ids.set(text, this.list.length);
    return this.list.push(text) - 1;
  }
}

interface State {
  view: View; out: Writer; strings: Strings;
  functions: Map<string, number>; locations: Map<string, number>;
  stacks: Map<number, number[]>;     // of a node of the block: its locations, leaf first
}

function functionOf(s: State, frame: number): number {
  const { frames, strings } = s.view.data, key = `${frames.name[frame]} ${frames.file[frame]}`;
  const known = s.functions.get(key);
  if (known !== undefined)
    return known;
  const id = s.functions.size + 1, name = s.strings.id(strings[frames.name[frame]]);
  s.functions.set(key, id);
  s.out.data(5, new Writer().number(1, id).number(2, name).number(3, name)
    .number(4, s.strings.id(strings[frames.file[frame]])).done());
  return id;
}

// The location of some frames, innermost first, all but the last inlined into the next. A frame without a name is an
// address.
function locationOf(s: State, chain: number[]): number {
  const key = chain.join(' '), known = s.locations.get(key), { frames, strings } = s.view.data;
  if (known !== undefined)
    return known;
  const id = s.locations.size + 1, last = chain[chain.length - 1],
    location = new Writer().number(1, id).number(2, frames.mapping[last] + 1);
  const address = /!0x([0-9a-f]{1,13})$/.exec(strings[frames.name[last]])?.[1];
  if (address)
    location.number(3, parseInt(address, 16));
  // Of "libc.so.6!fn_2a300" the name is all there is.
  if (!address || !(frames.flags[last] & FRAME_UNNAMED))
    for (const frame of chain)
      location.data(4, new Writer().number(1, functionOf(s, frame)).number(2, frames.line[frame]).done());
  s.locations.set(key, id);
  s.out.data(4, location.done());
  return id;
}

function stackOf(s: State, node: number): number[] {
  const known = s.stacks.get(node), { nodes, frames } = s.view.data, stack: number[] = [];
  if (known)
    return known;
  let chain: number[] = [];
  for (let at = node; at !== 0; at = nodes.parent[at]) {
    if (!s.view.nodeShown[at])
      continue;
    chain.push(nodes.frame[at]);
    if (frames.flags[nodes.frame[at]] & FRAME_INLINED)
      continue;
    stack.push(locationOf(s, chain));
    chain = [];
  }
  if (chain.length)
    stack.push(locationOf(s, chain));
  s.stacks.set(node, stack);
  return stack;
}

function labelsOf(s: State, set: number, base: boolean): [key: string, text: string | number][] {
  const { labels, strings } = s.view.data, of: [string, string | number][] = [];
  if (labels.thread[set])
    of.push(['thread', strings[labels.thread[set]]]);
  if (labels.size[set])
    of.push(['bytes', labels.size[set]]);
  for (const text of strings[labels.text[set]].split(', ')) {
    const at = text.indexOf('=');
    if (at > 0)
      of.push([text.slice(0, at), text.slice(at + 1)]);
  }
  if (base)
    of.push(['pprof::base', 'true']);
  return of;
}

function putSamples(s: State): void {
  const { data, options } = s.view, { rows } = data, passing = passingRows(s.view);
  for (let i = 0; i < rows.n; i++) {
    const { snapshot } = data.sources[rows.source[i]], base = snapshot === options.base;
    if (!passing[i] || (snapshot !== options.at && !base) || rows.values.every((values) => values[i] === 0))
      continue;
    const rest = rows.rest[i] ? [otherLocation(s)] : [];
    const sample = new Writer().packed(1, [...rest, ...stackOf(s, rows.node[i])])
      .packed(2, rows.values.map((values) => base ? -values[i] : values[i]));
    for (const [key, value] of labelsOf(s, rows.labels[i], base)) {
      const label = new Writer().number(1, s.strings.id(key));
      sample.data(3, (typeof value === 'string' ? label.number(2, s.strings.id(value))
        : label.number(3, value).number(4, s.strings.id('bytes'))).done());
    }
    s.out.data(2, sample.done());
  }
}

// What an (other) row's stacks end in.
function otherLocation(s: State): number {
  const known = s.locations.get('other');
  if (known !== undefined)
    return known;
  const location = s.locations.size + 1, id = s.functions.size + 1, name = s.strings.id('(other)');
  s.functions.set('other', id);
  s.locations.set('other', location);
  s.out.data(5, new Writer().number(1, id).number(2, name).done());
  s.out.data(4, new Writer().number(1, location).data(4, new Writer().number(1, id).done()).done());
  return location;
}

function putRest(s: State): void {
  const { data, options } = s.view, { mappings, strings } = data, { out } = s;
  for (let i = 0; i < mappings.n; i++)
    out.data(3, new Writer().number(1, i + 1).number(5, s.strings.id(strings[mappings.file[i]])).number(7, 1)
      .number(8, 1).number(9, 1)
      .number(10, 1).done());
  const rates = new Set(data.sources.filter(({ snapshot }) => snapshot === options.at || snapshot === options.base)
    .map(({ rate }) => rate));
  const [rate] = rates, time = data.snapshots[options.at].time_ms;
  if (rates.size === 1 && rate > 0) {
    out.data(11, new Writer().number(1, s.strings.id('space')).number(2, s.strings.id('bytes')).done());
    out.number(12, Math.round(rate));
  }
  if (time !== null)
    out.number(9, Math.round(time) * 1e6);
  out.number(14, s.strings.id(s.view.type));
}

// The uncompressed profile.
export function pprofBytes(view: View): Uint8Array {
  const s: State = { view, out: new Writer(), strings: new Strings(), functions: new Map(), locations: new Map(),
    stacks: new Map() };
  for (const { type, unit } of view.data.types)
    s.out.data(1, new Writer().number(1, s.strings.id(type)).number(2, s.strings.id(unit)).done());
  putSamples(s);
  putRest(s);
  const utf8 = new TextEncoder();
  for (const text of s.strings.list)
    s.out.data(6, utf8.encode(text));
  return s.out.done();
}

export async function pprof(view: View): Promise<Uint8Array> {
  const stream = new Blob([pprofBytes(view) as Uint8Array<ArrayBuffer>]).stream()
    .pipeThrough(new CompressionStream('gzip'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
