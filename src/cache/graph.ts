import type { Causes } from './causes.ts';
import type { Cell } from './cell.ts';
import type { Change, Collection } from './collection.ts';
import { Derived, type Failure, type Reader, type Transform } from './derived.ts';
import { Index, type Order } from './index-of.ts';
import { Input, type Write } from './input.ts';
import { type MissedChanges, Observer } from './observer.ts';

/**
 * The commit graph: collections in creation order, which is topological order because a collection can only name those
 * that exist already. One pass over them brings every entry up to date with a set of writes.
 */
export class Graph {
  /** In creation order. */
  readonly collections: Collection<unknown>[] = [];
  /**
   * What threw and is contained, until it runs again without: transforms, the functions of indexes, comparisons,
   * observers; and keys that two runs emitted. A bug each: must be empty.
   */
  readonly failures = new Map<string, Failure>();
  /** Number of published commits. */
  revision = 0;
  /** @internal Identifies the transform that is running. */
  stamp = 0;
  private readonly observers: Observer<Draft>[] = [];
  private readonly failureObservers: ((draft: Draft) => void)[] = [];
  /** Failures began or ended, and observers do not know yet. */
  private untold = false;
  private undoLog: (() => void)[] | undefined;
  private readonly abandoned: Cell[] = [];

  input<V>(name: string): Input<V> {
    return new Input<V>(this, name);
  }

  /** Annotate the last parameter of the transform, `emit: Emit<V>`, and the types follow. */
  derive<S, V>(
    name: string,
    source: Collection<S>,
    transform: Transform<S, V>,
    equals?: (a: V, b: V) => boolean,
  ): Collection<V> {
    return new Derived(this, name, source, transform, equals);
  }

  /** Groups the entries of the sources by the keys that `groupsOf` gives; `order` may look at nothing but the entries. */
  index<V>(
    name: string,
    sources: Collection<V> | readonly Collection<V>[],
    groupsOf: (key: string, value: V) => readonly string[],
    order?: Order<V>,
  ): Index<V> {
    return new Index(this, name, 'length' in sources ? sources : [sources], groupsOf, order);
  }

  /**
   * Called with every published draft. What an observer writes goes into the next commit. One that throws is told again
   * with the commits that follow, what it missed apart from what is new: it must bear to be told the same twice.
   */
  observe(observer: (draft: Draft) => void, name = `${this.observers.length + 1}`): void {
    this.observers.push(new Observer(name, observer, (changes) => new Draft(this, [], changes)));
  }

  /** Called after all observers with a published draft when {@link failures} is another one than the last time. */
  observeFailures(observer: (draft: Draft) => void): void {
    this.failureObservers.push(observer);
  }

  /** Somebody has not been told everything, and would be with another commit, be it an empty one. */
  get wantsCommit(): boolean {
    return this.untold || this.observers.some((observer) => observer.behind);
  }

  /** Runs what throws only by a bug, and is not to take others with it: that counts as a failure until it runs again without. */
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

  /** Reads what is there now, for whoever asks once and is not told of changes. */
  readonly present: Reader = {
    get: (collection, key) => collection.get(key),
    group: (index, key) => index.get(key) ?? [],
  };

  /** @internal Whether the open draft can be discarded. */
  recording = false;
  private open = false;

  /** Computes all that follows from the writes. The draft must be published or discarded before the next one begins. */
  settle(writes: readonly Write[]): Draft {
    const steps = this.settleInSteps(writes);
    for (;;) {
      const step = steps.next();
      if (step.done === true) return step.value;
    }
  }

  /** As {@link settle}, but pauses between small units of work, so that the caller can let others run. */
  *settleInSteps(writes: readonly Write[], options: SettleOptions = {}): Generator<void, Draft> {
    if (this.open) throw new Error('a draft is open');
    this.open = true;
    this.undoLog = options.discardable === false ? undefined : [];
    this.recording = this.undoLog !== undefined;
    writes.forEach((write, i) => write.input.apply(write.key, write.value, [i]));
    for (const collection of this.collections) if (collection.hasWork) yield* this.process(collection);
    return new Draft(this, writes);
  }

  /** Functions that throw are contained entry by entry. What is left is a bug of this folder: the commit is finished all the same. */
  private *process(collection: Collection<unknown>): Generator<void, void> {
    try {
      yield* collection.process();
    } catch (error) {
      this.fail(collection, 'as a whole', error, []);
    }
  }

  commit(writes: readonly Write[]): Draft {
    const steps = this.settleInSteps(writes, { discardable: false });
    let step = steps.next();
    while (step.done !== true) step = steps.next();
    step.value.publish();
    return step.value;
  }

  /** @internal */
  register(collection: Collection<unknown>): number {
    this.collections.push(collection);
    return this.collections.length - 1;
  }

  /** @internal */
  undo(action: () => void): void {
    this.undoLog?.push(action);
  }

  /** @internal A cell that lost a reader is forgotten after the commit if nothing is left of it. */
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
    if (published === undefined && log === undefined) throw new Error('the draft was settled to be published');
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
    for (const collection of this.collections) collection.endCommit();
    for (const cell of this.abandoned.splice(0)) cell.home.forget(cell.key);
  }

  private tell(observer: Observer<Draft>, published: Draft): void {
    const failed = observer.tell(published, this.collections);
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

export interface SettleOptions {
  /** False: the draft will be published. What is needed to undo it is not kept, which is most of the memory of a large commit. */
  readonly discardable?: boolean;
}

/** The outcome of `settle`, not yet in force. Its changes can be read until it is published or discarded. */
export class Draft {
  readonly writes: readonly Write[];
  private readonly graph: Graph;
  private readonly missed: MissedChanges | undefined;

  /** @param missed changes of earlier drafts, which are shown instead. */
  constructor(graph: Graph, writes: readonly Write[], missed?: MissedChanges) {
    this.graph = graph;
    this.writes = writes;
    this.missed = missed;
  }

  /** What changed in a collection that is tracked, each key once. */
  changes<V>(collection: Collection<V>): Iterable<Change<V>> {
    if (collection.changes === undefined) throw new Error(`the changes of ${collection.name} are not tracked`);
    if (this.missed === undefined) return collection.changes.values();
    // Kept by collection, whose values they are.
    return (this.missed.get(collection) as readonly Change<V>[] | undefined) ?? [];
  }

  /** The writes that reached a change; more than a few are cut, see {@link Causes}. */
  causesOf(causes: Causes): Write[] {
    return causes.flatMap((i) => this.writes[i] ?? []);
  }

  /** Makes it the new revision and tells the observers. */
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
