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
    this.watch();
  }

  // Another ratio need not change the size in CSS pixels.
  private watch() {
    const { canvas } = this.under;
    this.observer.unobserve(canvas);
    try {
      this.observer.observe(canvas, { box: 'device-pixel-content-box' });
    } catch {
      this.observer.observe(canvas);
    }
    matchMedia(`(resolution: ${devicePixelRatio}dppx)`).addEventListener('change', () => this.watch(), { once: true, signal: this.stop.signal });
  }

  private resize(entry: ResizeObserverEntry): boolean {
    this.ratio = devicePixelRatio || 1;
    const exact = entry.devicePixelContentBoxSize?.[0];
    this.width = closest(exact?.inlineSize, entry.contentRect.width * this.ratio);
    this.height = closest(exact?.blockSize, entry.contentRect.height * this.ratio);
    for (const { canvas } of [this.under, this.over]) {
      canvas.width = this.width;
      canvas.height = this.height;
    }
    return this.width > 0 && this.height > 0;
  }

  destroy() {
    this.stop.abort();
    this.observer.disconnect();
    this.element.remove();
  }
}

// The browser's own count of pixels knows how it rounds; but where a screen is only emulated it counts those of the real one.
function closest(exact: number | undefined, computed: number): number {
  return exact !== undefined && Math.abs(exact - computed) < 1 ? exact : Math.round(computed);
}
