// What is looked at, and how: one signal for each setting. The address of the page (its hash) holds all that differ
// from how the page begins, so that a link, the back button and a reload bring back the same picture.
import { batch, effect, signal, type Signal } from '@preact/signals';
import type { Granularity, PageData, WidthMode } from './types';

export const TABS = ['growth', 'flame', 'sandwich', 'table', 'traces', 'lines', 'about', 'targets'] as const;
export type Tab = (typeof TABS)[number];
export const GRANULARITIES: Granularity[] = ['function', 'line', 'file', 'binary', 'thread'];
export type Theme = 'auto' | 'light' | 'dark';
// auto: by flat, of a difference by its change.
export const SORTS = ['auto', 'name', 'flat', 'cum', 'flat-change', 'cum-change'] as const;
export type Sort = (typeof SORTS)[number];
export const RANK_SORTS = ['growth', 'now', 'objects', 'name'] as const;
export type RankSort = (typeof RANK_SORTS)[number];

// A setting and the value it has when the address is silent.
export type Setting<T> = Signal<T> & { begin: T };

export interface Codec<T> {
  write(value: T): string;
  read(text: string): T | undefined;
}

const text: Codec<string> = { write: value => value, read: value => value };
const flag: Codec<boolean> = { write: value => (value ? '1' : '0'), read: value => value === '1' };
const index: Codec<number | null> = {
  write: value => (value === null ? 'none' : String(value)),
  read: value => (value === 'none' ? null : /^\d{1,9}$/.test(value) ? Number(value) : undefined),
};
const anyThread: Codec<string | null> = {
  write: value => (value === null ? '*' : `=${value}`),
  read: value => (value === '*' ? null : value.startsWith('=') ? value.slice(1) : undefined),
};

function oneOf<T extends string>(values: readonly T[]): Codec<T> {
  return { write: value => value, read: value => values.find(known => known === value) };
}

interface Entry {
  key: string;
  step: boolean;
  write(): string | null;
  read(text: string | null): void;
}
const entries: Entry[] = [];

// step: a change of it is something that the back button undoes; others are typed, and replace what the address said.
export function setting<T>(key: string, codec: Codec<T>, begin: T, step = false): Setting<T> {
  const self: Setting<T> = Object.assign(signal(begin), { begin });
  entries.push({
    key,
    step,
    write: () => (self.value === self.begin ? null : codec.write(self.value)),
    read: value => {
      const known = value === null ? undefined : codec.read(value);
      self.value = known === undefined ? self.begin : known;
    },
  });
  return self;
}

// The page is a recorder's: known when it has been read, see ui/main.tsx.
export const recorder = signal(false);
export const tabs = () => (recorder.value ? TABS : TABS.filter(name => name !== 'targets'));

export const tab = setting<Tab>(
  'view',
  { write: value => value, read: value => tabs().find(known => known === value) },
  'flame',
  true
);
export const metric = setting('metric', text, '', true); // name of a sample type; '': the default
export const at = setting('at', index, null, true); // null: the newest
export const base = setting('base', index, null, true); // null: none
export const by = setting('by', oneOf(GRANULARITIES), 'function', true);
export const focus = setting('focus', text, '');
export const ignore = setting('ignore', text, '');
export const hide = setting('hide', text, '');
export const show = setting('show', text, '');
export const showFrom = setting('from', text, '');
export const search = setting('search', text, '');
export const binary = setting('binary', text, '', true);
export const thread = setting<string | null>('thread', anyThread, null, true);
export const collapse = setting('collapse', flag, false, true);
export const trim = setting('trim', flag, true, true);
export const icicle = setting('icicle', flag, true, true);
export const inverted = setting('inverted', flag, false, true);
export const width = setting<WidthMode>('width', oneOf<WidthMode>(['max', 'base', 'now']), 'max', true);
export const relative = setting('relative', flag, false, true);
export const sort = setting<Sort>('sort', oneOf(SORTS), 'auto', true);
export const ascending = setting('up', flag, false, true);
export const rankUp = setting('rankup', flag, false, true);
export const rankBy = setting<'function' | 'stack'>('rank', oneOf(['function', 'stack']), 'stack', true);
// What the ranking by function is of: what each allocated itself, or with all it called.
export const rankOf = setting<'flat' | 'cum'>('rankof', oneOf(['flat', 'cum']), 'flat', true);
export const rankSort = setting<RankSort>('ranksort', oneOf(RANK_SORTS), 'growth', true);
export const selected = setting('entry', text, '', true); // id of an entry
export const stack = setting('stack', text, '', true); // id of a node of the tree, '^' before it if inverted
export const zoom = setting('zoom', text, '', true); // the same, of the flame graph's root
// The sandwich as pictures or as tables.
export const sandwichTables = setting('tables', flag, false, true);
export const theme = setting<Theme>('theme', oneOf(['auto', 'light', 'dark']), 'auto');
export const details = setting('details', flag, true);

export const FILTERS = [focus, ignore, hide, show, showFrom, search];

function begin<T>(of: Setting<T>, value: T) {
  of.begin = value;
  of.value = value;
}

// The command line's options are where the page begins.
function beginWith(data: PageData) {
  const { view } = data;
  begin(metric, view.metric || data.types[data.defaultType]?.type || '');
  begin(base, data.base);
  begin(by, view.by);
  begin(inverted, view.inverted);
  begin(focus, view.focus);
  begin(ignore, view.ignore);
  begin(hide, view.hide);
  begin(show, view.show);
  begin(showFrom, view.show_from);
  begin(tab, data.snapshots.length > 1 && data.base === null ? 'growth' : 'flame');
}

// A recorder's blocks come and go with what is looked at: each begins with its own base, all else is the page's.
export function beginRecorded(data: PageData | null) {
  begin(at, null);
  begin(base, data?.base ?? null);
  if (data)
    return;
  begin(metric, 'inuse_space');
  begin(tab, 'growth');
}

function write(only?: (entry: Entry) => boolean): string {
  const parameters = new URLSearchParams();
  for (const entry of entries) {
    const value = entry.write();
    if (value !== null && (!only || only(entry)))
      parameters.set(entry.key, value);
  }
  return parameters.toString();
}

function read(hash: string) {
  const parameters = new URLSearchParams(hash.replace(/^#/, ''));
  batch(() => {
    for (const entry of entries)
      entry.read(parameters.get(entry.key));
  });
}

let quiet = false;

// A change that the back button should not stop at: moving through a list with the arrow keys.
export function quietly(change: () => void) {
  quiet = true;
  try {
    batch(change);
  } finally {
    quiet = false;
  }
}

export function linkTo(): string {
  return `${location.href.replace(/#.*/, '')}#${write()}`;
}

// Called once, when the first block is there; of a recorder (null) before.
export function settingsStart(data: PageData | null) {
  batch(() => (data ? beginWith(data) : beginRecorded(null)));
  read(location.hash);
  let written = write();
  let steps = write(entry => entry.step);
  let restoring = false;
  effect(() => {
    const now = write();
    const nowSteps = write(entry => entry.step);
    if (now === written)
      return;
    const push = nowSteps !== steps && !quiet && !restoring;
    written = now;
    steps = nowSteps;
    if (!restoring)
      history[push ? 'pushState' : 'replaceState'](null, '', `#${now}`);
  });
  addEventListener('popstate', () => {
    restoring = true;
    read(location.hash);
    restoring = false;
  });
}

export function clearFilters() {
  batch(() => {
    for (const filter of FILTERS)
      filter.value = '';
    binary.value = '';
    thread.value = null;
  });
}
