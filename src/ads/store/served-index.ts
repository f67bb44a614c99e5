import { SetHash } from './content-hash.ts';
import type { Batch, Served } from './served.ts';

/**
 * Resources by the hash of their name and version: a table of integers, since reconnecting clients report thousands of
 * pairs each, and a `Map` of strings takes ten times as long.
 */
export class ServedIndex {
  readonly items: readonly Served[];
  /** Of the hashes of all items. */
  readonly hash = new SetHash();
  /** Number of an item plus one; 0 is free. At least half of the slots are free. */
  readonly #slots: Int32Array;
  readonly #mask: number;
  /** Both lanes of the hashes. */
  readonly #hashes: Int32Array;

  constructor(batches: readonly Batch[]) {
    this.items = batches.flatMap((batch) => batch.items);
    const size = 2 ** Math.ceil(Math.log2(Math.max(1, this.items.length) * 2));
    this.#slots = new Int32Array(size);
    this.#mask = size - 1;
    this.#hashes = new Int32Array(this.items.length * 2);
    this.items.forEach((item, i) => {
      const { a, b } = item;
      this.hash.add(item);
      this.#hashes[2 * i] = a;
      this.#hashes[2 * i + 1] = b;
      const slot = this.#slotOf(a, b);
      if (this.#slots[slot] === 0) this.#slots[slot] = i + 1;
    });
  }

  /** Number of the first item with this hash; -1 if there is none. */
  find(a: number, b: number): number {
    return this.#slots[this.#slotOf(a, b)]! - 1;
  }

  /** Where the hash is, or can be put. */
  #slotOf(a: number, b: number): number {
    for (let slot = (a ^ Math.imul(b, 0x9e3779b1)) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const item = this.#slots[slot]! - 1;
      if (item < 0 || (this.#hashes[2 * item] === a && this.#hashes[2 * item + 1] === b)) return slot;
    }
  }
}
