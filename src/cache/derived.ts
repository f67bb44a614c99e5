import { type Causes, joinCauses, sealed } from './causes.ts';
import { type Cell, addDependent, removeDependent } from './cell.ts';
import { Collection } from './collection.ts';
import { deepEqual } from './equal.ts';
import type { Graph } from './graph.ts';
import type { Group, Index } from './index-of.ts';

/** What a transform may read besides its own entry. Every read is recorded, even of absent keys. */
export interface Reader {
  get<V>(collection: Collection<V>, key: string): V | undefined;
  /** The members of a group in the index's order; empty if there are none. */
  group<V>(index: Index<V>, key: string): Group<V> | readonly [];
}

export type Emit<V> = (key: string, value: V) => void;

/** Pure: its entry and its reads determine what it emits. Emits any number of entries, each key at most once. */
export type Transform<S, V> = (key: string, value: S, read: Reader, emit: Emit<V>) => void;

/** One entry of the source, transformed: what it read and what it emitted. */
export interface Run {
  readonly node: Derived<unknown, unknown>;
  readonly key: string;
  reads: readonly Cell[];
  /** Output keys; a single key is stored without an array, because most runs emit one. */
  outputs: string | readonly string[] | undefined;
}

export interface Failure {
  readonly collection: string;
  readonly key: string;
  readonly error: unknown;
  readonly causes: Causes;
}

const NO_READS: readonly Cell[] = [];

/**
 * A collection computed entry by entry from a source. In a commit, every marked entry of the source runs once; equal
 * outputs stop the change there. A transform that throws keeps its previous outputs.
 */
export class Derived<S, V> extends Collection<V> {
  private readonly source: Collection<S>;
  private readonly transform: Transform<S, V>;
  private readonly equals: (a: V, b: V) => boolean;
  private readonly runs = new Map<string, Run>();
  private marked = new Map<string, Causes>();
  private reads: Cell[] = [];
  private readonly reader: Reader = {
    get: <X>(collection: Collection<X>, key: string) => this.record(collection, key).value as X | undefined,
    group: <X>(index: Index<X>, key: string) => (this.record(index, key).value as Group<X> | undefined) ?? [],
  };

  constructor(
    graph: Graph,
    name: string,
    source: Collection<S>,
    transform: Transform<S, V>,
    equals: (a: V, b: V) => boolean = deepEqual,
  ) {
    super(graph, name);
    this.source = source;
    this.transform = transform;
    this.equals = equals;
    source.consumers.push({ sourceChanged: (key, _before, _after, causes) => this.mark(key, causes) });
  }

  /** @internal */
  mark(key: string, causes: Causes): void {
    const known = this.marked.get(key);
    this.marked.set(key, known === undefined ? causes : joinCauses(known, causes));
    this.graph.wake(this);
  }

  override *process(): Generator<void, void> {
    // A second round runs only for keys that their owner gave up and that a losing run had also emitted.
    while (this.marked.size > 0) {
      const marked = this.marked;
      this.marked = new Map();
      const emitted: { run: Run; outputs: Map<string, V>; causes: Causes }[] = [];
      for (const [key, marks] of marked) {
        const causes = sealed(marks);
        const outputs = this.execute(key, causes);
        if (outputs !== undefined) emitted.push({ run: this.runs.get(key)!, outputs, causes });
        // Some runs take milliseconds; compared with even the shortest, a yield costs nothing.
        yield;
      }
      for (const { run, outputs, causes } of emitted) this.retract(run, outputs, causes);
      for (const { run, outputs, causes } of emitted) {
        for (const [key, value] of outputs) this.emit(run, key, value, causes);
        this.keepOutputs(run, outputs);
      }
    }
  }

  /** Runs the transform; undefined if it threw. */
  private execute(key: string, causes: Causes): Map<string, V> | undefined {
    const value = this.source.get(key);
    const outputs = new Map<string, V>();
    this.reads = [];
    this.graph.nextStamp();
    let failed = false;
    if (value !== undefined) {
      try {
        this.transform(key, value, this.reader, (outKey, outValue) => {
          if (outputs.has(outKey)) throw new Error(`${this.name}: ${outKey} emitted twice for ${key}`);
          outputs.set(outKey, outValue);
        });
      } catch (error) {
        failed = true;
        this.graph.fail(this, key, error, causes);
      }
    }
    if (!failed) this.graph.succeed(this, key);
    this.keepReads(this.runOf(key), failed);
    return failed ? undefined : outputs;
  }

  private runOf(key: string): Run {
    let run = this.runs.get(key);
    if (run === undefined) {
      run = { node: this as unknown as Derived<unknown, unknown>, key, reads: NO_READS, outputs: undefined };
      this.runs.set(key, run);
      if (this.graph.recording) this.graph.undo(() => this.runs.delete(key));
    }
    return run;
  }

  /**
   * After a failure, the earlier reads stay too: whatever fixes it, or would have changed the kept output, runs it
   * again.
   */
  private keepReads(run: Run, failed: boolean): void {
    const before = run.reads;
    const { stamp } = this.graph;
    const after = failed ? [...this.reads, ...before.filter((cell) => cell.stamp !== stamp)] : this.reads;
    if (before.length === after.length && before.every((cell, i) => cell === after[i])) return;
    for (const cell of before) cell.formerStamp = stamp;
    for (const cell of after) cell.stamp = stamp;
    const added = before.length === 0 ? after : after.filter((cell) => cell.formerStamp !== stamp);
    const removed = before.filter((cell) => cell.stamp !== stamp);
    // Its copy has no room for more, unlike an array that has grown.
    run.reads = after.length === 0 ? NO_READS : after.slice();
    for (const cell of added) addDependent(cell, run);
    for (const cell of removed) {
      removeDependent(cell, run);
      this.graph.sweep(cell);
    }
    if (this.graph.recording)
      this.graph.undo(() => {
        run.reads = before;
        for (const cell of added) removeDependent(cell, run);
        for (const cell of removed) addDependent(cell, run);
      });
  }

  private retract(run: Run, outputs: ReadonlyMap<string, V>, causes: Causes): void {
    for (const key of keysOf(run.outputs)) {
      if (outputs.has(key)) continue;
      const cell = this.cells.get(key);
      if (cell === undefined) continue;
      if (cell.owner === run) this.letGo(cell, causes);
      else this.setLosers(cell, run, false);
    }
  }

  private letGo(cell: Cell, causes: Causes): void {
    this.setOwner(cell, undefined);
    for (const loser of cell.losers ?? []) this.mark(loser.key, causes);
    this.setValue(cell, undefined, causes);
  }

  /** If two runs emit a key, the one with the smaller source key owns it; the clash is a failure until it ends. */
  private emit(run: Run, key: string, value: V, causes: Causes): void {
    const cell = this.cell(key);
    if (cell.owner !== undefined && cell.owner !== run) {
      const first = cell.owner.key < run.key ? cell.owner : run;
      const second = first === run ? cell.owner : run;
      this.setLosers(cell, second, true);
      this.graph.fail(this, clashOf(key), new Error(`emitted for ${first.key} and ${second.key}`), causes);
      if (first !== run) return;
    }
    if (cell.owner !== run) {
      this.setLosers(cell, run, false);
      this.setOwner(cell, run);
    }
    if (cell.value === undefined || !this.equal(this.equals, key, cell.value as V, value, causes))
      this.setValue(cell, value, causes);
  }

  private setOwner(cell: Cell, owner: Run | undefined): void {
    const before = cell.owner;
    cell.owner = owner;
    if (this.graph.recording)
      this.graph.undo(() => {
        cell.owner = before;
      });
  }

  private setLosers(cell: Cell, run: Run, lost: boolean): void {
    const before = cell.losers;
    if ((before?.has(run) ?? false) === lost) return;
    const after = new Set(before);
    if (lost) after.add(run);
    else after.delete(run);
    cell.losers = after.size === 0 ? undefined : after;
    if (cell.losers === undefined) this.graph.succeed(this, clashOf(cell.key));
    if (this.graph.recording)
      this.graph.undo(() => {
        cell.losers = before;
      });
  }

  private keepOutputs(run: Run, outputs: ReadonlyMap<string, V>): void {
    const before = run.outputs;
    const gone = this.source.get(run.key) === undefined;
    if (!sameKeys(before, outputs)) {
      const keys = [...outputs.keys()];
      run.outputs = keys.length > 1 ? keys : keys[0];
    }
    if (gone) this.runs.delete(run.key);
    if (this.graph.recording)
      this.graph.undo(() => {
        run.outputs = before;
        if (gone) this.runs.set(run.key, run);
      });
  }

  private record<X>(collection: Collection<X>, key: string): Cell {
    if (collection.position >= this.position)
      throw new Error(`${this.name} cannot read ${collection.name}: it was created later`);
    const cell = collection.cell(key);
    if (cell.stamp !== this.graph.stamp) {
      cell.stamp = this.graph.stamp;
      this.reads.push(cell);
    }
    return cell;
  }
}

/** Names the failure of an output key, to tell it apart from the failure of a source entry with the same key. */
function clashOf(key: string): string {
  return `${key} (output)`;
}

function keysOf(outputs: Run['outputs']): readonly string[] {
  if (outputs === undefined) return [];
  return typeof outputs === 'string' ? [outputs] : outputs;
}

function sameKeys(before: Run['outputs'], outputs: ReadonlyMap<string, unknown>): boolean {
  const keys = keysOf(before);
  return keys.length === outputs.size && keys.every((key) => outputs.has(key));
}
