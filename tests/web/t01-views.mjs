// Every view shows what is in the profile: the numbers are those of the command line, the pictures are not blank, and
// what is picked in one view is picked in all.
import { readFileSync } from 'node:fs';
import {
  at,
  boxes,
  click,
  close,
  grid,
  hash,
  open,
  pick,
  pixels,
  quiet,
  selectedName,
  settled,
  tab,
  testing,
  tipAt,
  total,
} from './browser.mjs';
import { growDump, has, heapgauge, leakyDumps, pageOf, redisDumps, rowOf, serve, SOURCE, top } from './profiles.mjs';
import { is, like, note, ok, part, skip } from './tap.mjs';

// The rows of top as it prints them, in its words: name -> cells. Its columns end where their titles do.
function printed(...args) {
  const lines = heapgauge('top', '-n', '0', ...args).split('\n');
  const head = lines.findIndex(line => /^ +flat /.test(line)),
    rows = new Map();
  const ends = [...lines[head].matchAll(/\S+/g)].map(title => title.index + title[0].length).slice(0, -1);
  for (const line of lines.slice(head + 1)) {
    const cells = ends.map((end, i) => line.slice(i ? ends[i - 1] : 0, end).trim());
    const [flat, error, flatPercent, , cum, cumError, cumPercent] = cells;
    if (flat !== '')
      rows.set(
        line
          .slice(ends.at(-1))
          .trim()
          .replace(/ \(inline\)$/, ''),
        { flat, error, flatPercent, cum, cumError, cumPercent },
      );
  }
  return { rows, total: /^Total: +(.*?)(;|$)/m.exec(lines.join('\n'))[1] };
}

// All rows of the table equal all that top prints, by name.
async function tableIs(page, name, ...args) {
  const wanted = printed(...args),
    rows = await grid(page, 'table'),
    got = new Map();
  for (const row of rows) {
    const [flat, flatPercent, error, cum, cumPercent, cumError] = row.cells;
    got.set(row.name, { flat, error, flatPercent, cum, cumError, cumPercent });
  }
  ok(`${name}: has rows`, got.size > 2, `${got.size} rows`);
  is(`${name}: the same names in the table`, [...got.keys()].sort(), [...wanted.rows.keys()].sort());
  is(`${name}: the same words in all cells`, [...got].sort(), [...wanted.rows].sort());
  is(`${name}: the same total`, await total(page), wanted.total);
}

async function tables(dump) {
  const page = await open(pageOf('one.html', dump), { height: 2600 });
  await tab(page, 'table');
  await click(page, 'trim');
  await tableIs(page, 'by function', '--metric', 'inuse_space', dump);
  const report = top(dump),
    first = report.rows[0];
  const rows = await grid(page, 'table');
  is('the biggest is the first', rows[0].name, first.name);
  for (const by of ['file', 'binary', 'thread']) {
    await pick(page, 'by', by);
    const got = (await grid(page, 'table')).map(row => [row.name, row.cells[0]]);
    const want = printed('--by', by, dump);
    is(
      `by ${by}`,
      got.map(([name, cell]) => `${name} ${cell}`).sort(),
      [...want.rows].map(([name, cells]) => `${name} ${cells.flat}`).sort(),
    );
  }
  await pick(page, 'by', 'function');
  await click(page, 'metric-inuse_objects');
  await tableIs(page, 'objects', '--metric', 'inuse_objects', dump);
  quiet(page, 'tables');
  await close(page);
}

async function pictures(dump) {
  const page = await open(pageOf('picture.html', dump));
  is('one snapshot begins with the flame graph', await at(page, 'tab-flame').getAttribute('aria-selected'), 'true');
  const whole = await pixels(page);
  ok('the flame graph is drawn', whole.colours > 20 && whole.back < 0.9, JSON.stringify(whole));
  const seen = await boxes(page),
    report = top(dump);
  const all = seen.find(box => box.title === 'all');
  ok(
    'its first row is everything',
    all && seen[0] === all && all.lines[0].includes('100.0%'),
    JSON.stringify(seen.slice(0, 2)),
  );
  const words = printed(dump).rows;
  const main = seen.find(box => box.title === 'main');
  ok('main has a box', main, seen.map(box => box.title).join(' '));
  is('the tip of main tells what top tells', main.lines[0].split(/ {2,}| (?=±)/)[0], words.get('main').cum);

  await page.mouse.click(main.x, main.y);
  await settled(page);
  is('a click selects', await selectedName(page), 'main');
  is(
    'the details are those of top',
    (await at(page, 'details-cum').innerText()).split(/ (?=±|\d+\.\d%)/)[0].trim(),
    words.get('main').cum,
  );
  const after = await pixels(page);
  ok('what is selected is outlined', after.sum !== whole.sum);

  const deep = seen.findLast(box => box.row > 2 && rowOf(report, box.title));
  await page.mouse.dblclick(deep.x, deep.y);
  await settled(page);
  const box = await at(page, 'flame').boundingBox();
  const zoomed = await boxes(page),
    own = zoomed.filter(other => other.title === deep.title && other.lines[0] === deep.lines[0]);
  const right = own[0] && (await tipAt(page, box.x + box.width - 6, own[0].y));
  ok(
    'a double click zooms to the whole width',
    own.length === 1 && own[0].x < box.x + 12 && right?.title === deep.title,
    JSON.stringify([deep, own, right]),
  );
  ok('zoom is in the address', hash(page).get('zoom'));
  await click(page, 'zoom-whole');
  is('and back', hash(page).get('zoom'), null);
  await click(page, 'upright');
  ok('upright is another picture', (await pixels(page)).sum !== after.sum);
  await click(page, 'inverted');
  const roots = (await boxes(page)).filter(other => other.row >= 0).map(other => other.title);
  ok('inverted begins with what allocates', roots.includes(top(dump).rows[0].name), roots.join(' '));
  quiet(page, 'pictures');
  await close(page);
}

// The biggest stack as the command prints it, leaf first.
function biggestStack(dump) {
  return JSON.parse(heapgauge('traces', '--json', '-n', '1', dump)).stacks[0].frames.map(frame => frame.name);
}

async function sandwichAndTraces(dump) {
  const page = await open(pageOf('pair.html', dump));
  await tab(page, 'table');
  await click(page, 'trim');
  const report = top('--sort', 'cum', dump);
  const name =
    report.rows.find(
      row => row.flat.value === 0 && row.name !== 'main' && !row.name.startsWith('_') && !row.name.includes('!'),
    )?.name ?? 'main';
  note(`looking at ${name}`);
  await page
    .locator('[data-test=table] tbody tr[data-row]', { has: page.locator(`.name:text-is("${name}")`) })
    .first()
    .click();
  is('a row of the table is picked', await selectedName(page), name);
  await tab(page, 'sandwich');
  is('the sandwich is of it', await at(page, 'sandwich-entry').innerText(), name);
  for (const side of ['callers', 'callees']) {
    const drawn = await pixels(page, side);
    ok(`${side} are drawn`, drawn.colours > 3, JSON.stringify(drawn));
  }
  await click(page, 'sandwich-tables');
  const peek = heapgauge('peek', `^${name}$`, dump);
  for (const side of ['callers', 'callees']) {
    const rows = await grid(page, side);
    ok(`there are ${side}`, rows.length > 0);
    for (const row of rows.slice(0, 3))
      ok(
        `${side}: peek has ${row.cells[0]} for ${row.name}`,
        peek.split('\n').some(line => line.includes(row.cells[0]) && line.includes(row.name)),
        peek,
      );
  }
  await tab(page, 'traces');
  const first = await page.locator('[data-test=trace]').first().locator('li .name').allInnerTexts();
  ok('traces: it has frames', first.length > 3);
  is('traces: the biggest stack', first, biggestStack(dump).slice(0, first.length));
  const deep = JSON.parse(heapgauge('traces', '--json', '-n', '1', dump)).stacks[0].frames.length - first.length;
  const more = await page.locator('[data-test=trace]').first().locator('li').last().innerText();
  ok('traces: frames that are left out are told of', deep === 0 || more === `… and ${deep} frames more`, more);
  await page
    .locator('[data-test=trace]')
    .first()
    .click({ position: { x: 300, y: 10 } });
  await settled(page);
  is('a trace that is clicked is picked', await selectedName(page), first[0]);
  ok('with its stack', hash(page).get('stack'));
  await tab(page, 'table');
  is('the table shows what was picked', (await grid(page, 'table')).find(row => row.selected)?.name, first[0]);
  await tab(page, 'about');
  like('about names the dump', await at(page, 'about').innerText(), /redis[.\d]+\w+\.heap/);
  quiet(page, 'sandwich, traces, about');
  await close(page);
}

async function growth(dumps) {
  const page = await open(pageOf('growth.html', ...dumps));
  is('several snapshots begin with growth', await at(page, 'tab-growth').getAttribute('aria-selected'), 'true');
  await click(page, 'rank-function');
  await click(page, 'trim');
  const diff = JSON.parse(heapgauge('diff', '--json', '-n', '0', dumps[0], dumps.at(-1)));
  const grown = diff.rows.filter(row => row.significant).sort((a, b) => b.flat.change - a.flat.change);
  const rows = await grid(page, 'growth');
  note(`${rows[0].name} ${rows[0].Growth} ${rows[0]['±']}`);
  is('what grew most is the first', rows[0].name, grown[0].name);
  ok('by a plus', rows[0].Growth.startsWith('+'));
  ok(
    'every row has its line over time',
    (await page.locator('[data-test=growth] tbody tr[data-row] svg.spark polyline').count()) > 0,
  );
  await click(page, 'rank-cum');
  ok(
    'cum ranks callers, too',
    (await grid(page, 'growth')).some(row => row.name === 'main'),
  );
  await click(page, 'rank-stack');
  const stacks = await grid(page, 'growth');
  like('by stack: frames from the leaf', stacks[0].cells.at(-1), / ← /);

  // The timeline.
  const over = page.locator('[data-test=timeline] .u-over'),
    area = await over.boundingBox();
  await over.click({ position: { x: 3, y: area.height / 2 } });
  await settled(page);
  is('a click in the timeline shows that snapshot', await at(page, 'at').inputValue(), '0');
  await over.click({ position: { x: area.width - 3, y: area.height / 2 }, modifiers: ['Shift'] });
  await settled(page);
  is('with Shift it is the base', await at(page, 'base').inputValue(), String(dumps.length - 1));
  await pick(page, 'base', 'none');
  await tab(page, 'table');
  for (const index of [0, 2]) {
    await pick(page, 'at', String(index));
    await tableIs(page, `snapshot ${index + 1}`, dumps[index]);
  }
  quiet(page, 'growth and timeline');
  await close(page);
}

async function sourceText(dump) {
  const { child, url } = await serve(dump);
  const page = await open(url);
  await tab(page, 'table');
  await page.locator('[data-test=table] .name:text("grow_here")').first().click();
  await tab(page, 'lines');
  await at(page, 'source').waitFor();
  const file = readFileSync(`${SOURCE}/tests/cli/grow.c`, 'utf8').split('\n');
  const rows = await page
    .locator('[data-test=source] tbody tr')
    .evaluateAll(list => list.map(row => [...row.cells].map(cell => cell.textContent)));
  ok(
    'the text is that of the file',
    rows.length > 10 &&
      rows.every(
        ([, , number, text]) => text.trimEnd() === (file[number - 1] ?? '').replaceAll('\t', '    ').trimEnd(),
      ),
    JSON.stringify(rows.slice(0, 5)),
  );
  const lines = top('--by', 'line', dump).rows.filter(row => row.name === 'grow_here');
  const hot = rows.filter(([flat]) => flat !== '');
  is(
    'figures beside the lines of top',
    hot.map(([, , number]) => Number(number)).sort(),
    lines.map(row => row.line).sort(),
  );
  is(
    'and the figures are its figures',
    hot.map(([flat, cum]) => [flat, cum]),
    [['4.39 MiB', '4.39 MiB']],
  ); // 1500 x 3072 bytes
  quiet(page, 'source');
  await close(page);
  child.kill('SIGTERM');
  await child.ended;
}

async function threads() {
  const dumps = leakyDumps('leaky');
  const page = await open(pageOf('threads.html', dumps.at(-1)));
  await tab(page, 'table');
  await pick(page, 'by', 'thread');
  const rows = await grid(page, 'table');
  is(
    'threads by name',
    rows.map(row => `${row.name} ${row.cells[0]}`).sort(),
    [...printed('--by', 'thread', dumps.at(-1)).rows].map(([name, row]) => `${name} ${row.flat}`).sort(),
  );
  ok('there are several', rows.length >= 4);
  await pick(page, 'by', 'line');
  await click(page, 'trim');
  const line = (await grid(page, 'table')).find(row => row.name === 'item_new');
  like('lines have their place', line?.cells.at(-1) ?? '', /item_new leaky\.c:\d+ \(inline\)/);
  quiet(page, 'threads');
  await close(page);
}

await testing(async () => {
  if (has('redis-server') && has('redis-cli')) {
    const dumps = await redisDumps('redis');
    await part('tables', () => tables(dumps.at(-2)));
    await part('pictures', () => pictures(dumps.at(-2)));
    await part('sandwich and traces', () => sandwichAndTraces(dumps.at(-2)));
    await part('growth', () => growth(dumps));
  } else {
    skip('redis', 'redis-server and redis-cli are not installed');
  }
  await part('source', () => sourceText(growDump('grow', 100, 1500)));
  await part('threads', threads);
});
