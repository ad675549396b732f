// The table of entries for a ticket.
import type { Amounts, View } from '../../types';
import { amountAt } from '../amounts';
import { visible } from '../names';
import { entryTotals, rankEntries } from '../totals';
import { changePercentText, errorText, percentText, valueText } from '../words';

// A name as code, whatever is in it.
function code(text: string): string {
  const ticks = '`'.repeat(1 + Math.max(0, ...Array.from(text.matchAll(/`+/g), ([run]) => run.length))),
    pad = ticks.length > 1 ? ' ' : '';
  return `${ticks}${pad}${visible(text).replaceAll('|', '\\|')}${pad}${ticks}`;
}

function cells(view: View, amounts: Amounts, i: number): string[] {
  const a = amountAt(amounts, i);
  return [valueText(view, a), errorText(view, a), view.diff ? changePercentText(a)
    : percentText(a.now, view.totalAll.now)];
}

// The first n rows (0: all), and the command that prints them.
export function markdown(view: View, sort: 'flat' | 'cum', n: number, command: string): string {
  const totals = entryTotals(view, sort), order = rankEntries(view, totals, sort),
    shown = n ? order.subarray(0, n) : order;
  const { name, file, line } = view.entries, share = view.diff ? 'change' : '%';
  const out = [
    `**${view.type.replaceAll('_', '\\_')}** ${valueText(view, view.total)} ${errorText(view, view.total)}`.trimEnd(),
    '',
    `| flat | ± | ${share} | cum | ± | ${share} | ${view.diff ? 'verdict | ' : ''}${view.options.by} |`,
    `|--:|--:|--:|--:|--:|--:|${view.diff ? ':--|' : ''}:--|`,
  ];
  for (const i of shown) {
    const verdict = totals.significant && view.hasError ? [totals.significant[i] ? '' : 'noise'] : view.diff ? ['']
      : [];
    const place = line[i] ? ` ${code(`${file[i]}:${line[i]}`)}` : '';
    const amounts = [...cells(view, totals.flat, i), ...cells(view, totals.cum, i)];
    out.push(`| ${[...amounts, ...verdict, code(name[i] || '(unnamed)') + place].join(' | ')} |`);
  }
  if (shown.length < order.length)
    out.push('', `(${order.length - shown.length} more rows)`);
  return `${[...out, '', code(command)].join('\n')}\n`;
}
