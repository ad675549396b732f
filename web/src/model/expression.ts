// Expressions of filters. What POSIX's extended syntax has and JavaScript has not is translated, so that an expression
// that works on the command line means the same here.

export class FilterError extends Error {
  override name = 'FilterError';
  constructor(readonly option: string, message: string) {
    super(message);
  }
}

const CLASSES: Record<string, string> = {
  alpha: 'A-Za-z', digit: '0-9', alnum: 'A-Za-z0-9', upper: 'A-Z', lower: 'a-z', space: ' \\t\\n\\v\\f\\r',
  blank: ' \\t',
  punct: '!-\\/:-@\\[-`{-~', print: ' -~', graph: '!-~', cntrl: '\\x00-\\x1f\\x7f', xdigit: '0-9A-Fa-f',
};

// What stands in brackets from `at` on, in JavaScript's words, and where it ends.
function bracket(text: string, at: number, option: string): { js: string; end: number } {
  let js = '[', i = at + 1;
  if (text[i] === '^')
    js += text[i++];
  // A bracket that closes at once is an ordinary character.
  if (text[i] === ']' && text.indexOf(']', i + 1) > 0) {
    js += '\\]';
    i++;
  }
  for (; i < text.length && text[i] !== ']'; i++) {
    const named = /^\[([:.=])(.*?)\1\]/s.exec(text.slice(i, i + 40));
    if (text[i] === '\\' && i + 1 < text.length) {
      js += text[i] + text[++i];
    } else if (!named) {
      js += text[i] === '[' ? '\\[' : text[i];
    } else if (named[1] !== ':') {
      js += named[2].replace(/[\]\\^-]/g, '\\$&');
      i += named[0].length - 1;
    } else if (Object.hasOwn(CLASSES, named[2])) {
      js += CLASSES[named[2]];
      i += named[0].length - 1;
    } else {
      throw new FilterError(option, `'${text}' is not a regular expression: there is no class [:${named[2]}:]`);
    }
  }
  return { js: js + (i < text.length ? ']' : ''), end: i };
}

function translate(text: string, option: string): string {
  let js = '';
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '\\' && i + 1 < text.length) {
      const next = text[++i];
      js += next === '<' ? '\\b(?=\\w)' : next === '>' ? '\\b(?<=\\w)' : `\\${next}`;
    } else if (text[i] === '[') {
      const { js: part, end } = bracket(text, i, option);
      js += part;
      i = end;
    } else {
      js += text[i];
    }
  }
  return js;
}

// A regular expression, or a FilterError that names the option.
export function compileExpression(text: string, option: string): RegExp {
  const js = translate(text, option);
  try {
    const expression = new RegExp(js, 's');
    // Those that are too large fail when they are first used.
    expression.test('');
    return expression;
  } catch (error) {
    const why = String((error as Error).message).replace(/^Invalid regular expression: (\/.*\/[a-z]*: )?/s, '');
    throw new FilterError(option, `'${text}' is not a regular expression: ${why.toLowerCase()}`);
  }
}

// Text as a literal in an expression.
export function quoteExpression(text: string): string {
  return text.replace(/[\\^$.|?*+()[\]{}]/g, '\\$&');
}
