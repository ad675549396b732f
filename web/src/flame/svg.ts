// What is shown now as a picture of its own: the widest boxes of all rows, each with its details as a title. Names are escaped,
// and what XML can't carry was made visible before.
import { NONE } from '../types';
import { firstEnding, rowsBetween } from './layout';
import { visible } from '../model/names';
import { FILLS, GONE, mix, NEW, PATTERN, REST, REST_PATTERN, type Rgb } from './palette';
import { patternKind, wordsOf } from './painter';
import { pixelsPerUnit, ROW, type Scene } from './scene';
import type { TipText } from './tip';

const MOST_BOXES = 5000, NARROWEST = 0.3, LABEL_FROM = 30, TITLE_LENGTH = 4000, MOST_FOUND = 200000;

interface Box { slot: number; row: number; x: number; width: number }

// `&` first; unpaired surrogates and U+FFFE, U+FFFF are not XML.
function escape(text: string): string {
  return visible(text).toWellFormed().replace(/[\ufffe\uffff]/g, '\ufffd')
    .replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}

function hex(colour: Rgb): string {
  return `#${colour.map(part => part.toString(16).padStart(2, '0')).join('')}`;
}

function number(value: number): string {
  return String(Math.round(value * 100) / 100);
}

// The widest boxes between left and right, in the order of the rows.
function widest(s: Scene, left: number, right: number, rows: number, scale: number): Box[] {
  const { x, w, first } = s.layout, boxes: Box[] = [];
  for (let row = 0; row < rows && boxes.length < MOST_FOUND; row++) {
    const to = first[row + 1];
    for (let i = firstEnding(s.layout, first[row], to, left); i < to && x[i] < right;) {
      const from = Math.max(x[i], left), width = (Math.min(x[i] + w[i], right) - from) * scale;
      if (width >= NARROWEST)
        boxes.push({ slot: i, row, x: (from - left) * scale, width });
      // On past those that end within the next fraction of a pixel.
      i = firstEnding(s.layout, i + 1, to, width >= NARROWEST ? left : from + NARROWEST / 2 / scale);
    }
  }
  if (boxes.length <= MOST_BOXES)
    return boxes;
  const least = Float64Array.from(boxes, box => box.width).sort()[boxes.length - MOST_BOXES];
  return boxes.filter(box => box.width >= least).slice(0, MOST_BOXES);
}

function drawBox(s: Scene, box: Box, y: number, tooltip: (node: number) => TipText): string {
  const node = s.layout.node[box.slot], fill = s.paint.fill[box.slot], { ratio } = s.screen;
  const width = box.width - Math.min(1, box.width * 0.2), kind = box.width >= 5 ? patternKind(s, box.slot) : null;
  const place = `x="${number(box.x)}" y="${y}" width="${number(width)}" height="${ROW - 1}"`;
  const { title, lines } = tooltip(node);
  const parts = [`<g><title>${escape([title.slice(0, TITLE_LENGTH), ...lines].join('\n'))}</title>`,
                 `<rect ${place} fill="${hex(s.palette.fills[fill])}"/>`];
  if (kind)
    parts.push(`<rect ${place} fill="url(#${kind})"/>`);
  const entry = s.layout.tree.entry[node];
  if (entry !== NONE && entry === s.input.selected)
    parts.push(`<rect ${place} fill="none" stroke="${hex(s.palette.outline)}"/>`);
  const label = box.width >= LABEL_FROM ? wordsOf(s, node, (width - 8) * ratio) : '';
  if (label)
    parts.push(`<text x="${number(box.x + 4)}" y="${y + 13}"${fill >= FILLS ? ' class="dim"' : ''}>${escape(label)}</text>`);
  return `${parts.join('')}</g>`;
}

function pattern(s: Scene, id: string, fill: number, shape: string): string {
  const colour = hex(mix(s.palette.fills[fill], s.palette.surface, id === 'rest' ? REST_PATTERN : PATTERN));
  return `<pattern id="${id}" width="6" height="6" patternUnits="userSpaceOnUse" fill="${colour}" stroke="${colour}">${shape}</pattern>`;
}

export function drawSvg(s: Scene, tooltip: (node: number) => TipText): string {
  const { left, width } = s.camera, scale = pixelsPerUnit(s) / s.screen.ratio, pixels = Math.round(s.screen.width / s.screen.ratio);
  const rows = rowsBetween(s.layout, left, left + width);
  const boxes = widest(s, left, left + width, rows, scale), deepest = boxes.reduce((most, box) => Math.max(most, box.row), 0);
  const stripes = '<path d="M-1 7 7-1M-1 1 1-1M5 7 7 5" stroke-width="1.9"/>';
  s.names.font.use();
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${pixels}" height="${(deepest + 1) * ROW}" viewBox="0 0 ${pixels} ${(deepest + 1) * ROW}">`,
    `<style>text{font:${number(s.names.font.size / s.screen.ratio)}px system-ui,"DejaVu Sans",sans-serif;font-kerning:none;`,
    `white-space:pre;fill:${hex(s.palette.text)}}.dim{fill:${hex(s.palette.dimText)}}</style>`,
    `<defs>${pattern(s, 'dots', NEW, '<circle cx="1.5" cy="1.5" r=".9" stroke="none"/><circle cx="4.5" cy="4.5" r=".9" stroke="none"/>')}`,
    `${pattern(s, 'hatch', GONE, stripes)}${pattern(s, 'rest', REST, stripes)}</defs>`,
    `<rect width="100%" height="100%" fill="${hex(s.palette.surface)}"/>`,
    ...boxes.map(box => drawBox(s, box, (s.input.icicle ? box.row : deepest - box.row) * ROW, tooltip)),
    '</svg>\n',
  ].join('\n');
}
