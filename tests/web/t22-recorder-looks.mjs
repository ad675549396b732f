// The recorder's page for who cannot see the picture, or not all colours: axe finds nothing, in both themes; and without a pointer all of it
// can be reached. Pictures stay in SHOTS.
import { at, close, hash, open, press, quiet, shot, tab, testing, violations } from './browser.mjs';
import { now, past } from './past.mjs';
import { answered, end, freePort, HOUR, pushAll, record } from './recorder.mjs';
import { is, ok, part } from './tap.mjs';

const range = (from, to) => `${Math.round(from)}..${Math.round(to)}`;

async function looks(url) {
  for (const theme of ['light', 'dark']) {
    const page = await open(url, { theme });
    const look = async name => {
      await answered(page);
      await shot(page, `recorder-${theme}-${name}`);
      is(`${theme}, ${name}: axe`, await violations(page), []);
    };
    await look('ranking');
    await page.goto(`${url}#select=job="shop"&view=flame&range=now-2h..now-1h&against=now-5h..now-4h&each=1`);
    await look('two-ranges');
    await at(page, 'select').fill('web');
    await press(page, 'ArrowDown');
    await look('picker');
    await press(page, 'Escape');
    await at(page, 'as-table').check();
    await look('numbers');
    await tab(page, 'targets');
    await look('targets');
    await page.goto(`${url}#window=${range(now - 400 * HOUR, now - 300 * HOUR)}&view=flame`);
    await look('nothing');
    await press(page, '?');
    await look('help');
    quiet(page, theme, [/404/]);
    await close(page);
  }
}

// By Tab alone: what has the focus, as often as it takes to be back at the first.
async function keyboard(url) {
  const page = await open(`${url}#select=job="shop"`);
  await answered(page);
  await at(page, 'add-range').focus();
  await press(page, 'Enter');
  await page.waitForTimeout(300);
  ok('a range without a pointer', /^\d+\.\.\d+$/.test(hash(page).get('range') ?? ''), hash(page).toString());
  is('its end has the focus', await page.evaluate(() => document.activeElement.dataset.test), 'range-from');
  const before = hash(page).get('range');
  await press(page, 'ArrowRight');
  ok('and moves', hash(page).get('range') !== before);
  await answered(page);
  const reached = new Set();
  await at(page, 'select').focus();
  for (let i = 0; i < 120; i++) {
    reached.add(await page.evaluate(() => document.activeElement.dataset.test ?? ''));
    await page.keyboard.press('Tab');
  }
  const wanted = ['select', 'unselect-0', 'last-1h', 'zoom-in', 'window-from', 'window-to', 'live', 'compare', 'mode-max', 'range-from', 'range-to',
    'line-profile', 'each', 'as-table', 'leaks', 'rank-function', 'export', 'theme'];
  is('Tab comes by everything', wanted.filter(one => !reached.has(one)), []);
  quiet(page, 'keyboard');
  await close(page);
}

await testing(async () => {
  const { child, url } = await record(await freePort(), 'looks.db');
  await pushAll(url, past());
  await part('planted', async () => {
    const page = await open(url);
    await answered(page);
    await page.evaluate(() => document.querySelector('header').insertAdjacentHTML('beforeend', '<img src="data:,">'));
    ok('a violation that is planted is found', (await violations(page)).some(line => line.startsWith('image-alt')));
    await close(page);
  });
  await part('looks', () => looks(url));
  await part('keyboard', () => keyboard(url));
  is('SIGTERM ends the recorder', await end(child), { code: 0, signal: null });
});
