// What every view looks like, in both themes, on fine screens and in narrow windows: nothing is cut or lies over
// something else. The pictures stay in SHOTS.
import { boxes, close, open, quiet, settled, shot, tab, testing } from './browser.mjs';
import { has, pageOf, redisDumps } from './profiles.mjs';
import { is, ok, part, skipAll } from './tap.mjs';

const VIEWS = ['growth', 'flame', 'sandwich', 'table', 'traces', 'lines', 'about'];

// Controls that lie over each other or outside the window, words that their place cuts without saying so.
async function crowded(page) {
  return page.evaluate(() => {
    const bad = [],
      seen = element => element.checkVisibility() && element.getBoundingClientRect().width > 0;
    const controls = [...document.querySelectorAll('button, input, select, th, dt')].filter(seen);
    const inside = (element, box) => {
      for (let up = element.parentElement; up; up = up.parentElement)
        if (/auto|scroll|hidden/.test(getComputedStyle(up).overflow)) {
          const own = up.getBoundingClientRect();
          if (box.right < own.left || box.left > own.right || box.bottom < own.top || box.top > own.bottom)
            return false;
        }
      return true;
    };
    const named = element => `${element.tagName} ${element.dataset.test ?? element.innerText.slice(0, 30)}`;
    const places = controls
      .map(element => ({ element, box: element.getBoundingClientRect() }))
      .filter(({ element, box }) => inside(element, box));
    for (const { element, box } of places) {
      const scrolled = element.closest('.scroll, [role=tablist]');
      if (!scrolled && (box.left < -1 || box.right > innerWidth + 1 || box.bottom > innerHeight + 1))
        bad.push(`outside the window: ${named(element)}`);
      if (
        element.tagName === 'BUTTON' &&
        element.scrollWidth > element.clientWidth + 1 &&
        !element.closest('.link') &&
        !element.classList.contains('link')
      )
        bad.push(`cut: ${named(element)} ${element.scrollWidth} > ${element.clientWidth}`);
      if (element.tagName === 'TH' && element.scrollWidth > element.clientWidth + 1)
        bad.push(`cut head: ${named(element)}`);
    }
    for (let i = 0; i < places.length; i++)
      for (let j = i + 1; j < places.length; j++) {
        const [a, b] = [places[i], places[j]];
        const over =
          Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left) > 2 &&
          Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top) > 2;
        const sticky = a.element.closest('thead') !== b.element.closest('thead');
        if (
          over &&
          !sticky &&
          !a.element.contains(b.element) &&
          !b.element.contains(a.element) &&
          !a.element.closest('.details-open') &&
          !b.element.closest('.details-open')
        )
          bad.push(`over each other: ${named(a.element)}, ${named(b.element)}`);
      }
    for (const cell of document.querySelectorAll('td.number'))
      if (seen(cell) && cell.scrollWidth > cell.clientWidth + 1) bad.push(`cut number: ${cell.innerText}`);
    for (const badge of document.querySelectorAll('td .badge'))
      if (seen(badge) && badge.getBoundingClientRect().right > badge.closest('td').getBoundingClientRect().right - 4)
        bad.push(`cut: ${badge.innerText}`);
    for (const name of document.querySelectorAll('.snapshot, .pickers select'))
      if (seen(name) && (name.selectedOptions?.[0]?.text ?? name.innerText).length * 5 > name.clientWidth)
        bad.push(`cut: ${name.selectedOptions?.[0]?.text}`);
    if (document.documentElement.scrollWidth > innerWidth + 1)
      bad.push(`the page is ${document.documentElement.scrollWidth} wide`);
    return [...new Set(bad)];
  });
}

async function choose(page) {
  await tab(page, 'flame');
  const list = (await boxes(page)).filter(box => box.row === 4);
  await page.mouse.click(list[0].x + 3, list[0].y);
  await settled(page);
}

async function looks(urls, theme, width, ratio) {
  for (const [kind, url] of Object.entries(urls)) {
    const page = await open(url, { theme, width, height: 860, ratio }),
      name = `${kind}-${theme}-${width}${ratio > 1 ? `@${ratio}` : ''}`;
    await choose(page);
    for (const view of VIEWS) {
      await tab(page, view);
      await shot(page, `${name}-${view}`);
      is(`${name}, ${view}: nothing is cut or covered`, await crowded(page), []);
    }
    quiet(page, name);
    await close(page);
  }
}

// What the check looks for, planted. (The policy lets no style attribute in.)
async function planted(url) {
  const page = await open(url);
  await page.evaluate(() => {
    const button = Object.assign(document.createElement('button'), { id: 'planted', textContent: 'something long' });
    document.querySelector('header').append(button);
    Object.assign(button.style, { position: 'absolute', left: '4px', top: '4px', width: '20px', overflow: 'hidden' });
  });
  const bad = await crowded(page);
  ok(
    'what is cut is found',
    bad.some(line => line.startsWith('cut: BUTTON something long')),
    bad.join('\n'),
  );
  await page.evaluate(() => {
    const button = document.getElementById('planted');
    const { left, top } = document.querySelector('[data-test=at]').getBoundingClientRect();
    Object.assign(button.style, { left: `${left + 5}px`, top: `${top}px`, width: '' });
  });
  const covered = await crowded(page);
  ok(
    'what is covered is found',
    covered.some(line => line.startsWith('over each other')),
    covered.join('\n'),
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
  await part('light', () => looks(urls, 'light', 1400, 1));
  await part('dark', () => looks(urls, 'dark', 1400, 1));
  await part('narrow', () => looks({ diff: urls.diff }, 'light', 900, 1));
  await part('fine', () => looks({ series: urls.series }, 'dark', 1400, 2));
});
