// Where the data block is, and whether there is a newer one. In a file it stands in the page; served, its address does.
import { batch, signal } from '@preact/signals';
import { DataError, decodeBlock, fromBase64 } from './model';
import { data } from './state';

export interface Failure {
  title: string;
  message: string;
  advice: string;
}

export const failure = signal<Failure | null>(null);
export const notice = signal(''); // said quietly, at the bottom
export const gone = signal(false); // the server does not answer
export const busy = signal(false);
export const whole = signal(false); // all that was asked for, without limit of size

const ASK_MS = 2000;
let address: string | null = null;
let version = '';

// On a recorder, where nothing is polled: how all of what is shown is asked for.
let ofRecorder: (() => void) | null = null;

export function servedByRecorder(fetchWhole: () => void) {
  ofRecorder = fetchWhole;
}

export function served(): boolean {
  return address !== null || ofRecorder !== null;
}

export function tell(message: string) {
  notice.value = message;
  setTimeout(() => {
    if (notice.value === message)
      notice.value = '';
  }, 4000);
}

class NoAnswer extends Error {}

async function ask(what: string): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(what, { cache: 'no-store' });
  } catch {
    throw new NoAnswer('the server does not answer');
  }
  return answer;
}

async function fetchBlock(): Promise<Uint8Array> {
  const answer = await ask(whole.value ? `${address}?all=1` : address!);
  if (!answer.ok) {
    const said = (await answer.text()).trim().slice(0, 500);
    throw new DataError(`the server answered ${answer.status}${said ? `: ${said}` : ''}`);
  }
  return new Uint8Array(await answer.arrayBuffer());
}

function fail(error: unknown) {
  const again =
    address === null
      ? 'Write the page again with “heapgauge flame -o FILE.html PROFILE…”; if it was sent to you, ask for another copy.'
      : 'See what “heapgauge view” printed in its terminal, and start it again.';
  const known = error instanceof DataError || error instanceof NoAnswer;
  failure.value = {
    title: error instanceof NoAnswer ? 'There is no answer' : known ? 'The data cannot be read' : 'The page failed',
    message: error instanceof Error ? error.message : String(error),
    advice: again,
  };
}

async function currentVersion(): Promise<string> {
  const answer = await ask('version');
  return answer.ok ? (await answer.text()).trim() : version;
}

async function refresh() {
  const bytes = await fetchBlock();
  const next = await decodeBlock(bytes);
  data.value = next;
}

async function poll() {
  try {
    const now = await currentVersion();
    gone.value = false;
    if (now !== version) {
      await refresh();
      version = now;
      tell('Updated: there is a newer profile.');
    }
  } catch (error) {
    // What was shown is still true; it only gets no newer.
    gone.value = error instanceof NoAnswer;
    if (!gone.value && error instanceof Error)
      tell(`Not updated: ${error.message}`);
  }
  setTimeout(poll, ASK_MS);
}

// Everything that was put into (other).
export async function fetchAll() {
  if (ofRecorder) {
    ofRecorder();
    return;
  }
  busy.value = true;
  whole.value = true;
  try {
    await refresh();
  } catch (error) {
    whole.value = false;
    tell(`Not fetched: ${error instanceof Error ? error.message : String(error)}`);
  }
  busy.value = false;
}

// The text of a source file, by the path that the block has; null when it cannot be read.
export async function fetchSource(path: string): Promise<string | null> {
  if (address === null)
    return null;
  try {
    const answer = await ask(`source?path=${encodeURIComponent(path)}`);
    return answer.ok ? await answer.text() : null;
  } catch {
    return null;
  }
}

export async function loadStart(begun: () => void) {
  try {
    const inside = document.getElementById('heapgauge-data');
    const outside = document.querySelector('meta[name="heapgauge-data"]')?.getAttribute('content');
    if (!inside && !outside)
      throw new DataError(
        'there are no data in this page: it was cut off, or is the empty page that “heapgauge” is built with'
      );
    let bytes: Uint8Array;
    if (inside) {
      bytes = fromBase64(inside.textContent ?? '');
    } else {
      address = outside!;
      version = await currentVersion();
      bytes = await fetchBlock();
    }
    const first = await decodeBlock(bytes);
    batch(() => {
      data.value = first;
      begun();
    });
    if (address !== null)
      setTimeout(poll, ASK_MS);
  } catch (error) {
    fail(error);
  }
}
