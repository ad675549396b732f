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
  const some = () => new Float64Array(diff ? n : 0), now = new Float64Array(n);
  return { n, now, variance: new Float64Array(n), weight: new Float64Array(n), gained: now, base: some(), lost: some(),
           lostVariance: some(), lostWeight: some() };
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

// Parents and entries of so many nodes. flat: each row full, as wide as the one above.
function makeShape(o: TreeOptions, next: () => number, tree: Tree, entries: number) {
  const { parent, depth, entry } = tree;
  for (let i = 1; i < o.nodes; i++) {
    let p = o.flat ? Math.max(i - Math.floor((o.nodes - 1) / o.depth), 0) : Math.floor(i - 1 - next() ** 3 * Math.min(i - 1, o.fan));
    while (depth[p] >= o.depth)
      p = parent[p];
    parent[i] = p;
    depth[i] = depth[p] + 1;
    entry[i] = p === 0 && !o.flat ? i % 3 : Math.floor(next() ** 2 * entries);
    if (!o.flat && p !== 0 && next() < 0.01)
      entry[i] = NONE;
  }
}

function link(tree: Tree) {
  const children: number[][] = [], { n, parent, firstChild, nextSibling, width } = tree;
  for (let i = 1; i < n; i++)
    (children[parent[i]] ??= []).push(i);
  children.forEach((list, p) => {
    list.sort((a, b) => width[b] - width[a]);
    firstChild[p] = list[0];
    list.forEach((child, k) => { nextSibling[child] = list[k + 1] ?? 0; });
  });
}

function addUp(tree: Tree, base: Float64Array) {
  const { now } = tree.total;
  for (let i = tree.n - 1; i > 0; i--) {
    const p = tree.parent[i];
    now[p] = now[p] + now[i];
    tree.width[p] = tree.width[p] + tree.width[i];
    if (base.length)
      base[p] = base[p] + base[i];
  }
}

export function makeInput(o: TreeOptions): FlameInput {
  const next = random(o.seed), n = o.nodes, entries = Math.max(Math.min(Math.floor(n / 8), 20000), 30);
  const view = makeView(next, entries, o.diff), numbers = () => new Uint32Array(n);
  const tree: Tree = { n, entry: numbers(), parent: numbers(), firstChild: numbers(), nextSibling: numbers(), depth: numbers(),
                       self: amounts(n, o.diff), total: amounts(n, o.diff), width: new Float64Array(n), rest: numbers() };
  makeShape(o, next, tree, entries);
  tree.entry[0] = NONE;
  for (let i = 1; i < n; i++) {
    const value = o.flat ? (i > n - 1 - Math.floor((n - 1) / o.depth) ? 1 : 0) : Math.floor(64 / (next() ** 1.5 + 1e-4) * (next() < 0.5 ? 1 : 0.02));
    const fate = next(), before = !o.diff ? 0 : fate < 0.07 ? 0 : fate < 0.14 ? value * 2 : fate < 0.6 ? value : value * (0.3 + 1.4 * next());
    tree.total.now[i] = o.diff && fate >= 0.07 && fate < 0.14 ? 0 : value;
    if (o.diff)
      tree.total.base[i] = before;
    tree.width[i] = Math.max(tree.total.now[i], before);
  }
  addUp(tree, tree.total.base);
  link(tree);
  const { now, base } = tree.total;
  const changes = o.diff ? Uint8Array.from(now, (value, i) => CHANGES.indexOf(value === base[i] ? 'none' : next() < 0.12 ? 'noise'
    : base[i] === 0 ? 'new' : value === 0 ? 'gone' : value > base[i] ? 'grew' : 'shrank')) : null;
  return { view, tree, changes, width: 'max', icicle: true, trimTemplates: true, matches: null, selected: NONE };
}
