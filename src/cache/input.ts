import { Collection } from './collection.ts';
import type { Causes } from './causes.ts';
import { deepEqual } from './equal.ts';

/** One write of a commit; an undefined `value` deletes the key. */
export interface Write {
  readonly input: Input<unknown>;
  readonly key: string;
  readonly value: unknown;
}

/**
 * A collection written from outside. Values are plain JSON, so that a recorded list of commits replays to the same
 * bytes.
 */
export class Input<V> extends Collection<V> {
  write(key: string, value: V | undefined): Write {
    return { input: this as unknown as Input<unknown>, key, value };
  }

  /** @internal */
  apply(key: string, value: V | undefined, causes: Causes): void {
    const cell = this.cell(key);
    if (!this.equal(deepEqual, key, cell.value, value, causes)) this.setValue(cell, value, causes);
    else if (value === undefined) this.graph.sweep(cell);
  }

  /** Writes are applied before the pass. */
  override *process(): Generator<void, void> {}
}
