// Names for entries and places in trees that last: hashes of what they are called, not of their numbers, so that an
// address in the URL finds them again in another block, or under other filters.
import type { Tree, View } from '../types';
import { NONE } from '../types';

// Two hashes of 32 bits, which together are 52 bits of an id.
interface Hash { a: number; b: number }

function hashText(text: string): Hash {
  let a = 0x811c9dc5, b = 0x9747b28c;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    a = Math.imul(a ^ c, 0x01000193);
    b = Math.imul(b ^ c, 0x5bd1e995);
    b ^= b >>> 15;
  }
  return { a: a >>> 0, b: b >>> 0 };
}

function below(parent: Hash, own: Hash): Hash {
  const a = Math.imul(parent.a ^ own.a, 0x85ebca6b) + own.b, b = Math.imul(parent.b + own.b, 0xc2b2ae35) ^ own.a;
  return { a: (a ^ a >>> 16) >>> 0, b: (b ^ b >>> 13) >>> 0 };
}

const toText = ({ a, b }: Hash) => ((a & 0xfffff) * 4294967296 + b).toString(36);
const ROOT: Hash = { a: 1, b: 1 };

function entryHash(view: View, entry: number): Hash {
  const { name, file, line } = view.entries;
  return hashText(entry === NONE ? '(other)' : [name[entry], file[entry], line[entry]].join('\0'));
}

export function entryId(view: View, entry: number): string {
  return toText(entryHash(view, entry));
}

// The entry of that id, or NONE.
export function findEntry(view: View, id: string): number {
  for (let i = 0; i < view.entries.n; i++)
    if (entryId(view, i) === id)
      return i;
  return NONE;
}

// Of a node: the names from the root to it.
export function nodeId(view: View, tree: Tree, node: number): string {
  const path: number[] = [];
  for (let at = node; at !== 0; at = tree.parent[at])
    path.push(tree.entry[at]);
  return toText(path.reduceRight((hash, entry) => below(hash, entryHash(view, entry)), ROOT));
}

// The node of that id, or NONE. The root's is found in every tree.
export function findNode(view: View, tree: Tree, id: string): number {
  const a = new Uint32Array(tree.n), b = new Uint32Array(tree.n),
    names = Array.from({ length: view.entries.n }, (_, i) => entryHash(view, i));
  const other = entryHash(view, NONE);
  if (id === toText(ROOT))
    return 0;
  a[0] = ROOT.a;
  b[0] = ROOT.b;
  for (let i = 1; i < tree.n; i++) {
    const parent = tree.parent[i], hash = below({ a: a[parent], b: b[parent] },
      tree.entry[i] === NONE ? other : names[tree.entry[i]]);
    a[i] = hash.a;
    b[i] = hash.b;
    if (toText(hash) === id)
      return i;
  }
  return NONE;
}
