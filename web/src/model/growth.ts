// What grew over a series of snapshots: the change from the first to the last is that of a diff, with its error, and
// the values of all snapshots are there to be drawn.
import type { Amounts, PageData, View, ViewOptions } from '../types';
import { NONE } from '../types';
import { changeAt, holdsAt } from './amounts';
import { entryTotals, forOutermost, judge, nameRanks, nearestShown } from './totals';
import { listTraces, traceGroups } from './traces';
import { makeView, passingRows, rowStacks } from './view';

export type Status = 'unchanged' | 'new' | 'gone' | 'grown' | 'shrunk';

export interface Growth {
  view: View;                         // the diff of first and last
  n: number;
  entry: Uint32Array;                 // of each item: the entry; of stacks: NONE
  row: Uint32Array;                   // of stacks: a row of the view, whose stack and thread it is
  values: Float64Array[];             // of each snapshot, oldest first
  amounts: Amounts;
  pValue: Float64Array; significant: Uint8Array;
  status: Status[];
  order: Uint32Array;                 // items that changed: significant ones first, then by size
  unchanged: number;                  // items that hold something but did not change
}

function statusOf(a: Amounts, i: number): Status {
  const change = changeAt(a, i);
  if (a.base[i] === 0 || a.now[i] === 0)
    return change === 0 ? 'unchanged' : a.base[i] === 0 ? 'new' : 'gone';
  return change > 0 ? 'grown' : change < 0 ? 'shrunk' : 'unchanged';
}

function rank(view: View, amounts: Amounts, place: (i: number) => number): Pick<Growth,
    'pValue' | 'significant' | 'status' | 'order' | 'unchanged'> {
  const verdict = judge(view, amounts), ids = Array.from({ length: amounts.n }, (_, i) => i);
  const size = Float64Array.from(ids, (i) => Math.abs(changeAt(amounts, i)));
  const order = ids.filter((i) => size[i] !== 0)
    .sort((a, b) => verdict.significant[b] - verdict.significant[a] || size[b] - size[a] || place(a) - place(b));
  return {
    ...verdict, status: ids.map((i) => statusOf(amounts, i)), order: Uint32Array.from(order),
    unchanged: ids.reduce((n, i) => n + (size[i] === 0 && holdsAt(amounts, i) ? 1 : 0), 0),
  };
}

// Values of all rows that pass the filters, given to where they belong.
function forValues(view: View, give: (snapshot: number, row: number, value: number) => void): void {
  const { data, options } = view, values = data.rows.values[options.column], passing = passingRows(view);
  for (let i = 0; i < data.rows.n; i++)
    if (passing[i] && values[i] !== 0)
      give(data.sources[data.rows.source[i]].snapshot, i, values[i]);
}

const emptyValues = (data: PageData, n: number) => data.snapshots.map(() => new Float64Array(n));

function entryValues(view: View, sort: 'flat' | 'cum'): Float64Array[] {
  const { data, entries } = view, { nodes, rows } = data, values = emptyValues(data, entries.n);
  if (view.options.by === 'thread') {
    forValues(view, (snapshot, row, value) => values[snapshot][view.labelEntry[rows.labels[row]]] += value);
    return values;
  }
  if (sort === 'flat') {
    const leaf = nearestShown(view);
    forValues(view, (snapshot, row, value) => {
      const node = leaf[rows.node[row]];
      if (node !== 0 && rows.rest[row] === 0)
        values[snapshot][view.frameEntry[nodes.frame[node]]] += value;
    });
    return values;
  }
  const sums = emptyValues(data, nodes.n);
  forValues(view, (snapshot, row, value) => sums[snapshot][rows.node[row]] += value);
  for (const sum of sums)
    for (let i = nodes.n - 1; i > 0; i--)
      sum[nodes.parent[i]] += sum[i];
  forOutermost(view, view.frameEntry, entries.n, (node, entry) => {
    for (let k = 0; k < sums.length; k++)
      values[k][entry] += sums[k][node];
  });
  return values;
}

function growthOfStacks(view: View): Growth {
  const list = listTraces(view), { data } = view, { rows } = data, stacks = rowStacks(data),
    values = emptyValues(data, list.n);
  const { group } = traceGroups(view);
  // Traces are in the order of their stacks, and a stack has few.
  const first = new Int32Array((stacks.at(-1) ?? 0) + 1).fill(-1);
  for (let i = list.n; i-- > 0;)
    first[list.stack[i]] = i;
  forValues(view, (snapshot, row, value) => {
    const stack = stacks[row], thread = group[rows.labels[row]];
    for (let i = first[stack]; i >= 0 && i < list.n && list.stack[i] === stack; i++)
      if (list.group[i] === thread && (view.rows.rest[list.row[i]] > 0) === (rows.rest[row] > 0)) {
        values[snapshot][i] += value;
        break;
      }
  });
  return {
    view, n: list.n, entry: new Uint32Array(list.n).fill(NONE), row: list.row, values, amounts: list.amounts,
    ...rank(view, list.amounts, (i) => i),
  };
}

// What grew from the first snapshot to the last, by entry or by stack and thread. Snapshots and base of the options
// don't count.
export function growth(data: PageData, options: ViewOptions, of: 'entries' | 'stacks', sort: 'flat' | 'cum'): Growth {
  const view = makeView(data, { ...options, base: 0, at: data.snapshots.length - 1 });
  if (of === 'stacks')
    return growthOfStacks(view);
  const amounts = entryTotals(view, sort)[sort], place = nameRanks(view.entries);
  return {
    view, n: view.entries.n, entry: Uint32Array.from({ length: view.entries.n }, (_, i) => i),
    row: new Uint32Array(view.entries.n).fill(NONE),
    values: entryValues(view, sort), amounts, ...rank(view, amounts, (i) => place[i]),
  };
}
