// Where in the source an entry's amounts lie: its lines.
import type { Amounts, View } from '../types';
import { NONE } from '../types';
import { changeAt, firstAmounts, holdsAt, newAmounts, isTwoSided, addAmount } from './amounts';
import { Triples } from './intern';
import { totalsBy } from './totals';

export interface Lines {
  n: number;
  file: Uint32Array;                  // strings of the block: what a server is asked for
  line: Uint32Array;                  // 0: unknown
  flat: Amounts; cum: Amounts;
}

// The lines of an entry, by file and line. What a line holds by way of itself counts once.
export function lines(view: View, entry: number): Lines {
  const { frames } = view.data, key = new Uint32Array(frames.n).fill(NONE), triples = new Triples(),
    first: number[] = [];
  for (let f = 0; view.options.by !== 'thread' && f < frames.n; f++)
    if (view.frameEntry[f] === entry) {
      key[f] = triples.add(frames.file[f], frames.line[f], 0);
      if (key[f] === first.length)
        first.push(f);
    }
  const { flat, cum } = totalsBy(view, key, first.length), { strings } = view.data;
  const order = first.map((_, i) => i).filter((i) => holdsAt(cum, i) || (view.diff && changeAt(cum, i) !== 0))
    .sort((a, b) =>
    strings[frames.file[first[a]]] < strings[frames.file[first[b]]] ? -1
      : strings[frames.file[first[a]]] > strings[frames.file[first[b]]] ? 1
      : frames.line[first[a]] - frames.line[first[b]]);
  const pick = (from: Amounts) => {
    const to = newAmounts(order.length, isTwoSided(from));
    order.forEach((i, k) => addAmount(to, k, from, i));
    return firstAmounts(to, order.length);
  };
  return {
    n: order.length, file: Uint32Array.from(order, (i) => frames.file[first[i]]),
    line: Uint32Array.from(order, (i) => frames.line[first[i]]), flat: pick(flat), cum: pick(cum),
  };
}
