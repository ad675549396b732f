// The command that shows on a terminal what the page shows.
import type { PageData, ViewOptions } from '../../types';
import { quoteExpression } from '../expression';
import { isOneProcess } from '../view';

export type Report = 'top' | 'tree' | 'traces' | 'flame' | 'diff';

// A word for a POSIX shell.
export function shellWord(word: string): string {
  return /^[A-Za-z0-9_\-./:=@%+,]+$/.test(word) ? word : `'${word.replaceAll('\'', '\'\\\'\'')}'`;
}

// The profiles of the page's own command, but for those snapshots that are not looked at.
function profiles(data: PageData, o: ViewOptions, report: Report): string[] {
  const words = data.command.slice(1), nameOf = (snapshot: number) => data.snapshots[snapshot].name;
  const others = new Set(data.snapshots.map(({ name }) => name).filter((_, i) => i !== o.at));
  if (data.snapshots.length === 1)
    return words;
  others.delete(nameOf(o.at));
  const kept: string[] = [];
  for (let i = 0; i < words.length; i++)
    if (words[i] === '--base')
      i++;
    else if (!others.has(words[i]))
      kept.push(words[i]);
  // The one that is shown may have been the base.
  if (!kept.includes(nameOf(o.at)))
    kept.push(nameOf(o.at));
  if (o.base === null)
    return kept;
  return report === 'diff' ? [...kept.filter((word) => word !== nameOf(o.at)), nameOf(o.base), nameOf(o.at)]
    : ['--base', nameOf(o.base), ...kept];
}

// Filters by thread are label filters on the command line. A diff of two processes knows threads by name, not by
// number.
function threadWords(data: PageData, o: ViewOptions): string[] {
  const byName = o.base !== null && o.base !== o.at && !isOneProcess(data, o.base, o.at);
  if (o.thread === null)
    return [];
  if (o.thread === '')
    return ['--tagignore', byName ? 'thread=^([^t]|t$|t[0-9]*[^0-9])' : 'thread=.'];
  return ['--tagfocus', `thread=^${byName ? '(t[0-9]+ )?' : ''}${quoteExpression(o.thread)}$`];
}

// Quoted for a shell. What the command line cannot say stands behind it, as a comment.
export function commandLine(data: PageData, o: ViewOptions, report: Report = 'top', more: string[] = []): string {
  const words = [data.command[0] ?? 'heapgauge', report, '--metric', data.types[o.column].type], missing: string[] = [];
  if (o.by !== 'function')
    words.push('--by', o.by);
  const binary = o.binary && !o.focus ? `^${quoteExpression(o.binary)}$` : '';
  if (o.binary && o.focus)
    missing.push(`only stacks through ${o.binary}`);
  const filters = [['--focus', o.focus || binary], ['--ignore', o.ignore], ['--hide', o.hide], ['--show', o.show],
    ['--show-from', o.showFrom]];
  for (const [option, text] of filters)
    if (text)
      words.push(option, text);
  const thread = threadWords(data, o);
  if (thread.length && data.command.includes(thread[0]))
    missing.push(`only thread ${o.thread || 'without a name'}`);
  else
    words.push(...thread);
  words.push(...more, ...profiles(data, o, report));
  const comment = missing.length ? `   # and ${missing.join(', ')}`.replace(/[\0-\x1f\x7f]/g, ' ') : '';
  return words.map(shellWord).join(' ') + comment;
}
