// Into the clipboard, or into a file.
import { tell } from '../load';

// A page from a file may not use the clipboard's newer interface; the older one works from a key or a click.
function copyOld(text: string): boolean {
  const area = document.createElement('textarea');
  area.value = text;
  area.style.position = 'fixed';
  area.style.opacity = '0';
  document.body.append(area);
  const focused = document.activeElement;
  area.select();
  const done = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement)
    focused.focus();
  return done;
}

export async function copy(text: string, what: string) {
  let done = false;
  try {
    await navigator.clipboard.writeText(text);
    done = true;
  } catch {
    done = copyOld(text);
  }
  tell(done ? `Copied ${what}.` : 'The browser does not let this page copy: select the text instead.');
}

export function download(content: string | Uint8Array<ArrayBuffer>, name: string, type: string) {
  const address = URL.createObjectURL(new Blob([content], { type }));
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
  tell(`Saved ${name}.`);
}
