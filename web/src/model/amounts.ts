// Amounts of many things at once: one typed array for each part, the arithmetic of struct amount over them.
import type { Amount, Amounts, Interval, View } from '../types';
import { estimateDifference, estimateInterval, estimatePValue } from './estimate';

const NOTHING = new Float64Array(0);

// twoSided: a diff, or negative values; else gained is the same as now, and there is nothing lost.
export function newAmounts(n: number, twoSided: boolean): Amounts {
  const now = new Float64Array(n), side = () => twoSided ? new Float64Array(n) : NOTHING;
  return {
    n, now, variance: new Float64Array(n), weight: new Float64Array(n), gained: twoSided ? new Float64Array(n) : now,
    base: side(), lost: side(), lostVariance: side(), lostWeight: side(),
  };
}

export const isTwoSided = (a: Amounts) => a.gained !== a.now;

// The first n of them.
export function firstAmounts(a: Amounts, n: number): Amounts {
  const cut = (array: Float64Array) => array.length > n ? array.subarray(0, n) : array, now = cut(a.now);
  return {
    n, now, variance: cut(a.variance), weight: cut(a.weight), gained: isTwoSided(a) ? cut(a.gained) : now,
    base: cut(a.base), lost: cut(a.lost), lostVariance: cut(a.lostVariance), lostWeight: cut(a.lostWeight),
  };
}

export function addAmount(to: Amounts, i: number, from: Amounts, j: number): void {
  to.now[i] += from.now[j];
  to.variance[i] += from.variance[j];
  if (from.weight[j] > to.weight[i])
    to.weight[i] = from.weight[j];
  if (to.gained === to.now)
    return;
  to.gained[i] += from.gained[j];
  to.base[i] += from.base[j];
  to.lost[i] += from.lost[j];
  to.lostVariance[i] += from.lostVariance[j];
  if (from.lostWeight[j] > to.lostWeight[i])
    to.lostWeight[i] = from.lostWeight[j];
}

// One of them as a record.
export function amountAt(a: Amounts, i: number): Amount {
  const two = isTwoSided(a);
  return {
    now: a.now[i], gained: { value: a.gained[i], variance: a.variance[i], weight: a.weight[i] },
    base: two ? a.base[i] : 0,
    lost: { value: two ? a.lost[i] : 0, variance: two ? a.lostVariance[i] : 0, weight: two ? a.lostWeight[i] : 0 },
  };
}

export function addToAmount(to: Amount, from: Amounts, j: number): void {
  const { gained, lost } = to;
  to.now += from.now[j];
  gained.value += from.gained[j];
  gained.variance += from.variance[j];
  if (from.weight[j] > gained.weight)
    gained.weight = from.weight[j];
  if (!isTwoSided(from))
    return;
  to.base += from.base[j];
  lost.value += from.lost[j];
  lost.variance += from.lostVariance[j];
  if (from.lostWeight[j] > lost.weight)
    lost.weight = from.lostWeight[j];
}

export const noAmount = (): Amount => ({
  now: 0, gained: { value: 0, variance: 0, weight: 0 }, base: 0, lost: { value: 0, variance: 0, weight: 0 },
});

// now - base; of a single profile: now.
export const changeAt = (a: Amounts, i: number) => isTwoSided(a) ? a.now[i] - a.base[i] : a.now[i];

// What a picture draws it as wide as: the larger of base and now.
export const sizeAt = (a: Amounts, i: number) =>
  isTwoSided(a) ? Math.max(Math.abs(a.base[i]), Math.abs(a.now[i])) : a.now[i];

export const holdsAt = (a: Amounts, i: number) => a.now[i] !== 0 || (isTwoSided(a) && a.base[i] !== 0);

export function intervalOfAmount(a: Amount): Interval {
  const nothingLost = a.lost.value === 0 && a.lost.variance === 0 && a.lost.weight === 0;
  return nothingLost ? estimateInterval(a.gained) : estimateDifference(a.gained, a.lost);
}

// 95 % interval of now, in a diff of the change. Without errors: of no width.
export function intervalOf(amounts: Amounts, i: number, view: View): Interval {
  const a = amountAt(amounts, i), value = view.diff ? a.now - a.base : a.now;
  return view.hasError ? intervalOfAmount(a) : { low: value, high: value };
}

// p-value of "nothing changed".
export function pValueOf(amounts: Amounts, i: number, view: View): number {
  const a = amountAt(amounts, i);
  return view.hasError ? estimatePValue(a.gained, a.lost) : Number(a.now === a.base);
}
