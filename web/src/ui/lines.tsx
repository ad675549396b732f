// The lines of the selected function that hold memory. Served, with the source text around them.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { visible } from '../model';
import { fetchSource, served } from '../load';
import { linesOf, selectedEntry } from '../selection';
import { theData, view } from '../state';
import { NONE, type View } from '../types';
import { Grid } from './grid';
import { cutMiddle, fileName, shownName } from './name';
import { amountText, changeText } from './numbers';

const AROUND = 12;                     // lines of text before the first and after the last that holds something
const MOST_TEXT = 3000;

type Line = typeof linesOf.value[number];

function shownAmount(v: View, amount: { now: number; base: number }): string {
  return v.diff ? changeText(v, amount.now - amount.base) : amount.now === 0 ? '' : amountText(v, amount.now);
}

function LineList({ v, list }: { v: View; list: readonly Line[] }) {
  return <Grid label="Lines" test="lines" count={list.length} selected={-1} onSelect={() => {}}
    columns={[{ key: 'flat', title: v.diff ? 'Δ flat' : 'Flat', number: true, width: 92 }, { key: 'cum', title: v.diff ? 'Δ cum' : 'Cum', number: true, width: 92 },
      { key: 'place', title: 'Line' }]}
    cell={(row, key) => {
      const line = list[row];
      if (key === 'place')
        return <span class="name" title={visible(cutMiddle(line.file, 400))}>{line.file === '' ? 'no line is known'
          : `${visible(cutMiddle(fileName(line.file), 120))}:${line.line || '?'}`} <span class="dim">{visible(cutMiddle(line.file, 200))}</span></span>;
      return shownAmount(v, key === 'flat' ? line.flat : line.cum);
    }}
    empty="It has no frame that the filters let through." />;
}

interface Text { file: string; lines: string[] | null }

function useSource(file: string): Text | null {
  const [text, setText] = useState<Text | null>(null);
  const index = useMemo(() => theData().strings.indexOf(file), [file, theData()]);
  useEffect(() => {
    let current = true;
    setText(null);
    if (!served() || file === '' || index < 0)
      return;
    void fetchSource(index).then(content => {
      if (current)
        setText({ file, lines: content === null ? null : content.split('\n') });
    });
    return () => { current = false; };
  }, [file, index]);
  return text && text.file === file ? text : null;
}

function Annotated({ v, list, text }: { v: View; list: readonly Line[]; text: string[] }) {
  const known = new Map(list.filter(line => line.line > 0).map(line => [line.line, line]));
  const numbers = [...known.keys()];
  const first = Math.max(1, Math.min(...numbers) - AROUND);
  const last = Math.min(text.length, Math.max(...numbers) + AROUND, first + MOST_TEXT);
  const rows = [];
  for (let number = first; number <= last; number++) {
    const line = known.get(number);
    rows.push(<tr key={number} class={line ? 'hot' : ''}>
      <td class="number">{line ? shownAmount(v, line.flat) : ''}</td><td class="number">{line ? shownAmount(v, line.cum) : ''}</td>
      <td class="number">{number}</td><td>{visible(cutMiddle((text[number - 1] ?? '').replace(/\r$/, '').replaceAll('\t', '    '), 500))}</td></tr>);
  }
  return <div class="scroll" tabIndex={0} role="region" aria-label="Source text"><table class="source" data-test="source">
    <thead><tr><th scope="col">{v.diff ? 'Δ flat' : 'Flat'}</th><th scope="col">{v.diff ? 'Δ cum' : 'Cum'}</th><th scope="col">Line</th>
      <th scope="col">Text</th></tr></thead>
    <tbody>{rows}</tbody></table></div>;
}

export function LinesView() {
  const v = view.value;
  const list = linesOf.value;
  const files = useMemo(() => [...new Set(list.map(line => line.file))].filter(file => file !== ''), [list]);
  const [chosen, choose] = useState('');
  const file = files.includes(chosen) ? chosen : files[0] ?? '';
  const text = useSource(file);
  if (selectedEntry.value === NONE)
    return <div class="page"><p class="empty" data-test="lines-empty">Select a function in any view: here stand its lines.</p></div>;
  const why = !served() ? 'The text of the source is shown by “heapgauge view”.'
    : text && text.lines === null ? 'The source file cannot be read here.' : '';
  const inFile = list.filter(line => line.file === file);
  return <div class="page lines">
    <div class="switches"><strong class="mono">{shownName(v.entries.name[selectedEntry.value], 120)}</strong>
      {files.length > 1 && <label class="pick">File
        <select data-test="lines-file" value={file} onChange={event => choose(event.currentTarget.value)}>
          {files.map(path => <option key={path} value={path}>{visible(cutMiddle(path, 80))}</option>)}</select></label>}
      {files.length === 1 && <span class="dim mono">{visible(cutMiddle(file, 120))}</span>}
      <span class="dim">{why}</span></div>
    {text?.lines && inFile.some(line => line.line > 0) ? <Annotated v={v} list={inFile} text={text.lines} /> : <LineList v={v} list={list} />}
  </div>;
}
