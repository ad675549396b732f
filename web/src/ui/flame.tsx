// The flame graph with its switches. The picture itself is flame/: here it gets what to draw, and says what was
// clicked.
import { useEffect, useRef } from 'preact/hooks';
import { FlameGraph } from '../flame';
import * as s from '../settings';
import { openRest, pickNode, selectedEntry, theFlame, zoomNode, zoomOut, zoomTo } from '../selection';
import { changes, matches, tree, view } from '../state';
import type { FlameInput, Tree } from '../types';
import { dark } from './theme';
import { WidthSwitch } from './header';
import { flameAmount, flameTip } from './tip';

interface HostProps {
  input: FlameInput;
  test: string;
  label: string;
  zoom: number;
  onSelect(entry: number, node: number): void;
  onZoom(node: number): void;
  keyboard?: boolean; // keys that nobody else takes are its own
}

export function FlameHost({ input, test, label, zoom, onSelect, onZoom, keyboard }: HostProps) {
  const host = useRef<HTMLDivElement>(null);
  const graph = useRef<FlameGraph | null>(null);
  const events = useRef({ onSelect, onZoom, input });
  events.current = { onSelect, onZoom, input };
  const drawnZoom = useRef(0);
  const drawnTree = useRef<Tree | null>(null);

  useEffect(() => {
    const made = new FlameGraph(host.current!, {
      select: (entry, node) => events.current.onSelect(entry, node),
      zoom: node => {
        drawnZoom.current = node;
        events.current.onZoom(node);
      },
      rest: openRest,
      tooltip: node => flameTip(events.current.input, node),
      amount: node => flameAmount(events.current.input, node),
    });
    graph.current = made;
    if (keyboard)
      theFlame.current = made;
    return () => {
      if (theFlame.current === made)
        theFlame.current = null;
      made.destroy();
    };
  }, []);
  useEffect(() => graph.current!.theme(dark.value), [dark.value]);
  useEffect(() => {
    graph.current!.show(input);
  }, [
    input.view,
    input.tree,
    input.changes,
    input.width,
    input.icicle,
    input.trimTemplates,
    input.matches,
    input.selected,
  ]);
  useEffect(() => {
    const sameTree = drawnTree.current === input.tree;
    if (!sameTree || zoom !== drawnZoom.current)
      graph.current!.zoomTo(zoom, sameTree);
    drawnZoom.current = zoom;
    drawnTree.current = input.tree;
  }, [zoom, input.tree]);
  return <div class="picture" ref={host} data-test={test} aria-label={label} />;
}

export function flameInput(): FlameInput {
  return {
    view: view.value,
    tree: tree.value,
    changes: changes.value,
    width: s.width.value,
    icicle: s.icicle.value,
    trimTemplates: s.trim.value,
    matches: matches.value,
    selected: selectedEntry.value,
  };
}

export function FlameView() {
  const input = flameInput();
  return (
    <div class="page flamepage">
      <div class="switches">
        <div class="segments" role="group" aria-label="Direction">
          <button
            type="button"
            aria-pressed={s.icicle.value}
            data-test="icicle"
            onClick={() => {
              s.icicle.value = true;
            }}>
            Icicle
          </button>
          <button
            type="button"
            aria-pressed={!s.icicle.value}
            data-test="upright"
            onClick={() => {
              s.icicle.value = false;
            }}>
            Flame
          </button>
        </div>
        <div class="segments" role="group" aria-label="Order (i)">
          <button
            type="button"
            aria-pressed={!s.inverted.value}
            data-test="top-down"
            title="Callees below their callers"
            onClick={() => {
              s.inverted.value = false;
            }}>
            From main
          </button>
          <button
            type="button"
            aria-pressed={s.inverted.value}
            data-test="inverted"
            title="Callers below their callees: what allocates, then who asked"
            onClick={() => {
              s.inverted.value = true;
            }}>
            From allocations
          </button>
        </div>
        <WidthSwitch />
        <button
          type="button"
          data-test="zoom-out"
          disabled={zoomNode.value === 0}
          title="To the caller (Backspace)"
          onClick={zoomOut}>
          Zoom out
        </button>
        <button
          type="button"
          data-test="zoom-whole"
          disabled={zoomNode.value === 0}
          title="Everything (0)"
          onClick={() => zoomTo(0)}>
          Whole picture
        </button>
        <span class="dim hint">
          {s.inverted.value ? 'What allocates is at the root, its callers follow' : 'Callers contain what they call'}
        </span>
      </div>
      <FlameHost
        input={input}
        test="flame"
        label="Flame graph"
        zoom={zoomNode.value}
        onSelect={pickNode}
        onZoom={zoomTo}
        keyboard
      />
    </div>
  );
}
