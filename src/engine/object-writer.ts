import type { ConfigMap } from '../api/core.ts';
import { type CustomKindName, type KindName, type SourceKindName, kinds, sourceKinds } from '../api/kinds.ts';
import { isObject } from '../api/json.ts';
import { type KubernetesObject, type ObjectMeta, objectKey, parseObjectKey, revisionOf } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import type { Write } from '../cache/graph.ts';
import { isBefore } from '../kube/client/resource-version.ts';
import { type Inputs, ONE, defaultMeshOptions } from '../mesh/inputs.ts';
import type { EndpointHistory } from './endpoint-history.ts';
import type { ObjectListener } from './object-listeners.ts';
import type { WaitingObjects } from './waiting-objects.ts';
import { MESH_CONFIG, meshConfigNames } from '../api/mesh-config-names.ts';
import { isValidMeshConfig } from '../reconcilers/mesh-config/mesh-config.ts';
import { areValidMeshNetworks } from '../reconcilers/mesh-config/mesh-networks.ts';

export interface ObjectWriterOptions {
  readonly source: string;
  /** Another cluster, in which nothing is written: how far its objects are known concerns nobody. */
  readonly isRemote?: true;
  /** Istio's objects with another istio.io/rev label are left to others; undefined: all are ours. */
  readonly revision: string | undefined;
  readonly inputs: Inputs;
  /** In the order in which they hear of an object. */
  readonly listeners: readonly ObjectListener[];
  /** Is told of lists; absent: nothing is known about what they lose. */
  readonly endpoints?: Pick<EndpointHistory, 'listed' | 'caughtUp'>;
  /** Absent: nothing waits. */
  readonly waiting?: Pick<WaitingObjects, 'changed' | 'settle'> | undefined;
  readonly write: (write: Write) => void;
}

/**
 * Writes what a source delivers into the object inputs. Whatever no transform reads is left out here, once for all
 * sources: our own status writes must not look like changes.
 */
export class ObjectWriter implements ObjectSink {
  private readonly options: ObjectWriterOptions;
  private readonly listeners: ReadonlyMap<SourceKindName, readonly ObjectListener[]>;
  private readonly known = new Map<SourceKindName, Set<string>>();
  private readonly versions = new Map<CustomKindName, string>();
  /** Changes so far, by kind. A list changes what it adds and removes: the rest may be as it was. */
  readonly deliveries: Partial<Record<SourceKindName, { add: number; update: number; delete: number }>> = {};

  constructor(options: ObjectWriterOptions) {
    this.options = options;
    const writers: readonly ObjectListener[] = [
      {
        kinds: kinds.map(({ name }) => name),
        changed: (kind, key, object) => this.write(kind as KindName, key, object),
      },
      { kinds: ['ConfigMap'], changed: (_, key, object) => this.keepGood(key, object as ConfigMap | undefined) },
    ];
    const all = [...options.listeners, ...writers];
    this.listeners = new Map(
      sourceKinds.map(({ name }) => [name, all.filter((listener) => listener.kinds.includes(name))]),
    );
  }

  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    const deliver = (): void => {
      const gone = new Set(this.keys(kind));
      for (const object of objects) gone.delete(this.put(kind, object, 'list'));
      for (const key of gone) this.remove(kind, key);
    };
    const { endpoints } = this.options;
    if (endpoints === undefined) deliver();
    else endpoints.listed(kind, deliver);
    this.options.waiting?.settle();
  }

  upsert(kind: SourceKindName, object: KubernetesObject): void {
    this.put(kind, object, 'event');
    this.options.waiting?.settle();
  }

  delete(kind: SourceKindName, namespace: string, name: string): void {
    this.remove(kind, this.keyOf(kind, namespace, name));
    this.options.waiting?.settle();
  }

  /** The server's copy of an object has changed, even if only in fields that nothing follows from. */
  touched(kind: CustomKindName, { metadata: { resourceVersion = '' } }: KubernetesObject): void {
    if (this.options.isRemote || !isBefore(this.versions.get(kind) ?? '0', resourceVersion)) return;
    this.versions.set(kind, resourceVersion);
    this.options.write(this.options.inputs.versions.write(kind, resourceVersion));
  }

  caughtUp(kind: SourceKindName): void {
    this.options.endpoints?.caughtUp(kind);
  }

  private put(kind: SourceKindName, object: KubernetesObject, from: 'list' | 'event'): string {
    const { namespace = '', name } = object.metadata;
    const key = this.keyOf(kind, namespace, name);
    if (this.isForOthers(kind, object)) {
      if (this.keys(kind).has(key)) this.remove(kind, key);
      return key;
    }
    this.present(kind, key, from);
    const content = relevant(kind, object);
    this.change(kind, key, content, () => {
      if (isCustom(kind)) this.touched(kind, object);
      this.tell(kind, key, content);
    });
    return key;
  }

  private change(kind: SourceKindName, key: string, object: KubernetesObject | undefined, apply: () => void): void {
    const { waiting, isRemote = false } = this.options;
    if (waiting === undefined) apply();
    else waiting.changed({ kind, key, object, isRemote, apply });
  }

  private tell(kind: SourceKindName, key: string, object: KubernetesObject | undefined): void {
    for (const listener of this.listeners.get(kind) ?? []) listener.changed(kind, key, object);
  }

  private write(kind: KindName, key: string, object: KubernetesObject | undefined): void {
    this.options.write(this.options.inputs.objects[kind].write(key, object));
  }

  /**
   * Only for configuration: on Pods and Services, the label says which control plane a proxy uses, and all control
   * planes see the same objects.
   */
  private isForOthers(kind: SourceKindName, object: KubernetesObject): boolean {
    const revision = revisionOf(object);
    if (this.options.revision === undefined || revision === '' || revision === this.options.revision) return false;
    return isCustom(kind);
  }

  private remove(kind: SourceKindName, key: string): void {
    if (this.keys(kind).delete(key)) this.countsOf(kind).delete++;
    this.change(kind, key, undefined, () => this.tell(kind, key, undefined));
    const { namespace, name } = parseObjectKey(key);
    // That of this mesh stays in force when it is deleted.
    const stays = this.options.isRemote !== true && this.isMeshConfig(kind, namespace, name);
    if (kind === 'ConfigMap' && !stays) this.options.write(this.options.inputs.lastGood.write(key, undefined));
  }

  /** The mesh config has one key whatever its name is: readers need not know which of them was chosen. */
  private keyOf(kind: SourceKindName, namespace: string, name: string): string {
    return objectKey(this.options.source, namespace, this.isMeshConfig(kind, namespace, name) ? MESH_CONFIG : name);
  }

  private isMeshConfig(kind: SourceKindName, namespace: string, name: string): boolean {
    const { inputs, revision } = this.options;
    const { rootNamespace } = inputs.options.get(ONE) ?? defaultMeshOptions;
    return kind === 'ConfigMap' && namespace === rootNamespace && meshConfigNames(revision).includes(name);
  }

  private keepGood(key: string, map: ConfigMap | undefined): void {
    if (map !== undefined && isValidMeshConfig(map.data?.['mesh']) && areValidMeshNetworks(map.data?.['meshNetworks']))
      this.options.write(this.options.inputs.lastGood.write(key, map));
  }

  private present(kind: SourceKindName, key: string, from: 'list' | 'event'): void {
    const keys = this.keys(kind);
    if (!keys.has(key)) this.countsOf(kind).add++;
    else if (from === 'event') this.countsOf(kind).update++;
    keys.add(key);
  }

  private countsOf(kind: SourceKindName): { add: number; update: number; delete: number } {
    return (this.deliveries[kind] ??= { add: 0, update: 0, delete: 0 });
  }

  private keys(kind: SourceKindName): Set<string> {
    let keys = this.known.get(kind);
    if (keys === undefined) this.known.set(kind, (keys = new Set()));
    return keys;
  }
}

type WithStatus = KubernetesObject & {
  readonly status?: { readonly addresses?: unknown; readonly conditions?: unknown };
};

function relevant(kind: SourceKindName, object: WithStatus): KubernetesObject {
  const { resourceVersion: _, ...metadata }: ObjectMeta = object.metadata;
  if (!isCustom(kind) && kind !== 'ServiceExport') return { ...object, metadata };
  const { status, ...rest } = object;
  const kept = statusOf(kind, status);
  return kept === undefined ? { ...rest, metadata } : ({ ...rest, metadata, status: kept } as KubernetesObject);
}

function isCustom(kind: SourceKindName): kind is CustomKindName {
  return kinds.some((known) => known.name === kind && known.custom);
}

function statusOf(kind: KindName, status: WithStatus['status']): object | undefined {
  if (kind === 'ServiceEntry') return status?.addresses === undefined ? undefined : { addresses: status.addresses };
  if (kind !== 'WorkloadEntry') return undefined;
  // Not every CRD says what the conditions are.
  const conditions: readonly unknown[] = Array.isArray(status?.conditions) ? status.conditions : [];
  const healthy = conditions.filter((condition) => isObject(condition) && condition['type'] === 'Healthy');
  return healthy.length === 0 ? undefined : { conditions: healthy };
}
