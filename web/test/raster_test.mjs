// Layout and lines of pixels of the flame graph against the plainest way to get the same: every box of a row looked at.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importSource } from '../bench/tools.mjs';

const MODULES = ['src/flame/layout', 'src/flame/raster', 'src/flame/palette', 'src/flame/paint', 'src/flame/walk', 'src/flame/camera', 'bench/trees'];
const f = await importSource(MODULES.map(name => `export * from './${name}';`).join('\n'));
const NONE = 0xffffffff, WIDTH = 500;
const TREES = [
  { nodes: 1, depth: 10, fan: 3, flat: false }, { nodes: 300, depth: 40, fan: 6, flat: false },
  { nodes: 20000, depth: 60, fan: 5, flat: false }, { nodes: 20001, depth: 20, fan: 1, flat: true },
];

function worlds() {
  return TREES.flatMap(tree => [false, true].map(diff => {
    const input = f.makeInput({ ...tree, diff, seed: 11 });
    return { input, layout: f.layOut(input.tree, 'max') };
  }));
}

function cameras(layout, next) {
  return Array.from({ length: 12 }, (_, i) => {
    const width = i === 0 ? layout.total : layout.total * next() ** 6, left = (layout.total - width) * next();
    return { left, width };
  });
}

test('each box is as wide as its node, within its parent, beside its siblings in their order', () => {
  for (const { input: { tree }, layout } of worlds()) {
    const placed = tree.width.filter((width, node) => width > 0 || node === 0).length;
    assert.equal(layout.n, placed);
    for (let slot = 0; slot < layout.n; slot++) {
      const node = layout.node[slot], parent = layout.slot[tree.parent[node]];
      assert.equal(layout.slot[node], slot);
      assert.equal(layout.w[slot], tree.width[node]);
      const row = f.rowOf(layout, slot);
      assert.ok(slot >= layout.first[row] && slot < layout.first[row + 1]);
      if (slot === 0)
        continue;
      assert.ok(layout.x[slot] >= layout.x[parent] && layout.x[slot] + layout.w[slot] <= layout.x[parent] + layout.w[parent] + 1e-3);
      if (slot > layout.first[row])
        assert.ok(layout.x[slot] >= layout.x[slot - 1] + layout.w[slot - 1] - 1e-3);
    }
  }
});

test('the width modes of a diff lay out base and now', () => {
  const { tree } = f.makeInput({ ...TREES[1], diff: true, seed: 3 });
  for (const mode of ['base', 'now']) {
    const layout = f.layOut(tree, mode);
    assert.equal(layout.total, tree.total[mode][0]);
    assert.equal(layout.n, tree.total[mode].filter(value => value > 0).length);
  }
});

test('what is at a place is what a look at every box of the row finds', () => {
  const next = f.random(5);
  for (const { layout } of worlds())
    for (let i = 0; i < 300; i++) {
      const row = Math.floor(next() * layout.rows), at = layout.total * next();
      let expected = NONE;
      for (let slot = layout.first[row]; slot < layout.first[row + 1]; slot++)
        if (layout.x[slot] <= at && at < layout.x[slot] + layout.w[slot])
          expected = slot;
      assert.equal(f.slotAt(layout, row, at, 0), expected);
    }
});

test('rows between two places end where no row has a box any more', () => {
  const next = f.random(6);
  for (const { layout } of worlds())
    for (const { left, width } of cameras(layout, next)) {
      let rows = 0;
      const has = row => layout.x.subarray(layout.first[row], layout.first[row + 1]).some((x, i) =>
        x + layout.w[layout.first[row] + i] > left && x < left + width);
      while (rows < layout.rows && has(rows))
        rows++;
      assert.equal(f.rowsBetween(layout, left, left + width), rows);
    }
});

// Fill of each pixel: that of the box over its middle; what no middle is in gets the pixel it begins in, if that is free.
function plainLine(layout, fill, row, left, scale, gap) {
  const line = new Int32Array(WIDTH).fill(-1), thin = [];
  for (let slot = layout.first[row]; slot < layout.first[row + 1]; slot++) {
    const from = Math.ceil((layout.x[slot] - left) * scale - 0.5), end = Math.ceil((layout.x[slot] + layout.w[slot] - left) * scale - 0.5);
    if (layout.x[slot] + layout.w[slot] <= left || layout.x[slot] >= left + WIDTH / scale)
      continue;
    if (end <= from)
      thin.push([Math.min(from, WIDTH - 1), slot]);
    for (let p = Math.max(from, 0); p < Math.min(end, WIDTH); p++)
      line[p] = end - from >= 3 * gap && p >= end - gap ? -2 : fill[slot];
  }
  return { line, thin };
}

test('every pixel has the fill of the box over its middle', () => {
  const next = f.random(7), colours = Uint32Array.from({ length: 2 * f.FILLS + 2 }, (_, i) => 1000 + i);
  let compared = 0;
  for (const { input, layout } of worlds())
    for (const { left, width } of cameras(layout, next)) {
      const paint = f.paintSlots(layout, f.nodeFills(input), null), scale = WIDTH / width, gap = 1;
      const pixels = new Uint32Array(WIDTH), list = new f.BoxList();
      for (let row = 0; row < layout.rows; row++) {
        f.drawLine(layout, paint, row, { pixels, width: WIDTH, colours, left, scale, gap, wide: 5 }, 0, list);
        const { line, thin } = plainLine(layout, paint.fill, row, left, scale, gap);
        const free = new Map();
        for (const [p, slot] of thin)
          if (line[p] === -1 && !free.has(p))
            free.set(p, paint.fill[slot]);
        for (let p = 0; p < WIDTH; p++) {
          const expected = line[p] === -2 ? f.SURFACE : line[p] >= 0 ? line[p] : free.get(p) ?? f.SURFACE;
          assert.equal(pixels[p], 1000 + expected, `row ${row}, pixel ${p}`);
          compared++;
        }
      }
      for (let i = 0; i < list.n; i++)
        assert.ok(list.to[i] - list.from[i] >= 5);
    }
  assert.ok(compared > 4e5, `only ${compared} pixels`);
});

test('a find in a run of narrow boxes is seen, wherever it is', () => {
  const input = f.makeInput({ ...TREES[3], diff: false, seed: 1 }), layout = f.layOut(input.tree, 'max');
  const colours = Uint32Array.from({ length: 2 * f.FILLS + 2 }, (_, i) => i), next = f.random(8);
  for (let i = 0; i < 200; i++) {
    const row = 1 + Math.floor(next() * (layout.rows - 1)), slot = layout.first[row] + Math.floor(next() * (layout.first[row + 1] - layout.first[row]));
    const matches = new Uint8Array(input.view.entries.n), wanted = input.tree.entry[layout.node[slot]];
    matches[wanted] = 1;
    const pixels = new Uint32Array(100);
    const paint = f.paintSlots(layout, f.nodeFills(input), matches);
    f.drawLine(layout, paint, row, { pixels, width: 100, colours, left: 0, scale: 100 / layout.total, gap: 1, wide: 5 }, 0, null);
    const p = Math.min(Math.round(layout.x[slot] * 100 / layout.total), 99);
    const near = pixels.subarray(Math.max(p - 1, 0), p + 2);
    assert.ok(near.some(colour => colour === f.MATCH || colour < f.FILLS), `row ${row}, slot ${slot}: ${near}`);
  }
});

test('the ways of the keyboard: all finds in turn, forwards and backwards', () => {
  const input = f.makeInput({ ...TREES[1], diff: false, seed: 2 }), layout = f.layOut(input.tree, 'max');
  const matches = Uint8Array.from({ length: input.view.entries.n }, (_, i) => i % 3 === 0 ? 1 : 0);
  const all = [...layout.node].filter((node, slot) => slot < layout.n && input.tree.entry[node] !== NONE && matches[input.tree.entry[node]]);
  for (const step of [1, -1]) {
    const seen = new Set();
    let node = 0;
    for (let i = 0; i < all.length; i++)
      seen.add(node = f.nextFound(layout, matches, node, step));
    assert.deepEqual([...seen].sort((a, b) => a - b), all.sort((a, b) => a - b));
    const back = f.nextFound(layout, matches, f.nextFound(layout, matches, node, step), -step);
    assert.equal(back, node);
  }
});

test('the way of a zoom begins and ends where it should and magnifies evenly', () => {
  const a = { left: 0, width: 1e9, scroll: 0 }, b = { left: 123456.5, width: 12, scroll: 40 };
  assert.deepEqual(f.between(a, b, 1), b);
  const start = f.between(a, b, 0);
  assert.ok(Math.abs(start.left) < 1e-3 && Math.abs(start.width - 1e9) < 1);
  for (let t = 0; t < 0.99; t += 0.1) {
    const one = f.between(a, b, t), two = f.between(a, b, t + 0.01);
    assert.ok(Math.abs(two.width / one.width - (12 / 1e9) ** 0.01) < 1e-6);
    assert.ok(one.left <= b.left && one.left + one.width >= b.left + b.width - 1e-3);
  }
});
