// The page on a recorder, with hours of a known past that were pushed to it: what it shows is what was pushed, by way of labels, ranges,
// moments, pointer and keyboard, and a link brings it back.
import { gzipSync } from 'node:zlib';
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
  press,
  quiet,
  settled,
  tab,
  testing,
  total,
} from './browser.mjs';
import { bytesText, until } from './profiles.mjs';
import { deploy, known, lastBefore, mean, MIB, now, past, restart, sum, web1, web2 } from './past.mjs';
import { answered, end, freePort, HOUR, MINUTE, pprof, push, pushAll, record } from './recorder.mjs';
import { is, like, ok, part } from './tap.mjs';

async function shown(page) {
  return (await at(page, 'shown').innerText()).trim();
}

async function area(page) {
  return at(page, 'chart-area').boundingBox();
}

// Of the window that is six hours long.
async function drag(page, from, to, shift = false) {
  const box = await area(page);
  if (shift) await page.keyboard.down('Shift');
  await page.mouse.move(box.x + box.width * from, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + (box.width * (from + to)) / 2, box.y + 50, { steps: 4 });
  await page.mouse.move(box.x + box.width * to, box.y + 60, { steps: 4 });
  await page.mouse.up();
  if (shift) await page.keyboard.up('Shift');
  await answered(page);
}

async function choose(page, ...texts) {
  for (const text of texts) {
    await at(page, 'select').fill(text);
    await settled(page);
    await press(page, 'ArrowDown', 'Enter');
  }
  await press(page, 'Escape');
  await answered(page);
}

const range = (from, to) => `${Math.round(from)}..${Math.round(to)}`;

async function landing(url) {
  const answer = await fetch(url);
  const page = await answer.text();
  ok('the policy is sent', /default-src 'none'/.test(answer.headers.get('content-security-policy') ?? ''));
  const size = gzipSync(page, { level: 9 }).length;
  ok(`the whole page has at most 120 kB compressed`, size > 50_000 && size <= 120_000, String(size));

  const view = await open(url);
  await answered(view);
  is('it begins with the ranking', [await at(view, 'tab-growth').getAttribute('aria-selected'), hash(view).toString()], ['true', '']);
  like('it says of how many', await at(view, 'chosen').innerText(), /^3 targets, 5 processes$/);
  is(
    'a mark for the deploy, one for the restart',
    [await at(view, 'mark-deploy').count(), await at(view, 'mark-restart').count()],
    [1, 1],
  );
  like('the mark tells builds', await at(view, 'mark-deploy').getAttribute('title'), /web:1.*aaaa1111 → bbbb2222/);
  ok('lines for what there is', (await at(view, 'line-profile').count()) === 1);
  await choose(view, 'web:1');
  await press(view, '1');
  // Since the restart.
  await view.goto(`${url}#select=instance="web:1"&range=${range(restart, now)}`);
  await view.reload();
  await answered(view);
  const rows = await grid(view, 'leaks');
  like('the leak ranks first', rows[0].cells.at(-1), /^cache_put ← serve ← main/);
  like('its rate is the true one', rows[0].Growth, /^\+(5\.9|6\.0)\d MiB\/h$/);
  is('its shape', rows[0].Shape, 'steady');
  await view.locator('[data-test=leaks] tr[data-row="0"]').click();
  await settled(view);
  is('a row that is picked is selected in the profile', await at(view, 'details-name').innerText(), 'cache_put');
  is('and marked', (await grid(view, 'leaks'))[0].selected, true);
  await click(view, 'rank-function');
  await answered(view);
  like('by function, too', (await grid(view, 'leaks'))[0].cells.at(-1), /^cache_put/);
  await at(view, 'leaks-every').check();
  await answered(view);
  ok('noise, if asked for', (await grid(view, 'leaks')).length > 1);
  quiet(view, 'landing');
  await close(view);
}

// Each number is that of what was pushed.
async function numbers(url) {
  const [from, to] = [now - 5.5 * HOUR, now - 4 * HOUR];
  const inside = known.filter(time => time >= from && time < to);
  const link = (more = '') => `${url}#select=job="shop"&view=table&by=function&trim=1&range=${range(from, to)}${more}`;
  const both = time => sum(web1(time)) + sum(web2(time));
  const page = await open(link());
  await answered(page);
  is('last: what was there at the end of the range', await total(page), bytesText(both(inside.at(-1))));
  like('it says of what', await shown(page), /^Last of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d to /);
  await click(page, 'mode-average');
  await answered(page);
  is('average: no sum over time', await total(page), bytesText(mean(inside.map(both))));
  await click(page, 'mode-max');
  await answered(page);
  const most = [web1, web2].flatMap(of =>
    Object.keys(of(from)).map(stack => Math.max(...inside.map(time => of(time)[stack]))),
  );
  is('max: the largest of each stack', await total(page), bytesText(most.reduce((all, one) => all + one, 0)));
  is('the mode is in the address', hash(page).get('mode'), 'max');
  await page.goBack();
  await answered(page);
  is('back: the average', await total(page), bytesText(mean(inside.map(both))));

  await page.goto(`${link(`&time=${inside[7] + 1000}`)}`);
  await answered(page);
  is('a moment: the profile then', await total(page), bytesText(both(inside[7])));
  like('it says when', await shown(page), /^At \d{4}/);

  const [early, late] = [range(now - 5.5 * HOUR, now - 5 * HOUR), range(now - 4 * HOUR, now - 3.5 * HOUR)];
  await page.goto(`${url}#select=instance="web:1"&view=table&range=${late}&against=${early}&mode=last`);
  await answered(page);
  const rows = await grid(page, 'table');
  const change = web1(lastBefore(now - 3.5 * HOUR))['main;serve;cache_put'] - web1(lastBefore(now - 5 * HOUR))['main;serve;cache_put'];
  is('two ranges: the difference', rows.find(row => row.name === 'cache_put')?.['Δ flat'], `+${bytesText(change)}`);
  await tab(page, 'growth');
  await answered(page);
  like('and its ranking', (await grid(page, 'growth'))[0].cells.at(-1), /^cache_put/);
  await tab(page, 'flame');
  ok('and its picture', (await boxes(page)).some(box => box.title === 'cache_put' && box.lines.join().includes('→')));
  quiet(page, 'numbers');
  await close(page);
}

async function timelineTable(url) {
  const page = await open(`${url}#select=instance="web:2"&numbers=1`);
  await answered(page);
  const rows = await page.locator('[data-test=chart-table] tbody tr').evaluateAll(list => list.map(row => [...row.cells].map(cell => cell.textContent)));
  const numbers = rows.filter(row => row.length > 2);
  ok('as a table: a row for each bucket', numbers.length > 60 && numbers.length <= 300, String(numbers.length));
  is(
    'no bucket holds a sum over time',
    numbers.filter(([, text]) => !/^10\.0 MiB$/.test(text)).slice(0, 3),
    [],
  );
  is('the silence is told, and is one', rows.filter(row => /^nothing recorded/.test(row[0])).length, 1);
  const [first] = await page.locator('[data-test=chart-table] button').all();
  await first.click();
  await answered(page);
  ok('its times are moments to choose', /^\d+$/.test(hash(page).get('time') ?? ''), hash(page).toString());
  await close(page);

  // The picture: where nobody recorded no line is drawn. Columns of the plot, by whether any ink of the line is in them.
  const drawn = await open(`${url}#select=instance="web:2"`);
  await answered(drawn);
  const inked = await drawn.evaluate(() => {
    const canvas = document.querySelector('.recorded canvas');
    const { width, height } = canvas;
    const { data } = canvas.getContext('2d').getImageData(0, 0, width, height);
    const [, r, g, b] = /#(..)(..)(..)/.exec(getComputedStyle(document.documentElement).getPropertyValue('--accent')).map(hex => parseInt(hex, 16));
    const list = [];
    for (let x = 0; x < width; x++) {
      let found = false;
      for (let y = 0; y < height && !found; y++) {
        const i = 4 * (y * width + x);
        found = data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
      }
      list.push(found);
    }
    return list;
  });
  const box = await area(drawn);
  const host = await drawn.locator('.recorded .plot').boundingBox();
  const column = ago => Math.round(((box.x - host.x + box.width * (1 - ago / 6)) * inked.length) / host.width);
  const part = (from, to) => {
    const columns = inked.slice(column(from), column(to));
    return columns.filter(Boolean).length / columns.length;
  };
  ok('a line before the gap', part(4, 3) > 0.9, String(part(4, 3)));
  ok('none in it', part(2.4, 2.1) === 0, String(part(2.4, 2.1)));
  ok('and one behind it', part(1.9, 0.5) > 0.9, String(part(1.9, 0.5)));
  quiet(drawn, 'gap');
  await close(drawn);
}

async function picking(url) {
  const page = await open(url);
  await answered(page);
  await at(page, 'select').click();
  await at(page, 'select').pressSequentially('WEB');
  await settled(page);
  is(
    'typing finds values',
    await at(page, 'choice').evaluateAll(list => list.map(one => one.textContent)),
    ['instance web:13', 'instance web:21'],
  );
  await press(page, 'ArrowDown', 'ArrowDown', 'Enter');
  await answered(page);
  is('Enter chooses', [hash(page).get('select'), await at(page, 'chip').allInnerTexts()], ['instance="web:2"', ['instance="web:2"']]);
  is('only that', await total(page), bytesText(sum(web2(known.at(-1)))));
  await choose(page, 'web:1');
  is('one more of the same label: either', hash(page).get('select'), 'instance=~"web:2|web:1"');
  is('both', await total(page), bytesText(sum(web2(known.at(-1))) + sum(web1(known.at(-1)))));
  await at(page, 'select').click();
  await press(page, 'Backspace');
  await answered(page);
  is('Backspace takes it away', hash(page).get('select'), null);
  await fill(page, 'select', 'instance!~".*1"');
  await press(page, 'Escape');
  await answered(page);
  is('conditions as Prometheus writes them', [hash(page).get('select'), await at(page, 'chosen').innerText()], ['instance!~".*1"', '2 targets']);
  await fill(page, 'select', 'nobody is called so');
  ok('what is not there is said', await at(page, 'select-wrong').isVisible());
  await press(page, 'Escape');
  await click(page, 'unselect-0');
  await choose(page, 'onerror');
  is('a hostile label is text', [await page.locator('img').count(), page.seen.dialogs], [0, []]);
  ok('its trick is made visible', !(await at(page, 'chip').innerText()).includes('\u202e'));
  is('and it is what is chosen', [await at(page, 'chosen').innerText(), await total(page)], ['1 target', '1.00 MiB']);
  await page.reload();
  await answered(page);
  is('also by its link', await total(page), '1.00 MiB');
  quiet(page, 'picking', [/404/]); // of one profile there is no growth
  await close(page);
}

const sliders = page => page.locator('[role=slider]').evaluateAll(list => list.map(one => [one.dataset.test, Number(one.getAttribute('aria-valuenow'))]));

async function ranges(url) {
  const page = await open(`${url}#select=job="shop"`);
  await answered(page);
  await drag(page, 0.5, 0.75);
  const [from, to] = hash(page).get('range').split('..').map(Number);
  ok(
    'a drag is a range',
    Math.abs(from - (now - 3 * HOUR)) < 3 * MINUTE && Math.abs(to - (now - 1.5 * HOUR)) < 3 * MINUTE,
    hash(page).toString(),
  );
  await drag(page, 0.1, 0.3, true);
  const against = hash(page).get('against');
  ok('with Shift the second one', /^\d+\.\.\d+$/.test(against ?? ''), hash(page).toString());
  is(
    'both are seen',
    [await at(page, 'band-range').count(), await at(page, 'band-against').count(), (await sliders(page)).map(([name]) => name)],
    [1, 1, ['range-from', 'range-to', 'against-from', 'against-to']],
  );
  const before = Object.fromEntries(await sliders(page));
  await at(page, 'range-from').focus();
  await press(page, 'ArrowRight', 'ArrowRight');
  await at(page, 'against-to').focus();
  await press(page, 'PageUp');
  const after = Object.fromEntries(await sliders(page));
  const moved = name => Math.round((after[name] - before[name]) / (3.6 * MINUTE));
  is('arrow keys move an end', [moved('range-from'), moved('range-to'), moved('against-from'), moved('against-to')], [2, 0, 0, 10]);
  await answered(page);
  like('both are told', await shown(page), /^Last of .*, less /);
  const everythingThen = await everything(page);
  const other = await open(page.url());
  await answered(other);
  const without = ({ hash: _, ...rest }) => ({ ...rest, text: rest.text.replace(/Live|Paused/g, '') });
  is('the link brings all of it back', without(await everything(other)), without(everythingThen));
  await close(other);

  await click(page, 'part-against-drop');
  await answered(page);
  is('dropped', hash(page).get('against'), null);
  await press(page, 'd');
  await answered(page);
  ok('d compares with the time before', /^\d+\.\.\d+$/.test(hash(page).get('against') ?? ''));
  await press(page, 'd');
  await click(page, 'zoom-range');
  await answered(page);
  is('the range becomes the window', [hash(page).get('range'), /^\d+\.\.\d+$/.test(hash(page).get('window') ?? '')], [null, true]);
  await page.goBack();
  await answered(page);
  ok('back: the range is one again', hash(page).get('range') !== null && hash(page).get('window') === null, hash(page).toString());
  await click(page, 'part-range-drop');
  await press(page, 'z');
  await answered(page);
  is('z: half of the window', hash(page).get('window'), 'now-3h..now');
  await press(page, 'Z', 'Z');
  is('Z: twice', hash(page).get('window'), 'now-12h..now');
  await press(page, '[');
  ok('[: earlier', /^\d+\.\.\d+$/.test(hash(page).get('window')), hash(page).toString());
  ok('then it does not go on by itself', await at(page, 'live').isDisabled());
  for (const last of ['1h', '6h', '1d', '7d']) {
    await click(page, `last-${last}`);
    is(`the last ${last}`, [await at(page, `last-${last}`).getAttribute('aria-pressed'), hash(page).get('window')], ['true', last === '6h' ? null : `now-${last}..now`]);
  }
  await answered(page);
  await fill(page, 'window-from', 'now-2h');
  is('typed', hash(page).get('window'), 'now-2h..now');
  await fill(page, 'window-from', 'once');
  ok('what is no time is said', await at(page, 'window-wrong').isVisible());
  await press(page, 'Escape');
  await click(page, 'last-6h');
  await answered(page);
  await tab(page, 'growth');
  const box = await area(page);
  const moment = known.find(time => time > now - 4 * HOUR);
  await page.mouse.click(box.x + (box.width * (moment + MINUTE - (now - 6 * HOUR))) / (6 * HOUR), box.y + 50);
  await answered(page);
  ok('a click is a moment', Math.abs(Number(hash(page).get('time')) - moment) < 3 * MINUTE, hash(page).toString());
  is('shown as a picture', [hash(page).get('view'), await at(page, 'tab-flame').getAttribute('aria-selected')], ['flame', 'true']);
  await at(page, 'moment').focus();
  await press(page, 'ArrowLeft');
  await answered(page);
  ok('which moves by key', Number(hash(page).get('time')) < moment);
  await page.locator('body').click({ position: { x: 5, y: 5 } });
  await press(page, 'Escape');
  await answered(page);
  is('Escape: the whole window', [hash(page).get('time'), hash(page).get('range')], [null, null]);
  quiet(page, 'ranges', [/404/]); // some windows are before all of it
  await close(page);
}

// A push is of when its profile was taken; what comes out of order, or again, is of when it came.
async function late(url) {
  const labels = { job: 'late', instance: 'a' };
  const send = time => push(url, labels, pprof({ time, stacks: { 'main;a': MIB }, process: 12, build: 'dddd4444' }));
  const [before, taken] = [Date.now(), now - 5 * HOUR];
  for (const time of [taken, taken + 7 * MINUTE, taken, taken + 7 * MINUTE]) await send(time);
  const answer = await fetch(`${url}api/v1/series?match={job="late"}`);
  const [one, ...more] = (await answer.json()).series;
  is('late pushes: one series, with all of them', [one.profiles, more.length], [4, 0]);
  is('the first when it was taken', one.first_ms, taken);
  ok('what is out of order when it came', one.last_ms >= before, `${one.last_ms} ${before}`);
  const moments = await fetch(`${url}api/v1/moments?series=${one.id}`);
  is('and in their order', (await moments.json()).times_ms.slice(0, 2), [taken, taken + 7 * MINUTE]);
}

await testing(async () => {
  const { child, url } = await record(await freePort(), 'past.db');
  await pushAll(url, past());
  await part('landing', () => landing(url));
  await part('numbers', () => numbers(url));
  await part('timeline', () => timelineTable(url));
  await part('picking', () => picking(url));
  await part('ranges', () => ranges(url));
  await part('late', () => late(url));
  is('SIGTERM ends the recorder', await end(child), { code: 0, signal: null });
});
