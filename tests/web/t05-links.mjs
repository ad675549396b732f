// The address holds all that is looked at: what was set by clicks is there again when the address is opened in another
// window, and the back button goes through it.
import {
  at,
  boxes,
  click,
  close,
  everything,
  fill,
  hash,
  open,
  pick,
  press,
  quiet,
  settled,
  tab,
  testing,
} from './browser.mjs';
import { has, leakyDumps, pageOf, redisDumps } from './profiles.mjs';
import { is, ok, part, skipAll } from './tap.mjs';

// Something in the picture, the table or a trace.
async function pickBox(page, row, twice) {
  const list = (await boxes(page)).filter(box => box.row === row);
  const box = list[list.length >> 1];
  await page.mouse[twice ? 'dblclick' : 'click'](box.x + 2, box.y);
  await settled(page);
}

const rowOf = (page, test, n) => page.locator(`[data-test=${test}] tbody tr[data-row="${n}"]`).click();

// For each view: what is done to it. At its end the page is what the link has to bring back.
const STATES = {
  'growth by function': async page => {
    await tab(page, 'growth');
    await click(page, 'rank-function');
    await click(page, 'rank-cum');
    await page.getByRole('columnheader', { name: 'Now' }).getByRole('button').click();
    await rowOf(page, 'growth', 2);
  },
  'growth by stack': async page => {
    await tab(page, 'growth');
    await click(page, 'rank-stack');
    await rowOf(page, 'growth', 1);
  },
  'flame graph': async page => {
    await tab(page, 'flame');
    await pickBox(page, 5, true);
    await pickBox(page, 7, false);
    await fill(page, 'search', 'create|dict');
  },
  'flame graph, upright, inverted, long names': async page => {
    await tab(page, 'flame');
    await click(page, 'upright');
    await click(page, 'inverted');
    await click(page, 'trim');
    await press(page, 'ArrowUp', 'ArrowUp', 'ArrowUp', 'Enter');
  },
  'flame graph of a difference': async page => {
    await tab(page, 'flame');
    await pick(page, 'base', '1');
    await click(page, 'width-base');
    await click(page, 'relative');
    await pickBox(page, 3, false);
  },
  sandwich: async page => {
    await tab(page, 'table');
    await rowOf(page, 'table', 3);
    await press(page, '3');
  },
  'sandwich as tables': async page => {
    await tab(page, 'table');
    await rowOf(page, 'table', 1);
    await press(page, '3');
    await click(page, 'sandwich-tables');
  },
  table: async page => {
    await tab(page, 'table');
    await pick(page, 'at', '1');
    await pick(page, 'by', 'line');
    await page.getByRole('columnheader', { name: 'Cum' }).getByRole('button').click();
    await page.getByRole('columnheader', { name: 'Cum' }).getByRole('button').click();
    await fill(page, 'focus', 'call|main');
    await fill(page, 'ignore', 'create[A-Z]');
    await fill(page, 'hide', '^z');
    await fill(page, 'show-from', 'aeMain|main');
    await click(page, 'metric-inuse_objects');
    await click(page, 'collapse');
    await rowOf(page, 'table', 4);
  },
  traces: async page => {
    await tab(page, 'traces');
    await fill(page, 'show', '^(call|main|z|dict)');
    await page
      .locator('[data-test=trace]')
      .nth(1)
      .click({ position: { x: 200, y: 10 } });
    await press(page, 't', 't');
  },
  source: async page => {
    await tab(page, 'table');
    await rowOf(page, 'table', 0);
    await tab(page, 'lines');
    await click(page, 'details-close');
  },
  about: async page => {
    await tab(page, 'about');
    await pick(page, 'binary', await page.locator('[data-test=binary] option').nth(2).getAttribute('value'));
  },
};

async function trips(dumps) {
  const url = pageOf('links.html', ...dumps),
    page = await open(url),
    other = await open('about:blank', { wait: false });
  for (const [name, make] of Object.entries(STATES))
    await part(name, async () => {
      await page.goto('about:blank');
      await page.goto(url);
      await page.waitForSelector('[role=tabpanel]');
      await make(page);
      await settled(page);
      const before = await everything(page);
      ok(`${name}: something is in the address`, before.hash.length > 3, before.hash);
      await other.goto('about:blank');
      await other.goto(url + before.hash);
      await other.waitForSelector('[role=tabpanel]');
      is(`${name}: the link opens the same`, await everything(other), before);
    });
  const before = await everything(other);
  await other.reload();
  await other.waitForSelector('[role=tabpanel]');
  is('so does a reload', await everything(other), before);
  quiet(page, 'links');
  quiet(other, 'links in another window');
  await close(page);
  await close(other);
}

async function threadLink() {
  const url = pageOf('threads.html', leakyDumps('leaky').at(-2));
  const page = await open(url);
  await tab(page, 'table');
  await pick(
    page,
    'thread',
    await page.locator('[data-test=thread] option', { hasText: 'shop' }).first().getAttribute('value'),
  );
  const before = await everything(page),
    other = await open(url + before.hash);
  is('a thread: the link opens the same', await everything(other), before);
  await close(page);
  await close(other);
}

async function backAndForward(dumps) {
  const page = await open(pageOf('back.html', ...dumps)),
    steps = [await everything(page)];
  const step = async act => {
    await act();
    await settled(page);
    steps.push(await everything(page));
  };
  await step(() => tab(page, 'flame'));
  await step(() => click(page, 'inverted'));
  await step(() => click(page, 'metric-inuse_objects'));
  await step(() => tab(page, 'table'));
  await step(() => rowOf(page, 'table', 2));
  await step(() => pick(page, 'at', '0'));
  ok('each step is seen', new Set(steps.map(one => JSON.stringify(one))).size === steps.length);
  for (let i = steps.length - 2; i >= 0; i--) {
    await page.goBack();
    is(`back to step ${i + 1}`, await everything(page), steps[i]);
  }
  for (let i = 1; i < steps.length; i++) {
    await page.goForward();
    is(`forward to step ${i + 1}`, await everything(page), steps[i]);
  }
  // What is typed is no step, and neither is walking with the arrow keys.
  const length = await page.evaluate(() => history.length);
  await fill(page, 'focus', 'main');
  await at(page, 'table').focus();
  await press(page, 'ArrowDown', 'ArrowDown', 'ArrowUp');
  is('typing and walking are no steps', await page.evaluate(() => history.length), length);
  ok('but in the address', hash(page).get('focus') === 'main' && hash(page).get('entry'));
  quiet(page, 'back and forward');
  await close(page);
}

// Links from elsewhere may hold anything.
async function strange(dumps) {
  const url = pageOf('strange.html', ...dumps);
  for (const bad of [
    '#view=nothing&by=x&at=99&base=-1&sort=&zoom=zzzz&stack=%5E0&entry=%00%ff',
    '#focus=(&search=[',
    '#%',
    '#view=table&at=0&base=0',
    '#view=sandwich&entry=0123456789abcdef',
    `#focus=${'a'.repeat(50000)}`,
    '#thread=%3Dnone&binary=/none',
  ]) {
    const page = await open(url + bad);
    ok(`${bad.slice(0, 40)}: the page is there`, await page.locator('[role=tabpanel]').isVisible());
    quiet(page, bad.slice(0, 40));
    await close(page);
  }
}

// The same link on tomorrow's profile: stacks by their names.
async function tomorrow(dumps) {
  const first = await open(pageOf('today.html', dumps[1])),
    name = 'debugCommand';
  await tab(first, 'table');
  await first.locator('[data-test=table] .name', { hasText: new RegExp(`^${name}$`) }).click();
  await settled(first);
  const link = await first.evaluate(() => location.hash),
    second = await open(pageOf('tomorrow.html', dumps.at(-2)) + link);
  is('a link finds the function in another profile', await at(second, 'details-name').innerText(), name);
  await close(first);
  await close(second);
}

if (!has('redis-server') || !has('redis-cli')) skipAll('redis-server and redis-cli are not installed');
await testing(async () => {
  const dumps = await redisDumps('redis', 4);
  await part('links', () => trips(dumps));
  await part('a thread', threadLink);
  await part('back and forward', () => backAndForward(dumps));
  await part('strange links', () => strange(dumps));
  await part('tomorrow', () => tomorrow(dumps));
});
