import type { Part } from '../store/resource.ts';
import type { Served } from '../store/served.ts';

/** Resources that some client has acknowledged, and the parts that they consist of: a new table of these is not new. */
export class Proven {
  readonly #items = new WeakSet<Served>();
  readonly #parts = new WeakSet<Part>();

  has(item: Served): boolean {
    const { body } = item.resource;
    return this.#items.has(item) || ('children' in body && this.#isMadeOfProven(body));
  }

  /** Returns whether that is new. */
  add(item: Served): boolean {
    if (this.#items.has(item)) return false;
    this.#items.add(item);
    const { body } = item.resource;
    if ('children' in body) this.#addParts(body);
    return true;
  }

  #isMadeOfProven(part: Part): boolean {
    if (this.#parts.has(part)) return true;
    if (!('children' in part) || !part.children.every((child) => this.#isMadeOfProven(child))) return false;
    this.#parts.add(part);
    return true;
  }

  #addParts(part: Part): void {
    if (this.#parts.has(part)) return;
    this.#parts.add(part);
    if ('children' in part) for (const child of part.children) this.#addParts(child);
  }
}
