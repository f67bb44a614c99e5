import { deepEqual } from '../cache/equal.ts';
import { type Kind, type SourceKindName, sourceKinds } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import type { PlacedObject } from './contents.ts';

interface Revision {
  readonly placed: PlacedObject;
  readonly object: KubernetesObject;
  readonly incarnation: number;
  readonly generation: number;
}

/**
 * What an API server would track for each object: an identity from creation to deletion, and a generation that counts
 * its changes. Passes differences to the sink.
 */
export class Revisions {
  readonly #sink: ObjectSink;
  #current = new Map<string, Revision>();
  #deletions = 0;
  #complete = false;

  constructor(sink: ObjectSink) {
    this.#sink = sink;
  }

  /** Takes all objects that exist now. The sink is called before this returns. */
  apply(objects: ReadonlyMap<string, PlacedObject>): void {
    const next = new Map<string, Revision>();
    const changed: Revision[] = [];
    for (const [key, placed] of objects) {
      const old = this.#current.get(key);
      const revision = nextRevision(old, placed, this.#deletions);
      next.set(key, revision);
      if (revision.object !== old?.object) changed.push(revision);
    }
    const deleted = [...this.#current.values()].filter(({ placed }) => !next.has(placed.key));
    this.#current = next;
    this.#deletions += deleted.length;
    if (this.#complete) {
      for (const { placed } of deleted) this.#sink.delete(placed.kind.name, placed.namespace, placed.name);
      for (const { placed, object } of changed) this.#sink.upsert(placed.kind.name, object);
      return;
    }
    this.#complete = true;
    const byKind = new Map<SourceKindName, KubernetesObject[]>(sourceKinds.map(({ name }) => [name, []]));
    for (const { placed, object } of changed) byKind.get(placed.kind.name)!.push(object);
    for (const [kind, all] of byKind) this.#sink.replace(kind, all);
  }
}

function nextRevision(old: Revision | undefined, placed: PlacedObject, deletions: number): Revision {
  if (old === undefined)
    return { placed, object: withIdentity(placed, deletions, 1), incarnation: deletions, generation: 1 };
  if (old.placed.object === placed.object || deepEqual(old.placed.object, placed.object)) return { ...old, placed };
  const generation = old.generation + 1;
  return { ...old, placed, object: withIdentity(placed, old.incarnation, generation), generation };
}

/** `incarnation` distinguishes objects of one name that never existed at the same time. */
export function withIdentity(placed: PlacedObject, incarnation: number, generation: number): KubernetesObject {
  const object = placed.object!;
  const uid = uidOf(placed.kind, placed.namespace, placed.name, incarnation);
  return { ...object, metadata: { ...object.metadata, uid, generation } };
}

function uidOf({ kind }: Kind, namespace: string, name: string, incarnation: number): string {
  return [kind, namespace, name, ...(incarnation === 0 ? [] : [incarnation])].join(':');
}
