import { Buffer } from 'node:buffer';

/**
 * Hashes byte strings into two lanes of 32 bits, left in {@link a} and {@link b} by the last call. Hashes of members
 * are *added* to make the hash of a set, so that it does not depend on order and can follow additions and removals.
 *
 * Fast, but no proof of anything: whatever the seed, someone who chooses names can make two of them collide. It may
 * decide only where a collision harms nobody else (`NameSets` compares the names it finds; versions that a client
 * reports are compared with what it should have, and a lie harms the liar).
 */
export class ContentHasher {
  a = 0;
  b = 0;
  readonly #seedA: number;
  readonly #seedB: number;
  #scratch = Buffer.allocUnsafeSlow(1024);
  #view = new DataView(this.#scratch.buffer);

  constructor(seed: readonly [number, number]) {
    this.#seedA = seed[0] | 0;
    this.#seedB = seed[1] | 0;
  }

  text(text: string): void {
    this.#begin();
    this.#absorbText(text);
    this.#finish();
  }

  /** The same for the UTF-8 of a text. */
  bytes(view: DataView, from: number, to: number): void {
    this.#begin();
    this.#absorb(view, from, to);
    this.#finish();
  }

  /** The pair of a name and a version, as `initial_resource_versions` lists them. */
  pair(view: DataView, nameFrom: number, nameTo: number, versionFrom: number, versionTo: number): void {
    this.#begin();
    this.#absorb(view, nameFrom, nameTo);
    this.#absorb(view, versionFrom, versionTo);
    this.#finish();
  }

  textPair(name: string, version: string): void {
    this.#begin();
    this.#absorbText(name);
    this.#absorbText(version);
    this.#finish();
  }

  #begin(): void {
    this.a = this.#seedA;
    this.b = this.#seedB;
  }

  #absorb(view: DataView, from: number, to: number): void {
    let a = this.a ^ (to - from);
    let b = this.b;
    let i = from;
    // Both lanes take both words, each in its own way, so that changes of neighbouring words do not cancel out.
    for (; i + 8 <= to; i += 8) {
      const word = view.getInt32(i, true);
      const next = view.getInt32(i + 4, true);
      a = Math.imul(a ^ word, 0x9e3779b1);
      b = Math.imul(b ^ next, 0x85ebca6b);
      a = ((a << 15) | (a >>> 17)) ^ next;
      b = ((b << 13) | (b >>> 19)) ^ word;
    }
    let rest = 1;
    for (; i < to; i++) {
      rest = (rest << 8) | view.getUint8(i);
      if (i !== to - 4) continue;
      a = Math.imul(a ^ rest, 0xc2b2ae35);
      b = Math.imul(b + rest, 0x27d4eb2f);
      rest = 1;
    }
    a = Math.imul(((a << 15) | (a >>> 17)) ^ rest, 0x9e3779b1);
    b = Math.imul(((b << 13) | (b >>> 19)) + rest, 0x85ebca6b);
    this.a = a ^ (a >>> 15);
    this.b = b ^ (b >>> 13);
  }

  #absorbText(text: string): void {
    if (text.length * 3 > this.#scratch.length) {
      this.#scratch = Buffer.allocUnsafeSlow(text.length * 3);
      this.#view = new DataView(this.#scratch.buffer);
    }
    this.#absorb(this.#view, 0, this.#scratch.write(text, 0));
  }

  #finish(): void {
    this.a = avalanche(this.a ^ this.b);
    this.b = avalanche(this.b ^ this.a);
  }
}

function avalanche(h: number): number {
  h ^= h >>> 16;
  h = Math.imul(h, 0x85ebca6b);
  h ^= h >>> 13;
  h = Math.imul(h, 0xc2b2ae35);
  return h ^ (h >>> 16);
}

/** The sum of the hashes of the members of a set, and how many there are. */
export class SetHash {
  a = 0;
  b = 0;
  count = 0;

  add(hash: { readonly a: number; readonly b: number }): void {
    this.a = (this.a + hash.a) | 0;
    this.b = (this.b + hash.b) | 0;
    this.count++;
  }

  remove(hash: { readonly a: number; readonly b: number }): void {
    this.a = (this.a - hash.a) | 0;
    this.b = (this.b - hash.b) | 0;
    this.count--;
  }

  addAll(other: { readonly a: number; readonly b: number; readonly count: number }): void {
    this.a = (this.a + other.a) | 0;
    this.b = (this.b + other.b) | 0;
    this.count += other.count;
  }

  equals(other: { readonly a: number; readonly b: number; readonly count: number }): boolean {
    return this.a === other.a && this.b === other.b && this.count === other.count;
  }
}

/** 53 bits of a hash as a map key; the rest must be compared when something is found under it. */
export function hashKey(hash: { readonly a: number; readonly b: number }): number {
  return (hash.a >>> 0) * 0x200000 + (hash.b & 0x1fffff);
}

/** The same bytes. */
export function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}
