// The colours of the picture, for both themes. A fill is named by its index, the same in both; behind the fills come the same
// once more, for boxes that a search did not find. test/palette_test.mjs computes contrasts and what colour-blind people see.

export const HUES = 8;                 // of binaries; the ninth is for all the others
export const SHADES = 3;               // of a hue, by name
export const ROOT = 0;
export const REST = 1;                 // an (other)
export const HUE = 2;                  // + hue * SHADES + shade
export const SAME = HUE + (HUES + 1) * SHADES;
export const NOISE = SAME + 1;
export const GREW = SAME + 2;          // + strength, 0 to 2
export const SHRANK = SAME + 5;
export const NEW = SAME + 8;
export const GONE = SAME + 9;
export const FILLS = SAME + 10;        // + fill: the same, dimmed
export const MATCH = 2 * FILLS;        // what a search found and is too narrow for a box
export const SURFACE = 2 * FILLS + 1;

// How much of the surface is in the lines and dots of a pattern: words on them are read as well.
export const PATTERN = 0.55;
export const REST_PATTERN = 0.7;

export type Rgb = [red: number, green: number, blue: number];

export interface Palette {
  fills: Rgb[];
  surface: Rgb;
  text: Rgb; dimText: Rgb;
  match: Rgb;                          // frame of what was found
  outline: Rgb;                        // hovered, selected
  veil: number;                        // how much of the surface lies over what is not meant
}

export function rgb(hex: string): Rgb {
  const n = parseInt(hex.slice(1), 16);
  return [n >> 16, n >> 8 & 255, n & 255];
}

export function css([red, green, blue]: Rgb, alpha = 1): string {
  return alpha < 1 ? `rgba(${red},${green},${blue},${alpha})` : `rgb(${red},${green},${blue})`;
}

// part of b in a
export function mix(a: Rgb, b: Rgb, part: number): Rgb {
  const one = (i: 0 | 1 | 2) => Math.round(a[i] + (b[i] - a[i]) * part);
  return [one(0), one(1), one(2)];
}

interface Colours {
  surface: string; text: string; dimText: string; match: string; outline: string;
  root: string; rest: string; hues: string[]; same: string; noise: string; grew: string[]; shrank: string[];
  added: string; gone: string; dimmed: number;
}

function palette(c: Colours): Palette {
  const surface = rgb(c.surface);
  const shades = c.hues.flatMap(hue => [0, 0.16, 0.32].map(part => mix(rgb(hue), surface, part)));
  const fills = [c.root, c.rest].map(rgb).concat(shades, [c.same, c.noise, ...c.grew, ...c.shrank, c.added, c.gone].map(rgb));
  const match = rgb(c.match);
  return {
    fills: [...fills, ...fills.map(fill => mix(fill, surface, c.dimmed)), mix(match, surface, 0.15), surface],
    surface, text: rgb(c.text), dimText: rgb(c.dimText), match, outline: rgb(c.outline), veil: 0.45,
  };
}

export const LIGHT = palette({
  surface: '#ffffff', text: '#1a1a1a', dimText: '#5c5c5c', match: '#b4008c', outline: '#000000',
  root: '#e4e4e4', rest: '#efefef',
  hues: ['#859bda', '#ed8863', '#49bc96', '#f2e699', '#f09bbe', '#97e0ff', '#a7ce52', '#d4a9ef', '#d4cfcb'],
  same: '#f1f1f1', noise: '#cdcdcd',
  grew: ['#fddcb6', '#fdb871', '#f58d2f'], shrank: ['#cbe1f5', '#97c6ec', '#5ba6e0'],
  added: '#f58d2f', gone: '#5ba6e0', dimmed: 0.78,
});

export const DARK = palette({
  surface: '#1b1b1d', text: '#f2f2f2', dimText: '#b4b4b4', match: '#ff8adf', outline: '#ffffff',
  root: '#48484c', rest: '#333337',
  hues: ['#056fb4', '#782e02', '#2d5b41', '#7b693f', '#974064', '#276680', '#625d01', '#5b489a', '#404148'],
  same: '#2c2c30', noise: '#525257',
  grew: ['#54381a', '#7d4706', '#ad5500'], shrank: ['#21405e', '#15578f', '#0a70c0'],
  added: '#ad5500', gone: '#0a70c0', dimmed: 0.78,
});
