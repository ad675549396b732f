// The keyboard: the same keys in every view. A field that is typed in keeps its own; the picture gets what is left.
import { batch } from '@preact/signals';
import * as s from '../settings';
import { copySelected, letGo, searchNext, theFlame, zoomOut, zoomTo } from '../selection';
import { exportOpen, helpOpen } from '../state';
import { nextMetric, toggleDiff } from './header';
import { nextTheme } from './theme';

function focusOn(test: string) {
  const field = document.querySelector<HTMLElement>(`[data-test="${test}"]`);
  field?.focus();
  if (field instanceof HTMLInputElement)
    field.select();
}

function escape(): boolean {
  if (helpOpen.value)
    helpOpen.value = false;
  else if (exportOpen.value)
    exportOpen.value = false;
  else
    return zoomOut() || letGo();
  return true;
}

const KEYS: Record<string, () => void> = {
  '/': () => focusOn('search'),
  '?': () => { helpOpen.value = !helpOpen.value; },
  'n': () => searchNext(1),
  'N': () => searchNext(-1),
  'i': () => { s.inverted.value = !s.inverted.value; },
  'd': toggleDiff,
  'm': nextMetric,
  'r': () => { s.collapse.value = !s.collapse.value; },
  't': nextTheme,
  'c': copySelected,
  'e': () => { exportOpen.value = !exportOpen.value; },
  'Backspace': () => { zoomOut(); },
  '0': () => zoomTo(0),
};

function inField(target: EventTarget | null): boolean {
  return target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement
    || (target instanceof HTMLInputElement && target.type !== 'checkbox');
}

// Keys that a button or a list in focus uses itself.
function taken(event: KeyboardEvent): boolean {
  return event.target instanceof HTMLButtonElement && (event.key === 'Enter' || event.key === ' ');
}

function onKey(event: KeyboardEvent) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || inField(event.target) || taken(event))
    return;
  const digit = /^[1-7]$/.test(event.key) ? s.TABS[Number(event.key) - 1] : undefined;
  if (helpOpen.value && event.key !== '?' && event.key !== 'Escape')
    return;
  if (digit)
    s.tab.value = digit;
  else if (event.key === 'Escape' && escape())
    ;
  else if (KEYS[event.key])
    batch(KEYS[event.key]);
  else if (!theFlame.current?.key(event))
    return;
  event.preventDefault();
}

export function keysStart() {
  addEventListener('keydown', onKey);
}
