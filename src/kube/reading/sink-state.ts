import type { Json } from '../../api/json.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { ApiError } from '../client/api-error.ts';
import { type Ration, sizeOf } from '../client/budget.ts';
import { isSame } from '../client/comparison.ts';
import { deliver } from './deliver.ts';

/** Receives an informer's objects. All calls are synchronous. */
export interface InformerSink {
  /** All existing objects: called after each complete list, never with part of one. */
  replace(objects: readonly KubernetesObject[]): void;
  upsert(object: KubernetesObject): void;
  delete(object: KubernetesObject): void;
  /**
   * The server's copy of an object changed or was deleted, even if only in fields that `same` ignores:
   * {@link SinkState.latest} has it. Omit if {@link SinkState.latest} is not used.
   */
  touched?(object: KubernetesObject): void;
  /** The watch has a bookmark: the sink was told everything that the server had sent so far. */
  caughtUp?(): void;
  /** A request failed, and is tried again. */
  failed?(error: ApiError): void;
}

/** Which parts of an object are kept, and which of these matter. */
export interface Shape {
  /** Must not throw for an object that the API server accepted. `version`: that it was read in; absent: the first. */
  trim(raw: Json, version?: string): KubernetesObject;
  /** Whether the two are equal in everything that the sink is told about. */
  same(a: KubernetesObject, b: KubernetesObject): boolean;
  /** What an object counts for where there is a budget, in bytes; absent: {@link sizeOf}. */
  size?(object: KubernetesObject): number;
}

export interface SinkStateOptions {
  readonly sink: InformerSink;
  readonly shape: Shape;
  readonly ration: Ration | undefined;
}

/** What the sink of an informer was told, and newer copies that it need not be told of. By `namespace/name`. */
export class SinkState {
  private readonly options: SinkStateOptions;
  private told = new Map<string, KubernetesObject>();
  /** Differ from what the sink was told only in fields that `same` ignores. */
  private newer = new Map<string, KubernetesObject>();
  private bytes = 0;

  constructor(options: SinkStateOptions) {
    this.options = options;
  }

  get all(): ReadonlyMap<string, KubernetesObject> {
    return this.told;
  }

  latest(key: string): KubernetesObject | undefined {
    return this.newer.get(key) ?? this.told.get(key);
  }

  /** While a list is read, the larger of the two counts. Throws if it does not fit. */
  reading(bytes: number): void {
    this.options.ration?.raise(bytes);
  }

  /** A list was not read to its end. */
  dropped(): void {
    this.options.ration?.set(this.bytes);
  }

  /** Nothing of it counts any more. */
  release(): void {
    this.options.ration?.set(0);
  }

  /** These are all that there are. Throws, and tells nobody, if they do not fit. */
  swap(found: Map<string, KubernetesObject>): void {
    const { sink, ration } = this.options;
    const newer = new Map<string, KubernetesObject>();
    const touched = [...this.told].flatMap(([key, object]) => (found.has(key) ? [] : [object]));
    for (const [key, object] of found) {
      const before = this.told.get(key);
      if (before === undefined) continue;
      touched.push(object);
      if (!this.isUnchanged(before, object)) continue;
      found.set(key, before);
      if (sink.touched !== undefined) newer.set(key, object);
    }
    if (ration !== undefined) {
      let bytes = 0;
      for (const object of found.values()) bytes += this.size(object);
      ration.set(bytes);
      this.bytes = bytes;
    }
    deliver(() => sink.replace([...found.values()]));
    this.told = found;
    this.newer = newer;
    deliver(() => touched.forEach((object) => sink.touched?.(object)));
  }

  upsert(key: string, object: KubernetesObject): void {
    const { sink } = this.options;
    const before = this.told.get(key);
    if (before !== undefined && this.isUnchanged(before, object)) {
      if (sink.touched === undefined) return;
      this.newer.set(key, object);
      deliver(() => sink.touched?.(object));
      return;
    }
    this.count(before, object);
    deliver(() => {
      if (before !== undefined && before.metadata.uid !== object.metadata.uid) sink.delete(before);
      sink.upsert(object);
    });
    this.told.set(key, object);
    this.newer.delete(key);
    deliver(() => sink.touched?.(object));
  }

  delete(key: string): void {
    const { sink } = this.options;
    const before = this.told.get(key);
    if (before === undefined) return;
    deliver(() => sink.delete(before));
    this.told.delete(key);
    this.newer.delete(key);
    this.count(before, undefined);
    deliver(() => sink.touched?.(before));
  }

  size(object: KubernetesObject): number {
    return this.options.shape.size?.(object) ?? sizeOf(object);
  }

  private isUnchanged(before: KubernetesObject, object: KubernetesObject): boolean {
    return before.metadata.uid === object.metadata.uid && isSame(() => this.options.shape.same(before, object));
  }

  private count(before: KubernetesObject | undefined, after: KubernetesObject | undefined): void {
    const { ration } = this.options;
    if (ration === undefined) return;
    const bytes = this.bytes - (before ? this.size(before) : 0) + (after ? this.size(after) : 0);
    ration.set(bytes);
    this.bytes = bytes;
  }
}
