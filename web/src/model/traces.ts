// Whole stacks, biggest first, as src/report/traces.c: rows with one stack and labels are one trace; in a diff labels
// other than the thread don't count, since the two sides may know different block sizes.
import type { Amount, Amounts, View } from '../types';
import { addAmount, amountAt, changeAt, firstAmounts, isTwoSided, newAmounts } from './amounts';
import { threadKeys } from './entries';
import { judge } from './totals';
import { rowStacks } from './view';

// All traces: of each its first row of the view, and what tells it from others of its stack.
export interface TraceList { n: number; row: Uint32Array; stack: Uint32Array; group: Uint32Array; amounts: Amounts }

export interface Trace {
  node: number;                        // of the block: the leaf
  entries: number[];                   // leaf first
  amount: Amount;
  significant: boolean | null;         // of a diff with errors
  companion: { base: number; now: number } | null;   // objects of a space metric, bytes of an objects metric
  // not of diffs: other labels, bytes of every block (0: they differ)
  thread: string; labels: string; blockSize: number;
  rest: number;                        // of an (other): how many rows it stands for
}

// Per label set what tells traces of one stack apart: the set, in a diff the thread as the diff knows it.
export function traceGroups(view: View): { group: Uint32Array; thread: string[] } {
  const thread = threadKeys(view.data, view.diff && !view.oneProcess, view.options.by), numbers = new Map<string,
    number>();
  const group = Uint32Array.from(thread, (key, i) => {
    numbers.set(key, numbers.get(key) ?? numbers.size);
    return view.diff ? numbers.get(key)! : i;
  });
  return { group, thread };
}

// Rows of a view come in the order of their stacks, so a trace's are never far from each other.
export function listTraces(view: View): TraceList {
  const { rows } = view, row = new Uint32Array(rows.n), stack = new Uint32Array(rows.n),
    group = new Uint32Array(rows.n);
  const amounts = newAmounts(rows.n, isTwoSided(rows.amounts)), places = new Map<number, number>(),
    groups = traceGroups(view).group;
  let n = 0;
  for (let i = 0; i < rows.n; i++) {
    const key = 2 * groups[rows.labels[i]] + (rows.rest[i] ? 1 : 0);
    if (i > 0 && rows.stack[i] !== rows.stack[i - 1])
      places.clear();
    let at = places.get(key);
    if (at === undefined) {
      at = n++;
      places.set(key, at);
      row[at] = i;
      stack[at] = rows.stack[i];
      group[at] = groups[rows.labels[i]];
    }
    addAmount(amounts, at, rows.amounts, i);
  }
  return { n, row: row.slice(0, n), stack: stack.slice(0, n), group: group.slice(0, n),
    amounts: firstAmounts(amounts, n) };
}

// The column that holds the objects of a space metric, or the bytes of an objects metric; -1: none.
export function companionColumn(view: View): number {
  const { metric } = view.data, m = metric.indexOf(view.options.column);
  return m < 0 || view.options.column < 0 ? -1 : metric[m ^ 1];
}

function addCompanions(view: View, shown: number[], list: TraceList, traces: Trace[]): void {
  const { data, options } = view, { rows } = data, column = companionColumn(view), stacks = rowStacks(data),
    { group } = traceGroups(view);
  if (column < 0)
    return;
  const places = new Map<string, Trace>();
  shown.forEach((t, i) => {
    traces[i].companion = { base: 0, now: 0 };
    places.set(`${list.stack[t]} ${list.group[t]} ${traces[i].rest > 0}`, traces[i]);
  });
  const wanted = new Set(shown.map((t) => list.stack[t]));
  for (let i = 0; i < rows.n; i++) {
    const { snapshot } = data.sources[rows.source[i]];
    if ((snapshot !== options.at && snapshot !== options.base) || !wanted.has(stacks[i]))
      continue;
    const companion = places.get(`${stacks[i]} ${group[rows.labels[i]]} ${rows.rest[i] > 0}`)?.companion;
    if (companion)
      companion[snapshot === options.at ? 'now' : 'base'] += rows.values[column][i];
  }
}

// Entries of a row, leaf first.
export function entriesOf(view: View, row: number): number[] {
  const { data, rows } = view, { parent, frame } = data.nodes, entries: number[] = [];
  if (view.options.by === 'thread')
    return [view.labelEntry[rows.labels[row]]];
  for (let node = rows.node[row]; node !== 0; node = parent[node])
    if (view.nodeShown[node])
      entries.push(view.frameEntry[frame[node]]);
  return entries;
}

// The n biggest stacks (0: all), and how many there are.
export function traces(view: View, n: number): { all: number; traces: Trace[] } {
  const list = listTraces(view), { rows, data } = view, { strings, labels } = data, threads = traceGroups(view).thread;
  const beyond = view.diff ? judge(view, list.amounts).significant : null;
  const size = Float64Array.from({ length: list.n }, (_, i) => Math.abs(changeAt(list.amounts, i)));
  const order = Array.from(size.keys()).filter((i) => !view.diff || size[i] !== 0)
    .sort((a, b) => (beyond ? beyond[b] - beyond[a] : 0) || size[b] - size[a] || a - b);
  const shown = n ? order.slice(0, n) : order;
  const made = shown.map((t): Trace => {
    const row = list.row[t], set = rows.labels[row];
    return {
      node: rows.node[row], entries: entriesOf(view, row), amount: amountAt(list.amounts, t),
      significant: beyond && view.hasError ? beyond[t] === 1 : null, companion: null, thread: threads[set],
      labels: view.diff ? '' : strings[labels.text[set]], blockSize: view.diff ? 0 : labels.size[set],
      rest: rows.rest[row],
    };
  });
  addCompanions(view, shown, list, made);
  return { all: order.length, traces: made };
}

