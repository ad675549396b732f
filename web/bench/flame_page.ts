// The page that bench/flame.mjs drives: a flame graph over a made-up tree.
import { FlameGraph } from '../src/flame';
import { layOut } from '../src/flame/layout';
import { NONE, type FlameInput } from '../src/types';
import { makeInput, type TreeOptions } from './trees';

let input: FlameInput;

const size = (value: number) => value >= 1048576 ? `${(value / 1048576).toFixed(1)} MiB` : `${(value / 1024).toFixed(1)} KiB`;

function words(node: number) {
  const { tree, view } = input, entry = tree.entry[node];
  const title = entry === NONE ? (node ? '(other)' : 'all') : view.entries.name[entry];
  return { title, lines: [size(tree.total.now[node]), ...entry === NONE ? [] : ['src/store/cache.cc:214', view.entries.binary[entry]]] };
}

const told: unknown[] = [];
const graph = new FlameGraph(document.getElementById('host')!, {
  select: (entry, node) => told.push(['select', entry, node]),
  zoom: node => told.push(['zoom', node]),
  rest: node => told.push(['rest', node]),
  tooltip: words,
  amount: node => size(input.tree.total.now[node]),
});
addEventListener('keydown', e => graph.key(e) && e.preventDefault());

const page = {
  graph, told,
  get input() { return input; },
  load(options: TreeOptions, more: Partial<FlameInput> = {}) {
    input = { ...makeInput(options), ...more };
    graph.show(input);
  },
  change(more: Partial<FlameInput>) {
    input = { ...input, ...more };
    graph.show(input);
  },
  search(text: string) {
    page.change({ matches: Uint8Array.from(input.view.entries.name, name => name.includes(text) ? 1 : 0) });
  },
  layoutMs() {
    const began = performance.now();
    layOut(input.tree, 'max');
    return performance.now() - began;
  },
};
export type BenchPage = typeof page;
Object.assign(window, { page });
