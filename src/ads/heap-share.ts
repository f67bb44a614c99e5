import { getHeapStatistics } from 'node:v8';
import { BadRequest } from './bad-request.ts';

/** A part of the heap for something that clients cause; half of it for clients at one address. */
export class HeapShare {
  readonly #what: string;
  readonly #most: number;
  readonly #ofAddress = new Map<string, number>();
  #all = 0;

  /** @param share of the heap's limit. */
  static of(share: number, what: string): HeapShare {
    return new HeapShare(share * getHeapStatistics().heap_size_limit, what);
  }

  /**
   * @param most bytes in total.
   * @param what in the words of an error: there is no room left for it.
   */
  constructor(most: number, what: string) {
    this.#most = most;
    this.#what = what;
  }

  /** Throws if there is no room. */
  take(address: string, bytes: number): void {
    const ofAddress = this.#ofAddress.get(address) ?? 0;
    if (bytes > 0 && (this.#all + bytes > this.#most || ofAddress + bytes > this.#most / 2))
      throw new BadRequest(`no room left for ${this.#what}`, true);
    this.#all += bytes;
    this.#ofAddress.set(address, ofAddress + bytes);
  }

  give(address: string, bytes: number): void {
    this.#all -= bytes;
    const ofAddress = (this.#ofAddress.get(address) ?? 0) - bytes;
    if (ofAddress > 0) this.#ofAddress.set(address, ofAddress);
    else this.#ofAddress.delete(address);
  }
}
