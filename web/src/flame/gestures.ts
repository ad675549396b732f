// Mouse, pen, fingers and wheel, told as what they mean. Places are CSS pixels from the top left of the element.

export interface Gestures {
  press(x: number, y: number): void;
  drag(dx: number, dy: number, x: number, y: number): void;
  release(): void;
  click(x: number, y: number): void;
  twice(x: number, y: number): void;
  hover(x: number, y: number): void;
  leave(): void;
  pinch(x: number, factor: number): void;         // factor: of the width that is seen
  wheel(dx: number, dy: number): boolean;         // false: there is nowhere to go
}

const SLACK = 4;                     // a press that moves less is a click
const LINE = 18, PAGE = 400;         // pixels that a wheel of lines or pages means

interface Point { x: number; y: number }

function wheelStep(e: WheelEvent): Point {
  const unit = e.deltaMode === 1 ? LINE : e.deltaMode === 2 ? PAGE : 1;
  return { x: e.deltaX * unit, y: e.deltaY * unit };
}

export function listenToGestures(element: HTMLElement, to: Gestures): () => void {
  const stop = new AbortController(), { signal } = stop;
  const down = new Map<number, Point>();
  let begin: Point | null = null, moved = false;

  const place = (e: MouseEvent): Point => {
    const box = element.getBoundingClientRect();
    return { x: e.clientX - box.left, y: e.clientY - box.top };
  };
  const ended = (e: PointerEvent, clicked: boolean) => {
    if (!down.delete(e.pointerId) || down.size > 0)
      return;
    element.classList.remove('dragged');
    to.release();
    if (clicked && begin && !moved)
      to.click(begin.x, begin.y);
    begin = null;
  };
  const two = (id: number, now: Point) => {
    const before = down.get(id)!, other = [...down].find(([key]) => key !== id)![1];
    const distance = (p: Point) => Math.max(Math.abs(p.x - other.x), 10);
    to.pinch((now.x + other.x) / 2, distance(before) / distance(now));
    to.drag((now.x - before.x) / 2, (now.y - before.y) / 2, now.x, now.y);
  };

  element.addEventListener('pointerdown', e => {
    if (e.button !== 0)
      return;
    const at = place(e);
    down.set(e.pointerId, at);
    element.setPointerCapture(e.pointerId);
    if (down.size === 1) {
      begin = at;
      moved = false;
      to.press(at.x, at.y);
    } else {
      moved = true;
    }
  }, { signal });
  element.addEventListener('pointermove', e => {
    const now = place(e), before = down.get(e.pointerId);
    if (!before) {
      to.hover(now.x, now.y);
      return;
    }
    if (down.size > 1) {
      two(e.pointerId, now);
    } else {
      if (!moved && begin && Math.hypot(now.x - begin.x, now.y - begin.y) < SLACK)
        return;
      if (!moved)
        element.classList.add('dragged');
      moved = true;
      to.drag(now.x - before.x, now.y - before.y, now.x, now.y);
    }
    down.set(e.pointerId, now);
  }, { signal });
  element.addEventListener('pointerup', e => ended(e, true), { signal });
  element.addEventListener('pointercancel', e => ended(e, false), { signal });
  element.addEventListener('pointerleave', () => to.leave(), { signal });
  element.addEventListener('dblclick', e => {
    const at = place(e);
    to.twice(at.x, at.y);
  }, { signal });
  element.addEventListener('wheel', e => {
    const step = wheelStep(e), at = place(e);
    if (e.ctrlKey || e.metaKey) {
      to.pinch(at.x, Math.exp(Math.min(Math.max(step.y, -120), 120) / 240));
      e.preventDefault();
    } else if (e.shiftKey && step.x === 0 ? to.wheel(step.y, 0) : to.wheel(step.x, step.y)) {
      e.preventDefault();
    }
  }, { signal, passive: false });
  return () => stop.abort();
}
