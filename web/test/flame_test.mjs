// The flame graph in headless Chromium: what is drawn, and what mouse, wheel and keys do to it.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { openFlame } from '../bench/browser.mjs';
import { CHROMIUM } from '../bench/tools.mjs';

const NONE = 0xffffffff, ROW = 18, MAP = 46;
const skip = existsSync(CHROMIUM) ? false : 'no Chromium';
const TREE = { nodes: 20000, depth: 60, fan: 5, diff: false, seed: 5, flat: false };
let browser, page;
const errors = [];

before(async () => {
  if (skip)
    return;
  ({ browser, page } = await openFlame({ width: 1400, height: 700 }));
  page.on('pageerror', error => errors.push(error.message));
});
after(() => browser?.close());

async function load(tree = TREE, more = {}) {
  await page.evaluate(([options, change]) => {
    window.page.graph.zoomTo(0, false);
    window.page.load(options, change);
    window.page.graph.zoomTo(0, false);
    window.page.told.length = 0;
  }, [tree, more]);
  await page.mouse.move(0, 695);
  await settle();
}

// Animations and what is drawn after them.
const settle = () => page.waitForTimeout(420);
const told = () => page.evaluate(() => window.page.told.splice(0));
const spoken = () => page.locator('.spoken').textContent();

// Box of a node in CSS pixels of the page, when all is in view.
const boxOf = (node, total = null) => page.evaluate(([id, whole]) => {
  const { tree } = window.page.input, width = innerWidth / (whole ?? tree.width[0]);
  let x = 0;
  for (let at = id; at !== 0; at = tree.parent[at])
    for (let sibling = tree.firstChild[tree.parent[at]]; sibling !== at; sibling = tree.nextSibling[sibling])
      x += tree.width[sibling];
  return { x: x * width, width: tree.width[id] * width, y: tree.depth[id] * 18 + 46, entry: tree.entry[id] };
}, [node, total]);
const child = (node, nth = 0) => page.evaluate(([id, n]) => {
  let at = window.page.input.tree.firstChild[id];
  for (let i = 0; i < n; i++)
    at = window.page.input.tree.nextSibling[at];
  return at;
}, [node, nth]);
const middle = box => [box.x + box.width / 2, box.y + ROW / 2];
const name = node => page.evaluate(id => window.page.input.view.entries.name[window.page.input.tree.entry[id]], node);

// Colours on the picture, of CSS pixels.
const pixels = (x, y, width = 1, height = 1) => page.evaluate(rect => {
  const canvas = document.querySelector('canvas'), ratio = canvas.width / canvas.clientWidth;
  const { data } = canvas.getContext('2d').getImageData(...rect.map(value => Math.round(value * ratio)));
  return Array.from({ length: data.length / 4 }, (_, i) => data.slice(4 * i, 4 * i + 3).join());
}, [x, y, width, height]);

test('boxes stand where their amounts put them, in rows from the root down', { skip }, async () => {
  await load();
  let node = 0;
  for (let depth = 0; depth < 6; depth++) {
    const box = await boxOf(node);
    const [first] = await pixels(Math.max(box.x, 0) + 2, box.y + 2), [last] = await pixels(box.x + box.width - 3, box.y + 2);
    assert.equal(first, last);
    assert.notEqual(first, '255,255,255');
    node = await child(node);
  }
});

test('a click chooses, a double click zooms, an (other) asks for the rest', { skip }, async () => {
  await load();
  const node = await child(await child(0), 0), box = await boxOf(node);
  await page.mouse.click(...middle(box));
  assert.deepEqual(await told(), [['select', box.entry, node]]);
  await page.mouse.dblclick(...middle(box));
  assert.deepEqual((await told()).at(-1), ['zoom', node]);
  await settle();
  // It is the whole width now: its first callee begins at the left edge.
  const inner = await child(node);
  await page.mouse.click(3, (await boxOf(inner)).y + 9);
  assert.deepEqual(await told(), [['select', (await boxOf(inner)).entry, inner]]);
  const other = await page.evaluate(none => {
    const { tree } = window.page.input;
    return tree.entry.findIndex((entry, i) => i > 0 && entry === none && tree.width[i] > tree.width[0] / 50);
  }, NONE);
  await load();
  await page.mouse.click(...middle(await boxOf(other)));
  assert.deepEqual(await told(), [['rest', other]]);
});

test('the pointer shows the words of what is below it', { skip }, async () => {
  await load();
  const node = await child(0, 1), box = await boxOf(node);
  await page.mouse.move(...middle(box));
  const tip = page.locator('.flame-tip');
  assert.ok(await tip.isVisible());
  assert.ok((await tip.textContent()).startsWith(await name(node)));
  await page.mouse.move(700, 690);
  assert.ok(!await tip.isVisible());
});

test('keys walk the tree, zoom and come back', { skip }, async () => {
  await load();
  await page.locator('canvas').first().focus();
  const press = async (...keys) => {
    for (const key of keys)
      await page.keyboard.press(key);
    await settle();
  };
  const top = await child(0), next = await child(0, 1), deep = await child(top);
  await press('ArrowDown');
  assert.match(await spoken(), /^all\. /);
  await press('ArrowDown');
  assert.ok((await spoken()).startsWith(await name(top)));
  await press('ArrowRight');
  assert.ok((await spoken()).startsWith(await name(next)));
  await press('ArrowLeft', 'ArrowDown');
  assert.ok((await spoken()).startsWith(await name(deep)));
  await press('Enter');
  assert.deepEqual(await told(), [['zoom', deep]]);
  await press('Backspace');
  assert.deepEqual(await told(), [['zoom', top]]);
  await press('Escape');
  assert.deepEqual(await told(), [['zoom', 0]]);
  await press('ArrowUp', 'ArrowUp', ' ');
  assert.deepEqual((await told())[0][0], 'select');
  await press('End');
  const end = await spoken();
  await press('Home');
  assert.notEqual(await spoken(), end);
  await press('0');
  assert.equal(await page.evaluate(() => window.page.graph.key(new KeyboardEvent('keydown', { key: 'Escape' }))), false);
  assert.equal(await page.evaluate(() => window.page.graph.key(new KeyboardEvent('keydown', { key: 'x' }))), false);
});

test('n and N go from find to find', { skip }, async () => {
  await load();
  await page.evaluate(() => window.page.search('ache'));
  const seen = new Set();
  for (let i = 0; i < 5; i++) {
    await page.keyboard.press('n');
    seen.add(await spoken());
  }
  assert.ok(seen.size > 2);
  for (const words of seen)
    assert.match(words, /ache/);
  const last = await spoken();
  await page.keyboard.press('N');
  await page.keyboard.press('n');
  assert.equal(await spoken(), last);
});

test('the wheel zooms at the pointer, scrolls and pans; dragging pans', { skip }, async () => {
  await load();
  const camera = () => page.evaluate(() => ({ ...window.page.graph.camera }));
  await page.mouse.move(1200, 300);
  const at = c => c.left + c.width * 1200 / 1400;
  const begin = await camera();
  await page.keyboard.down('Control');
  for (let i = 0; i < 8; i++)
    await page.mouse.wheel(0, -100);
  await page.keyboard.up('Control');
  await settle();
  const near = await camera();
  assert.ok(near.width < begin.width / 5);
  assert.ok(Math.abs(at(near) - at(begin)) < begin.width * 1e-9);
  await page.mouse.down();
  await page.mouse.move(1100, 300, { steps: 4 });
  await page.mouse.up();
  await settle();
  const dragged = await camera();
  assert.ok(Math.abs((dragged.left - near.left) / near.width - 100 / 1400) < 1e-6);
  assert.deepEqual((await told()).filter(([what]) => what === 'select'), []);
  await page.mouse.wheel(-140, 0);
  await settle();
  assert.ok(Math.abs(((await camera()).left - dragged.left) / near.width + 0.1) < 1e-6);
  await page.setViewportSize({ width: 1400, height: 300 });
  await settle();
  await page.mouse.move(700, 200);
  await page.mouse.wheel(0, 36);
  await settle();
  assert.equal((await camera()).scroll, 2);
  await page.setViewportSize({ width: 1400, height: 700 });
  await settle();
});

test('the small map moves the window', { skip }, async () => {
  await load();
  const node = await child(0, 2);
  await page.evaluate(id => window.page.graph.zoomTo(id, false), node);
  await settle();
  const before = await page.evaluate(() => window.page.graph.camera.left);
  await page.mouse.click(100, 20);
  await settle();
  const left = await page.evaluate(() => window.page.graph.camera.left);
  assert.ok(left < before);
  assert.deepEqual(await told(), []);
});

test('a diff has marks and patterns besides its colours', { skip }, async () => {
  await load({ ...TREE, diff: true });
  for (const change of [4, 5]) {
    const node = await page.evaluate(kind => {
      const { tree, changes } = window.page.input;
      return changes.reduce((best, is, i) => is === kind && tree.width[i] > (tree.width[best] ?? 0) ? i : best, -1);
    }, change);
    assert.ok(node > 0);
    await page.evaluate(id => window.page.graph.zoomTo(id, false), node);
    await settle();
    // The right end, where there are no words.
    const colours = new Set(await pixels(1380, (await boxOf(node)).y + 3, 10, 11));
    assert.ok(colours.size > 1, `change ${change}: one colour`);
  }
});

test('as an SVG it is well-formed, bounded and says the same', { skip }, async () => {
  await load();
  const found = await page.evaluate(() => {
    const parsed = new DOMParser().parseFromString(window.page.graph.svg(), 'image/svg+xml');
    return { error: parsed.querySelector('parsererror')?.textContent, boxes: parsed.querySelectorAll('g').length,
             first: parsed.querySelector('g text').textContent };
  });
  assert.equal(found.error, undefined);
  assert.ok(found.boxes > 500 && found.boxes <= 5000, `${found.boxes} boxes`);
  assert.match(found.first, /^all/);
});

test('hostile names are text', { skip }, async () => {
  const names = ['<script>alert(1)</script>', ']]>&quot;"\'&', 'a\u202egnp.exe', 'nul\0nul\x1b[31m', '\ud800 alone \udc00', '<'.repeat(3e5), 'x'.repeat(1e6),
                 '\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u{1f600}', '', '\uffff\ufffe'];
  await load();
  const { error, elements, scripts, ms } = await page.evaluate(async list => {
    const { input, graph, change } = window.page;
    const name = input.view.entries.name.map((_, i) => list[i % list.length]);
    const began = performance.now();
    change({ view: { ...input.view, entries: { ...input.view.entries, name } } });
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    const svg = graph.svg(), parsed = new DOMParser().parseFromString(svg, 'image/svg+xml');
    return { error: parsed.querySelector('parsererror')?.textContent, scripts: parsed.querySelectorAll('script').length,
             elements: [...new Set([...parsed.querySelectorAll('*')].map(e => e.localName))].sort(), ms: performance.now() - began };
  }, names);
  assert.equal(error, undefined);
  assert.equal(scripts, 0);
  assert.deepEqual(elements, ['circle', 'defs', 'g', 'path', 'pattern', 'rect', 'style', 'svg', 'text', 'title']);
  assert.ok(ms < 5000, `${ms} ms`);
});

test('the canvas has the pixels of the device, also after a change', { skip }, async () => {
  await load();
  const devtools = await page.context().newCDPSession(page);
  // An emulated ratio is only noticed together with another size.
  for (const [i, ratio] of [2, 1.5, 1].entries()) {
    const size = { width: 1401 + i, height: 701 + i };
    await devtools.send('Emulation.setDeviceMetricsOverride', { ...size, deviceScaleFactor: ratio, mobile: false });
    await settle();
    const sizes = await page.evaluate(() => [...document.querySelectorAll('canvas')].map(c => [c.width, c.height]));
    assert.deepEqual(sizes, Array(2).fill([size.width, size.height].map(length => Math.round(length * ratio))));
    assert.notEqual((await pixels(20, MAP + 3))[0], '255,255,255');
  }
  await devtools.send('Emulation.clearDeviceMetricsOverride');
});

test('an empty tree, a search without finds, and the other direction', { skip }, async () => {
  await load({ ...TREE, nodes: 1 });
  assert.notEqual((await pixels(700, MAP + 9))[0], '255,255,255');
  await load();
  await page.evaluate(() => window.page.search('no such name'));
  assert.equal(await page.evaluate(() => window.page.graph.key(new KeyboardEvent('keydown', { key: 'n' }))), false);
  await page.evaluate(() => window.page.change({ matches: null, icicle: false }));
  await settle();
  const [width, height] = await page.evaluate(() => [innerWidth, innerHeight]);
  const [root] = await pixels(width / 2, height - 5);
  assert.equal(root, '228,228,228');
  await page.mouse.click(100, height - ROW - 9);
  assert.equal((await told())[0][2], await child(0));
});

test('without motion a zoom is there at once; nothing went wrong, nothing stays behind', { skip }, async () => {
  await load();
  await page.emulateMedia({ reducedMotion: 'reduce' });
  const node = await child(0, 1);
  const width = await page.evaluate(id => {
    window.page.graph.zoomTo(id, true);
    return window.page.graph.camera.width;
  }, node);
  assert.equal(width, await page.evaluate(id => window.page.input.tree.width[id], node));
  await page.evaluate(() => window.page.graph.destroy());
  await settle();
  assert.equal(await page.locator('canvas, .flame-tip').count(), 0);
  assert.deepEqual(errors, []);
});
