// Dense numbers for triples of numbers: what was put in once is found again.

export function mix(a: number, b: number): number {
  let x = Math.imul(a ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(b + 0x7f4a7c15, 0xc2b2ae35);
  x = Math.imul(x ^ x >>> 15, 0x2c1b3c6d);
  return (x ^ x >>> 13) >>> 0;
}

export class Triples {
  n = 0;
  private keys: Uint32Array;
  private table: Int32Array;       // number + 1, or 0

  constructor(expected = 256) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(16, 2 * expected)));
    this.keys = new Uint32Array(3 * (size >> 1));
    this.table = new Int32Array(size);
  }

  // The triple's number; a new one is the n there was before.
  add(a: number, b: number, c: number): number {
    const mask = this.table.length - 1;
    let slot = mix(mix(a, b), c) & mask;
    for (let found; (found = this.table[slot]) !== 0; slot = slot + 1 & mask) {
      const at = 3 * (found - 1);
      if (this.keys[at] === a && this.keys[at + 1] === b && this.keys[at + 2] === c)
        return found - 1;
    }
    if (2 * (this.n + 1) > this.table.length) {
      this.grow();
      return this.add(a, b, c);
    }
    this.keys.set([a, b, c], 3 * this.n);
    this.table[slot] = ++this.n;
    return this.n - 1;
  }

  private grow(): void {
    const keys = new Uint32Array(2 * this.keys.length), mask = 2 * this.table.length - 1;
    keys.set(this.keys);
    this.keys = keys;
    this.table = new Int32Array(mask + 1);
    for (let i = 0; i < this.n; i++) {
      let slot = mix(mix(keys[3 * i], keys[3 * i + 1]), keys[3 * i + 2]) & mask;
      while (this.table[slot] !== 0)
        slot = slot + 1 & mask;
      this.table[slot] = i + 1;
    }
  }
}
