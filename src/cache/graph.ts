import { type Causes, positionsOf } from './causes.ts';
import type { Cell } from './cell.ts';
import type { Change, Collection } from './collection.ts';
import { Derived, type Failure, type Reader, type Transform } from './derived.ts';
import { Index, type Order } from './index-of.ts';
import { Input, type Write } from './input.ts';
import { type MissedChanges, Observer } from './observer.ts';

/**
 * The commit graph: collections in creation order, which is a topological order because a collection can only refer to
 * existing ones. One pass over them brings every entry up to date with a set of writes.
 */
export class Graph {
  /** In creation order. */
  readonly collections: Collection<unknown>[] = [];
  /** By position: whether the collection has work to do. */
  private readonly awake: boolean[] = [];
  /**
   * Contained exceptions, each until the same code runs again without throwing: from transforms, index functions,
   * comparisons and observers. Also keys that two runs emitted. Each is a bug: must be empty.
   */
  readonly failures = new Map<string, Failure>();
  /** Number of published commits. */
  revision = 0;
  /** @internal Identifies the running transform. */
  stamp = 0;
  private readonly observers: Observer<Draft>[] = [];
  private readonly failureObservers: ((draft: Draft) => void)[] = [];
  /** Failures began or ended, and observers have not been notified yet. */
  private untold = false;
  private undoLog: (() => void)[] | undefined;
  private readonly abandoned: Cell[] = [];

  input<V>(name: string): Input<V> {
    return new Input<V>(this, name);
  }

  /** Annotate the last parameter of the transform, `emit: Emit<V>`, and TypeScript infers the types. */
  derive<S, V>(
    name: string,
    source: Collection<S>,
    transform: Transform<S, V>,
    equals?: (a: V, b: V) => boolean,
  ): Collection<V> {
    return new Derived(this, name, source, transform, equals);
  }

  /** Groups the entries of the sources by the keys that `groupsOf` returns; `order` may depend only on the entries. */
  index<V>(
    name: string,
    sources: Collection<V> | readonly Collection<V>[],
    groupsOf: (key: string, value: V) => readonly string[],
    order?: Order<V>,
  ): Index<V> {
    return new Index(this, name, 'length' in sources ? sources : [sources], groupsOf, order);
  }

  /**
   * Calls the observer with every published draft. What it writes goes into the next commit. If it throws, it is called
   * again with the commits that follow; what it missed comes separately from what is new. It must tolerate seeing the
   * same change twice.
   */
  observe(observer: (draft: Draft) => void, name = 'commits'): void {
    const sameName = this.observers.filter((other) => other.name.replace(/ #\d+$/, '') === name).length;
    // The name is the key of the observer's failure: a namesake that succeeds must not end it.
    const unique = sameName === 0 ? name : `${name} #${sameName + 1}`;
    this.observers.push(new Observer(unique, observer, (changes) => new Draft(this, [], changes)));
  }

  /** Calls back with what a commit has changed in one collection, as {@link observe} does. */
  follow<V>(collection: Collection<V>, changed: (changes: readonly Change<V>[]) => void): void {
    collection.track();
    this.observe((draft) => {
      const changes = [...draft.changes(collection)];
      if (changes.length > 0) changed(changes);
    }, collection.name);
  }

  /** Called with a published draft, after all observers, if {@link failures} has changed since the last call. */
  observeFailures(observer: (draft: Draft) => void): void {
    this.failureObservers.push(observer);
  }

  /** True if an observer has not been notified of everything; another commit would do so, even an empty one. */
  get wantsCommit(): boolean {
    return this.untold || this.observers.some((observer) => observer.behind);
  }

  /**
   * Runs work that throws only because of a bug, and contains the error: it is a failure until a later run succeeds.
   */
  contain(name: string, work: () => void): void {
    const place = { name: 'program' };
    try {
      work();
      this.succeed(place, name);
    } catch (error) {
      // A repeated failure is not reported again: reporting takes a commit, which may be what caused it.
      const known = this.failures.get(`${place.name} ${name}`);
      if (known === undefined || String(known.error) !== String(error)) this.fail(place, name, error, []);
    }
  }

  /** Reads current values, for callers that ask once and need no notification of changes. */
  readonly present: Reader = {
    get: (collection, key) => collection.get(key),
    group: (index, key) => index.get(key) ?? [],
  };

  /** @internal Tracked collections of which something has changed in the current commit. */
  readonly changed: Collection<unknown>[] = [];

  /** @internal Whether the open draft can be discarded. */
  recording = false;
  private open = false;

  /** Computes everything that follows from the writes. Publish or discard the draft before the next one begins. */
  draft(writes: readonly Write[]): Draft {
    const steps = this.draftInSteps(writes);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  /** Like {@link draft}, but pauses between small units of work, so that the caller can let other work run. */
  *draftInSteps(writes: readonly Write[], options: DraftOptions = {}): Generator<void, Draft> {
    if (this.open) throw new Error('a draft is open');
    this.open = true;
    this.undoLog = options.discardable === false ? undefined : [];
    this.recording = this.undoLog !== undefined;
    writes.forEach((write, i) => write.input.apply(write.key, write.value, [i]));
    for (let at = this.awake.indexOf(true); at >= 0; at = this.awake.indexOf(true, at + 1)) {
      this.awake[at] = false;
      yield* this.process(this.collections[at]!);
    }
    return new Draft(this, writes);
  }

  /**
   * Functions that throw are contained entry by entry. Any other exception is a bug in this folder; the commit still
   * completes.
   */
  private *process(collection: Collection<unknown>): Generator<void, void> {
    try {
      yield* collection.process();
    } catch (error) {
      this.fail(collection, 'as a whole', error, []);
    }
  }

  commit(writes: readonly Write[]): Draft {
    const steps = this.draftInSteps(writes, { discardable: false });
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    step.value.publish();
    return step.value;
  }

  /** @internal */
  register(collection: Collection<unknown>): number {
    this.awake.push(false);
    return this.collections.push(collection) - 1;
  }

  /** @internal The commit has reached this collection. Most of them sleep through most commits. */
  wake({ position }: Collection<unknown>): void {
    this.awake[position] = true;
  }

  /** @internal */
  undo(action: () => void): void {
    this.undoLog?.push(action);
  }

  /** @internal Forgets a cell that lost a reader, after the commit, if nothing is left in it. */
  sweep(cell: Cell): void {
    this.abandoned.push(cell);
  }

  /** @internal */
  nextStamp(): void {
    this.stamp++;
  }

  /** @internal */
  fail(place: { readonly name: string }, key: string, error: unknown, causes: Causes): void {
    this.setFailure(`${place.name} ${key}`, { collection: place.name, key, error, causes });
  }

  /** @internal */
  succeed(place: { readonly name: string }, key: string): void {
    if (this.failures.size > 0) this.setFailure(`${place.name} ${key}`, undefined);
  }

  /** @internal */
  endCommit(published: Draft | undefined): void {
    const log = this.undoLog;
    if (!this.open) throw new Error('no draft is open');
    if (published === undefined && log === undefined) throw new Error('the draft was made to be published');
    this.open = false;
    this.undoLog = undefined;
    this.recording = false;
    if (published === undefined) for (let i = log!.length - 1; i >= 0; i--) log![i]!();
    else {
      this.revision++;
      for (const observer of this.observers) this.tell(observer, published);
      if (this.untold) {
        this.untold = false;
        for (const observer of this.failureObservers) this.contain('failure observer', () => observer(published));
      }
    }
    for (const collection of this.changed.splice(0)) collection.endCommit();
    for (const cell of this.abandoned.splice(0)) cell.home.forget(cell.key);
  }

  private tell(observer: Observer<Draft>, published: Draft): void {
    const failed = observer.tell(published, this.changed);
    if (failed !== undefined) this.fail(OBSERVERS, observer.name, failed.error, []);
    else this.succeed(OBSERVERS, observer.name);
  }

  private setFailure(key: string, failure: Failure | undefined): void {
    const before = this.failures.get(key);
    if (before === failure) return;
    this.untold = true;
    if (failure === undefined) this.failures.delete(key);
    else this.failures.set(key, failure);
    if (this.recording)
      this.undo(() => {
        if (before === undefined) this.failures.delete(key);
        else this.failures.set(key, before);
      });
  }
}

const OBSERVERS = { name: 'observer' };

export interface DraftOptions {
  /**
   * False: the draft will be published, so the undo log is not kept. That log is most of the memory of a large commit.
   */
  readonly discardable?: boolean;
}

/** What follows from some writes, not yet in force. Its changes are readable until it is published or discarded. */
export class Draft {
  readonly writes: readonly Write[];
  private readonly graph: Graph;
  private readonly missed: MissedChanges | undefined;

  /** @param missed changes from earlier drafts, shown instead of those of this draft. */
  constructor(graph: Graph, writes: readonly Write[], missed?: MissedChanges) {
    this.graph = graph;
    this.writes = writes;
    this.missed = missed;
  }

  /** What changed in a tracked collection, each key once. */
  changes<V>(collection: Collection<V>): Iterable<Change<V>> {
    if (collection.changes === undefined) throw new Error(`the changes of ${collection.name} are not tracked`);
    if (this.missed === undefined) return collection.changes.values();
    // Stored by collection, so the values have its type.
    return (this.missed.get(collection) as readonly Change<V>[] | undefined) ?? [];
  }

  /** The writes that reached a change. */
  causesOf(causes: Causes): Write[] {
    return positionsOf(causes).flatMap((i) => this.writes[i] ?? []);
  }

  /** Makes this draft the current revision and notifies the observers. */
  publish(): void {
    this.graph.endCommit(this);
  }

  /** Leaves no trace. */
  discard(): void {
    this.graph.endCommit(undefined);
  }
}

export { Collection } from './collection.ts';
export type { Change } from './collection.ts';
export type { Reader, Emit, Transform, Failure } from './derived.ts';
export type { Causes } from './causes.ts';
export type { Index, Order } from './index-of.ts';
export type { Input, Write } from './input.ts';
