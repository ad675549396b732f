// node test/speed.mjs MODEL [NODES]: how long a block takes to be decoded, looked at and made a tree. For people, and
// the bench.
import { HEAP, PLAIN, encodeBlock } from './encode.mjs';

const [path, wanted = '1000000'] = process.argv.slice(2), model = await import(new URL(path,
  `file://${process.cwd()}/`));
let seed = 1;
const random = (n) => (seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0) % n;

// Stacks that share their beginnings, until there are as many nodes.
const samples = [], names = Array.from({ length: 20000 }, (_, i) => ({
  name: `namespace_${i % 100}::function_${i}<int>`, file: `src/file_${i % 500}.cc`, line: i % 900 + 1,
  binary: `/usr/lib/lib${i % 7}.so`,
}));
for (let nodes = 1, path = []; nodes < Number(wanted);) {
  path = path.slice(0, random(path.length + 1));
  for (let k = 2 + random(12); k > 0 && path.length < 60; k--, nodes++)
    path.push(names[random(names.length)]);
  const size = 16 * (1 + random(64)), objects = 1 + random(1000), alloc = objects + random(1000);
  for (const source of [0, 1])
    samples.push({ frames: path, thread: `t${random(8)} worker`, size, source,
      values: [alloc, alloc * size, objects + source, (objects + source) * size] });
}
const source = { rate: 524288, time_ms: 0, process: 'a', pid: 1, raw_counts: false };
const block = encodeBlock({
  ...HEAP, samples, snapshots: [{ name: 'a', time_ms: 0 }, { name: 'b', time_ms: 1 }],
  sources: [{ name: 'a', snapshot: 0, ...source }, { name: 'b', snapshot: 1, ...source }],
});

// The best of some runs, by the clock and by the processor (with the collector's threads): a busy machine shows in the
// first only.
async function timed(name, work) {
  let result, wall = Infinity, cpu = Infinity;
  for (let i = 0; i < 5; i++) {
    const start = performance.now(), before = process.cpuUsage();
    result = await work();
    const { user, system } = process.cpuUsage(before);
    wall = Math.min(wall, performance.now() - start);
    cpu = Math.min(cpu, (user + system) / 1000);
  }
  console.log(`${name.padEnd(20)}${wall.toFixed(0).padStart(6)} ms ${cpu.toFixed(0).padStart(6)} ms of the processor`);
  return result;
}

console.log(`block: ${(block.length / 1e6).toFixed(1)} MB`);
const data = await timed('decode', () => model.decodeBlock(block));
console.log(`${data.nodes.n} nodes, ${data.rows.n} rows`);
const view = await timed('view', () => model.makeView(data, { ...PLAIN, at: 1 }));
await timed('view, filtered', () => model.makeView(data, { ...PLAIN, at: 1, focus: 'function_1', hide: '_99<' }));
const diff = await timed('view of a diff', () => model.makeView(data, { ...PLAIN, at: 1, base: 0 }));
await timed('totals', () => model.entryTotals(view, 'flat'));
await timed('totals of a diff', () => model.entryTotals(diff, 'flat'));
const tree = await timed('tree', () => model.makeTree(view, { inverted: false }));
console.log(`${tree.n} nodes`);
const diffTree = await timed('tree of a diff', () => model.makeTree(diff, { inverted: false }));
const inverted = await timed('tree, inverted', () => model.makeTree(view, { inverted: true }));
console.log(`${inverted.n} nodes`);
await timed('sandwich', () => model.sandwich(view, 5));
if (model.treeChanges)
  await timed('changes', () => model.treeChanges(diff, diffTree));
