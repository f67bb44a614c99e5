import { Buffer } from 'node:buffer';
import { type ContentHasher, viewOf } from './content-hash.ts';

/**
 * How far a name may be from the slot of its hash. Names come nowhere near this limit unless somebody has chosen them to
 * collide, which would have each compared with all others.
 */
const MOST_STEPS = 64;

/** Names as bytes, found by their hash: those of a request are compared with them without becoming strings. */
export class NameIndex {
  /** All names, one after the other. */
  readonly #bytes: DataView;
  /** Where each begins, and where the last one ends. */
  readonly #starts: Uint32Array;
  /** Numbers of names plus one, at the first free place from the one that their hash names; a power of two of places. */
  readonly #places: Uint32Array;

  /** Undefined: too many of the hashes collide. */
  static of(names: ReadonlySet<string>, hasher: ContentHasher): NameIndex | undefined {
    const index = new NameIndex(names);
    return index.#fill(names, hasher) ? index : undefined;
  }

  private constructor(names: ReadonlySet<string>) {
    this.#bytes = viewOf(Buffer.from([...names].join('')));
    this.#starts = new Uint32Array(names.size + 1);
    this.#places = new Uint32Array(2 ** Math.ceil(Math.log2(2 * names.size + 1)));
  }

  #fill(names: Iterable<string>, hasher: ContentHasher): boolean {
    let [number, at] = [0, 0];
    for (const name of names) {
      hasher.text(name);
      const place = this.#freePlace(hasher.a);
      if (place === undefined) return false;
      this.#places[place] = ++number;
      this.#starts[number] = at += Buffer.byteLength(name);
    }
    return true;
  }

  /** Whether one of the names has these bytes. `hash`: of the bytes, by the hasher of the index. */
  has({ a }: { readonly a: number }, bytes: DataView, from: number, to: number): boolean {
    const places = this.#places;
    const last = places.length - 1;
    for (let steps = 0, place = a & last; steps < MOST_STEPS; steps++, place = (place + 1) & last) {
      if (places[place] === 0) return false;
      if (this.#is(places[place]! - 1, bytes, from, to)) return true;
    }
    return false;
  }

  #is(number: number, bytes: DataView, from: number, to: number): boolean {
    let at = this.#starts[number]!;
    if (this.#starts[number + 1]! - at !== to - from) return false;
    const own = this.#bytes;
    let i = from;
    for (; i + 4 <= to; i += 4, at += 4) if (bytes.getInt32(i) !== own.getInt32(at)) return false;
    for (; i < to; i++, at++) if (bytes.getUint8(i) !== own.getUint8(at)) return false;
    return true;
  }

  #freePlace(hash: number): number | undefined {
    const last = this.#places.length - 1;
    for (let steps = 0, place = hash & last; steps < MOST_STEPS; steps++, place = (place + 1) & last)
      if (this.#places[place] === 0) return place;
    return undefined;
  }
}
