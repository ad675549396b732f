// What is looked at: program, snapshots, metric, total; and how far to trust it.
import { useState } from 'preact/hooks';
import { visible } from '../model';
import * as s from '../settings';
import { atIndex, baseIndex, column, helpOpen, theData, view } from '../state';
import { busy, fetchAll, served } from '../load';
import { amountText, errorText, percentText, snapshotName, timeText, valueText } from './numbers';
import { cutMiddle, fileName } from './name';
import { ExportMenu } from './export';
import { shownText } from '../recorder/state';
import { nextTheme } from './theme';

const METRICS: Record<string, string> = {
  inuse_space: 'in-use bytes',
  inuse_objects: 'in-use objects',
  alloc_space: 'allocated bytes',
  alloc_objects: 'allocated objects',
};

export function metricName(type: string, unit: string): string {
  return METRICS[type] ?? (type === unit || unit === '' ? type : `${type} (${unit})`);
}

function MetricSwitch() {
  const { types } = theData();
  const order = [...types.keys()].sort((a, b) => rank(types[a].type) - rank(types[b].type) || a - b);
  return (
    <div class="segments" role="group" aria-label="Metric (m)">
      {order.map(index => (
        <button
          type="button"
          key={index}
          aria-pressed={column.value === index}
          data-test={`metric-${types[index].type}`}
          onClick={() => {
            s.metric.value = types[index].type;
          }}>
          {visible(cutMiddle(metricName(types[index].type, types[index].unit), 40))}
        </button>
      ))}
    </div>
  );
}

function rank(type: string): number {
  const known = Object.keys(METRICS).indexOf(type);
  return known < 0 ? 9 : known;
}

export function nextMetric() {
  const { types } = theData();
  s.metric.value = types[(column.value + 1) % types.length]?.type ?? '';
}

// From where "d" turns the difference on: the snapshot that was last subtracted, else the first.
let lastBase: number | null = null;

export function toggleDiff() {
  const { snapshots } = theData();
  if (s.base.value !== null) {
    lastBase = s.base.value;
    s.base.value = null;
  } else if (snapshots.length > 1) {
    const wanted = lastBase ?? s.base.begin ?? 0;
    s.base.value = wanted !== atIndex.value ? wanted : atIndex.value > 0 ? 0 : 1;
  }
}

function SnapshotPickers() {
  const { snapshots } = theData();
  if (snapshots.length < 2) {
    const only = snapshots[0];
    return only ? (
      <span class="dim snapshot" data-test="snapshot" title={visible(cutMiddle(only.name, 400))}>
        {snapshotName(0)}
        {only.time_ms !== null && <> · {timeText(only.time_ms)}</>}
      </span>
    ) : null;
  }
  const choices = snapshots.map((_, index) => (
    <option key={index} value={index}>
      {snapshotName(index)}
    </option>
  ));
  return (
    <div class="pickers">
      <label class="pick">
        Shown
        <select
          data-test="at"
          value={atIndex.value}
          onChange={event => {
            s.at.value = Number(event.currentTarget.value);
          }}>
          {choices}
        </select>
      </label>
      <label class="pick">
        Base
        <select
          data-test="base"
          value={baseIndex.value === null ? 'none' : baseIndex.value}
          onChange={event => {
            s.base.value = event.currentTarget.value === 'none' ? null : Number(event.currentTarget.value);
          }}>
          <option value="none">none</option>
          {choices}
        </select>
      </label>
    </div>
  );
}

// How wide the boxes of a difference are.
export function WidthSwitch() {
  if (!view.value.diff)
    return null;
  const modes = [
    ['max', 'A and B', 'What vanished and what is new both have their room'],
    ['base', 'A', 'As wide as in the base (A)'],
    ['now', 'B', 'As wide as in what is shown (B)'],
  ] as const;
  return (
    <div class="segments" role="group" aria-label="Width of boxes">
      {modes.map(([mode, title, help]) => (
        <button
          type="button"
          key={mode}
          title={help}
          aria-pressed={s.width.value === mode}
          data-test={`width-${mode}`}
          onClick={() => {
            s.width.value = mode;
          }}>
          {title}
        </button>
      ))}
    </div>
  );
}

// Changes as amounts, or in percent of the base.
function NumbersSwitch() {
  return !view.value.diff && !(s.tab.value === 'growth' && theData().snapshots.length > 1) ? null : (
    <div class="segments" role="group" aria-label="Numbers">
      <button
        type="button"
        aria-pressed={!s.relative.value}
        data-test="absolute"
        onClick={() => {
          s.relative.value = false;
        }}>
        Δ
      </button>
      <button
        type="button"
        aria-pressed={s.relative.value}
        data-test="relative"
        title="Changes in percent of the base"
        onClick={() => {
          s.relative.value = true;
        }}>
        Δ %
      </button>
    </div>
  );
}

function Total() {
  const v = view.value;
  const whole = v.diff ? v.total.now - v.total.base : v.total.now;
  const all = v.totalAll.now;
  const filtered = v.total.now !== v.totalAll.now || v.total.base !== v.totalAll.base;
  return (
    <span class="total" data-test="total">
      <strong>{v.diff ? valueText(v, v.total) : amountText(v, whole)}</strong>
      <span class="dim"> {errorText(v, v.total)}</span>
      {filtered && !v.diff && (
        <span class="dim">
          {' '}
          · {percentText(v.total.now, all)} of {amountText(v, all)}
        </span>
      )}
      {v.diff && (
        <span class="dim">
          {' '}
          · {amountText(v, v.total.base)} → {amountText(v, v.total.now)}
        </span>
      )}
    </span>
  );
}

function RestNote() {
  const { rest } = theData();
  if (!rest)
    return null;
  const part = (100 * (1 - rest.part)).toFixed(1);
  return (
    <p class="note" data-test="rest">
      {part} % of the total is shown in full; {rest.stacks.toLocaleString('en')} small stacks are in <em>(other)</em>
      {view.value.lowerBounds ? ', so functions may hold more than is shown' : ''}.{' '}
      {served() && (
        <button type="button" data-test="fetch-all" disabled={busy.value} onClick={fetchAll}>
          {busy.value ? 'Fetching …' : 'Fetch all stacks'}
        </button>
      )}
      {!served() && <span class="dim">“heapgauge view” shows all of them.</span>}
    </p>
  );
}

function Notes() {
  const { notes } = theData();
  const [open, setOpen] = useState(false);
  if (notes.length === 0)
    return null;
  return (
    <div class="notes">
      <button type="button" class="plain" aria-expanded={open} data-test="notes" onClick={() => setOpen(!open)}>
        {open ? '▾' : '▸'} {notes.length === 1 ? '1 note' : `${notes.length} notes`} on these numbers
      </button>
      {open && (
        <ul>
          {notes.map(note => (
            <li key={note}>{visible(cutMiddle(note, 2000))}</li>
          ))}
        </ul>
      )}
    </div>
  );
}

export function profileName(): string {
  const { title, program } = theData();
  return visible(cutMiddle(title || (program ? fileName(program) : 'heap profile'), 80));
}

// That need no profile.
export function HeaderTools() {
  return (
    <>
      <button
        type="button"
        data-test="theme"
        title={`Theme: ${s.theme.value} (t)`}
        aria-label={`Theme: ${s.theme.value}`}
        onClick={nextTheme}>
        {s.theme.value === 'auto' ? '◐' : s.theme.value === 'dark' ? '●' : '○'}
      </button>
      <button
        type="button"
        data-test="help"
        title="Keyboard (?)"
        aria-label="Help"
        onClick={() => {
          helpOpen.value = true;
        }}>
        ?
      </button>
    </>
  );
}

// What the numbers are of: a recorder has other things to choose it by.
function What() {
  const { program } = theData();
  if (s.recorder.value)
    return (
      <strong class="shown" data-test="shown">
        {shownText.value}
      </strong>
    );
  return (
    <>
      <h1 title={program ? visible(cutMiddle(program, 400)) : undefined} data-test="program">
        {profileName()}
      </h1>
      <SnapshotPickers />
    </>
  );
}

export function Header() {
  const Element = s.recorder.value ? 'section' : 'header';
  return (
    <Element class="of" {...(s.recorder.value ? { 'aria-label': 'What is shown' } : {})}>
      <div class="bar">
        <What />
        <MetricSwitch />
        <Total />
        <NumbersSwitch />
        <div class="tools">
          <ExportMenu />
          {!s.recorder.value && <HeaderTools />}
        </div>
      </div>
      <RestNote />
      <Notes />
    </Element>
  );
}
