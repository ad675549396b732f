// One line a stack, root first: "main;serve;parse 4096", in a diff "main;serve;parse 1024 4096". As
// src/format/folded_write.c.
import type { Tree, View } from '../../types';
import { NONE } from '../../types';
import { pathBase } from '../entries';
import { clean, integer, nodeName, stacksOf } from './columns';

// Frames as text: ';' would end one, so it is ':' there.
export function frameText(view: View, tree: Tree, node: number): string {
  const entry = tree.entry[node], line = entry === NONE ? 0 : view.entries.line[entry];
  const detail = line ? ` ${pathBase(view.entries.file[entry])}:${line}` : '';
  return clean(nodeName(view, tree, node) + detail).replaceAll(';', ':');
}

export function folded(view: View): string {
  const { tree } = stacksOf(view), { self } = tree, sums = new Map<string, [base: number, now: number]>();
  const text = new Array<string>(tree.n);
  for (let i = 0; i < tree.n; i++) {
    const above = i === 0 || tree.parent[i] === 0 ? '' : `${text[tree.parent[i]]};`;
    text[i] = above + frameText(view, tree, i);
    const now = self.now[i], base = view.diff ? self.base[i] : 0, sum = sums.get(text[i]);
    if (sum) {
      sum[0] += base;
      sum[1] += now;
    } else if (now !== 0 || base !== 0) {
      sums.set(text[i], [base, now]);
    }
  }
  const lines = Array.from(sums,
    ([stack, [base, now]]) => `${stack} ${view.diff ? `${integer(base)} ` : ''}${integer(now)}\n`);
  return lines.sort().join('');
}
