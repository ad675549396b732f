// Trees that look like those of programs, and some that nobody should have to draw; made up from a seed, alike in each run.
import { CHANGES, NONE, type Amounts, type FlameInput, type PageData, type Tree, type View } from '../src/types';

export interface TreeOptions { nodes: number; depth: number; fan: number; diff: boolean; seed: number; flat: boolean }

const BINARIES = ['/usr/bin/storefront', '/usr/lib/x86_64-linux-gnu/libssl.so.3', '/usr/lib/x86_64-linux-gnu/libc.so.6',
  '/usr/lib/libprotobuf.so.32', '/opt/app/plugins/images.so', '/usr/lib/x86_64-linux-gnu/libsqlite3.so.0',
  '/usr/lib/x86_64-linux-gnu/libz.so.1', '/opt/app/plugins/search.so', '/usr/lib/libicu.so.72', '/usr/lib/libpcre2.so'];
const WORDS = ['parse', 'Request', 'session', 'Cache', 'insert', 'Buffer', 'decode', 'Header', 'lookup', 'Table', 'render', 'Node',
  'index', 'Segment', 'load', 'Image', 'commit', 'Journal', 'expand', 'Template', 'query', 'Plan', 'encode', 'Row', 'split'];
const SPACES = ['net::http', 'store', 'store::cache', 'img', 'search::index', 'util', 'std', 'crypto'];

export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = state + 0x6d2b79f5 >>> 0;
    let t = Math.imul(state ^ state >>> 15, 1 | state);
    t = t + Math.imul(t ^ t >>> 7, 61 | t) ^ t;
    return ((t ^ t >>> 14) >>> 0) / 4294967296;
  };
}

function amounts(n: number, diff: boolean): Amounts {
  const some = () => new Float64Array(diff ? n : 0), now = new Float64Array(n), none = new Float64Array(0);
  return { n, now, variance: none, weight: none, gained: now, base: some(), lost: none, lostVariance: none, lostWeight: none };
}

function nameOf(next: () => number): string {
  const pick = (list: string[]) => list[Math.floor(next() * list.length)];
  const verb = pick(WORDS), noun = pick(WORDS), space = pick(SPACES), kind = next();
  if (kind < 0.3)
    return `${verb.toLowerCase()}_${noun.toLowerCase()}`;
  const type = kind < 0.7 ? '' : `<${pick(SPACES)}::${noun}, std::allocator<${pick(WORDS)}>>`;
  return `${space}::${verb[0].toUpperCase()}${verb.slice(1)}${type}::${noun.toLowerCase()}${kind < 0.55 ? '' : `(${pick(WORDS)} const&)`}`;
}

function makeView(next: () => number, entries: number, diff: boolean): View {
  const names = Array.from({ length: entries }, (_, i) => i < 3 ? ['main', 'worker_loop', 'std::thread::run'][i] : nameOf(next));
  const mapping = Int32Array.from(names, (_, i) => i < 2 ? 0 : Math.floor(next() ** 2.2 * BINARIES.length));
  const no = new Uint32Array(0), noAmount = { now: 0, base: 0, gained: { value: 0, variance: 0, weight: 0 }, lost: { value: 0, variance: 0, weight: 0 } };
  const data: PageData = {
    title: null, program: 'storefront', types: [{ type: 'inuse_space', unit: 'bytes', times: -1 }], defaultType: 0, metric: [-1, -1, -1, 0],
    snapshots: [], base: null, sources: [], notes: [], command: [], rest: null, strings: ['', ...BINARIES],
    view: { metric: 'inuse_space', by: 'function', inverted: false, focus: '', ignore: '', hide: '', show: '', show_from: '' },
    mappings: { n: BINARIES.length, file: Uint32Array.from(BINARIES, (_, i) => i + 1) },
    frames: { n: BINARIES.length, name: new Uint32Array(BINARIES.length), file: new Uint32Array(BINARIES.length),
              line: new Uint32Array(BINARIES.length), mapping: Int32Array.from(BINARIES, (_, i) => i), flags: new Uint8Array(BINARIES.length) },
    nodes: { n: BINARIES.length, parent: new Uint32Array(BINARIES.length), frame: Uint32Array.from(BINARIES, (_, i) => i), depth: no },
    labels: { n: 1, thread: no, size: new Float64Array(0), text: no },
    rows: { n: BINARIES.length, node: Uint32Array.from(BINARIES, (_, i) => i), labels: no, source: no, rest: no, newStack: new Uint8Array(0),
            values: [Float64Array.from(BINARIES, (_, i) => BINARIES.length - i)] },
  };
  return {
    data, diff, oneProcess: true, hasError: false, type: 'inuse_space', unit: 'bytes', frameEntry: no,
    options: { column: 0, at: 0, base: diff ? 0 : null, by: 'function', focus: '', ignore: '', hide: '', show: '', showFrom: '', binary: '',
               thread: null, collapseRecursion: false },
    entries: { n: entries, name: names, file: names.map(() => 'src/a.cc'), line: new Uint32Array(entries), binary: names.map((_, i) => BINARIES[mapping[i]]),
               inlined: new Uint8Array(entries), unnamed: new Uint8Array(entries), mapping },
    rows: { n: 0, node: no, labels: no, rest: no, stack: no, amounts: amounts(0, diff) }, nodeShown: new Uint8Array(0), labelEntry: no, total: noAmount, totalAll: noAmount, lowerBounds: false,
  };
}

// Nodes are split into callees from the root on, each into few with ever smaller parts; often there is only one.
function split(o: TreeOptions, next: () => number, tree: Tree, entries: number) {
  const { parent, depth, entry, width } = tree;
  width[0] = 2 ** 34;
  let made = 1;
  for (let i = 0; made < o.nodes; i++) {
    if (i === made)
      throw new Error('too shallow for so many nodes');
    const chain = i > 0 && next() < 0.6, most = chain ? 1 : 2 + Math.floor(next() ** 2 * o.fan);
    // What is narrow branches less.
    const stops = depth[i] >= o.depth || (depth[i] > 4 && next() < 0.25 && made - i > 100);
    const count = stops ? 0 : Math.min(i === 0 ? 3 : most, o.nodes - made);
    let left = width[i] * (chain || i === 0 || next() < 0.7 ? 1 : 0.7 + 0.3 * next());
    for (let k = 0; k < count; k++) {
      const child = made++, part = k === count - 1 ? 1 : 0.2 + 0.5 * next();
      parent[child] = i;
      depth[child] = depth[i] + 1;
      entry[child] = i === 0 ? k % 3 : next() < 0.01 ? NONE : Math.floor(next() ** 2 * entries);
      width[child] = Math.floor(left * part);
      left -= width[child];
    }
  }
}

function linkChildren(tree: Tree) {
  const { n, parent, firstChild, nextSibling, width } = tree;
  const order = new Uint32Array(n).map((_, i) => i).subarray(1).sort((a, b) => width[a] - width[b]);
  for (const node of order) {
    nextSibling[node] = firstChild[parent[node]];
    firstChild[parent[node]] = node;
  }
}

// Every row is full: as many stacks as there are columns, all alike.
function makeColumns(o: TreeOptions, tree: Tree, entries: number) {
  const { parent, depth, entry, width, firstChild, nextSibling, n } = tree, columns = Math.floor((n - 1) / o.depth);
  for (let i = 1; i < n; i++) {
    const above = Math.max(i - columns, 0);
    parent[i] = above;
    depth[i] = depth[above] + 1;
    entry[i] = i * 7919 % entries;
    width[i] = 1;
    if (above > 0)
      firstChild[above] = i;
    else if (i < columns)
      nextSibling[i] = i + 1;
  }
  firstChild[0] = 1;
  width[0] = columns;
  tree.total.now.set(width);
}

// What nodes hold themselves changes; the rest is added up.
function changeAmounts(tree: Tree, diff: boolean, next: () => number) {
  const { n, parent, width } = tree, { now, base } = tree.total, own = width.slice();
  for (let i = 1; i < n; i++)
    own[parent[i]] -= width[i];
  width.fill(0);
  for (let i = n - 1; i >= 0; i--) {
    const fate = diff ? next() : 1, after = fate < 0.07 ? 0 : own[i];
    const before = fate < 0.14 && fate >= 0.07 ? 0 : fate < 0.5 ? own[i] * (0.3 + 1.4 * next()) : own[i];
    now[i] += after;
    width[i] += diff ? Math.max(before, after) : after;
    if (diff)
      base[i] += before;
    if (i === 0)
      break;
    now[parent[i]] += now[i];
    width[parent[i]] += width[i];
    if (diff)
      base[parent[i]] += base[i];
  }
}

function changesOf({ now, base }: Amounts, next: () => number): Uint8Array {
  return Uint8Array.from(now, (value, i) => CHANGES.indexOf(value === base[i] ? 'none' : base[i] === 0 ? 'new' : value === 0 ? 'gone'
    : next() < 0.12 ? 'noise' : value > base[i] ? 'grew' : 'shrank'));
}

export function makeInput(o: TreeOptions): FlameInput {
  const next = random(o.seed), n = o.nodes, entries = Math.max(Math.min(Math.floor(n / 8), 20000), 30);
  const view = makeView(next, entries, o.diff), numbers = () => new Uint32Array(n);
  const tree: Tree = { n, entry: numbers(), parent: numbers(), firstChild: numbers(), nextSibling: numbers(), depth: numbers(),
                       self: amounts(0, o.diff), total: amounts(n, o.diff), width: new Float64Array(n), rest: new Uint32Array(0) };
  if (o.flat) {
    makeColumns(o, tree, entries);
  } else {
    split(o, next, tree, entries);
    changeAmounts(tree, o.diff, next);
    linkChildren(tree);
  }
  tree.entry[0] = NONE;
  return { view, tree, changes: o.diff ? changesOf(tree.total, next) : null, width: 'max', icicle: true, trimTemplates: true, matches: null,
           selected: NONE };
}
