// The keyboard: the same keys in every view. A field that is typed in keeps its own; the picture gets what is left.
import { batch } from '@preact/signals';
import * as s from '../settings';
import { copySelected, letGo, searchNext, theFlame } from '../selection';
import { letGoRange, RECORDER_KEYS } from '../recorder/page';
import { data, exportOpen, helpOpen } from '../state';
import { nextMetric, toggleDiff } from './header';
import { nextTheme } from './theme';

function focusOn(test: string) {
  const field = document.querySelector<HTMLElement>(`[data-test="${test}"]`);
  field?.focus();
  if (field instanceof HTMLInputElement)
    field.select();
}

const KEYS: Record<string, () => void> = {
  '/': () => focusOn('search'),
  '?': () => {
    helpOpen.value = !helpOpen.value;
  },
  n: () => searchNext(1),
  N: () => searchNext(-1),
  i: () => {
    s.inverted.value = !s.inverted.value;
  },
  d: toggleDiff,
  m: nextMetric,
  r: () => {
    s.collapse.value = !s.collapse.value;
  },
  t: nextTheme,
  c: copySelected,
  e: () => {
    exportOpen.value = !exportOpen.value;
  },
  Escape: letGo,
};

function inField(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLTextAreaElement
    || target instanceof HTMLSelectElement
    || (target instanceof HTMLInputElement && target.type !== 'checkbox')
  );
}

// Keys that a button in focus uses itself, and the arrows of what scrolls.
function taken(event: KeyboardEvent): boolean {
  const { target, key } = event;
  return (
    (target instanceof HTMLButtonElement && (key === 'Enter' || key === ' '))
    || (key.startsWith('Arrow') && target instanceof Element && target.closest('.details, [role=feed]') !== null)
  );
}

function run(event: KeyboardEvent): boolean {
  const { key } = event;
  if (key === 'Escape' && (helpOpen.value || exportOpen.value)) {
    helpOpen.value = false;
    exportOpen.value = false;
    return true;
  }
  if (helpOpen.value && key !== '?')
    return false;
  const tab = /^[1-8]$/.test(key) ? s.tabs()[Number(key) - 1] : undefined;
  if (tab) {
    s.tab.value = tab;
    return true;
  }
  // In the picture, n and N go from box to box, Backspace, Escape and 0 zoom.
  if (theFlame.current?.key(event))
    return true;
  if (s.recorder.value && key === 'Escape' && (!data.value || !letGo()))
    return letGoRange();
  const does = s.recorder.value && RECORDER_KEYS[key] ? RECORDER_KEYS[key] : KEYS[key];
  // Most are about a profile.
  if (!data.value && !['t', '?', '/'].includes(key) && !(s.recorder.value && RECORDER_KEYS[key]))
    return false;
  if (does)
    batch(does);
  return does !== undefined;
}

function onKey(event: KeyboardEvent) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || inField(event.target) || taken(event))
    return;
  if (run(event))
    event.preventDefault();
}

export function keysStart() {
  addEventListener('keydown', onKey);
}
