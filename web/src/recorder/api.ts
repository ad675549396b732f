// The recorder's questions (docs/openapi.yaml) as functions. Addresses are relative to the page.
import { decodeBlock } from '../model';
import type { PageData } from '../types';
import { askBytes, askJson, Trouble } from './ask';
import { selectorText, type Labels, type Matcher } from './selector';
import type { Mode } from './settings';
import type { Span } from './times';

const API = 'api/v1/';

type Value = string | number | undefined;

function address(route: string, parameters: Record<string, Value | Value[]>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters))
    for (const one of Array.isArray(value) ? value : [value])
      if (one !== undefined)
        query.append(name, String(one));
  const text = query.toString();
  return `${API}${route}${text ? `?${text}` : ''}`;
}

function selection(matchers: readonly Matcher[]): string | undefined {
  return matchers.length === 0 ? undefined : `{${selectorText(matchers)}}`;
}

function bounds({ from, to }: Span): { from: number; to: number } {
  return { from: Math.round(from), to: Math.round(to) };
}

// What is not there is nothing wrong: newer and older recorders say more and less.
function listOf<T>(value: unknown): T[] {
  return Array.isArray(value) ? (value as T[]) : [];
}

async function object(of: string, signal: AbortSignal): Promise<Record<string, unknown>> {
  const answer = await askJson(of, signal);
  if (typeof answer !== 'object' || answer === null)
    throw new Trouble('other', 'The recorder’s answer is not what was asked for: is it of another version?', 0);
  return answer as Record<string, unknown>;
}

export interface Info {
  title: string;
  now_ms: number;
  first_ms: number | null;
  last_ms: number | null;
  series: number;
}

export async function askInfo(signal: AbortSignal): Promise<Info> {
  return (await object(address('info', {}), signal)) as unknown as Info;
}

export interface Process {
  id: number;
  labels: Labels;
  first_ms: number;
  last_ms: number;
  build_id: string | null;
  process: string | null;
}

export async function askSeries(span: Span, signal: AbortSignal): Promise<Process[]> {
  return listOf<Process>((await object(address('series', bounds(span)), signal))['series']);
}

export interface HappenedEvent {
  time_ms: number;
  kind: 'start' | 'restart' | 'deploy';
  build_id: string | null;
  before_build_id: string | null;
  labels: Labels;
}

export async function askEvents(matchers: readonly Matcher[], span: Span, signal: AbortSignal): Promise<HappenedEvent[]> {
  const answer = await object(address('builds', { match: selection(matchers), ...bounds(span) }), signal);
  return listOf<HappenedEvent>(answer['events']);
}

type Numbers = (number | null)[];
interface Values {
  mean?: Numbers;
  max?: Numbers;
  last?: Numbers;
  rate?: Numbers;
}
interface OneOf extends Values {
  id: number;
  labels: Labels;
}
export interface Totals {
  unit: string;
  kind: 'gauge' | 'counter';
  step_ms: number;
  times_ms: number[];
  total: Values;
  series: OneOf[];
  series_total: number;
}
export interface Gauges {
  step_ms: number;
  times_ms: number[];
  gauges: { name: string; total: Values; series: OneOf[] }[];
}

export const GAUGES = ['rss', 'jemalloc_allocated', 'jemalloc_resident'] as const;

export async function askTotals(
  matchers: readonly Matcher[],
  span: Span,
  metric: string,
  limit: number,
  signal: AbortSignal
): Promise<Totals> {
  const of = address('totals', { match: selection(matchers), ...bounds(span), metric, limit });
  return (await object(of, signal)) as unknown as Totals;
}

export async function askGauges(matchers: readonly Matcher[], span: Span, signal: AbortSignal): Promise<Gauges> {
  const of = address('gauges', { match: selection(matchers), ...bounds(span), name: [...GAUGES], limit: 0 });
  return (await object(of, signal)) as unknown as Gauges;
}

// What the views are of: a range or a moment, and perhaps another range that is subtracted.
export interface Wanted {
  matchers: readonly Matcher[];
  span: Span;
  moment: number | null;
  mode: Mode;
  against: Span | null;
  whole: boolean;
}

export function blockAddress({ matchers, span, moment, mode, against, whole }: Wanted): string {
  const time = moment === null ? { ...bounds(span), mode } : { at: Math.round(moment), mode: against ? mode : undefined };
  const base = against ? { base_from: Math.round(against.from), base_to: Math.round(against.to) } : {};
  return address('page', { match: selection(matchers), ...time, ...base, all: whole ? 1 : undefined });
}

export async function askBlock(of: string, signal: AbortSignal): Promise<PageData> {
  return decodeBlock(await askBytes(of, signal));
}

export interface Bounds {
  value: number;
  low: number | null;
  high: number | null;
}
export interface Leak {
  shape: string;
  significant: boolean;
  steady: boolean;
  rate: Bounds | null;
  change: number;
  values: number[];
  frames?: { name: string; file?: string; line?: number }[];
  name?: string;
  file?: string;
  line?: number;
}
export interface Leaks {
  unit: string;
  per: string;
  times: number[];
  total: Leak;
  advice: string | null;
  notes: string[];
  rows: Leak[];
  rows_total: number;
  rows_steady: number;
}
export interface LeaksWanted {
  matchers: readonly Matcher[];
  span: Span;
  metric: string;
  by: string;
  sort: string;
  focus: string;
  ignore: string;
  every: boolean;
  processes: number;
}

const MOMENTS = 24;
const FEWEST = 6;
const READS = 960; // profiles that a ranking may read: of many processes fewer moments

export function leaksAddress({ matchers, span, by, sort, focus, ignore, metric, every, processes }: LeaksWanted): string {
  return address('leaks', {
    match: selection(matchers),
    ...bounds(span),
    metric: metric === 'inuse_objects' ? metric : undefined,
    by,
    sort: by === 'stack' ? undefined : sort,
    focus: focus || undefined,
    ignore: ignore || undefined,
    every: every ? 1 : undefined,
    moments: Math.max(FEWEST, Math.min(MOMENTS, Math.floor(READS / Math.max(1, processes)))),
    n: 200,
  });
}

export async function askLeaks(of: string, signal: AbortSignal): Promise<Leaks> {
  const answer = await object(of, signal);
  return { ...answer, rows: listOf(answer['rows']), notes: listOf(answer['notes']) } as unknown as Leaks;
}

export interface Target {
  job: string;
  url: string;
  labels: Labels;
  health: string;
  error: string;
  last_ms: number | null;
  duration_ms: number;
  interval_ms: number;
  samples: number;
  bytes: number;
  scrapes: number;
  failures: number;
  restarts: number;
}

export async function askTargets(signal: AbortSignal): Promise<{ targets: Target[]; dropped: number }> {
  const answer = await object(address('targets', {}), signal);
  return { targets: listOf<Target>(answer['targets']), dropped: Number(answer['dropped'] ?? 0) };
}
