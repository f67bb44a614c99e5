/** Every nth pick is the oldest change; otherwise it would wait as long as new ones keep coming. */
const OLDEST_EVERY = 5;

/** Keys that changed, mostly newest change first. Each key appears once, at its last change. */
export class NewestFirst {
  /** In order of change; the number tells which element of `newest` is valid. */
  readonly #changes = new Map<string, number>();
  #newest: { readonly key: string; readonly change: number }[] = [];
  #last = 0;
  #picks = 0;

  get size(): number {
    return this.#changes.size;
  }

  add(key: string): void {
    const change = ++this.#last;
    this.#changes.delete(key);
    this.#changes.set(key, change);
    this.#newest.push({ key, change });
    if (this.#newest.length > 2 * this.#changes.size + 1_000)
      this.#newest = this.#newest.filter((element) => this.#isValid(element));
  }

  delete(key: string): void {
    this.#changes.delete(key);
  }

  /** Removes the next key and returns it; undefined if there is none. */
  take(): string | undefined {
    const key = this.#next();
    if (key !== undefined) this.#changes.delete(key);
    return key;
  }

  #next(): string | undefined {
    const [oldest] = this.#changes.keys();
    if (++this.#picks % OLDEST_EVERY === 0) return oldest;
    for (let top = this.#newest.pop(); top !== undefined; top = this.#newest.pop())
      if (this.#isValid(top)) return top.key;
    return oldest;
  }

  #isValid({ key, change }: { readonly key: string; readonly change: number }): boolean {
    return this.#changes.get(key) === change;
  }
}
