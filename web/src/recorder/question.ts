// A question whose answer is shown: what is there stays until a newer answer takes its place, and what went wrong is
// said beside it. Where it is of use the question is asked again by itself.
import { signal } from '@preact/signals';
import { Trouble, troubleFrom } from './ask';
import { Latest } from './latest';

const SETTLE_MS = 120; // a range that is being moved is asked for where it comes to rest

export class Question<A> {
  readonly answer = signal<A | null>(null);
  readonly trouble = signal<Trouble | null>(null);
  readonly pending = signal(false);
  private readonly latest = new Latest();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private key = '';

  // key: what is asked; the same again is nothing new, unless anew. done: before it is shown.
  ask(key: string, question: (signal: AbortSignal) => Promise<A>, done?: (answer: A) => void, anew = false): void {
    if (key === this.key && !anew)
      return;
    this.key = key;
    clearTimeout(this.timer);
    this.latest.cancel();
    this.pending.value = true;
    this.timer = setTimeout(() => this.now(question, done), SETTLE_MS);
  }

  private now(question: (signal: AbortSignal) => Promise<A>, done?: (answer: A) => void): void {
    this.latest.ask(
      question,
      answer => {
        this.pending.value = false;
        this.trouble.value = null;
        done?.(answer);
        this.answer.value = answer;
      },
      error => {
        const trouble = troubleFrom(error);
        this.trouble.value = trouble;
        this.pending.value = trouble.again > 0;
        if (trouble.again > 0)
          this.timer = setTimeout(() => this.now(question, done), trouble.again);
      }
    );
  }

  // Nothing is asked any more, and what is there stays.
  rest(): void {
    clearTimeout(this.timer);
    this.latest.cancel();
    this.key = '';
    this.pending.value = false;
  }
}
