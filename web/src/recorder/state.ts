// What the recorder was asked and has answered. Each question depends on the settings that it needs; a change of them
// asks it anew, and gives up the one before.
import { batch, computed, effect, signal, untracked } from '@preact/signals';
import { servedByRecorder } from '../load';
import * as s from '../settings';
import { data } from '../state';
import type { PageData } from '../types';
import * as api from './api';
import { recorderNow, setClock } from './ask';
import { aligned, lineOf, type Line } from './lines';
import { Question } from './question';
import { labelsKey, labelsText, matchesAll } from './selector';
import * as r from './settings';
import { follows, HOUR, last, momentText, MINUTE, rangeText, SECOND, span, spanText, type Span } from './times';

// --- now ---

export const live = signal(true);
// The timeline's end, and, in larger steps, that of what the views are of.
const now = signal(recorderNow());
const viewNow = signal(recorderNow());

export const windowSpan = computed<Span>(() => span(r.shownWindow.value, now.value));
export const viewSpan = computed<Span>(() => span(r.range.value ?? r.shownWindow.value, viewNow.value));
export const againstSpan = computed(() => (r.against.value ? span(r.against.value, viewNow.value) : null));
export const isFollowing = computed(() => follows(r.shownWindow.value));

const length = ({ from, to }: Span) => to - from;
const clamp = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);

function tick() {
  const at = recorderNow();
  if (live.value && isFollowing.value && !document.hidden)
    batch(() => {
      now.value = at;
      if (at - viewNow.value >= clamp(length(viewSpan.value) / 100, 15 * SECOND, 10 * MINUTE))
        viewNow.value = at;
    });
  setTimeout(tick, clamp(length(windowSpan.value) / 400, 5 * SECOND, MINUTE));
}

// Whoever asks for a range up to now means the now of his asking.
export function refresh() {
  batch(() => {
    now.value = recorderNow();
    viewNow.value = now.value;
  });
}

const BEGIN_LENGTHS = [15 * MINUTE, 30 * MINUTE, HOUR, 3 * HOUR];

// --- questions ---

export const info = new Question<api.Info>();
export const series = new Question<api.Process[]>();
export const events = new Question<api.HappenedEvent[]>();
export const totals = new Question<{ metric: string; totals: api.Totals; gauges: api.Gauges | null; span: Span }>();
export const block = new Question<PageData>();
export const leaks = new Question<api.Leaks & { of: string }>();
export const targets = new Question<{ targets: api.Target[]; dropped: number }>();

export const METRICS = ['inuse_space', 'inuse_objects', 'alloc_space', 'alloc_objects'] as const;
export const chartMetric = computed(() => METRICS.find(name => name === s.metric.value) ?? 'inuse_space');
export const EACH_MOST = 12;

// All in one, so that lines of one picture are of one moment.
async function askChart(
  metric: string,
  window: Span,
  each: boolean,
  matchers: ReturnType<typeof r.matchers.peek>,
  asked: AbortSignal
) {
  const [found, gauges] = await Promise.all([
    api.askTotals(matchers, window, metric, each ? EACH_MOST : 0, asked),
    metric === 'inuse_space' ? api.askGauges(matchers, window, asked) : null,
  ]);
  return { metric, totals: found, gauges, span: window };
}

const keyOf = (...parts: unknown[]) => JSON.stringify(parts);

// --- the views' block ---

const whole = signal(false); // all stacks, without limit of size

const wanted = computed<api.Wanted>(() => ({
  matchers: r.matchers.value,
  span: viewSpan.value,
  moment: r.moment.value,
  mode: r.mode.value,
  against: againstSpan.value,
  whole: whole.value,
}));

// What the block that is shown is of, in words: not what is asked for in the meantime.
export const shownText = signal('');

const MODE_TEXT: Record<r.Mode, string> = { last: 'Last of', average: 'Average of', max: 'Largest of' };

export function wantedText({ span: of, moment, mode, against }: api.Wanted): string {
  const first = moment === null ? `${MODE_TEXT[mode]} ${spanText(of)}` : `At ${momentText(moment)} UTC`;
  return against ? `${first}, less ${spanText(against)}` : first;
}

const KEPT = 4;
const kept = new Map<string, PageData>();

// The blocks that were looked at last: to and fro between two views of one range costs nothing.
async function blockAt(address: string, asked: AbortSignal): Promise<PageData> {
  const known = kept.get(address);
  const found = known ?? (await api.askBlock(address, asked));
  kept.delete(address);
  kept.set(address, found);
  for (const oldest of kept.keys())
    if (kept.size > KEPT)
      kept.delete(oldest);
  return found;
}

function showBlock(found: PageData, text: string) {
  batch(() => {
    data.value = found;
    shownText.value = text;
    s.beginRecorded(found);
  });
}

// --- the ranking ---

export const every = signal(false); // noise and what shrank, too

const leaksWanted = computed(() =>
  api.leaksAddress({
    matchers: r.matchers.value,
    span: viewSpan.value,
    metric: s.metric.value,
    by: s.rankBy.value === 'stack' ? 'stack' : s.by.value,
    sort: s.rankOf.value,
    focus: s.focus.value,
    ignore: s.ignore.value,
    every: every.value,
    processes: chosen.value.processes,
  })
);

// Two ranges have a growth of their own, from one to the other: that of the block.
export const isRanking = computed(() => s.tab.value === 'growth' && r.against.value === null);

let isBegun = false;

// Of a recorder that has not recorded for long the timeline begins with what there is. Once, and only where the address says nothing.
function beginWindow(found: readonly api.Process[]) {
  if (isBegun || found.length === 0)
    return;
  isBegun = true;
  const recorded = recorderNow() - Math.min(...found.map(process => process.first_ms));
  const enough = BEGIN_LENGTHS.find(length => length >= recorded);
  if (enough !== undefined && r.timeTexts.window.peek() === r.BEGIN_WINDOW)
    r.timeTexts.window.value = rangeText(last(enough));
}

function askAll() {
  effect(() => {
    const window = windowSpan.value;
    const from = Math.floor(window.from / MINUTE);
    series.ask(keyOf(from, Math.floor(window.to / MINUTE)), asked => api.askSeries(window, asked), beginWindow);
  });
  effect(() => {
    const [window, matchers] = [windowSpan.value, r.matchers.value];
    const [metric, each] = [chartMetric.value, r.each.value];
    totals.ask(keyOf(window, matchers, metric, each), asked => askChart(metric, window, each, matchers, asked));
    events.ask(keyOf(window, matchers), asked => api.askEvents(matchers, window, asked));
  });
  effect(() => {
    const what = wanted.value;
    const of = api.blockAddress(what);
    if (s.tab.value === 'targets')
      return;
    block.ask(of, asked => blockAt(of, asked), found => showBlock(found, wantedText(what)));
  });
  effect(() => {
    const of = leaksWanted.value;
    // Of how many is known first.
    if (isRanking.value && (series.answer.value || series.trouble.value))
      leaks.ask(of, async asked => ({ ...(await api.askLeaks(of, asked)), of }));
  });
  effect(() => {
    const trouble = block.trouble.value;
    // Of another range's profile nothing is true here.
    if (trouble?.kind === 'none')
      data.value = null;
  });
}

const TARGETS_MS = 5 * SECOND;

function watchTargets() {
  let count = 0;
  const again = () => {
    // In the background a dozen times less often: only their number is seen.
    if (!document.hidden && (s.tab.peek() === 'targets' || count % 4 === 0))
      targets.ask(String(count), asked => api.askTargets(asked));
    count++;
    setTimeout(again, TARGETS_MS);
  };
  again();
  effect(() => {
    if (s.tab.value === 'targets')
      untracked(() => targets.ask(`now ${count}`, asked => api.askTargets(asked)));
  });
}

export function stateStart() {
  servedByRecorder(() => {
    whole.value = true;
  });
  info.ask(
    'info',
    asked => api.askInfo(asked),
    found => {
      setClock(found.now_ms);
      refresh();
    }
  );
  refresh();
  askAll();
  watchTargets();
  // What is asked for from now on is asked up to now.
  effect(() => {
    void [r.timeTexts.window.value, r.timeTexts.range.value, r.timeTexts.against.value, r.selector.value];
    untracked(() => {
      whole.value = false;
      refresh();
    });
  });
  document.addEventListener('visibilitychange', () => {
    if (live.value && isFollowing.value && !document.hidden)
      refresh();
  });
  setTimeout(tick, 5 * SECOND);
}

// --- what is drawn ---

export interface ChartLine {
  key: string;
  title: string;
  line: Line;
}

export interface Chart {
  span: Span;
  unit: string;
  lines: ChartLine[];
  times: number[];
  columns: (number | null | undefined)[][];
  notShown: number; // processes beyond those that have lines of their own
}

export const TITLES: Record<string, string> = {
  profile: 'profile total',
  rss: 'RSS',
  jemalloc_allocated: 'jemalloc allocated',
  jemalloc_resident: 'jemalloc resident',
};

// What a point of the timeline is of its bucket: the same as the profile below is of the range.
const OF_BUCKET = { last: 'last', average: 'mean', max: 'max' } as const;

export const chart = computed<Chart | null>(() => {
  const found = totals.answer.value;
  if (totals.trouble.value?.kind === 'none')
    return { span: windowSpan.value, unit: 'bytes', lines: [], times: [], columns: [], notShown: 0 };
  if (!found)
    return null;
  const { totals: t, gauges } = found;
  const of = OF_BUCKET[r.mode.value];
  const key = t.kind === 'counter' ? 'rate' : of;
  const lines: ChartLine[] = [
    { key: 'profile', title: TITLES['profile'], line: lineOf(t.times_ms, t.total[key] ?? [], t.step_ms) },
  ];
  if (r.each.value)
    t.series.forEach((one, i) => {
      lines.push({
        key: `each${i}`,
        title: labelsText(one.labels),
        line: lineOf(t.times_ms, one[key] ?? [], t.step_ms),
      });
    });
  for (const name of api.GAUGES) {
    const gauge = gauges?.gauges.find(one => one.name === name);
    if (gauges && gauge)
      lines.push({
        key: name,
        title: TITLES[name],
        line: lineOf(gauges.times_ms, gauge.total[of] ?? [], gauges.step_ms),
      });
  }
  const { times, columns } = aligned(lines.map(({ line }) => line));
  const unit = t.kind === 'counter' ? `${t.unit}/s` : t.unit;
  return { span: found.span, unit, lines, times, columns, notShown: r.each.value ? t.series_total - t.series.length : 0 };
});

// Processes of the selection in the window, and how many places they are of.
export const chosen = computed(() => {
  const list = (series.answer.value ?? []).filter(({ labels }) => matchesAll(labels, r.matchers.value));
  return { processes: list.length, targets: new Set(list.map(({ labels }) => labelsKey(labels))).size };
});

export const isGone = computed(() =>
  [info, series, events, totals, block, leaks, targets].some(question => question.trouble.value?.kind === 'gone')
);

