// The two canvases: the picture, and over it the few boxes that are hovered or focused. Both have as many pixels as the device
// shows of them, at any zoom of the browser and on any screen the window is moved to.

export class Stage {
  readonly element = document.createElement('div');
  readonly under: CanvasRenderingContext2D;
  readonly over: CanvasRenderingContext2D;
  width = 0; height = 0; ratio = 1;
  private readonly observer: ResizeObserver;
  private readonly stop = new AbortController();

  constructor(host: HTMLElement, changed: () => void) {
    this.element.className = 'flame';
    const under = document.createElement('canvas'), over = document.createElement('canvas');
    over.className = 'over';
    over.ariaHidden = 'true';
    this.under = under.getContext('2d', { alpha: false })!;
    this.over = over.getContext('2d')!;
    this.element.append(under, over);
    host.append(this.element);
    this.observer = new ResizeObserver(([entry]) => {
      if (entry && this.resize(entry))
        changed();
    });
    try {
      this.observer.observe(under, { box: 'device-pixel-content-box' });
    } catch {
      this.observer.observe(under);
      this.watchRatio();
    }
  }

  private resize(entry: ResizeObserverEntry): boolean {
    const exact = entry.devicePixelContentBoxSize?.[0], rough = entry.contentRect;
    this.ratio = devicePixelRatio || 1;
    const width = Math.round(exact?.inlineSize ?? rough.width * this.ratio);
    const height = Math.round(exact?.blockSize ?? rough.height * this.ratio);
    this.width = width;
    this.height = height;
    for (const { canvas } of [this.under, this.over]) {
      canvas.width = width;
      canvas.height = height;
    }
    return width > 0 && height > 0;
  }

  // Where the observer doesn't see another ratio.
  private watchRatio() {
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener('change', () => {
      this.observer.unobserve(this.under.canvas);
      this.observer.observe(this.under.canvas);
      this.watchRatio();
    }, { once: true, signal: this.stop.signal });
  }

  destroy() {
    this.stop.abort();
    this.observer.disconnect();
    this.element.remove();
  }
}
