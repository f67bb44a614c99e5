import type { ResourceEvent, ResourceMeta } from '@dot-i/k8s-operator';
import type { KubernetesObject } from '../api/object.ts';
import { Backoff } from './backoff.ts';
import { sleep, type Clock } from './clock.ts';
import type { InformerSink } from './informer.ts';
import type { Log } from './log.ts';

export interface EventQueueOptions {
  /** How events name what happened: the values of the framework's enumeration. */
  readonly types: { readonly Added: string; readonly Modified: string; readonly Deleted: string };
  readonly metaOf: (object: KubernetesObject) => ResourceMeta;
  readonly onEvent: (event: ResourceEvent) => Promise<void>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/**
 * Turns the state of a collection into events, one at a time. It holds keys, not events: what happens to an object while
 * its turn has not come is one event, seen from what the handler last handled. A handler that rejects gets its object
 * again after a delay; others do not wait for it.
 */
export class EventQueue implements InformerSink {
  private readonly options: EventQueueOptions;
  private readonly current = new Map<string, KubernetesObject>();
  private readonly handled = new Map<string, KubernetesObject>();
  private readonly due = new Set<string>();
  private readonly failing = new Map<string, Backoff>();
  /** Keys that a timer is to mark. */
  private readonly retried = new Set<string>();
  private working: Promise<void> | undefined;

  constructor(options: EventQueueOptions) {
    this.options = options;
  }

  replace(objects: readonly KubernetesObject[]): void {
    const gone = new Set(this.current.keys());
    for (const object of objects) {
      gone.delete(keyOf(object));
      this.upsert(object);
    }
    for (const key of gone) {
      this.current.delete(key);
      this.mark(key);
    }
  }

  upsert(object: KubernetesObject): void {
    const key = keyOf(object);
    this.current.set(key, object);
    this.mark(key);
  }

  delete(object: KubernetesObject): void {
    const key = keyOf(object);
    this.current.delete(key);
    this.mark(key);
  }

  /** Fulfilled when no handler runs. */
  async idle(): Promise<void> {
    await this.working;
  }

  private mark(key: string): void {
    this.due.add(key);
    this.working ??= Promise.resolve().then(() => this.work());
  }

  private async work(): Promise<void> {
    const { clock, log, random, signal } = this.options;
    for (const key of this.due) {
      if (signal.aborted) return;
      this.due.delete(key);
      try {
        await this.handle(key);
        this.failing.delete(key);
      } catch (error) {
        const backoff = this.failing.get(key) ?? new Backoff({ base: 500, cap: 60_000, random });
        this.failing.set(key, backoff);
        log.warn('Resource handler failed, retrying', { object: key, err: error });
        if (this.retried.has(key)) continue;
        this.retried.add(key);
        void sleep(clock, backoff.next(), { signal }).then(() => {
          this.retried.delete(key);
          this.mark(key);
        });
      }
    }
    // In the same turn as the last look: what is marked from now on needs another one.
    this.working = undefined;
  }

  private async handle(key: string): Promise<void> {
    const { Added, Modified, Deleted } = this.options.types;
    const before = this.handled.get(key);
    const now = this.current.get(key);
    const again = before !== undefined && now !== undefined && before.metadata.uid === now.metadata.uid;
    if (again && before.metadata.resourceVersion === now.metadata.resourceVersion) return;
    if (before !== undefined && !again) {
      await this.emit(Deleted, before);
      this.handled.delete(key);
    }
    if (now === undefined) return;
    await this.emit(again ? Modified : Added, now);
    this.handled.set(key, now);
  }

  private async emit(type: string, object: KubernetesObject): Promise<void> {
    const { metaOf, onEvent } = this.options;
    // A copy: the framework's finalizer flow writes into what it is given.
    const copy = structuredClone(object) as unknown as ResourceEvent['object'];
    await onEvent({ meta: metaOf(object), type: type as ResourceEvent['type'], object: copy });
  }
}

function keyOf(object: KubernetesObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
}
