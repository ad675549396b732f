// From buckets to lines. A bucket in which nothing was recorded has no value; between buckets that stand as far apart as
// those around them do a line is drawn, across a longer silence it is not: there it has a gap.

// Values over time, null where a gap begins.
export interface Line {
  times: number[];
  values: (number | null)[];
}

const NEIGHBOURS = 8;
const PATIENCE = 2.5; // so many times the usual distance is a gap

function median(list: readonly number[]): number {
  const sorted = [...list].sort((a, b) => a - b);
  return sorted[(sorted.length - 1) >> 1] ?? 0;
}

// Per point: is there a gap behind it? What is usual is known from the points around it, as older ones stand further
// apart; least: distances that never are one.
export function gapsOf(times: readonly number[], least: number): boolean[] {
  const distances = times.slice(1).map((at, i) => at - times[i]);
  return distances.map((distance, i) => {
    if (distance <= least)
      return false;
    const before = distances.slice(Math.max(0, i - NEIGHBOURS), i);
    const after = distances.slice(i + 1, i + 1 + NEIGHBOURS);
    const usual = Math.max(before.length ? median(before) : 0, after.length ? median(after) : 0);
    return distance > PATIENCE * Math.max(usual, least);
  });
}

// step: of the buckets. What nothing is known of has no point.
export function lineOf(times: readonly number[], values: readonly (number | null)[], step: number): Line {
  const known = times.flatMap((_, i) => (typeof values[i] === 'number' ? [i] : []));
  const gaps = gapsOf(known.map(i => times[i]), step);
  const line: Line = { times: [], values: [] };
  known.forEach((i, k) => {
    line.times.push(times[i]);
    line.values.push(values[i]);
    if (gaps[k]) {
      line.times.push((times[i] + times[known[k + 1]]) / 2);
      line.values.push(null);
    }
  });
  return line;
}

// The moments at which a line is silent: where each gap begins and ends.
export function silences({ times, values }: Line): [from: number, to: number][] {
  return times.flatMap((_, i) => (values[i] === null ? [[times[i - 1], times[i + 1]] as [number, number]] : []));
}

// One axis of time for all, as uPlot takes it: undefined where a line has no point, null where it has a gap.
export function aligned(lines: readonly Line[]): { times: number[]; columns: (number | null | undefined)[][] } {
  const times = [...new Set(lines.flatMap(line => line.times))].sort((a, b) => a - b);
  const place = new Map(times.map((at, i) => [at, i]));
  const columns = lines.map(line => {
    const column = new Array<number | null | undefined>(times.length).fill(undefined);
    line.times.forEach((at, i) => {
      column[place.get(at)!] = line.values[i];
    });
    return column;
  });
  return { times, columns };
}
