// The recorder's part of the page: which series, when, the timeline, and what the views below are of.
import type { ComponentChildren } from 'preact';
import { batch } from '@preact/signals';
import { visible } from '../model';
import * as s from '../settings';
import { data } from '../state';
import { cutMiddle } from '../ui/name';
import { Timeline } from './chart';
import { Picker } from './picker';
import { Parts, setMoment, setRange, shift, toggleAgainst, WindowTools, zoom } from './ranges';
import { block, events, info, isGone, leaks, series, totals } from './state';
import { down } from './targets';

// What went wrong, each sentence once. Where there is nothing the place itself says so.
function Troubles() {
  const said = new Set(
    [series, events, totals, block].flatMap(({ trouble: { value } }) =>
      value && value.kind !== 'none' && value.kind !== 'gone' ? [value.message] : []
    )
  );
  return (
    <div class="troubles" role="status" aria-live="polite">
      {[...said].map(message => (
        <p key={message} class="trouble" data-test="trouble">
          {message}
        </p>
      ))}
    </div>
  );
}

function Pending() {
  const busy = [totals, block, leaks].some(question => question.pending.value);
  return (
    <span class={`pending ${busy ? 'busy' : ''}`} data-test="pending" aria-hidden="true">
      {busy ? 'asking …' : ''}
    </span>
  );
}

export function recorderTitle(): string {
  return visible(cutMiddle(info.answer.value?.title || 'heapgauge', 60));
}

export function RecorderHead({ tools }: { tools: ComponentChildren }) {
  const failing = down();
  return (
    <>
      <header class="recorder">
        <div class="bar">
          <h1 data-test="program">{recorderTitle()}</h1>
          <Picker />
          <Pending />
          <div class="tools">
            {failing > 0 && (
              <button
                type="button"
                class="wrong"
                data-test="down"
                onClick={() => {
                  s.tab.value = 'targets';
                }}>
                {failing.toLocaleString('en')} down
              </button>
            )}
            {tools}
          </div>
        </div>
        <div class="bar when-bar">
          <WindowTools />
          <Parts />
        </div>
        <Troubles />
      </header>
      <Timeline />
    </>
  );
}

// In place of the views.
export function NoBlock() {
  const trouble = block.trouble.value;
  return (
    <div class="page">
      <p class="empty" data-test="no-block" role="status">
        {trouble ? trouble.message : 'Asking for the profile …'}
        {trouble?.kind === 'none' && ' Choose a longer window, or fewer conditions.'}
      </p>
    </div>
  );
}

export function RecorderLost() {
  return isGone.value ? (
    <div class="lost" role="status" data-test="gone">
      The recorder does not answer: what is shown stays, and gets no newer.
    </div>
  ) : null;
}

// Keys beside those of the page; true: it was one.
export const RECORDER_KEYS: Record<string, () => void> = {
  '[': () => shift(-0.5),
  ']': () => shift(0.5),
  z: () => zoom(0.5),
  Z: () => zoom(2),
  d: toggleAgainst,
};

// Escape, when nothing is selected: back to the whole window.
export function letGoRange(): boolean {
  if (data.value === null && !block.trouble.value)
    return false;
  batch(() => {
    setMoment(null);
    setRange('range', null);
    setRange('against', null);
  });
  return true;
}
