// A page of the bench in headless Chromium, without a GPU.
import { readFile } from 'node:fs/promises';
import { build, chromium, CHROMIUM, web } from './tools.mjs';

export async function openFlame({ width = 1600, height = 900, ratio = 1, args = [], reducedMotion = 'no-preference' } = {}) {
  const made = await build({
    absWorkingDir: web, entryPoints: ['bench/flame_page.ts'], bundle: true, write: false, format: 'iife', target: 'es2022', minify: true,
  });
  const style = await readFile(`${web}/src/flame/flame.css`, 'utf8');
  const browser = await chromium.launch({
    executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-gpu', ...args],
  });
  const context = await browser.newContext({ viewport: { width, height }, deviceScaleFactor: ratio, reducedMotion });
  const page = await context.newPage();
  await page.setContent(`<!doctype html><html lang="en"><title>flame</title><style>body { margin: 0 } #host { height: 100vh }${style}</style>
<main id="host"></main><script>${made.outputFiles[0].text.replaceAll('</script', '<\\/script')}</script></html>`);
  return { browser, page };
}
