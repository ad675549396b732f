// A view: a block as it is looked at. Metric, snapshots, filters and granularity are fixed; what comes out are rows
// with errors, the two sides of a diff in one row. The arithmetic of src/profile/view.c and view_filter.c; stacks are
// nodes of the block's tree, so what a filter says of a stack is inherited from the parent's node, in one pass.
import type { Amount, Amounts, Estimate, PageData, View, ViewOptions } from '../types';
import { addToAmount, firstAmounts, newAmounts, noAmount } from './amounts';
import { FRAME_UNNAMED, frameEntries, threadEntries, threadKeys } from './entries';
import { estimateBytes, estimateObjects } from './estimate';
import { compileExpression } from './expression';

const FOCUS = 1, IGNORE = 2, SHOW_FROM = 4, BINARY = 8, REMOVED = 16;
const INHERITED = FOCUS | IGNORE | SHOW_FROM | BINARY;

// --- filters ---

// Which frames an expression finds, in name, source file or binary. Each string is asked once.
function matchFrames(data: PageData, by: ViewOptions['by'], expression: RegExp): Uint8Array {
  const { frames, mappings, strings } = data, answers = new Uint8Array(strings.length),
    found = new Uint8Array(frames.n);
  const test = (text: string) => expression.test(text.split('\0', 1)[0]);
  const matches = (string: number) => {
    if (answers[string] === 0)
      answers[string] = string !== 0 && test(strings[string]) ? 2 : 1;
    return answers[string] === 2;
  };
  const { entries, frameEntry } = frameEntries(data, by), mapped = mappings.file.map((file) => Number(matches(file)));
  for (let f = 0; f < frames.n; f++) {
    const unnamed = frames.flags[f] & FRAME_UNNAMED && (by === 'file' || by === 'binary');
    found[f] = Number((frames.mapping[f] >= 0 && mapped[frames.mapping[f]] === 1)
      || (unnamed ? test(entries.name[frameEntry[f]]) : matches(frames.name[f])) || matches(frames.file[f]));
  }
  return found;
}

interface Filter { nodes: Uint8Array; needed: number; shown: Uint8Array }

function frameFlags(data: PageData, o: ViewOptions): { flags: Uint8Array; needed: number } {
  const flags = new Uint8Array(data.frames.n);
  let needed = 0;
  const mark = (text: string, option: string, flag: number, inverted = false) => {
    if (!text)
      return;
    matchFrames(data, o.by, compileExpression(text, option)).forEach((found, f) => {
      if ((found === 1) !== inverted)
        flags[f] |= flag;
    });
    needed |= flag & (FOCUS | SHOW_FROM);
  };
  mark(o.focus, '--focus', FOCUS);
  mark(o.ignore, '--ignore', IGNORE);
  mark(o.hide, '--hide', REMOVED);
  mark(o.show, '--show', REMOVED, true);
  mark(o.showFrom, '--show-from', SHOW_FROM);
  if (o.binary) {
    const { mapping } = data.frames;
    for (let f = 0; f < flags.length; f++)
      if (mapping[f] >= 0 && data.strings[data.mappings.file[mapping[f]]] === o.binary)
        flags[f] |= BINARY;
    needed |= BINARY;
  }
  return { flags, needed };
}

// What each node's way from the root has seen, and whether its own frame is shown.
function filterNodes(data: PageData, o: ViewOptions): Filter {
  const { flags, needed } = frameFlags(data, o), { n, parent, frame } = data.nodes;
  const nodes = new Uint8Array(n), shown = new Uint8Array(n);
  for (let i = 1; i < n; i++) {
    const own = flags[frame[i]], seen = nodes[parent[i]] | own & INHERITED;
    nodes[i] = seen;
    shown[i] = own & REMOVED || (needed & SHOW_FROM && !(seen & SHOW_FROM)) ? 0 : 1;
  }
  return { nodes, needed, shown };
}

// --- amounts ---

// Which columns an amount is made of: the one shown, its partner for the error, and for a diff of in-use the
// accumulated pair.
interface Columns {
  column: number; objects: Float64Array | null; bytes: Float64Array | null; wantObjects: boolean; heap: boolean;
  alloc: boolean;
  otherObjects: Float64Array | null; otherBytes: Float64Array | null;
}

function chooseColumns(data: PageData, column: number): Columns {
  const c: Columns = {
    column, objects: null, bytes: null, wantObjects: false, heap: false, alloc: false, otherObjects: null,
    otherBytes: null,
  };
  const values = (metric: number) => data.metric[metric] < 0 ? null : data.rows.values[data.metric[metric]];
  for (const first of [0, 2]) {
    if (column !== data.metric[first] && column !== data.metric[first + 1])
      continue;
    c.heap = true;
    c.alloc = first === 0;
    c.objects = values(first);
    c.bytes = values(first + 1);
    c.wantObjects = column === data.metric[first];
  }
  if (c.heap && !c.alloc && data.metric[0] >= 0 && data.metric[1] >= 0) {
    c.otherObjects = values(0);
    c.otherBytes = values(1);
  }
  return c;
}

function estimateOf(c: Columns, objects: number, bytes: number, size: number, rate: number): Estimate {
  return c.wantObjects ? estimateObjects(objects, bytes, size, c.bytes ? rate : 0)
    : estimateBytes(objects, bytes, size, rate);
}

// Everything that making rows needs to know.
interface Maker {
  data: PageData; options: ViewOptions; c: Columns; filter: Filter; keepLabels: Uint8Array; threadId: Uint32Array;
  diff: boolean; oneProcess: boolean; hasError: boolean; unseen: [base: number, now: number];
  amounts: Amounts; n: number; node: Uint32Array; labels: Uint32Array; rest: Uint32Array; stack: Uint32Array;
  total: Amount; totalAll: Amount; lowerBounds: boolean;
}

function sampleEstimate(m: Maker, row: number, sign: number): Estimate {
  const { c, data } = m;
  if (!c.heap)
    return { value: sign * data.rows.values[c.column][row], variance: 0, weight: 0 };
  return estimateOf(c, sign * (c.objects ? c.objects[row] : 0), sign * (c.bytes ? c.bytes[row] : 0),
    data.labels.size[data.rows.labels[row]], data.sources[data.rows.source[row]].rate);
}

function setAmount(to: Amounts, i: number, a: Amount): void {
  to.now[i] = a.now;
  to.variance[i] = a.gained.variance;
  to.weight[i] = a.gained.weight;
  if (to.gained === to.now)
    return;
  to.gained[i] = a.gained.value;
  to.base[i] = a.base;
  to.lost[i] = a.lost.value;
  to.lostVariance[i] = a.lost.variance;
  to.lostWeight[i] = a.lost.weight;
}

function addEstimate(to: Estimate, more: Estimate): void {
  to.value += more.value;
  to.variance += more.variance;
  to.weight = Math.max(to.weight, more.weight);
}

// A row of amount a that is made of `row` (the first, of a diff): counts it, and keeps it when the filters do.
function addRow(m: Maker, row: number, labels: number, rest: number, stack: number, a: Amount): void {
  const { filter, data } = m, i = m.n, node = data.rows.node[row];
  setAmount(m.amounts, i, a);
  addToAmount(m.totalAll, m.amounts, i);
  m.lowerBounds ||= rest > 0;
  if (!m.keepLabels[data.rows.labels[row]] || !passes(filter.nodes[node], filter.needed))
    return;
  addToAmount(m.total, m.amounts, i);
  m.node[i] = node;
  m.labels[i] = labels;
  m.rest[i] = rest;
  m.stack[i] = stack;
  m.n++;
}

// Of each row the number of its stack; rows of one stack are neighbours.
const stackNumbers = new WeakMap<PageData, Uint32Array>();

export function rowStacks(data: PageData): Uint32Array {
  const before = stackNumbers.get(data);
  if (before)
    return before;
  const { n, node, newStack } = data.rows, stack = new Uint32Array(n);
  for (let i = 1; i < n; i++)
    stack[i] = stack[i - 1] + (node[i] !== node[i - 1] || newStack[i] ? 1 : 0);
  stackNumbers.set(data, stack);
  return stack;
}

function plainRows(m: Maker): void {
  const { data, options, c } = m, { rows } = data, values = rows.values[c.column], stack = rowStacks(data);
  const wanted = data.sources.map((source) => source.snapshot === options.at);
  for (let i = 0; i < rows.n; i++) {
    const value = values[i];
    if (value === 0 || !wanted[rows.source[i]])
      continue;
    const a = noAmount();
    a.now = value;
    // A negative value stands on the other side: somebody's subtraction.
    a[value < 0 ? 'lost' : 'gained'] = sampleEstimate(m, i, value < 0 ? -1 : 1);
    addRow(m, i, rows.labels[i], rows.rest[i], stack[i], a);
  }
}

// --- diffs ---

// Sums of one row of a diff, by side: 0 base, 1 now.
interface Sides {
  objects: [number, number]; bytes: [number, number]; allocObjects: [number, number]; allocBytes: [number, number];
  size: number; oneSize: boolean; rate: number;
}

function addSides(d: Sides, m: Maker, row: number, side: 0 | 1): void {
  const { c, data } = m, size = data.labels.size[data.rows.labels[row]];
  if (d.rate === 0) {
    d.rate = data.sources[data.rows.source[row]].rate;
    d.size = size;
    d.oneSize = size !== 0;
  }
  d.oneSize &&= size === d.size;
  d.objects[side] += c.objects ? c.objects[row] : 0;
  d.bytes[side] += c.bytes ? c.bytes[row] : 0;
  d.allocObjects[side] += c.otherObjects ? c.otherObjects[row] : 0;
  d.allocBytes[side] += c.otherBytes ? c.otherBytes[row] : 0;
}

// One process, two moments: blocks alive at both cancel exactly, so only what came and went is uncertain.
function tightenSameProcess(a: Amount, d: Sides, c: Columns): void {
  const size = d.oneSize ? d.size : 0;
  if (c.alloc) {
    a.gained = estimateOf(c, d.objects[1] - d.objects[0], Math.max(0, d.bytes[1] - d.bytes[0]), size, d.rate);
    a.gained.value = a.now - a.base;
    a.lost = { value: 0, variance: 0, weight: 0 };
    return;
  }
  if (!c.otherBytes)
    return;
  const grownBytes = d.bytes[1] - d.bytes[0], grown = d.objects[1] - d.objects[0];
  const bytes = Math.max(d.allocBytes[1] - d.allocBytes[0], Math.max(0, grownBytes));
  const objects = Math.max(d.allocObjects[1] - d.allocObjects[0], Math.max(0, grown));
  const came = estimateOf(c, objects, bytes, size, d.rate);
  const went = estimateOf(c, objects - grown, bytes - grownBytes, size, d.rate);
  if (came.variance + went.variance <= a.gained.variance + a.lost.variance) {
    a.gained = came;
    a.lost = went;
  }
}

// The rows [from, to) of `order` are one stack and one thread, on both sides.
function diffRow(m: Maker, order: Uint32Array, from: number, to: number, stack: number): void {
  const { data, c, options } = m, { rows } = data, first = order[from], a = noAmount();
  const sides: Sides = { objects: [0, 0], bytes: [0, 0], allocObjects: [0, 0], allocBytes: [0, 0], size: 0,
    oneSize: false, rate: 0 };
  let labels = rows.labels[first], rest = 0;
  for (let k = from; k < to; k++) {
    const row = order[k], value = rows.values[c.column][row],
      base = data.sources[rows.source[row]].snapshot === options.base;
    a[base ? 'base' : 'now'] += value;
    addEstimate(a[(value < 0) !== base ? 'lost' : 'gained'], sampleEstimate(m, row, value < 0 ? -1 : 1));
    addSides(sides, m, row, base ? 0 : 1);
    if (data.labels.thread[rows.labels[row]] !== data.labels.thread[labels] && m.threadId[rows.labels[first]] === 0)
      labels = 0;
    rest = Math.max(rest, rows.rest[row]);
  }
  // A side that saw nothing may still have had a little.
  if (!(a.lost.value > 0))
    a.lost.weight = Math.max(a.lost.weight, m.unseen[0]);
  if (!(a.gained.value > 0))
    a.gained.weight = Math.max(a.gained.weight, m.unseen[1]);
  if (m.oneProcess && m.hasError)
    tightenSameProcess(a, sides, c);
  if (a.base !== 0 || a.now !== 0)
    addRow(m, first, labels, rest, stack, a);
}

// What tells rows of one stack apart in a diff: an (other) is no stack, whether the labels stay, and the thread.
function groupKey(m: Maker, row: number): number {
  const { rows } = m.data, labels = rows.labels[row];
  return 4 * m.threadId[labels] + (m.keepLabels[labels] ? 2 : 0) + (rows.rest[row] > 0 ? 1 : 0);
}

function diffRows(m: Maker): void {
  const { data, options } = m, { rows } = data, stack = rowStacks(data);
  const wanted = data.sources.map(({ snapshot }) => snapshot === options.at || snapshot === options.base);
  let order = new Uint32Array(1024);
  for (let i = 0; i < rows.n;) {
    let n = 0, keys = 0;
    const of = stack[i];
    for (let first = -1; i < rows.n && stack[i] === of; i++) {
      if (!wanted[rows.source[i]])
        continue;
      if (n === order.length) {
        const more = new Uint32Array(2 * n);
        more.set(order);
        order = more;
      }
      const key = groupKey(m, i);
      keys += first >= 0 && key !== first ? 1 : 0;
      first = first < 0 ? key : first;
      order[n++] = i;
    }
    if (keys)
      order.subarray(0, n).sort((x, y) => groupKey(m, x) - groupKey(m, y) || x - y);
    for (let k = 0, to; k < n; k = to) {
      const key = keys ? groupKey(m, order[k]) : 0;
      for (to = k + 1; to < n && (!keys || groupKey(m, order[to]) === key);)
        to++;
      diffRow(m, order, k, to, of);
    }
  }
}

// --- the whole ---

// Are base and now moments of one process? (sources_are_one_process)
export function isOneProcess(data: PageData, base: number, at: number): boolean {
  const sources = data.sources.filter(({ snapshot }) => snapshot === base || snapshot === at);
  const [a, b] = sources;
  return sources.length === 2 && a.snapshot !== b.snapshot && a.process !== null && a.process === b.process
    && a.rate === b.rate
    && (!a.pid || !b.pid || a.pid === b.pid);
}

function unseenWeight(data: PageData, c: Columns, snapshot: number): number {
  let rate = 0;
  for (const source of data.sources)
    if (c.heap && source.snapshot === snapshot)
      rate = Math.max(rate, source.rate);
  return rate > 1 && !c.wantObjects ? rate : 0;
}

// Rows of the block, of any snapshot, that pass the view's filters.
export function passingRows({ data, options, diff, oneProcess }: View): Uint8Array {
  const { rows } = data, { nodes, needed } = filterNodes(data, options),
    keep = keptLabels(data, options, diff && !oneProcess);
  const passing = new Uint8Array(rows.n);
  for (let i = 0; i < rows.n; i++)
    passing[i] = keep[rows.labels[i]] && passes(nodes[rows.node[i]], needed) ? 1 : 0;
  return passing;
}

const passes = (seen: number, needed: number) => (seen & needed) === needed && !(seen & IGNORE);

// Label sets of the thread that is asked for; it may be called in full where the view goes by names.
function keptLabels(data: PageData, { thread }: ViewOptions, byName: boolean): Uint8Array {
  const full = (i: number) => data.strings[data.labels.thread[i]];
  return Uint8Array.from(threadKeys(data, byName, 'function'), (key, i) =>
    thread === null || key === thread || (thread !== '' && full(i) === thread) ? 1 : 0);
}

const hasNegative = (values: Float64Array) => values.some((value) => value < 0);

function numbered(keys: string[]): Uint32Array {
  const ids = new Map([['', 0]]);
  return Uint32Array.from(keys, (key) => {
    if (!ids.has(key))
      ids.set(key, ids.size);
    return ids.get(key)!;
  });
}

// Rows of the metric, snapshots and filters that the options say. A FilterError tells of a bad expression.
export function makeView(data: PageData, options: ViewOptions): View {
  const o = options.base === options.at ? { ...options, base: null } : options, diff = o.base !== null;
  const c = chooseColumns(data, o.column), n = data.rows.n, oneProcess = diff && isOneProcess(data, o.base!, o.at);
  const keys = threadKeys(data, diff && !oneProcess, o.by), threads = o.by === 'thread' ? threadEntries(keys) : null;
  const frames = frameEntries(data, o.by === 'thread' ? 'function' : o.by), filter = filterNodes(data, o);
  const sources = data.sources.filter(({ snapshot }) => snapshot === o.at || snapshot === o.base);
  const m: Maker = {
    data, options: o, c, filter, threadId: numbered(keys), diff, oneProcess,
    keepLabels: keptLabels(data, o, diff && !oneProcess),
    hasError: c.heap && sources.length > 0 && sources.every(({ rate }) => rate > 0),
    unseen: [diff ? unseenWeight(data, c, o.base!) : 0, unseenWeight(data, c, o.at)],
    amounts: newAmounts(n + 1, diff || hasNegative(data.rows.values[o.column])), n: 0, node: new Uint32Array(n + 1),
    labels: new Uint32Array(n + 1), rest: new Uint32Array(n + 1), stack: new Uint32Array(n + 1), total: noAmount(),
    totalAll: noAmount(), lowerBounds: false,
  };
  (diff ? diffRows : plainRows)(m);
  return {
    data, options: o, diff, oneProcess, hasError: m.hasError, type: data.types[o.column].type,
    unit: data.types[o.column].unit,
    entries: threads?.entries ?? frames.entries, frameEntry: frames.frameEntry,
    labelEntry: threads?.labelEntry ?? new Uint32Array(0),
    rows: {
      n: m.n, node: m.node.slice(0, m.n), labels: m.labels.slice(0, m.n), rest: m.rest.slice(0, m.n),
      stack: m.stack.slice(0, m.n),
      amounts: firstAmounts(m.amounts, m.n),
    },
    nodeShown: filter.shown, total: m.total, totalAll: m.totalAll, lowerBounds: m.lowerBounds,
  };
}
