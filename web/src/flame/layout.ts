// Where the boxes of a tree are: one row for each depth, each row sorted from left to right, all rows one behind the other in flat
// arrays. A place in them is a slot. Positions are in the tree's own unit (bytes, counts), so that zooming moves nothing.
import { NONE, type Tree, type WidthMode } from '../types';

export interface Layout {
  tree: Tree;
  n: number;                         // slots; nodes without a width have none
  rows: number;
  total: number;                     // width of the root
  first: Uint32Array;                // first slot of each row, and of the row after the last
  x: Float64Array; w: Float64Array;
  node: Uint32Array;                 // of a slot
  slot: Uint32Array;                 // of a node, or NONE
}

function widths(tree: Tree, mode: WidthMode): Float64Array {
  const values = mode === 'base' ? tree.total.base : mode === 'now' ? tree.total.now : tree.width;
  return values.length === tree.n ? values : tree.width;
}

// Which nodes are drawn, and the first slot of each row: a row has a slot for each node of its depth that has a width, as all above it have.
function rowsOf(tree: Tree, width: Float64Array): { drawn: Uint8Array; first: Uint32Array } {
  const { depth, parent } = tree, top = depth[0], drawn = new Uint8Array(Math.max(tree.n, 1)), counts = [1];
  drawn[0] = 1;
  for (let i = 1; i < tree.n; i++) {
    if (!(width[i] > 0) || !drawn[parent[i]])
      continue;
    drawn[i] = 1;
    counts[depth[i] - top] = (counts[depth[i] - top] ?? 0) + 1;
  }
  const first = new Uint32Array(counts.length + 1);
  counts.forEach((count, row) => (first[row + 1] = first[row] + count));
  return { drawn, first };
}

// Down into each subtree before its neighbour: the nodes of one lie together in the tree, so memory is read nearly straight ahead. What
// a row has next, and where, is kept for each row.
export function layOut(tree: Tree, mode: WidthMode): Layout {
  const width = widths(tree, mode), most = Math.max(tree.n, 1);
  const x = new Float64Array(most), w = new Float64Array(most);
  const node = new Uint32Array(most), slot = new Uint32Array(most).fill(NONE);
  const { firstChild, nextSibling, parent } = tree, { drawn, first } = rowsOf(tree, width), rows = first.length - 1;
  const next = first.slice(), left = new Float64Array(rows + 1);
  // An empty tree is still a root to look at.
  const total = width[0] > 0 ? width[0] : 1;
  for (let at = 0, row = 0; ;) {
    if (drawn[at]) {
      const place = next[row]++;
      x[place] = left[row + 1] = left[row];
      w[place] = at === 0 ? total : width[at];
      node[place] = at;
      slot[at] = place;
      left[row] += w[place];
    }
    // Neither 0 nor NONE is anybody's child.
    const child = firstChild[at];
    if (drawn[at] && child > 0 && child < tree.n) {
      at = child;
      row++;
      continue;
    }
    let sibling = at === 0 ? 0 : nextSibling[at];
    while (at !== 0 && !(sibling > 0 && sibling < tree.n)) {
      at = parent[at];
      row--;
      sibling = at === 0 ? 0 : nextSibling[at];
    }
    if (at === 0)
      break;
    at = sibling;
  }
  return { tree, n: first[rows], rows, total, first, x, w, node, slot };
}

// First slot of [from, to) whose end is beyond `left`; `to` when there is none. Fast when it is about `step` from `from`.
export function firstEnding(layout: Layout, from: number, to: number, left: number, step = 1): number {
  const { x, w } = layout;
  let low = from, high = from;
  for (; high < to && x[high] + w[high] <= left; step *= 2) {
    low = high + 1;
    high += step;
  }
  high = Math.min(high, to);
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (x[middle] + w[middle] <= left)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// Is there a box of the row between left and right?
function rowHas(layout: Layout, row: number, left: number, right: number): boolean {
  const to = layout.first[row + 1];
  const i = firstEnding(layout, layout.first[row], to, left);
  return i < to && layout.x[i] < right;
}

// How many rows have a box between left and right: a box lies within its parent, so no row below an empty one has any.
export function rowsBetween(layout: Layout, left: number, right: number): number {
  let low = 0, high = layout.rows;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (rowHas(layout, middle, left, right))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

// The slot at a place of a row; or the nearest within `reach`; or NONE.
export function slotAt(layout: Layout, row: number, at: number, reach: number): number {
  if (row < 0 || row >= layout.rows)
    return NONE;
  const from = layout.first[row], to = layout.first[row + 1];
  const i = firstEnding(layout, from, to, at);
  const after = i < to ? Math.max(layout.x[i] - at, 0) : Infinity;
  const before = i > from ? at - layout.x[i - 1] - layout.w[i - 1] : Infinity;
  if (Math.min(after, before) > reach)
    return NONE;
  return after <= before ? i : i - 1;
}

export function rowOf(layout: Layout, slot: number): number {
  return layout.tree.depth[layout.node[slot]] - layout.tree.depth[0];
}
