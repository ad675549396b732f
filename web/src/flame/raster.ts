// Rows of boxes as pixels: one line of pixels for each row, which the painter stretches to the row's height. So a frame costs
// what its pixels cost, however many boxes there are: of those narrower than a pixel only the one below a pixel's middle is
// looked at, and the way to the next pixel is a leap.
import { firstEnding, type Layout } from './layout';
import { MATCH, SURFACE } from './palette';
import type { Paint } from './paint';

// Boxes that are wide enough for more than a fill.
export class BoxList {
  n = 0;
  slot = new Uint32Array(1024);
  from = new Int32Array(1024);       // pixels; may lie outside of what is seen
  to = new Int32Array(1024);

  add(slot: number, from: number, to: number) {
    if (this.n === this.slot.length)
      this.grow();
    this.slot[this.n] = slot;
    this.from[this.n] = from;
    this.to[this.n++] = to;
  }

  private grow() {
    const larger = <T extends Uint32Array | Int32Array>(to: T, old: T) => (to.set(old), to);
    this.slot = larger(new Uint32Array(2 * this.n), this.slot);
    this.from = larger(new Int32Array(2 * this.n), this.from);
    this.to = larger(new Int32Array(2 * this.n), this.to);
  }
}

export interface Lines {
  pixels: Uint32Array; width: number;
  colours: Uint32Array;              // pixel of each fill
  left: number; scale: number;       // pixels per unit
  gap: number;                       // pixels between boxes
  wide: number;                      // from so many pixels on a box is added to the list
}

// The line again, as the topmost and lowest pixels of the row show it: the corners of the boxes from the list's `at` on are cut.
export function drawEdge(l: Lines, line: number, edge: number, list: BoxList, at: number, corners: Uint32Array, paint: Paint) {
  const { pixels, width, gap } = l, base = edge * width;
  pixels.copyWithin(base, line * width, (line + 1) * width);
  for (let i = at; i < list.n; i++) {
    const from = list.from[i], end = list.to[i] - gap, colour = corners[paint.fill[list.slot[i]]];
    for (let p = 0; p < gap && end - from >= 6 * gap; p++) {
      if (from + p >= 0 && from + p < width)
        pixels[base + from + p] = colour;
      if (end - 1 - p >= 0 && end - 1 - p < width)
        pixels[base + end - 1 - p] = colour;
    }
  }
}

const FAR = 1 << 24;

// The first pixel whose middle lies beyond.
function pixelAt(position: number): number {
  return Math.ceil(Math.min(Math.max(position, -FAR), FAR) - 0.5);
}

// Line number `line` of the pixels gets row `row`; the wide boxes go into the list.
export function drawLine(layout: Layout, paint: Paint, row: number, l: Lines, line: number, list: BoxList | null) {
  const { x, w } = layout, { fill, found } = paint, { pixels, colours, left, scale, gap, width } = l;
  const base = line * width, right = left + width / scale;
  pixels.fill(colours[SURFACE], base, base + width);
  if (row >= layout.rows)
    return;
  const to = layout.first[row + 1];
  let i = firstEnding(layout, layout.first[row], to, left), drawn = 0, leap = 1;
  while (i < to && x[i] < right) {
    const from = pixelAt((x[i] - left) * scale), end = pixelAt((x[i] + w[i] - left) * scale);
    if (end > from) {
      if (list && end - from >= l.wide)
        list.add(i, from, end);
      const stop = Math.min(end - from >= 3 * gap ? end - gap : end, width), colour = colours[fill[i]];
      for (let p = Math.max(from, drawn); p < stop; p++)
        pixels[base + p] = colour;
      drawn = Math.max(drawn, Math.min(end, width));
      i++;
      continue;
    }
    // Boxes that end before the middle of this pixel, or of the next one.
    const next = firstEnding(layout, i + 1, to, left + (from + 0.5) / scale, leap);
    // Neighbours are often alike: the next leap will be about as far, and one short of it costs least.
    leap = Math.max(next - i - 2, 1);
    const hit = found !== null && found[next] > found[i];
    const p = Math.min(from, width - 1);
    if (p >= 0 && (hit || p >= drawn)) {
      pixels[base + p] = colours[hit ? MATCH : fill[i]];
      // What was found stays on top of the box that this pixel belongs to.
      if (hit)
        drawn = Math.max(drawn, p + 1);
    }
    i = next;
  }
}
