import { type BackOff, backOff } from './rejections.ts';

/**
 * A whole state was rejected for an unknown reason: until one is accepted, unchanged content proves nothing. It is
 * tried again after a back-off.
 */
export class WholeRejection {
  #current: (BackOff & { readonly message: string }) | undefined;
  #isNews = false;

  /** The same object while nothing else is rejected. */
  get current(): { readonly message: string } | undefined {
    return this.#current;
  }

  begin(now: number, message: string): void {
    this.#current = { ...backOff(this.#current, now), message };
    this.#isNews = true;
  }

  end(): void {
    if (this.#current === undefined) return;
    this.#current = undefined;
    this.#isNews = true;
  }

  /** Whether it is time to try again. */
  isDue(now: number): boolean {
    return this.#current !== undefined && now >= this.#current.retryAt;
  }

  /** Whether {@link current} is another one than at the last call. */
  takeNews(): boolean {
    const isNews = this.#isNews;
    this.#isNews = false;
    return isNews;
  }
}
