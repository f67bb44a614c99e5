/**
 * Pairs of a name and a version by their hashes: a table of integers, since clients that come back report thousands of
 * pairs each, and a `Map` of strings takes ten times as long.
 */
export class PairIndex {
  /** Number of an entry plus one; 0 is free. At least half are. */
  readonly #slots: Int32Array;
  readonly #mask: number;
  /** Both lanes of the hash, and the place. */
  readonly #entries: Int32Array;
  #count = 0;

  /** @param most how many pairs will be added */
  constructor(most: number) {
    const size = 2 ** Math.ceil(Math.log2(Math.max(1, most) * 2));
    this.#slots = new Int32Array(size);
    this.#mask = size - 1;
    this.#entries = new Int32Array(most * 3);
  }

  /** A pair and its place, which is not negative. One that is in already counts once, however often it comes. */
  add(a: number, b: number, place: number): void {
    const slot = this.#slotOf(a, b);
    if (this.#slots[slot] !== 0) return;
    const at = this.#count * 3;
    this.#entries[at] = a;
    this.#entries[at + 1] = b;
    this.#entries[at + 2] = place;
    this.#slots[slot] = ++this.#count;
  }

  /** Whether the pair was added. It is not among {@link untaken} any more. */
  take(a: number, b: number): boolean {
    const entry = this.#slots[this.#slotOf(a, b)]!;
    if (entry === 0) return false;
    this.#entries[(entry - 1) * 3 + 2] = TAKEN;
    return true;
  }

  /** The places of all pairs that nobody took, in the order in which they were added. */
  *untaken(): Generator<number> {
    for (let i = 0; i < this.#count; i++) {
      const place = this.#entries[i * 3 + 2]!;
      if (place !== TAKEN) yield place;
    }
  }

  /** Where the pair is, or may be put. */
  #slotOf(a: number, b: number): number {
    for (let slot = (a ^ Math.imul(b, 0x9e3779b1)) & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const entry = this.#slots[slot]!;
      if (entry === 0) return slot;
      const at = (entry - 1) * 3;
      if (this.#entries[at] === a && this.#entries[at + 1] === b) return slot;
    }
  }
}

const TAKEN = -1;
