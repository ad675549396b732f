// What follows from the block and the settings. Nothing is computed before a view that shows asks for it, and nothing
// twice: each part depends on the settings that it reads and on no others.
import { computed, signal } from '@preact/signals';
import { entryTotals, FilterError, type Growth, growth, makeTree, makeView, passingRows, treeChanges } from './model';
import type { EntryTotals, PageData, View, ViewOptions } from './types';
import * as s from './settings';

export const data = signal<PageData | null>(null);

// For what is only drawn when there are data.
export function theData(): PageData {
  if (!data.value)
    throw new Error('no data yet');
  return data.value;
}

export const column = computed(() => {
  const { types, defaultType } = theData();
  const named = types.findIndex(type => type.type === s.metric.value);
  return named < 0 ? defaultType : named;
});

export const atIndex = computed(() => {
  const last = theData().snapshots.length - 1;
  return s.at.value === null ? last : Math.min(s.at.value, last);
});

export const baseIndex = computed(() => {
  const wanted = s.base.value;
  return wanted === null || wanted >= theData().snapshots.length || wanted === atIndex.value ? null : wanted;
});

export const options = computed<ViewOptions>(() => ({
  column: column.value,
  at: atIndex.value,
  base: baseIndex.value,
  by: s.by.value,
  focus: s.focus.value,
  ignore: s.ignore.value,
  hide: s.hide.value,
  show: s.show.value,
  showFrom: s.showFrom.value,
  binary: s.binary.value,
  thread: s.thread.value,
  collapseRecursion: s.collapse.value,
}));

interface Attempt {
  view: View;
  error: FilterError | null;
}
let lastGood: View | null = null;

// A bad expression leaves the picture as it was, and is marked where it was typed.
const attempt = computed<Attempt>(() => {
  const wanted = options.value;
  try {
    lastGood = makeView(theData(), wanted);
    return { view: lastGood, error: null };
  } catch (error) {
    if (!(error instanceof FilterError))
      throw error;
    if (lastGood?.data !== theData())
      lastGood = makeView(theData(), { ...wanted, focus: '', ignore: '', hide: '', show: '', showFrom: '' });
    return { view: lastGood, error };
  }
});

export const view = computed(() => attempt.value.view);
export const filterError = computed(() => attempt.value.error);

// Of every snapshot what the filters let through.
export const snapshotTotals = computed(() => {
  const { rows, sources, snapshots } = theData();
  const passing = passingRows(view.value);
  const values = rows.values[view.value.options.column];
  const totals = snapshots.map(() => 0);
  for (let i = 0; i < rows.n; i++)
    if (passing[i]) totals[sources[rows.source[i]].snapshot] += values[i];
  return totals;
});

export const treeDown = computed(() => makeTree(view.value, { inverted: false }));
export const treeUp = computed(() => makeTree(view.value, { inverted: true }));
export const tree = computed(() => (s.inverted.value ? treeUp.value : treeDown.value));
export const changes = computed(() => (view.value.diff ? treeChanges(view.value, tree.value) : null));

export const totalsFlat = computed<EntryTotals>(() => entryTotals(view.value, 'flat'));
// The same amounts; of a diff, judged by cum.
export const totalsCum = computed<EntryTotals>(() =>
  view.value.diff ? entryTotals(view.value, 'cum') : totalsFlat.value
);

// --- search ---

// Small letters find both; a capital means what it says.
const expression = computed<{ expression: RegExp | null; error: string | null }>(() => {
  const text = s.search.value;
  if (text === '')
    return { expression: null, error: null };
  try {
    const made = new RegExp(text, /[A-Z]/.test(text.replace(/\\./g, '')) ? '' : 'i');
    // Those that are too large fail when they are first used.
    made.test('');
    return { expression: made, error: null };
  } catch (error) {
    return {
      expression: null,
      error: error instanceof Error ? error.message.replace(/^Invalid regular expression: /, '') : String(error),
    };
  }
});

export const searchError = computed(() => expression.value.error);

const LONGEST_SEARCHED = 20_000; // of a name: an expression may take time that grows with it

export const matches = computed<Uint8Array | null>(() => {
  const wanted = expression.value.expression;
  if (!wanted)
    return null;
  const { entries } = view.value;
  const found = new Uint8Array(entries.n);
  for (let i = 0; i < entries.n; i++)
    found[i] = wanted.test(entries.name[i].slice(0, LONGEST_SEARCHED)) || wanted.test(entries.file[i]) ? 1 : 0;
  return found;
});

// What the search finds, biggest first.
export const found = computed<Uint32Array | null>(() => {
  const marked = matches.value;
  if (!marked)
    return null;
  const { cum } = totalsFlat.value;
  const size = (i: number) => Math.max(cum.now[i], cum.base[i] ?? 0);
  const list: number[] = [];
  marked.forEach((mark, i) => {
    if (mark && size(i) !== 0)
      list.push(i);
  });
  return Uint32Array.from(list.sort((a, b) => size(b) - size(a) || a - b));
});

// --- what is open ---

export const helpOpen = signal(false);
export const exportOpen = signal(false);

// --- growth ---

export const growthNow = computed<Growth>(() =>
  growth(theData(), view.value.options, s.rankBy.value === 'stack' ? 'stacks' : 'entries', s.rankOf.value)
);

// What tells rows of the ranking by stack apart: stack, thread, and whether it is an (other).
function stackKey(of: View, row: number): number {
  const { stack, labels, rest } = of.rows;
  return (stack[row] * of.data.strings.length + of.data.labels.thread[labels[row]]) * 2 + (rest[row] > 0 ? 1 : 0);
}

function objectsOfStacks(g: Growth, last: View): Float64Array {
  const sums = new Map<number, number>();
  for (let row = 0; row < last.rows.n; row++) {
    const key = stackKey(last, row);
    sums.set(key, (sums.get(key) ?? 0) + last.rows.amounts.now[row]);
  }
  return Float64Array.from(g.row, row => sums.get(stackKey(g.view, row)) ?? 0);
}

// Blocks of each item of the ranking in the last snapshot, when the metric is their bytes.
export const growthObjects = computed<Float64Array | null>(() => {
  const g = growthNow.value;
  const { metric } = g.view.data;
  const kind = metric.indexOf(g.view.options.column);
  const objects = kind < 0 ? -1 : metric[kind & ~1];
  // Threads of two processes are known by name, those of one by number, too.
  if (objects < 0 || (g.view.options.by === 'thread' && !g.view.oneProcess))
    return null;
  const last = makeView(g.view.data, { ...g.view.options, column: objects, base: null });
  return s.rankBy.value === 'stack' ? objectsOfStacks(g, last) : entryTotals(last, s.rankOf.value)[s.rankOf.value].now;
});
