// What changed at each node of a diff's tree, as pictures colour it: picture_classify() and picture_noise() of
// src/report/picture.c, over all nodes of the tree.
import type { Amounts, Tree, View } from '../types';
import { CHANGES } from '../types';
import { intervalOf, isTwoSided, pValueOf } from './amounts';
import { significant } from './estimate';

function sameAmount(a: Amounts, i: number, j: number): boolean {
  return a.now[i] === a.now[j] && a.base[i] === a.base[j] && a.gained[i] === a.gained[j] && a.lost[i] === a.lost[j]
    && a.variance[i] === a.variance[j] && a.lostVariance[i] === a.lostVariance[j] && a.weight[i] === a.weight[j]
    && a.lostWeight[i] === a.lostWeight[j];
}

// p-values of all nodes. Where a node has one child, the two are often the same.
function pValues(view: View, { n, parent, total }: Tree): Float64Array {
  const p = new Float64Array(n);
  for (let i = 0; i < n; i++)
    p[i] = i > 0 && sameAmount(total, i, parent[i]) ? p[parent[i]] : pValueOf(total, i, view);
  return p;
}

// Per node an index into CHANGES; of a single profile nothing changed.
export function treeChanges(view: View, tree: Tree): Uint8Array {
  const { n, total } = tree, changes = new Uint8Array(n), code = (name: typeof CHANGES[number]) =>
    CHANGES.indexOf(name);
  const none = code('none'), noise = code('noise'), grew = code('grew'), shrank = code('shrank'), fresh = code('new'),
    gone = code('gone');
  if (!view.diff || !isTwoSided(total))
    return changes.fill(none);
  const beyond = view.hasError ? significant(pValues(view, tree)) : null;
  for (let i = 0; i < n; i++) {
    const now = total.now[i], base = total.base[i];
    if (i > 0 && sameAmount(total, i, tree.parent[i]))
      changes[i] = changes[tree.parent[i]];
    else if (now === base)
      changes[i] = none;
    else if (beyond && (!beyond[i] || includesZero(view, total, i)))
      changes[i] = noise;
    else
      changes[i] = base === 0 ? fresh : now === 0 ? gone : now > base ? grew : shrank;
  }
  return changes;
}

function includesZero(view: View, total: Amounts, i: number): boolean {
  const { low, high } = intervalOf(total, i, view);
  return low <= 0 && high >= 0;
}
