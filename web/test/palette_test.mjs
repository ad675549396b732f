// The colours of the flame graph, computed: can words be read on every fill (WCAG 2, contrast of 4.5), and are fills told apart
// by people who lack one kind of cones? Those see what the matrices of Machado, Oliveira and Fernandes (2009, full severity)
// make of a colour; distances are in OKLab, where 2 hundredths are just noticed.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { importSource } from '../bench/tools.mjs';

const palette = await importSource("export * from './src/flame/palette'");
const { DARK, LIGHT, FILLS, GONE, GREW, HUE, HUES, MATCH, NEW, NOISE, REST, ROOT, SAME, SHADES, SHRANK, mix } = palette;

const THEMES = { light: LIGHT, dark: DARK };
const SIGHTS = {
  normal: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  protanopia: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  deuteranopia: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
  tritanopia: [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
};
const APART = 5.5;

const linear = colour => colour.map(part => part / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
const times = (matrix, v) => matrix.map(row => row[0] * v[0] + row[1] * v[1] + row[2] * v[2]);

function contrast(a, b) {
  const [dark, light] = [a, b].map(c => times([[0.2126, 0.7152, 0.0722]], linear(c))[0]).sort((x, y) => x - y);
  return (light + 0.05) / (dark + 0.05);
}

function seen(colour, sight) {
  const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566],
                       [0.0883024619, 0.2817188376, 0.6299787005]],
                      times(SIGHTS[sight], linear(colour)).map(part => Math.min(Math.max(part, 0), 1)));
  return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099],
                [0.0259040371, 0.7827717662, -0.808675766]], cones.map(Math.cbrt));
}

function distance(a, b, sight) {
  const [x, y] = [seen(a, sight), seen(b, sight)];
  return 100 * Math.hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]);
}

// All pairs of these fills, in all four sights.
function assertApart(theme, fills) {
  const names = Object.entries(fills);
  for (const sight of Object.keys(SIGHTS))
    names.forEach(([name, a], i) => names.slice(i + 1).forEach(([other, b]) => {
      const found = distance(theme.fills[a], theme.fills[b], sight);
      assert.ok(found >= APART, `${name} and ${other}, ${sight}: ${found.toFixed(2)}`);
    }));
}

test('the measures are right where the result is known', () => {
  assert.equal(contrast([0, 0, 0], [255, 255, 255]), 21);
  assert.ok(Math.abs(contrast([119, 119, 119], [255, 255, 255]) - 4.48) < 0.01);
  assert.ok(Math.abs(distance([0, 0, 0], [255, 255, 255], 'normal') - 100) < 0.01);
  // Red and green of like lightness: the classic.
  assert.ok(distance([200, 80, 40], [120, 130, 40], 'normal') > 3 * distance([200, 80, 40], [120, 130, 40], 'deuteranopia'));
});

for (const [name, theme] of Object.entries(THEMES)) {
  test(`${name}: words can be read on every fill, pattern and dimmed box`, () => {
    for (let fill = 0; fill < FILLS; fill++) {
      assert.ok(contrast(theme.fills[fill], theme.text) >= 4.5, `fill ${fill}`);
      assert.ok(contrast(theme.fills[FILLS + fill], theme.dimText) >= 4.5, `dimmed fill ${fill}`);
      for (const part of [palette.PATTERN, palette.REST_PATTERN, theme.veil])
        assert.ok(contrast(mix(theme.fills[fill], theme.surface, part), theme.text) >= 4.5, `fill ${fill} with ${part} surface`);
    }
  });

  test(`${name}: the hues of binaries are told apart, whatever one sees`, () => {
    assertApart(theme, Object.fromEntries(Array.from({ length: HUES + 1 }, (_, i) => [`hue ${i}`, HUE + i * SHADES])));
  });

  test(`${name}: what grew, shrank, stayed and what is noise are told apart`, () => {
    assertApart(theme, { same: SAME, noise: NOISE, grew0: GREW, grew1: GREW + 1, grew2: GREW + 2, shrank0: SHRANK, shrank1: SHRANK + 1,
                         shrank2: SHRANK + 2 });
  });

  test(`${name}: marks of finds and frames stand out from every fill`, () => {
    for (const fill of [ROOT, REST, NEW, GONE, ...Array.from({ length: FILLS }, (_, i) => i)]) {
      assert.ok(contrast(theme.fills[fill], theme.outline) >= 4.5, `outline on fill ${fill}`);
      for (const sight of Object.keys(SIGHTS))
        assert.ok(distance(theme.fills[fill], theme.fills[MATCH], sight) >= 10, `find on fill ${fill}, ${sight}`);
    }
  });

  test(`${name}: shades of one hue go towards the surface, never past their own`, () => {
    for (let hue = 0; hue <= HUES; hue++)
      for (let shade = 1; shade < SHADES; shade++) {
        const [before, now] = [theme.fills[HUE + hue * SHADES + shade - 1], theme.fills[HUE + hue * SHADES + shade]];
        assert.ok(distance(now, theme.surface, 'normal') < distance(before, theme.surface, 'normal'), `hue ${hue}, shade ${shade}`);
      }
  });
}
