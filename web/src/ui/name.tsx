// Names from profiles, as text and nothing else: what could turn the page around or hide in it is made visible, and the
// longest are cut in their middle, where C++ and Rust names differ least.
import { trimTemplates, visible } from '../model';
import { trim } from '../settings';

const ROW_LENGTH = 240;
const TITLE_LENGTH = 1000;

export function cutMiddle(text: string, most: number): string {
  if (text.length <= most)
    return text;
  const half = (most - 1) >> 1;
  // Not through a surrogate pair.
  const head = text.slice(0, half).replace(/[\ud800-\udbff]$/, '');
  const tail = text.slice(text.length - half).replace(/^[\udc00-\udfff]/, '');
  return `${head}…${tail}`;
}

// "libc.so.6!0x12ab": the short form leaves the binary to the colour of a box, which a row has not.
const UNNAMED = /!(fn_|0x)[0-9a-f]+$/;

export function shownName(name: string, most = ROW_LENGTH): string {
  // The longest names cost most in the finest wording: they are cut before it, too.
  if (/^\s*$/.test(name.slice(0, ROW_LENGTH)) && name.length < ROW_LENGTH)
    return '(unnamed)';
  const rough = cutMiddle(name, 20 * TITLE_LENGTH);
  return cutMiddle(visible(trim.value && !UNNAMED.test(rough) ? trimTemplates(rough) : rough), most);
}

export function fullName(name: string): string {
  return cutMiddle(visible(cutMiddle(name, 20 * TITLE_LENGTH)), TITLE_LENGTH);
}

export function Name({ name, note, found }: { name: string; note?: string | undefined; found?: boolean }) {
  return (
    <span class={found ? 'name found' : 'name'} title={fullName(name)}>
      {shownName(name)}
      {note && <span class="dim"> {note}</span>}
    </span>
  );
}

export function fileName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}
