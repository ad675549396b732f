// Whole stacks, biggest first. Each is as high as it has frames; only those in sight exist.
import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Trace, traces, visible } from '../model';
import { frameText, pickFrames, selectedEntry, selectedStack } from '../selection';
import { quietly } from '../settings';
import { matches, view } from '../state';
import { NONE, type View } from '../types';
import { copy } from './copy';
import { cutMiddle, fileName, Name } from './name';
import { usePicked } from './picked';
import { amountText, changeText, errorText, percentText, valueText } from './numbers';
import { Status } from './table';

const HEAD = 30;
const FRAME = 19;
const FOOT = 7;
const FOLDED = 24; // frames shown of a deeper stack, until it is opened
const MOST = 10_000;

const opened = signal<ReadonlySet<number>>(new Set());

function shownFrames(trace: Trace, row: number): number {
  return trace.entries.length <= FOLDED + 1 || opened.value.has(row) ? trace.entries.length : FOLDED;
}

function heightOf(trace: Trace, row: number): number {
  const shown = shownFrames(trace, row);
  return HEAD + FRAME * (shown + (shown < trace.entries.length ? 1 : 0)) + FOOT;
}

function traceText(v: View, trace: Trace): string {
  const head = `${valueText(v, trace.amount)}${trace.thread ? `, thread ${trace.thread}` : ''}`;
  return [head, ...Array.from(trace.entries, frame => `  ${frameText(frame)}`)].join('\n');
}

// What else is known of a stack.
function aside(v: View, { companion, thread, blockSize, labels, rest }: Trace): string {
  const unit = v.unit === 'bytes' ? { unit: 'count' } : { unit: 'bytes' };
  const what = v.unit === 'bytes' ? ' objects' : '';
  const parts = [
    companion && (v.diff ? changeText(unit, companion.now - companion.base) : amountText(unit, companion.now)) + what,
    blockSize > 0 && `of ${amountText({ unit: 'bytes' }, blockSize)} each`,
    thread && `thread ${visible(cutMiddle(thread, 60))}`,
    labels && visible(cutMiddle(labels, 120)),
    rest > 0 && `${rest.toLocaleString('en')} small stacks below here`,
  ];
  return parts.filter(part => typeof part === 'string' && part !== '').join(' · ');
}

function FrameLine({ v, entry, trace, from }: { v: View; entry: number; trace: Trace; from: number }) {
  if (entry === NONE)
    return <li class="dim">(other)</li>;
  const { file, line } = v.entries;
  const place = file[entry] ? `${fileName(file[entry])}${line[entry] > 0 ? `:${line[entry]}` : ''}` : '';
  return (
    <li>
      <button
        type="button"
        tabIndex={-1}
        class={`link ${matches.value?.[entry] ? 'found' : ''}`}
        onClick={event => {
          event.stopPropagation();
          pickFrames(trace.entries.slice(from));
        }}>
        <Name name={v.entries.name[entry]} />
      </button>
      {place && <span class="dim"> {visible(cutMiddle(place, 80))}</span>}
    </li>
  );
}

function Article({
  v,
  trace,
  row,
  top,
  picked,
  size,
  onPick,
}: {
  v: View;
  trace: Trace;
  row: number;
  top: number;
  picked: boolean;
  onPick(): void;
  size: number;
}) {
  const shown = shownFrames(trace, row);
  return (
    <article
      class={picked ? 'picked' : ''}
      style={{ top: `${top}px`, height: `${heightOf(trace, row)}px` }}
      data-test="trace"
      aria-posinset={row + 1}
      aria-setsize={size}
      aria-current={picked ? 'true' : undefined}
      onClick={onPick}>
      <h2>
        <span class="rank">{row + 1}.</span>
        {valueText(v, trace.amount)} <span class="dim">{errorText(v, trace.amount)}</span>
        {!v.diff && <span class="dim">{percentText(trace.amount.now, v.totalAll.now)}</span>}
        {v.diff && (
          <span class="dim">
            {amountText(v, trace.amount.base)} → {amountText(v, trace.amount.now)}
          </span>
        )}
        <span class="dim">{aside(v, trace)}</span>
        {trace.significant === false && <Status status="noise" />}
      </h2>
      <ol>
        {trace.entries.slice(0, shown).map((entry, i) => (
          <FrameLine key={i} v={v} entry={entry} trace={trace} from={i} />
        ))}
        {shown < trace.entries.length && (
          <li class="dim">… and {(trace.entries.length - shown).toLocaleString('en')} frames more</li>
        )}
      </ol>
    </article>
  );
}

// The last row that begins at or above y.
function rowAtHeight(tops: Float64Array, y: number): number {
  let [low, high] = [0, tops.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= y)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

function sameFrames(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length)
    return false;
  for (let i = 0; i < a.length; i++)
    if (a[i] !== b[i]) return false;
  return true;
}

function useTops(list: readonly Trace[]): Float64Array {
  const open = opened.value;
  return useMemo(() => {
    const sums = new Float64Array(list.length + 1);
    list.forEach((trace, row) => {
      sums[row + 1] = sums[row] + heightOf(trace, row);
    });
    return sums;
  }, [list, open]);
}

// What is in sight of a box that scrolls, and the row that has to be.
function useWindow(tops: Float64Array, target: number) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState({ top: 0, height: 800 });
  const measure = () => setAt({ top: box.current!.scrollTop, height: box.current!.clientHeight });
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    measure();
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    const element = box.current!;
    if (target < 0)
      return;
    const [from, to] = [tops[target], tops[target + 1]];
    if (from < element.scrollTop || to > element.scrollTop + element.clientHeight)
      element.scrollTop = from;
  }, [target]);
  return { box, measure, first: rowAtHeight(tops, at.top), last: rowAtHeight(tops, at.top + at.height) + 1 };
}

// The row of the selection; one that was made in another view is found in the first stack that has it.
function useTarget(list: readonly Trace[], picked: number): { chosen: number; target: number } {
  const stack = selectedStack.value;
  const entry = selectedEntry.value;
  const same = useMemo(
    () => (stack ? list.findIndex(trace => sameFrames(trace.entries, stack.frames)) : -1),
    [list, stack]
  );
  const chosen = picked >= 0 ? picked : same;
  const target = useMemo(
    () => (chosen >= 0 || entry === NONE ? chosen : list.findIndex(trace => trace.entries.includes(entry))),
    [list, chosen, entry]
  );
  return { chosen, target };
}

const PAGE = 5;

function rowAfter(key: string, now: number, count: number): number | null {
  const to: Record<string, number> = {
    ArrowDown: now + 1,
    ArrowUp: now - 1,
    PageDown: now + PAGE,
    PageUp: now - PAGE,
    Home: 0,
    End: count - 1,
  };
  return key in to ? Math.max(0, Math.min(count - 1, to[key])) : null;
}

function Buttons({ v, trace, row }: { v: View; trace: Trace | undefined; row: number }) {
  return (
    <>
      <button
        type="button"
        data-test="copy-trace"
        disabled={!trace}
        onClick={() => trace && void copy(traceText(v, trace), 'the stack')}>
        Copy stack
      </button>
      <button
        type="button"
        data-test="open-trace"
        disabled={!trace || shownFrames(trace, row) === trace.entries.length}
        onClick={() => openTrace(row)}>
        All frames
      </button>
    </>
  );
}

function openTrace(row: number) {
  opened.value = new Set([...opened.value, row]);
}

export function TracesView() {
  const v = view.value;
  const { all, traces: list } = useMemo(() => traces(v, MOST), [v]);
  useEffect(() => {
    opened.value = new Set();
  }, [v]);
  const picked = usePicked(list);
  const { chosen, target } = useTarget(list, picked.row);
  const tops = useTops(list);
  const { box, measure, first, last } = useWindow(tops, target);
  const pick = (row: number) => picked.pick(row, () => pickFrames(list[row].entries));

  const onKeyDown = (event: KeyboardEvent) => {
    const to = rowAfter(event.key, target, list.length);
    if (event.ctrlKey || event.altKey || event.metaKey || list.length === 0)
      return;
    if (event.key === 'Enter' && target >= 0)
      openTrace(target);
    else if (to !== null)
      quietly(() => pick(to));
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  };
  const rows = [];
  for (let row = first; row < Math.min(list.length, last); row++)
    rows.push(
      <Article
        key={row}
        v={v}
        trace={list[row]}
        row={row}
        top={tops[row]}
        picked={row === chosen}
        size={list.length}
        onPick={() => pick(row)}
      />
    );
  return (
    <div class="page traces">
      <div class="switches">
        <span class="dim">
          {all > list.length ? `The biggest ${list.length.toLocaleString('en')} of ` : ''}
          {all.toLocaleString('en')} stacks, biggest {v.diff ? 'change ' : ''}first; at the top of each is what
          allocated
        </span>
        <Buttons v={v} trace={list[target]} row={target} />
      </div>
      <div
        class="scroll"
        ref={box}
        tabIndex={0}
        role={list.length > 0 ? 'feed' : 'region'}
        aria-label="Stacks"
        data-test="traces"
        onKeyDown={onKeyDown}
        onScroll={measure}>
        <div class="inner" role="presentation" style={{ height: `${tops[list.length]}px` }}>
          {rows}
        </div>
        {list.length === 0 && <p class="empty">Nothing is left: the filters let no stack through.</p>}
      </div>
    </div>
  );
}
