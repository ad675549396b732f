// Amounts, times and places as the views word them: the model's words, with what a view knows.
import * as words from '../model';
import { amountAt, changePercentText, visible } from '../model';
import { theData } from '../state';
import * as s from '../settings';
import type { Amount, Amounts, Estimate, View } from '../types';
import { cutMiddle, fileName } from './name';

export { countText, percentText, timeText } from '../model';

type Measured = { unit: string };
const NOTHING: Estimate = { value: 0, variance: 0, weight: 0 };

export function amountText(of: Measured, value: number): string {
  return words.amountText(of.unit, value);
}

export function changeText(of: Measured, change: number): string {
  return words.changeText(of.unit, change);
}

export function valueText(v: View, { now, base }: { now: number; base: number }): string {
  return v.diff ? changeText(v, now - base) : amountText(v, now);
}

export function relativeText(now: number, base: number): string {
  return changePercentText({ now, base, gained: NOTHING, lost: NOTHING });
}

export function errorText(v: View, a: Amount): string {
  return words.errorText(v, a);
}

export function errorAt(v: View, amounts: Amounts, i: number): string {
  return v.hasError ? words.errorText(v, amountAt(amounts, i)) : '';
}

// A change as the header's switch says: as an amount, or in percent of the base.
export function changeCell(v: View, amounts: Amounts, i: number): string {
  const [now, base] = [amounts.now[i], amounts.base[i] ?? 0];
  return s.relative.value ? relativeText(now, base) : changeText(v, now - base);
}

export function snapshotName(index: number): string {
  const { snapshots } = theData();
  const name = visible(cutMiddle(fileName(snapshots[index].name) || snapshots[index].name, 40));
  return snapshots.length > 1 ? `${index + 1}: ${name}` : name;
}

// "src/a.c:12"; '' when unknown, or when it is the name already.
export function entryPlace(v: View, i: number): string {
  const { file, line } = v.entries;
  return file[i] === '' || v.options.by === 'file' ? '' : `${file[i]}${line[i] > 0 ? `:${line[i]}` : ''}`;
}

// What stands behind a name in a row.
export function entryNote(v: View, i: number): string | undefined {
  const place = entryPlace(v, i);
  const notes = [place === '' ? '' : visible(cutMiddle(fileName(place), 60)), v.entries.inlined[i] ? '(inline)' : ''];
  return notes.filter(note => note !== '').join(' ') || undefined;
}
