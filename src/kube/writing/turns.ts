import { NewestFirst } from './newest-first.ts';

/** Keys that changed. Namespaces take turns: one in which much changes does not hold up the others. */
export class Turns {
  /** Namespaces with keys, the next one first. */
  readonly #namespaces = new Map<string, NewestFirst>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(namespace: string, key: string): void {
    let keys = this.#namespaces.get(namespace);
    if (keys === undefined) this.#namespaces.set(namespace, (keys = new NewestFirst()));
    const before = keys.size;
    keys.add(key);
    this.#size += keys.size - before;
  }

  delete(namespace: string, key: string): void {
    const keys = this.#namespaces.get(namespace);
    if (keys === undefined) return;
    const before = keys.size;
    keys.delete(key);
    this.#size += keys.size - before;
    if (keys.size === 0) this.#namespaces.delete(namespace);
  }

  clear(): void {
    this.#namespaces.clear();
    this.#size = 0;
  }

  /** Removes the next key and returns it; undefined if there is none. */
  take(): string | undefined {
    for (const [namespace, keys] of this.#namespaces) {
      this.#namespaces.delete(namespace);
      if (keys.size > 1) this.#namespaces.set(namespace, keys);
      this.#size--;
      return keys.take();
    }
    return undefined;
  }
}
