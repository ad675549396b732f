// Which series: conditions on labels, written as Prometheus writes them: job="shop", instance=~"web.*". A name that is
// no plain word stands in quotes, too.

export const OPERATORS = ['=', '!=', '=~', '!~'] as const;
export type Operator = (typeof OPERATORS)[number];

export interface Matcher {
  name: string;
  operator: Operator;
  value: string;
}

export type Labels = Record<string, string>;

const WORD = /^[a-zA-Z_][a-zA-Z0-9_]*$/;
export const MATCHERS_MAX = 32;

function quoted(text: string): string {
  return `"${text.replace(/[\\"\n]/g, c => (c === '\n' ? '\\n' : `\\${c}`))}"`;
}

export function matcherText({ name, operator, value }: Matcher): string {
  return `${WORD.test(name) ? name : quoted(name)}${operator}${quoted(value)}`;
}

export function selectorText(matchers: readonly Matcher[]): string {
  return matchers.map(matcherText).join(',');
}

// With or without braces. Undefined: it is none.
export function parseSelector(text: string): Matcher[] | undefined {
  const inside = /^\s*\{([^]*)\}\s*$/.exec(text)?.[1] ?? text;
  const one = /\s*(?:([a-zA-Z_][a-zA-Z0-9_]*)|"((?:[^"\\]|\\[^])*)")\s*(=~|!~|!=|=)\s*"((?:[^"\\]|\\[^])*)"\s*(,|$)/y;
  const list: Matcher[] = [];
  if (/^\s*$/.test(inside))
    return list;
  for (;;) {
    const found = one.exec(inside);
    if (!found || list.length === MATCHERS_MAX)
      return undefined;
    const name = found[1] ?? plain(found[2]);
    if (name === '')
      return undefined;
    list.push({ name, operator: found[3] as Operator, value: plain(found[4]) });
    if (found[5] === '')
      return list;
    if (/^\s*$/.test(inside.slice(one.lastIndex)))
      return list;
  }
}

function plain(text: string): string {
  return text.replace(/\\([^])/g, (_, c: string) => (c === 'n' ? '\n' : c));
}

// What is typed by hand may leave out the quotes: job=shop.
export function parseTyped(text: string): Matcher[] | undefined {
  const bare = /^\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*(=~|!~|!=|=)\s*([^"\s,{}][^",{}]*?)\s*$/.exec(text);
  return bare ? [{ name: bare[1], operator: bare[2] as Operator, value: bare[3] }] : parseSelector(text);
}

// What tells one label set from all others.
export function labelsKey(labels: Labels): string {
  return JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)));
}

// "shop web:1 (zone=b)": job and instance are what people know targets by.
export function labelsText(labels: Labels): string {
  const { job, instance, ...others } = labels;
  const rest = Object.entries(others)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join(', ');
  const known = [job, instance].filter(part => part !== undefined && part !== '').join(' ');
  return known === '' ? rest || '(no labels)' : rest === '' ? known : `${known} (${rest})`;
}

// Exactly this target.
export function selectorOf(labels: Labels): Matcher[] {
  return Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => ({ name, operator: '=', value }));
}

function fits({ operator, value }: Matcher, has: string): boolean {
  if (operator === '=' || operator === '!=')
    return (has === value) === (operator === '=');
  try {
    return new RegExp(`^(?:${value})$`, 's').test(has) === (operator === '=~');
  } catch {
    return false; // the recorder says what is wrong with it
  }
}

// A label that is not there is "".
export function matchesAll(labels: Labels, matchers: readonly Matcher[]): boolean {
  return matchers.every(matcher => fits(matcher, Object.hasOwn(labels, matcher.name) ? labels[matcher.name] : ''));
}

const escaped = (value: string) => value.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');

// One more value of a label: any of them.
export function withValue(matchers: readonly Matcher[], name: string, value: string): Matcher[] {
  const same = matchers.findIndex(one => one.name === name && (one.operator === '=' || one.operator === '=~'));
  if (same < 0)
    return [...matchers, { name, operator: '=', value }];
  const before = matchers[same];
  const one = before.operator === '=' ? escaped(before.value) : before.value;
  const merged: Matcher = { name, operator: '=~', value: `${one}|${escaped(value)}` };
  return matchers.map((matcher, i) => (i === same ? merged : matcher));
}

export interface Choice {
  name: string;
  value: string;
  series: number;
}

// Names and values of the series at hand, those of what nearly all have in common last; typed: words that all have to
// be in it, in any case.
export function choicesOf(series: readonly { labels: Labels }[], typed: string, most: number): Choice[] {
  const counts = new Map<string, Choice>();
  for (const { labels } of series)
    for (const [name, value] of Object.entries(labels)) {
      const key = JSON.stringify([name, value]);
      const choice = counts.get(key);
      if (choice)
        choice.series++;
      else
        counts.set(key, { name, value, series: 1 });
    }
  const words = typed.toLowerCase().split(/[\s=~!",{}]+/).filter(word => word !== '');
  const wanted = ({ name, value }: Choice) => {
    const text = `${name}=${value}`.toLowerCase();
    return words.every(word => text.includes(word));
  };
  const rank = (name: string) => (name === 'job' ? 0 : name === 'instance' ? 1 : 2);
  return [...counts.values()]
    .filter(wanted)
    .sort(
      (a, b) =>
        rank(a.name) - rank(b.name)
        || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)
        || b.series - a.series
        || (a.value < b.value ? -1 : 1)
    )
    .slice(0, most);
}
