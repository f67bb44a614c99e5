import type { SourceKindName } from '../api/kinds.ts';
import { type KubernetesObject, objectKey } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';

/** Keeps what it is told until {@link open}, and passes everything on from then on, until {@link close}. */
export class StagedSink implements ObjectSink {
  readonly #staged = new Map<SourceKindName, Map<string, KubernetesObject>>();
  #target: ObjectSink | undefined;
  #isClosed = false;
  /** Something has arrived. */
  heard = false;

  /** Everything of these kinds that the target had from elsewhere is replaced at once, except of those never listed. */
  open(target: ObjectSink, kinds: readonly SourceKindName[]): void {
    if (this.#isClosed) return;
    for (const kind of kinds) {
      const objects = this.#staged.get(kind);
      if (objects !== undefined) target.replace(kind, [...objects.values()]);
    }
    this.#target = target;
    this.#staged.clear();
  }

  /** Whatever arrives later is dropped. */
  close(): void {
    this.#isClosed = true;
    this.heard = false;
    this.#target = undefined;
    this.#staged.clear();
  }

  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    if (this.#isClosed) return;
    this.heard = true;
    if (this.#target !== undefined) return this.#target.replace(kind, objects);
    this.#staged.set(kind, new Map(objects.map((object) => [keyOf(object), object])));
  }

  upsert(kind: SourceKindName, object: KubernetesObject): void {
    if (this.#isClosed) return;
    if (this.#target !== undefined) return this.#target.upsert(kind, object);
    const objects = this.#staged.get(kind) ?? new Map<string, KubernetesObject>();
    this.#staged.set(kind, objects.set(keyOf(object), object));
  }

  delete(kind: SourceKindName, namespace: string, name: string): void {
    if (this.#isClosed) return;
    if (this.#target !== undefined) return this.#target.delete(kind, namespace, name);
    this.#staged.get(kind)?.delete(objectKey('', namespace, name));
  }

  caughtUp(kind: SourceKindName): void {
    this.#target?.caughtUp?.(kind);
  }
}

function keyOf({ metadata: { namespace = '', name } }: KubernetesObject): string {
  return objectKey('', namespace, name);
}
