/** Files that the user saved and that no proxy has been seen to know yet: often several at once. */
export class SavedFiles {
  readonly #names = new Set<string>();
  #since = 0;

  /** Returns whether the file counts: editors put their own files beside it. */
  add(name: string | null, now: number): boolean {
    if (name === null || !/^[^.].*\.yaml$/.test(name)) return false;
    if (this.#names.size === 0) this.#since = now;
    this.#names.add(name);
    return true;
  }

  /** Milliseconds since the first of them was saved; undefined if there are none. */
  waited(now: number): number | undefined {
    return this.#names.size === 0 ? undefined : now - this.#since;
  }

  /** `a.yaml was saved`, `a.yaml and b.yaml were saved`; clears the list. */
  take(): string {
    const names = [...this.#names].sort();
    this.#names.clear();
    const shown = names.length > NAMED ? [...names.slice(0, NAMED - 1), `${names.length - NAMED + 1} more`] : names;
    const last = shown.pop();
    return shown.length === 0 ? `${last} was saved` : `${shown.join(', ')} and ${last} were saved`;
  }
}

const NAMED = 4;
