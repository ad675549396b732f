// Each key of the list behind "?" does what the list says. The list is read from the page: a key that is in it and not
// in this test fails, and so does one that is here and no longer there.
import {
  at,
  boxes,
  click,
  close,
  copied,
  everything,
  fill,
  hash,
  open,
  pixels,
  press,
  quiet,
  selectedName,
  settled,
  tab,
  testing,
} from './browser.mjs';
import { has, pageOf, redisDumps } from './profiles.mjs';
import { is, like, note, ok, part, skipAll } from './tap.mjs';

const current = page => page.locator('[role=tab][aria-selected=true]').getAttribute('data-test');
const pressed = async (page, test) => (await at(page, test).getAttribute('aria-pressed')) === 'true';

// What the list says: key -> the check of it, from a page that shows the flame graph of all snapshots and has nothing
// in focus.
const DOES = {
  '1 … 7': async page => {
    const tabs = await page.locator('[role=tab]').evaluateAll(list => list.map(item => item.dataset.test));
    is('there are as many tabs as keys', tabs.length, 7);
    for (const [i, name] of [...tabs.entries()].reverse()) {
      await press(page, String(i + 1));
      is(`${i + 1}: ${name}`, await current(page), name);
    }
  },
  '/': async page => {
    await press(page, '/');
    is('/: the search has the focus', await page.evaluate(() => document.activeElement.dataset.test), 'search');
    await page.keyboard.type('sds');
    await press(page, 'Enter');
    is('/: nothing but what was typed', hash(page).get('search'), 'sds');
    await press(page, 'Escape');
    ok('Esc leaves the field', await page.evaluate(() => document.activeElement.tagName !== 'INPUT'));
    await press(page, 'i');
    is('and keys are keys again', hash(page).get('inverted'), '1');
  },
  'n N': async page => {
    await fill(page, 'search', 'create|dict');
    await press(page, 'Escape');
    await tab(page, 'table');
    await press(page, 'n');
    const first = await selectedName(page);
    await press(page, 'n');
    const second = await selectedName(page);
    ok(
      'n: from one to the next',
      first !== null && first !== second && /create|dict/i.test(first) && /create|dict/i.test(second),
      `${first} ${second}`,
    );
    await press(page, 'Shift+N');
    is('N: back', await selectedName(page), first);
    await press(page, '2', 'Escape', 'Escape');
    const before = await page.locator('.flame .spoken').textContent();
    await press(page, 'n');
    const found = await page.locator('.flame .spoken').textContent();
    ok('n in the picture: to a box that matches', found !== before && /create|dict/i.test(found), found);
    await press(page, 'n');
    ok('n in the picture: to another', (await page.locator('.flame .spoken').textContent()) !== found);
    await press(page, 'Shift+N');
    is('N in the picture: back', await page.locator('.flame .spoken').textContent(), found);
  },
  i: async page => {
    await press(page, 'i');
    ok('i: inverted', await pressed(page, 'inverted'));
    await press(page, 'i');
    ok('i: and back', await pressed(page, 'top-down'));
  },
  d: async page => {
    await press(page, 'd');
    is('d: the first is the base', await at(page, 'base').inputValue(), '0');
    ok('d: a diff has its widths', (await at(page, 'width-max').count()) === 1);
    await press(page, 'd');
    is('d: and no base', await at(page, 'base').inputValue(), 'none');
  },
  m: async page => {
    const metrics = await page.locator('[data-test^=metric-]').count(),
      seen = new Set();
    for (let i = 0; i < metrics; i++) {
      seen.add(await page.locator('[data-test^=metric-][aria-pressed=true]').getAttribute('data-test'));
      await press(page, 'm');
    }
    is('m: goes through all metrics', seen.size, metrics);
    ok('m: there is more than one', metrics > 1);
  },
  r: async page => {
    const before = await at(page, 'collapse').isChecked();
    await press(page, 'r');
    is('r: collapses recursion', await at(page, 'collapse').isChecked(), !before);
    await press(page, 'r');
    is('r: and back', await at(page, 'collapse').isChecked(), before);
  },
  t: async page => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme),
      seen = new Set();
    for (let i = 0; i < 3; i++) {
      await press(page, 't');
      seen.add(await theme());
    }
    is('t: dark and light', [...seen].sort(), ['dark', 'light']);
  },
  c: async page => {
    const main = (await boxes(page)).find(box => box.title === 'aeMain');
    await page.mouse.click(main.x, main.y);
    await settled(page);
    const text = await copied(page, () => press(page, 'c'));
    is(
      'c: the stack that is selected, leaf first',
      text
        .split('\n')
        .map(line => line.split(' ')[0])
        .slice(0, 2),
      ['aeMain', 'main'],
    );
    like('c: it is said', await at(page, 'notice').innerText(), /Copied/);
  },
  e: async page => {
    await press(page, 'e');
    ok('e: the list of exports', await at(page, 'export-pprof').isVisible());
    ok(
      'e: the first is in focus',
      await page.evaluate(() => document.activeElement.getAttribute('role') === 'menuitem'),
    );
    await press(page, 'ArrowDown');
    is(
      'e: arrows walk it',
      await page.evaluate(() => [...document.querySelectorAll('[role=menuitem]')].indexOf(document.activeElement)),
      1,
    );
    await press(page, 'Escape');
    is('e: Esc closes it', await page.locator('[role=menuitem]').count(), 0);
  },
  Backspace: async page => {
    const deep = (await boxes(page)).find(box => box.row === 4);
    await page.mouse.dblclick(deep.x + 2, deep.y);
    await settled(page);
    const inside = hash(page).get('zoom');
    ok('a double click zoomed', inside);
    await press(page, 'Backspace');
    ok('Backspace: one step out', hash(page).get('zoom') && hash(page).get('zoom') !== inside, page.url());
  },
  0: async page => {
    const deep = (await boxes(page)).find(box => box.row === 4),
      whole = await pixels(page);
    await page.mouse.dblclick(deep.x + 2, deep.y);
    await settled(page);
    await press(page, 'Escape', 'Escape', '0');
    is('0: no zoom in the address', hash(page).get('zoom'), null);
    ok(
      '0: the whole is as wide as before',
      (await pixels(page)).width === whole.width && (await boxes(page))[0].title === 'all',
    );
  },
  '← ↑ → ↓': async page => {
    const spoken = () => page.locator('.flame .spoken').textContent(),
      said = [];
    for (const key of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowUp']) {
      await press(page, key);
      said.push((await spoken()).split('. ')[0]);
    }
    ok(
      'arrows: down to callees, up to the caller',
      said[0] === 'all' && new Set(said.slice(0, 3)).size === 3 && said[3] === said[1],
      said.join(' '),
    );
    // Where there are boxes side by side.
    const wide = (await boxes(page)).filter(box => box.row === 1);
    ok('there are boxes side by side', wide.length > 1);
    await page.mouse.click(wide[0].x, wide[0].y);
    await press(page, 'ArrowUp', 'ArrowDown');
    const here = await spoken();
    await press(page, 'ArrowRight');
    const there = await spoken();
    ok('→: the box beside', there !== here && there !== '', there);
    await press(page, 'ArrowLeft');
    is('←: and back', await spoken(), here);
    await tab(page, 'table');
    await at(page, 'table').focus();
    await press(page, 'Home', 'ArrowDown', 'ArrowDown', 'ArrowUp');
    const rows = await page
      .locator('[data-test=table] tbody tr[data-row]')
      .evaluateAll(list => list.map(row => row.getAttribute('aria-selected')));
    is('arrows: the second row of the table', rows.indexOf('true'), 1);
    await press(page, 'End');
    ok(
      'End: the last row is in sight',
      await page.locator('[data-test=table] tbody tr[aria-selected=true]').isVisible(),
    );
    const count = Number(await at(page, 'table').getAttribute('aria-rowcount'));
    is(
      'End: it is the last',
      Number(await page.locator('[data-test=table] tbody tr[aria-selected=true]').getAttribute('aria-rowindex')),
      count,
    );
    await tab(page, 'traces');
    await at(page, 'traces').focus();
    await press(page, 'Home', 'ArrowDown');
    is(
      'arrows: the second stack',
      await page.locator('[data-test=trace][aria-current=true]').getAttribute('aria-posinset'),
      '2',
    );
  },
  Enter: async page => {
    await press(page, 'ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter');
    ok('Enter: zooms to the box', hash(page).get('zoom'), page.url());
    await tab(page, 'table');
    await at(page, 'table').focus();
    await press(page, 'Home', 'Enter');
    is('Enter: opens the row', await current(page), 'tab-sandwich');
  },
  Esc: async page => {
    const deep = (await boxes(page)).find(box => box.row === 4);
    await page.mouse.dblclick(deep.x + 2, deep.y);
    await settled(page);
    ok('a double click selects and zooms', (await selectedName(page)) && hash(page).get('zoom'));
    for (let i = 0; i < 40 && hash(page).get('zoom'); i++) await press(page, 'Escape');
    is('Esc: zooms out', hash(page).get('zoom'), null);
    await press(page, 'Escape', 'Escape');
    is('Esc: lets go of the selection', await selectedName(page), null);
    await press(page, '?', 'Escape');
    is('Esc: closes the list of keys', await at(page, 'help-dialog').count(), 0);
  },
  '?': async page => {
    await press(page, '?');
    ok('?: the list', await at(page, 'help-dialog').isVisible());
    const before = await page.evaluate(() => location.hash);
    await press(page, 'i', 'd', '4');
    is('?: the page behind it stays', await page.evaluate(() => location.hash), before);
    await press(page, '?');
    is('?: and away', await at(page, 'help-dialog').count(), 0);
  },
};

async function keys(dumps) {
  const page = await open(pageOf('keys.html', ...dumps));
  await press(page, '?');
  const list = await at(page, 'help-dialog')
    .locator('dl > div')
    .evaluateAll(items =>
      items.map(item => [...item.children].map(child => child.innerText.replace(/\s+/g, ' ').trim())),
    );
  await click(page, 'help-close');
  note(list.map(([key, does]) => `${key}: ${does}`).join('; '));
  is('the list has the keys that are tested here', list.map(([key]) => key).sort(), Object.keys(DOES).sort());
  for (const [key] of list) {
    const does = DOES[key];
    if (!does) continue;
    await page.evaluate(() => {
      location.hash = 'view=flame';
    });
    await page.evaluate(() => {
      document.activeElement.blur();
    });
    await settled(page);
    await part(`key ${key}`, () => does(page));
  }
  // In a field they are letters.
  await page.evaluate(() => {
    location.hash = 'view=flame';
  });
  await settled(page);
  const before = (await everything(page)).pressed;
  await at(page, 'focus').click();
  await page.keyboard.type('idmrtce4?');
  await settled(page);
  is(
    'in a field keys are letters',
    [await at(page, 'focus').inputValue(), (await everything(page)).pressed],
    ['idmrtce4?', before],
  );
  quiet(page, 'keys');
  await close(page);
}

if (!has('redis-server') || !has('redis-cli')) skipAll('redis-server and redis-cli are not installed');
await testing(async () => {
  await part('keys', async () => keys(await redisDumps('redis')));
});
