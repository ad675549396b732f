// Differences: what is new, gone, grown, shrunk and noise is told apart by colour, pattern, sign and word; the three
// widths; numbers as heapgauge diff has them. Of one process and of two; and a profile of Go.
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import {
  at,
  boxes,
  click,
  close,
  download,
  grid,
  open,
  pick,
  pixels,
  press,
  quiet,
  settled,
  shot,
  tab,
  testing,
  total,
} from './browser.mjs';
import { bytesText, growDump, has, heapgauge, pageOf, redisDumps, rowOf, top } from './profiles.mjs';
import { is, like, ok, part, skip } from './tap.mjs';

// Stacks whose fate is known. No rate: nothing is noise.
const FATES = { stays: [4000, 4000], grows: [1000, 6000], shrinks: [5000, 1000], comes: [0, 3000], goes: [7000, 0] };

function twoFiles() {
  for (const side of [0, 1])
    writeFileSync(
      ['a.folded', 'b.folded'][side],
      Object.entries(FATES)
        .filter(([, bytes]) => bytes[side])
        .map(([name, bytes]) => `main;${name} ${bytes[side]}\n`)
        .join(''),
    );
  return ['a.folded', 'b.folded'];
}

// The colour that a box is filled with, below its words; what part of that edge has it.
async function colourOf(page, box) {
  return page.evaluate(({ x, y }) => {
    const canvas = document.querySelector('[data-test=flame] canvas'),
      area = canvas.getBoundingClientRect(),
      ratio = canvas.width / area.width;
    const copy = Object.assign(document.createElement('canvas'), { width: canvas.width, height: canvas.height });
    const context = copy.getContext('2d', { willReadFrequently: true });
    context.drawImage(canvas, 0, 0);
    const { data } = context.getImageData((x - area.x + 4) * ratio, (y - area.y + 4) * ratio, 60, 3),
      counts = new Map();
    for (let i = 0; i < data.length; i += 4) {
      const colour = data.slice(i, i + 3).join();
      counts.set(colour, (counts.get(colour) ?? 0) + 1);
    }
    const [[most, often]] = [...counts].sort(([, a], [, b]) => b - a);
    return { colour: most.split(',').map(Number), part: often / (data.length / 4) };
  }, box);
}

const orange = ([red, , blue]) => red > blue + 20,
  blue = ([red, , blue]) => blue > red + 20;
const grey = ([red, green, blue]) => Math.max(red, green, blue) - Math.min(red, green, blue) <= 12;

// Widths of the boxes below main, in pixels from the left ends.
async function widths(page) {
  const area = await at(page, 'flame').boundingBox(),
    list = (await boxes(page, 'flame', 4)).filter(box => box.row === 2);
  return Object.fromEntries(list.map((box, i) => [box.title, (list[i + 1]?.x ?? area.x + area.width) - box.x]));
}

async function known() {
  const [a, b] = twoFiles(),
    page = await open(pageOf('known.html', '--base', a, b));
  is('a base begins with the flame graph', await at(page, 'tab-flame').getAttribute('aria-selected'), 'true');
  const list = Object.fromEntries((await boxes(page)).map(box => [box.title, box]));
  is(
    'what vanished has a box, as all others',
    Object.keys(list)
      .filter(name => name in FATES)
      .sort(),
    Object.keys(FATES).sort(),
  );
  const colours = {};
  for (const name of Object.keys(FATES)) colours[name] = await colourOf(page, list[name]);
  ok('grown and new are orange', orange(colours.grows.colour) && orange(colours.comes.colour), JSON.stringify(colours));
  ok('shrunk and gone are blue', blue(colours.shrinks.colour) && blue(colours.goes.colour), JSON.stringify(colours));
  ok('what stayed has no colour', grey(colours.stays.colour), JSON.stringify(colours));
  ok(
    'new and gone have a pattern, grown and shrunk have none',
    ['comes', 'goes'].every(name => colours[name].part < 0.75) &&
      ['grows', 'shrinks', 'stays'].every(name => colours[name].part > 0.9),
    JSON.stringify(colours),
  );
  like('the tip says gone', list.goes.lines.join('\n'), /gone: nothing is left/);
  like('the tip says new', list.comes.lines.join('\n'), /new: nothing in the base/);
  like('the tip has both sides', list.grows.lines.join('\n'), /\+4\.88 KiB[^]*1000 B → 5\.86 KiB/);
  const svg = (await download(page, 'export-svg')).bytes.toString();
  for (const [name, sign] of [
    ['grows', '\\+'],
    ['comes', '\\+'],
    ['shrinks', '−'],
    ['goes', '−'],
  ])
    like(`${name} is marked ${sign}`, svg, new RegExp(`<text[^>]*>${sign}[^<]*${name}`));
  ok('new and gone have patterns', svg.includes('url(#dots)') && svg.includes('url(#hatch)'));

  const expected = { max: ([x, y]) => Math.max(x, y), base: ([x]) => x, now: ([, y]) => y };
  for (const mode of ['max', 'base', 'now']) {
    await click(page, `width-${mode}`);
    const drawn = await widths(page),
      sum = Object.values(FATES).reduce((all, fate) => all + expected[mode](fate), 0);
    const area = await at(page, 'flame').boundingBox();
    ok(
      `width ${mode}: boxes are as wide as they should`,
      Object.entries(FATES).every(
        ([name, fate]) => Math.abs((drawn[name] ?? 0) - (expected[mode](fate) / sum) * area.width) < 9,
      ),
      JSON.stringify([drawn, area.width]),
    );
    await shot(page, `diff-${mode}`);
  }
  await tab(page, 'table');
  const rows = Object.fromEntries((await grid(page, 'table')).map(row => [row.name, row]));
  const status = { grows: 'grown', shrinks: 'shrunk', comes: 'new', goes: 'gone' };
  for (const [name, word] of Object.entries(status)) {
    like(`the table says ${word}`, rows[name].Change, new RegExp(word));
    is(
      `the table has the change of what is ${word}`,
      rows[name]['Δ flat'],
      (FATES[name][1] > FATES[name][0] ? '+' : '') + bytesText(FATES[name][1] - FATES[name][0]),
    );
  }
  await click(page, 'relative');
  const parts = Object.fromEntries((await grid(page, 'table')).map(row => [row.name, row['Δ flat']]));
  is('relative changes', [parts.grows, parts.shrinks], ['+500.0%', '-80.0%']);
  ok(
    'relative changes of what is new and gone are words',
    parts.comes === 'new' && parts.goes === 'gone',
    JSON.stringify(parts),
  );
  await press(page, 'd');
  await tab(page, 'flame');
  ok('without the base, what is gone is gone', !(await boxes(page)).some(box => box.title === 'goes'));
  quiet(page, 'known');
  await close(page);
}

async function redis(dumps) {
  const page = await open(pageOf('redis.html', ...dumps), { height: 2600 });
  await tab(page, 'table');
  await click(page, 'trim');
  for (const [base, now] of [
    [0, 3],
    [3, 1],
  ]) {
    await pick(page, 'at', String(now));
    await pick(page, 'base', String(base));
    const report = JSON.parse(heapgauge('diff', '--json', '-n', '0', dumps[base], dumps[now]));
    const rows = new Map((await grid(page, 'table')).map(row => [row.name, row])),
      name = `${base} to ${now}`;
    ok(
      `${name}: changes as diff has them`,
      report.rows.every(
        row => (rows.get(row.name)?.['Δ flat'] ?? '') === (row.flat.change > 0 ? '+' : '') + bytesText(row.flat.change),
      ),
      report.rows.map(row => `${row.name} ${row.flat.change} ${rows.get(row.name)?.['Δ flat']}`).join('\n'),
    );
    is(
      `${name}: noise as diff has it`,
      [...rows.values()]
        .filter(row => /noise/.test(row.Change))
        .map(row => row.name)
        .sort(),
      report.rows
        .filter(row => !row.significant)
        .map(row => row.name)
        .sort(),
    );
    ok(
      `${name}: rows of noise are grey`,
      [...rows.values()].every(row => /noise/.test(row.Change) === row.classes.includes('noise')),
    );
    ok(
      `${name}: the total`,
      (await total(page)).startsWith((report.total.change > 0 ? '+' : '') + bytesText(report.total.change)),
      await total(page),
    );
  }
  await tab(page, 'flame');
  const noisy = (await boxes(page)).filter(box => /noise/.test(box.lines.join()));
  if (noisy.length > 0) {
    const wide = noisy.filter((box, i, all) => all[i + 1]?.row !== box.row || all[i + 1].x - box.x > 40);
    const drawn = await Promise.all(wide.slice(0, 3).map(box => colourOf(page, box)));
    ok(
      'noise is grey in the picture',
      drawn.length === 0 || drawn.some(({ colour }) => grey(colour)),
      JSON.stringify(drawn),
    );
  }
  const before = await pixels(page);
  await press(page, 'd');
  await settled(page);
  ok('d: another picture', (await pixels(page)).sum !== before.sum);
  await press(page, 'd');
  is('d: and the same again', (await pixels(page)).sum, before.sum);
  quiet(page, 'redis');
  await close(page);
}

// Two processes, exact: what each has more than the other.
async function twoProcesses() {
  const [a, b] = [growDump('first', 400, 300), growDump('second', 100, 900)];
  const page = await open(pageOf('two.html', '--base', a, b));
  await tab(page, 'table');
  const rows = new Map((await grid(page, 'table')).map(row => [row.name, row['Δ flat']]));
  is('two processes: stay_here', rows.get('stay_here'), bytesText(-300 * 1024));
  is('two processes: grow_here', rows.get('grow_here'), `+${bytesText(600 * 3072)}`);
  quiet(page, 'two processes');
  await close(page);
}

// Go's own heap profile: four metrics, each with its numbers.
async function ofGo() {
  writeFileSync(
    'main.go',
    `package main

import (
	"os"
	"runtime"
	"runtime/pprof"
)

var kept [][]byte

//go:noinline
func keep() {
	for i := 0; i < 3000; i++ {
		kept = append(kept, make([]byte, 4096))
	}
}

//go:noinline
func drop() {
	for i := 0; i < 3000; i++ {
		kept[0] = make([]byte, 8192)
	}
}

func main() {
	keep()
	drop()
	runtime.GC()
	pprof.Lookup("heap").WriteTo(os.Stdout, 0)
}
`,
  );
  const made = spawnSync('go', ['run', 'main.go'], { timeout: 100_000, maxBuffer: 1 << 24 });
  if (made.status !== 0) {
    skip('Go', `go cannot build a program here: ${String(made.stderr).split('\n')[0]}`);
    return;
  }
  writeFileSync('go.pb.gz', made.stdout);
  const page = await open(pageOf('go.html', 'go.pb.gz'));
  await tab(page, 'table');
  for (const metric of ['inuse_space', 'alloc_space', 'inuse_objects', 'alloc_objects']) {
    await click(page, `metric-${metric}`);
    const report = top('--metric', metric, 'go.pb.gz');
    const rows = await grid(page, 'table');
    is(`Go, ${metric}: names`, rows.map(row => row.name).sort(), report.rows.map(row => row.name).sort());
    if (metric.endsWith('space'))
      for (const name of ['main.keep', 'main.drop'])
        is(
          `Go, ${metric}: ${name}`,
          rows.find(row => row.name === name)?.Flat,
          report.rows.some(row => row.name === name) ? bytesText(rowOf(report, name).flat.value) : undefined,
        );
  }
  ok(
    'Go: what was dropped was allocated',
    top('--metric', 'alloc_space', 'go.pb.gz').rows.some(row => row.name === 'main.drop'),
  );
  quiet(page, 'Go');
  await close(page);
}

await testing(async () => {
  await part('known', known);
  await part('two processes', twoProcesses);
  if (has('go')) await part('Go', ofGo);
  else skip('Go', 'go is not installed');
  if (has('redis-server') && has('redis-cli')) await part('redis', async () => redis(await redisDumps('redis')));
  else skip('redis', 'redis-server and redis-cli are not installed');
});
