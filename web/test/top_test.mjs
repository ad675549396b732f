// What the page shows is what `heapgauge top --json` prints: every number of every row, over generated profiles, metrics,
// granularities, filters and bases.
//
// node --test top_test.mjs, with HEAPGAUGE (the program) and HEAPGAUGE_MODEL (build.mjs --model) in the environment.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { PLAIN } from './encode.mjs';
import { Random, makeWorld, writePprof } from './profiles.mjs';

const { HEAPGAUGE = 'heapgauge', HEAPGAUGE_MODEL, WORLDS = '24' } = process.env;
const model = await import(pathToFileURL(HEAPGAUGE_MODEL)), folder = mkdtempSync(join(tmpdir(), 'web-model-'));
after(() => rmSync(folder, { recursive: true }));

const EXPRESSIONS = ['parse', 'libgl', '^main$', '[[:digit:]]$', 'src/|lib/', 'Tree|cache', '!0x', 'no source', 'nothing at all', 'std::vec.*back', 'push_?back'];
const BY = ['function', 'line', 'file', 'binary', 'thread'];

function heapgauge(...args) {
  return execFileSync(HEAPGAUGE, args, { encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'] });
}

// The data of the page that the program writes.
async function pageData(name, profiles) {
  const page = join(folder, name);
  heapgauge('flame', '--symbols', 'none', '--demangle', 'none', '-o', page, ...profiles);
  const [, block] = /<script id="heapgauge-data" type="application\/octet-stream">([^<]*)</.exec(readFileSync(page, 'utf8'));
  return model.decodeBlock(model.fromBase64(block));
}

// As src/report/json.c writes numbers.
const whole = (x) => {
  const floor = Math.floor(x), part = x - floor;
  return (part > 0.5 || (part === 0.5 && floor % 2 !== 0) ? floor + 1 : floor) + 0;
};
const digits = (x) => x < 1e-300 ? 0 : Number(x.toPrecision(6));

function amountJson(view, amounts, i) {
  const a = model.amountAt(amounts, i), { low, high } = model.intervalOf(amounts, i, view);
  const bounds = view.hasError ? { low: whole(low), high: whole(high) } : { low: null, high: null };
  return view.diff ? { base: a.base, new: a.now, change: a.now - a.base, ...bounds } : { value: a.now, ...bounds };
}

function rowsOf(view, sort) {
  const totals = model.entryTotals(view, sort), { entries } = view;
  return Array.from(model.rankEntries(view, totals, sort), (i) => {
    const row = { name: entries.name[i] };
    if (entries.file[i])
      row.file = entries.file[i];
    if (entries.line[i])
      row.line = entries.line[i];
    row.flat = amountJson(view, totals.flat, i);
    row.cum = amountJson(view, totals.cum, i);
    if (view.diff)
      Object.assign(row, view.hasError ? { p_value: digits(totals.pValue[i]), significant: totals.significant[i] === 1 }
        : { p_value: null, significant: null });
    return row;
  });
}

// Of several binaries with one function any may be named, whether all calls are inlined depends on the other snapshots of the block,
// and addresses are not in it.
function plainRow({ binary, address, inlined, ...row }) {
  return row.p_value === undefined || row.p_value === null ? row : { ...row, p_value: digits(row.p_value) };
}

const tie = (row) => JSON.stringify([row.name, row.file ?? '', row.line ?? 0]);

function compare(world, names, data, o, sort) {
  const args = ['top', '--json', '-n', '0', '--by', o.by, '--metric', data.types[o.column].type, '--sort', sort, '--symbols', 'none', '--demangle', 'none'];
  for (const [key, option] of [['focus', '--focus'], ['ignore', '--ignore'], ['hide', '--hide'], ['show', '--show'], ['showFrom', '--show-from']])
    if (o[key])
      args.push(option, o[key]);
  if (o.base !== null)
    args.push('--base', names[o.base]);
  args.push(names[o.at]);
  const expected = JSON.parse(heapgauge(...args)), view = model.makeView(data, o), what = `world ${world.seed}: ${args.join(' ')}`;
  const all = { ...view, rows: null }, total = (a) => {
    const bounds = view.hasError ? model.intervalOfAmount(a) : null;
    const round = (x) => bounds ? whole(x) : null;
    return view.diff ? { base: a.base, new: a.now, change: a.now - a.base, low: round(bounds?.low), high: round(bounds?.high) }
      : { value: a.now, low: round(bounds?.low), high: round(bounds?.high) };
  };
  assert.equal(all.diff, expected.diff, what);
  if (view.diff)
    assert.equal(view.oneProcess, expected.same_process, what);
  assert.deepEqual(total(view.total), expected.total, `total of ${what}`);
  assert.deepEqual(total(view.totalAll), expected.total_before_filters, `total before filters of ${what}`);
  const rows = rowsOf(view, sort);
  assert.deepEqual(rows.map(plainRow).map(tie).sort(), expected.rows.map(tie).sort(), `entries of ${what}`);
  // Equal sizes and names come in the order of the entries' numbers, which the block does not keep.
  const byTie = new Map(rows.map((row) => [tie(row), row]));
  for (const row of expected.rows)
    assert.deepEqual(byTie.get(tie(row)), plainRow(row), `row of ${what}`);
  assert.deepEqual(rows.map((row) => row.name), expected.rows.map((row) => row.name), `order of ${what}`);
  return rows.length;
}

function randomOptions(r, data) {
  const o = { ...PLAIN, column: r.below(data.types.length), by: r.of(BY), at: r.below(data.snapshots.length) };
  if (r.chance(60))
    o.base = r.below(data.snapshots.length);
  if (o.base === o.at)
    o.base = null;
  for (const key of ['focus', 'ignore', 'hide', 'show', 'showFrom'])
    if (r.chance(22))
      o[key] = r.of(EXPRESSIONS);
  return o;
}

for (let seed = 1; seed <= Number(WORLDS); seed++)
  test(`world ${seed}: rows as top --json prints them`, async () => {
    const world = makeWorld(seed), r = new Random(1000 + seed);
    const names = world.snapshots.map((snapshot, i) => {
      const name = join(folder, `${seed}-${i}.pb`);
      writeFileSync(name, writePprof(world, snapshot));
      return name;
    });
    const data = await pageData(`${seed}.html`, names);
    let compared = 0;
    for (let i = 0; i < 25; i++)
      compared += compare(world, names, data, randomOptions(r, data), r.of(['flat', 'cum']));
    assert.ok(compared > 20, 'too few rows were compared to mean anything');
  });
