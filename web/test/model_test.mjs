// The parts of the model one by one: damaged data, special functions, filters, trees against stacks added up one by
// one, ids, words and names.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HEAP, PLAIN, encodeBlock, packBlock } from './encode.mjs';
import { Random } from './profiles.mjs';
import { anyView, argsOf, heapgauge, makePage, model } from './run.mjs';

const SOURCE = { name: 'a.heap', snapshot: 0, rate: 524288, time_ms: 0, process: null, pid: null, raw_counts: false };
const f = (name, more = {}) => ({ name, file: `${name}.c`, line: 1, binary: '/bin/app', ...more });
const SMALL = {
  ...HEAP, snapshots: [{ name: 'a.heap', time_ms: 0 }], sources: [SOURCE],
  samples: [
    { frames: [f('main'), f('parse'), f('alloc')], thread: 't0 main', size: 64, source: 0,
      values: [20, 1280, 10, 640] },
    { frames: [f('main'), f('serve')], thread: 't1 io', size: 0, source: 0, values: [8, 9000, 8, 9000] },
    { frames: [], source: 0, values: [1, 100, 1, 100] },
  ],
};

// --- data ---

test('a block is decoded', async () => {
  const data = await model.decodeBlock(encodeBlock(SMALL)), { nodes, frames, strings, rows, labels } = data;
  assert.equal(nodes.n, 5);
  assert.deepEqual(Array.from(nodes.depth), [0, 1, 2, 3, 2]);
  assert.deepEqual(Array.from(nodes.parent), [0, 0, 1, 2, 1]);
  assert.deepEqual(Array.from(nodes.frame.subarray(1), (i) => strings[frames.name[i]]),
    ['main', 'parse', 'alloc', 'serve']);
  assert.deepEqual(Array.from(rows.node), [0, 3, 4]);
  assert.deepEqual(rows.values.map((values) => Array.from(values)),
    [[1, 20, 8], [100, 1280, 9000], [1, 10, 8], [100, 640, 9000]]);
  assert.deepEqual(Array.from(labels.size), [0, 64, 0]);
});

test('numbers of 64 bits are rounded once', async () => {
  const values = ['9223372036854775807', '-9223372036854775808', '9007199254740993', '-9007199254740993', '4294967296',
    '-1', '0'];
  const samples = values.map((value, i) => ({ frames: [f(`f${i}`)], source: 0,
    values: [value, '1', '1', '1'].map(BigInt) }));
  const data = await model.decodeBlock(encodeBlock({ ...SMALL, samples }));
  assert.deepEqual(Array.from(data.rows.values[0]), values.map(Number));
  // Of blocks of one size: count times size, also where the product is too long for a double.
  const large = [{ frames: [f('f')], size: 4097, source: 0,
    values: [1n, 1n, 9007199254740991n, 9007199254740991n * 4097n + 1n] }];
  const again = await model.decodeBlock(encodeBlock({ ...SMALL, samples: large }));
  assert.equal(again.rows.values[3][0], Number(9007199254740991n * 4097n + 1n));
});

test('a cut or changed block is an error that says so', async () => {
  const block = encodeBlock(SMALL);
  for (let n = 0; n < block.length; n += 7)
    await assert.rejects(model.decodeBlock(block.subarray(0, n)),
      { name: 'DataError', message: /^the profile data in this page are damaged: / });
  for (let i = 10; i < block.length; i += 5) {
    const changed = Uint8Array.from(block);
    changed[i] ^= 0x55;
    await assert.rejects(model.decodeBlock(changed), { name: 'DataError' }, `byte ${i}`);
  }
});

const changed = (change) => encodeBlock(SMALL, (parts) => {
  change(parts);
  return parts;
});

test('every number in a block is checked', async () => {
  const wrong = {
    'too few nodes': ({ header }) => header.counts.nodes++, 'too many': ({ header }) => header.counts.rows--,
    'a stream is missing': ({ streams }) => delete streams.row_rest,
    'a frame that is not there': ({ streams }) => streams.node_frame[0] = 99,
    'a string that is not there': ({ streams }) => streams.frame_name[0] = 99,
    'above the root': ({ streams }) => streams.node_up[1] = 9,
    'a node that is not there': ({ streams }) => streams.row_node[0] = 100,
    'a source that is not there': ({ streams }) => streams.row_source[0] = 3,
    'labels that are not there': ({ streams }) => streams.row_labels[1] = 3,
    'a number without end': ({ streams }) => streams.row_rest[2] = 0x80,
    'a number too long': ({ header, streams }) => {
      streams.frame_line = Buffer.concat([Buffer.from([255, 255, 255, 255, 127]), streams.frame_line.subarray(1)]);
      header.x = 0;
    },
    'no UTF-8': ({ streams }) => streams.string_bytes[0] = 0xff,
    'strings too long': ({ streams }) => streams.string_lengths[1] = 120,
    'a snapshot that is not there': ({ header }) => header.sources[0].snapshot = 1,
    'a type that is not there': ({ header }) => header.metric.inuse_space = 4,
    'no types': ({ header }) => header.types = [],
    'a multiple of a multiple': ({ header }) => header.types[0].times = 1,
    'a count that is none': ({ header }) => header.counts.rows = -1,
    'a count too large': ({ header }) => header.counts.nodes = 2 ** 40,
    'a negative rate': ({ header }) => header.sources[0].rate = -1,
    'no version': ({ header }) => delete header.version,
  };
  for (const [what, change] of Object.entries(wrong)) {
    const clone = structuredClone(SMALL);
    const block = encodeBlock(clone, (parts) => {
      change(parts);
      return parts;
    });
    await assert.rejects(model.decodeBlock(block), { name: 'DataError',
      message: /^the profile data in this page are damaged: / }, what);
  }
});

test('what is not ours, or newer than the page, is told apart', async () => {
  const rejects = (block, message) => assert.rejects(model.decodeBlock(block), { name: 'DataError', message });
  await rejects(changed(({ header }) => header.version = 2), /version 2.*newer heapgauge/);
  await rejects(packBlock({ header: {}, streams: {}, magic: 'HGPAGE2\n' }), /newer heapgauge/);
  await rejects(packBlock({ header: {}, streams: {}, magic: 'somebody' }), /do not begin as heapgauge's/);
  await rejects(Buffer.from('<!doctype html><html></html>'), /not compressed/);
  await rejects(Buffer.alloc(0), /cut short/);
  assert.throws(() => model.fromBase64('&&&'), { name: 'DataError' });
});

test('strings of all kinds arrive as they are', async () => {
  const names = ['λ→😀', '\u202eevil', 'a\0b', '</script>', '\ufeffbom', 'x'.repeat(100000), '😀'.repeat(9), ''];
  const samples = names.map((name) => ({ frames: [{ name, file: '', line: 0 }], source: 0, values: [1, 1, 1, 1] }));
  const data = await model.decodeBlock(encodeBlock({ ...SMALL, samples }));
  assert.deepEqual(Array.from(data.frames.name, (i) => data.strings[i]), names);
});

// --- special functions ---

test('lgamma and erfc are right to the last digits', () => {
  const near = (got, want, what) => assert.ok(Math.abs(got - want) <= 2e-15 * Math.max(1, Math.abs(want)),
    `${what}: ${got}, not ${want}`);
  const gamma = [
    [1e-3, 6.907178885383854], [0.1, 2.2527126517342055], [0.5, 0.5723649429247004], [1, 0],
    [1.5, -0.12078223763524543], [2, 0],
    [2.5, 0.2846828704729196], [3.7, 1.4280723266653883], [7.25, 7.0521854507385395], [11.99, 17.477885575426185],
    [12, 17.502307845873887],
    [25.5, 56.389167643719944], [100.125, 359.70930408523606], [1e6, 12815504.569147611],
  ];
  for (const [x, want] of gamma)
    near(model.logGamma(x), want, `lgamma(${x})`);
  const error = [
    [0, 1], [1e-9, 0.9999999988716208], [0.1, 0.8875370839817152], [0.5, 0.4795001221869535],
    [0.9999, 0.15734072195124052],
    [1, 0.15729920705028513], [1.2, 0.08968602177036465], [1.386, 0.04998410355105579], [2, 0.004677734981047265],
    [3.3, 3.0577097964381654e-06], [5, 1.5374597944280351e-12], [10, 2.088487583762545e-45],
    [20, 5.3958656116079005e-176],
    [26.5, 2.2109076642637343e-307],
  ];
  for (const [x, want] of error)
    assert.ok(Math.abs(model.erfc(x) - want) <= 1e-14 * want, `erfc(${x}): ${model.erfc(x)}, not ${want}`);
});

test('intervals of few samples cover, and exact ones have no width', () => {
  const one = model.estimateInterval(model.estimateBytes(1, 524288 * 1.58, 524288, 524288));
  assert.ok(one.low > 0 && one.low < 524288 && one.high > 2e6 && one.high < 1e7, JSON.stringify(one));
  assert.deepEqual(model.estimateInterval(model.estimateBytes(5, 100, 0, 1)), { low: 100, high: 100 });
  assert.deepEqual(model.estimateInterval(model.estimateBytes(0, 0, 0, 4096)), { low: 0, high: 3 * 4096 });
  assert.equal(model.estimatePValue({ value: 5, variance: 0, weight: 0 }, { value: 4, variance: 0, weight: 0 }), 0);
  assert.equal(model.estimatePValue({ value: 5, variance: 9, weight: 1 }, { value: 5, variance: 9, weight: 1 }), 1);
});

test('Benjamini and Hochberg', () => {
  const flags = (...p) => Array.from(model.significant(Float64Array.from(p)));
  assert.deepEqual(flags(), []);
  assert.deepEqual(flags(0.04), [1]);
  assert.deepEqual(flags(0.04, 0.9), [0, 0]);
  assert.deepEqual(flags(0.9, 0.02, 0.03, 0.001), [0, 1, 1, 1]);
});

// --- filters ---

const smallData = await model.decodeBlock(encodeBlock(SMALL));
const rowsOf = (options) => model.makeView(smallData, { ...PLAIN, ...options }).rows.n;

test('POSIX classes and brackets mean what they mean there', () => {
  for (const [focus, n] of [['^[[:alpha:]]+$', 2], ['[[:digit:]]', 0], ['[]x]', 0], ['^[^]x]+$', 2],
    ['[[:alpha:]_.]ar', 1], ['\\<main\\>', 2],
    ['[[.m.]]ain', 2], ['^(parse|serve)$', 2], ['\\.c$', 2], ['a{1}lloc', 1]])
    assert.equal(rowsOf({ focus }), n, focus);
});

test('a bad expression names its option', () => {
  for (const [key, option] of [['focus', '--focus'], ['ignore', '--ignore'], ['hide', '--hide'], ['show', '--show'],
    ['showFrom', '--show-from']])
    for (const text of ['(', '[', '*', '[[:nothing:]]', 'a{2,1}'])
      assert.throws(() => rowsOf({ [key]: text }), { name: 'FilterError', option,
        message: /is not a regular expression/ }, text);
});

test('filters by binary and thread', () => {
  assert.equal(rowsOf({ binary: '/bin/app' }), 2);
  assert.equal(rowsOf({ binary: '/bin/other' }), 0);
  assert.equal(rowsOf({ thread: 't1 io' }), 1);
  assert.equal(rowsOf({ thread: '' }), 1);
  assert.equal(rowsOf({ thread: 'nobody' }), 0);
});

test('a frame of which nothing but the address is known matches by what it is called', async () => {
  const samples = [{ frames: [{ name: 'app!0x12', file: '', line: 0, binary: '/bin/app', unnamed: true }], source: 0,
    values: [1, 1, 1, 1] },
    { frames: [{ name: 'app!0x12', file: '', line: 0, binary: '/bin/app' }], source: 0, values: [1, 1, 1, 1] }];
  const data = await model.decodeBlock(encodeBlock({ ...SMALL, samples }));
  const found = (by, focus) => model.makeView(data, { ...PLAIN, by, focus }).rows.n;
  assert.equal(found('function', '0x12'), 2);
  assert.equal(found('file', '0x12'), 1);
  assert.equal(found('file', 'no source file: app'), 1);
  // And it is no function that is called like it.
  assert.equal(model.makeView(data, PLAIN).entries.n, 2);
});

// --- trees and totals, against stacks added up one by one ---

// Of each row its frames as entries, root first.
function stacks(view) {
  const { nodes } = view.data;
  return Array.from({ length: view.rows.n }, (_, row) => {
    const entries = [];
    for (let node = view.rows.node[row]; node; node = nodes.parent[node])
      if (view.nodeShown[node])
        entries.unshift(view.frameEntry[nodes.frame[node]]);
    return { entries, now: view.rows.amounts.now[row] };
  });
}

function paths(view, tree) {
  const path = [''], sums = new Map();
  for (let i = 0; i < tree.n; i++) {
    path[i] = i ? `${path[tree.parent[i]]}/${tree.entry[i]}` : '';
    assert.ok(i === 0 || tree.parent[i] < i, 'parents come first');
    assert.ok(!sums.has(path[i]), 'a path is there once');
    sums.set(path[i], tree.total.now[i]);
  }
  return sums;
}

function addPath(sums, entries, now) {
  let path = '';
  sums.set(path, (sums.get(path) ?? 0) + now);
  for (const entry of entries)
    sums.set(path += `/${entry}`, (sums.get(path) ?? 0) + now);
}

const collapsed = (entries) => entries.filter((entry, i) => entry !== entries[i - 1]);
const page = await makePage(301, { snapshots: 2, size: 120 });

function* anyViews(seed, n = 20) {
  const r = new Random(seed);
  for (let i = 0; i < n; i++)
    yield { o: anyView(r, page.data, ['function', 'line', 'file', 'binary']), r };
}

test('sandwiches are the stacks above and below the outermost appearance', () => {
  let seen = 0;
  for (const { o, r } of anyViews(1, 30)) {
    const view = model.makeView(page.data, { ...o, base: null }), cum = model.entryTotals(view, 'cum').cum,
      entry = r.below(view.entries.n);
    const { callers, callees } = model.sandwich(view, entry), above = new Map([['', 0]]), below = new Map([['', 0]]);
    for (const { entries, now } of stacks(view)) {
      const at = entries.indexOf(entry);
      if (at < 0)
        continue;
      seen++;
      addPath(below, entries.slice(at + 1), now);
      addPath(above, entries.slice(0, at).reverse(), now);
    }
    assert.deepEqual(paths(view, callees), below);
    assert.deepEqual(paths(view, callers), above);
    assert.equal(callees.total.now[0], cum.now[entry]);
    assert.equal(callees.entry[0], entry);
  }
  assert.ok(seen > 50);
});

test('recursion collapses in both directions', () => {
  let shorter = 0;
  for (const { o } of anyViews(2)) {
    const view = model.makeView(page.data, { ...o, base: null, collapseRecursion: true });
    for (const inverted of [false, true]) {
      const sums = new Map([['', 0]]);
      for (const { entries, now } of stacks(view)) {
        const way = inverted ? [...entries].reverse() : entries;
        shorter += way.length - collapsed(way).length;
        addPath(sums, collapsed(way), now);
      }
      assert.deepEqual(paths(view, model.makeTree(view, { inverted })), sums);
    }
  }
  assert.ok(shorter > 50);
});

test('siblings are linked, widest first, and widths hold what vanished', () => {
  for (const { o } of anyViews(3)) {
    const view = model.makeView(page.data, o), tree = model.makeTree(view, { inverted: false }), { total, self } = tree;
    const size = (i) => view.diff ? Math.max(total.now[i], total.base[i]) : total.now[i];
    let linked = 1;
    for (let i = 0; i < tree.n; i++) {
      let inside = view.diff ? Math.max(self.now[i], self.base[i]) : self.now[i];
      for (let child = tree.firstChild[i], before = Infinity; child; child = tree.nextSibling[child], linked++) {
        assert.equal(tree.parent[child], i);
        assert.equal(tree.depth[child], tree.depth[i] + 1);
        assert.ok(size(child) <= before);
        before = size(child);
        inside += tree.width[child];
      }
      assert.ok(tree.width[i] >= inside - 1e-6, 'no child is wider than its parent');
      assert.ok(tree.width[i] >= size(i) - 1e-6);
    }
    assert.equal(linked, tree.n);
  }
});

test('lines of an entry add up to it', () => {
  for (const { o, r } of anyViews(4)) {
    const view = model.makeView(page.data, { ...o, by: 'function' }), totals = model.entryTotals(view, 'flat'),
      entry = r.below(view.entries.n);
    const found = model.lines(view, entry), sum = (a) => a.now.reduce((x, y) => x + y, 0);
    assert.equal(sum(found.flat), totals.flat.now[entry]);
    assert.ok(sum(found.cum) >= totals.cum.now[entry]);
    assert.equal(new Set(Array.from(found.file, (file, i) => `${file}:${found.line[i]}`)).size, found.n);
  }
});

test('growth of stacks and threads has every snapshot, and the diff\'s numbers', () => {
  for (const { o } of anyViews(5)) {
    for (const of of ['stacks', 'entries']) {
      const grown = model.growth(page.data, { ...o, by: 'function' }, of, 'flat'), { view, amounts } = grown;
      assert.deepEqual(Array.from(grown.values.at(-1)), Array.from(amounts.now));
      assert.deepEqual(Array.from(grown.values[0]), Array.from(amounts.base));
      const verdicts = Array.from(grown.order, (i) => grown.significant[i]);
      assert.deepEqual(verdicts, [...verdicts].sort((a, b) => b - a));
      if (of === 'stacks')
        assert.equal(amounts.now.reduce((x, y) => x + y, 0), view.total.now);
    }
  }
});

test('changes are what they are called', () => {
  const counts = {};
  for (const { o } of anyViews(6, 40)) {
    const view = model.makeView(page.data, o), tree = model.makeTree(view, { inverted: false }),
      changes = model.treeChanges(view, tree);
    for (let i = 0; i < tree.n; i++) {
      const change = model.CHANGES[changes[i]], base = view.diff ? tree.total.base[i] : 0, now = tree.total.now[i];
      counts[change] = (counts[change] ?? 0) + 1;
      if (!view.diff || base === now)
        assert.equal(change, 'none');
      else if (change !== 'noise')
        assert.equal(change, base === 0 ? 'new' : now === 0 ? 'gone' : now > base ? 'grew' : 'shrank');
      else
        assert.ok(view.hasError);
    }
  }
  for (const change of model.CHANGES)
    assert.ok(counts[change] > 0, `${change} never came`);
});

// --- (other) rows ---

test('what a block leaves out stands in the tree as (other)', async () => {
  const samples = [
    ...SMALL.samples, { frames: [f('main'), f('serve')], thread: 't1 io', rest: 5, source: 0,
      values: [7, 700, 7, 700] },
    { frames: [], rest: 2, source: 0, values: [1, 30, 1, 30] },
  ];
  const view = model.makeView(await model.decodeBlock(encodeBlock({ ...SMALL, samples })), PLAIN),
    { flat, cum } = model.entryTotals(view, 'flat');
  const named = (name) => view.entries.name.indexOf(name);
  assert.ok(view.lowerBounds);
  assert.equal(view.total.now, 640 + 9000 + 100 + 730);
  assert.equal(flat.now[named('serve')], 9000);
  assert.equal(cum.now[named('serve')], 9700);
  for (const inverted of [false, true]) {
    const tree = model.makeTree(view, { inverted }), others = [];
    for (let i = 1; i < tree.n; i++)
      if (tree.entry[i] === model.NONE)
        others.push([tree.rest[i], tree.total.now[i], tree.depth[i]]);
    assert.deepEqual(others.sort(), inverted ? [[7, 730, 1]] : [[2, 30, 1], [5, 700, 3]]);
    assert.equal(tree.total.now[0], view.total.now);
  }
  assert.match(model.folded(view), /^main;serve;\(other\) 700$/m);
  assert.equal(model.makeView(smallData, PLAIN).lowerBounds, false);
});

// --- ids ---

test('ids find entries and places again under other filters', () => {
  const plain = model.makeView(page.data, { ...PLAIN, column: page.data.defaultType }),
    tree = model.makeTree(plain, { inverted: false });
  const other = model.makeView(page.data, { ...PLAIN, column: page.data.defaultType, at: 1,
    focus: 'parse|main|serve' });
  const otherTree = model.makeTree(other, { inverted: false }),
    name = (view, t, i) => i ? `${name(view, t, t.parent[i])}/${view.entries.name[t.entry[i]]}` : '';
  const places = new Map(Array.from({ length: otherTree.n }, (_, i) => [name(other, otherTree, i), i]));
  const ids = new Set();
  let found = 0;
  for (let i = 0; i < tree.n; i++) {
    const id = model.nodeId(plain, tree, i);
    assert.match(id, /^[0-9a-z]{1,11}$/);
    assert.equal(model.findNode(plain, tree, id), i);
    assert.equal(model.findNode(other, otherTree, id), places.get(name(plain, tree, i)) ?? model.NONE);
    found += places.has(name(plain, tree, i)) ? 1 : 0;
    ids.add(id);
  }
  assert.equal(ids.size, tree.n);
  assert.ok(found > 5 && found < tree.n);
  for (let i = 0; i < plain.entries.n; i++)
    assert.equal(model.findEntry(plain, model.entryId(plain, i)), i);
  assert.equal(model.findEntry(plain, 'nothing'), model.NONE);
});

// --- words and names ---

// The table of `heapgauge top`, one line a row, blanks made one.
const table = (text) => {
  const rows = text.split('\n'), from = rows.findIndex((line) => /^ *flat\b.*\bcum\b/.test(line));
  return rows.slice(from + 1, rows.findIndex((line, i) => i > from && !line.trim()) >>> 0)
    .map((line) => line.replace(/\s+/g, ' ').replace(/ \(inline\)$/, '').trim())
      .filter((line) => line && !/^\(\d+ more/.test(line));
};

test('amounts and errors are worded as on a terminal', async () => {
  let rows = 0;
  for (const seed of [401, 402, 403, 404, 405, 406]) {
    const { names, data } = await makePage(seed), r = new Random(seed);
    for (let i = 0; i < 6; i++) {
      const o = anyView(r, data, ['function', 'binary']), view = model.makeView(data, o),
        totals = model.entryTotals(view, 'flat');
      let sum = 0;
      const mine = Array.from(model.rankEntries(view, totals, 'flat'), (e) => {
        const cells = [totals.flat, totals.cum].map((amounts) => {
          const a = model.amountAt(amounts, e);
          return [model.valueText(view, a), model.errorText(view, a),
            view.diff ? model.changePercentText(a) : model.percentText(a.now, view.totalAll.now)];
        });
        sum += totals.flat.now[e];
        const { base, now } = model.amountAt(totals.flat, e),
          noise = view.diff && view.hasError && !totals.significant[e] && now !== base;
        const share = view.diff ? '' : model.percentText(sum, view.totalAll.now);
        return [...cells[0], share, ...cells[1], noise ? 'noise' : '', view.entries.name[e]].filter(Boolean).join(' ');
      });
      if (mine.length === 0)
        continue;
      rows += mine.length;
      assert.deepEqual(mine, table(heapgauge('top', '-n', '0', '--width', '0', '--colour', 'never',
        ...argsOf(data, names, o))),
        argsOf(data, names, o).join(' '));
    }
  }
  assert.ok(rows > 200);
});

test('counts, times and shares', () => {
  for (const [value, text] of [[0, '0'], [999.4, '999'], [1234, '1,234'], [9999.4, '9,999'], [12345, '12.3k'],
    [4.56e6, '4.56M'], [-1234, '-1,234'], [1e30, '>999E']])
    assert.equal(model.countText(value), text);
  for (const [value, text] of [[0, '0 B'], [1023, '1023 B'], [1023.6, '1.00 KiB'], [1536, '1.50 KiB'],
    [12.3 * 2 ** 20, '12.3 MiB'], [-2048, '-2.00 KiB'], [NaN, '?']])
    assert.equal(model.bytesText(value), text);
  for (const [value, text] of [[0, '0 s'], [0.35, '350 ms'], [12.3, '12.3 s'], [312, '5.20 min'], [11160, '3.10 h'],
    [4.2 * 86400, '4.20 days']])
    assert.equal(model.durationText(value), text);
  assert.equal(model.amountText('nanoseconds', 3.5e8), '350 ms');
  assert.equal(model.changeText('bytes', 2048), '+2.00 KiB');
  assert.equal(model.percentText(736, 1000), '73.6%');
  assert.equal(model.percentText(1, 1e6), '<0.1%');
  assert.equal(model.percentText(1, 0), '');
  assert.equal(model.timeText(Date.UTC(2026, 10, 21, 3, 33, 10)), '2026-11-21 03:33:10 UTC');
  assert.equal(model.timeText(null), '');
});

test('short names', () => {
  const cases = {
    'f(int, char*)': 'f',
    'std::map<int, std::pair<long, f(*)(int)> >::find(int const&) const': 'std::map<…>::find const',
    'void g<int>(int)': 'void g<…>', '(anonymous namespace)::h(int)': '(anonymous namespace)::h',
    'A::operator<(A const&)': 'A::operator<',
    'A::operator<<(A const&)': 'A::operator<<', 'A::operator->() const': 'A::operator-> const',
    'A::operator()(int) const': 'A::operator() const',
    'A<int>::operator()<long>(long)': 'A<…>::operator()<…>', 'operator new(unsigned long)': 'operator new',
    'myoperator<int>(int)': 'myoperator<…>',
    'f()::{lambda(int)#1}::operator()(int) const': 'f::{lambda#1}::operator() const',
    '<alloc::vec::Vec<u8> as core::clone::Clone>::clone': '<alloc::vec::Vec<…> as core::clone::Clone>::clone',
    'core::ops::function::FnOnce::call_once::<fn(u8) -> u8>': 'core::ops::function::FnOnce::call_once::<…>',
    'std::function<int (char)>::f': 'std::function<…>::f', 'unbalanced<int': 'unbalanced<int',
    'unbalanced(int': 'unbalanced(int',
    'libc.so.6!0x1234': '…!0x1234', 'a b/lib-c++<x>.so!0xabc': '…!0xabc', 'libc.so.6!fn_12340': '…!fn_12340',
    'not!an address': 'not!an address',
    'lib!0x': 'lib!0x', 'f(int) [clone .isra.0]': 'f [clone .isra.0]', '': '', main: 'main',
  };
  for (const [name, short] of Object.entries(cases))
    assert.equal(model.trimTemplates(name), short);
  // A megabyte of brackets that nothing closes takes no time to speak of.
  const start = performance.now();
  assert.equal(model.trimTemplates('a<'.repeat(500000)).length, 1e6);
  assert.ok(performance.now() - start < 2000);
});

test('what could act is made visible', () => {
  assert.equal(model.visible('a\x1b[31m\n\u202eb\u2066\u0085\uffff'), 'a\\x1b[31m\\x0a\\u{202e}b\\u{2066}\\x85\ufffd');
  assert.equal(model.visible('λ <script>'), 'λ <script>');
});
