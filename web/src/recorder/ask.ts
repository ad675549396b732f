// Questions to the recorder, and what went wrong as a sentence: what happened, and what to do. Texts from the recorder
// are shown as text, cut, with what hides in them made visible.
import { visible } from '../model';
import { cutMiddle } from '../ui/name';

export type Kind = 'gone' | 'busy' | 'slow' | 'none' | 'other';

export class Trouble extends Error {
  constructor(
    readonly kind: Kind,
    message: string,
    readonly again: number // ms until it is worth asking again; 0: not by itself
  ) {
    super(message);
  }
}

const BUSY_MS = 2000;
const GONE_MS = 3000;
const MOST_MS = 60_000;

let ahead = 0; // of our clock: the recorder's

export function recorderNow(): number {
  return Date.now() + ahead;
}

// A second or two are the way of the answer.
export function setClock(theirs: number) {
  const difference = theirs - Date.now();
  ahead = Number.isFinite(difference) && Math.abs(difference) > 2000 ? difference : 0;
}

// What the recorder said: a JSON object with an error, or a line of text.
function saidIn(text: string): string {
  let said = text.trim();
  try {
    const parsed: unknown = JSON.parse(text);
    const { error, message } = parsed as { error?: unknown; message?: unknown };
    said = typeof error === 'string' ? error : typeof message === 'string' ? message : said;
  } catch {
    // A line, then.
  }
  return visible(cutMiddle(said, 400));
}

function sentence(text: string): string {
  const begun = text.charAt(0).toUpperCase() + text.slice(1);
  return text === '' || /[.!?]$/.test(text) ? begun : `${begun}.`;
}

export function troubleOf(status: number, text: string, retryAfter: string | null): Trouble {
  const said = sentence(saidIn(text));
  const seconds = retryAfter !== null && /^\d{1,4}$/.test(retryAfter) ? Number(retryAfter) : 0;
  switch (status) {
    case 429:
    case 503: {
      const ms = Math.min(Math.max(seconds * 1000, BUSY_MS), MOST_MS);
      return new Trouble(
        'busy',
        `The recorder has too much to do just now; this is asked again in ${Math.round(ms / 1000)} s. ${said}`.trim(),
        ms
      );
    }
    case 408:
    case 413:
      return new Trouble(
        'slow',
        `That took longer, or more memory, than the recorder allows for one question: choose a shorter range or fewer targets. ${said}`.trim(),
        0
      );
    case 404:
      return new Trouble('none', said || 'There is nothing of that in this range.', 0);
    case 401:
    case 403:
      return new Trouble('other', `The recorder does not allow this. ${said}`.trim(), 0);
    default:
      return new Trouble('other', `The recorder answered with ${status}: ${said || 'no reason given.'}`, 0);
  }
}

export function troubleFrom(error: unknown): Trouble {
  return error instanceof Trouble
    ? error
    : new Trouble('other', `The answer cannot be read: ${error instanceof Error ? error.message : String(error)}.`, 0);
}

async function ask(address: string, signal: AbortSignal): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address, { cache: 'no-store', signal });
  } catch (error) {
    signal.throwIfAborted();
    throw new Trouble('gone', 'The recorder does not answer: what is shown stays, and gets no newer.', GONE_MS);
  }
  if (!answer.ok)
    throw troubleOf(answer.status, await answer.text().catch(() => ''), answer.headers.get('retry-after'));
  return answer;
}

// An answer that breaks off in the middle is none.
async function whole<T>(read: Promise<T>, signal: AbortSignal): Promise<T> {
  try {
    return await read;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof SyntaxError)
      throw new Trouble('other', 'The recorder’s answer cannot be read: it is no JSON.', 0);
    throw new Trouble('gone', 'The recorder’s answer broke off: what is shown stays.', GONE_MS);
  }
}

export async function askJson(address: string, signal: AbortSignal): Promise<unknown> {
  const answer = await ask(address, signal);
  return whole(answer.json() as Promise<unknown>, signal);
}

export async function askBytes(address: string, signal: AbortSignal): Promise<Uint8Array> {
  const answer = await ask(address, signal);
  return new Uint8Array(await whole(answer.arrayBuffer(), signal));
}
