// How a target is doing, and in which order that is worth a look.
import type { Target } from './api';

const SLOW = 0.5; // of the interval: a scrape that takes longer is near its limit
const LATE = 3; // intervals without one

export function isLate({ last_ms, interval_ms }: Target, now: number): boolean {
  return last_ms !== null && last_ms > 0 && interval_ms > 0 && now - last_ms > LATE * interval_ms;
}

// 3: fails. 2: late or slow. 1: not asked yet. 0: well.
export function troubleRank(target: Target, now: number): number {
  if (target.health === 'down')
    return 3;
  if (isLate(target, now) || (target.interval_ms > 0 && target.duration_ms > SLOW * target.interval_ms))
    return 2;
  return target.health === 'up' ? 0 : 1;
}

export function byTrouble(list: readonly Target[], now: number): Target[] {
  const name = ({ labels, url }: Target) => `${labels['job'] ?? ''} ${labels['instance'] ?? ''} ${url}`;
  const share = ({ failures, scrapes }: Target) => (scrapes > 0 ? failures / scrapes : 0);
  return [...list].sort(
    (a, b) => troubleRank(b, now) - troubleRank(a, now) || share(b) - share(a) || (name(a) < name(b) ? -1 : name(a) > name(b) ? 1 : 0)
  );
}
