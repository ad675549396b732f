// What the painters are told: the picture and the part of it that is seen. All lengths are pixels of the device.
import type { FlameInput } from '../types';
import type { Camera } from './camera';
import type { Layout } from './layout';
import type { Names } from './names';
import type { Paint } from './paint';
import { mix, type Palette, type Rgb } from './palette';

export interface Screen {
  width: number; height: number; ratio: number;
  row: number;                       // from one row to the next
  gap: number;                       // of that, what is left free
  top: number;                       // height of the minimap above the boxes
}

export interface Scene {
  input: FlameInput; layout: Layout; paint: Paint; palette: Palette;
  colours: Pixels;
  names: Names;
  camera: Camera; screen: Screen;
  zoomed: number;                    // node that was zoomed to: those above it step back
  mostLabels: number;                // while it moves not all
  amount: ((node: number) => string) | null;
}

export const ROW = 18;                 // CSS pixels
const CORNER = 0.6;                  // how much of it is surface
const MAP = 46;
const MAP_FROM = 240;                // from this height on there is room for the minimap

export function screenOf(width: number, height: number, ratio: number): Screen {
  const top = height / ratio >= MAP_FROM ? Math.round(MAP * ratio) : 0;
  return { width, height, ratio, row: Math.round(ROW * ratio), gap: Math.max(1, Math.floor(ratio)), top };
}

export function scrollPixels(s: Scene): number {
  return Math.round(s.camera.scroll * s.screen.row);
}

export function rowTop(s: Scene, row: number): number {
  const { screen } = s, scrolled = scrollPixels(s);
  return s.input.icicle ? screen.top + row * screen.row - scrolled : screen.height - (row + 1) * screen.row + scrolled;
}

export function rowAt(s: Scene, y: number): number {
  const { screen } = s, scrolled = scrollPixels(s);
  if (y < screen.top)
    return -1;
  return Math.floor((s.input.icicle ? y - screen.top + scrolled : screen.height - 1 - y + scrolled) / screen.row);
}

// First row that is seen, and how many.
export function rowsSeen(s: Scene): { first: number; count: number } {
  const scrolled = scrollPixels(s), room = s.screen.height - s.screen.top;
  const first = Math.floor(scrolled / s.screen.row);
  const last = Math.floor((scrolled + Math.max(room, 1) - 1) / s.screen.row);
  return { first, count: Math.max(Math.min(last, s.layout.rows - 1) - first + 1, 0) };
}

export function pixelsPerUnit(s: Scene): number {
  return s.screen.width / s.camera.width;
}

export function rowsOfRoom(screen: Screen): number {
  return (screen.height - screen.top) / screen.row;
}

// The palette's fills as pixels, and of those the ones at the corners of boxes.
export interface Pixels { fills: Uint32Array; corners: Uint32Array }

function pixelsOf(colours: Rgb[]): Uint32Array {
  const bytes = new Uint8Array(4 * colours.length);
  colours.forEach((colour, i) => bytes.set([...colour, 255], 4 * i));
  return new Uint32Array(bytes.buffer);
}

export function colourPixels({ fills, surface }: Palette): Pixels {
  return { fills: pixelsOf(fills), corners: pixelsOf(fills.map(fill => mix(fill, surface, CORNER))) };
}
