// Flat and cumulative amounts. Flat goes to the leaf of each row; cum once to every entry of a row, however often
// recursion repeats it: an amount is that of the outermost nodes of the entry, of all that is below them.
import type { Amounts, EntryTotals, Entries, View } from '../types';
import { NONE } from '../types';
import { addAmount, changeAt, holdsAt, isTwoSided, newAmounts, pValueOf } from './amounts';
import { significant } from './estimate';

// Sums of the rows at and below each node of the block.
export function nodeTotals(view: View): Amounts {
  const { nodes } = view.data, { rows } = view, totals = newAmounts(nodes.n, isTwoSided(rows.amounts));
  for (let i = 0; i < rows.n; i++)
    addAmount(totals, rows.node[i], rows.amounts, i);
  for (let i = nodes.n - 1; i > 0; i--)
    if (holdsAnything(totals, i))
      addAmount(totals, nodes.parent[i], totals, i);
  return totals;
}

// Also what cancels out, or is nothing but an error.
const holdsAnything = (a: Amounts, i: number) =>
  holdsAt(a, i) || a.variance[i] !== 0 || a.weight[i] !== 0
    || (isTwoSided(a) && (a.lostVariance[i] !== 0 || a.lostWeight[i] !== 0));

// Calls back for each shown node whose key (of its frame) does not stand above it already.
export function forOutermost(view: View, frameKey: Uint32Array, nKeys: number,
    found: (node: number, key: number) => void): void {
  const { n, frame, depth } = view.data.nodes, openedBy = new Uint32Array(nKeys), path = new Uint32Array(n + 1);
  for (let i = 1, above = 0; i < n; i++) {
    // Leave the nodes that are not above this one.
    for (; above >= depth[i]; above--) {
      const key = path[above];
      if (key !== 0 && openedBy[key - 1] === above)
        openedBy[key - 1] = 0;
    }
    above = depth[i];
    const key = frameKey[frame[i]];
    path[above] = 0;
    if (key === NONE || !view.nodeShown[i])
      continue;
    path[above] = key + 1;
    if (openedBy[key] !== 0)
      continue;
    openedBy[key] = above;
    found(i, key);
  }
}

// Amounts of keys that frames have; NONE: none.
export function totalsBy(view: View, frameKey: Uint32Array, nKeys: number): { flat: Amounts; cum: Amounts } {
  const { data, rows } = view, two = isTwoSided(rows.amounts), flat = newAmounts(nKeys, two),
    cum = newAmounts(nKeys, two);
  const shownAbove = nearestShown(view), totals = nodeTotals(view);
  for (let i = 0; i < rows.n; i++) {
    const leaf = shownAbove[rows.node[i]], key = leaf === 0 ? NONE : frameKey[data.nodes.frame[leaf]];
    if (key !== NONE && rows.rest[i] === 0)
      addAmount(flat, key, rows.amounts, i);
  }
  forOutermost(view, frameKey, nKeys, (node, key) => addAmount(cum, key, totals, node));
  return { flat, cum };
}

// Of each node itself, or the next shown one above it; 0: none.
export function nearestShown(view: View): Uint32Array {
  const { n, parent } = view.data.nodes, nearest = new Uint32Array(n);
  for (let i = 1; i < n; i++)
    nearest[i] = view.nodeShown[i] ? i : nearest[parent[i]];
  return nearest;
}

function threadTotals(view: View): { flat: Amounts; cum: Amounts } {
  const { rows, labelEntry } = view, flat = newAmounts(view.entries.n, isTwoSided(rows.amounts));
  for (let i = 0; i < rows.n; i++)
    addAmount(flat, labelEntry[rows.labels[i]], rows.amounts, i);
  return { flat, cum: flat };
}

// p-values of changes and which stay significant together; those that hold nothing would dilute the correction.
export function judge(view: View, amounts: Amounts): { pValue: Float64Array; significant: Uint8Array } {
  const pValue = new Float64Array(amounts.n).fill(1), tested: number[] = [];
  for (let i = 0; i < amounts.n; i++)
    if (holdsAt(amounts, i)) {
      pValue[i] = pValueOf(amounts, i, view);
      tested.push(i);
    }
  const flags = significant(Float64Array.from(tested, (i) => pValue[i])), all = new Uint8Array(amounts.n);
  tested.forEach((i, k) => all[i] = flags[k]);
  return { pValue, significant: all };
}

// Totals per entry, as view_totals() has them; of a diff also the verdict on the amounts sorted by.
export function entryTotals(view: View, sort: 'flat' | 'cum'): EntryTotals {
  const totals = view.options.by === 'thread' ? threadTotals(view) : totalsBy(view, view.frameEntry, view.entries.n);
  const verdict = view.diff ? judge(view, totals[sort]) : null;
  return { ...totals, pValue: verdict?.pValue ?? null, significant: verdict?.significant ?? null };
}

const ranks = new WeakMap<Entries, Uint32Array>();

// Place of each entry in the order of names: for ties.
export function nameRanks(entries: Entries): Uint32Array {
  const before = ranks.get(entries);
  if (before)
    return before;
  const order = Uint32Array.from({ length: entries.n }, (_, i) => i), rank = new Uint32Array(entries.n),
    { name } = entries;
  order.sort((a, b) => name[a] < name[b] ? -1 : name[a] > name[b] ? 1 : a - b);
  order.forEach((entry, i) => rank[entry] = i);
  ranks.set(entries, rank);
  return rank;
}

// Entries in the order that tables list them (rank_entries() of src/report/rank.c): the biggest first; of a diff those
// that changed, what is significant first.
export function rankEntries(view: View, totals: EntryTotals, sort: 'flat' | 'cum'): Uint32Array {
  const first = totals[sort], second = totals[sort === 'flat' ? 'cum' : 'flat'], rank = nameRanks(view.entries);
  const sizes = [first, second].map((a) => Float64Array.from({ length: a.n },
    (_, i) => Math.abs(view.diff ? changeAt(a, i) : a.now[i])));
  const kept = (i: number) => view.diff ? sizes[0][i] !== 0 || sizes[1][i] !== 0 : holdsAt(totals.cum, i);
  const noise = (i: number) => totals.significant && !totals.significant[i] ? 1 : 0;
  return Uint32Array.from({ length: view.entries.n }, (_, i) => i).filter(kept).sort((a, b) => noise(a) - noise(b)
    || sizes[0][b] - sizes[0][a] || sizes[1][b] - sizes[1][a] || rank[a] - rank[b]);
}
