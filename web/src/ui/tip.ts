// What is said of a box: beside the pointer, and to those who listen.
import type { TipText } from '../flame';
import { visible } from '../model';
import { CHANGES, NONE, type FlameInput } from '../types';
import { cutMiddle, fullName } from './name';
import { amountText, changeText, entryPlace, errorAt, percentText, relativeText } from './numbers';

const WORDS: Record<string, string> = {
  noise: 'noise: sampling alone explains it',
  new: 'new: nothing in the base',
  gone: 'gone: nothing is left',
};

// Behind the name, in the box.
export function flameAmount({ view, tree: { total } }: FlameInput, node: number): string {
  return view.diff ? changeText(view, total.now[node] - (total.base[node] ?? 0)) : amountText(view, total.now[node]);
}

export function flameTip({ view, tree, changes }: FlameInput, node: number): TipText {
  const entry = tree.entry[node];
  const { total, self } = tree;
  const now = total.now[node];
  const before = total.base[node] ?? 0;
  const lines: string[] = [];
  if (view.diff) {
    lines.push(
      `${changeText(view, now - before)} ${errorAt(view, total, node)}  ${relativeText(now, before)}`.trimEnd()
    );
    lines.push(`${amountText(view, before)} → ${amountText(view, now)}`);
    const word = changes ? WORDS[CHANGES[changes[node]]] : undefined;
    if (word)
      lines.push(word);
  } else {
    lines.push(
      `${amountText(view, now)} ${errorAt(view, total, node)}  ${percentText(now, view.totalAll.now)} of the total`
    );
    if (self.now[node] !== 0 && entry !== NONE && self.now[node] !== now)
      lines.push(`itself ${amountText(view, self.now[node])}`);
  }
  if (entry === NONE) {
    const rows = tree.rest[node];
    return {
      title: node === 0 ? 'all' : '(other)',
      lines: node === 0 ? lines : [...lines, `${rows.toLocaleString('en')} stacks that were too small for this page`],
    };
  }
  const place = entryPlace(view, entry);
  if (place)
    lines.push(visible(cutMiddle(place, 200)));
  if (view.entries.binary[entry])
    lines.push(visible(cutMiddle(view.entries.binary[entry], 200)));
  if (view.entries.inlined[entry])
    lines.push('inlined');
  return { title: cutMiddle(fullName(view.entries.name[entry]), 300), lines };
}
