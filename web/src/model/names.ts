// Names as they are shown: harmless, and short when wanted. As src/report/picture.c.

const REORDERING = /[\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, CONTROL = /[\0-\x1f\x7f-\x9f]/g;
const hex = (text: string, digits: number) => text.charCodeAt(0).toString(16).padStart(digits, '0');

// Control and bidirectional characters made visible: "\x1b", "\u{202e}".
export function visible(text: string): string {
  return text.replace(CONTROL, (c) => `\\x${hex(c, 2)}`).replace(REORDERING, (c) => `\\u{${hex(c, 4)}}`)
    .replace(/[\ufffe\uffff]/g, '\ufffd');
}

const isWord = (c: string | undefined) => c !== undefined && (c >= '\x80' || /[A-Za-z0-9_$]/.test(c));

// Length of the sign at `at` when it follows the word "operator": of "<<" in "operator<<(A)"; else 0.
function operatorSign(name: string, at: number): number {
  if (!name.startsWith('operator', at - 8) || at < 8 || isWord(name[at - 9]))
    return 0;
  if (name.startsWith('()', at) || name.startsWith('[]', at))
    return 2;
  let length = 0;
  while (at + length < name.length && '<>=-&|+*/%!~^,'.includes(name[at + length]))
    length++;
  return length;
}

// For each opening bracket the place just past the one that closes it, or 0. "->" closes nothing.
function pastBrackets(name: string): Uint32Array {
  const past = new Uint32Array(name.length), open: Record<string, number[]> = { '<': [], '(': [] };
  for (let i = 0; i < name.length; i++) {
    const c = name[i];
    if (c === '<' || c === '(')
      open[c].push(i);
    else if (c === ')' || (c === '>' && name[i - 1] !== '-')) {
      const from = open[c === ')' ? '(' : '<'].pop();
      if (from !== undefined)
        past[from] = i + 1;
    }
  }
  return past;
}

// The name without what fills most C++ and Rust names: template arguments become <…>, parameters go. Of a frame without
// a name, "libc.so.6!0x12ab", the address stays.
export function trimTemplates(name: string): string {
  const address = /!(?:0x|fn_)[A-Za-z0-9_$\x80-\uffff]+$/.exec(name.slice(-64));
  if (address && name.length - address[0].length > 1)
    return `…${address[0]}`;
  if (!/[<(]/.test(name))
    return name;
  const past = pastBrackets(name);
  let short = '', signEnd = -1;
  for (let i = 0; i < name.length;) {
    const sign = operatorSign(name, i);
    if (sign) {
      short += name.slice(i, i + sign);
      signEnd = i += sign;
      continue;
    }
    const before = i ? name[i - 1] : ' ', afterName = isWord(before) || i === signEnd;
    const list = name[i] === '<' && (afterName || before === ':');
    const parameters = name[i] === '(' && (afterName || '>)]'.includes(before));
    if ((list || parameters) && past[i]) {
      short += list ? '<…>' : '';
      i = past[i];
    } else {
      short += name[i++];
    }
  }
  return short;
}
