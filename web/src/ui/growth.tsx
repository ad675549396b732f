// What grew, first: over all snapshots, by function or by stack. Each row tells how it went, by how much it changed
// from the first snapshot to the last, and whether sampling alone explains that.
import { batch } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { entriesOf, type Growth } from '../model';
import { pickEntry, pickFrames, selectedEntry, selectedStack } from '../selection';
import * as s from '../settings';
import { growthNow, growthObjects, matches, theData } from '../state';
import { NONE, type View } from '../types';
import { Grid, type Column } from './grid';
import { Name, shownName } from './name';
import { amountText, changeCell, countText, entryNote, errorAt } from './numbers';
import { usePicked } from './picked';
import { RankSwitches } from './rank_switches';
import { Spark } from './spark';
import { GRANULARITY, Status } from './table';

const SHOWN_CALLERS = 4;

const COLUMNS: Column[] = [
  { key: 'spark', title: 'Over time', width: 112, help: 'All snapshots, from zero' },
  {
    key: 'growth',
    title: 'Growth',
    width: 96,
    number: true,
    sortable: true,
    help: 'From the first snapshot to the last',
  },
  { key: 'error', title: '±', width: 164, number: true, help: '95 % interval of the growth' },
  { key: 'now', title: 'Now', width: 84, number: true, sortable: true, help: 'In the last snapshot' },
  { key: 'objects', title: 'Objects', width: 80, number: true, sortable: true, help: 'Blocks in the last snapshot' },
  { key: 'status', title: 'Status', width: 84 },
];

// Changes beyond noise first, the biggest growth at the top; then the noise.
function orderOf(g: Growth, objects: Float64Array | null, sort: s.RankSort, ascending: boolean): Uint32Array {
  const { amounts, entry, significant, order } = g;
  const { name } = g.view.entries;
  const change = (i: number) => amounts.now[i] - amounts.base[i];
  const place = new Int32Array(g.n);
  order.forEach((item, at) => {
    place[item] = at;
  });
  const by: Record<s.RankSort, (a: number, b: number) => number> = {
    growth: (a, b) => (ascending ? change(b) - change(a) : significant[b] - significant[a] || change(b) - change(a)),
    now: (a, b) => amounts.now[b] - amounts.now[a],
    objects: (a, b) => (objects?.[b] ?? 0) - (objects?.[a] ?? 0),
    name: (a, b) =>
      entry[a] === NONE ? 0 : name[entry[a]] < name[entry[b]] ? 1 : name[entry[a]] > name[entry[b]] ? -1 : 0,
  };
  const direction = ascending ? -1 : 1;
  return order.slice().sort((a, b) => direction * by[sort](a, b) || place[a] - place[b]);
}

function StackName({ v, frames }: { v: View; frames: readonly number[] }) {
  const words = frames
    .slice(0, SHOWN_CALLERS + 1)
    .map(frame => (frame === NONE ? '(other)' : shownName(v.entries.name[frame], 60)));
  return (
    <span
      class="name"
      title={frames
        .slice(0, 40)
        .map(frame => (frame === NONE ? '(other)' : shownName(v.entries.name[frame], 100)))
        .join('\n')}>
      {words[0]}
      <span class="dim">
        {words
          .slice(1)
          .map(word => ` ← ${word}`)
          .join('')}
        {frames.length > SHOWN_CALLERS + 1 ? ' ← …' : ''}
      </span>
    </span>
  );
}

function framesOf(g: Growth, item: number): number[] | null {
  return g.row[item] === NONE ? null : entriesOf(g.view, g.row[item]);
}

function statusShown(g: Growth, item: number): string {
  return g.view.hasError && !g.significant[item] ? 'noise' : g.status[item];
}

function cellOf(g: Growth, objects: Float64Array | null, item: number, key: string) {
  const v = g.view;
  const entry = g.entry[item];
  switch (key) {
    case 'spark':
      return <Spark values={g.values.map(values => values[item])} />;
    case 'growth':
      return changeCell(v, g.amounts, item);
    case 'error':
      return errorAt(v, g.amounts, item);
    case 'now':
      return amountText(v, g.amounts.now[item]);
    case 'objects':
      return objects ? countText(objects[item]) : '';
    case 'status':
      return <Status status={statusShown(g, item)} />;
    default:
      return entry === NONE ? (
        <StackName v={v} frames={framesOf(g, item) ?? []} />
      ) : (
        <Name name={v.entries.name[entry]} note={entryNote(v, entry)} found={matches.value?.[entry] === 1} />
      );
  }
}

// Growth shares its entries with every view of the same block and granularity: what is selected here is selected there.
function selectedItem(g: Growth, order: Uint32Array): number {
  const stack = selectedStack.value;
  const entry = selectedEntry.value;
  if (entry === NONE)
    return -1;
  if (s.rankBy.value !== 'stack')
    return order.findIndex(item => g.entry[item] === entry);
  return stack
    ? order.findIndex(item => {
        const frames = framesOf(g, item)!;
        return frames.length === stack.frames.length && frames.every((frame, i) => frame === stack.frames[i]);
      })
    : -1;
}

function Ranking() {
  const g = growthNow.value;
  const objects = growthObjects.value;
  const byStack = s.rankBy.value === 'stack';
  const [sort, up] = [s.rankSort.value, s.rankUp.value];
  const order = useMemo(() => orderOf(g, objects, sort, up), [g, objects, sort, up]);
  const picked = usePicked(order);
  const found = useMemo(() => selectedItem(g, order), [order, selectedStack.value, selectedEntry.value]);
  const selected = picked.row >= 0 ? picked.row : found;
  const pick = (row: number, byKey: boolean) => {
    const frames = framesOf(g, order[row]);
    const change = () => (frames ? picked.pick(row, () => pickFrames(frames)) : pickEntry(g.entry[order[row]]));
    if (byKey)
      s.quietly(change);
    else
      change();
  };
  const onSort = (key: string) => {
    const known = s.RANK_SORTS.find(name => name === key);
    if (known)
      batch(() => {
        s.rankUp.value = s.rankSort.value === known && !s.rankUp.value;
        s.rankSort.value = known;
      });
  };
  return (
    <Grid
      label="Growth"
      test="growth"
      count={order.length}
      selected={selected}
      columns={[
        ...COLUMNS.filter(({ key }) => (key === 'objects' ? objects !== null : key !== 'error' || g.view.hasError)),
        {
          key: 'name',
          title: byStack ? 'Stack (what allocated first)' : GRANULARITY[g.view.options.by],
          sortable: !byStack,
        },
      ]}
      cell={(row, key) => cellOf(g, objects, order[row], key)}
      rowClass={row => (statusShown(g, order[row]) === 'noise' ? 'noise' : '')}
      sort={{ key: sort, ascending: up }}
      onSort={onSort}
      onSelect={pick}
      onOpen={row => {
        pick(row, false);
        s.tab.value = 'sandwich';
      }}
      empty="Nothing changed between the first and the last snapshot, as far as the filters let it through."
    />
  );
}

export function GrowthView() {
  const { snapshots } = theData();
  if (snapshots.length < 2)
    return (
      <div class="page">
        <p class="empty" data-test="growth-empty">
          Growth needs two snapshots or more of one process: “heapgauge view EARLIER.heap LATER.heap”. The flame graph
          and the table show this one.
        </p>
      </div>
    );
  const g = growthNow.value;
  return (
    <div class="page">
      <div class="switches">
        <RankSwitches by={g.view.options.by} />
        <span class="dim">
          From the first of {snapshots.length} snapshots to the last
          {g.unchanged > 0 && `; ${g.unchanged.toLocaleString('en')} that did not change are left out`}
        </span>
      </div>
      <Ranking />
    </div>
  );
}
