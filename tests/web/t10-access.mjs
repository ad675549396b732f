// Who cannot see the picture, or not all colours: axe finds nothing in any view, in both themes, and in what opens over
// the page. Pictures of the latter stay in SHOTS.
import {
  at,
  boxes,
  click,
  close,
  fill,
  open,
  press,
  quiet,
  settled,
  shot,
  tab,
  testing,
  violations,
} from './browser.mjs';
import { has, pageOf, redisDumps } from './profiles.mjs';
import { is, ok, part, skipAll } from './tap.mjs';

const VIEWS = ['growth', 'flame', 'sandwich', 'table', 'traces', 'lines', 'about'];

async function choose(page) {
  await tab(page, 'flame');
  const list = (await boxes(page)).filter(box => box.row === 4);
  await page.mouse.click(list[0].x + 3, list[0].y);
  await settled(page);
}

async function views(url, theme) {
  const page = await open(url, { theme });
  await choose(page);
  for (const view of VIEWS) {
    await tab(page, view);
    is(`${theme}, ${view}: axe`, await violations(page), []);
  }
  quiet(page, theme);
  await close(page);
}

// What opens over the page.
async function opened(url, theme) {
  const page = await open(url, { theme, width: 1280 });
  const look = async name => {
    await shot(page, `open-${theme}-${name}`);
    is(`${theme}, ${name}: axe`, await violations(page), []);
  };
  await press(page, '?');
  await look('help');
  await press(page, 'Escape', 'e');
  await look('export');
  await press(page, 'Escape');
  await fill(page, 'focus', 'a(');
  await look('wrong');
  await fill(page, 'focus', 'nothing is called so');
  await look('nothing-left');
  await click(page, 'clear');
  await tab(page, 'sandwich');
  await press(page, 'Escape', 'Escape');
  await look('no-selection');
  await choose(page);
  await tab(page, 'sandwich');
  await click(page, 'sandwich-tables');
  await look('sandwich-tables');
  if (await at(page, 'notes').count()) {
    await click(page, 'notes');
    await look('notes');
  }
  await tab(page, 'flame');
  await fill(page, 'search', 'create');
  await look('search');
  const [box] = (await boxes(page)).filter(one => one.row === 3);
  await page.mouse.move(box.x + 30, box.y);
  await page.waitForTimeout(100);
  await page.screenshot({ path: `${process.env.SHOTS}/open-${theme}-tip.png` });
  ok(
    `${theme}: the tip is within the window`,
    await page.evaluate(() => {
      const { left, top, right, bottom } = document.querySelector('.flame-tip').getBoundingClientRect();
      return left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    }),
  );
  await close(page);
}

async function planted(url) {
  const page = await open(url);
  await page.evaluate(() => document.querySelector('header').insertAdjacentHTML('beforeend', '<img src="data:,">'));
  ok(
    'a violation that is planted is found',
    (await violations(page)).some(line => line.startsWith('image-alt')),
  );
  await close(page);
}

if (!has('redis-server') || !has('redis-cli')) skipAll('redis-server and redis-cli are not installed');
await testing(async () => {
  const dumps = await redisDumps('redis');
  const urls = {
    series: pageOf('series.html', ...dumps),
    diff: pageOf('diff.html', '--base', dumps[1], dumps[3]),
  };
  await part('planted', () => planted(urls.series));
  for (const theme of ['light', 'dark']) {
    await part(`views, ${theme}`, () => views(urls.diff, theme));
    await part(`opened, ${theme}`, () => opened(urls.series, theme));
  }
});
