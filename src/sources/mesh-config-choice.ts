import type { SourceKindName } from '../api/kinds.ts';
import type { KubernetesObject } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import { meshConfigNames } from '../api/mesh-config-names.ts';

export interface MeshConfigChoiceOptions {
  readonly sink: ObjectSink;
  readonly rootNamespace: string;
  readonly revision: string | undefined;
}

/**
 * Passes on what a source delivers, but of the ConfigMaps that may be the mesh config of this revision, only the first by
 * `meshConfigNames` that exists. Another choice is a change of one object, not a deletion and a creation.
 */
export class MeshConfigChoice implements ObjectSink {
  private readonly sink: ObjectSink;
  private readonly rootNamespace: string;
  private readonly names: readonly string[];
  private readonly found = new Map<string, KubernetesObject>();

  constructor({ sink, rootNamespace, revision }: MeshConfigChoiceOptions) {
    this.sink = sink;
    this.rootNamespace = rootNamespace;
    this.names = meshConfigNames(revision);
  }

  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    if (kind !== 'ConfigMap') return this.sink.replace(kind, objects);
    const [candidates, others] = [[] as KubernetesObject[], [] as KubernetesObject[]];
    for (const object of objects) (this.isCandidate(kind, object.metadata) ? candidates : others).push(object);
    this.found.clear();
    for (const object of candidates) this.found.set(object.metadata.name, object);
    const { chosen } = this;
    this.sink.replace(kind, chosen === undefined ? others : [...others, chosen]);
  }

  upsert(kind: SourceKindName, object: KubernetesObject): void {
    if (!this.isCandidate(kind, object.metadata)) return this.sink.upsert(kind, object);
    this.found.set(object.metadata.name, object);
    if (this.chosen === object) this.sink.upsert(kind, object);
  }

  delete(kind: SourceKindName, namespace: string, name: string): void {
    if (!this.isCandidate(kind, { namespace, name })) return this.sink.delete(kind, namespace, name);
    const { chosen } = this;
    this.found.delete(name);
    const next = this.chosen;
    if (next === undefined) this.sink.delete(kind, namespace, name);
    else if (next !== chosen) this.sink.upsert(kind, next);
  }

  caughtUp(kind: SourceKindName): void {
    this.sink.caughtUp?.(kind);
  }

  private get chosen(): KubernetesObject | undefined {
    return this.names.map((name) => this.found.get(name)).find((object) => object !== undefined);
  }

  private isCandidate(
    kind: SourceKindName,
    { namespace, name }: { readonly namespace?: string; readonly name: string },
  ): boolean {
    return kind === 'ConfigMap' && namespace === this.rootNamespace && this.names.includes(name);
  }
}
