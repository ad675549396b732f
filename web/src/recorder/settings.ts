// What of the recorder is looked at, as the address has it: which series, the window of the timeline, the range in it
// that the views are of, a second one that is subtracted, or a moment.
import { computed } from '@preact/signals';
import { setting, type Codec } from '../settings';
import { parseSelector, selectorText, type Matcher } from './selector';
import { checked, parseBound, parseRange, type Range } from './times';

export const MODES = ['last', 'average', 'max'] as const;
export type Mode = (typeof MODES)[number];
export const BEGIN_WINDOW = 'now-6h..now';

// Text in the address, and only such that means something.
function wellFormed(known: (text: string) => boolean): Codec<string> {
  return { write: value => value, read: value => (known(value) ? value : undefined) };
}

const isRange = (text: string) => parseRange(text, Date.now()) !== undefined;

const selectText = setting('select', wellFormed(text => parseSelector(text) !== undefined), '', true);
const windowText = setting('window', wellFormed(isRange), BEGIN_WINDOW, true);
const rangeText = setting('range', wellFormed(isRange), '', true);
const againstText = setting('against', wellFormed(isRange), '', true);
const momentText = setting('time', wellFormed(text => parseBound(text)?.relative === false), '', true);
export const mode = setting<Mode>('mode', { write: value => value, read: text => MODES.find(m => m === text) }, 'last', true);
// One line for each target instead of their sum; names of lines that are not drawn.
export const each = setting('each', { write: value => (value ? '1' : '0'), read: text => text === '1' }, false, true);
const offText = setting('off', wellFormed(text => /^[a-z_]+(,[a-z_]+)*$/.test(text)), '', true);
export const asTable = setting('numbers', { write: value => (value ? '1' : '0'), read: text => text === '1' }, false, true);

export const timeTexts = { window: windowText, range: rangeText, against: againstText, moment: momentText };
export const selector = selectText;

export const matchers = computed<Matcher[]>(() => parseSelector(selectText.value) ?? []);

export function select(list: readonly Matcher[]) {
  selectText.value = selectorText(list);
}

function rangeOf(text: string): Range | null {
  return text === '' ? null : (parseRange(text, Date.now()) ?? null);
}

export const shownWindow = computed<Range>(() => rangeOf(windowText.value) ?? rangeOf(BEGIN_WINDOW)!);
export const range = computed(() => rangeOf(rangeText.value));
export const against = computed(() => rangeOf(againstText.value));
export const moment = computed(() => parseBound(momentText.value)?.ms ?? null);
export const off = computed(() => new Set(offText.value === '' ? [] : offText.value.split(',')));

export function toggleLine(name: string) {
  const next = new Set(off.value);
  if (!next.delete(name))
    next.add(name);
  offText.value = [...next].sort().join(',');
}

export function isUsable(wanted: Range): boolean {
  return checked(wanted, Date.now()) !== undefined;
}
