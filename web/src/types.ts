// What the parts of the page hand to each other. The data block is described in docs/page.md, amounts and rows in
// src/profile/view.h, their errors in src/profile/estimate.h: the same words, the same arithmetic.

// --- model/data.ts: a block, decoded ---

export interface SampleType { type: string; unit: string; times: number }
export interface Snapshot { name: string; time_ms: number | null }
export interface Source {
  name: string; snapshot: number; rate: number; time_ms: number | null;
  process: string | null; pid: number | null; raw_counts: boolean;
}
export interface BeginView {
  metric: string; by: Granularity; inverted: boolean;
  focus: string; ignore: string; hide: string; show: string; show_from: string;
}

export interface PageData {
  title: string | null; program: string | null;
  types: SampleType[]; defaultType: number;
  metric: number[];                  // columns of alloc_objects, alloc_space, inuse_objects, inuse_space; -1: none
  snapshots: Snapshot[]; base: number | null; sources: Source[];
  view: BeginView; notes: string[]; command: string[];
  rest: { rows: number; stacks: number; part: number } | null;
  strings: string[];
  mappings: { n: number; file: Uint32Array };
  frames: { n: number; name: Uint32Array; file: Uint32Array; line: Uint32Array;
            mapping: Int32Array /* -1: none */; flags: Uint8Array };
  // Node 0 is the root (frame NONE); parents come before children.
  nodes: { n: number; parent: Uint32Array; frame: Uint32Array; depth: Uint32Array };
  labels: { n: number; thread: Uint32Array; size: Float64Array; text: Uint32Array };
  rows: { n: number; node: Uint32Array; labels: Uint32Array; source: Uint32Array; rest: Uint32Array;
          newStack: Uint8Array /* 1: the row before is of the same node but of another stack */;
          values: Float64Array[] /* by type */ };
}
export const NONE = 0xffffffff;

// --- model/view.ts: the rows that are looked at ---

export type Granularity = 'function' | 'line' | 'file' | 'binary' | 'thread';

export interface ViewOptions {
  column: number;                    // of types
  at: number;                        // snapshot that is shown
  base: number | null;               // snapshot that is subtracted
  by: Granularity;
  focus: string; ignore: string; hide: string; show: string; showFrom: string;   // expressions; '': none
  binary: string;                    // only stacks with a frame of the binary of that path; '': all
  thread: string | null;             // only this thread ('': those without a name); null: all
  collapseRecursion: boolean;        // a frame that calls itself is one frame in trees
}

export interface Estimate { value: number; variance: number; weight: number }
export interface Interval { low: number; high: number }
export interface Amount { now: number; base: number; gained: Estimate; lost: Estimate }

// Amounts of many things, one array each. gained is now itself, and base and the three of lost have no element, unless it is a
// diff or some value is negative.
export interface Amounts {
  n: number; now: Float64Array; variance: Float64Array; weight: Float64Array; gained: Float64Array;
  base: Float64Array; lost: Float64Array; lostVariance: Float64Array; lostWeight: Float64Array;
}

export interface Entries {
  n: number; name: string[]; file: string[]; line: Uint32Array; binary: string[]; inlined: Uint8Array;
  unnamed: Uint8Array; mapping: Int32Array;
}

export interface View {
  data: PageData; options: ViewOptions;
  diff: boolean; oneProcess: boolean; hasError: boolean;
  type: string; unit: string;
  entries: Entries;
  frameEntry: Uint32Array;           // entry of each frame (by thread: its function, of no use)
  labelEntry: Uint32Array;           // by thread: entry of each label set; else empty
  // Rows that passed the filters: leaf's node, label set, rest (as in the block), and the number of its stack.
  rows: { n: number; node: Uint32Array; labels: Uint32Array; rest: Uint32Array; stack: Uint32Array; amounts: Amounts };
  // Of each node of the block, as view_stack() has it: is the frame shown? (Not hidden, not cut by show-from.)
  nodeShown: Uint8Array;
  total: Amount; totalAll: Amount;   // after and before filters
  lowerBounds: boolean;              // (other) rows among them: an entry may hold more than is shown
}

// --- model/tree.ts ---

// Calling-context tree; node 0 is the root. Parents before children; the children of a node are linked, widest first
// (by max(base, now), ties by name). A node of entry NONE (but the root) is an (other): what the block does not tell.
export interface Tree {
  n: number;
  entry: Uint32Array; parent: Uint32Array; firstChild: Uint32Array; nextSibling: Uint32Array; depth: Uint32Array;
  self: Amounts; total: Amounts;
  // Width of a node as pictures draw it: the sum over its stacks of the larger of base and now, so that what vanished has its
  // room (see src/report/flame_boxes.h). Without a diff: now.
  width: Float64Array;
  rest: Uint32Array;                 // of an (other): how many rows it stands for
}

export interface EntryTotals { flat: Amounts; cum: Amounts; pValue: Float64Array | null; significant: Uint8Array | null }

export type Change = 'none' | 'noise' | 'grew' | 'shrank' | 'new' | 'gone';     // as enum picture_change

// --- flame/: the canvas ---

export type WidthMode = 'max' | 'base' | 'now';        // of a diff

export interface FlameInput {
  view: View; tree: Tree;
  changes: Uint8Array | null;        // of a diff: per tree node, index into CHANGES
  width: WidthMode;
  icicle: boolean;                   // root at the top
  trimTemplates: boolean;
  matches: Uint8Array | null;        // per entry: does the search find it? null: no search
  selected: number;                  // entry, or NONE: its boxes are outlined everywhere
}
export const CHANGES: Change[] = ['none', 'noise', 'grew', 'shrank', 'new', 'gone'];
