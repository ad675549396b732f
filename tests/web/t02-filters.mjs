// Each field of the filter bar does what the option of that name does on the command line; what cannot be right is
// marked.
import {
  at,
  boxes,
  click,
  close,
  fill,
  grid,
  hash,
  open,
  pick,
  pixels,
  press,
  quiet,
  selectedName,
  settled,
  tab,
  testing,
  total,
} from './browser.mjs';
import { bytesText, has, leakyDumps, pageOf, redisDumps, rowOf, top } from './profiles.mjs';
import { is, like, note, ok, part, skip } from './tap.mjs';

// Rows that hold something, as top's JSON has them.
function namesOf(report) {
  return report.rows.map(row => row.name).sort();
}

async function tableNames(page) {
  return (await grid(page, 'table')).map(row => row.name).sort();
}

// All rows in sight: quicker to read.
const TALL = { height: 3000 };

async function fields(dump) {
  const page = await open(pageOf('filters.html', dump), TALL);
  await tab(page, 'table');
  await click(page, 'trim');
  const whole = top(dump);
  for (const [field, option, text] of [
    ['focus', '--focus', 'debugCommand|evalGeneric'],
    ['ignore', '--ignore', '^createClient|initServer'],
    ['hide', '--hide', '^z(m|c|re)alloc'],
    ['show', '--show', '^(main|aeMain|call|sds)'],
    ['show-from', '--show-from', '^(call|processCommand|debugCommand)$'],
    ['focus', '--focus', 'libcrypto'],
    ['ignore', '--ignore', '[[:digit:]]{3}$'],
  ]) {
    const report = top(option, text, dump);
    ok(
      `${option} ${text}: leaves something, not all`,
      report.rows.length > 0 && JSON.stringify(report.rows) !== JSON.stringify(whole.rows),
    );
    await fill(page, field, text);
    const rows = await grid(page, 'table');
    is(`${option} ${text}: names`, rows.map(row => row.name).sort(), namesOf(report));
    is(
      `${option} ${text}: flat and cum`,
      rows.map(row => `${row.name} ${row.Flat} ${row.Cum}`).sort(),
      report.rows.map(row => `${row.name} ${bytesText(row.flat.value)} ${bytesText(row.cum.value)}`).sort(),
    );
    ok(`${option} ${text}: total`, (await total(page)).startsWith(bytesText(report.total.value)), await total(page));
    is(`${option} ${text}: in the address`, hash(page).get(field === 'show-from' ? 'from' : field), text);
    await click(page, 'clear');
    is(`${option} ${text}: cleared`, await at(page, field).inputValue(), '');
  }
  is('without filters all is back', await tableNames(page), namesOf(whole));

  for (const [first, second] of [
    ['focus', 'ignore'],
    ['hide', 'show-from'],
  ]) {
    await fill(page, first, 'main|call');
    await fill(page, second, 'dict|aeMain');
    is(
      `${first} with ${second}`,
      await tableNames(page),
      namesOf(top(`--${first}`, 'main|call', `--${second}`, 'dict|aeMain', dump)),
    );
    await click(page, 'clear');
  }

  await fill(page, 'focus', 'no function has this name');
  is('nothing passes: no rows', await at(page, 'table').locator('tbody tr[data-row]').count(), 0);
  like('nothing passes: it is said', await page.locator('#view').innerText(), /Nothing is left/);
  await tab(page, 'flame');
  await tab(page, 'traces');
  like('nothing passes: traces say so, too', await page.locator('#view').innerText(), /Nothing is left/);
  await click(page, 'clear');

  await tab(page, 'table');
  const before = await tableNames(page);
  for (const field of ['focus', 'ignore', 'hide', 'show', 'show-from']) {
    await fill(page, field, 'a(b');
    is(`${field}: a bad expression is marked`, await at(page, field).getAttribute('aria-invalid'), 'true');
    like(`${field}: with the reason`, await page.locator(`#field-${field}-error`).innerText(), /\w{4}/);
    is(`${field}: what was shown stays`, await tableNames(page), before);
    await fill(page, field, '');
    is(`${field}: the mark goes`, await at(page, field).getAttribute('aria-invalid'), 'false');
  }
  await fill(page, 'search', '[z');
  is('search: a bad expression is marked', await at(page, 'search').getAttribute('aria-invalid'), 'true');
  await fill(page, 'search', '');
  // Typed, not confirmed.
  await at(page, 'focus').pressSequentially('libcrypto', { delay: 5 });
  await page.waitForFunction(() => location.hash.includes('focus=libcrypto'));
  is('typing is enough', await tableNames(page), namesOf(top('--focus', 'libcrypto', dump)));
  quiet(page, 'fields');
  await close(page);
}

async function search(dump) {
  const page = await open(pageOf('search.html', dump));
  const before = await pixels(page);
  await fill(page, 'search', 'dict|create');
  const wanted = new Map(
    top('--sort', 'cum', dump)
      .rows.filter(row => /dict|create/i.test(row.name))
      .map(row => [row.name, row.cum.value]),
  );
  is('found as many as there are', await at(page, 'found').innerText(), `${wanted.size} found`);
  ok('there are some', wanted.size > 3);
  ok('the picture marks them', (await pixels(page)).sum !== before.sum);
  await tab(page, 'table');
  await click(page, 'trim');
  await page.locator('h1').click();
  const seen = [];
  for (let i = 0; i <= wanted.size; i++) {
    await press(page, 'n');
    seen.push(await selectedName(page));
  }
  is('n goes through all', seen.slice(0, -1).toSorted(), [...wanted.keys()].sort());
  ok('and round', seen.at(-1) === seen[0]);
  ok(
    'biggest first',
    seen.slice(1, -1).every((name, i) => wanted.get(name) <= wanted.get(seen[i])),
    seen.join(' '),
  );
  await press(page, 'Shift+N');
  is('N goes back', await selectedName(page), seen.at(-2));
  await press(page, 'Shift+N');
  is('and back', await selectedName(page), seen.at(-3));
  await page.getByLabel('Next match').click();
  await settled(page);
  is('so does the button', await selectedName(page), seen.at(-2));
  // A letter that comes when the ones before it were just applied.
  await fill(page, 'search', '');
  const shown = await page.evaluate(
    () =>
      new Promise(done => {
        const field = document.querySelector('[data-test=search]'),
          values = new Set();
        const type = text => {
          field.value = text;
          field.dispatchEvent(new InputEvent('input', { bubbles: true }));
        };
        const look = () => {
          values.add(field.value);
          if (location.hash.includes('search=sd')) done([...values]);
          else requestAnimationFrame(look);
        };
        const own = history.replaceState.bind(history);
        history.replaceState = (...args) => {
          own(...args);
          if (field.value !== 's') return;
          type('sd');
          look();
        };
        type('s');
      }),
  );
  is('no letter is lost', shown, ['sd']);
  await fill(page, 'search', '');
  await at(page, 'focus').pressSequentially('dict');
  await click(page, 'help');
  is('what is typed is applied when the field is left', hash(page).get('focus'), 'dict');
  await press(page, 'Escape');
  await click(page, 'clear');
  // A capital means what it says.
  await fill(page, 'search', 'DICT');
  like('capitals are told apart', await at(page, 'found').innerText(), /nothing/);
  quiet(page, 'search');
  await close(page);
}

async function choices(dump) {
  const page = await open(pageOf('choices.html', dump));
  await tab(page, 'table');
  await click(page, 'trim');
  const libraries = await at(page, 'binary')
    .locator('option')
    .evaluateAll(list => list.map(option => option.value));
  const library = libraries.find(path => path.includes('libcrypto'));
  await pick(page, 'binary', library);
  is('by binary: only stacks through it', await tableNames(page), namesOf(top('--focus', 'libcrypto', dump)));
  is('by binary: in the address', hash(page).get('binary'), library);
  await click(page, 'clear');
  await pick(page, 'by', 'binary');
  is('granularity', await tableNames(page), namesOf(top('--by', 'binary', dump)));
  quiet(page, 'choices');
  await close(page);
}

async function threads() {
  const dump = leakyDumps('leaky').at(-2);
  const page = await open(pageOf('threads.html', dump));
  await tab(page, 'table');
  await click(page, 'trim');
  const threads = top('--by', 'thread', dump)
    .rows.map(row => row.name)
    .filter(name => name.includes('shop'));
  ok('there are threads', threads.length > 2, threads.join());
  for (const thread of threads.slice(0, 2)) {
    await pick(page, 'thread', `=${thread}`);
    const report = top('--tagfocus', `thread=^${thread}$`, dump);
    is(`only ${thread}: names`, await tableNames(page), namesOf(report));
    ok(`only ${thread}: total`, (await total(page)).startsWith(bytesText(report.total.value)), await total(page));
    is(
      `only ${thread}: a function`,
      (await grid(page, 'table')).find(row => row.name === 'item_new')?.Cum,
      bytesText(rowOf(report, 'item_new').cum.value),
    );
  }
  quiet(page, 'threads');
  await close(page);
}

// A profile whose stacks call themselves, and whose names have templates, as folded text: all that matters is known.
async function namesAndRecursion() {
  const { writeFileSync } = await import('node:fs');
  const long =
    'std::vector<std::pair<int, std::string>, std::allocator<std::pair<int, std::string>>>::push_back(int const&)';
  writeFileSync(
    'names.folded',
    ['main;walk;walk;walk;leaf 1000', 'main;walk;leaf 500', `main;${long} 700`, 'main;a;b;a;b;c 300'].join('\n'),
  );
  const page = await open(pageOf('names.html', 'names.folded'));
  const count = async title => (await boxes(page)).filter(box => box.title === title).length;
  is('recursion: walk calls itself in three boxes', await count('walk'), 3);
  await click(page, 'collapse');
  is('collapsed: one box', await count('walk'), 1);
  is(
    'collapsed: its callees in one',
    (await boxes(page)).filter(box => box.title === 'leaf').map(box => box.lines[0].slice(0, 8)),
    ['1.46 KiB'],
  ); // 1500 bytes
  await tab(page, 'table');
  const short = (await grid(page, 'table')).map(row => row.name).find(name => name.includes('push_back'));
  is('short names: no template arguments', short, 'std::vector<…>::push_back');
  await click(page, 'trim');
  ok('whole names', (await tableNames(page)).includes(long), (await tableNames(page)).join('\n'));
  await page.locator('[data-test=table] .name', { hasText: 'push_back' }).click();
  await settled(page);
  is('the details always have the whole name', await selectedName(page), long);
  for (const [act, field, key] of [
    ['focus', 'focus', 'focus'],
    ['ignore', 'ignore', 'ignore'],
    ['hide', 'hide', 'hide'],
    ['show-from', 'show-from', 'from'],
  ]) {
    if (!(await at(page, `act-${act}`).count()))
      await page.locator('[data-test=table] .name', { hasText: 'push_back' }).click();
    await click(page, `act-${act}`);
    ok(
      `${act} on the selection: an expression that matches the name`,
      new RegExp(hash(page).get(key)).test(long),
      hash(page).get(key),
    );
    is(`${act} on the selection: fills the field`, await at(page, field).inputValue(), hash(page).get(key));
    const names = await tableNames(page);
    is(
      `${act} on the selection: it is ${act === 'focus' || act === 'show-from' ? 'left' : 'gone'}`,
      names.includes(long),
      act === 'focus' || act === 'show-from',
    );
    await click(page, 'clear');
  }
  quiet(page, 'names and recursion');
  await close(page);
}

await testing(async () => {
  if (has('redis-server') && has('redis-cli')) {
    const dump = (await redisDumps('redis')).at(-2);
    note(dump);
    await part('fields', () => fields(dump));
    await part('search', () => search(dump));
    await part('choices', () => choices(dump));
  } else {
    skip('redis', 'redis-server and redis-cli are not installed');
  }
  await part('threads', threads);
  await part('names and recursion', namesAndRecursion);
});
