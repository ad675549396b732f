// A table for spreadsheets: one line for each stack, thread and block size, with the 95 % interval. As
// src/format/csv.c.
import type { Amounts, View } from '../../types';
import { addAmount, holdsAt, intervalOf, isTwoSided, newAmounts } from '../amounts';
import { pathBase } from '../entries';
import { entriesOf } from '../traces';
import { clean, integer } from './columns';

// A field: quoted when it must be; one that a spreadsheet would take for a formula gets a quote mark before it.
export function csvField(text: string): string {
  const formula = /^[=+\-@\t\r]/.test(text), quoted = formula || /[,"\n\r\t]|^ | $/.test(text);
  const safe = text.replace(/[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g,
    '\ufffd');
  return quoted ? `"${formula ? '\'' : ''}${safe.replaceAll('"', '""')}"` : safe;
}

function stackText(view: View, row: number): string {
  const { name, file, line } = view.entries, frames = entriesOf(view, row).reverse().map((entry) => {
    const text = name[entry] + (line[entry] ? ` ${pathBase(file[entry])}:${line[entry]}` : '');
    return clean(text).replaceAll(';', ':');
  });
  return [...frames, ...view.rows.rest[row] ? ['(other)'] : []].join(';') || '(no frames)';
}

function amountFields(view: View, amounts: Amounts, i: number): string {
  const { low, high } = intervalOf(amounts, i, view), now = amounts.now[i];
  const values = view.diff ? [amounts.base[i], now, now - amounts.base[i]] : [now];
  return [...values.map(integer), ...view.hasError ? [integer(Math.floor(low)), integer(Math.ceil(high))]
    : ['', '']].join(',');
}

export function csv(view: View): string {
  const { rows, data } = view, sums = newAmounts(rows.n, isTwoSided(rows.amounts)), places = new Map<string, number>();
  for (let i = 0; i < rows.n; i++) {
    const labels = rows.labels[i], size = data.labels.size[labels];
    const rest = `${csvField(data.strings[data.labels.thread[labels]])},${size || ''},${csvField(stackText(view, i))}`;
    const place = places.get(rest) ?? places.size;
    places.set(rest, place);
    addAmount(sums, place, rows.amounts, i);
  }
  const head = (view.diff ? ['_base', '_new'] : ['']).map((suffix) => csvField(view.type + suffix));
  const titles = [...head, ...view.diff ? ['change'] : [], 'low', 'high', 'thread', 'block_size', 'stack'];
  const out = [`${titles.join(',')}\n`];
  for (const [rest, place] of places)
    if (holdsAt(sums, place))
      out.push(`${amountFields(view, sums, place)},${rest}\n`);
  return out.join('');
}
