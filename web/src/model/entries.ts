// Frames become entries: what counts as one row under a granularity. As in src/profile/view.c.
import type { Entries, Granularity, PageData } from '../types';
import { NONE } from '../types';
import { Triples } from './intern';

export const FRAME_INLINED = 1, FRAME_UNNAMED = 2;

export interface FrameEntries { entries: Entries; frameEntry: Uint32Array }

export const pathBase = (path: string) => path.slice(path.lastIndexOf('/') + 1) || path;

function newEntries(n: number): Entries {
  return {
    n, name: new Array<string>(n).fill(''), file: new Array<string>(n).fill(''), line: new Uint32Array(n),
    binary: new Array<string>(n).fill(''), inlined: new Uint8Array(n), unnamed: new Uint8Array(n),
    mapping: new Int32Array(n).fill(-1),
  };
}

const mappingPath = (data: PageData, mapping: number) => mapping < 0 ? '' : data.strings[data.mappings.file[mapping]];

// Name of what has no source file, or no binary.
function madeUpName(data: PageData, by: Granularity, mapping: number): string {
  return by === 'binary' ? '(unmapped)' : `(no source file: ${pathBase(mappingPath(data, mapping)) || 'unmapped'})`;
}

// Numbers that tell entries apart: the name (of made-up ones a number behind the strings), file and line.
function frameKeys(data: PageData, by: Granularity): (frame: number) => [number, number, number] {
  const { frames, mappings, strings } = data, made = new Map<string, number>();
  const madeUp = (mapping: number) => {
    const name = madeUpName(data, by, mapping);
    if (!made.has(name))
      made.set(name, strings.length + made.size);
    return made.get(name)!;
  };
  if (by === 'binary')
    return (f) => [frames.mapping[f] < 0 ? madeUp(-1) : mappings.file[frames.mapping[f]] || madeUp(-1), 0, 0];
  if (by === 'file')
    return (f) => [frames.file[f] || madeUp(frames.mapping[f]), 0, 0];
  // What has no name is never the same as what is called like it.
  const third = (f: number) => frames.flags[f] & FRAME_UNNAMED ? NONE : 0;
  if (by === 'line')
    return (f) => [frames.name[f], frames.file[f], third(f) || frames.line[f]];
  return (f) => [frames.name[f], 0, third(f)];
}

function makeFrameEntries(data: PageData, by: Granularity): FrameEntries {
  const { frames, strings } = data, keys = frameKeys(data, by), triples = new Triples(frames.n);
  const frameEntry = new Uint32Array(frames.n), first: number[] = [];
  const bothInlined: number[] = [];
  for (let f = 0; f < frames.n; f++) {
    const id = triples.add(...keys(f)), inlined = frames.flags[f] & FRAME_INLINED;
    frameEntry[f] = id;
    if (id === first.length) {
      first.push(f);
      bothInlined.push(inlined);
    }
    bothInlined[id] &= inlined;
  }
  const entries = newEntries(first.length);
  first.forEach((f, id) => {
    const mapping = frames.mapping[f], path = mappingPath(data, mapping);
    const name = by === 'binary' ? path : strings[(by === 'file' ? frames.file : frames.name)[f]];
    entries.name[id] = name || (by === 'binary' || by === 'file' ? madeUpName(data, by, mapping) : '');
    entries.file[id] = by === 'file' || by === 'line' ? strings[frames.file[f]] : '';
    entries.line[id] = by === 'line' ? frames.line[f] : 0;
    entries.binary[id] = path;
    entries.mapping[id] = mapping;
    entries.inlined[id] = bothInlined[id];
    entries.unnamed[id] = frames.flags[f] & FRAME_UNNAMED && by !== 'binary' && by !== 'file' ? 1 : 0;
  });
  return { entries, frameEntry };
}

const known = new WeakMap<PageData, Map<Granularity, FrameEntries>>();

// Entries of all frames of the block, the same for all views of it.
export function frameEntries(data: PageData, by: Granularity): FrameEntries {
  const of = known.get(data) ?? new Map<Granularity, FrameEntries>();
  known.set(data, of);
  const made = of.get(by) ?? makeFrameEntries(data, by);
  of.set(by, made);
  return made;
}

// --- threads ---

// jemalloc numbers threads as they first allocate, so between processes only the name means something.
function nameOfThread(thread: string): string {
  const match = /^t[0-9]+(?: (.*))?$/s.exec(thread);
  return match ? match[1] ?? '' : thread;
}

// Text that tells threads apart, per label set; '' for none.
export function threadKeys(data: PageData, byName: boolean, by: Granularity): string[] {
  return Array.from(data.labels.thread, (string) => {
    const thread = data.strings[string], name = byName ? nameOfThread(thread) : thread;
    return name || (by === 'thread' ? thread : '');
  });
}

// By thread: the entry of each label set.
export function threadEntries(keys: string[]): { entries: Entries; labelEntry: Uint32Array } {
  const ids = new Map<string, number>(), labelEntry = new Uint32Array(keys.length);
  keys.forEach((key, i) => {
    const name = key || '(no thread)';
    if (!ids.has(name))
      ids.set(name, ids.size);
    labelEntry[i] = ids.get(name)!;
  });
  const entries = newEntries(ids.size);
  entries.name = [...ids.keys()];
  return { entries, labelEntry };
}
