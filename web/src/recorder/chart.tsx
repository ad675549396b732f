// The timeline: totals of the profiles beside what the processes and their jemalloc say of themselves, restarts and
// deploys, and the ranges that the views are of. uPlot draws lines and axes; ranges, marks and handles lie above it as
// elements, so that they can be reached with keys and are read out.
import { useEffect, useRef, useState } from 'preact/hooks';
import { signal } from '@preact/signals';
import uPlot from 'uplot';
import { amountText } from '../model';
import { dark } from '../ui/theme';
import { labelText } from './picker';
import { picksAgainst, setMoment, setRange } from './ranges';
import { labelsText } from './selector';
import * as r from './settings';
import { chart, chartMetric, events, type Chart } from './state';
import * as s from '../settings';
import { againstSpan, totals, viewSpan, windowSpan } from './state';
import type { HappenedEvent } from './api';
import { silences } from './lines';
import { momentText, within, withEnd, type Span } from './times';

const HEIGHT = 184;
const DRAG = 4; // pixels: less is a click
const FEW = 60; // points that are all drawn as such
const NEAR = 3; // pixels between marks

// Where the plot's area lies in its element, in CSS pixels.
interface Area {
  left: number;
  top: number;
  width: number;
  height: number;
}
const area = signal<Area | null>(null);

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Colour and dashes: either alone tells them apart.
const STYLES: Record<string, { colour: string; dash?: number[]; width?: number; fill?: boolean }> = {
  profile: { colour: '--accent', width: 2, fill: true },
  rss: { colour: '--ink', dash: [7, 3] },
  jemalloc_allocated: { colour: '--orange', dash: [2, 3] },
  jemalloc_resident: { colour: '--line-3', dash: [10, 3, 2, 3] },
};
const HUES = 8;

export function styleOf(key: string) {
  const index = Number(key.replace('each', ''));
  return (
    STYLES[key] ?? {
      colour: `--hue-${index % HUES}`,
      ...(index >= HUES ? { dash: [5, 4] } : {}),
    }
  );
}

export function valueText(of: Chart, value: number): string {
  return of.unit.endsWith('/s') ? `${amountText(of.unit.slice(0, -2), value)}/s` : amountText(of.unit, value);
}

function steps(bytes: boolean): number[] {
  const [list, scale] = bytes ? [[1, 2, 4, 8, 16, 32, 64, 128, 256, 512], 1024] : [[1, 2, 5, 10, 20, 50, 100, 200, 500], 1000];
  return [0, 1, 2, 3, 4, 5].flatMap(power => (list as number[]).map(step => step * (scale as number) ** power));
}

// Of many points only those are drawn that no line goes through.
function isolated(values: ArrayLike<number | null | undefined>): number[] {
  const list: number[] = [];
  let [before, last] = [0, -1]; // points since the gap, and the last of them
  const close = () => {
    if (before === 1)
      list.push(last);
    before = 0;
  };
  for (let i = 0; i < values.length; i++) {
    if (values[i] === null)
      close();
    else if (values[i] !== undefined) {
      before++;
      last = i;
    }
  }
  close();
  return list;
}

// Twenty-four hours, and the day where it changes.
const TIMES: uPlot.Axis.DynamicValues | (string | number | null)[][] = [
  [86400 * 365, '{YYYY}', null, null, null, null, null, null, 1],
  [86400 * 28, '{MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [86400, '{D} {MMM}', '\n{YYYY}', null, null, null, null, null, 1],
  [60, '{HH}:{mm}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
  [1, '{HH}:{mm}:{ss}', '\n{D} {MMM} {YYYY}', null, '\n{D} {MMM}', null, null, null, 1],
];

function options(of: Chart, width: number, window: () => Span, drawn: (plot: uPlot) => void): uPlot.Options {
  const ink = colour('--dim');
  const grid = { stroke: colour('--line'), width: 1 };
  const font = '11px system-ui, sans-serif';
  const axis = { stroke: ink, grid, ticks: grid, font };
  return {
    width,
    height: HEIGHT,
    tzDate: seconds => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    padding: [16, 12, 0, 0],
    legend: { show: false },
    cursor: { show: false },
    scales: {
      x: { time: true, range: () => [window().from / 1000, window().to / 1000] },
      y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] },
    },
    axes: [
      { ...axis, size: 42, values: TIMES as uPlot.Axis.Values },
      {
        ...axis,
        size: 80,
        incrs: steps(of.unit.startsWith('bytes')),
        values: (_plot, at) => at.map(value => valueText(of, value)),
        space: 22,
      },
    ],
    series: [
      {},
      ...of.lines.map(({ key, line }, i) => {
        const style = styleOf(key);
        const known = line.values.filter(value => value !== null).length;
        return {
          stroke: colour(style.colour),
          width: style.width ?? 1.5,
          ...(style.dash ? { dash: style.dash } : {}),
          ...(style.fill ? { fill: colour('--accent-soft') } : {}),
          points: { show: true, size: 4, filter: (plot: uPlot) => (known < FEW ? null : isolated(plot.data[i + 1])) },
          spanGaps: false,
        };
      }),
    ],
    hooks: { draw: [drawn] },
  };
}

function usePlot(of: Chart, off: ReadonlySet<string>) {
  const host = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const window = useRef(windowSpan.value);
  window.current = windowSpan.value;
  const shape = `${of.unit} ${of.lines.map(({ key, title }) => `${key} ${title}`).join()} ${dark.value}`;
  const shown = of.lines.map(({ key }) => !off.has(key));
  useEffect(() => {
    const element = host.current!;
    const measure = (one: uPlot) => {
      const ratio = devicePixelRatio;
      const { left, top, width, height } = one.bbox;
      const next = { left: left / ratio, top: top / ratio, width: width / ratio, height: height / ratio };
      if (JSON.stringify(next) !== JSON.stringify(area.peek()))
        queueMicrotask(() => {
          area.value = next;
        });
    };
    const made = new uPlot(
      options(of, element.clientWidth, () => window.current, measure),
      [[], ...of.lines.map(() => [])],
      element
    );
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [shape]);
  useEffect(() => {
    const nothing = of.times.map(() => undefined);
    const data = [of.times.map(at => at / 1000), ...of.columns.map((column, i) => (shown[i] ? column : nothing))];
    plot.current?.setData(data as uPlot.AlignedData, true);
  }, [of, shape, shown.join(), windowSpan.value.from, windowSpan.value.to]);
  return host;
}

// --- above it ---

function place(at: number, window: Span, { width }: Area): number {
  return ((at - window.from) / (window.to - window.from)) * width;
}

function Band({ of, kind, window, in: inside }: { of: Span; kind: string; window: Span; in: Area }) {
  const seen = within(of, window);
  if (!seen)
    return null;
  const left = place(seen.from, window, inside);
  return (
    <div
      class={`band ${kind}`}
      data-test={`band-${kind}`}
      style={{ left: `${left}px`, width: `${Math.max(1, place(seen.to, window, inside) - left)}px` }}
    />
  );
}

interface HandleProps {
  label: string;
  test: string;
  kind: string;
  at: number;
  window: Span;
  in: Area;
  move(to: number): void;
}

// A slider: with the arrow keys by a hundredth of the window, with Page up and down by a tenth.
function Handle({ label, test, kind, at, window, in: inside, move }: HandleProps) {
  const length = window.to - window.from;
  const x = place(at, window, inside);
  if (x < -1 || x > inside.width + 1)
    return null;
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, number> = {
      ArrowLeft: -0.01,
      ArrowDown: -0.01,
      ArrowRight: 0.01,
      ArrowUp: 0.01,
      PageDown: -0.1,
      PageUp: 0.1,
    };
    const step = steps[event.key];
    const to = step !== undefined ? at + step * length : { Home: window.from, End: window.to }[event.key];
    if (to === undefined || event.ctrlKey || event.altKey || event.metaKey)
      return;
    s.quietly(() => move(Math.min(Math.max(to, window.from), window.to)));
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      class={`handle ${kind}`}
      role="slider"
      tabIndex={0}
      aria-label={label}
      aria-orientation="horizontal"
      aria-valuemin={Math.round(window.from)}
      aria-valuemax={Math.round(window.to)}
      aria-valuenow={Math.round(at)}
      aria-valuetext={`${momentText(at)} UTC`}
      data-test={test}
      style={{ left: `${x}px` }}
      onKeyDown={onKeyDown}
      onPointerDown={event => {
        event.stopPropagation();
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={event => {
        if (!event.currentTarget.hasPointerCapture(event.pointerId))
          return;
        const box = event.currentTarget.parentElement!.getBoundingClientRect();
        const to = window.from + ((event.clientX - box.left) / box.width) * length;
        s.quietly(() => move(Math.min(Math.max(to, window.from), window.to)));
      }}
    />
  );
}

function Handles({ which, of, window, in: inside }: { which: 'range' | 'against'; of: Span; window: Span; in: Area }) {
  const name = which === 'range' ? 'Range' : 'Second range';
  return (
    <>
      {(['from', 'to'] as const).map(end => (
        <Handle
          key={end}
          label={`${name} ${end}`}
          test={`${which}-${end}`}
          kind={which}
          at={of[end]}
          window={window}
          in={inside}
          move={to => setRange(which, withEnd(of, end, to, window))}
        />
      ))}
    </>
  );
}

const build = (id: string | null) => (id ? id.slice(0, 12) : 'unknown build');

export function eventText({ kind, labels, build_id, before_build_id }: HappenedEvent): string {
  const who = labelText(labelsText(labels), 120);
  switch (kind) {
    case 'deploy':
      return `deploy of ${who}: ${labelText(build(before_build_id), 20)} → ${labelText(build(build_id), 20)}`;
    case 'restart':
      return `restart of ${who}`;
    default:
      return `first seen: ${who}`;
  }
}

// Those that lie on one another are one mark.
function Marks({ window, in: inside }: { window: Span; in: Area }) {
  const groups: { x: number; list: HappenedEvent[] }[] = [];
  for (const event of events.answer.value ?? []) {
    const x = place(event.time_ms, window, inside);
    if (event.kind === 'start' || x < 0 || x > inside.width)
      continue;
    const last = groups.at(-1);
    if (last && x - last.x < NEAR)
      last.list.push(event);
    else
      groups.push({ x, list: [event] });
  }
  return (
    <>
      {groups.map(({ x, list }) => {
        const deploy = list.some(({ kind }) => kind === 'deploy');
        const more = list.length > 12 ? `\nand ${list.length - 12} more` : '';
        return (
          <div
            key={x}
            class={`mark-line ${deploy ? 'deploy' : 'restart'}`}
            data-test={deploy ? 'mark-deploy' : 'mark-restart'}
            title={`${momentText(list[0].time_ms)} UTC\n${list.slice(0, 12).map(eventText).join('\n')}${more}`}
            style={{ left: `${x}px` }}>
            {deploy ? '▼' : '↻'}
          </div>
        );
      })}
    </>
  );
}

export const hover = signal<number | null>(null);

function Above({ in: inside }: { in: Area }) {
  const window = windowSpan.value;
  const [draft, setDraft] = useState<{ from: number; to: number; against: boolean } | null>(null);
  const from = useRef<{ x: number; against: boolean } | null>(null);
  const timeAt = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const part = Math.min(Math.max((event.clientX - box.left) / box.width, 0), 1);
    return window.from + part * (window.to - window.from);
  };
  const spanTo = (event: PointerEvent): Span => {
    const [a, b] = [from.current!.x, timeAt(event)];
    return { from: Math.min(a, b), to: Math.max(a, b) };
  };
  const isDrag = (of: Span) => ((of.to - of.from) / (window.to - window.from)) * inside.width >= DRAG;
  const end = () => {
    from.current = null;
    setDraft(null);
  };
  return (
    <div
      class="above"
      data-test="chart-area"
      style={{ left: `${inside.left}px`, top: `${inside.top}px`, width: `${inside.width}px`, height: `${inside.height}px` }}
      onPointerDown={event => {
        if (event.button !== 0)
          return;
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { x: timeAt(event), against: event.shiftKey || picksAgainst.value };
      }}
      onPointerMove={event => {
        hover.value = timeAt(event);
        if (from.current && isDrag(spanTo(event)))
          setDraft({ ...spanTo(event), against: from.current.against });
      }}
      onPointerUp={event => {
        if (!from.current)
          return;
        const of = spanTo(event);
        if (isDrag(of)) {
          setRange(from.current.against ? 'against' : 'range', of);
          picksAgainst.value = false;
        } else if (!from.current.against) {
          setMoment(of.from);
          if (s.tab.value === 'growth' && !r.against.value)
            s.tab.value = 'flame';
        }
        end();
      }}
      onPointerCancel={end}
      onPointerLeave={() => {
        hover.value = null;
      }}>
      {r.range.value && r.moment.value === null && <Band of={viewSpan.value} kind="range" window={window} in={inside} />}
      {againstSpan.value && <Band of={againstSpan.value} kind="against" window={window} in={inside} />}
      {draft && <Band of={draft} kind={draft.against ? 'against draft' : 'range draft'} window={window} in={inside} />}
      <Marks window={window} in={inside} />
      {hover.value !== null && <div class="hair" style={{ left: `${place(hover.value, window, inside)}px` }} />}
      {r.range.value && r.moment.value === null && (
        <Handles which="range" of={viewSpan.value} window={window} in={inside} />
      )}
      {againstSpan.value && <Handles which="against" of={againstSpan.value} window={window} in={inside} />}
      {r.moment.value !== null && (
        <Handle
          label="Moment"
          test="moment"
          kind="moment"
          at={r.moment.value}
          window={window}
          in={inside}
          move={to => setMoment(to)}
        />
      )}
    </div>
  );
}

// The point nearest to a moment, if it is not in a gap.
function valueNear(of: Chart, i: number, at: number): number | null {
  const { times, values } = of.lines[i].line;
  let best = -1;
  for (let k = 0; k < times.length; k++)
    if (best < 0 || Math.abs(times[k] - at) < Math.abs(times[best] - at))
      best = k;
  return best < 0 ? null : values[best];
}

function lastValue(of: Chart, i: number): number | null {
  return of.lines[i].line.values.at(-1) ?? null;
}

function LineKey({ dash, name }: { dash: number[] | undefined; name: string }) {
  return (
    <svg class="line-key" viewBox="0 0 26 8" aria-hidden="true" focusable="false">
      <line x1="0" y1="4" x2="26" y2="4" stroke={`var(${name})`} stroke-width="2.5" stroke-dasharray={dash?.join(' ')} />
    </svg>
  );
}

function Legend({ of }: { of: Chart }) {
  const at = hover.value;
  return (
    <div class="chart-legend">
      {of.lines.map(({ key, title }, i) => {
        const style = styleOf(key);
        const value = at === null ? lastValue(of, i) : valueNear(of, i, at);
        const isOff = r.off.value.has(key);
        return (
          <button
            type="button"
            key={key}
            aria-pressed={!isOff}
            data-test={`line-${key}`}
            title={isOff ? 'Draw it' : 'Don’t draw it'}
            onClick={() => r.toggleLine(key)}>
            <LineKey dash={style.dash} name={style.colour} />
            <span class="line-name">{labelText(title, 60)}</span>
            <b data-test={`value-${key}`}>{value === null ? '–' : valueText(of, value)}</b>
          </button>
        );
      })}
      <div class="dim when" data-test="hover">
        {at === null ? 'at the end' : `${momentText(at)} UTC`}
      </div>
      {of.notShown > 0 && <div class="dim">and {of.notShown.toLocaleString('en')} smaller ones</div>}
    </div>
  );
}

function ChartTable({ of }: { of: Chart }) {
  const known = of.times.flatMap((_, i) => (of.columns.some(column => typeof column[i] === 'number') ? [i] : []));
  const rows = known.reverse();
  const silent = new Map(silences(of.lines[0]?.line ?? { times: [], values: [] }).map(([from, to]) => [to, from]));
  const happened = (events.answer.value ?? []).map(event => ({ at: event.time_ms, text: eventText(event) }));
  return (
    <div class="chart-table scroll" tabIndex={0} role="region" aria-label="Numbers of the timeline" data-test="chart-table">
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">Time (UTC)</th>
            {of.lines.map(({ key, title }) => (
              <th scope="col" class="number" key={key}>
                {labelText(title, 60)}
              </th>
            ))}
            <th scope="col">What happened</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((i, k) => {
            const next = k === 0 ? Infinity : of.times[rows[k - 1]];
            const since = silent.get(of.times[i]);
            return [
              <tr key={of.times[i]}>
                <th scope="row">
                  <button
                    type="button"
                    class="link"
                    onClick={() => {
                      setMoment(of.times[i]);
                    }}>
                    {momentText(of.times[i])}
                  </button>
                </th>
                {of.columns.map((column, c) => {
                  const value = column[i];
                  return (
                    <td class="number" key={of.lines[c].key}>
                      {typeof value === 'number' ? valueText(of, value) : '–'}
                    </td>
                  );
                })}
                <td class="text">
                  {happened
                    .filter(({ at }) => at >= of.times[i] && at < next)
                    .slice(0, 5)
                    .map(({ text }) => text)
                    .join('; ')}
                </td>
              </tr>,
              since !== undefined && (
                <tr key={-of.times[i]}>
                  <td class="dim" colSpan={of.lines.length + 2}>
                    nothing recorded from {momentText(since)} on
                  </td>
                </tr>
              ),
            ];
          })}
        </tbody>
      </table>
    </div>
  );
}

function Drawn({ of }: { of: Chart }) {
  const host = usePlot(of, r.off.value);
  return (
    <div class="chart">
      <div class="plot" ref={host} aria-hidden="true" />
      {area.value && <Above in={area.value} />}
    </div>
  );
}

export function Timeline() {
  const of = chart.value;
  const pending = totals.pending.value;
  if (!of)
    return (
      <section class="recorded" aria-label="Timeline" aria-busy={pending}>
        <p class="empty">{pending ? 'Asking the recorder …' : 'There is no timeline.'}</p>
      </section>
    );
  const empty = of.lines.every(({ line }) => line.times.length === 0);
  return (
    <section class="recorded" aria-label="Timeline" data-test="timeline" aria-busy={pending} data-metric={chartMetric.value}>
      <div class="chart-side">
        {r.asTable.value ? <ChartTable of={of} /> : <Drawn of={of} />}
        {empty && (
          <p class="nothing" data-test="chart-empty">
            Nothing was recorded in this window.
          </p>
        )}
      </div>
      <div class="legend-side">
        <Legend of={of} />
        <label class="check">
          <input
            type="checkbox"
            data-test="each"
            checked={r.each.value}
            onChange={event => {
              r.each.value = event.currentTarget.checked;
            }}
          />
          each process
        </label>
        <label class="check">
          <input
            type="checkbox"
            data-test="as-table"
            checked={r.asTable.value}
            onChange={event => {
              r.asTable.value = event.currentTarget.checked;
            }}
          />
          as a table
        </label>
      </div>
    </section>
  );
}
