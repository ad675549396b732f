// One function between those that call it, above, and those that it calls, below: as pictures or as two tables.
import { useEffect, useMemo, useState } from 'preact/hooks';
import { treeChanges } from '../model';
import * as s from '../settings';
import { pickEntry, sandwichOf, selectedEntry } from '../selection';
import { matches, view } from '../state';
import { NONE, type FlameInput, type Tree, type View } from '../types';
import { FlameHost } from './flame';
import { Grid } from './grid';
import { WidthSwitch } from './header';
import { Name, shownName } from './name';
import { amountText, changeCell, entryNote, errorAt, percentText, valueText } from './numbers';

export interface Neighbour {
  entry: number;
  node: number;
}

// The frames next to the root of a tree, widest first; (other) has no entry.
export function neighbours(tree: Tree): Neighbour[] {
  const list: Neighbour[] = [];
  for (let node = tree.firstChild[0]; node !== 0; node = tree.nextSibling[node])
    list.push({ entry: tree.entry[node], node });
  return list;
}

function NeighbourTable({ v, tree, label, test }: { v: View; tree: Tree; label: string; test: string }) {
  const list = useMemo(() => neighbours(tree), [tree]);
  const [row, setRow] = useState(-1);
  useEffect(() => setRow(-1), [tree]);
  const whole = v.diff ? 0 : tree.total.now[0];
  return (
    <Grid
      label={label}
      test={test}
      count={list.length}
      selected={row}
      columns={[
        { key: 'value', title: v.diff ? 'Δ' : 'Amount', number: true, width: 92 },
        ...(v.diff ? [] : [{ key: 'part', title: '%', number: true, width: 68 }]),
        ...(v.hasError ? [{ key: 'error', title: '±', number: true, width: v.diff ? 164 : 128 }] : []),
        { key: 'name', title: label },
      ]}
      cell={(at, key) => {
        const { entry, node } = list[at];
        switch (key) {
          case 'value':
            return v.diff ? changeCell(v, tree.total, node) : amountText(v, tree.total.now[node]);
          case 'part':
            return percentText(tree.total.now[node], whole);
          case 'error':
            return errorAt(v, tree.total, node);
          default:
            return entry === NONE ? (
              <span class="dim">(other)</span>
            ) : (
              <Name name={v.entries.name[entry]} note={entryNote(v, entry)} />
            );
        }
      }}
      onSelect={setRow}
      onOpen={at => {
        if (list[at].entry !== NONE)
          pickEntry(list[at].entry);
      }}
      empty={test === 'callers' ? 'Nothing calls it: it is where stacks begin.' : 'It calls nothing that allocates.'}
    />
  );
}

export function SandwichView() {
  const v = view.value;
  const entry = selectedEntry.value;
  const pair = sandwichOf.value;
  const inputs = useMemo(() => {
    if (!pair)
      return null;
    const of = (tree: Tree) => (v.diff ? treeChanges(v, tree) : null);
    return { callers: of(pair.callers), callees: of(pair.callees) };
  }, [pair]);
  if (entry === NONE || !pair || !inputs)
    return (
      <div class="page">
        <p class="empty" data-test="sandwich-empty">
          Select a function in any view (or search, and press n): here stand those that call it above, and those that it
          calls below.
        </p>
      </div>
    );
  const shared = {
    view: v,
    width: s.width.value,
    trimTemplates: s.trim.value,
    matches: matches.value,
    selected: entry,
  };
  const above: FlameInput = { ...shared, tree: pair.callers, changes: inputs.callers, icicle: false };
  const below: FlameInput = { ...shared, tree: pair.callees, changes: inputs.callees, icicle: true };
  const select = (chosen: number) => {
    if (chosen !== NONE)
      pickEntry(chosen);
  };
  return (
    <div class="page sandwich">
      <div class="switches">
        <div class="segments" role="group" aria-label="Shape">
          <button
            type="button"
            aria-pressed={!s.sandwichTables.value}
            data-test="sandwich-pictures"
            onClick={() => {
              s.sandwichTables.value = false;
            }}>
            Pictures
          </button>
          <button
            type="button"
            aria-pressed={s.sandwichTables.value}
            data-test="sandwich-tables"
            onClick={() => {
              s.sandwichTables.value = true;
            }}>
            Tables
          </button>
        </div>
        {!s.sandwichTables.value && <WidthSwitch />}
        <strong class="mono" data-test="sandwich-entry">
          {shownName(v.entries.name[entry], 120)}
        </strong>
        <span class="dim">
          {valueText(v, { now: pair.callees.total.now[0], base: pair.callees.total.base[0] ?? 0 })}
        </span>
      </div>
      <h2>Callers</h2>
      {s.sandwichTables.value ? (
        <NeighbourTable v={v} tree={pair.callers} label="Callers" test="callers" />
      ) : (
        <FlameHost input={above} test="callers" label="Callers" zoom={0} onSelect={select} onZoom={() => {}} />
      )}
      <h2>Callees</h2>
      {s.sandwichTables.value ? (
        <NeighbourTable v={v} tree={pair.callees} label="Callees" test="callees" />
      ) : (
        <FlameHost input={below} test="callees" label="Callees" zoom={0} onSelect={select} onZoom={() => {}} />
      )}
    </div>
  );
}
