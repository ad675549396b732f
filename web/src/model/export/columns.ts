// What the formats that are written from a tree share: formats that know no amounts below zero get a change as several
// columns.
import type { Tree, View } from '../../types';
import { NONE } from '../../types';
import { changeAt, isTwoSided } from '../amounts';
import { makeTree } from '../tree';

export interface Column { name: string | null; self: Float64Array }

const OTHER = '(other)', NO_FRAMES = '(no frames)';

// The nearest whole number, without an exponent.
export const integer = (value: number) => Math.abs(value) < 1e21 ? String(Math.round(value) + 0)
  : BigInt(Math.round(value)).toString();

export const clean = (text: string) => text.replace(/[\0-\x1f\x7f]/g, ' ');

export function stacksOf(view: View): { tree: Tree; columns: Column[] } {
  const tree = makeTree(view, { inverted: false }), { self } = tree, n = tree.n, two = isTwoSided(self);
  const make = (name: string | null, value: (i: number) => number): Column =>
    ({ name, self: Float64Array.from({ length: n }, (_, i) => value(i)) });
  const belowZero = two && self.now.some((now, i) => now < 0 || self.base[i] < 0);
  if (!view.diff && !belowZero)
    return { tree, columns: [{ name: null, self: self.now }] };
  const change = [
    make('grew', (i) => Math.max(0, changeAt(self, i))), make('shrank', (i) => Math.max(0, -changeAt(self, i))),
  ];
  return { tree, columns: belowZero ? change : [...change, { name: 'base', self: self.base },
    { name: 'new', self: self.now }] };
}

// Name of a tree's node as an entry; the root stands for what has no frames.
export function nodeName(view: View, tree: Tree, node: number): string {
  if (tree.entry[node] === NONE)
    return node === 0 ? NO_FRAMES : OTHER;
  return view.entries.name[tree.entry[node]].trim() ? view.entries.name[tree.entry[node]] : '(unnamed)';
}

// The nodes from below the root to this one. The root itself is one frame.
export function pathTo(tree: Tree, node: number): number[] {
  const path = node === 0 ? [0] : [];
  for (let at = node; at !== 0; at = tree.parent[at])
    path.push(at);
  return path.reverse();
}
