// heapgauge view: what it serves is what a file has, it follows files and processes, and the page says when nobody
// answers.
import { copyFileSync, renameSync, writeFileSync } from 'node:fs';
import {
  at,
  boxes,
  click,
  close,
  everything,
  fill,
  grid,
  hash,
  open,
  quiet,
  settled,
  tab,
  testing,
  total,
} from './browser.mjs';
import {
  bytesText,
  GROW_JEMALLOC,
  growDump,
  has,
  leakyDumps,
  pageOf,
  redisDumps,
  rowOf,
  said,
  serve,
  start,
  top,
  until,
} from './profiles.mjs';
import { is, like, ok, part, skip } from './tap.mjs';

async function end(child) {
  child.kill('SIGTERM');
  return child.ended;
}

async function sameAsFile(dumps) {
  const { child, url } = await serve(...dumps),
    file = await open(pageOf('file.html', ...dumps)),
    page = await open(url);
  for (const view of ['growth', 'flame', 'table', 'traces', 'about']) {
    await tab(page, view);
    await tab(file, view);
    is(`${view}: served as in the file`, await everything(page), await everything(file));
  }
  is(
    'asked for nothing but its own',
    [...new Set(page.seen.requests.map(address => address.replace(url, '')))].sort(),
    ['', 'data', 'version'],
  );
  quiet(page, 'served');
  quiet(file, 'in a file');
  await close(file);
  await close(page);
  const { signal, code } = await end(child);
  ok('SIGTERM ends it', code === 0 || signal === 'SIGTERM', `${code} ${signal}`);
}

async function follows() {
  const [small, large] = [growDump('small', 100, 200), growDump('large', 100, 2200)];
  copyFileSync(small, 'shown.heap');
  const { child, url } = await serve('shown.heap'),
    page = await open(url);
  await tab(page, 'table');
  await fill(page, 'focus', 'main');
  await page.locator('[data-test=table] .name', { hasText: 'grow_here' }).click();
  await click(page, 'collapse');
  await settled(page);
  const before = hash(page).toString(),
    row = async () => (await grid(page, 'table')).find(one => one.name === 'grow_here').Flat;
  is('at first: what is in the file', await row(), bytesText(rowOf(top(small), 'grow_here').flat.value));
  copyFileSync(large, 'new.heap');
  renameSync('new.heap', 'shown.heap');
  const wanted = bytesText(rowOf(top(large), 'grow_here').flat.value);
  await until('the page follows the file', async () => (await row()) === wanted, 15);
  ok('the file changed: so does the page', true);
  is(
    'what was looked at stays',
    [
      hash(page).toString(),
      await at(page, 'focus').inputValue(),
      await at(page, 'collapse').isChecked(),
      (await grid(page, 'table')).find(one => one.selected)?.name,
    ],
    [before, 'main', true, 'grow_here'],
  );
  // A file that is no profile: what was there is still shown.
  copyFileSync(GROW_JEMALLOC, 'new.heap');
  renameSync('new.heap', 'shown.heap');
  await said(child, /shown\.heap/, 15).catch(() => {});
  await page.waitForTimeout(2500);
  is('the file became something else: what was there stays', await row(), wanted);
  like('the command says so', child.said, /shown\.heap.*/);
  quiet(page, 'follows');

  child.kill('SIGKILL');
  await child.ended;
  await at(page, 'gone').waitFor({ timeout: 15_000 });
  like('nobody answers: the page says so', await at(page, 'gone').innerText(), /does not answer/);
  await tab(page, 'flame');
  ok(
    'and goes on with what it has',
    (await boxes(page)).some(box => box.title === 'grow_here'),
  );
  await close(page);
}

async function live() {
  const grow = start(GROW_JEMALLOC, ['50', '500', 'wait'], { env: { MALLOC_CONF: 'prof:true,lg_prof_sample:0' } });
  await said(grow, /ready/);
  const { child, url } = await serve('--refresh', '1', `pid:${grow.pid}`),
    page = await open(url);
  await tab(page, 'table');
  is(
    'a process: its numbers',
    (await grid(page, 'table')).find(row => row.name === 'grow_here')?.Flat,
    bytesText(500 * 3072),
  );
  await at(page, 'timeline').waitFor({ timeout: 20_000 });
  const count = () => page.locator('[data-test=at] option').count();
  await until('a third snapshot', async () => (await count()) >= 3, 30);
  ok('its snapshots get more', true);
  grow.kill('SIGKILL');
  await grow.ended;
  await page.waitForTimeout(2500);
  const last = await count();
  await page.waitForTimeout(2500);
  is('when it has ended they stay', await count(), last);
  ok('and the page', (await total(page)).length > 3);
  quiet(page, 'live');
  await close(page);
  await end(child);
}

// Small enough that most is in (other), until all is asked for.
async function rest() {
  const stacks = Array.from(
    { length: 3000 },
    (_, i) => `main;work${i % 7};step${i % 53};part${i % 311};leaf${i} ${Math.floor(5e7 / (i + 5))}`,
  );
  writeFileSync('many.folded', stacks.join('\n'));
  const { child, url } = await serve('--max-size', '16k', 'many.folded'),
    page = await open(url, { height: 2600 }),
    report = top('many.folded');
  ok('what is left out is told', await at(page, 'rest').isVisible());
  like(
    'by how much',
    await at(page, 'rest').innerText(),
    /\d+(\.\d)? % of the total is shown in full; [\d,]+ small stacks/,
  );
  ok('the total is the total', (await total(page)).startsWith(bytesText(report.total.value)), await total(page));
  await tab(page, 'flame');
  ok(
    '(other) is in the picture',
    (await boxes(page)).some(box => box.title === '(other)'),
  );
  await click(page, 'fetch-all');
  await until('all is there', async () => (await at(page, 'rest').count()) === 0);
  await tab(page, 'table');
  await click(page, 'trim');
  is(
    'then all is there',
    (await grid(page, 'table')).map(row => row.name).sort(),
    report.rows.map(row => row.name).sort(),
  );
  quiet(page, 'rest');
  await close(page);
  await end(child);
}

// Nobody but the one who was told the address, and no page of somebody else's.
async function guarded(dump) {
  const { child, url } = await serve(dump),
    origin = new URL(url).origin;
  for (const [what, address, headers] of [
    ['no token', `${origin}/`, {}],
    ['another token', `${origin}/0123456789abcdef0123456789abcdef/`, {}],
    ['a file that the profile does not name', `${url}source?path=/etc/passwd`, {}],
    ['a path around', `${url}source?path=../../etc/passwd`, {}],
  ]) {
    const answer = await fetch(address, { headers });
    ok(
      `${what}: no`,
      answer.status >= 400 && answer.status < 500 && !(await answer.text()).includes('root:'),
      String(answer.status),
    );
  }
  const answer = await fetch(url);
  ok('the policy is sent', /default-src 'none'/.test(answer.headers.get('content-security-policy') ?? ''));
  await end(child);
}

await testing(async () => {
  await part('follows', follows);
  await part('live', live);
  await part('guarded', () => guarded(leakyDumps('leaky', 2)[1]));
  await part('rest', rest);
  if (has('redis-server') && has('redis-cli')) {
    const dumps = await redisDumps('redis');
    await part('same as the file', () => sameAsFile(dumps));
  } else {
    skip('redis', 'redis-server and redis-cli are not installed');
  }
});
