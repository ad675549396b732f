// callgrind's format, a call graph for KCachegrind: what a function holds itself by line, and what its calls hold, each
// with the memory of all stacks that have the call (once a stack, recursion or not). "calls=" counts stacks. As
// src/format/callgrind.c.
import type { Tree, View } from '../../types';
import { NONE } from '../../types';
import { Triples } from '../intern';
import { type Column, clean, integer, nodeName, stacksOf } from './columns';

interface Call { from: number; to: number; stacks: number; cost: number[] }

interface Graph {
  place: { object: string; file: string; name: string; line: number }[];    // a line of a function
  functionOf: number[];               // of each place
  placeOf: Uint32Array;               // of each node
  self: number[][]; calls: Map<number, Call[]>;
}

// Sums of a column at and below each node; with ones: how many stacks there are.
function sumsBelow(tree: Tree, self: Float64Array): Float64Array {
  const sums = self.slice();
  for (let i = tree.n - 1; i > 0; i--)
    sums[tree.parent[i]] += sums[i];
  return sums;
}

function makePlaces(view: View, tree: Tree): Pick<Graph, 'place' | 'functionOf' | 'placeOf'> {
  const place: Graph['place'] = [], functionOf: number[] = [], functions = new Map<string, number>(),
    numbers = new Map<number, number>();
  const placeOf = Uint32Array.from({ length: tree.n }, (_, node) => {
    const entry = tree.entry[node], key = entry === NONE && node === 0 ? -1 : entry, known = numbers.get(key);
    if (known !== undefined)
      return known;
    const { binary, file, line } = view.entries, none = entry === NONE;
    const p = { object: none ? '' : binary[entry], file: none ? '' : file[entry], name: nodeName(view, tree, node),
      line: none ? 0 : line[entry] };
    const text = [p.object, p.file, p.name].join('\0');
    functions.set(text, functions.get(text) ?? functions.size);
    functionOf.push(functions.get(text)!);
    numbers.set(key, place.length);
    return place.push(p) - 1;
  });
  return { place, functionOf, placeOf };
}

// Adds up calls from a walk in depth: a call that is above already counts there.
function addCalls(g: Graph, tree: Tree, columns: Column[]): void {
  const sums = columns.map(({ self }) => sumsBelow(tree, self)), calls: Call[] = [], triples = new Triples(),
    open: number[] = [];
  const holds = Float64Array.from({ length: tree.n }, (_, i) => columns.some(({ self }) => self[i] !== 0) ? 1 : 0);
  const stacks = sumsBelow(tree, holds), callOf = new Int32Array(tree.n).fill(-1);
  for (let node = tree.firstChild[0], leaving = false; node !== 0;) {
    if (!leaving && tree.parent[node] !== 0) {
      const from = g.placeOf[tree.parent[node]], to = g.functionOf[g.placeOf[node]], call = triples.add(from, to, 0);
      if (call === calls.length)
        calls.push({ from, to, stacks: 0, cost: columns.map(() => 0) });
      if (!open[call]) {
        open[call] = node;
        callOf[node] = call;
        calls[call].stacks += stacks[node];
        sums.forEach((sum, k) => calls[call].cost[k] += sum[node]);
      }
    }
    if (!leaving && tree.firstChild[node]) {
      node = tree.firstChild[node];
      continue;
    }
    if (callOf[node] >= 0)
      open[callOf[node]] = 0;
    leaving = tree.nextSibling[node] === 0;
    node = tree.nextSibling[node] || tree.parent[node];
  }
  for (const call of calls)
    g.calls.set(call.from, [...g.calls.get(call.from) ?? [], call]);
}

export function callgrind(view: View, command: string): string {
  const { tree, columns } = stacksOf(view), g: Graph = { ...makePlaces(view, tree), self: [], calls: new Map() };
  g.self = g.place.map(() => columns.map(() => 0));
  for (let i = 0; i < tree.n; i++)
    columns.forEach(({ self }, k) => g.self[g.placeOf[i]][k] += self[i]);
  addCalls(g, tree, columns);
  const named = [new Map<string, number>(), new Map<string, number>(), new Map<string, number>()];
  const reference = (kind: 0 | 1 | 2, key: string, name: string, id = name) => {
    const known = named[kind].get(id);
    named[kind].set(id, known ?? named[kind].size + 1);
    return known ? `${key}=(${known})\n` : `${key}=(${named[kind].size}) ${clean(name) || '???'}\n`;
  };
  const firstPlace: number[] = [];
  g.functionOf.forEach((f, place) => firstPlace[f] ??= place);
  const functionText = (f: number, keys: [string, string, string]) => {
    const { object, file, name } = g.place[firstPlace[f]];
    return reference(0, keys[0], object) + reference(1, keys[1], file) + reference(2, keys[2], name, String(f));
  };
  const cost = (line: number, values: number[]) => `${line} ${values.map(integer).join(' ')}\n`;
  const type = view.type.replace(/[^A-Za-z0-9]/g, '_');
  const out = [
    `# callgrind format\nversion: 1\ncreator: heapgauge\ncmd: ${clean(command)}\npositions: line\n`,
    `events: ${columns.map(({ name }) => name ? `${type}_${name}` : type).join(' ')}\n`,
    `summary: ${columns.map(({ self }) => integer(self.reduce((sum, value) => sum + value, 0))).join(' ')}\n`,
  ];
  const order = g.place.map((_, i) => i).sort((a, b) => g.functionOf[a] - g.functionOf[b]
    || g.place[a].line - g.place[b].line);
  order.forEach((place, i) => {
    if (i === 0 || g.functionOf[order[i - 1]] !== g.functionOf[place])
      out.push('\n', functionText(g.functionOf[place], ['ob', 'fl', 'fn']));
    if (g.self[place].some((value) => value >= 0.5))
      out.push(cost(g.place[place].line, g.self[place]));
    for (const call of g.calls.get(place) ?? [])
      out.push(functionText(call.to, ['cob', 'cfi', 'cfn']),
        `calls=${call.stacks} ${g.place[firstPlace[call.to]].line}\n`,
        cost(g.place[place].line, call.cost));
  });
  return out.join('');
}
