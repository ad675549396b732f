// The page beside a recorder at work: it follows a leaking server, says how targets are doing, sees a restart, and bears a recorder that
// has too much to do, is slow, or is not there.
import { at, click, close, grid, hash, open, press, quiet, settled, tab, testing, total } from './browser.mjs';
import { until } from './profiles.mjs';
import { answered, end, freePort, record, SERVER, visited } from './recorder.mjs';
import { is, like, ok, part, skipAll } from './tap.mjs';

async function shown(page) {
  return (await at(page, 'shown').innerText()).trim();
}

const bytesOf = text => {
  const [, number, unit] = /([\d.]+) (B|KiB|MiB|GiB)/.exec(text) ?? [null, 'NaN', 'B'];
  return Number(number) * { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }[unit];
};

async function follows(url, server) {
  const page = await open(`${url}#window=now-10m..now&view=table&select=job%3D~".%2B"`);
  await until('a profile', async () => (await at(page, 'total').count()) === 1, 30);
  await answered(page);
  const before = bytesOf(await total(page));
  await server.visit(1500); // 16 kB each
  const grown = await until(
    'the page sees what the server leaked meanwhile',
    async () => {
      const size = bytesOf(await total(page));
      return size > before + 15 * 1024 ** 2 ? size : 0;
    },
    40,
  );
  ok('it follows by itself', grown > 0, String(grown));
  like('what leaks has its name', (await grid(page, 'table'))[0].name, /remember_visit/);
  // Its pages are not all touched: less is resident than allocated.
  ok('RSS is drawn beside it', bytesOf(await at(page, 'value-rss').innerText()) > 4 * 1024 ** 2, await at(page, 'value-rss').innerText());
  ok('jemalloc says what it has, too', bytesOf(await at(page, 'value-jemalloc_allocated').innerText()) > grown / 2);
  await click(page, 'live');
  like('paused when asked to', await at(page, 'live').innerText(), /Paused/);
  quiet(page, 'follows');
  await close(page);
}

async function health(url, server, endpoint) {
  const page = await open(`${url}#view=targets`);
  await until('both targets', async () => (await page.locator('[data-test=targets] tbody tr').count()) === 2);
  const rows = await grid(page, 'targets');
  is('the one with trouble is first', rows.map(row => row.State), ['down', 'up']);
  ok('and says what', rows[0]['Last error'].length > 15, rows[0]['Last error']);
  like('when', rows[1]['Last scrape'], /^(now|\d+ s ago)$/);
  like('how long', rows[1].Took, /^\d+ ms$/);
  ok('how much', Number(rows[1].Samples.replace(',', '')) > 0, rows[1].Samples);
  like('of how many', await at(page, 'targets-said').innerText(), /^2 targets: 1 up, 1 down/);
  is('the way there is in every view', await at(page, 'down').innerText(), '1 down');
  await page.locator('[data-test=targets] tr[data-row="1"]').click();
  await settled(page);
  await click(page, 'target-select');
  await answered(page);
  like('its memory is a click away', hash(page).get('select'), new RegExp(`instance="127\\.0\\.0\\.1:${endpoint}"`));

  is('a recorder that began just now is shown from there', hash(page).get('window'), 'now-15m..now');

  server.child.kill('SIGKILL');
  await server.child.ended;
  await tab(page, 'targets');
  await until('it is down', async () => (await at(page, 'targets-said').innerText()).includes('2 down'), 20);
  ok('a server that ended is down', true);
  const again = await visited(endpoint);
  await until('it is up again', async () => (await at(page, 'targets-said').innerText()).includes('1 up'), 20);
  await tab(page, 'flame');
  await click(page, 'last-1h');
  await until('the restart is marked', async () => (await at(page, 'mark-restart').count()) === 1, 30);
  like('with who it was', await at(page, 'mark-restart').getAttribute('title'), new RegExp(`restart of .*127\\.0\\.0\\.1:${endpoint}`));
  quiet(page, 'health');
  await close(page);
  return again;
}

// What the recorder would say under load, said by the browser in its place; all else is the recorder's.
async function troubles(url) {
  const page = await open(`${url}#window=now-1h..now&view=flame`);
  await answered(page);
  await click(page, 'live');
  const before = await shown(page);
  let answers = 0;
  const inPlace = (status, body, headers = {}) => async route => {
    answers++;
    await route.fulfill({ status, body: JSON.stringify({ error: body }), headers, contentType: 'application/json' });
  };
  await page.route('**/api/v1/page?*', inPlace(408, 'over the limit of 30 s'));
  await click(page, 'mode-max');
  await at(page, 'trouble').waitFor();
  like('too slow: says so, and what to do', await at(page, 'trouble').innerText(), /shorter range or fewer targets/);
  is('what is shown stays, under its own name', await shown(page), before);
  await page.unroute('**/api/v1/page?*');
  await page.route('**/api/v1/page?*', inPlace(429, 'too many queries', { 'retry-after': '2' }));
  await click(page, 'mode-average');
  await until('it says that there is too much to do', async () => /asked again/.test(await at(page, 'trouble').innerText().catch(() => '')));
  is('still', await shown(page), before);
  await page.unroute('**/api/v1/page?*');
  await until('asked again by itself', async () => /^Average/.test(await shown(page)));
  is('and then all is well', await at(page, 'trouble').count(), 0);
  ok('it was not asked all the time', answers <= 4, String(answers));

  // The answer to the first question comes after that to the second.
  const failed = [];
  page.on('requestfailed', request => failed.push(request.url()));
  await page.route('**/api/v1/page?*mode=max*', async route => {
    await new Promise(done => setTimeout(done, 1500));
    await route.continue().catch(() => {});
  });
  await click(page, 'mode-max');
  await page.waitForTimeout(400);
  await click(page, 'mode-last');
  await until('the second answer', async () => /^Last/.test(await shown(page)));
  await page.waitForTimeout(2000);
  like('an older answer never replaces a newer one', await shown(page), /^Last/);
  ok('its question was given up', failed.some(address => /mode=max/.test(address)), failed.join('\n'));
  quiet(page, 'troubles', [/status of (408|429)/]);
  await close(page);
}

async function lost(url, port, child, targets) {
  const page = await open(`${url}#window=now-1h..now&view=table`);
  await answered(page);
  const before = (await grid(page, 'table')).map(row => row.name);
  await end(child, 'SIGKILL');
  await at(page, 'gone').waitFor({ timeout: 30_000 });
  like('nobody answers: the page says so', await at(page, 'gone').innerText(), /does not answer/);
  is('and goes on with what it has', (await grid(page, 'table')).map(row => row.name), before);
  await press(page, 'm');
  like('in every way', await total(page), /^\d/);
  const again = await record(port, 'live.db', ...targets);
  await until('it is noticed when somebody does', async () => (await at(page, 'gone').count()) === 0, 30);
  await click(page, 'last-6h');
  await answered(page);
  is('and it goes on', (await grid(page, 'table')).map(row => row.name).includes(before[0]), true);
  quiet(page, 'lost', [/ERR_/]);
  await close(page);
  return again;
}

if (!SERVER) skipAll('there is no example server');
await testing(async () => {
  const [port, endpoint, nobody] = [await freePort(), await freePort(), await freePort()];
  const targets = [endpoint, nobody].map(one => `http://127.0.0.1:${one}/debug/pprof/heap`);
  let server = await visited(endpoint);
  let { child, url } = await record(port, 'live.db', ...targets);
  await part('follows', () => follows(url, server));
  await part('health', async () => {
    server = await health(url, server, endpoint);
  });
  await part('troubles', () => troubles(url));
  await part('lost', async () => {
    ({ child, url } = await lost(url, port, child, targets));
  });
  is('SIGTERM ends the recorder', await end(child), { code: 0, signal: null });
  await end(server.child);
});
