// Each thing in the list of exports is made and read by a program that is not the page: the numbers are those that are
// shown.
import { execFileSync, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import {
  click,
  close,
  copied,
  download,
  fill,
  grid,
  hash,
  open,
  pick,
  press,
  quiet,
  tab,
  testing,
} from './browser.mjs';
import { bytesText, has, heapgauge, leakyDumps, pageOf, redisDumps, shell, top } from './profiles.mjs';
import { is, like, note, ok, part, skip } from './tap.mjs';

const near = (got, wanted, slack = 0.5) => Math.abs(got - wanted) <= slack;

// What two reports of top have in common when they are of the same stacks: names and estimates to the byte. pprof holds
// whole numbers, so a sum of many may be off by some.
function same(name, got, wanted, slack = 0) {
  const cells = report => report.rows.map(row => [row.name, row.flat.value ?? 0, row.cum.value ?? 0]).sort();
  const [a, b] = [cells(got), cells(wanted)];
  if (slack === 0) return is(name, a, b);
  return ok(
    name,
    a.length === b.length &&
      a.every(([title, flat, cum], i) => title === b[i][0] && near(flat, b[i][1], slack) && near(cum, b[i][2], slack)),
    a
      .filter(
        ([title, flat, cum], i) =>
          !b[i] || title !== b[i][0] || !near(flat, b[i][1], slack) || !near(cum, b[i][2], slack),
      )
      .slice(0, 5)
      .join('\n'),
  );
}

// CSV as its rules have it.
function csvRows(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\n]*))(,|\n|$)/g)) {
    rows.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === '\n') rows.push([]);
    if (end === '') break;
  }
  return rows.filter(row => row.length > 1);
}

// callgrind: each line of costs that is no call's.
function callgrindSum(text) {
  let sum = 0,
    call = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('calls=')) call = true;
    else if (/^[+*-]?\d/.test(line)) {
      if (!call) sum += Number(line.split(' ')[1]);
      call = false;
    }
  }
  return sum;
}

async function files(page, name, report, ...args) {
  const total = report.total.value;
  const get = async kind => {
    const file = await download(page, `export-${kind}`);
    writeFileSync(`${name}.${kind}`, file.bytes);
    ok(
      `${name}: ${kind} has a name and content`,
      /\.\w/.test(file.name) && file.bytes.length > 100,
      `${file.name}: ${file.bytes.length} bytes`,
    );
    return file.bytes.toString('utf8');
  };
  await get('pprof');
  const back = top(`${name}.pprof`);
  ok(`${name}: pprof: total`, near(back.total.value, total, report.rows_total + 50), `${back.total.value} ${total}`);
  same(`${name}: pprof: all rows`, back, report, 200);
  if (has('go')) {
    const made = spawnSync(
      'go',
      ['tool', 'pprof', '-top', '-unit=B', '-nodecount=100000', '-nodefraction=0', `${name}.pprof`],
      { encoding: 'utf8', timeout: 60_000 },
    );
    const shown = Number(/accounting for (\d+)B, /.exec(made.stdout)?.[1] ?? NaN);
    ok(
      `${name}: go tool pprof: total`,
      near(shown, total, total / 1000 + 500),
      made.stdout.slice(0, 600) + made.stderr,
    );
    const first = report.rows[0];
    like(
      `${name}: go tool pprof: the first row`,
      made.stdout,
      new RegExp(`^ *\\d+B .* ${first.name.replace(/\W/g, '\\$&')}( \\(inline\\))?$`, 'm'),
    );
  } else {
    skip(`${name}: go tool pprof`, 'go is not installed');
  }
  const folded = await get('folded');
  ok(
    `${name}: folded: sum`,
    near(
      folded
        .trim()
        .split('\n')
        .reduce((sum, line) => sum + Number(/ (-?\d+)$/.exec(line)[1]), 0),
      total,
      300,
    ),
  );
  same(`${name}: folded: read back`, top(`${name}.folded`), report, 200);
  const scope = JSON.parse(await get('speedscope'));
  const [profile] = scope.profiles;
  ok(
    `${name}: speedscope: sum`,
    near(
      profile.weights.reduce((sum, weight) => sum + weight, 0),
      total,
      1,
    ) && near(profile.endValue, total, 1),
  );
  ok(
    `${name}: speedscope: frames exist`,
    profile.samples.every(stack => stack.every(frame => scope.shared.frames[frame]?.name !== undefined)),
  );
  const callgrind = await get('callgrind');
  ok(`${name}: callgrind: sum`, near(callgrindSum(callgrind), total, 300), `${callgrindSum(callgrind)} ${total}`);
  if (has('callgrind_annotate'))
    like(
      `${name}: callgrind_annotate reads it`,
      execFileSync('callgrind_annotate', [`${name}.callgrind`], { encoding: 'utf8' }),
      /PROGRAM TOTALS/,
    );
  const [head, ...rows] = csvRows(await get('csv'));
  is(`${name}: csv: columns`, head.at(-1), 'stack');
  ok(
    `${name}: csv: sum`,
    near(
      rows.reduce((sum, row) => sum + Number(row[0]), 0),
      total,
      rows.length,
    ),
    `${rows.length} rows`,
  );
  ok(
    `${name}: csv: as many columns everywhere`,
    rows.every(row => row.length === head.length),
  );
  const markdown = await get('markdown');
  const table = markdown.split('\n').filter(line => line.startsWith('| '));
  const text = heapgauge('top', '-n', '1', ...args);
  ok(
    `${name}: markdown: the first row is that of top`,
    table[1].includes(report.rows[0].name) && text.includes(table[1].split('|')[1].trim()),
    `${table[1]}\n${text}`,
  );
  const picture = await get('svg');
  writeFileSync(`${name}.svg`, picture);
  const svg = spawnSync(
    'python3',
    [
      '-c',
      'import sys, xml.etree.ElementTree as e; r = e.parse(sys.argv[1]).getroot(); ' +
        'n = lambda t: sum(x.tag.endswith(t) for x in r.iter()); print(r.tag, n("}rect"), n("}script"))',
      `${name}.svg`,
    ],
    { encoding: 'utf8' },
  );
  const [tag, boxes, scripts] = svg.stdout.split(' ');
  ok(
    `${name}: svg: XML with boxes and no script`,
    tag === '{http://www.w3.org/2000/svg}svg' && boxes > 5 && Number(scripts) === 0,
    svg.stdout + svg.stderr,
  );
}

// The command that the page says, run by a shell: it tells what the table shows, and what is wanted.
async function command(page, name, wanted) {
  await click(page, 'export');
  const text = await copied(page, () => click(page, 'copy-command'));
  note(text);
  const made = shell(`${text} -n 0 --json`);
  if (
    !is(`${name}: the command runs`, [made.status, made.err.replace(/^heapgauge: (note|warning).*\n/gm, '')], [0, ''])
  )
    return;
  const report = JSON.parse(made.out);
  if (report.unit === 'bytes') {
    const cells = report.diff
      ? ({ name, flat, cum }) => [
          name,
          bytesText(flat.new),
          changeText(flat.change),
          bytesText(cum.new),
          changeText(cum.change),
        ]
      : ({ name, flat, cum }) => [name, bytesText(flat.value), bytesText(cum.value)];
    const rows = await grid(page, 'table');
    is(
      `${name}: the table shows the same`,
      // The command leaves out what did not change.
      rows
        .filter(row => row['Δ flat'] !== '0 B' || row['Δ cum'] !== '0 B')
        .map(row =>
          report.diff ? [row.name, row.Flat, row['Δ flat'], row.Cum, row['Δ cum']] : [row.name, row.Flat, row.Cum],
        )
        .sort(),
      report.rows.map(cells).sort(),
    );
  }
  if (wanted) same(`${name}: the command tells the same numbers`, report, wanted);
}

const changeText = change => (change > 0 ? '+' : '') + bytesText(change);

async function one(dump) {
  const page = await open(pageOf('export.html', dump));
  await part('whole', () => files(page, 'whole', top(dump), dump));
  await part('copies', async () => {
    await click(page, 'export');
    const markdown = await copied(page, () => click(page, 'copy-markdown'));
    like('the table is copied as Markdown', markdown, /^\| flat \|/m);
    await click(page, 'export');
    const link = await copied(page, () => click(page, 'copy-link'));
    is('the link is copied', link.replace(/#.*/, ''), page.url().replace(/#.*/, ''));
  });
  await fill(page, 'focus', 'debugCommand');
  await fill(page, 'hide', '^z(m|c)alloc');
  await part('filtered', () =>
    files(
      page,
      'filtered',
      top('--focus', 'debugCommand', '--hide', '^z(m|c)alloc', dump),
      '--focus',
      'debugCommand',
      '--hide',
      '^z(m|c)alloc',
      dump,
    ),
  );
  quiet(page, 'exports');
  await close(page);
}

async function commands(dumps) {
  const page = await open(pageOf('commands.html', ...dumps), { height: 2600 });
  await tab(page, 'table');
  await click(page, 'trim');
  const last = dumps.at(-1);
  await command(page, 'the last snapshot', top(last));
  await pick(page, 'at', '1');
  await fill(page, 'focus', 'dict|it\'s $HOME "x"');
  await fill(page, 'ignore', '^createClient');
  await command(
    page,
    'quotes in filters',
    top('--focus', 'dict|it\'s $HOME "x"', '--ignore', '^createClient', dumps[1]),
  );
  await click(page, 'clear');
  await pick(page, 'by', 'line');
  await click(page, 'metric-inuse_objects');
  await command(page, 'objects by line', top('--by', 'line', '--metric', 'inuse_objects', dumps[1]));
  await pick(page, 'by', 'function');
  await click(page, 'metric-inuse_space');
  await pick(
    page,
    'binary',
    await page.locator('[data-test=binary] option', { hasText: 'libcrypto' }).getAttribute('value'),
  );
  await command(page, 'one binary', top('--focus', 'libcrypto', dumps[1]));
  await click(page, 'clear');
  await pick(page, 'at', '3');
  await pick(page, 'base', '1');
  await command(page, 'a diff', null);
  await press(page, '2');
  const before = hash(page).toString();
  await click(page, 'export');
  const text = await copied(page, () => click(page, 'copy-command'));
  const made = shell(`${text} && head -c 15 ./*.html | tail -n 1`);
  ok(
    'the flame graph: the command writes one',
    made.status === 0 && /<!doctype html/i.test(made.out),
    `${text}\n${made.err}`,
  );
  is('copying changes nothing', hash(page).toString(), before);
  quiet(page, 'commands');
  await close(page);
}

async function threads() {
  const dump = leakyDumps('leaky').at(-2),
    thread = top('--by', 'thread', dump).rows.find(row => row.name.includes('shop')).name;
  const page = await open(pageOf('threads.html', dump));
  await tab(page, 'table');
  await click(page, 'trim');
  await pick(page, 'thread', `=${thread}`);
  await command(page, 'one thread', top('--tagfocus', `thread=^${thread}$`, dump));
  const [head, ...rows] = csvRows((await download(page, 'export-csv')).bytes.toString());
  is('csv: only that thread', [...new Set(rows.map(row => row[head.indexOf('thread')]))], [thread]);
  quiet(page, 'threads');
  await close(page);
}

async function diff(dumps) {
  const page = await open(pageOf('diff.html', '--base', dumps[0], dumps.at(-1)));
  const { bytes, name } = await download(page, 'export-pprof');
  writeFileSync('diff.pb.gz', bytes);
  like('a diff is called so', name, /diff/);
  const wanted = JSON.parse(heapgauge('diff', '--json', '-n', '0', dumps[0], dumps.at(-1)));
  if (has('go')) {
    const made = spawnSync(
      'go',
      ['tool', 'pprof', '-top', '-unit=B', '-nodecount=100000', '-nodefraction=0', 'diff.pb.gz'],
      { encoding: 'utf8', timeout: 60_000 },
    );
    const shown = new Map(
      [...made.stdout.matchAll(/^ *(-?\d+)B? .*%  (.*?)(?: \(inline\))?$/gm)].map(([, flat, title]) => [
        title,
        Number(flat),
      ]),
    );
    const big = wanted.rows.filter(row => row.significant).slice(0, 3);
    ok(
      'a diff: go tool pprof has the changes',
      big.length > 0 && big.every(row => near(shown.get(row.name), row.flat.change, 500)),
      big.map(row => `${row.name} ${row.flat.change} ${shown.get(row.name)}\n`).join('') + made.stderr + made.stdout,
    );
  } else {
    skip('a diff: go tool pprof', 'go is not installed');
  }
  const folded = (await download(page, 'export-folded')).bytes
    .toString()
    .trim()
    .split('\n')
    .map(line => / (\d+) (\d+)$/.exec(line).slice(1).map(Number));
  ok(
    'a diff: folded has both sides',
    near(
      folded.reduce((sum, [before]) => sum + before, 0),
      wanted.total.base,
      300,
    ) &&
      near(
        folded.reduce((sum, [, now]) => sum + now, 0),
        wanted.total.new,
        300,
      ),
  );
  const [head, ...rows] = csvRows((await download(page, 'export-csv')).bytes.toString());
  ok(
    'a diff: csv has the change',
    near(
      rows.reduce((sum, row) => sum + Number(row[head.indexOf('change')]), 0),
      wanted.total.change,
      rows.length * 2,
    ),
  );
  quiet(page, 'diff');
  await close(page);
}

await testing(async () => {
  if (has('redis-server') && has('redis-cli')) {
    const dumps = await redisDumps('redis');
    await part('one profile', () => one(dumps.at(-2)));
    await part('commands', () => commands(dumps));
    await part('diff', () => diff(dumps));
  } else {
    skip('redis', 'redis-server and redis-cli are not installed');
  }
  await part('threads', threads);
});
