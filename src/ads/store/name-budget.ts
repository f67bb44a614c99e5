import { BadRequest } from '../bad-request.ts';
import { getHeapStatistics } from 'node:v8';

/** Share of the heap for the names of all streams, each set counted once; half of it for sets from one address. */
const SHARE = 1 / 4;
/** What a name in a set takes besides its text: measured. */
const NAME_OVERHEAD = 100;

/** Memory that names take, to be given back. */
export interface Room {
  readonly address: string;
  readonly bytes: number;
}

/**
 * Memory for names that clients are subscribed to. A stream may have 65,536 of a type, and a connection a hundred
 * streams: names that others also have cost nothing, but every client could name different ones.
 */
export class NameBudget {
  readonly #most: number;
  readonly #ofAddress = new Map<string, number>();
  #all = 0;

  /** @param most bytes in total. */
  constructor(most = SHARE * getHeapStatistics().heap_size_limit) {
    this.#most = most;
  }

  /** Throws if there is no room. */
  take(address: string, names: Iterable<string>): Room {
    let bytes = 0;
    for (const name of names) bytes += NAME_OVERHEAD + name.length;
    const ofAddress = this.#ofAddress.get(address) ?? 0;
    if (bytes > 0 && (this.#all + bytes > this.#most || ofAddress + bytes > this.#most / 2))
      throw new BadRequest('no room left for this many names', true);
    this.#all += bytes;
    this.#ofAddress.set(address, ofAddress + bytes);
    return { address, bytes };
  }

  give({ address, bytes }: Room): void {
    this.#all -= bytes;
    const ofAddress = this.#ofAddress.get(address)! - bytes;
    if (ofAddress > 0) this.#ofAddress.set(address, ofAddress);
    else this.#ofAddress.delete(address);
  }
}
