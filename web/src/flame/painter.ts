// Draws a scene: fills as stretched lines of pixels, over them patterns, marks and words of the boxes that are wide enough.
import { NONE } from '../types';
import { BoxList, drawEdge, drawLine, type Lines } from './raster';
import { rowOf, rowsBetween } from './layout';
import { css, FILLS, GONE, mix, NEW, PATTERN, REST_PATTERN, type Palette } from './palette';
import { pixelsPerUnit, rowsOfRoom, rowsSeen, rowTop, scrollPixels, type Scene } from './scene';

const PAD = 4, WIDE = 5, LABEL_FROM = 30, FRAME = 2, THUMB = 24, THUMB_WIDE = 5;      // CSS pixels
const BEFORE_AMOUNT = '   ';
const WIDEST_COUNTED = 1023;
const SIGNS = ['=', '~', '+', '−', '+', '−'];                   // as CHANGES

export type Pattern = 'dots' | 'hatch' | 'rest';

export class Painter {
  private readonly lines: CanvasRenderingContext2D;
  private image: ImageData | null = null;
  private readonly list = new BoxList();
  private patterns = new Map<string, CanvasPattern | null>();
  private patternsOf: Palette | null = null;

  constructor(private readonly context: CanvasRenderingContext2D) {
    this.lines = document.createElement('canvas').getContext('2d')!;
  }

  // The lines of these rows, as an image one pixel high for each; with a list, below them the same again for the rows' edges.
  rows(s: Scene, rows: number[], left: number, scale: number, list: BoxList | null): CanvasImageSource {
    const width = s.screen.width, height = rows.length * (list ? 2 : 1);
    const canvas = this.lines.canvas;
    if (!this.image || canvas.width !== width || canvas.height < height) {
      canvas.width = width;
      canvas.height = Math.max(height, 128);
      this.image = this.lines.createImageData(width, canvas.height);
    }
    const lines: Lines = {
      pixels: new Uint32Array(this.image.data.buffer), width, colours: s.colours.fills, left, scale,
      gap: s.screen.gap, wide: Math.round((list ? WIDE : 0) * s.screen.ratio),
    };
    rows.forEach((row, line) => {
      const at = list ? list.n : 0;
      drawLine(s.layout, s.paint, row, lines, line, list);
      if (list)
        drawEdge(lines, line, rows.length + line, list, at, s.colours.corners, s.paint);
    });
    this.lines.putImageData(this.image, 0, 0, 0, 0, width, height);
    return canvas;
  }

  private paintFills(s: Scene, first: number, count: number) {
    const { context } = this, { width, row, gap } = s.screen;
    const rows = Array.from({ length: count }, (_, i) => s.input.icicle ? first + i : first + count - 1 - i);
    this.list.n = 0;
    const image = this.rows(s, rows, s.camera.left, pixelsPerUnit(s), this.list), top = rowTop(s, rows[0]);
    context.imageSmoothingEnabled = false;
    context.drawImage(image, 0, 0, width, count, 0, top, width, count * row);
    context.fillStyle = css(s.palette.surface);
    for (let i = 0; i < count; i++) {
      const y = top + i * row;
      context.drawImage(image, 0, count + i, width, 1, 0, y, width, gap);
      context.drawImage(image, 0, count + i, width, 1, 0, y + row - 2 * gap, width, gap);
      context.fillRect(0, y + row - gap, width, gap);
    }
  }

  // Returns whether that was all: no words were left out.
  paint(s: Scene): boolean {
    const { context } = this, { screen, palette } = s;
    context.fillStyle = css(palette.surface);
    context.fillRect(0, 0, screen.width, screen.height);
    const { first, count } = rowsSeen(s);
    if (count <= 0)
      return true;
    this.paintFills(s, first, count);
    this.paintPatterns(s);
    this.paintVeil(s, first, count);
    this.paintMarks(s);
    const whole = this.paintLabels(s);
    this.paintScroll(s);
    return whole;
  }

  // How far down this is, where there are more rows than room.
  private paintScroll(s: Scene) {
    const { top, width, height, ratio } = s.screen, { left, width: units, scroll } = s.camera;
    const rows = rowsBetween(s.layout, left, left + units), room = rowsOfRoom(s.screen);
    if (rows <= room)
      return;
    const part = (height - top) / rows, length = Math.max(room * part, THUMB * ratio), wide = Math.round(THUMB_WIDE * ratio);
    const from = scroll / (rows - room) * (height - top - length);
    this.context.fillStyle = css(s.palette.text, 0.35);
    this.context.fillRect(width - wide, Math.round(s.input.icicle ? top + from : height - from - length), wide, Math.round(length));
  }

  // What lies above the node that was zoomed to steps back.
  private paintVeil(s: Scene, first: number, count: number) {
    const slot = s.layout.slot[s.zoomed] ?? NONE;
    const rows = slot === NONE ? 0 : Math.min(rowOf(s.layout, slot), first + count);
    if (s.zoomed === 0 || rows <= first)
      return;
    const near = rowTop(s, first), far = rowTop(s, rows - 1);
    this.context.fillStyle = css(s.palette.surface, s.palette.veil);
    this.context.fillRect(0, Math.min(near, far), s.screen.width, Math.abs(far - near) + s.screen.row);
  }

  private patternOf(s: Scene, kind: Pattern, fill: number): CanvasPattern | null {
    if (this.patternsOf !== s.palette) {
      this.patterns.clear();
      this.patternsOf = s.palette;
    }
    const key = `${kind} ${fill} ${s.screen.ratio}`;
    let pattern = this.patterns.get(key);
    if (pattern === undefined) {
      pattern = this.context.createPattern(drawTile(s, kind, fill), 'repeat');
      this.patterns.set(key, pattern);
    }
    return pattern;
  }

  // One path for each pattern on each fill.
  private paintPatterns(s: Scene) {
    const { list, context } = this, height = s.screen.row - s.screen.gap;
    const paths = new Map<string, { kind: Pattern; fill: number; path: Path2D }>();
    for (let i = 0; i < list.n; i++) {
      const slot = list.slot[i], kind = patternKind(s, slot);
      if (!kind)
        continue;
      const fill = s.paint.fill[slot], key = `${kind} ${fill}`;
      let entry = paths.get(key);
      if (!entry)
        paths.set(key, entry = { kind, fill, path: new Path2D() });
      const from = Math.max(list.from[i], 0), to = Math.min(list.to[i] - s.screen.gap, s.screen.width);
      entry.path.rect(from, rowTop(s, rowOf(s.layout, slot)), to - from, height);
    }
    // They move with the boxes.
    const size = tileSize(s.screen.ratio), across = -Math.round(s.camera.left * pixelsPerUnit(s)) % size;
    const scrolled = s.input.icicle ? -scrollPixels(s) : scrollPixels(s);
    for (const { kind, fill, path } of paths.values()) {
      const pattern = this.patternOf(s, kind, fill);
      if (!pattern)
        continue;
      pattern.setTransform(new DOMMatrix([1, 0, 0, 1, across, scrolled % size]));
      context.fillStyle = pattern;
      context.fill(path);
    }
  }

  // What a search found has a bar below; the boxes of the chosen entry have a frame.
  private paintMarks(s: Scene) {
    const { list, context } = this, { row, gap, ratio } = s.screen, { found } = s.paint;
    const { entry } = s.layout.tree, bar = Math.max(2, Math.round(2 * ratio));
    context.fillStyle = css(s.palette.match);
    for (let i = 0; found && i < list.n; i++) {
      const slot = list.slot[i];
      if (found[slot + 1] > found[slot])
        context.fillRect(list.from[i], rowTop(s, rowOf(s.layout, slot)) + row - gap - bar, list.to[i] - list.from[i] - gap, bar);
    }
    if (s.input.selected === NONE)
      return;
    for (let i = 0; i < list.n; i++) {
      const slot = list.slot[i];
      if (entry[s.layout.node[slot]] === s.input.selected)
        strokeInside(context, list.from[i] - gap, rowTop(s, rowOf(s.layout, slot)) - gap, list.to[i] - list.from[i] + gap, row + gap,
                     Math.round(FRAME * ratio), css(s.palette.outline));
    }
  }

  // From which width on boxes have words: where there are too many for one frame, the widest.
  private narrowestLabel(s: Scene): number {
    const { list } = this, narrowest = Math.round(LABEL_FROM * s.screen.ratio);
    const counts = new Uint32Array(WIDEST_COUNTED + 1);
    for (let i = 0; i < list.n; i++)
      counts[Math.min(list.to[i] - list.from[i], WIDEST_COUNTED)]++;
    let sum = 0, width = WIDEST_COUNTED;
    for (; width > narrowest && sum + counts[width] <= s.mostLabels; width--)
      sum += counts[width];
    return Math.max(width, narrowest);
  }

  private paintLabels(s: Scene): boolean {
    const { list, context } = this, { font } = s.names, narrowest = this.narrowestLabel(s);
    font.use();
    for (const dim of [false, true]) {
      context.fillStyle = css(dim ? s.palette.dimText : s.palette.text);
      for (let i = 0; i < list.n; i++)
        if (list.to[i] - list.from[i] >= narrowest && (s.paint.fill[list.slot[i]] >= FILLS) === dim)
          this.paintLabel(s, list.slot[i], list.from[i], list.to[i]);
    }
    return narrowest <= Math.round(LABEL_FROM * s.screen.ratio);
  }

  private paintLabel(s: Scene, slot: number, from: number, to: number) {
    const { ratio, row, gap, width } = s.screen;
    const pad = Math.round(PAD * ratio), x = Math.max(from, 0) + pad;
    const room = Math.min(to, width) - gap - pad - x;
    const words = room > 2 * pad ? wordsOf(s, s.layout.node[slot], room) : '';
    if (words)
      this.context.fillText(words, x, rowTop(s, rowOf(s.layout, slot)) + Math.round((row - gap) / 2 + s.names.font.size * 0.36));
  }
}

function nameOf(s: Scene, node: number, short: boolean): { text: string; width: number } {
  const entry = s.layout.tree.entry[node];
  if (entry !== NONE)
    return s.names.get(entry, short);
  const text = node === 0 ? 'all' : '(other)';
  return { text, width: s.names.font.width(text) };
}

export function patternKind(s: Scene, slot: number): Pattern | null {
  const fill = s.paint.fill[slot] % FILLS;
  if (fill === NEW)
    return 'dots';
  if (fill === GONE)
    return 'hatch';
  const node = s.layout.node[slot];
  return node !== 0 && s.layout.tree.entry[node] === NONE ? 'rest' : null;
}

// The whole name where it fits, and then the amount; else the short name, cut. The context has to use the font.
export function wordsOf(s: Scene, node: number, room: number): string {
  const { font } = s.names, sign = s.input.changes ? `${SIGNS[s.input.changes[node]] ?? '='} ` : '', signWidth = font.width(sign);
  const full = nameOf(s, node, s.input.trimTemplates), width = signWidth + full.width;
  if (width > room) {
    const short = font.fit(nameOf(s, node, true).text, room - signWidth);
    return short && sign + short;
  }
  const amount = s.amount ? BEFORE_AMOUNT + s.amount(node) : '';
  return sign + full.text + (width + font.width(amount) <= room ? amount : '');
}

export function strokeInside(context: CanvasRenderingContext2D, x: number, y: number, width: number, height: number,
                             line: number, colour: string) {
  context.fillStyle = colour;
  if (width <= 2 * line) {
    context.fillRect(x, y, width, height);
    return;
  }
  context.fillRect(x, y, width, line);
  context.fillRect(x, y + height - line, width, line);
  context.fillRect(x, y, line, height);
  context.fillRect(x + width - line, y, line, height);
}

function tileSize(ratio: number): number {
  return Math.round(6 * ratio);
}

function drawTile(s: Scene, kind: Pattern, fill: number): HTMLCanvasElement {
  const size = tileSize(s.screen.ratio), tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const context = tile.getContext('2d')!;
  context.fillStyle = context.strokeStyle = css(mix(s.palette.fills[fill], s.palette.surface, kind === 'rest' ? REST_PATTERN : PATTERN));
  if (kind === 'dots') {
    context.beginPath();
    for (const at of [0.25, 0.75]) {
      context.moveTo(size * at, size * at);
      context.arc(size * at, size * at, size / 7, 0, 7);
    }
    context.fill();
  } else {
    context.lineWidth = size / 3.2;
    for (const shift of [-size, 0, size]) {
      context.moveTo(shift - 1, size + 1);
      context.lineTo(shift + size + 1, -1);
    }
    context.stroke();
  }
  return tile;
}
