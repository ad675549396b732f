// Ranges of time, as they are typed, linked and moved. A bound is a moment, or so long before now: a link to "the last
// six hours" means tomorrow's. Times are milliseconds since 1970 and shown in UTC.

export interface Bound {
  relative: boolean;
  ms: number; // relative: before now
}
export interface Range {
  from: Bound;
  to: Bound;
}
// With now known: from <= t < to.
export interface Span {
  from: number;
  to: number;
}

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
const UNITS: [text: string, ms: number][] = [
  ['w', 7 * DAY],
  ['d', DAY],
  ['h', HOUR],
  ['m', MINUTE],
  ['s', SECOND],
  ['ms', 1],
];
export const SHORTEST = 10 * SECOND;
export const LONGEST = 10 * 366 * DAY;
const LATEST = 253402300799999; // the end of the year 9999

// "6h", "90m": in the largest unit that it is a whole number of.
export function lengthText(ms: number): string {
  const whole = Math.max(0, Math.round(ms));
  const [text, unit] = UNITS.find(([name, size]) => name !== 'w' && whole >= size && whole % size === 0) ?? ['ms', 1];
  return `${whole / unit}${text}`;
}

export function parseLength(text: string): number | undefined {
  const found = /^(\d{1,12})(ms|[smhdw])$/.exec(text);
  const unit = UNITS.find(([name]) => name === found?.[2])?.[1];
  const ms = found && unit ? Number(found[1]) * unit : undefined;
  return ms !== undefined && ms <= LONGEST ? ms : undefined;
}

// "now", "now-6h", milliseconds, "2026-11-21", "2026-11-21 10:00", "2026-11-21T10:00:00.000Z": UTC unless it says else.
export function parseBound(text: string): Bound | undefined {
  const trimmed = text.trim();
  if (trimmed === 'now')
    return { relative: true, ms: 0 };
  if (/^now\s*-/.test(trimmed)) {
    const ms = parseLength(trimmed.replace(/^now\s*-\s*/, ''));
    return ms === undefined ? undefined : { relative: true, ms };
  }
  if (/^\d{9,15}$/.test(trimmed))
    return absolute(Number(trimmed));
  const date = /^(\d{4}-\d\d-\d\d)(?:[T ]+(\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?)\s*(Z|UTC|[+-]\d\d:?\d\d)?)?$/.exec(trimmed);
  if (!date)
    return undefined;
  const zone = date[3] === undefined || date[3] === 'UTC' ? 'Z' : date[3];
  return absolute(Date.parse(`${date[1]}T${date[2] ?? '00:00'}${zone}`));
}

function absolute(ms: number): Bound | undefined {
  return ms >= 0 && ms <= LATEST ? { relative: false, ms } : undefined;
}

export function boundText({ relative, ms }: Bound): string {
  return relative ? (ms === 0 ? 'now' : `now-${lengthText(ms)}`) : String(Math.round(ms));
}

export function resolve({ relative, ms }: Bound, now: number): number {
  return relative ? now - ms : ms;
}

export function span(range: Range, now: number): Span {
  return { from: resolve(range.from, now), to: resolve(range.to, now) };
}

export function fixed({ from, to }: Span): Range {
  return { from: { relative: false, ms: Math.round(from) }, to: { relative: false, ms: Math.round(to) } };
}

export function last(ms: number): Range {
  return { from: { relative: true, ms }, to: { relative: true, ms: 0 } };
}

export function follows(range: Range): boolean {
  return range.to.relative;
}

// In the address: "now-6h..now".
export function rangeText(range: Range): string {
  return `${boundText(range.from)}..${boundText(range.to)}`;
}

// Undefined, too, when it ends before it begins.
export function parseRange(text: string, now: number): Range | undefined {
  const [first, second, ...more] = text.split('..');
  const from = parseBound(first ?? '');
  const to = parseBound(second ?? '');
  return from && to && more.length === 0 ? checked({ from, to }, now) : undefined;
}

export function checked(range: Range, now: number): Range | undefined {
  const { from, to } = span(range, now);
  return from < to && to - from <= LONGEST ? range : undefined;
}

// --- moving ---

// About its middle; not beyond now, where nothing is.
export function zoomed({ from, to }: Span, factor: number, now: number): Span {
  const length = Math.min(Math.max((to - from) * factor, SHORTEST), LONGEST);
  const middle = (from + to) / 2;
  const end = Math.min(middle + length / 2, Math.max(now, to));
  return { from: Math.max(0, end - length), to: end };
}

// By a part of its length.
export function moved({ from, to }: Span, part: number, now: number): Span {
  const step = Math.min((to - from) * part, Math.max(0, now - to));
  return { from: from + step, to: to + step };
}

// One end of it put elsewhere: within the window, and not past the other end.
export function withEnd(of: Span, which: 'from' | 'to', at: number, window: Span): Span {
  const least = Math.min(SHORTEST, (window.to - window.from) / 100);
  return which === 'from'
    ? { from: Math.min(Math.max(at, window.from), of.to - least), to: of.to }
    : { from: of.from, to: Math.max(Math.min(at, window.to), of.from + least) };
}

// What is left of it in the window; null: nothing.
export function within(of: Span, window: Span): Span | null {
  const from = Math.max(of.from, window.from);
  const to = Math.min(of.to, window.to);
  return from < to ? { from, to } : null;
}

const STEPS = [
  SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND, MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE,
  15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY, 30 * DAY, 365 * DAY,
];

// So that at most so many points are drawn.
export function stepFor({ from, to }: Span, points: number): number {
  return STEPS.find(step => (to - from) / step <= points) ?? STEPS[STEPS.length - 1];
}

const two = (n: number) => String(n).padStart(2, '0');

// "2026-11-21 10:00:05"
export function momentText(ms: number): string {
  const t = new Date(ms);
  if (Number.isNaN(t.getTime()))
    return '?';
  const day = `${t.getUTCFullYear()}-${two(t.getUTCMonth() + 1)}-${two(t.getUTCDate())}`;
  return `${day} ${two(t.getUTCHours())}:${two(t.getUTCMinutes())}:${two(t.getUTCSeconds())}`;
}

// What a field for a bound holds: as it would be typed.
export function typedBound(bound: Bound): string {
  return bound.relative ? boundText(bound) : momentText(bound.ms);
}

// "2026-11-21 10:00:05 to 10:20:00 UTC (20 min)"; of a day its name is said once.
export function spanText({ from, to }: Span): string {
  const [first, second] = [momentText(from), momentText(to)];
  return `${first} to ${first.slice(0, 10) === second.slice(0, 10) ? second.slice(11) : second} UTC`;
}

// "3 min ago": for what is at least roughly known.
export function agoText(ms: number): string {
  if (ms < 1500)
    return 'now';
  const [size, name] =
    ms < 100 * SECOND
      ? [SECOND, 's']
      : ms < 100 * MINUTE
        ? [MINUTE, 'min']
        : ms < 48 * HOUR
          ? [HOUR, 'h']
          : [DAY, 'days'];
  return `${Math.round(ms / (size as number))} ${name} ago`;
}
