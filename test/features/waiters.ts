/** Longer than anything takes here: a test that waits in vain says what is missing. */
export const PATIENCE = 15_000;

/** Those who wait for something that may hold after any event. */
export class Waiters {
  private readonly waiting = new Set<() => void>();

  /** Something happened. */
  wake(): void {
    for (const look of [...this.waiting]) look();
  }

  /** Settles when the assertion holds; rejects with its last error when it never does, and with any other at once. */
  until(assertion: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      let last: unknown;
      const look = (): void => {
        try {
          assertion();
          end();
          resolve();
        } catch (error) {
          last = error;
          if ((error as Error).name === 'AssertionError') return;
          end();
          reject(error as Error);
        }
      };
      const end = (): void => {
        this.waiting.delete(look);
        clearTimeout(timer);
      };
      const timer = setTimeout(() => {
        end();
        reject(last as Error);
      }, PATIENCE);
      this.waiting.add(look);
      look();
    });
  }
}
