// What npm brought: beside the sources, or where a build of the program put it (HEAPGAUGE_WEB_WORK, see build.sh).
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const web = fileURLToPath(new URL('..', import.meta.url));
export const CHROMIUM = process.env.CHROMIUM || '/usr/bin/chromium';

const work = process.env.HEAPGAUGE_WEB_WORK || web;
const require = createRequire(join(work, 'package.json'));
export const { build } = require('esbuild');
export const { chromium } = require('playwright-core');

// TypeScript as a module that is there at once.
export async function importSource(contents) {
  const made = await build({ stdin: { contents, resolveDir: web }, nodePaths: [join(work, 'node_modules')], bundle: true, write: false, format: 'esm' });
  return import(`data:text/javascript;base64,${Buffer.from(made.outputFiles[0].text).toString('base64')}`);
}
