// speedscope's own JSON: one list of frames, and a sampled profile for each column. As src/format/speedscope.c.
import type { View } from '../../types';
import { NONE } from '../../types';
import { nodeName, pathTo, stacksOf } from './columns';

const UNITS = ['bytes', 'nanoseconds', 'microseconds', 'milliseconds', 'seconds'];

interface Frame { name: string; file?: string; line?: number }

export function speedscope(view: View, title: string): string {
  const { tree, columns } = stacksOf(view), numbers = new Map<number, number>(), frames: Frame[] = [];
  const frameOf = (node: number) => {
    const entry = tree.entry[node], key = entry === NONE && node === 0 ? -1 : entry, known = numbers.get(key);
    if (known !== undefined)
      return known;
    const frame: Frame = { name: nodeName(view, tree, node) };
    if (entry !== NONE && view.entries.file[entry])
      frame.file = view.entries.file[entry];
    if (entry !== NONE && view.entries.line[entry])
      frame.line = view.entries.line[entry];
    numbers.set(key, frames.length);
    return frames.push(frame) - 1;
  };
  const profiles = columns.map(({ name, self }) => {
    const samples: number[][] = [], weights: number[] = [];
    let endValue = 0;
    for (let i = 0; i < tree.n; i++)
      if (self[i] > 0) {
        samples.push(pathTo(tree, i).map(frameOf));
        weights.push(self[i]);
        endValue += self[i];
      }
    return {
      type: 'sampled', name: name ? `${view.type}: ${name}` : view.type,
      unit: UNITS.includes(view.unit) ? view.unit : 'none',
      startValue: 0, samples, weights, endValue,
    };
  });
  return JSON.stringify({
    $schema: 'https://www.speedscope.app/file-format-schema.json', exporter: 'heapgauge', name: title,
    activeProfileIndex: 0,
    shared: { frames }, profiles,
  });
}
