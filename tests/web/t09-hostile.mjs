// What profiles may bring: names that are markup, scripts, marks that turn text around, a megabyte, no UTF-8. Blocks
// that were cut, changed, are empty or somebody else's. Nothing runs, nothing is asked for, and what is wrong is said.
import { readFileSync, writeFileSync } from 'node:fs';
import { gunzipSync, gzipSync } from 'node:zlib';
import {
  at,
  boxes,
  click,
  close,
  fill,
  grid,
  open,
  pixels,
  press,
  quiet,
  settled,
  tab,
  testing,
  violations,
} from './browser.mjs';
import { folder, growDump, heapgauge, pageOf, serve } from './profiles.mjs';
import { is, like, note, ok, part } from './tap.mjs';

const NAMES = [
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(2)>',
  '</script><script>alert(3)</script>',
  '--><svg onload=alert(4)>',
  '<!--<script>',
  'javascript:alert(5)',
  '${alert(6)}{{7*7}}',
  '\u202egnirts desrever\u202c',
  '\u2066isolate\u2069\u200e',
  'a\tb\u0001c\u001b[31mred',
  '&lt;b&gt;&#x41;',
  'x'.repeat(1_000_000),
  'std::map<'.repeat(3000),
  `${'('.repeat(5000)}`,
  '] ]]> %s%n \\',
  ' ',
  '中文 🎈 e\u0301',
  '__proto__',
  'constructor',
  'toString',
  'hasOwnProperty',
];

// A profile as protobuf, so that names may be any bytes: one stack for each.
function pprofOf(names) {
  const varint = n => {
    const out = [];
    for (; n > 127; n = Math.floor(n / 128)) out.push((n % 128) | 128);
    return Buffer.from([...out, n]);
  };
  const number = (field, n) => Buffer.concat([varint(field * 8), varint(n)]);
  const data = (field, bytes) => Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes]);
  const strings = ['', 'inuse_space', 'bytes', 'thread', 'label', ...names],
    first = 5;
  const out = [data(1, Buffer.concat([number(1, 1), number(2, 2)]))];
  names.forEach((_, i) => {
    const leaf = i + 1,
      caller = ((i + 7) % names.length) + 1;
    out.push(
      data(
        2,
        Buffer.concat([
          number(1, leaf),
          number(1, caller),
          number(2, 1000 + i * 10),
          data(3, Buffer.concat([number(1, 3), number(2, first + i)])),
          data(3, Buffer.concat([number(1, 4), number(2, first + i)])),
        ]),
      ),
    );
    out.push(data(3, Buffer.concat([number(1, leaf), number(5, first + i)])));
    out.push(
      data(
        4,
        Buffer.concat([number(1, leaf), number(2, leaf), data(4, Buffer.concat([number(1, leaf), number(2, 7)]))]),
      ),
    );
    out.push(
      data(5, Buffer.concat([number(1, leaf), number(2, first + i), number(3, first + i), number(4, first + i)])),
    );
  });
  for (const text of strings) out.push(data(6, Buffer.isBuffer(text) ? text : Buffer.from(text)));
  return gzipSync(Buffer.concat(out));
}

async function names() {
  const noText = [
    Buffer.from([0x66, 0xff, 0xfe, 0x80]),
    Buffer.from('nul\0inside'),
    Buffer.from([0xed, 0xa0, 0x80, 0x41]),
  ];
  writeFileSync('hostile.pb.gz', pprofOf([...NAMES, ...noText]));
  const title = '</title><script>alert(8)</script>"><img src=x onerror=alert(9)>';
  const url = pageOf('hostile.html', '--title', title, 'hostile.pb.gz');
  const page = await open(url);
  is('the title is text', await at(page, 'program').innerText(), title);
  const elements = () =>
    page.evaluate(
      () => document.querySelectorAll('script, img, svg:not(.spark), iframe, object, [onerror], [onload]').length,
    );
  const before = await elements();
  for (const view of ['flame', 'table', 'traces', 'about', 'lines', 'sandwich']) {
    await tab(page, view);
    is(`${view}: no element came of a name`, await elements(), before);
  }
  await tab(page, 'table');
  await click(page, 'trim');
  const rows = await grid(page, 'table'),
    texts = rows.map(row => row.name);
  is('all names have their row', rows.length, NAMES.length + noText.length);
  for (const name of NAMES.slice(0, 7).concat('__proto__', 'constructor', 'toString', '中文 🎈 e\u0301'))
    ok(`shown as text: ${name}`, texts.includes(name), texts.map(text => text.slice(0, 60)).join('\n'));
  const turning = /[\u202a-\u202e\u2066-\u2069\u200e\u200f\u0000-\u001f]/u;
  ok(
    'marks that turn text around are made visible',
    texts.some(text => text.includes('desrever')) && texts.every(text => !turning.test(text)),
    JSON.stringify(texts.filter(text => turning.test(text))),
  );
  ok('the longest is cut', texts.every(text => text.length < 2000) && texts.some(text => /^x+…x+$/.test(text)));
  for (let i = 0; i < rows.length; i++) {
    await page.locator(`[data-test=table] tbody tr[data-row="${i}"]`).click();
    await settled(page);
  }
  ok('each can be selected', await at(page, 'details-name').isVisible());
  await tab(page, 'flame');
  ok('the picture has them', (await boxes(page)).length >= 20 && (await pixels(page)).colours > 10);
  await fill(page, 'search', '<script>|onerror');
  await press(page, 'Escape', 'n');
  await fill(page, 'focus', 'x{500}');
  await click(page, 'clear');
  for (const by of ['file', 'thread', 'line', 'binary', 'function']) {
    await at(page, 'by').selectOption(by);
    await settled(page);
    is(`by ${by}: no element came of a name`, await elements(), before);
  }
  is('axe', await violations(page), []);
  quiet(page, 'names');
  await page.evaluate(() => document.body.insertAdjacentHTML('beforeend', '<b onload="0">planted</b>'));
  is('an element that is planted is found', await elements(), before + 1);
  await close(page);

  const { child, url: address } = await serve('--title', title, 'hostile.pb.gz');
  const served = await open(address);
  await tab(served, 'table');
  is('served: all names', (await grid(served, 'table')).length, NAMES.length + noText.length);
  is(
    'served: no element came of a name',
    await served.evaluate(() => document.querySelectorAll('script, img, iframe').length),
    1,
  );
  quiet(served, 'names, served');
  await close(served);
  child.kill('SIGTERM');
  await child.ended;
}

// What got into the page all the same may not run, nor ask for anything.
async function policy(dump) {
  const { child, url } = await serve(dump);
  for (const [name, address] of [
    ['file', pageOf('policy.html', dump)],
    ['served', url],
  ]) {
    const page = await open(address);
    await page.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.ran = "inline"';
      document.body.append(script);
      const box = document.createElement('div');
      box.innerHTML =
        '<img src="x:y" onerror="window.ran = \'handler\'"><a id="go" href="javascript:window.ran = 1">go</a>' +
        '<form action="http://127.0.0.1:9/f"></form>';
      document.body.append(box);
      document.getElementById('go').click();
      document.querySelector('form').submit();
      const outside = document.createElement('script');
      outside.src = 'data:text/javascript,window.ran="data"';
      document.body.append(outside);
      const frame = document.createElement('iframe');
      frame.src = 'http://127.0.0.1:9/';
      document.body.append(frame);
    });
    const asked = await page.evaluate(async () => {
      const tries = {
        fetch: () => fetch('http://127.0.0.1:9/x'),
        data: () => fetch('data:text/plain,x'),
        beacon: () => {
          if (!navigator.sendBeacon('http://127.0.0.1:9/b')) throw new Error('no');
        },
        evaluated: () => {
          throw window.setTimeout('window.ran = "string"', 0) ?? new Error('no');
        },
      };
      const got = {};
      for (const [what, run] of Object.entries(tries)) {
        try {
          await run();
          got[what] = 'done';
        } catch {
          got[what] = 'refused';
        }
      }
      return got;
    });
    await page.waitForTimeout(300);
    is(`${name}: nothing of it ran`, await page.evaluate(() => window.ran ?? null), null);
    is(`${name}: nothing is fetched`, asked.fetch, 'refused');
    note(`${name}: ${JSON.stringify(asked)}; ${page.seen.errors.length} refusals on the console`);
    ok(
      `${name}: the policy refused`,
      page.seen.errors.filter(error => /Content Security Policy/.test(error)).length >= 4,
      page.seen.errors.join('\n'),
    );
    const answered = [];
    page.on('response', response => answered.push(response.url()));
    is(
      `${name}: nothing came from elsewhere`,
      answered.filter(from => from.includes('127.0.0.1:9')),
      [],
    );
    await close(page);
  }
  child.kill('SIGTERM');
  await child.ended;
}

// --- blocks that are no blocks ---

const PLACE = /(<script id="heapgauge-data" type="application\/octet-stream">)([^<]*)(<\/script>)/;

async function broken(dump) {
  heapgauge('flame', '-o', 'whole.html', dump);
  const whole = readFileSync('whole.html', 'utf8'),
    block = Buffer.from(PLACE.exec(whole)[2], 'base64'),
    plain = gunzipSync(block);
  const page = await open(`file://${folder}/whole.html`);
  let seed = 7;
  const random = below => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return Math.floor(seed / 65536) % below;
  };
  const flipped = (bytes, at) => {
    const copy = Buffer.from(bytes);
    copy[at] ^= 1 << random(8);
    return copy;
  };
  const header = text => {
    const bytes = Buffer.from(text),
      length = Buffer.alloc(4);
    length.writeUInt32LE(bytes.length);
    return Buffer.concat([plain.subarray(0, 8), length, bytes, plain.subarray(12 + plain.readUInt32LE(8))]);
  };
  const json = JSON.parse(plain.subarray(12, 12 + plain.readUInt32LE(8)).toString());
  const bad = {
    empty: Buffer.alloc(0),
    'no gzip': Buffer.from("a text of somebody else's"),
    'gzip of nothing': gzipSync(''),
    'gzip of a text': gzipSync('hello, world'),
    'a picture': Buffer.from('89504e470d0a1a0a', 'hex'),
    twice: gzipSync(block),
    'a newer version': gzipSync(header(JSON.stringify({ ...json, version: 2 }))),
    'a newer magic': gzipSync(Buffer.concat([Buffer.from('HGPAGE2\n'), plain.subarray(8)])),
    'no JSON': gzipSync(header('{"version": 1,')),
    'another JSON': gzipSync(header('[]')),
    'a JSON of null': gzipSync(header('null')),
    'no types': gzipSync(header(JSON.stringify({ ...json, types: [] }))),
    'streams too long': gzipSync(
      header(
        JSON.stringify({ ...json, streams: json.streams.map(stream => ({ ...stream, bytes: stream.bytes + 1 })) }),
      ),
    ),
    'a stream missing': gzipSync(header(JSON.stringify({ ...json, streams: json.streams.slice(1) }))),
    'counts too large': gzipSync(header(JSON.stringify({ ...json, counts: { ...json.counts, nodes: 1e9 } }))),
    'a length beyond the end': gzipSync(
      Buffer.concat([plain.subarray(0, 8), Buffer.from('ffffff7f', 'hex'), plain.subarray(12)]),
    ),
  };
  for (let i = 0; i < 12; i++) {
    bad[`cut at ${i} of 12`] = block.subarray(0, Math.floor((block.length * i) / 12));
    bad[`cut inside at ${i} of 12`] = gzipSync(plain.subarray(0, Math.floor((plain.length * i) / 12)));
  }
  for (let i = 0; i < 10; i++) bad[`a bit of gzip, ${i}`] = flipped(block, 10 + random(block.length - 10));
  bad['bytes behind it'] = Buffer.concat([block, Buffer.from('more')]);
  const mayBeRight = new Set(['bytes behind it']);
  const show = async text => {
    writeFileSync('broken.html', text);
    await page.goto(`file://${folder}/broken.html`);
    await page.waitForSelector('[role=tabpanel], [data-test=failure]', { timeout: 5000 }).catch(() => {});
    return (await at(page, 'failure').count()) ? (await at(page, 'failure').innerText()).trim() : null;
  };
  const silent = [],
    told = new Set();
  for (const [name, bytes] of Object.entries(bad)) {
    const said = await show(whole.replace(PLACE, (_, head, __, tail) => head + bytes.toString('base64') + tail));
    if (said === null ? !mayBeRight.has(name) : said.length < 30) silent.push(name);
    if (said !== null) told.add(said.split('\n').filter(line => line !== '')[1]);
  }
  is(`each of ${Object.keys(bad).length} bad blocks is told of`, silent, []);
  note([...told].join(' | '));
  ok('in words that differ', told.size >= 6, [...told].join('\n'));

  // Bits inside, with a checksum that is right: an error, or a page that stands.
  const dead = [];
  for (let i = 0; i < 20; i++) {
    const where = 12 + random(plain.length - 12),
      bytes = gzipSync(flipped(plain, where));
    const said = await show(whole.replace(PLACE, (_, head, __, tail) => head + bytes.toString('base64') + tail));
    if (said === null && !(await page.locator('[role=tabpanel]').count())) dead.push(`bit at ${where}`);
    if (said === null)
      for (const view of ['table', 'traces', 'flame'])
        await page
          .locator(`[data-test=tab-${view}]`)
          .click({ timeout: 3000 })
          .catch(() => dead.push(`bit at ${where}, ${view}`));
  }
  is('changed bits: told of, or a page that stands', dead, []);
  like(
    'a newer version: says what to do',
    await show(whole.replace(PLACE, (_, head, __, tail) => head + bad['a newer version'].toString('base64') + tail)),
    /version|newer/i,
  );

  // The file itself, cut anywhere behind its script.
  const script = whole.lastIndexOf('<script id="heapgauge-data"'),
    cuts = [];
  for (const length of [script, script + 20, script + 60, Math.floor((script + whole.length) / 2), whole.length - 30])
    if ((await show(whole.slice(0, length))) === null) cuts.push(length);
  is('a file that was cut says so', cuts, []);
  const characters = await show(
    whole.replace(PLACE, (_, head, text, tail) => `${head}${text.slice(0, 40)}!!!${text.slice(43)}${tail}`),
  );
  ok('characters that are no base64 are told of', characters !== null);
  const errors = page.seen.errors.filter(error => !/ERR_FILE/.test(error));
  is('no error on the console, no dialog', [errors.slice(0, 5), page.seen.dialogs], [[], []]);
  await close(page);
}

// Served: the same, from the answer.
async function brokenAnswers(dump) {
  const { child, url } = await serve(dump);
  for (const [name, answer] of Object.entries({
    'an empty answer': { status: 200, body: '' },
    'an error': { status: 500, body: 'there is no memory' },
    'another page': { status: 200, body: '<html>sign in</html>' },
    nobody: null,
  })) {
    const page = await open('about:blank', { wait: false });
    await page.route('**/data', route => (answer ? route.fulfill(answer) : route.abort()));
    await page.goto(url);
    await at(page, 'failure')
      .waitFor({ timeout: 5000 })
      .catch(() => {});
    like(
      `${name}: it is said`,
      (await at(page, 'failure').count()) ? await at(page, 'failure').innerText() : '',
      name === 'an error' ? /500[^]*no memory/ : /\w{5}/,
    );
    await close(page);
  }
  child.kill('SIGTERM');
  await child.ended;
}

await testing(async () => {
  const dump = growDump('grow', 300, 700, 10);
  await part('names', names);
  await part('policy', () => policy(dump));
  await part('broken blocks', () => broken(dump));
  await part('broken answers', () => brokenAnswers(dump));
});
