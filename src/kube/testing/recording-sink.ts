import type { SourceKindName } from '../../api/kinds.ts';
import type { KubernetesObject } from '../../api/object.ts';
import type { ObjectSink } from '../../api/source.ts';

/** Keeps what a source delivered, and lets a test wait for a state. */
export class RecordingSink implements ObjectSink {
  readonly calls: string[] = [];
  private readonly kinds = new Map<SourceKindName, Map<string, KubernetesObject>>();
  private waiting: { readonly holds: () => boolean; readonly resolve: () => void }[] = [];

  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    this.calls.push(`replace ${kind} ${objects.length}`);
    this.kinds.set(kind, new Map(objects.map((object) => [keyOf(object), object])));
    this.changed();
  }

  upsert(kind: SourceKindName, object: KubernetesObject): void {
    this.calls.push(`upsert ${kind} ${keyOf(object)}`);
    this.of(kind).set(keyOf(object), object);
    this.changed();
  }

  delete(kind: SourceKindName, namespace: string, name: string): void {
    this.calls.push(`delete ${kind} ${namespace}/${name}`);
    this.of(kind).delete(`${namespace}/${name}`);
    this.changed();
  }

  caughtUp(kind: SourceKindName): void {
    this.calls.push(`caught up ${kind}`);
    this.changed();
  }

  of(kind: SourceKindName): Map<string, KubernetesObject> {
    let objects = this.kinds.get(kind);
    if (objects === undefined) this.kinds.set(kind, (objects = new Map()));
    return objects;
  }

  get(kind: SourceKindName, namespace: string, name: string): KubernetesObject | undefined {
    return this.of(kind).get(`${namespace}/${name}`);
  }

  /** Sorted `namespace/name`. */
  names(kind: SourceKindName): string[] {
    return [...this.of(kind).keys()].sort();
  }

  /** Resolves once the condition holds; checked after each call. */
  async until(holds: (sink: this) => boolean): Promise<void> {
    if (holds(this)) return;
    await new Promise<void>((resolve) => this.waiting.push({ holds: () => holds(this), resolve }));
  }

  private changed(): void {
    const fulfilled = this.waiting.filter(({ holds }) => holds());
    this.waiting = this.waiting.filter((waiter) => !fulfilled.includes(waiter));
    for (const { resolve } of fulfilled) resolve();
  }
}

function keyOf(object: KubernetesObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
}
