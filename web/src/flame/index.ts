// The flame graph: a picture of a tree on a canvas, that is zoomed, panned, walked and searched. The data come with show(); what
// the user does to the picture itself happens here and is told through the events.
import { NONE, type FlameInput } from '../types';
import { between, clampCamera, sameCamera, zoomAround, type Camera } from './camera';
import { listenToGestures } from './gestures';
import { layOut, rowOf, rowsBetween, slotAt, type Layout } from './layout';
import { Minimap, mapStep, mapWindow } from './minimap';
import { Font, Names } from './names';
import { nodeFills, paintSlots } from './paint';
import { Painter, strokeInside } from './painter';
import { css, DARK, LIGHT, type Palette } from './palette';
import { colourPixels, pixelsPerUnit, rowAt, rowsOfRoom, rowTop, screenOf, type Scene } from './scene';
import { Stage } from './stage';
import { drawSvg } from './svg';
import { Tip, type TipText } from './tip';
import { beside, firstShownChild, nextFound, parentOf, samePath, widestEnd } from './walk';

export type { TipText } from './tip';

export interface FlameEvents {
  select(entry: number, node: number): void;      // entry NONE: the root
  zoom(node: number): void;                       // it is the whole width now; the caller need not answer with zoomTo()
  rest(node: number): void;                       // an (other) was clicked
  hover?(node: number | null): void;
  tooltip(node: number): TipText;
  amount?(node: number): string;                  // behind the name, where there is room
}

const ZOOM_MS = 170;
const STEP_ZOOM = 0.7;
const FONT = 11.5;                   // CSS pixels
const HOVER = 2, FOCUS = 3;           // CSS pixels of a frame, of which one is around the box
const REACH = 2;                     // CSS pixels beside a box that still mean it
const MOVING_LABELS = 300;           // words in a frame of a movement
const SETTLED_MS = 120;
const ABOVE = 3;                     // rows that stay above a zoomed node

export class FlameGraph {
  private readonly stage: Stage;
  private readonly painter: Painter;
  private readonly map: Minimap;
  private readonly tip = new Tip();
  private readonly spoken = document.createElement('div');
  private readonly stopGestures: () => void;
  private input: FlameInput | null = null;
  private scene: Scene | null = null;
  private fills: Uint8Array = new Uint8Array(0);
  private palette: Palette = LIGHT;
  private camera: Camera = { left: 0, width: 1, scroll: 0 };
  private way: { from: Camera; to: Camera; began: number } | null = null;
  private zoomed = 0;
  private hovered = NONE;
  private focused = NONE;
  private mapDragged = false;
  private frame = 0;
  private settling = 0;
  private stale = false;
  private marks: [x: number, y: number, width: number, height: number][] = [];
  private pointer = { x: 0, y: 0 };

  constructor(host: HTMLElement, private readonly events: FlameEvents) {
    this.stage = new Stage(host, () => this.resized());
    this.painter = new Painter(this.stage.under);
    this.map = new Minimap(this.painter);
    const { canvas } = this.stage.under;
    canvas.tabIndex = 0;
    canvas.setAttribute('role', 'application');
    canvas.setAttribute('aria-roledescription', 'flame graph');
    canvas.ariaLabel = 'Flame graph. Arrow keys walk the boxes, Enter zooms in, Backspace out. The table has the same numbers.';
    this.spoken.className = 'spoken';
    this.spoken.ariaLive = 'polite';
    this.stage.element.append(this.spoken);
    this.stopGestures = listenToGestures(canvas, {
      press: (x, y) => this.pressed(x, y),
      drag: (dx, dy) => this.dragged(dx, dy),
      release: () => { this.mapDragged = false; },
      click: (x, y) => this.clicked(x, y),
      twice: (x, y) => this.clickedTwice(x, y),
      hover: (x, y) => this.pointed(x, y),
      leave: () => this.point(NONE),
      pinch: (x, factor) => this.pinched(x, factor),
      wheel: (dx, dy) => this.pan(dx, dy),
    });
  }

  // Over the same tree and widths what is seen stays; else the node that was zoomed to, if the same way leads to one.
  show(input: FlameInput) {
    const before = this.scene, old = this.input;
    const sameLayout = before && old && old.tree === input.tree && old.width === input.width;
    const layout = sameLayout ? before.layout : layOut(input.tree, input.width);
    const sameFills = sameLayout && old.view === input.view && old.changes === input.changes;
    if (!sameFills)
      this.fills = nodeFills(input);
    const paint = sameFills && old.matches === input.matches ? before.paint : paintSlots(layout, this.fills, input.matches);
    this.input = input;
    if (!sameLayout)
      this.moveTo(layout, before, old);
    this.scene = this.makeScene(layout, paint);
    this.point(NONE);
    this.camera = this.clamp(this.camera);
    this.request(true);
  }

  zoomTo(node: number, animate: boolean) {
    const s = this.scene;
    if (!s || (s.layout.slot[node] ?? NONE) === NONE)
      return;
    this.zoomed = node;
    this.go(this.cameraOn(s, node), animate);
  }

  theme(dark: boolean) {
    this.palette = dark ? DARK : LIGHT;
    this.stage.element.classList.toggle('dark', dark);
    this.tip.element.classList.toggle('dark', dark);
    if (this.scene)
      this.scene = this.makeScene(this.scene.layout, this.scene.paint);
    this.request(true);
  }

  // To be called for keys that nothing else on the page takes; true: it was for this.
  key(e: KeyboardEvent): boolean {
    const s = this.scene;
    if (!s || e.ctrlKey || e.metaKey || e.altKey)
      return false;
    switch (e.key) {
      case 'ArrowDown': case 'ArrowUp': case 'ArrowLeft': case 'ArrowRight': case 'Home': case 'End':
        this.focusOn(this.walk(s, e.key));
        return true;
      case 'Enter': return this.open(s);
      case ' ': return this.selectFocused(s);
      case 'Backspace': case 'Escape': return this.out(s);
      case '0': return this.whole(s);
      case '+': case '=': this.step(s, STEP_ZOOM); return true;
      case '-': this.step(s, 1 / STEP_ZOOM); return true;
      case 'n': case 'N': return this.find(s, e.key === 'n' ? 1 : -1);
      default: return false;
    }
  }

  // What is shown, as a file of its own.
  svg(): string {
    return this.scene ? drawSvg(this.scene, node => this.events.tooltip(node)) : '';
  }

  destroy() {
    cancelAnimationFrame(this.frame);
    clearTimeout(this.settling);
    this.stopGestures();
    this.tip.element.remove();
    this.stage.destroy();
  }

  // --- what is seen ---

  private makeScene(layout: Layout, paint: Scene['paint']): Scene {
    const { stage } = this, input = this.input!, old = this.scene;
    const screen = screenOf(stage.width, stage.height, stage.ratio);
    const { entries } = input.view, size = Math.round(FONT * stage.ratio);
    const names = old && old.names.entries === entries && old.names.font.size === size
      ? old.names : new Names(entries, new Font(stage.under, size));
    const { amount } = this.events;
    return {
      input, layout, paint, palette: this.palette, names, screen, camera: this.camera, zoomed: this.zoomed,
      colours: old && old.palette === this.palette ? old.colours : colourPixels(this.palette),
      mostLabels: Infinity, amount: amount ? node => amount(node) : null,
    };
  }

  // Another tree, or other widths: stay where we are, as far as that exists.
  private moveTo(layout: Layout, before: Scene | null, old: FlameInput | null) {
    const to = this.input!.view.entries.name;
    const follow = (node: number) => before && old && node !== NONE && node < old.tree.n
      ? samePath(before.layout, old.view.entries.name, node, layout, to) : NONE;
    const zoomed = follow(this.zoomed);
    this.zoomed = zoomed === NONE ? 0 : zoomed;
    this.focused = follow(this.focused);
    const slot = layout.slot[this.zoomed];
    this.way = null;
    this.camera = { left: layout.x[slot], width: layout.w[slot], scroll: this.camera.scroll };
  }

  private resized() {
    if (!this.scene)
      return;
    const unseen = this.scene.screen.height === 0;
    this.scene = this.makeScene(this.scene.layout, this.scene.paint);
    const { scroll } = unseen ? this.cameraOn(this.scene, this.zoomed) : this.camera;
    this.camera = this.clamp({ ...this.camera, scroll });
    this.draw(false);
  }

  private clamp(camera: Camera): Camera {
    const { layout, screen } = this.scene!;
    const flat = clampCamera(camera, layout.total, Infinity);
    return clampCamera(flat, layout.total, rowsBetween(layout, flat.left, flat.left + flat.width) - rowsOfRoom(screen));
  }

  // A node over the whole width: its callees in view, as many of its callers as there is room for.
  private cameraOn(s: Scene, node: number): Camera {
    const slot = s.layout.slot[node], left = s.layout.x[slot], width = s.layout.w[slot];
    const beyond = rowsBetween(s.layout, left, left + width) - rowsOfRoom(s.screen);
    return { left, width, scroll: Math.max(Math.min(beyond, rowOf(s.layout, slot) - ABOVE), 0) };
  }

  private go(camera: Camera, animate: boolean) {
    const to = this.clamp(camera);
    if (this.way && sameCamera(this.way.to, to))
      return;
    const still = !animate || sameCamera(to, this.camera) || matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.way = still ? null : { from: this.camera, to, began: performance.now() };
    if (still)
      this.camera = to;
    this.request(true);
  }

  // --- frames ---

  private request(stale: boolean) {
    this.stale ||= stale;
    this.frame ||= requestAnimationFrame(now => this.tick(now));
  }

  private tick(now: number) {
    this.frame = 0;
    const { way } = this;
    if (way) {
      const t = Math.min(Math.max((now - way.began) / ZOOM_MS, 0), 1);
      this.camera = between(way.from, way.to, 1 - (1 - t) ** 3);
      if (t >= 1)
        this.way = null;
      else
        this.request(true);
    }
    if (this.stale || way)
      this.draw(true);
    else
      this.drawMarks();
  }

  // Each frame may be one of many: then some words wait until it is still.
  private draw(moving: boolean) {
    const s = this.scene;
    if (!s || s.screen.width === 0)
      return;
    this.stale = this.way !== null;
    Object.assign(s, { camera: this.camera, zoomed: this.zoomed, mostLabels: moving ? MOVING_LABELS : Infinity });
    const whole = this.painter.paint(s);
    this.map.paint(s, this.stage.under);
    this.drawMarks();
    clearTimeout(this.settling);
    if (!whole)
      this.settling = window.setTimeout(() => this.draw(false), SETTLED_MS);
  }

  private drawMarks() {
    const s = this.scene, { over } = this.stage;
    for (const [x, y, width, height] of this.marks)
      over.clearRect(x, y, width, height);
    this.marks = [];
    if (!s)
      return;
    this.mark(s, this.hovered, HOVER);
    this.mark(s, this.focused, FOCUS);
  }

  private mark(s: Scene, node: number, line: number) {
    const slot = node === NONE ? NONE : s.layout.slot[node] ?? NONE;
    if (slot === NONE)
      return;
    const { screen } = s, scale = pixelsPerUnit(s), frame = Math.max(1, Math.round(line * screen.ratio));
    const from = Math.round(Math.max((s.layout.x[slot] - s.camera.left) * scale, -frame)) - screen.gap;
    const to = Math.round(Math.min((s.layout.x[slot] + s.layout.w[slot] - s.camera.left) * scale, screen.width + frame));
    const y = rowTop(s, rowOf(s.layout, slot)) - screen.gap, width = Math.max(to - from, frame);
    const top = Math.max(y, screen.top), height = y + screen.row + screen.gap - top;
    if (height <= 0 || y >= screen.height || to < 0 || from > screen.width)
      return;
    strokeInside(this.stage.over, from, top, width, height, frame, css(s.palette.outline));
    this.marks.push([from, top, width, height]);
  }

  // --- pointer ---

  private nodeAt(s: Scene, x: number, y: number): number {
    const { ratio } = s.screen, scale = pixelsPerUnit(s);
    const slot = slotAt(s.layout, rowAt(s, y * ratio), s.camera.left + x * ratio / scale, REACH * ratio / scale);
    return slot === NONE ? NONE : s.layout.node[slot];
  }

  private pointed(x: number, y: number) {
    const s = this.scene;
    if (!s)
      return;
    const box = this.stage.element.getBoundingClientRect();
    this.pointer = { x: x + box.left, y: y + box.top };
    this.tip.move(this.pointer.x, this.pointer.y);
    this.point(this.nodeAt(s, x, y));
  }

  private point(node: number) {
    if (node === this.hovered)
      return;
    this.hovered = node;
    this.stage.under.canvas.style.cursor = node === NONE ? '' : 'pointer';
    if (node === NONE)
      this.tip.hide();
    else
      this.tip.show(this.events.tooltip(node), this.pointer.x, this.pointer.y);
    this.events.hover?.(node === NONE ? null : node);
    this.request(false);
  }

  private pressed(x: number, y: number) {
    const s = this.scene;
    if (!s || y * s.screen.ratio >= s.screen.top)
      return;
    this.mapDragged = true;
    const w = mapWindow(s), px = x * s.screen.ratio, py = y * s.screen.ratio;
    const across = px < w.x || px > w.x + w.width ? px - w.x - w.width / 2 : 0;
    const down = py < w.y || py > w.y + w.height ? py - w.y - w.height / 2 : 0;
    this.moveInMap(s, across, down);
  }

  private moveInMap(s: Scene, dx: number, dy: number) {
    const { units, rows } = mapStep(s, dx, dy), from = this.camera;
    this.go({ ...from, left: from.left + units, scroll: from.scroll + rows }, false);
  }

  private dragged(dx: number, dy: number) {
    const s = this.scene;
    if (!s)
      return;
    this.point(NONE);
    if (this.mapDragged)
      this.moveInMap(s, dx * s.screen.ratio, dy * s.screen.ratio);
    else
      this.pan(-dx, -dy);
  }

  // CSS pixels. false: there is nothing to see that way.
  private pan(dx: number, dy: number): boolean {
    const s = this.scene;
    if (!s)
      return false;
    const from = this.way ? this.way.to : this.camera, { ratio, row } = s.screen;
    const rows = dy * ratio / row * (s.input.icicle ? 1 : -1);
    const to = this.clamp({ ...from, left: from.left + dx * ratio / pixelsPerUnit(s), scroll: from.scroll + rows });
    if (sameCamera(from, to))
      return false;
    this.point(NONE);
    this.go(to, false);
    return true;
  }

  private pinched(x: number, factor: number) {
    const s = this.scene;
    if (!s)
      return;
    this.point(NONE);
    this.go(zoomAround(this.camera, this.camera.left + x * s.screen.ratio / pixelsPerUnit(s), factor), false);
  }

  private clicked(x: number, y: number) {
    const s = this.scene, node = s ? this.nodeAt(s, x, y) : NONE;
    if (!s || node === NONE)
      return;
    this.focused = node;
    this.request(false);
    this.choose(s, node);
  }

  private clickedTwice(x: number, y: number) {
    const s = this.scene, node = s ? this.nodeAt(s, x, y) : NONE;
    if (s && node !== NONE && !this.isRest(s, node))
      this.zoomIn(node);
  }

  // --- keys ---

  private isRest(s: Scene, node: number): boolean {
    return node !== 0 && s.layout.tree.entry[node] === NONE;
  }

  private choose(s: Scene, node: number) {
    if (this.isRest(s, node))
      this.events.rest(node);
    else
      this.events.select(s.layout.tree.entry[node], node);
  }

  private zoomIn(node: number) {
    this.zoomTo(node, true);
    this.events.zoom(node);
  }

  private walk(s: Scene, key: string): number {
    const at = this.focused;
    if (at === NONE || s.layout.slot[at] === NONE)
      return this.zoomed;
    switch (key) {
      case 'ArrowLeft': return beside(s.layout, at, -1);
      case 'ArrowRight': return beside(s.layout, at, 1);
      case 'Home': return this.zoomed;
      case 'End': return widestEnd(s.layout, at);
      default:
        return (key === 'ArrowDown') === s.input.icicle ? firstShownChild(s.layout, at) : parentOf(s.layout, at);
    }
  }

  private focusOn(node: number) {
    this.focused = node;
    this.reveal(node);
    const { title, lines } = this.events.tooltip(node);
    this.spoken.textContent = [title, ...lines].join('. ');
    this.request(false);
  }

  // As little movement as shows the box: rows up or down, sideways, and only for the narrowest a zoom.
  private reveal(node: number) {
    const s = this.scene!, slot = s.layout.slot[node], x = s.layout.x[slot], w = s.layout.w[slot];
    const room = rowsOfRoom(s.screen), row = rowOf(s.layout, slot), from = this.way ? this.way.to : this.camera;
    let { left, width, scroll } = from;
    if (w / width * s.screen.width < 12 * s.screen.ratio) {
      width = Math.max(w * 20, w);
      left = x + w / 2 - width / 2;
    } else if (x + w <= left || x >= left + width || (w < width && (x < left || x + w > left + width))) {
      width = Math.max(width, Math.min(w, s.layout.total));
      left = x < left ? x : x + w - width;
    }
    scroll = Math.min(Math.max(scroll, row + 2 - room), Math.max(row - 1, 0));
    this.go({ left, width, scroll }, true);
  }

  private open(s: Scene): boolean {
    if (this.focused === NONE)
      return false;
    if (this.isRest(s, this.focused))
      this.events.rest(this.focused);
    else
      this.zoomIn(this.focused);
    return true;
  }

  private selectFocused(s: Scene): boolean {
    if (this.focused !== NONE)
      this.choose(s, this.focused);
    return this.focused !== NONE;
  }

  // First back to the node that was zoomed to, then to its caller.
  private out(s: Scene): boolean {
    const slot = s.layout.slot[this.zoomed], at = this.way ? this.way.to : this.camera;
    const there = at.left === s.layout.x[slot] && at.width === s.layout.w[slot];
    if (there && this.zoomed === 0)
      return false;
    if (there)
      this.zoomIn(parentOf(s.layout, this.zoomed));
    else
      this.zoomTo(this.zoomed, true);
    return true;
  }

  private whole(s: Scene): boolean {
    this.focused = NONE;
    this.zoomIn(0);
    this.go({ left: 0, width: s.layout.total, scroll: 0 }, true);
    return true;
  }

  private step(s: Scene, factor: number) {
    const from = this.way ? this.way.to : this.camera, slot = this.focused === NONE ? NONE : s.layout.slot[this.focused];
    const middle = slot === NONE ? from.left + from.width / 2 : s.layout.x[slot] + s.layout.w[slot] / 2;
    const at = Math.min(Math.max(middle, from.left), from.left + from.width);
    this.go(zoomAround(from, at, factor), true);
  }

  private find(s: Scene, step: 1 | -1): boolean {
    const node = s.input.matches ? nextFound(s.layout, s.input.matches, this.focused === NONE ? 0 : this.focused, step) : NONE;
    if (node === NONE)
      return false;
    this.focusOn(node);
    return true;
  }
}
