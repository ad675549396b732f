// node bench/first_paint.mjs [ours=PAGE.html] [pprof=URL] [speedscope=PROFILE]...: seconds from opening to the first flame graph on the screen, in headless
// Chromium, 1600 x 900, no GPU: a line NAME SECONDS for each, the best of several times in turns; "NAME failed: why" else. Each time is a new
// browser, so nothing is warm. Speedscope is the one that npm has, taken when it is asked for; it gets the profile as its own command hands it over.
import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { chromium, CHROMIUM } from './tools.mjs';

const ROUNDS = { ours: 5, pprof: 2, speedscope: 3 }, LIMIT_MS = 180_000;
const work = await mkdtemp(join(tmpdir(), 'first-paint-'));

// What there is on the screen once the flame graph is: canvases say nothing of themselves, so their pixels are asked.
const drawn = {
  ours: () => [...document.querySelectorAll('[data-test=flame] canvas')].some(canvas => {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, Math.min(canvas.height, 200)).data;
    return pixels.some((value, i) => i % 4 === 3 && value > 0);
  }),
  pprof: () => document.readyState === 'complete' && document.querySelectorAll('#flame .boxtext, .boxtext').length > 0,
  speedscope: () => [...document.querySelectorAll('canvas')].length > 1 && !document.body.innerText.includes('Loading'),
};

const address = {
  ours: path => `${pathToFileURL(path)}#view=flame`,
  pprof: url => url,
  async speedscope(profile) {
    await promisify(execFile)('npm', ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', work, 'speedscope@1.25.0']);
    const name = basename(profile), script = join(work, 'profile.js');
    await writeFile(script, `speedscope.loadFileFromBase64(${JSON.stringify(name)}, "${(await readFile(profile)).toString('base64')}")`);
    return `${pathToFileURL(join(work, 'node_modules/speedscope/dist/release/index.html'))}#localProfilePath=${script}`;
  },
};

async function once(name, url) {
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', '--allow-file-access-from-files'] });
  try {
    const page = await (await browser.newContext({ viewport: { width: 1600, height: 900 } })).newPage();
    page.setDefaultTimeout(LIMIT_MS);
    const start = performance.now();
    await page.goto(url, { waitUntil: 'commit', timeout: LIMIT_MS });
    await page.waitForFunction(drawn[name], undefined, { polling: 'raf', timeout: LIMIT_MS });
    await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
    return (performance.now() - start) / 1000;
  } finally {
    await browser.close();
  }
}

const asked = process.argv.slice(2).map(text => [text.slice(0, text.indexOf('=')), text.slice(text.indexOf('=') + 1)]);
const best = new Map(), urls = new Map();
for (const [name, what] of asked) {
  try {
    urls.set(name, await address[name](what));
  } catch (error) {
    best.set(name, error);
  }
}
for (let round = 0; round < Math.max(...Object.values(ROUNDS)); round++)
  for (const [name, url] of urls)
    if (round < ROUNDS[name] && !(best.get(name) instanceof Error))
      best.set(name, await once(name, url).then(seconds => Math.min(seconds, best.get(name) ?? Infinity), error => error));
for (const [name, figure] of best)
  console.log(figure instanceof Error ? `${name} failed: ${figure.message.split('\n')[0]}` : `${name} ${figure.toFixed(3)}`);
await rm(work, { recursive: true, force: true });
