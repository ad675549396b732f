// Totals of all snapshots: a click picks the one that is shown, a click with Shift the base. The two lists in the
// header do the same for the keyboard.
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import * as s from '../settings';
import { atIndex, baseIndex, snapshotTotals, theData, view } from '../state';
import { amountText, snapshotName } from './numbers';
import { dark } from './theme';

const HEIGHT = 84;

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// Of powers of two, as bytes are counted.
function steps(): number[] {
  const base =
    view.peek().unit === 'bytes' ? [1, 2, 4, 8, 16, 32, 64, 128, 256, 512] : [1, 2, 5, 10, 20, 50, 100, 200, 500];
  const scale = view.peek().unit === 'bytes' ? 1024 : 1000;
  return [1, 2, 3, 4, 5].reduce<number[]>(
    (all, power) => [...all, ...base.map(step => step * scale ** power)],
    [...base]
  );
}

function markLine(plot: uPlot, index: number | null, stroke: string, dash: number[]) {
  const x = index === null ? undefined : plot.data[0][index];
  if (x === undefined)
    return;
  const at = plot.valToPos(x, 'x', true);
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = stroke;
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.setLineDash(dash.map(part => part * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(at, bbox.top);
  ctx.lineTo(at, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}

function plotOptions(width: number, timed: boolean): uPlot.Options {
  const ink = colour('--dim');
  const grid = { stroke: colour('--line'), width: 1 };
  const font = '11px system-ui, sans-serif';
  return {
    width,
    height: HEIGHT,
    tzDate: seconds => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
    padding: [8, 12, 0, 0],
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false }, points: { size: 8 } },
    scales: { x: { time: timed }, y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.08 : 1] } },
    axes: [
      {
        stroke: ink,
        grid,
        ticks: grid,
        font,
        size: 24,
        ...(timed
          ? {}
          : {
              incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500],
              values: (_plot: uPlot, at: number[]) => at.map(i => `#${i + 1}`),
            }),
      },
      {
        stroke: ink,
        grid,
        ticks: grid,
        font,
        size: 76,
        incrs: steps(),
        values: (_plot, at) => at.map(value => amountText(view.peek(), value)),
        space: 18,
      },
    ],
    series: [
      {},
      { stroke: colour('--accent'), width: 2, fill: colour('--accent-soft'), points: { show: true, size: 6 } },
    ],
    hooks: {
      draw: [
        plot => {
          markLine(plot, baseIndex.peek(), colour('--blue'), [4, 3]);
          markLine(plot, atIndex.peek(), colour('--orange'), []);
        },
      ],
    },
  };
}

export function Timeline() {
  const host = useRef<HTMLDivElement>(null);
  const { snapshots } = theData();
  const totals = snapshotTotals.value;
  const timed = snapshots.every(
    (snapshot, i) => snapshot.time_ms !== null && (i === 0 || snapshot.time_ms > snapshots[i - 1].time_ms!)
  );
  const isDark = dark.value;
  const [now, before] = [atIndex.value, baseIndex.value];

  useEffect(() => {
    const element = host.current!;
    const x = snapshots.map((snapshot, i) => (timed ? snapshot.time_ms! / 1000 : i));
    const plot = new uPlot(plotOptions(element.clientWidth, timed), [x, totals], element);
    plot.over.addEventListener('click', event => {
      const index = plot.cursor.idx;
      if (index === null || index === undefined)
        return;
      if (event.shiftKey)
        s.base.value = index;
      else
        s.at.value = index;
    });
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [totals, isDark, now, before]);

  return (
    <section class="timeline" aria-label="Totals of all snapshots" data-test="timeline">
      <div class="plot" ref={host} aria-hidden="true" />
      <div class="legend">
        <div>
          <span class="mark now" /> shown: {snapshotName(now)}
        </div>
        <div>
          <span class="mark base" /> base: {before === null ? 'none' : snapshotName(before)}
        </div>
        <div class="dim">click: shown, Shift+click: base</div>
      </div>
    </section>
  );
}
