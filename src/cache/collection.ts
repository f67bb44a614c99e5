import { type Causes, joinCauses } from './causes.ts';
import { type Cell, isIdle, newCell } from './cell.ts';
import type { Graph } from './graph.ts';

/** Notified when an entry of a collection, or a group of an index, changes within a commit. */
export interface Consumer {
  sourceChanged(key: string, before: unknown, after: unknown, causes: Causes): void;
}

/** How an entry differs from the last published revision. `undefined` means absent. */
export interface Change<V> {
  readonly key: string;
  readonly before: V | undefined;
  readonly after: V | undefined;
  readonly causes: Causes;
}

/**
 * Anything with keys and values that others may read: inputs, derived collections and indexes. Between `draft` and
 * `publish` it shows the draft.
 */
export abstract class Collection<V> {
  readonly graph: Graph;
  readonly name: string;
  /** Position in creation order. A collection reads only collections with a lower position. */
  readonly position: number;
  /** @internal */ readonly cells = new Map<string, Cell>();
  /** @internal */ readonly consumers: Consumer[] = [];
  /** @internal What changed in the current commit; undefined: not tracked. */
  changes: Map<string, Change<V>> | undefined;

  constructor(graph: Graph, name: string) {
    this.graph = graph;
    this.name = name;
    this.position = graph.register(this);
  }

  /** The work of this collection within a commit that has woken it; yields between units of work. */
  abstract process(): Generator<void, void>;

  get(key: string): V | undefined {
    return this.cells.get(key)?.value as V | undefined;
  }

  /** Makes drafts show the changes of this collection; see {@link Draft.changes}. */
  track(): this {
    this.changes ??= new Map();
    return this;
  }

  /** Present entries, in no particular order. */
  *entries(): Generator<[string, V]> {
    for (const cell of this.cells.values()) if (cell.value !== undefined) yield [cell.key, cell.value as V];
  }

  get size(): number {
    let count = 0;
    for (const cell of this.cells.values()) if (cell.value !== undefined) count++;
    return count;
  }

  /** @internal The cell of a key; created when a transform reads an absent key. */
  cell(key: string): Cell {
    let cell = this.cells.get(key);
    if (cell === undefined) {
      cell = newCell(this, key);
      this.cells.set(key, cell);
      if (this.graph.recording) this.graph.undo(() => this.forget(key));
    }
    return cell;
  }

  /** @internal */
  forget(key: string): void {
    const cell = this.cells.get(key);
    if (cell !== undefined && isIdle(cell)) this.cells.delete(key);
  }

  /** @internal Gives a cell its new value and marks its readers. */
  protected setValue(cell: Cell, after: V | undefined, causes: Causes): void {
    const before = cell.value as V | undefined;
    cell.value = after;
    if (this.graph.recording)
      this.graph.undo(() => {
        cell.value = before;
      });
    this.announce(cell, before, after, causes);
  }

  /**
   * @internal Values that cannot be compared count as different: what follows is computed once too often, but is right.
   */
  protected equal<T>(equals: (a: T, b: T) => boolean, key: string, a: T, b: T, causes: Causes): boolean {
    try {
      const result = equals(a, b);
      this.compared(key);
      return result;
    } catch (error) {
      this.graph.fail(this, comparisonOf(key), error, causes);
      return false;
    }
  }

  private compared(key: string): void {
    if (this.graph.failures.size > 0) this.graph.succeed(this, comparisonOf(key));
  }

  /** @internal */
  protected announce(cell: Cell, before: V | undefined, after: V | undefined, causes: Causes): void {
    if (after === undefined) {
      this.compared(cell.key);
      this.graph.sweep(cell);
    }
    if (this.changes !== undefined) {
      if (this.changes.size === 0) this.graph.changed.push(this);
      const earlier = this.changes.get(cell.key);
      this.changes.set(cell.key, {
        key: cell.key,
        before: earlier === undefined ? before : earlier.before,
        after,
        causes: earlier === undefined ? causes : joinCauses(earlier.causes, causes),
      });
    }
    if (cell.dependents !== undefined) for (const run of cell.dependents) run.node.mark(run.key, causes);
    for (const consumer of this.consumers) consumer.sourceChanged(cell.key, before, after, causes);
  }

  /** @internal Called if something has changed, and is tracked. */
  endCommit(): void {
    this.changes = new Map();
  }
}

function comparisonOf(key: string): string {
  return `${key} (comparison)`;
}
