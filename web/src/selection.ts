// The one selection that all views share: an entry, and where it was picked in a tree the stack that leads to it. In
// the address both are ids made of names, so that a link means the same on tomorrow's profile.
import { batch, computed } from '@preact/signals';
import type { FlameGraph } from './flame';
import { entryId, findEntry, findNode, lines, nodeId, sandwich } from './model';
import { fetchAll, served, tell } from './load';
import * as s from './settings';
import { found, tree, treeDown, treeUp, view } from './state';
import { NONE, type Tree } from './types';
import { copy } from './ui/copy';

// The picture that gets the keys which nobody else takes.
export const theFlame: { current: FlameGraph | null } = { current: null };

export const selectedEntry = computed(() => (s.selected.value === '' ? NONE : findEntry(view.value, s.selected.value)));

// What was picked just now need not be searched for.
let picked: { tree: Tree; node: number; id: string } | null = null;

// Ids of nodes name the direction of the tree that they are of.
const UP = '^';

function idOf(node: number, inverted: boolean): string {
  if (node === 0)
    return '';
  const of = inverted ? treeUp.value : treeDown.value;
  const id = nodeId(view.value, of, node);
  picked = { tree: of, node, id };
  return (inverted ? UP : '') + id;
}

function nodeOf(id: string): { tree: Tree; node: number } | null {
  if (id === '')
    return null;
  const inverted = id.startsWith(UP);
  const of = inverted ? treeUp.value : treeDown.value;
  const own = inverted ? id.slice(UP.length) : id;
  const node = picked && picked.tree === of && picked.id === own ? picked.node : findNode(view.value, of, own);
  return node === NONE || node === 0 ? null : { tree: of, node };
}

export interface Stack {
  frames: number[];
  now: number;
  base: number;
} // leaf first

export const selectedStack = computed<Stack | null>(() => {
  const place = nodeOf(s.stack.value);
  if (!place)
    return null;
  const frames: number[] = [];
  for (let node = place.node; node !== 0; node = place.tree.parent[node])
    frames.push(place.tree.entry[node]);
  if (place.tree === treeUp.value)
    frames.reverse();
  return { frames, now: place.tree.total.now[place.node], base: place.tree.total.base[place.node] ?? 0 };
});

// In the tree that is shown; 0: all of it.
export const zoomNode = computed(() => {
  const place = s.zoom.value === '' ? null : nodeOf(s.zoom.value);
  return place && place.tree === tree.value ? place.node : 0;
});

export const sandwichOf = computed(() =>
  selectedEntry.value === NONE ? null : sandwich(view.value, selectedEntry.value)
);
export const linesOf = computed(() => (selectedEntry.value === NONE ? null : lines(view.value, selectedEntry.value)));

export function pickEntry(entry: number) {
  batch(() => {
    s.selected.value = entry === NONE ? '' : entryId(view.value, entry);
    s.stack.value = '';
  });
}

export function moveTo(entry: number) {
  s.quietly(() => pickEntry(entry));
}

export function pickNode(entry: number, node: number) {
  batch(() => {
    pickEntry(entry);
    s.stack.value = idOf(node, s.inverted.value);
  });
}

// A stack by its frames, leaf first.
export function pickFrames(frames: readonly number[]) {
  const { firstChild, nextSibling, entry } = treeDown.value;
  let node = 0;
  for (let i = frames.length - 1; i >= 0; i--) {
    let child = firstChild[node];
    while (child !== 0 && entry[child] !== frames[i])
      child = nextSibling[child];
    if (child === 0)
      break;
    node = child;
  }
  batch(() => {
    pickEntry(frames[0] ?? NONE);
    s.stack.value = idOf(node, false);
  });
}

export function letGo(): boolean {
  const had = s.selected.value !== '' || s.stack.value !== '';
  batch(() => {
    s.selected.value = '';
    s.stack.value = '';
  });
  return had;
}

export function zoomTo(node: number) {
  s.zoom.value = idOf(node, s.inverted.value);
}

export function zoomOut() {
  const now = zoomNode.value;
  if (now !== 0)
    zoomTo(tree.value.parent[now]);
}

export function searchNext(step: number) {
  const list = found.value;
  if (!list || list.length === 0)
    return;
  const now = list.indexOf(selectedEntry.value);
  const next = now < 0 ? (step > 0 ? 0 : list.length - 1) : (now + step + list.length) % list.length;
  moveTo(list[next]);
}

export function frameText(entry: number): string {
  if (entry === NONE)
    return '(other)';
  const { name, file, line } = view.value.entries;
  const place = file[entry] ? ` (${file[entry]}${line[entry] > 0 ? `:${line[entry]}` : ''})` : '';
  return name[entry] + place;
}

// The stack that is selected, leaf first; without one, the name.
export function copySelected() {
  const stack = selectedStack.value;
  const entry = selectedEntry.value;
  if (stack)
    void copy(stack.frames.map(frameText).join('\n'), `a stack of ${stack.frames.length} frames`);
  else if (entry !== NONE)
    void copy(frameText(entry), 'the name (pick a box or a trace for a whole stack)');
  else
    tell('Nothing is selected.');
}

export function openRest() {
  if (served())
    void fetchAll();
  else
    tell('These stacks are too small to be in the file: “heapgauge view” shows all of them.');
}
