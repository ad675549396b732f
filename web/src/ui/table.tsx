// All functions (lines, files, …) with what they hold themselves and with their callees.
import type { ComponentChildren } from 'preact';
import { useMemo } from 'preact/hooks';
import * as s from '../settings';
import { moveTo, pickEntry, selectedEntry } from '../selection';
import { matches, totalsCum, totalsFlat, view } from '../state';
import type { Amounts, EntryTotals, Granularity, View } from '../types';
import { Grid, type Column } from './grid';
import { Name } from './name';
import { amountText, changeCell, entryNote, errorAt, percentText } from './numbers';

export const GRANULARITY: Record<Granularity, string> = {
  thread: 'Thread',
  file: 'File',
  binary: 'Binary',
  line: 'Line',
  function: 'Function',
};

function columnsOf(v: View): Column[] {
  const number = (key: string, title: string, width: number, help: string, sortable = false): Column => ({
    key,
    title,
    width,
    help,
    number: true,
    sortable,
  });
  // Of changes both sides may be told: “-83.3 KiB/+54.1 KiB”.
  const error = v.hasError ? [number('error', '±', v.diff ? 164 : 128, '95 % interval')] : [];
  const name: Column = { key: 'name', title: GRANULARITY[v.options.by], sortable: true };
  if (v.diff)
    return [
      number('flat-change', 'Δ flat', 92, 'Change of what it holds itself', true),
      ...error,
      number('flat', 'Flat', 84, 'What it holds itself, in the shown snapshot', true),
      number('cum-change', 'Δ cum', 92, 'Change of what it holds with its callees', true),
      number('cum', 'Cum', 84, 'What it holds with its callees, in the shown snapshot', true),
      { key: 'status', title: 'Change', width: 86, help: 'noise: sampling alone explains it' },
      name,
    ];
  return [
    number('flat', 'Flat', 84, 'What it holds itself', true),
    number('flat-percent', '%', 68, 'Flat in percent of the total'),
    ...error,
    number('cum', 'Cum', 84, 'What it holds with its callees', true),
    number('cum-percent', '%', 68, 'Cum in percent of the total'),
    ...(v.hasError ? [number('cum-error', '±', 128, '95 % interval of cum')] : []),
    name,
  ];
}

// The larger of what both sides hold: entries of zero everywhere are left out.
function holds(amounts: Amounts, i: number): boolean {
  return amounts.now[i] !== 0 || (amounts.base.length > 0 && amounts.base[i] !== 0);
}

function changeOf(amounts: Amounts, i: number): number {
  return amounts.now[i] - (amounts.base[i] ?? 0);
}

function keyOf(v: View, totals: EntryTotals, sort: s.Sort): (i: number) => number {
  const amounts = sort.startsWith('cum') ? totals.cum : totals.flat;
  if (sort.endsWith('change') && v.diff)
    return i => Math.abs(changeOf(amounts, i));
  return i => amounts.now[i];
}

// Equal by one, ordered by the other.
const SECOND: Record<s.Sort, s.Sort> = {
  auto: 'cum',
  name: 'name',
  flat: 'cum',
  cum: 'flat',
  'flat-change': 'cum-change',
  'cum-change': 'flat-change',
};

// Of changes, those beyond noise come first.
export function tableOrder(v: View, totals: EntryTotals, sort: s.Sort, ascending: boolean): Uint32Array {
  const { name } = v.entries;
  const noise = v.diff && !ascending && sort.endsWith('change') ? totals.significant : null;
  const rows: number[] = [];
  for (let i = 0; i < v.entries.n; i++)
    if (holds(totals.cum, i) || holds(totals.flat, i)) rows.push(i);
  const direction = ascending ? 1 : -1;
  const byName = (a: number, b: number) => (name[a] < name[b] ? -1 : name[a] > name[b] ? 1 : a - b);
  if (sort === 'name') {
    rows.sort((a, b) => (ascending ? 1 : -1) * byName(a, b));
  } else {
    const key = keyOf(v, totals, sort);
    const second = keyOf(v, totals, SECOND[sort]);
    const rank = (i: number) => (noise && !noise[i] ? 1 : 0);
    rows.sort(
      (a, b) =>
        rank(a) - rank(b) || direction * (key(a) - key(b)) || direction * (second(a) - second(b)) || byName(a, b)
    );
  }
  return Uint32Array.from(rows);
}

export function statusOf(amounts: Amounts, i: number, significant: Uint8Array | null): string {
  const change = changeOf(amounts, i);
  if (change === 0)
    return '';
  if (significant && !significant[i])
    return 'noise';
  return amounts.base[i] === 0 ? 'new' : amounts.now[i] === 0 ? 'gone' : change > 0 ? 'grown' : 'shrunk';
}

export function Status({ status }: { status: string }) {
  const marks: Record<string, string> = {
    new: '✚ new',
    gone: '✕ gone',
    grown: '▲ grown',
    shrunk: '▼ shrunk',
    noise: '~ noise',
  };
  return status === '' ? null : <span class={`badge ${status}`}>{marks[status] ?? status}</span>;
}

function sortOf(v: View): s.Sort {
  const wanted = s.sort.value;
  if (wanted === 'auto' || (!v.diff && wanted.endsWith('change')))
    return v.diff ? 'flat-change' : 'flat';
  return wanted;
}

export function TableView() {
  const v = view.value;
  const totals = totalsFlat.value;
  const sort = sortOf(v);
  const verdict = sort.startsWith('cum') ? totalsCum.value : totals;
  const order = useMemo(() => tableOrder(v, verdict, sort, s.ascending.value), [v, verdict, sort, s.ascending.value]);
  const place = useMemo(() => {
    const inverse = new Int32Array(v.entries.n).fill(-1);
    order.forEach((entry, row) => {
      inverse[entry] = row;
    });
    return inverse;
  }, [order]);
  const { flat, cum } = totals;
  const cells: Record<string, (i: number) => ComponentChildren> = {
    flat: i => amountText(v, flat.now[i]),
    cum: i => amountText(v, cum.now[i]),
    'flat-percent': i => percentText(flat.now[i], v.totalAll.now),
    'cum-percent': i => percentText(cum.now[i], v.totalAll.now),
    error: i => errorAt(v, flat, i),
    'cum-error': i => errorAt(v, cum, i),
    'flat-change': i => changeCell(v, flat, i),
    'cum-change': i => changeCell(v, cum, i),
    status: i => <Status status={status(i)} />,
    name: i => <Name name={v.entries.name[i]} note={entryNote(v, i)} found={matches.value?.[i] === 1} />,
  };
  const judged = sort.startsWith('cum') ? cum : flat;
  const status = (i: number) => (v.diff ? statusOf(judged, i, v.hasError ? verdict.significant : null) : '');
  const onSort = (key: string) => {
    const known = s.SORTS.find(name => name === key);
    if (!known)
      return;
    s.ascending.value = sort === known ? !s.ascending.value : known === 'name';
    s.sort.value = known;
  };
  return (
    <div class="page">
      <Grid
        label="All entries"
        test="table"
        columns={columnsOf(v)}
        count={order.length}
        selected={place[selectedEntry.value] ?? -1}
        cell={(row, key) => cells[key](order[row])}
        rowClass={row => (status(order[row]) === 'noise' ? 'noise' : '')}
        sort={{ key: sort, ascending: s.ascending.value }}
        onSort={onSort}
        onSelect={(row, byKey) => (byKey ? moveTo(order[row]) : pickEntry(order[row]))}
        onOpen={row => {
          pickEntry(order[row]);
          s.tab.value = 'sandwich';
        }}
        empty="Nothing is left: the filters let no stack through."
      />
    </div>
  );
}
