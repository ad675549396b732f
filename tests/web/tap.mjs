// TAP from a script that drives a browser: checks, what is skipped, and a part that fails alone.
import { isDeepStrictEqual } from 'node:util';

let count = 0;
let failed = 0;

function shorten(value) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value) ?? String(value));
  return text.length > 1500 ? `${text.slice(0, 1500)} …` : text;
}

function diagnose(text) {
  for (const line of shorten(text).split('\n')) console.log(`#   ${line}`);
}

export function note(text) {
  console.log(`# ${text}`);
}

export function ok(name, passed, detail) {
  count++;
  console.log(`${passed ? 'ok' : 'not ok'} ${count} - ${name.replaceAll('#', 'No. ')}`);
  if (!passed) {
    failed++;
    if (detail !== undefined) diagnose(detail);
  }
  return Boolean(passed);
}

// Of what is long, from shortly before the first difference.
function differing(got, wanted) {
  const texts = [got, wanted].map(value => JSON.stringify(value) ?? String(value));
  let same = 0;
  while (same < texts[0].length && texts[0][same] === texts[1][same]) same++;
  const from = Math.max(0, same - 60);
  return texts.map(text => (from ? '… ' : '') + text.slice(from, from + 700));
}

export function is(name, got, wanted) {
  const same = isDeepStrictEqual(got, wanted);
  ok(name, same);
  if (!same) {
    const [first, second] = differing(got, wanted);
    diagnose(`got:    ${first}`);
    diagnose(`wanted: ${second}`);
  }
  return same;
}

export function like(name, text, pattern) {
  return ok(name, pattern.test(text), `not found: ${pattern}\n${text}`);
}

export function skip(name, why) {
  count++;
  console.log(`ok ${count} - ${name} # SKIP ${why}`);
}

export function skipAll(why) {
  console.log(`1..0 # SKIP ${why}`);
  process.exit(0);
}

// What goes wrong in one part is told, and the next part runs.
export async function part(name, run) {
  const began = Date.now();
  try {
    await run();
  } catch (error) {
    ok(`${name}: to its end`, false, error.stack);
  }
  note(`${name}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
}

export function doneTesting() {
  console.log(`1..${count}`);
  process.exitCode = failed ? 1 : 0;
}
