// What the tests of the model share: the program and the model under test, generated profiles and the pages on them.
//
// In the environment: HEAPGAUGE, the program; HEAPGAUGE_MODEL, the module that build.mjs --model writes; WORLDS, how
// many profiles.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after } from 'node:test';
import { pathToFileURL } from 'node:url';
import { PLAIN } from './encode.mjs';
import { makeWorld, writePprof } from './profiles.mjs';

const { HEAPGAUGE = 'heapgauge', HEAPGAUGE_MODEL } = process.env;
if (!HEAPGAUGE_MODEL)
  throw new Error('HEAPGAUGE_MODEL names no module');

export const model = await import(pathToFileURL(HEAPGAUGE_MODEL));
export const folder = mkdtempSync(join(tmpdir(), 'web-model-'));
after(() => rmSync(folder, { recursive: true }));

export function heapgauge(...args) {
  return execFileSync(HEAPGAUGE, args, {
    encoding: 'utf8', maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, HEAPGAUGE_CACHE: 'off' },
  });
}

export const AS_IT_IS = ['--symbols', 'none', '--demangle', 'none'];

// The data of the page that the program writes.
export async function pageData(name, ...args) {
  const page = join(folder, name);
  heapgauge('flame', ...AS_IT_IS, '-o', page, ...args);
  const [, block] = /<script id="heapgauge-data" type="application\/octet-stream">([^<]*)</.exec(readFileSync(page,
    'utf8'));
  return model.decodeBlock(model.fromBase64(block));
}

// A generated world as files, and the page on all of them.
export async function makePage(seed, options) {
  const world = makeWorld(seed, options), names = world.snapshots.map((snapshot, i) => {
    const name = join(folder, `${seed}-${i}.pb`);
    writeFileSync(name, writePprof(world, snapshot));
    return name;
  });
  const data = await pageData(`${seed}.html`, ...names);
  return { world, names: data.snapshots.map(({ name }) => name), data };
}

const EXPRESSIONS = [
  'parse', 'libgl', '^main$', '[[:digit:]]$', 'src/|lib/', 'Tree|cache', '!0x', 'no source', 'nothing at all',
  'std::vec.*back', 'push_?back',
];
const FILTERS = [['focus', '--focus'], ['ignore', '--ignore'], ['hide', '--hide'], ['show', '--show'],
  ['showFrom', '--show-from']];

// Any view of a page.
export function anyView(r, data, by = ['function', 'line', 'file', 'binary', 'thread']) {
  const o = { ...PLAIN, column: r.below(data.types.length), by: r.of(by), at: r.below(data.snapshots.length) };
  if (r.chance(60))
    o.base = r.below(data.snapshots.length);
  if (o.base === o.at)
    o.base = null;
  for (const [key] of FILTERS)
    if (r.chance(22))
      o[key] = r.of(EXPRESSIONS);
  return o;
}

// The same view as the command line's options, and the profiles.
export function argsOf(data, names, o) {
  const args = ['--by', o.by, '--metric', data.types[o.column].type, ...AS_IT_IS];
  for (const [key, option] of FILTERS)
    if (o[key])
      args.push(option, o[key]);
  return [...args, ...o.base === null ? [] : ['--base', names[o.base]], names[o.at]];
}

// --- numbers as src/report/json.c writes them ---

export function whole(x) {
  const floor = Math.floor(x), part = x - floor;
  return (part > 0.5 || (part === 0.5 && floor % 2 !== 0) ? floor + 1 : floor) + 0;
}

export const digits = (x) => x < 1e-300 ? 0 : Number(x.toPrecision(6));

export function amountJson(view, a) {
  const { low, high } = model.intervalOfAmount(a), bounds = view.hasError ? { low: whole(low), high: whole(high) }
    : { low: null, high: null };
  return view.diff ? { base: a.base, new: a.now, change: a.now - a.base, ...bounds } : { value: a.now, ...bounds };
}

export const amountAtJson = (view, amounts, i) => amountJson(view, model.amountAt(amounts, i));

export function entryJson({ entries }, i) {
  const row = { name: entries.name[i] };
  if (entries.file[i])
    row.file = entries.file[i];
  if (entries.line[i])
    row.line = entries.line[i];
  return row;
}

// Of several binaries with one function any may be named, whether all calls are inlined depends on the other snapshots
// of the block, and addresses are not in it.
export function told({ binary, address, inlined, ...row }) {
  return row;
}
