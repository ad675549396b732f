// The lines of the selected function that hold memory. Served, with the source text around them.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { type Lines, visible } from '../model';
import { fetchSource, served } from '../load';
import { linesOf, selectedEntry } from '../selection';
import { theData, view } from '../state';
import { type Amounts, NONE, type View } from '../types';
import { Grid } from './grid';
import { cutMiddle, fileName, shownName } from './name';
import { amountText, changeCell } from './numbers';

const AROUND = 12; // lines of text before the first and after the last that holds something
const MOST_TEXT = 3000;

function shownAmount(v: View, amounts: Amounts, i: number): string {
  return v.diff ? changeCell(v, amounts, i) : amounts.now[i] === 0 ? '' : amountText(v, amounts.now[i]);
}

function LineList({ v, list }: { v: View; list: Lines }) {
  const [picked, pick] = useState(-1);
  useEffect(() => pick(-1), [list]);
  const path = (row: number) => v.data.strings[list.file[row]];
  return (
    <Grid
      label="Lines"
      test="lines"
      count={list.n}
      selected={picked}
      onSelect={pick}
      columns={[
        { key: 'flat', title: v.diff ? 'Δ flat' : 'Flat', number: true, width: 92 },
        { key: 'cum', title: v.diff ? 'Δ cum' : 'Cum', number: true, width: 92 },
        { key: 'place', title: 'Line' },
      ]}
      cell={(row, key) =>
        key === 'place' ? (
          <span class="name" title={visible(cutMiddle(path(row), 400))}>
            {list.file[row] === 0
              ? 'no line is known'
              : `${visible(cutMiddle(fileName(path(row)), 120))}:${list.line[row] || '?'}`}{' '}
            <span class="dim">{visible(cutMiddle(path(row), 200))}</span>
          </span>
        ) : (
          shownAmount(v, key === 'flat' ? list.flat : list.cum, row)
        )
      }
      empty="It has no frame that the filters let through."
    />
  );
}

interface Text {
  file: number;
  lines: string[] | null;
}

// Served: the text of a source file, null where it cannot be read.
function useSource(file: number): Text | null {
  const data = theData();
  const [text, setText] = useState<Text | null>(null);
  useEffect(() => {
    let current = true;
    setText(null);
    if (served() && file !== 0)
      void fetchSource(data.strings[file] ?? '').then(content => {
        if (current)
          setText({ file, lines: content === null ? null : content.split('\n') });
      });
    return () => {
      current = false;
    };
  }, [file, data]);
  return text && text.file === file ? text : null;
}

function Annotated({ v, list, file, text }: { v: View; list: Lines; file: number; text: string[] }) {
  const known = new Map<number, number>();
  for (let i = 0; i < list.n; i++)
    if (list.file[i] === file && list.line[i] > 0) known.set(list.line[i], i);
  const numbers = [...known.keys()];
  const first = Math.max(1, Math.min(...numbers) - AROUND);
  const last = Math.min(text.length, Math.max(...numbers) + AROUND, first + MOST_TEXT);
  const rows = [];
  for (let number = first; number <= last; number++) {
    const i = known.get(number);
    rows.push(
      <tr key={number} class={i === undefined ? '' : 'hot'}>
        <td class="number">{i === undefined ? '' : shownAmount(v, list.flat, i)}</td>
        <td class="number">{i === undefined ? '' : shownAmount(v, list.cum, i)}</td>
        <td class="number">{number}</td>
        <td>{visible(cutMiddle((text[number - 1] ?? '').replace(/\r$/, '').replaceAll('\t', '    '), 500))}</td>
      </tr>
    );
  }
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Source text">
      <table class="source" data-test="source">
        <thead>
          <tr>
            <th scope="col">{v.diff ? 'Δ flat' : 'Flat'}</th>
            <th scope="col">{v.diff ? 'Δ cum' : 'Cum'}</th>
            <th scope="col">Line</th>
            <th scope="col">Text</th>
          </tr>
        </thead>
        <tbody>{rows}</tbody>
      </table>
    </div>
  );
}

export function LinesView() {
  const v = view.value;
  const list = linesOf.value;
  const files = useMemo(() => (list ? [...new Set(list.file)].filter(file => file !== 0) : []), [list]);
  const [chosen, choose] = useState(0);
  const file = files.includes(chosen) ? chosen : (files[0] ?? 0);
  const text = useSource(file);
  if (selectedEntry.value === NONE || !list)
    return (
      <div class="page">
        <p class="empty" data-test="lines-empty">
          Select a function in any view: here stand its lines.
        </p>
      </div>
    );
  const name = (path: number) => visible(cutMiddle(v.data.strings[path], 100));
  const why = !served()
    ? 'The text of the source is shown by “heapgauge view”.'
    : text && text.lines === null
      ? 'The source file cannot be read here.'
      : '';
  const annotated = text?.lines && list.line.some((line, i) => line > 0 && list.file[i] === file);
  return (
    <div class="page lines">
      <div class="switches">
        <strong class="mono">{shownName(v.entries.name[selectedEntry.value], 120)}</strong>
        {files.length > 1 && (
          <label class="pick">
            File
            <select data-test="lines-file" value={file} onChange={event => choose(Number(event.currentTarget.value))}>
              {files.map(path => (
                <option key={path} value={path}>
                  {name(path)}
                </option>
              ))}
            </select>
          </label>
        )}
        {files.length === 1 && <span class="dim mono">{name(file)}</span>}
        <span class="dim">{why}</span>
      </div>
      {annotated ? <Annotated v={v} list={list} file={file} text={text.lines!} /> : <LineList v={v} list={list} />}
    </div>
  );
}
