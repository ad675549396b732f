// Ways through the tree, for the keyboard. Nodes without a width are passed over.
import { NONE } from '../types';
import { rowOf, type Layout } from './layout';

function shown(layout: Layout, node: number): boolean {
  return layout.slot[node] !== NONE;
}

export function firstShownChild(layout: Layout, node: number): number {
  const { firstChild, nextSibling, n } = layout.tree;
  for (let child = firstChild[node]; child > 0 && child < n; child = nextSibling[child])
    if (shown(layout, child))
      return child;
  return node;
}

export function parentOf(layout: Layout, node: number): number {
  return node === 0 ? 0 : layout.tree.parent[node];
}

// The box beside it in its row, of whichever parent.
export function beside(layout: Layout, node: number, step: 1 | -1): number {
  const slot = layout.slot[node], row = rowOf(layout, slot), to = slot + step;
  return to >= layout.first[row] && to < layout.first[row + 1] ? layout.node[to] : node;
}

// Where the widest way from a node ends.
export function widestEnd(layout: Layout, node: number): number {
  for (;;) {
    const child = firstShownChild(layout, node);
    if (child === node)
      return node;
    node = child;
  }
}

function nextInOrder(layout: Layout, node: number): number {
  const { nextSibling, parent, n } = layout.tree;
  const child = firstShownChild(layout, node);
  if (child !== node)
    return child;
  for (; node !== 0; node = parent[node])
    for (let next = nextSibling[node]; next > 0 && next < n; next = nextSibling[next])
      if (shown(layout, next))
        return next;
  return 0;
}

// The next box that was found, in the order of a walk through the tree, from the root on again at its end; or NONE.
export function nextFound(layout: Layout, matches: Uint8Array, from: number, step: 1 | -1): number {
  const { entry } = layout.tree;
  const found = (node: number) => entry[node] !== NONE && matches[entry[node]] === 1;
  let last = NONE;
  if (step > 0) {
    let node = from;
    for (let i = 0; i < layout.n; i++) {
      node = nextInOrder(layout, node);
      if (found(node))
        return node;
    }
    return NONE;
  }
  // Backwards: the last one on the way from the root to here, else the last of all.
  let node = 0;
  for (let i = 0; i < layout.n; i++) {
    if (node === from && last !== NONE)
      return last;
    if (found(node))
      last = node;
    node = nextInOrder(layout, node);
  }
  return last;
}

// The same way down another tree, by names; NONE when it isn't there.
export function samePath(from: Layout, fromNames: string[], node: number, to: Layout, toNames: string[]): number {
  if (from.tree === to.tree)
    return to.slot[node] === NONE ? NONE : node;
  const path: string[] = [];
  for (; node !== 0; node = from.tree.parent[node]) {
    const entry = from.tree.entry[node];
    if (entry === NONE)
      return NONE;
    path.push(fromNames[entry]);
  }
  const { firstChild, nextSibling, entry, n } = to.tree;
  let at = 0;
  for (const name of path.reverse()) {
    let child = firstChild[at];
    while (child > 0 && child < n && !(entry[child] !== NONE && toNames[entry[child]] === name && shown(to, child)))
      child = nextSibling[child];
    if (child === 0 || child >= n)
      return NONE;
    at = child;
  }
  return at;
}
