/** A sleep that others can end. A call while nothing sleeps ends the next sleep. */
export class Wake {
  #called = false;
  #wake: (() => void) | undefined;

  up(): void {
    this.#called = true;
    this.#wake?.();
  }

  clear(): void {
    this.#called = false;
  }

  /** Resolves with true when woken, or with false after `ms` milliseconds or when the signal fires. */
  async wait(ms: number, signal: AbortSignal): Promise<boolean> {
    if (this.#called || signal.aborted) return this.#called;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', done);
        this.#wake = undefined;
        resolve();
      };
      const timer = setTimeout(done, ms);
      signal.addEventListener('abort', done);
      this.#wake = done;
    });
    return this.#called;
  }
}
