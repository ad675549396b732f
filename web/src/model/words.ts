// Amounts as people read them: three digits and a unit, as src/report/words.c and src/base/text.c word them on a
// terminal.
import type { Amount, Estimate, View } from '../types';
import { intervalOfAmount } from './amounts';
import { FEW_SAMPLES, estimateSamples } from './estimate';

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB', 'ZiB', 'YiB'],
  THOUSANDS = ['', 'k', 'M', 'G', 'T', 'P', 'E'];

// Half up, as many decimals as asked for.
function decimal(value: number, decimals: number): string {
  if (!Number.isFinite(value) || Math.abs(value) > 1e15)
    return Number.isNaN(value) ? '?' : value < 0 ? '<-1e15' : '>1e15';
  const scale = 10 ** decimals, scaled = Math.floor(Math.abs(value) * scale + 0.5);
  const digits = String(scaled).padStart(decimals + 1, '0'), cut = digits.length - decimals;
  return (value < 0 && scaled ? '-' : '') + digits.slice(0, cut) + (decimals ? `.${digits.slice(cut)}` : '');
}

// Three significant digits below 1000.
function threeDigits(value: number): string {
  const size = Math.abs(value);
  return decimal(value, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

function scaled(value: number, step: number, below: number, units: number): { value: number; unit: number } {
  let unit = 0;
  for (; unit < units && value >= below; unit++)
    value /= step;
  return { value, unit };
}

const sign = (value: number) => value <= -0.5 ? '-' : '', size = (value: number) =>
  value <= -0.5 ? -value : Math.max(0, value);

// "12.3 MiB"
export function bytesText(value: number): string {
  if (Number.isNaN(value))
    return '?';
  const s = scaled(size(value), 1024, 1023.5, BYTES.length);
  const digits = s.unit === 0 ? decimal(s.value, 0) : s.unit < BYTES.length ? threeDigits(s.value) : '';
  return sign(value) + (digits ? `${digits} ${BYTES[s.unit]}` : '>999 YiB');
}

// "1,234", "12.3k"
export function countText(value: number): string {
  if (Number.isNaN(value))
    return '?';
  const n = size(value);
  if (n < 999.5)
    return sign(value) + decimal(n, 0);
  if (n < 9999.5)
    return sign(value) + decimal(n, 0).replace(/(?=...$)/, ',');
  const s = scaled(n, 1000, 999.5, THOUSANDS.length);
  return sign(value) + (s.unit < THOUSANDS.length ? threeDigits(s.value) + THOUSANDS[s.unit] : '>999E');
}

const SECONDS: Record<string, number> = {
  nanoseconds: 1e-9, microseconds: 1e-6, milliseconds: 1e-3, seconds: 1, ns: 1e-9, us: 1e-6, ms: 1e-3, s: 1,
};
const STEPS: [below: number, unit: number, name: string][] = [
  [0.9995e-6, 1e-9, 'ns'], [0.9995e-3, 1e-6, 'us'], [0.9995, 1e-3, 'ms'], [99.95, 1, 's'], [5997, 60, 'min'],
  [359820, 3600, 'h'],
  [Infinity, 86400, 'days'],
];

// "350 ms", "12.3 s", "5.20 min"
export function durationText(seconds: number): string {
  if (seconds === 0)
    return '0 s';
  const [, unit, name] = STEPS.find(([below]) => Math.abs(seconds) < below) ?? STEPS[STEPS.length - 1];
  return `${threeDigits(seconds / unit)} ${name}`;
}

// An amount in a view's unit: "12.3 MiB", "1,234", "350 ms".
export function amountText(unit: string, value: number): string {
  if (unit === 'bytes')
    return bytesText(value);
  return Object.hasOwn(SECONDS, unit) ? durationText(value * SECONDS[unit]) : countText(value);
}

// The same with its sign: "+12.3 MiB", "-3", and "0 B" for none.
export function changeText(unit: string, change: number): string {
  return (change > 0 ? '+' : '') + amountText(unit, change);
}

// What a table shows of an amount: now, or in a diff the change.
export function valueText(view: View, a: Amount): string {
  return view.diff ? changeText(view.unit, a.now - a.base) : amountText(view.unit, a.now);
}

function percent(value: number): string {
  const much = Math.abs(value);
  if (much > 0 && much < 0.05)
    return value < 0 ? '>-0.1%' : '<0.1%';
  if (much >= 999950)
    return value < 0 ? '<-999999%' : '>999999%';
  return `${decimal(value, much < 999.95 ? 1 : 0)}%`;
}

// "73.6%"; "" when whole is 0.
export function percentText(part: number, whole: number): string {
  return whole === 0 ? '' : percent(100 * part / whole);
}

// Of a diff: "+80.1%" of base, "new", "gone", "" when nothing changed.
export function changePercentText(a: Amount): string {
  const change = a.now - a.base;
  if (change === 0 || a.base === 0 || a.now === 0)
    return change === 0 ? '' : a.base === 0 ? 'new' : 'gone';
  const part = 100 * change / Math.abs(a.base);
  return (part >= 0.05 ? '+' : '') + percent(part);
}

// --- errors ---

const LOPSIDED = 1.3;      // sides of an interval that differ by more are both told

function relative(half: number, value: number): string {
  const part = 100 * half / value;
  return part < 0.05 ? '±<0.1%' : `±${decimal(part, part < 0.95 ? 1 : 0)}%`;
}

function singleError(a: Amount, sized: (value: number) => string): string {
  const e: Estimate = a.gained, { low, high } = intervalOfAmount(a);
  if (!(high > low))
    return '';
  if (!(e.value > 0))
    return `<${sized(high)}`;
  if (estimateSamples(e) >= FEW_SAMPLES)
    return relative((high - low) / 2, e.value);
  return `-${decimal(100 * (e.value - low) / e.value, 0)}%/+${decimal(100 * (high - e.value) / e.value, 0)}%`;
}

function diffError(a: Amount, sized: (value: number) => string): string {
  const { low, high } = intervalOfAmount(a), change = a.now - a.base, below = change - low, above = high - change;
  if (!(high > low))
    return '';
  if (Math.max(below, above) <= LOPSIDED * Math.min(below, above))
    return `±${sized((below + above) / 2)}`;
  return `-${sized(below)}/+${sized(above)}`;
}

// "±3%", of few samples "-60%/+120%", of a diff "±1.20 MiB"; "" when there is no error to tell.
export function errorText(view: View, a: Amount): string {
  const sized = view.unit === 'bytes' ? bytesText : countText;
  if (!view.hasError)
    return '';
  return view.diff || a.lost.value > 0 || a.lost.variance > 0 ? diffError(a, sized) : singleError(a, sized);
}

// "2026-11-21 03:33:10 UTC"; "" for an unknown time.
export function timeText(ms: number | null): string {
  return ms === null || !(ms > 0 && ms < 8.64e15) ? ''
    : `${new Date(ms).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
