// Which fill a box has: by the binary of its frame, three shades by its name; in a diff by what became of it.
import { CHANGES, NONE, type FlameInput, type PageData, type View } from '../types';
import type { Layout } from './layout';
import { FILLS, GONE, GREW, HUE, HUES, NEW, NOISE, REST, ROOT, SAME, SHADES, SHRANK } from './palette';

export interface BinaryHue { path: string; hue: number }
interface Binaries { byName: boolean; hueOfMapping: Uint8Array; legend: BinaryHue[] }

const known = new WeakMap<PageData, Binaries>();

// The heaviest binary gets the first hue. All rows count, so that a filter changes no colours.
function weigh(data: PageData): Map<number, number> {
  const { rows, nodes, frames, mappings } = data;
  const weights = new Map<number, number>();
  for (let i = 0; i < frames.n; i++)
    if (frames.mapping[i] >= 0)
      weights.set(mappings.file[frames.mapping[i]], 0);
  const values = rows.values[data.defaultType];
  for (let i = 0; values && i < rows.n; i++) {
    const frame = nodes.frame[rows.node[i]];
    const mapping = frame === NONE ? -1 : frames.mapping[frame];
    if (mapping >= 0) {
      const file = mappings.file[mapping];
      weights.set(file, weights.get(file)! + Math.abs(values[i]));
    }
  }
  return weights;
}

export function binaries(data: PageData): Binaries {
  const before = known.get(data);
  if (before)
    return before;
  const { mappings, strings } = data;
  const order = [...weigh(data)].sort((a, b) => b[1] - a[1] || (strings[a[0]] < strings[b[0]] ? -1 : 1));
  const hueOfFile = new Map(order.map(([file], i) => [file, Math.min(i, HUES)]));
  const hueOfMapping = Uint8Array.from(mappings.file, file => hueOfFile.get(file) ?? HUES);
  const made = {
    byName: order.length < 2, hueOfMapping,
    legend: order.map(([file], i) => ({ path: strings[file], hue: Math.min(i, HUES) })),
  };
  known.set(data, made);
  return made;
}

function hash(text: string): number {
  let h = 0x811c9dc5;
  const n = Math.min(text.length, 256);
  for (let i = 0; i < n; i++)
    h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
  h ^= h >>> 15;
  return (Math.imul(h, 0x2c1b3c6d) ^ h >>> 7) >>> 0;
}

// Fill of each entry of the view, outside of a diff.
function entryFills(view: View): Uint8Array {
  const { byName, hueOfMapping } = binaries(view.data);
  const { n, name, mapping } = view.entries;
  const fills = new Uint8Array(n);
  for (let i = 0; i < n; i++) {
    const h = hash(name[i]);
    const at = mapping[i];
    const hue = byName ? Math.floor(h / SHADES) % HUES : at >= 0 && at < hueOfMapping.length ? hueOfMapping[at] : HUES;
    fills[i] = HUE + hue * SHADES + h % SHADES;
  }
  return fills;
}

function changeFill(change: string, base: number, now: number): number {
  const part = Math.abs(now - base) / Math.max(Math.abs(base), Math.abs(now));
  const strength = part < 0.1 ? 0 : part < 0.5 ? 1 : 2;
  switch (change) {
    case 'noise': return NOISE;
    case 'grew': return GREW + strength;
    case 'shrank': return SHRANK + strength;
    case 'new': return NEW;
    case 'gone': return GONE;
    default: return SAME;
  }
}

// Fill of each node.
export function nodeFills(input: FlameInput): Uint8Array {
  const { tree, view, changes } = input;
  const fills = new Uint8Array(tree.n);
  if (changes) {
    const { now, base } = tree.total;
    for (let i = 0; i < tree.n; i++)
      fills[i] = changeFill(CHANGES[changes[i]] ?? 'none', base[i] ?? 0, now[i]);
    return fills;
  }
  const ofEntry = entryFills(view);
  for (let i = 0; i < tree.n; i++) {
    const entry = tree.entry[i];
    fills[i] = entry === NONE ? REST : ofEntry[entry];
  }
  if (tree.entry[0] === NONE)
    fills[0] = ROOT;
  return fills;
}

// The fills in the order of the slots, dimmed where a search didn't find the box; `found` counts the finds in all slots before
// one, so that those in a run of narrow boxes are known at once.
export interface Paint { fill: Uint8Array; found: Uint32Array | null }

export function paintSlots(layout: Layout, fills: Uint8Array, matches: Uint8Array | null): Paint {
  const { n, node, tree } = layout;
  const fill = new Uint8Array(n);
  if (!matches) {
    for (let i = 0; i < n; i++)
      fill[i] = fills[node[i]];
    return { fill, found: null };
  }
  const found = new Uint32Array(n + 1);
  for (let i = 0; i < n; i++) {
    const entry = tree.entry[node[i]];
    const hit = entry !== NONE && matches[entry] ? 1 : 0;
    fill[i] = fills[node[i]] + (hit ? 0 : FILLS);
    found[i + 1] = found[i] + hit;
  }
  return { fill, found };
}
