// The box of details beside the pointer. Its words are the page's; they get in as text and nothing else.

export interface TipText { title: string; lines: string[] }

const AWAY = 14;                     // CSS pixels from the pointer

export class Tip {
  readonly element = document.createElement('div');

  constructor() {
    this.element.className = 'flame-tip';
    this.element.hidden = true;
    // The same is in the live region.
    this.element.ariaHidden = 'true';
    document.body.append(this.element);
  }

  // x, y: of the window.
  show(text: TipText, x: number, y: number) {
    const title = document.createElement('strong');
    title.textContent = text.title;
    const lines = text.lines.map(line => {
      const element = document.createElement('div');
      element.textContent = line;
      return element;
    });
    this.element.replaceChildren(title, ...lines);
    this.element.hidden = false;
    this.move(x, y);
  }

  move(x: number, y: number) {
    if (this.element.hidden)
      return;
    const { width, height } = this.element.getBoundingClientRect();
    const left = x + AWAY + width > innerWidth ? Math.max(x - AWAY - width, 4) : x + AWAY;
    const top = y + AWAY + height > innerHeight ? Math.max(y - AWAY - height, 4) : y + AWAY;
    this.element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
  }

  hide() {
    this.element.hidden = true;
  }
}
