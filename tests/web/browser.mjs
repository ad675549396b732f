// Headless Chromium on the page, driven as a person would: by what can be seen, clicked and typed.
//
// In the environment: PAGE_WORK, where npm brought playwright-core and axe-core; SHOTS, where pictures are kept;
// CHROMIUM.
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createHash } from 'node:crypto';
import { cleanUp, GROW_JEMALLOC } from './profiles.mjs';
import { doneTesting, is, skipAll } from './tap.mjs';

const { PAGE_WORK, SHOTS, CHROMIUM } = process.env;
if (!PAGE_WORK || !existsSync(`${PAGE_WORK}/node_modules/playwright-core`))
  skipAll('this build has no page made by npm, and so no playwright-core');
if (!CHROMIUM || !existsSync(CHROMIUM)) skipAll('chromium is not installed');
if (!GROW_JEMALLOC) skipAll('there is no libjemalloc to link with');
const brought = createRequire(`${PAGE_WORK}/package.json`);
const { chromium } = brought('playwright-core');
mkdirSync(SHOTS, { recursive: true });

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});

// The checks of a file, and then nothing runs on.
export async function testing(run) {
  try {
    await run();
  } finally {
    await browser.close();
    cleanUp();
  }
  doneTesting();
}

// What a page must not do is noted: errors on its console, requests, dialogs.
function watch(page) {
  const seen = { errors: [], requests: [], dialogs: [] };
  page.on('console', message => {
    if (['error', 'warning'].includes(message.type())) seen.errors.push(message.text());
  });
  page.on('pageerror', error => seen.errors.push(String(error.stack ?? error)));
  page.on('dialog', dialog => {
    seen.dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  page.on('request', request => seen.requests.push(request.url()));
  return seen;
}

// A window of its own. reducedMotion: zooms are there at once.
export async function open(
  url,
  {
    width = 1400,
    height = 900,
    ratio = 1,
    theme = 'light',
    hash = '',
    ready = '[role=tabpanel], [data-test=failure]',
    wait = true,
    storage = true,
    ...more
  } = {},
) {
  const context = await browser.newContext({
    viewport: { width, height },
    deviceScaleFactor: ratio,
    colorScheme: theme,
    reducedMotion: 'reduce',
    acceptDownloads: true,
    ...(storage ? { permissions: url.startsWith('http') ? ['clipboard-read', 'clipboard-write'] : [] } : {}),
    ...more,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  page.seen = watch(page);
  await page.goto(url + hash);
  if (wait) await page.waitForSelector(ready);
  await settled(page);
  return page;
}

export async function close(page) {
  await page.context().close();
}

// Until what was asked for is drawn: nothing changes any more for some frames.
export async function settled(page) {
  await page.evaluate(async () => {
    let changed = false;
    const observer = new MutationObserver(() => {
      changed = true;
    });
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    const end = performance.now() + 5000;
    for (let still = 0; still < 3 && performance.now() < end; still = changed ? 0 : still + 1) {
      changed = false;
      await new Promise(done => requestAnimationFrame(() => setTimeout(done, 0)));
    }
    observer.disconnect();
  });
}

// Nothing was complained about, and nobody was asked but the page's own server.
export function quiet(page, name, allowed = []) {
  const origin = page.url().startsWith('http') ? new URL(page.url()).origin : null;
  const own = url =>
    url.startsWith('data:') ||
    url.startsWith('blob:') ||
    (origin ? url.startsWith(`${origin}/`) : url.split('#')[0] === page.url().split('#')[0]);
  is(
    `${name}: no error, no dialog, no foreign request`,
    [
      page.seen.errors.filter(error => !allowed.some(pattern => pattern.test(error))),
      page.seen.dialogs,
      page.seen.requests.filter(url => !own(url)),
    ],
    [[], [], []],
  );
}

export const at = (page, test) => page.locator(`[data-test="${test}"]`);

export async function click(page, test, options) {
  await at(page, test).click(options);
  await settled(page);
}

export async function tab(page, name) {
  await click(page, `tab-${name}`);
}

export async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
  await settled(page);
}

export async function pick(page, test, value) {
  await at(page, test).selectOption(value);
  await settled(page);
}

// Typed and confirmed.
export async function fill(page, test, text) {
  await at(page, test).fill(text);
  await at(page, test).press('Enter');
  await settled(page);
}

export function hash(page) {
  return new URLSearchParams(new URL(page.url()).hash.slice(1));
}

export async function total(page) {
  return (await at(page, 'total').innerText()).trim().replace(/\s+/g, ' ');
}

// --- tables ---

// All rows, also those out of sight: [{ column title: text }]. "name" is the name alone, without what stands behind it.
export async function grid(page, test) {
  return page.evaluate(async name => {
    const table = document.querySelector(`[data-test="${name}"]`),
      box = table.parentElement;
    const titles = [...table.querySelectorAll('thead th')].map(cell => cell.textContent.replace(/ [▲▼]$/, ''));
    const rows = new Map();
    const frame = () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const before = box.scrollTop;
    for (let y = 0; ; y += box.clientHeight - 60) {
      box.scrollTop = y;
      await frame();
      for (const row of table.querySelectorAll('tbody tr[data-row]')) {
        const cells = [...row.cells].map(cell => cell.textContent),
          name = row.querySelector('.name');
        rows.set(Number(row.dataset.row), {
          ...Object.fromEntries(titles.map((title, i) => [title, cells[i]])),
          cells,
          name: name
            ? [...name.childNodes]
                .filter(node => node.nodeType === 3)
                .map(node => node.textContent)
                .join('')
            : '',
          selected: row.getAttribute('aria-selected') === 'true',
          classes: row.className,
        });
      }
      if (y >= box.scrollHeight - box.clientHeight) break;
    }
    box.scrollTop = before;
    await frame();
    return [...rows].sort(([a], [b]) => a - b).map(([, row]) => row);
  }, test);
}

export async function selectedName(page) {
  const name = at(page, 'details-name');
  return (await name.count()) ? (await name.innerText()).trim() : null;
}

// --- the picture ---

// What is drawn: how many colours, what part of it is of one colour, and a sum of all for comparisons.
export async function pixels(page, test = 'flame') {
  const { data, ...seen } = await page.evaluate(name => {
    const canvas = document.querySelector(`[data-test="${name}"] canvas`),
      copy = document.createElement('canvas');
    const { width, height } = Object.assign(copy, { width: canvas.width, height: canvas.height });
    const context = copy.getContext('2d', { willReadFrequently: true }),
      counts = new Map();
    context.drawImage(canvas, 0, 0);
    for (const word of new Uint32Array(context.getImageData(0, 0, width, height).data.buffer))
      counts.set(word, (counts.get(word) ?? 0) + 1);
    return {
      width,
      height,
      colours: counts.size,
      back: Math.max(...counts.values()) / width / height,
      data: copy.toDataURL(),
    };
  }, test);
  return { ...seen, sum: createHash('sha256').update(data).digest('hex') };
}

// What the tip says where the pointer is, else null.
export async function tipAt(page, x, y) {
  await page.mouse.move(x, y);
  return page.evaluate(() => {
    const tip = document.querySelector('.flame-tip:not([hidden])');
    return tip
      ? {
          title: tip.querySelector('strong').textContent,
          lines: [...tip.querySelectorAll('div')].map(line => line.textContent),
        }
      : null;
  });
}

// The boxes that a pointer finds, by rows from the top: [{ title, lines, x, y }]; the same box once in a row. x, y: of
// its left end.
export async function boxes(page, test = 'flame', step = 8) {
  return page.evaluate(
    ([name, step]) => {
      const canvas = document.querySelector(`[data-test="${name}"] canvas`),
        area = canvas.getBoundingClientRect(),
        list = [];
      const move = (x, y) =>
        canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: x, clientY: y, bubbles: true, pointerId: 1 }));
      const shown = () => document.querySelector('.flame-tip:not([hidden])');
      // Above it may be a small picture of the whole, which has no tips.
      for (let row = 0, y = area.y + (area.height >= 240 ? 46 : 0) + 9; y < area.bottom - 4; row++, y += 18) {
        let last = '';
        for (let x = area.x + step / 2; x < area.right - 2; x += step) {
          move(x, y);
          const tip = shown();
          if (tip && tip.innerText !== last)
            list.push({
              title: tip.querySelector('strong').textContent,
              lines: [...tip.querySelectorAll('div')].map(line => line.textContent),
              x,
              y,
              row,
            });
          last = tip?.innerText ?? '';
        }
      }
      canvas.dispatchEvent(new PointerEvent('pointerleave', { pointerId: 1 }));
      return list;
    },
    [test, step],
  );
}

// --- all that is seen, for comparing ---

// Words, fields and pressed buttons of the whole page, and the pixels of its pictures.
export async function everything(page) {
  // Neither a pointer nor a message is part of a state.
  await page.mouse.move(1, 1);
  await settled(page);
  await page.waitForTimeout(150);
  const seen = await page.evaluate(() => {
    const passing = document.querySelectorAll('.toast, .spoken'),
      said = [...passing].map(element => element.textContent);
    passing.forEach(element => {
      element.textContent = '';
    });
    const text = document.getElementById('app').innerText;
    passing.forEach((element, i) => {
      element.textContent = said[i];
    });
    return {
      hash: location.hash,
      text,
      theme: document.documentElement.dataset.theme,
      fields: [...document.querySelectorAll('input, select')].map(field => [
        field.dataset.test,
        field.type === 'checkbox' ? field.checked : field.value,
      ]),
      pressed: [...document.querySelectorAll('[aria-pressed=true], [aria-selected=true], [aria-current=true]')].map(
        element => element.dataset.test ?? element.innerText,
      ),
      pictures: [...document.querySelectorAll('.picture canvas:not(.over)')].map(canvas => canvas.toDataURL()),
    };
  });
  seen.pictures = seen.pictures.map(data => createHash('sha256').update(data).digest('hex').slice(0, 16));
  return seen;
}

// --- files and clipboard ---

export async function download(page, test) {
  if (!(await at(page, test).count())) await click(page, 'export');
  const [file] = await Promise.all([page.waitForEvent('download'), at(page, test).click()]);
  const path = await file.path();
  return { name: file.suggestedFilename(), path, bytes: readFileSync(path) };
}

// What a button copies. In a file the newer interface may not be there: what is put into the document's own copy event
// is the same.
export async function copied(page, act) {
  await page.evaluate(() => {
    window.copied = null;
    const write = navigator.clipboard?.writeText?.bind(navigator.clipboard);
    if (write)
      navigator.clipboard.writeText = text => {
        window.copied = text;
        return write(text);
      };
    document.addEventListener(
      'copy',
      () => {
        window.copied = document.activeElement.value ?? String(getSelection());
      },
      { once: true },
    );
  });
  await act();
  await page.waitForFunction(() => window.copied !== null);
  return page.evaluate(() => window.copied);
}

// --- pictures and accessibility ---

export async function shot(page, name) {
  await page.mouse.move(1, 1);
  await settled(page);
  await page.waitForTimeout(150);
  await page.screenshot({ path: `${SHOTS}/${name}.png` });
}

const axeText = readFileSync(brought.resolve('axe-core/axe.min.js'), 'utf8');

// One line for each violation. Asked through the debugger, which the page's policy does not hold for.
export async function violations(page) {
  await page.evaluate(axeText);
  return page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ['violations'] });
    return violations.flatMap(({ id, help, nodes }) =>
      nodes.slice(0, 3).map(node => `${id}: ${help}: ${node.html.slice(0, 200)} ${node.any[0]?.message ?? ''}`),
    );
  });
}
