import { type FSWatcher, watch } from 'node:fs';

/** One watch per directory. Reports that something changed, never what: the caller scans for itself. */
export class Watchers {
  readonly #onChange: () => void;
  readonly #open = new Map<string, { readonly identity: string; readonly watcher: FSWatcher }>();

  constructor(onChange: () => void) {
    this.#onChange = onChange;
  }

  /**
   * Watches exactly these directories (path → identity). `watched`: whether all of them are watched; `added`: whether
   * any is new.
   */
  follow(directories: ReadonlyMap<string, string>): { readonly watched: boolean; readonly added: boolean } {
    let [watched, added] = [true, false];
    for (const [path, { identity }] of this.#open) if (directories.get(path) !== identity) this.#close(path);
    for (const [path, identity] of directories) {
      if (this.#open.has(path)) continue;
      try {
        const watcher = watch(path, { recursive: false }, this.#onChange);
        watcher.on('error', () => this.#close(path));
        this.#open.set(path, { identity, watcher });
        added = true;
      } catch {
        // No more watches available, or the directory is gone.
        watched = false;
      }
    }
    return { watched, added };
  }

  close(): void {
    for (const path of [...this.#open.keys()]) this.#close(path);
  }

  #close(path: string): void {
    this.#open.get(path)?.watcher.close();
    this.#open.delete(path);
  }
}
