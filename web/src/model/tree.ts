// Calling-context trees: the block's tree with nodes of equal entries made one, what filters hide taken out, and
// siblings in order of size. src/profile/tree.c, from nodes instead of rows. Most nodes have one child, which is
// remembered with the node; further ones are found by (parent, entry) in one hash table.
import type { Amounts, Tree, View } from '../types';
import { NONE } from '../types';
import { addAmount, firstAmounts, isTwoSided, newAmounts, sizeAt } from './amounts';
import { mix } from './intern';
import { forOutermost, nameRanks } from './totals';

interface Builder {
  n: number; entry: Uint32Array; parent: Uint32Array; depth: Uint32Array; rest: Uint32Array;
  first: Uint32Array;                 // each node's child that came first; 0: none
  table: Uint32Array; inTable: number;   // the other children; 0: free
  self: Amounts; width: Float64Array;
}

function newBuilder(expected: number, twoSided: boolean, root: number): Builder {
  const b: Builder = {
    n: 1, first: new Uint32Array(expected), table: new Uint32Array(1024), inTable: 0, entry: new Uint32Array(expected),
    parent: new Uint32Array(expected), depth: new Uint32Array(expected),
    rest: new Uint32Array(expected), self: newAmounts(expected, twoSided), width: new Float64Array(expected),
  };
  b.entry[0] = root;
  return b;
}

function larger(from: Uint32Array, n: number): Uint32Array {
  const to = new Uint32Array(n);
  to.set(from);
  return to;
}

// Room for as many nodes again. Amounts are filled in afterwards, when all nodes are there.
function growNodes(b: Builder): void {
  const n = 2 * b.entry.length;
  for (const key of ['entry', 'parent', 'depth', 'rest', 'first'] as const)
    b[key] = larger(b[key], n);
}

function growTable(b: Builder): void {
  b.table = new Uint32Array(4 * b.table.length);
  for (let i = 1; i < b.n; i++)
    if (b.first[b.parent[i]] !== i)
      b.table[freeSlot(b, b.parent[i], b.entry[i])] = i;
}

function freeSlot(b: Builder, parent: number, entry: number): number {
  const mask = b.table.length - 1;
  let slot = mix(parent, entry) & mask;
  while (b.table[slot] !== 0)
    slot = slot + 1 & mask;
  return slot;
}

function addNode(b: Builder, parent: number, entry: number): number {
  if (b.n === b.entry.length)
    growNodes(b);
  const id = b.n++;
  b.entry[id] = entry;
  b.parent[id] = parent;
  b.depth[id] = b.depth[parent] + 1;
  return id;
}

function childOf(b: Builder, parent: number, entry: number): number {
  const first = b.first[parent];
  if (first === 0)
    return b.first[parent] = addNode(b, parent, entry);
  if (b.entry[first] === entry)
    return first;
  const { table } = b, mask = table.length - 1;
  let slot = mix(parent, entry) & mask;
  for (let found; (found = table[slot]) !== 0; slot = slot + 1 & mask)
    if (b.parent[found] === parent && b.entry[found] === entry)
      return found;
  const id = table[slot] = addNode(b, parent, entry);
  if (2 * ++b.inTable > table.length)
    growTable(b);
  return id;
}

function addSelf(b: Builder, node: number, view: View, row: number): void {
  addAmount(b.self, node, view.rows.amounts, row);
  b.width[node] += sizeAt(view.rows.amounts, row);
}

// --- order ---

interface Links { firstChild: Uint32Array; nextSibling: Uint32Array }

function sortSmall(order: Uint32Array, from: number, to: number, compare: (x: number, y: number) => number): void {
  for (let i = from + 1; i < to; i++) {
    const item = order[i];
    let k = i;
    for (; k > from && compare(item, order[k - 1]) < 0; k--)
      order[k] = order[k - 1];
    order[k] = item;
  }
}

// Groups the nodes by parent with a counting sort; nearly all groups are small, and of one node there is no group.
function linkChildren(b: Builder, total: Amounts, rank: Uint32Array): Links {
  const { n, entry, parent } = b, count = new Uint32Array(n), firstChild = new Uint32Array(n),
    nextSibling = new Uint32Array(n);
  for (let i = 1; i < n; i++) {
    count[parent[i]]++;
    firstChild[parent[i]] = i;
  }
  const ends = new Uint32Array(n);        // of each node's group; while it is filled, where the next one goes
  let grouped = 0;
  for (let i = 0; i < n; i++) {
    ends[i] = grouped;
    grouped += count[i] > 1 ? count[i] : 0;
  }
  const order = new Uint32Array(grouped), place = (node: number) => entry[node] === NONE ? NONE : rank[entry[node]];
  for (let i = 1; i < n; i++)
    if (count[parent[i]] > 1)
      order[ends[parent[i]]++] = i;
  const compare = (x: number, y: number) => sizeAt(total, y) - sizeAt(total, x) || place(x) - place(y);
  for (let i = 0; i < n; i++) {
    const end = ends[i], start = end - count[i];
    if (count[i] < 2)
      continue;
    if (count[i] > 24)
      order.subarray(start, end).sort(compare);
    else
      sortSmall(order, start, end, compare);
    firstChild[i] = order[start];
    for (let k = start + 1; k < end; k++)
      nextSibling[order[k - 1]] = order[k];
  }
  return { firstChild, nextSibling };
}

function finish(b: Builder, view: View): Tree {
  const { n } = b, self = firstAmounts(b.self, n), totals = copyAmounts(self), width = b.width.subarray(0, n);
  for (let i = n - 1; i > 0; i--) {
    addAmount(totals, b.parent[i], totals, i);
    width[b.parent[i]] += width[i];
  }
  return {
    n, entry: b.entry.subarray(0, n), parent: b.parent.subarray(0, n), depth: b.depth.subarray(0, n), self,
    total: totals,
    width, rest: b.rest.subarray(0, n), ...linkChildren(b, totals, nameRanks(view.entries)),
  };
}

function copyAmounts(a: Amounts): Amounts {
  const now = a.now.slice();
  return {
    n: a.n, now, variance: a.variance.slice(), weight: a.weight.slice(), gained: isTwoSided(a) ? a.gained.slice() : now,
    base: a.base.slice(), lost: a.lost.slice(), lostVariance: a.lostVariance.slice(), lostWeight: a.lostWeight.slice(),
  };
}

// --- from the root, and below one entry ---

// Which nodes of the block have rows at or below them.
function nodesWithRows(view: View): { used: Uint8Array; count: number } {
  const { n, parent } = view.data.nodes, { rows } = view, used = new Uint8Array(n);
  let count = 0;
  for (let i = 0; i < rows.n; i++)
    used[rows.node[i]] = 1;
  for (let i = n - 1; i > 0; i--)
    if (used[i]) {
      used[parent[i]] = 1;
      count++;
    }
  return { used, count };
}

// Where each node of the block goes in a tree from the root; starts: those that are the root themselves, or null: only
// node 0 is. What is neither below a start nor one goes nowhere: NONE.
function placeNodes(b: Builder, view: View, used: Uint8Array, starts: Uint8Array | null): Uint32Array {
  const { nodes } = view.data, { nodeShown, frameEntry } = view, place = new Uint32Array(nodes.n),
    collapse = view.options.collapseRecursion;
  place[0] = starts ? NONE : 0;
  for (let i = 1; i < nodes.n; i++) {
    if (!used[i])
      continue;
    const above = place[nodes.parent[i]];
    if (starts && starts[i]) {
      place[i] = 0;
      continue;
    }
    if (above === NONE || !nodeShown[i]) {
      place[i] = above;
      continue;
    }
    const entry = frameEntry[nodes.frame[i]];
    place[i] = collapse && b.entry[above] === entry ? above : childOf(b, above, entry);
  }
  return place;
}

const countRest = (rest: Uint32Array) => rest.reduce((n, rows) => n + (rows ? 1 : 0), 0);

function makeDownward(view: View, root: number, starts: Uint8Array | null): Tree {
  const { rows } = view, { used, count } = nodesWithRows(view);
  const b = newBuilder(count + countRest(rows.rest) + 1, isTwoSided(rows.amounts), root),
    place = placeNodes(b, view, used, starts);
  for (let i = 0; i < rows.n; i++) {
    const at = place[rows.node[i]];
    if (at === NONE)
      continue;
    const node = rows.rest[i] ? childOf(b, at, NONE) : at;
    b.rest[node] += rows.rest[i];
    addSelf(b, node, view, i);
  }
  return finish(b, view);
}

// --- towards the root ---

// Rows with where their amounts go: walks from the leaf to the root.
function makeInverted(view: View, root: number, startOf: (row: number) => number): Tree {
  const { rows, data, nodeShown, frameEntry } = view, { parent, frame } = data.nodes,
    collapse = view.options.collapseRecursion;
  const b = newBuilder(rows.n + 1024, false, root), end = new Uint32Array(rows.n), ends = new Map<number, number>();
  for (let i = 0; i < rows.n; i++) {
    const from = startOf(i), known = rows.rest[i] || from === NONE ? undefined : ends.get(from);
    if (known !== undefined || from === NONE) {
      end[i] = known ?? NONE;
      continue;
    }
    let at = rows.rest[i] && root === NONE ? childOf(b, 0, NONE) : 0;
    if (rows.rest[i])
      b.rest[at] += rows.rest[i];
    for (let node = from; node !== 0; node = parent[node]) {
      if (!nodeShown[node])
        continue;
      const entry = frameEntry[frame[node]];
      if (!(collapse && b.entry[at] === entry))
        at = childOf(b, at, entry);
    }
    end[i] = at;
    if (!rows.rest[i])
      ends.set(from, at);
  }
  b.self = newAmounts(b.n, isTwoSided(rows.amounts));
  b.width = new Float64Array(b.n);
  for (let i = 0; i < rows.n; i++)
    if (end[i] !== NONE)
      addSelf(b, end[i], view, i);
  return finish(b, view);
}

function makeThreads(view: View): Tree {
  const { rows } = view, b = newBuilder(view.entries.n + 1, isTwoSided(rows.amounts), NONE);
  for (let i = 0; i < rows.n; i++)
    addSelf(b, childOf(b, 0, view.labelEntry[rows.labels[i]]), view, i);
  return finish(b, view);
}

// The tree of a view's rows. Inverted: children are callers, and amounts of a whole row stand at its outermost frame.
export function makeTree(view: View, { inverted }: { inverted: boolean }): Tree {
  if (view.options.by === 'thread')
    return makeThreads(view);
  return inverted ? makeInverted(view, NONE, (row) => view.rows.node[row]) : makeDownward(view, NONE, null);
}

// What an entry calls, and who calls it: two trees with the entry as the root. Where it calls itself, the outermost
// appearance counts.
export function sandwich(view: View, entry: number): { callers: Tree; callees: Tree } {
  const { n, parent } = view.data.nodes, starts = new Uint8Array(n), start = new Uint32Array(n).fill(NONE);
  if (view.options.by === 'thread') {
    const only = makeThreads({ ...view, rows: { ...view.rows, n: 0 } });
    return { callers: only, callees: only };
  }
  forOutermost(view, view.frameEntry, view.entries.n, (node, key) => {
    if (key === entry)
      starts[node] = 1;
  });
  for (let i = 1; i < n; i++)
    start[i] = starts[i] ? parent[i] : start[parent[i]];
  return {
    callees: makeDownward(view, entry, starts), callers: makeInverted(view, entry, (row) => start[view.rows.node[row]]),
  };
}
