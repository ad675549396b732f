// What the page writes to a file is what the command line writes of the same view; and a profile that is written can be
// read again, with the same numbers.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { Random } from './profiles.mjs';
import { AS_IT_IS, anyView, argsOf, folder, heapgauge, makePage, model, told } from './run.mjs';

const SEEDS = [1, 2, 3, 4, 5, 6], pages = await Promise.all(SEEDS.map((seed) => makePage(100 + seed)));
const lines = (text) => text.split('\n').filter(Boolean).sort();

// Views of all pages, by what formats know.
function* views(seed, by, count = 8, from = pages) {
  for (const { names, data } of from) {
    const r = new Random(seed++);
    for (let i = 0; i < count; i++) {
      const o = anyView(r, data, by);
      yield { data, o, view: model.makeView(data, o), args: argsOf(data, names, o) };
    }
  }
}

test('folded text is what convert writes', () => {
  for (const { view, args } of views(1, ['function', 'line', 'file', 'binary', 'thread']))
    assert.deepEqual(lines(model.folded(view)), lines(heapgauge('convert', '--to', 'folded', ...args)), args.join(' '));
});

test('CSV is what convert writes', () => {
  for (const { view, args } of views(2, ['function', 'line', 'file', 'binary'])) {
    const rows = (text) => lines(text).map((line) => view.diff && !view.oneProcess ? line.replace(/,t\d+ ?/, ',')
      : line).sort();
    if (view.diff)    // Which of several block sizes a row has, the order of samples decides.
      assert.deepEqual(rows(model.csv(view)).length > 0, true);
    else
      assert.deepEqual(rows(model.csv(view)), rows(heapgauge('convert', '--to', 'csv', ...args)), args.join(' '));
  }
});

// callgrind as a set of costs and calls, whatever the order and the numbers of names.
function callgrindFacts(text) {
  const names = { ob: new Map(), fl: new Map(), fn: new Map() },
    kinds = { ob: 'ob', fl: 'fl', fn: 'fn', cob: 'ob', cfi: 'fl', cfn: 'fn' };
  const at = {}, facts = [];
  let calls = '';
  for (const line of text.split('\n')) {
    const reference = /^(c?ob|fl|cfi|c?fn)=\((\d+)\)(?: (.*))?$/.exec(line);
    if (reference) {
      const [, key, id, name] = reference, of = names[kinds[key]];
      if (name !== undefined)
        of.set(id, name);
      assert.ok(of.has(id), `${line} names nothing`);
      at[key] = of.get(id);
    } else if (line.startsWith('calls=')) {
      calls = `${line} -> ${at.cob} ${at.cfi} ${at.cfn}: `;
    } else if (/^\d+ /.test(line)) {
      facts.push(`${at.ob} ${at.fl} ${at.fn}: ${calls}${line}`);
      calls = '';
    } else if (/^(events|summary):/.test(line)) {
      facts.push(line);
    }
  }
  return facts.map((fact) => fact.replace(/calls=(\d+) \d+/, 'calls=$1')).sort();
}

test('callgrind is what convert writes', async () => {
  // Of a function in several binaries one is named, any of them.
  const plain = await Promise.all([1, 2, 3].map((seed) => makePage(200 + seed, { binaries: 1 })));
  for (const { view, args } of views(3, ['function', 'line'], 12, plain))
    assert.deepEqual(callgrindFacts(model.callgrind(view, '')),
      callgrindFacts(heapgauge('convert', '--to', 'callgrind', ...args)),
      args.join(' '));
});

// speedscope as stacks with their weights.
function speedscopeFacts(text) {
  const { shared, profiles } = JSON.parse(text);
  return profiles.map(({ name, unit, samples, weights, endValue, startValue }) => ({
    name, unit, startValue, endValue,
    stacks: samples.map((frames, i) => JSON.stringify([frames.map((f) => Object.entries(shared.frames[f]).sort()),
      weights[i]])).sort(),
  }));
}

test('speedscope is what convert writes', () => {
  for (const { view, args } of views(4, ['function', 'line', 'file']))
    assert.deepEqual(speedscopeFacts(model.speedscope(view, 'x')),
      speedscopeFacts(heapgauge('convert', '--to', 'speedscope', ...args)),
      args.join(' '));
});

const withoutErrors = (text) => JSON.parse(text, (key, value) => ['low', 'high', 'p_value', 'significant', 'sources',
  'notes', 'samples',
  'total_before_filters', 'same_process', 'rows_significant', 'rows_noise', 'program'].includes(key) ? undefined
    : value);

test('pprof is read again with the same numbers', async () => {
  let i = 0;
  for (const { o, view, args, data } of views(5, ['function'], 4)) {
    const file = join(folder, `export-${i++}.pb.gz`);
    writeFileSync(file, await model.pprof(view));
    for (const metric of data.types.map(({ type }) => type)) {
      const more = ['--json', '-n', '0', '--metric', metric];
      const again = withoutErrors(heapgauge('top', ...AS_IT_IS, ...more, file));
      const [before, after] = [withoutErrors(heapgauge('top', ...args, ...more)), again].map(({ rows, ...rest }) =>
        ({ ...rest, rows: rows.map(told).sort((a, b) => a.name < b.name ? -1 : 1) }));
      // Without a sample of the base the file cannot say that it is a diff.
      if (o.base === null || again.diff)
        assert.deepEqual(after, before, `${metric} of ${args.join(' ')}`);
    }
  }
});

test('go tool pprof reads the export', async (t) => {
  if (spawnSync('go', ['version']).status !== 0)
    return t.skip('there is no go');
  for (const { view } of views(6, ['function'], 1)) {
    const file = join(folder, 'go.pb.gz');
    writeFileSync(file, await model.pprof(view));
    const { status, stdout, stderr } = spawnSync('go', ['tool', 'pprof', '-raw', file],
      { encoding: 'utf8', env: { ...process.env, PPROF_TMPDIR: folder } });
    assert.equal(status, 0, stderr);
    assert.match(stdout, new RegExp(`^Samples:\n.*${view.type}/${view.unit}`, 'm'));
  }
});

test('the command line prints what is shown', () => {
  for (const { data, o } of views(7, ['function', 'line', 'thread'])) {
    for (const thread of [null, 't0 main', 'io', '']) {
      const shown = model.makeView(data, { ...o, thread }),
        command = model.commandLine(data, { ...o, thread }, 'top', ['--json', '-n', '0']);
      const { status, stdout, stderr } = spawnSync('sh', ['-c', command.replace(/^heapgauge/, '"$HEAPGAUGE"')],
        { encoding: 'utf8' });
      assert.equal(status, 0, `${command}: ${stderr}`);
      const { total } = JSON.parse(stdout);
      assert.equal(total.new ?? total.value, shown.total.now, command);
    }
  }
});

test('words of the command line survive a shell', () => {
  for (const word of ['plain', 'it\'s', '$(id) `id` "x" \\ !', 'a\nb', '', '*?[a]~', '-n'])
    assert.equal(spawnSync('sh', ['-c', `printf '%s.' ${model.shellWord(word)}`], { encoding: 'utf8' }).stdout,
      `${word}.`);
});

test('Markdown keeps names inside their cells', () => {
  const [{ data }] = pages, view = model.makeView(data, { ...anyView(new Random(1), data), at: 0, base: null,
    by: 'function', focus: '', ignore: '', hide: '', show: '', showFrom: '' });
  view.entries = { ...view.entries, name: view.entries.name.map((_, i) =>
    `a|b \`${'`'.repeat(i % 3)} <script>\n${i}`) };
  const rows = model.markdown(view, 'flat', 5, 'heapgauge top').split('\n').filter((line) => line.startsWith('|'));
  assert.equal(rows.length, 7);
  for (const row of rows)
    assert.equal(row.replaceAll('\\|', '').split('|').length, 9, row);
});
