import type { Problem } from '../api/problem.ts';
import type { ConnectedProxy } from '../ads/types.ts';
import type { ConfigMap } from '../api/core.ts';
import { type KindName, kinds } from '../api/kinds.ts';
import { type KubernetesObject, objectKey, sourceOfKey } from '../api/object.ts';
import type { Graph, Input, Reader } from '../cache/graph.ts';

/** What is decided when the program starts and every transform may read. Plain JSON like every input. */
export interface MeshOptions {
  /** Source of the mesh config and of Namespaces and Nodes: the cluster id, or the name of the directory source. */
  readonly source: string;
  readonly domainSuffix: string;
  readonly rootNamespace: string;
  /** Cluster id of the endpoints of this source. */
  readonly clusterId: string;
  /** For proxies whose node says nothing. */
  readonly defaultProxyNamespace: string;
  readonly defaultProxyType: 'sidecar' | 'router';
  /** Whose Gateways a router takes: those of all namespaces, or of its own. */
  readonly gatewayScope: 'mesh' | 'namespace';
  /** Routers get the Secrets that Gateways name. Fairlead does not serve them yet; where answers of Istio are compared, they count as served. */
  readonly servesSecrets?: true;
}

export const defaultMeshOptions: MeshOptions = {
  source: 'Kubernetes',
  domainSuffix: 'cluster.local',
  rootNamespace: 'istio-system',
  clusterId: 'Kubernetes',
  defaultProxyNamespace: 'default',
  defaultProxyType: 'sidecar',
  gatewayScope: 'mesh',
};

/** The single key of collections that hold one value. */
export const ONE = '';

export interface Inputs {
  readonly options: Input<MeshOptions>;
  /** By kind; keys are source/namespace/name. */
  readonly objects: Readonly<Record<KindName, Input<KubernetesObject>>>;
  /** The mesh config as it was when nothing in it was wrong; keyed like the ConfigMap. */
  readonly lastGood: Input<ConfigMap>;
  /** Bugs of ours, with the objects that they were met with; by what failed. */
  readonly failures: Input<{ readonly problems: readonly Problem[] }>;
  /** By stream id. */
  readonly proxies: Input<ConnectedProxy>;
  /**
   * How many shards of each namespace are made, of views that are made in several commits; no proxy has a world of them
   * before. By the key of their traits; absent: all.
   */
  readonly shardsMade: Input<number>;
}

export function declareInputs(graph: Graph): Inputs {
  const objects = Object.fromEntries(
    kinds.map(({ name }) => [name, graph.input<KubernetesObject>(`objects.${name}`)]),
  ) as Record<KindName, Input<KubernetesObject>>;
  return {
    options: graph.input('options'),
    objects,
    lastGood: graph.input('lastGood'),
    failures: graph.input('failures'),
    proxies: graph.input('proxies'),
    shardsMade: graph.input('shardsMade'),
  };
}

/** The options, which the first commit writes before anything else is there. */
export function optionsOf(read: Reader, inputs: Inputs): MeshOptions {
  return read.get(inputs.options, ONE) ?? defaultMeshOptions;
}

/** An object of the source that `key` belongs to. */
export function siblingKey(key: string, namespace: string, name: string): string {
  return objectKey(sourceOfKey(key), namespace, name);
}
