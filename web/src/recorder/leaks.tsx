// The ranking that the page lands on: what grows over the range, how fast, how surely, and in what shape. The recorder
// computes it, from many moments of the range; a row that is picked is selected in the profile that the other views show.
import { batch } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import { changeText as change, visible, amountText as amount } from '../model';
import { pickEntry, pickFrames, selectedEntry, selectedStack } from '../selection';
import * as s from '../settings';
import { data, view } from '../state';
import { NONE } from '../types';
import { Grid, type Column } from '../ui/grid';
import { cutMiddle, shownName } from '../ui/name';
import { RankSwitches } from '../ui/rank_switches';
import { Spark } from '../ui/spark';
import type { Leak, Leaks } from './api';
import { every, leaks } from './state';
import { agoText } from './times';

const SHOWN_CALLERS = 4;

const COLUMNS: Column[] = [
  { key: 'spark', title: 'Over time', width: 112, help: 'At moments of the range, from zero' },
  { key: 'rate', title: 'Growth', width: 104, number: true, help: 'How fast it grows' },
  { key: 'interval', title: '95 % interval', width: 176, number: true, help: 'The true rate lies in it, 19 times of 20' },
  { key: 'change', title: 'Change', width: 92, number: true, help: 'From the first moment to the last' },
  { key: 'now', title: 'Last', width: 84, number: true, help: 'At the last moment' },
  { key: 'shape', title: 'Shape', width: 96, help: 'How it went: a leak is steady, or new and steady since' },
];

const BADGES: Record<string, string> = { noise: 'noise', flat: 'noise', shrinking: 'shrunk', gone: 'shrunk' };

function Shape({ of }: { of: Leak }) {
  const kind = of.steady ? 'grown' : (BADGES[of.shape] ?? 'plain');
  return <span class={`badge ${kind}`}>{of.shape}</span>;
}

const perText = ({ per }: Leaks) => (per === 'hour' ? '/h' : '/step');

function intervalText(of: Leaks, { rate }: Leak): string {
  if (!rate || rate.low === null || rate.high === null)
    return '';
  return `${change(of.unit, rate.low)} … ${change(of.unit, rate.high)}`;
}

function names(row: Leak): string[] {
  return row.frames ? row.frames.map(({ name }) => name) : [row.name ?? ''];
}

function RowName({ row }: { row: Leak }) {
  const list = names(row);
  const [first, ...callers] = list.slice(0, SHOWN_CALLERS + 1).map(name => shownName(name, 60));
  return (
    <span
      class="name"
      title={list
        .slice(0, 40)
        .map(name => shownName(name, 100))
        .join('\n')}>
      {row.frames ? first : shownName(list[0])}
      {row.frames && (
        <span class="dim">
          {callers.map(name => ` ← ${name}`).join('')}
          {list.length > SHOWN_CALLERS + 1 ? ' ← …' : ''}
        </span>
      )}
    </span>
  );
}

function cellOf(of: Leaks, row: Leak, key: string) {
  switch (key) {
    case 'spark':
      return <Spark values={row.values} />;
    case 'rate':
      return row.rate ? change(of.unit, row.rate.value) + perText(of) : '';
    case 'interval':
      return intervalText(of, row);
    case 'change':
      return change(of.unit, row.change);
    case 'now':
      return amount(of.unit, row.values.at(-1) ?? 0);
    case 'shape':
      return <Shape of={row} />;
    default:
      return <RowName row={row} />;
  }
}

// In the profile that the other views show things are known by name.
function pick(row: Leak) {
  if (!data.value)
    return;
  const { entries } = view.value;
  const places = new Map<string, number>();
  for (let i = entries.n; i-- > 0;)
    places.set(entries.name[i], i);
  const list = names(row).map(name => places.get(name) ?? NONE);
  if (row.frames && !list.includes(NONE))
    pickFrames(list);
  else
    pickEntry(list[0]);
}

function isSelected(row: Leak): boolean {
  if (!data.value || selectedEntry.value === NONE)
    return false;
  const { entries } = view.value;
  const stack = selectedStack.value;
  const list = names(row);
  if (!row.frames)
    return entries.name[selectedEntry.value] === list[0];
  return (
    stack !== null
    && stack.frames.length === list.length
    && stack.frames.every((frame, i) => frame !== NONE && entries.name[frame] === list[i])
  );
}

function Together({ of }: { of: Leaks }) {
  const { total } = of;
  if (!total?.rate)
    return null;
  return (
    <span class="together" data-test="leaks-total">
      All together <b>{change(of.unit, total.rate.value) + perText(of)}</b>{' '}
      <span class="dim">
        ({intervalText(of, total)}), {total.shape}
      </span>
    </span>
  );
}

function Switches({ of }: { of: Leaks | null }) {
  return (
    <div class="switches">
      <RankSwitches by={s.by.value} />
      <label class="check">
        <input
          type="checkbox"
          data-test="leaks-every"
          checked={every.value}
          onChange={event => {
            every.value = event.currentTarget.checked;
          }}
        />
        also noise and what shrank
      </label>
      {of && <Together of={of} />}
    </div>
  );
}

function Said({ of }: { of: Leaks }) {
  const length = (of.times.at(-1) ?? 0) - (of.times[0] ?? 0);
  const filters = [s.hide, s.show, s.showFrom, s.binary].some(filter => filter.value !== '') || s.thread.value !== null;
  return (
    <p class="said dim" data-test="leaks-said">
      {of.per === 'hour' && `${of.times.length} moments, ${agoText(length * 1000).replace(' ago', '')}. `}
      {of.rows_steady === 0
        ? 'Nothing grows steadily. '
        : `${of.rows_steady.toLocaleString('en')} of ${of.rows_total.toLocaleString('en')} grow${of.rows_steady === 1 ? 's' : ''} steadily. `}
      {of.advice ? `${visible(cutMiddle(of.advice, 400))} ` : ''}
      {of.notes.slice(0, 4).map(note => `${visible(cutMiddle(note, 400))} `)}
      {filters && 'Of the filters only Focus and Ignore count here.'}
    </p>
  );
}

export function LeaksView() {
  const of = leaks.answer.value;
  const trouble = leaks.trouble.value;
  const rows = of?.rows ?? [];
  const selected = useMemo(
    () => rows.findIndex(isSelected),
    [rows, selectedEntryOf(), s.stack.value, s.selected.value]
  );
  const open = (row: number, byKey: boolean) => {
    const change = () => pick(rows[row]);
    if (byKey)
      s.quietly(change);
    else
      batch(change);
  };
  return (
    <div class="page" aria-busy={leaks.pending.value}>
      <Switches of={of} />
      {trouble && (
        <p class="trouble" role="status" data-test="leaks-trouble">
          {trouble.message}
        </p>
      )}
      {of && trouble?.kind !== 'none' && (
        <>
          <Said of={of} />
          <Grid
            label="Growth"
            test="leaks"
            count={rows.length}
            selected={selected}
            columns={[...COLUMNS, { key: 'name', title: rows[0]?.frames ? 'Stack (what allocated first)' : 'Name' }]}
            cell={(row, key) => cellOf(of, rows[row], key)}
            rowClass={row => (['noise', 'flat'].includes(rows[row].shape) ? 'noise' : '')}
            onSelect={open}
            onOpen={row => {
              open(row, false);
              s.tab.value = 'sandwich';
            }}
            empty="Nothing grew in this range beyond noise."
          />
        </>
      )}
      {!of && leaks.pending.value && <p class="empty">Ranking what grows …</p>}
    </div>
  );
}

function selectedEntryOf(): number {
  return data.value ? selectedEntry.value : NONE;
}
