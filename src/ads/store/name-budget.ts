import { HeapShare } from '../heap-share.ts';

/** Share of the heap for the names of all streams, each set counted once. */
const SHARE = 1 / 4;
/** What a name in a set takes besides its text, measured, with 20 bytes for its place in a {@link NameIndex}. */
const NAME_OVERHEAD = 120;

const WHAT = 'this many names';

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
  readonly #room: HeapShare;

  /** @param most bytes in total. */
  constructor(most?: number) {
    this.#room = most === undefined ? HeapShare.of(SHARE, WHAT) : new HeapShare(most, WHAT);
  }

  /** Throws if there is no room. */
  take(address: string, names: Iterable<string>): Room {
    let bytes = 0;
    for (const name of names) bytes += NAME_OVERHEAD + 2 * name.length;
    this.#room.take(address, bytes);
    return { address, bytes };
  }

  give({ address, bytes }: Room): void {
    this.#room.give(address, bytes);
  }
}
