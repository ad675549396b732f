// What the page shows is what the command line prints with --json: every number of every row, over generated profiles,
// metrics, granularities, filters and bases.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Random } from './profiles.mjs';
import {
  amountAtJson, amountJson, anyView, argsOf, digits, entryJson, heapgauge, makePage, model, told,
} from './run.mjs';

const { WORLDS = '24' } = process.env;
const tie = (row) => JSON.stringify([row.name, row.file ?? '', row.line ?? 0]);

function verdict(view, totals, i) {
  if (!view.diff)
    return {};
  return view.hasError ? { p_value: digits(totals.pValue[i]), significant: totals.significant[i] === 1 }
    : { p_value: null, significant: null };
}

const expectedRow = (row) => ({ ...told(row), ...row.p_value === undefined ? {}
  : { p_value: row.p_value && digits(row.p_value) } });

// Top: every row, in order. Of equal sizes and names the order is that of the entries' numbers, which the block does
// not keep.
function compareTop(view, args, sort) {
  const expected = JSON.parse(heapgauge('top', '--json', '-n', '0', '--sort', sort, ...args)),
    what = `top --sort ${sort} ${args.join(' ')}`;
  const totals = model.entryTotals(view, sort), rows = Array.from(model.rankEntries(view, totals, sort), (i) => ({
    ...entryJson(view, i), flat: amountAtJson(view, totals.flat, i), cum: amountAtJson(view, totals.cum, i),
    ...verdict(view, totals, i),
  }));
  assert.equal(view.diff, expected.diff, what);
  if (view.diff)
    assert.equal(view.oneProcess, expected.same_process, what);
  assert.deepEqual(amountJson(view, view.total), expected.total, `total of ${what}`);
  assert.deepEqual(amountJson(view, view.totalAll), expected.total_before_filters, `total before filters of ${what}`);
  const byTie = new Map(rows.map((row) => [tie(row), row]));
  assert.equal(rows.length, expected.rows.length, `number of rows of ${what}`);
  for (const row of expected.rows)
    assert.deepEqual(byTie.get(tie(row)), expectedRow(row), `row of ${what}`);
  assert.deepEqual(rows.map(({ name }) => name), expected.rows.map(({ name }) => name), `order of ${what}`);
  return rows.length;
}

function childNames(view, tree, parent) {
  const names = [];
  for (let child = tree.firstChild[parent]; child; child = tree.nextSibling[child])
    names.push(view.entries.name[tree.entry[child]]);
  return names;
}

// Tree: every node by the way to it.
function compareTree(view, args, inverted) {
  const more = ['--json', '--min', '0', '--depth', '0', ...inverted ? ['--invert'] : []];
  const expected = JSON.parse(heapgauge('tree', ...more, ...args)), tree = model.makeTree(view, { inverted }),
    what = `tree ${args.join(' ')}`;
  const paths = [], nodes = new Map(), path = (parent, row) => `${parent < 0 ? '' : paths[parent]}/${tie(row)}`;
  for (let i = 0; i < tree.n; i++) {
    paths.push(i ? path(tree.parent[i], entryJson(view, tree.entry[i])) : '');
    nodes.set(paths[i], i);
  }
  const expectedPaths = [], children = new Map();
  for (const node of expected.nodes) {
    if (node.hidden)
      continue;
    expectedPaths[node.id] = node.parent === null ? '' : `${expectedPaths[node.parent]}/${tie(node)}`;
    const i = nodes.get(expectedPaths[node.id]);
    assert.notEqual(i, undefined, `${expectedPaths[node.id]} of ${what}`);
    assert.deepEqual(amountAtJson(view, tree.total, i), node.total, `total of ${expectedPaths[node.id]} of ${what}`);
    if (!inverted)
      assert.deepEqual(amountAtJson(view, tree.self, i), node.self, `self of ${expectedPaths[node.id]} of ${what}`);
    const parent = node.parent === null ? -1 : nodes.get(expectedPaths[node.parent]);
    children.set(parent, [...children.get(parent) ?? [], node.name]);
  }
  for (const [parent, names] of children)
    if (parent >= 0 && !view.diff)
      assert.deepEqual(childNames(view, tree, parent).slice(0, names.length), names,
        `children of ${paths[parent]} of ${what}`);
  return expected.nodes.length;
}

// Traces, in order: of equal sizes in that of the stacks' numbers, which the block does not keep.
function compareTraces(view, args) {
  const expected = JSON.parse(heapgauge('traces', '--json', '-n', '0', ...args)), what = `traces ${args.join(' ')}`,
    found = model.traces(view, 0);
  const mine = found.traces.map((t) => {
    const row = { amount: amountJson(view, t.amount) };
    if (t.significant !== null)
      row.significant = t.significant;
    if (t.companion)
      row[view.unit === 'bytes' ? 'objects' : 'bytes'] = view.diff ? { base: t.companion.base, new: t.companion.now }
        : { value: t.companion.now };
    if (t.thread)
      row.thread = t.thread;
    if (t.blockSize)
      row.block_size = t.blockSize;
    row.frames = t.entries.map((i) => entryJson(view, i));
    return row;
  });
  const theirs = expected.stacks.map(({ labels, ...row }) => ({ ...row, frames: row.frames.map(told) }));
  // Threads of two processes are one when their names are. The command line calls them as the first, and counts blocks
  // of that only.
  if (view.diff && !view.oneProcess)
    for (const row of [...mine, ...theirs])
      for (const key of ['thread', 'objects', 'bytes'])
        delete row[key];
  const sorted = (rows) => rows.map((row) => JSON.stringify(Object.entries(row).sort())).sort();
  assert.equal(found.all, expected.stacks_total, what);
  assert.deepEqual(sorted(mine), sorted(theirs), what);
  assert.deepEqual(mine.map(({ amount }) => Math.abs(amount.change ?? amount.value)),
    theirs.map(({ amount }) => Math.abs(amount.change ?? amount.value)), `order of ${what}`);
  return mine.length;
}

// Growth: what `diff` says of the first and the last.
function compareGrowth(data, names, o, sort) {
  const args = [...argsOf(data, names, { ...o, base: null, at: 0 }), names.at(-1)];
  const expected = JSON.parse(heapgauge('diff', '--json', '-n', '0', '--sort', sort, ...args)),
    what = `diff ${args.join(' ')}`;
  const grown = model.growth(data, o, 'entries', sort), mine = Array.from(grown.order, (i) => ({
    ...entryJson(grown.view, i), status: grown.status[i], ...verdict(grown.view, grown, i),
    [sort]: amountAtJson(grown.view, grown.amounts, i),
  }));
  const byTie = new Map(mine.map((row) => [tie(row), row])), other = sort === 'flat' ? 'cum' : 'flat';
  assert.equal(mine.length, expected.rows_total, what);
  assert.equal(grown.unchanged, expected.rows_unchanged, what);
  for (const row of expected.rows) {
    const { [other]: left, ...rest } = expectedRow(row);
    assert.deepEqual(byTie.get(tie(row)), rest, what);
  }
  // Each snapshot's value is what a view of it alone shows.
  for (let at = 0; at < data.snapshots.length && o.by !== 'thread'; at++) {
    const totals = model.entryTotals(model.makeView(data, { ...o, base: null, at }), sort)[sort];
    assert.deepEqual(Array.from(grown.values[at]), Array.from(totals.now), `snapshot ${at} of ${what}`);
  }
  return mine.length;
}

for (let seed = 1; seed <= Number(WORLDS); seed++)
  test(`world ${seed}: every number is the command line's`, async () => {
    const { names, data } = await makePage(seed), r = new Random(1000 + seed);
    let compared = 0;
    for (let i = 0; i < 16; i++) {
      const o = anyView(r, data), view = model.makeView(data, o), args = argsOf(data, names, o);
      compared += compareTop(view, args, r.of(['flat', 'cum']));
      if (i % 4 === 0)
        compared += compareTree(view, args, r.chance(50)) + compareTraces(view, args)
          + compareGrowth(data, names, o, r.of(['flat', 'cum']));
    }
    assert.ok(compared > 20, 'too few rows were compared to mean anything');
  });
