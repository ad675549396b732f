// The words on the boxes: what is shown of a name, how wide it is, and where it has to be cut.
import type { Entries } from '../types';
import { trimTemplates, visible } from '../model/names';

const LONGEST = 1000;                // characters that a row can't show anyway
const ELLIPSIS = '…';

export interface Label { text: string; width: number }

// One size of the font. Widths are sums of those of the characters: kerning is off.
export class Font {
  readonly css: string;
  readonly size: number;
  private readonly ascii = new Float32Array(128).fill(-1);
  private readonly others = new Map<string, number>();

  constructor(private readonly context: CanvasRenderingContext2D, pixels: number) {
    this.size = pixels;
    this.css = `${pixels}px system-ui, "DejaVu Sans", "Segoe UI", Roboto, Helvetica, Arial, sans-serif`;
  }

  use() {
    this.context.font = this.css;
    this.context.fontKerning = 'none';
    this.context.textRendering = 'optimizeSpeed';
    this.context.direction = 'ltr';
    this.context.textBaseline = 'alphabetic';
  }

  // The context has to use the font.
  private character(c: string): number {
    const code = c.length === 1 ? c.charCodeAt(0) : 128;
    if (code < 128) {
      if (this.ascii[code] < 0)
        this.ascii[code] = this.context.measureText(c).width;
      return this.ascii[code];
    }
    let width = this.others.get(c);
    if (width === undefined) {
      width = this.context.measureText(c).width;
      this.others.set(c, width);
    }
    return width;
  }

  width(text: string): number {
    let sum = 0;
    for (const c of text)
      sum += this.character(c);
    return sum;
  }

  // As much of the text as there is room for; nothing rather than a single character.
  fit(text: string, room: number): string {
    const mark = this.character(ELLIPSIS);
    let sum = 0, kept = 0, at = 0;
    for (const c of text) {
      sum += this.character(c);
      at += c.length;
      if (sum > room)
        return kept >= 2 ? text.slice(0, kept) + ELLIPSIS : '';
      if (sum + mark <= room)
        kept = at;
    }
    return text;
  }
}

// The labels of one view's entries, made when they are first seen.
export class Names {
  private readonly full: (Label | undefined)[] = [];
  private readonly short: (Label | undefined)[] = [];

  constructor(readonly entries: Entries, readonly font: Font) {}

  get(entry: number, short: boolean): Label {
    const cache = short ? this.short : this.full;
    const known = cache[entry];
    if (known)
      return known;
    const rough = (this.entries.name[entry] ?? '').slice(0, 20 * LONGEST);
    const text = visible((short ? trimTemplates(rough) : rough).slice(0, LONGEST)) || '(unnamed)';
    const label = { text, width: this.font.width(text) };
    cache[entry] = label;
    return label;
  }
}
