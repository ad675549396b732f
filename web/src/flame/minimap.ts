// The whole picture in small, with the part that is seen as a window in it.
import type { Painter } from './painter';
import { css, mix } from './palette';
import { rowsOfRoom, type Scene } from './scene';

const LINE = 4;                      // CSS pixels that a row has at most
const AWAY = 0.55;                   // how much of the surface lies over what is not seen

export interface MapWindow { x: number; y: number; width: number; height: number }

export class Minimap {
  private readonly context: CanvasRenderingContext2D;
  private of: unknown[] = [];

  constructor(private readonly painter: Painter) {
    this.context = document.createElement('canvas').getContext('2d')!;
  }

  private draw(s: Scene, width: number, height: number) {
    const of = [s.layout, s.paint, s.palette, s.input.icicle, width, height];
    if (of.every((value, i) => value === this.of[i]))
      return;
    this.of = of;
    const { canvas } = this.context;
    canvas.width = width;
    canvas.height = height;
    this.context.fillStyle = css(s.palette.surface);
    this.context.fillRect(0, 0, width, height);
    // Deeper than there are pixels: some rows are left out.
    const lines = Math.min(s.layout.rows, height);
    const rows = Array.from({ length: lines }, (_, i) => Math.floor(i * s.layout.rows / lines));
    if (!s.input.icicle)
      rows.reverse();
    const image = this.painter.rows(s, rows, 0, s.screen.width / s.layout.total, null);
    const used = Math.round(lines * mapRow(s, height));
    this.context.imageSmoothingEnabled = false;
    this.context.drawImage(image, 0, 0, width, lines, 0, s.input.icicle ? 0 : height - used, width, used);
  }

  paint(s: Scene, target: CanvasRenderingContext2D) {
    const { top, width, ratio } = s.screen;
    if (top === 0)
      return;
    const margin = Math.round(6 * ratio), height = top - margin;
    this.draw(s, width, height);
    target.fillStyle = css(s.palette.surface);
    target.fillRect(0, 0, width, top);
    target.drawImage(this.context.canvas, 0, 0);
    const w = mapWindow(s);
    const x = Math.round(w.x), y = Math.round(w.y), right = Math.max(Math.round(w.x + w.width), x + Math.ceil(3 * ratio));
    const bottom = Math.min(Math.max(Math.round(w.y + w.height), y + Math.ceil(3 * ratio)), height);
    target.fillStyle = css(s.palette.surface, AWAY);
    target.fillRect(0, 0, x, height);
    target.fillRect(right, 0, width - right, height);
    target.fillRect(x, 0, right - x, y);
    target.fillRect(x, bottom, right - x, height - bottom);
    const line = Math.max(1, Math.round(ratio));
    target.fillStyle = css(mix(s.palette.surface, s.palette.text, 0.18));
    target.fillRect(0, height + Math.floor((margin - line) / 2), width, line);
    if (right - x < width || bottom - y < height) {
      target.fillStyle = css(s.palette.dimText);
      target.fillRect(x, y, right - x, line);
      target.fillRect(x, bottom - line, right - x, line);
      target.fillRect(x, y, line, bottom - y);
      target.fillRect(right - line, y, line, bottom - y);
    }
  }
}

function mapRow(s: Scene, height: number): number {
  return Math.min(height / s.layout.rows, LINE * s.screen.ratio);
}

function mapHeight(s: Scene): number {
  return s.screen.top - Math.round(6 * s.screen.ratio);
}

// The part that is seen, in pixels of the map. A map of few rows is all seen.
export function mapWindow(s: Scene): MapWindow {
  const height = mapHeight(s), row = mapRow(s, height);
  const x = s.camera.left / s.layout.total * s.screen.width, width = s.camera.width / s.layout.total * s.screen.width;
  const room = rowsOfRoom(s.screen);
  if (room >= s.layout.rows)
    return { x, width, y: 0, height };
  const near = s.camera.scroll * row, far = Math.min((s.camera.scroll + room) * row, height);
  return s.input.icicle ? { x, width, y: near, height: far - near } : { x, width, y: height - far, height: far - near };
}

// What a step of a pixel in the map is in the picture: units, rows.
export function mapStep(s: Scene, dx: number, dy: number): { units: number; rows: number } {
  const rows = dy / mapRow(s, mapHeight(s));
  return { units: dx / s.screen.width * s.layout.total, rows: s.input.icicle ? rows : -rows };
}
