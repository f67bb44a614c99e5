import type { ConfigMap, Secret } from '../api/core.ts';
import { type KindName, type SourceKindName, kinds } from '../api/kinds.ts';
import { type KubernetesObject, type ObjectMeta, objectKey, parseObjectKey, revisionOf } from '../api/object.ts';
import type { ObjectSink } from '../api/source.ts';
import { credentialKey } from '../model/credential.ts';
import type { CredentialStore } from '../credentials/credential-store.ts';
import { entriesOfConfigMap, entriesOfSecret } from '../credentials/entries.ts';
import type { Write } from '../cache/graph.ts';
import type { Inputs } from '../mesh/inputs.ts';
import type { PeerHistory } from './peer-history.ts';
import { isValidMeshConfig } from '../reconcilers/mesh-config/mesh-config.ts';

/**
 * Writes what a source delivers into the object inputs. Whatever no transform reads is left out here, once for all
 * sources: our own status writes must not look like changes.
 */
export class ObjectWriter implements ObjectSink {
  private readonly source: string;
  private readonly revision: string | undefined;
  private readonly inputs: Inputs;
  private readonly write: (write: Write) => void;
  private readonly credentials: Pick<CredentialStore, 'found'>;
  private readonly peers: Pick<PeerHistory, 'changed'>;
  private readonly known = new Map<SourceKindName, Set<string>>();

  /** @param revision Istio's objects with another istio.io/rev label are left to others; undefined: all are ours. */
  constructor(
    source: string,
    revision: string | undefined,
    inputs: Inputs,
    credentials: Pick<CredentialStore, 'found'>,
    peers: Pick<PeerHistory, 'changed'>,
    write: (write: Write) => void,
  ) {
    this.source = source;
    this.revision = revision;
    this.inputs = inputs;
    this.credentials = credentials;
    this.peers = peers;
    this.write = write;
  }

  replace(kind: SourceKindName, objects: readonly KubernetesObject[]): void {
    const gone = new Set(this.keys(kind));
    for (const object of objects) gone.delete(this.put(kind, object));
    for (const key of gone) this.remove(kind, key);
  }

  upsert(kind: SourceKindName, object: KubernetesObject): void {
    this.put(kind, object);
  }

  delete(kind: SourceKindName, namespace: string, name: string): void {
    this.remove(kind, objectKey(this.source, namespace, name));
  }

  private put(kind: SourceKindName, object: KubernetesObject): string {
    const { namespace = '', name } = object.metadata;
    const key = objectKey(this.source, namespace, name);
    if (kind === 'Secret') {
      this.keys(kind).add(key);
      this.credentials.found(credentialKey({ kind, namespace, name }), entriesOfSecret(object as Secret));
      return key;
    }
    if (this.isForOthers(kind, object)) {
      if (this.keys(kind).has(key)) this.remove(kind, key);
      return key;
    }
    this.keys(kind).add(key);
    const content = relevant(kind, object);
    if (kind === 'PeerAuthentication') this.peers.changed(key, content);
    this.write(this.inputs.objects[kind].write(key, content));
    if (kind === 'ConfigMap') {
      this.keepGood(key, object as ConfigMap);
      this.credentials.found(credentialKey({ kind, namespace, name }), entriesOfConfigMap(object as ConfigMap));
    }
    return key;
  }

  /**
   * Only for configuration: on Pods and Services, the label says which control plane a proxy uses, and all control
   * planes see the same objects.
   */
  private isForOthers(kind: KindName, object: KubernetesObject): boolean {
    const revision = revisionOf(object);
    if (this.revision === undefined || revision === '' || revision === this.revision) return false;
    return isCustom(kind);
  }

  private remove(kind: SourceKindName, key: string): void {
    this.keys(kind).delete(key);
    const { namespace, name } = parseObjectKey(key);
    if (kind === 'Secret' || kind === 'ConfigMap')
      this.credentials.found(credentialKey({ kind, namespace, name }), undefined);
    if (kind === 'Secret') return;
    if (kind === 'PeerAuthentication') this.peers.changed(key, undefined);
    this.write(this.inputs.objects[kind].write(key, undefined));
    if (kind === 'ConfigMap') this.write(this.inputs.lastGood.write(key, undefined));
  }

  private keepGood(key: string, map: ConfigMap): void {
    if (isValidMeshConfig(map.data?.['mesh'])) this.write(this.inputs.lastGood.write(key, map));
  }

  private keys(kind: SourceKindName): Set<string> {
    let keys = this.known.get(kind);
    if (keys === undefined) this.known.set(kind, (keys = new Set()));
    return keys;
  }
}

type WithStatus = KubernetesObject & {
  readonly status?: { readonly addresses?: unknown; readonly conditions?: readonly { readonly type: string }[] };
};

function relevant(kind: KindName, object: WithStatus): KubernetesObject {
  const { resourceVersion: _, ...metadata }: ObjectMeta = object.metadata;
  if (!isCustom(kind)) return { ...object, metadata };
  const { status, ...rest } = object;
  const kept = statusOf(kind, status);
  return kept === undefined ? { ...rest, metadata } : ({ ...rest, metadata, status: kept } as KubernetesObject);
}

function isCustom(kind: KindName): boolean {
  return kinds.some((known) => known.name === kind && known.custom);
}

function statusOf(kind: KindName, status: WithStatus['status']): object | undefined {
  if (kind === 'ServiceEntry') return status?.addresses === undefined ? undefined : { addresses: status.addresses };
  if (kind !== 'WorkloadEntry') return undefined;
  const healthy = status?.conditions?.filter((condition) => condition.type === 'Healthy') ?? [];
  return healthy.length === 0 ? undefined : { conditions: healthy };
}
