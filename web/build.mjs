// build.mjs OUT [--model OUT2]: the page as one HTML file, everything inside. With --model also the arithmetic alone,
// as a module that tests import. Nothing but the two hashed elements may run or style: the page's own policy says so.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const [out, flag, model] = process.argv.slice(2);
if (!out || (flag && (flag !== '--model' || !model))) {
  console.error('usage: node build.mjs OUT [--model OUT2]');
  process.exit(2);
}

const common = {
  absWorkingDir: here, bundle: true, minify: true, write: false, target: 'es2022', charset: 'utf8', legalComments: 'none',
  jsx: 'automatic', jsxImportSource: 'preact', logLevel: 'warning',
};

async function bundle(entry, options) {
  const result = await build({ ...common, entryPoints: [entry], ...options });
  return result.outputFiles[0].text.trim();
}

const hash = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const script = await bundle('src/main.tsx', { format: 'iife' });
const style = await bundle('src/page.css', {});
const policy = `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; connect-src 'self'; img-src data: blob:; `
  + "base-uri 'none'; form-action 'none'";

// report/page.c puts the data block, or the address of it, where the comment stands: behind the script, which can then
// say so when the file was cut off.
await writeFile(out, `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>heapgauge</title>
<style>${style}</style></head>
<body><div id="app"></div><noscript>This page needs JavaScript: it computes everything itself.</noscript>
<script>${script}</script>
<!--heapgauge-data-->
</body></html>
`);
if (model)
  await writeFile(model, await bundle('src/model/index.ts', { format: 'esm', minify: false }));
