// A table of any length: only the rows in sight exist. It is a real table that is walked with the arrow keys; one row
// is the selected one, Enter opens it.
import type { ComponentChildren, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';

export interface Column {
  key: string;
  title: string;
  help?: string;
  number?: boolean; // aligned to the right
  width?: number; // pixels; without: what is left
  sortable?: boolean;
}

export interface GridProps {
  label: string;
  test: string;
  columns: Column[];
  count: number;
  cell(row: number, column: string): ComponentChildren;
  rowClass?(row: number): string;
  selected: number; // -1: none
  onSelect(row: number, byKey: boolean): void;
  onOpen?(row: number): void;
  sort?: { key: string; ascending: boolean };
  onSort?(key: string): void;
  empty: string;
}

const ROW = 24;
const HEAD = 26;
const SPARE = 6;
const NAME = 260; // pixels that are left for names at least
// Browsers draw nothing taller; the rows beyond are reached with filters or another order.
const MOST = 1_200_000;

function Head({ columns, sort, onSort }: Pick<GridProps, 'columns' | 'sort' | 'onSort'>) {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map(column => {
          const sorted =
            sort?.key === column.key ? (sort.ascending ? ('ascending' as const) : ('descending' as const)) : undefined;
          return (
            <th
              key={column.key}
              scope="col"
              class={column.number ? 'number' : ''}
              title={column.help}
              aria-sort={sorted}>
              {column.sortable && onSort ? (
                <button type="button" class="sort" onClick={() => onSort(column.key)}>
                  {column.title}
                  <span aria-hidden="true">{sorted === 'ascending' ? ' ▲' : sorted ? ' ▼' : ''}</span>
                </button>
              ) : (
                column.title
              )}
            </th>
          );
        })}
      </tr>
    </thead>
  );
}

function useHeight() {
  const box = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(600);
  useLayoutEffect(() => {
    const element = box.current!;
    const measure = () => setHeight(element.clientHeight);
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return { box, height };
}

// The selected row is in sight, wherever it was chosen.
function useReveal(box: RefObject<HTMLDivElement | null>, selected: number, count: number) {
  useEffect(() => {
    const element = box.current!;
    if (selected < 0)
      return;
    const from = selected * ROW;
    const visible = element.clientHeight - HEAD;
    if (from < element.scrollTop)
      element.scrollTop = from;
    else if (from + ROW > element.scrollTop + visible)
      element.scrollTop = from + ROW - visible;
  }, [selected, count]);
}

function rowOf(event: Event): number {
  const row = (event.target as HTMLElement).closest('tr[data-row]');
  return row ? Number(row.getAttribute('data-row')) : -1;
}

// In place of the rows out of sight.
function Space({ rows, columns }: { rows: number; columns: number }) {
  return rows <= 0 ? null : (
    <tr aria-hidden="true" class="space">
      <td colSpan={columns} style={{ height: `${rows * ROW}px` }} />
    </tr>
  );
}

function moved(key: string, from: number, count: number, page: number): number | null {
  const to: Record<string, number> = {
    ArrowDown: from + 1,
    ArrowUp: from < 0 ? 0 : from - 1,
    PageDown: from + page,
    PageUp: from - page,
    Home: 0,
    End: count - 1,
  };
  return key in to ? Math.max(0, Math.min(count - 1, to[key])) : null;
}

export function Grid(props: GridProps) {
  const { label, test, columns, cell, rowClass, selected, onSelect, onOpen, empty } = props;
  const count = Math.min(props.count, MOST);
  const { box, height } = useHeight();
  const [top, setTop] = useState(0);
  const first = Math.max(0, Math.min(Math.floor(top / ROW) - SPARE, count - 1));
  const last = Math.min(count, first + Math.ceil(height / ROW) + 2 * SPARE);

  useReveal(box, selected, count);

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.altKey || event.metaKey || (event.target as HTMLElement).tagName === 'BUTTON')
      return;
    const to = moved(event.key, selected, count, Math.max(1, Math.floor((height - HEAD) / ROW) - 1));
    if (to !== null && count > 0)
      onSelect(to, true);
    else if (event.key === 'Enter' && selected >= 0 && onOpen)
      onOpen(selected);
    else
      return;
    event.preventDefault();
    event.stopPropagation();
  };
  const onClick = (event: Event) => {
    const row = rowOf(event);
    if (row >= 0)
      onSelect(row, false);
  };
  const onDblClick = (event: Event) => {
    const row = rowOf(event);
    if (row >= 0)
      onOpen?.(row);
  };

  const rows = [];
  for (let row = first; row < last; row++)
    rows.push(
      <tr
        key={row}
        id={`${test}-${row}`}
        data-row={row}
        aria-rowindex={row + 2}
        aria-selected={row === selected}
        class={rowClass?.(row) ?? ''}>
        {columns.map(column => (
          <td key={column.key} class={column.number ? 'number' : 'text'}>
            {cell(row, column.key)}
          </td>
        ))}
      </tr>
    );
  return (
    <div class="scroll" ref={box} onScroll={event => setTop(event.currentTarget.scrollTop)}>
      <table
        class="grid"
        role="grid"
        aria-label={label}
        aria-rowcount={props.count + 1}
        tabIndex={0}
        data-test={test}
        aria-activedescendant={selected >= first && selected < last ? `${test}-${selected}` : undefined}
        style={{ minWidth: `${columns.reduce((sum, column) => sum + (column.width ?? NAME), 0)}px` }}
        onKeyDown={onKeyDown}
        onClick={onClick}
        onDblClick={onDblClick}>
        <colgroup>
          {columns.map(column => (
            <col key={column.key} style={column.width ? { width: `${column.width}px` } : {}} />
          ))}
        </colgroup>
        <Head {...props} />
        <tbody>
          <Space rows={first} columns={columns.length} />
          {rows}
          <Space rows={count - last} columns={columns.length} />
        </tbody>
      </table>
      {count === 0 && <p class="empty">{empty}</p>}
      {count < props.count && (
        <p class="empty">
          The first {count.toLocaleString('en')} of {props.count.toLocaleString('en')} rows are listed.
        </p>
      )}
    </div>
  );
}
