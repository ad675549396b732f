// The part of the picture that is seen: from `left` on, `width` wide, in the tree's unit; `scroll` rows away from the root's.
// Between two such parts the way is geometric, so that each step of it magnifies alike.

export interface Camera { left: number; width: number; scroll: number }

// Boxes are placed in doubles: what is narrower than this part of the whole has no position any more.
const NARROWEST = 1e-11;

export function clampCamera(c: Camera, total: number, scrollMost: number): Camera {
  const width = Math.min(Math.max(c.width, total * NARROWEST), total);
  return {
    width,
    left: Math.min(Math.max(c.left, 0), total - width),
    scroll: Math.min(Math.max(c.scroll, 0), Math.max(scrollMost, 0)),
  };
}

export function sameCamera(a: Camera, b: Camera): boolean {
  return a.left === b.left && a.width === b.width && a.scroll === b.scroll;
}

// t from 0 to 1.
export function between(a: Camera, b: Camera, t: number): Camera {
  if (t >= 1)
    return b;
  const scroll = a.scroll + (b.scroll - a.scroll) * t;
  const ratio = b.width / a.width;
  if (Math.abs(ratio - 1) < 1e-6)
    return { left: a.left + (b.left - a.left) * t, width: b.width, scroll };
  const width = a.width * Math.pow(ratio, t);
  // The place that stays where it is on the screen.
  const still = (a.left * b.width - b.left * a.width) / (b.width - a.width);
  return { left: still - (still - a.left) / a.width * width, width, scroll };
}

export function zoomAround(c: Camera, at: number, factor: number): Camera {
  return { left: at - (at - c.left) * factor, width: c.width * factor, scroll: c.scroll };
}
