// The window of the timeline, and what in it the views are of: a range, a moment, and a second range to compare with.
import { useEffect, useState } from 'preact/hooks';
import { batch, signal } from '@preact/signals';
import * as r from './settings';
import { live, isFollowing, againstSpan, refresh, viewSpan, windowSpan } from './state';
import {
  DAY, fixed, HOUR, last, lengthText, moved, parseBound, rangeText, spanText, momentText, typedBound, within, zoomed,
  type Range, type Span,
} from './times';
import { recorderNow } from './ask';

const PRESETS = [HOUR, 6 * HOUR, 24 * HOUR, 7 * DAY];

// The next drag is of the second range, without Shift, too.
export const picksAgainst = signal(false);

export function showWindow(range: Range) {
  r.timeTexts.window.value = rangeText(range);
}

export function zoom(factor: number) {
  const range = r.shownWindow.value;
  const now = recorderNow();
  // What ends now goes on doing so.
  if (isFollowing.value && range.to.ms === 0 && range.from.relative)
    showWindow(last(Math.max(60_000, Math.round((range.from.ms * factor) / 60_000) * 60_000)));
  else
    showWindow(fixed(zoomed(windowSpan.value, factor, now)));
}

export function shift(part: number) {
  showWindow(fixed(moved(windowSpan.value, part, recorderNow())));
}

export function setRange(which: 'range' | 'against', of: Span | null) {
  batch(() => {
    r.timeTexts[which].value = of ? rangeText(fixed(of)) : '';
    if (of && which === 'range')
      r.timeTexts.moment.value = '';
  });
}

export function setMoment(at: number | null) {
  r.timeTexts.moment.value = at === null ? '' : String(Math.round(at));
}

// Without a pointer: the middle of the window, to be moved by its ends.
function addRange() {
  const { from, to } = windowSpan.value;
  setRange('range', { from: from + (to - from) / 4, to: to - (to - from) / 4 });
  // When it is drawn.
  setTimeout(() => document.querySelector<HTMLElement>('[data-test="range-from"]')?.focus(), 100);
}

// Without a second range: what was just as long before the first. A first range that leaves no room for that is halved.
export function toggleAgainst() {
  if (r.against.value) {
    setRange('against', null);
    return;
  }
  const [window, of] = [windowSpan.value, viewSpan.value];
  const before = within({ from: of.from - (of.to - of.from), to: of.from }, window);
  batch(() => {
    if (before && before.to - before.from >= (of.to - of.from) / 2) {
      setRange('against', before);
    } else {
      const middle = (of.from + of.to) / 2;
      if (r.moment.value === null)
        setRange('range', { from: middle, to: of.to });
      setRange('against', { from: of.from, to: middle });
    }
  });
}

function Bound({ which }: { which: 'from' | 'to' }) {
  const range = r.shownWindow.value;
  const written = typedBound(range[which]);
  const [typed, setTyped] = useState(written);
  const [wrong, setWrong] = useState('');
  useEffect(() => {
    setTyped(written);
    setWrong('');
  }, [written]);
  const apply = () => {
    if (typed === written)
      return;
    const bound = parseBound(typed);
    const next = bound && { ...range, [which]: bound };
    if (!bound)
      setWrong('A time is 2026-11-21 10:00 (UTC), or before now: now-6h.');
    else if (!next || !r.isUsable(next))
      setWrong('The window has to begin before it ends.');
    else {
      setWrong('');
      showWindow(next);
    }
  };
  return (
    <span class="field">
      <input
        type="text"
        class="mono bound"
        aria-label={which === 'from' ? 'Window from' : 'Window to'}
        aria-invalid={wrong !== ''}
        aria-describedby={wrong ? `bound-${which}-wrong` : undefined}
        data-test={`window-${which}`}
        spellcheck={false}
        autocomplete="off"
        value={typed}
        onInput={event => setTyped(event.currentTarget.value)}
        onBlur={apply}
        onKeyDown={event => {
          if (event.key === 'Enter')
            apply();
          else if (event.key === 'Escape') {
            setTyped(written);
            setWrong('');
          }
        }}
      />
      {wrong && (
        <span class="wrong" id={`bound-${which}-wrong`} role="alert" data-test="window-wrong">
          {wrong}
        </span>
      )}
    </span>
  );
}

function presetText(ms: number): string {
  return ms > DAY ? `${ms / DAY} d` : `${ms / HOUR} h`;
}

export function WindowTools() {
  const range = r.shownWindow.value;
  const small = (test: string, text: string, title: string, run: () => void) => (
    <button type="button" class="small" data-test={test} title={title} aria-label={title} onClick={run}>
      {text}
    </button>
  );
  return (
    <div class="window-tools">
      <div class="segments" role="group" aria-label="Window: the last …">
        {PRESETS.map(ms => (
          <button
            type="button"
            key={ms}
            aria-pressed={rangeText(range) === rangeText(last(ms))}
            data-test={`last-${lengthText(ms)}`}
            onClick={() => {
              batch(() => {
                showWindow(last(ms));
                refresh();
              });
            }}>
            {presetText(ms)}
          </button>
        ))}
      </div>
      {small('earlier', '◀', 'Earlier ([)', () => shift(-0.5))}
      {small('later', '▶', 'Later (])', () => shift(0.5))}
      {small('zoom-out', '−', 'Longer window (Z)', () => zoom(2))}
      {small('zoom-in', '+', 'Shorter window (z)', () => zoom(0.5))}
      <Bound which="from" />
      <span aria-hidden="true">–</span>
      <Bound which="to" />
      <button
        type="button"
        aria-pressed={live.value && isFollowing.value}
        disabled={!isFollowing.value}
        data-test="live"
        title={isFollowing.value ? 'Goes on by itself' : 'This window does not end now'}
        onClick={() => {
          live.value = !live.value;
          if (live.value)
            refresh();
        }}>
        {live.value && isFollowing.value ? 'Live' : 'Paused'}
      </button>
    </div>
  );
}

const MODE_HELP: Record<r.Mode, string> = {
  last: 'What was there at the end of the range',
  average: 'Each process averaged over the range, then added up',
  max: 'The largest of each stack in the range',
};

function Part({ test, mark, title, text, drop }: Record<'test' | 'mark' | 'title' | 'text', string> & { drop?: () => void }) {
  return (
    <span class="part" data-test={test}>
      <span class={`key ${mark}`}>{title}</span> {text}
      {drop && (
        <button type="button" aria-label={`Without ${title}`} data-test={`${test}-drop`} onClick={drop}>
          ✕
        </button>
      )}
    </span>
  );
}

// What the views are of.
export function Parts() {
  const [range, moment, against] = [r.range.value, r.moment.value, againstSpan.value];
  return (
    <div class="parts">
      {moment !== null ? (
        <Part
          test="part-moment"
          mark="moment"
          title="At"
          text={`${momentText(moment)} UTC`}
          drop={() => setMoment(null)}
        />
      ) : range ? (
        <Part
          test="part-range"
          mark="range"
          title="Range"
          text={spanText(viewSpan.value)}
          drop={() => setRange('range', null)}
        />
      ) : (
        <>
          <Part test="part-window" mark="window" title="Range" text="the whole window" />
          <button type="button" data-test="add-range" title="Or drag over the timeline" onClick={addRange}>
            Choose a part
          </button>
        </>
      )}
      {against && (
        <Part
          test="part-against"
          mark="against"
          title="Compared with"
          text={spanText(against)}
          drop={() => setRange('against', null)}
        />
      )}
      <button
        type="button"
        aria-pressed={against !== null}
        data-test="compare"
        title="With the time before, or what is dragged with Shift (d)"
        onClick={toggleAgainst}>
        Compare
      </button>
      <button
        type="button"
        aria-pressed={picksAgainst.value}
        data-test="pick-against"
        title="What is dragged next is the range to compare with, as with Shift"
        onClick={() => {
          picksAgainst.value = !picksAgainst.value;
        }}>
        Drag second range
      </button>
      {range && (
        <button
          type="button"
          data-test="zoom-range"
          onClick={() => {
            batch(() => {
              showWindow(range);
              setRange('range', null);
            });
          }}>
          Zoom to range
        </button>
      )}
      <div class="segments" role="group" aria-label="Of the range">
        {r.MODES.map(mode => (
          <button
            type="button"
            key={mode}
            title={MODE_HELP[mode]}
            disabled={moment !== null && !against}
            aria-pressed={r.mode.value === mode}
            data-test={`mode-${mode}`}
            onClick={() => {
              r.mode.value = mode;
            }}>
            {mode === 'last' ? 'Last' : mode === 'average' ? 'Average' : 'Max'}
          </button>
        ))}
      </div>
    </div>
  );
}
