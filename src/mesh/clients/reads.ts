import type { Collection, Index, Reader } from '../../cache/graph.ts';
import type { Group } from '../../cache/index-of.ts';

/**
 * What a pure function reads, in order: where the same is there to be read, it would read the same again, and have the
 * same result.
 */
export class Reads implements Reader {
  readonly #from: Reader;
  readonly #again: ((read: Reader) => boolean)[] = [];

  constructor(from: Reader) {
    this.#from = from;
  }

  get<V>(collection: Collection<V>, key: string): V | undefined {
    const value = this.#from.get(collection, key);
    this.#again.push((read) => read.get(collection, key) === value);
    return value;
  }

  group<V>(index: Index<V>, key: string): Group<V> | readonly [] {
    const group = this.#from.group(index, key);
    // A commit that goes on may yet change the group itself.
    const members = group.slice();
    this.#again.push((read) => isEqual(read.group(index, key), members));
    return group;
  }

  /** Reads it again, up to the first difference; returns whether there is none. */
  again(read: Reader): boolean {
    return this.#again.every((isSame) => isSame(read));
  }
}

function isEqual(a: readonly unknown[], b: readonly unknown[]): boolean {
  return a.length === b.length && a.every((member, i) => member === b[i]);
}
