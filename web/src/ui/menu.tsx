// A button that opens a list of things to do.
import type { ComponentChildren } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { Signal } from '@preact/signals';

export interface MenuItem {
  title: string;
  test: string;
  note?: string;
  run(): void;
}

interface MenuProps {
  title: string;
  test: string;
  open: Signal<boolean>;
  items: MenuItem[];
  children?: ComponentChildren;
}

export function Menu({ title, test, open, items, children }: MenuProps) {
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const entries = () => [...box.current!.querySelectorAll<HTMLElement>('[role=menuitem]')];
  useEffect(() => {
    if (!open.value)
      return;
    entries()[0]?.focus();
    const outside = (event: Event) => {
      if (!box.current!.contains(event.target as Node))
        open.value = false;
    };
    addEventListener('pointerdown', outside);
    return () => removeEventListener('pointerdown', outside);
  }, [open.value]);

  const close = () => {
    open.value = false;
    button.current!.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const list = entries();
    const now = list.indexOf(document.activeElement as HTMLElement);
    const to: Record<string, number> = {
      ArrowDown: now + 1,
      ArrowUp: now - 1 + list.length,
      Home: 0,
      End: list.length - 1,
    };
    if (event.key in to)
      list[to[event.key] % list.length]?.focus();
    else if (event.key === 'Escape')
      close();
    else if (event.key === 'Tab')
      open.value = false;
    else
      return event.stopPropagation();
    event.stopPropagation();
    if (event.key !== 'Tab')
      event.preventDefault();
  };
  return (
    <div class="menu" ref={box}>
      <button
        type="button"
        ref={button}
        aria-haspopup="menu"
        aria-expanded={open.value}
        data-test={test}
        onClick={() => {
          open.value = !open.value;
        }}>
        {title}
        <span aria-hidden="true"> ▾</span>
      </button>
      {open.value && (
        <div class="popup">
          {children}
          <div role="menu" aria-label={title} onKeyDown={onKeyDown}>
            {items.map(item => (
              <button
                type="button"
                role="menuitem"
                key={item.test}
                tabIndex={-1}
                data-test={item.test}
                onClick={() => {
                  close();
                  item.run();
                }}>
                {item.title}
                {item.note && <span class="dim"> {item.note}</span>}
              </button>
            ))}
          </div>
        </div>
      )}
    </div>
  );
}
