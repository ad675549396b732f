// Questions of one kind, where only the last one counts: the one before is given up, and should its answer come all the
// same it is not looked at.

export class Latest {
  private current: AbortController | null = null;

  // Calls back with what was found, or with what went wrong, unless something else was asked in the meantime.
  ask<T>(question: (signal: AbortSignal) => Promise<T>, found: (answer: T) => void, failed: (error: unknown) => void): void {
    this.current?.abort();
    const mine = new AbortController();
    this.current = mine;
    question(mine.signal).then(
      answer => {
        if (this.current === mine) {
          this.current = null;
          found(answer);
        }
      },
      (error: unknown) => {
        if (this.current === mine) {
          this.current = null;
          failed(error);
        }
      }
    );
  }

  cancel(): void {
    this.current?.abort();
    this.current = null;
  }

  get waiting(): boolean {
    return this.current !== null;
  }
}
