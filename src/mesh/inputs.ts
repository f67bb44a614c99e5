import type { Problem } from '../api/problem.ts';
import type { ConnectedProxy } from '../ads/types.ts';
import type { ConfigMap } from '../api/core.ts';
import { type KindName, kinds } from '../api/kinds.ts';
import { type KubernetesObject, objectKey, sourceOfKey } from '../api/object.ts';
import type { Graph, Input, Reader } from '../cache/graph.ts';
import type { AllocatedAddress } from '../model/address-claim.ts';
import type { Credential } from '../model/credential.ts';
import type { FetchedKeySet } from '../model/key-set.ts';
import type { LostEndpoints } from '../model/lost-endpoints.ts';

/** Options fixed at startup, which every transform may read. Plain JSON like every input. */
export interface MeshOptions {
  readonly domainSuffix: string;
  readonly rootNamespace: string;
  /** The own cluster, whose configuration this is: the source of its objects, a directory's too. */
  readonly clusterId: string;
  /** Other names by which proxies may call clusters: the id by the name. */
  readonly clusterAliases?: Readonly<Record<string, string>>;
  /** ServiceExports and ServiceImports mean something, and Services are only for their own cluster. */
  readonly multiclusterServices?: boolean;
  /** Shared global Services are told to the other clusters of a ClusterMesh. */
  readonly clusterMeshExport?: true;
  /** For proxies whose node does not say. */
  readonly defaultProxyNamespace: string;
  readonly defaultProxyType: 'sidecar' | 'router';
  /** Which Gateways a router serves: those in all namespaces, or only in its own. */
  readonly gatewayScope: 'mesh' | 'namespace';
  /** On a router of another namespace, a Gateway has a certificate only if its Secret names the Gateway, or the namespace. */
  readonly gatewaySecretGrants: boolean;
  /** Proxies read files that objects of any namespace name, not only those of their own and the root namespace. */
  readonly crossNamespaceFiles: boolean;
  /** Secrets that are not known may exist elsewhere, and everybody may have them: for `translate`, not for a server. */
  readonly assumesCredentials?: true;
}

export const defaultMeshOptions: MeshOptions = {
  domainSuffix: 'cluster.local',
  rootNamespace: 'istio-system',
  clusterId: 'Kubernetes',
  defaultProxyNamespace: 'default',
  defaultProxyType: 'sidecar',
  gatewayScope: 'mesh',
  gatewaySecretGrants: false,
  crossNamespaceFiles: false,
};

/** The only key of collections with a single value. */
export const ONE = '';

export interface Inputs {
  readonly options: Input<MeshOptions>;
  /** By kind; keys are source/namespace/name. */
  readonly objects: Readonly<Record<KindName, Input<KubernetesObject>>>;
  /** The last mesh config without errors; keyed like the ConfigMap. */
  readonly lastGood: Input<ConfigMap>;
  /** What names of gateways between networks resolve to; by name. */
  readonly gatewayAddresses: Input<{ readonly addresses: readonly string[]; readonly problem?: string }>;
  /** Public keys of issuers, by {@link keySetKey}. */
  readonly keySets: Input<FetchedKeySet>;
  /** Secrets and ConfigMaps that proxies need; by {@link CredentialKey}. */
  readonly credentials: Input<Credential>;
  /** The roots that proxies are to trust, PEM, one in each text; under {@link ONE}, once there is an authority. */
  readonly trustBundle: Input<{ readonly roots: readonly string[] }>;
  /** PeerAuthentications as clients still go by them, where that differs from what they are. Keyed like the objects. */
  readonly formerPeersOfClients: Input<FormerObject>;
  /** PeerAuthentications as servers still go by them, too, where that differs from what they are. */
  readonly formerPeersOfServers: Input<FormerObject>;
  /** Endpoints that were gone when the API server listed their objects again. By object and Service. */
  readonly lostEndpoints: Input<LostEndpoints>;
  /** Whether a service account may have the Secrets of its namespace, in its cluster; by `AccountKey`. */
  readonly secretAccess: Input<{ readonly allowed: boolean }>;
  /** By kind, for objects with conditions: all of them are known up to this resourceVersion. Nothing follows from it. */
  readonly versions: Input<string>;
  /** What may take the place of the newest generation of an object; by `generationKey`. */
  readonly formerGenerations: Input<FormerGenerations>;
  /** Generations that proxies reject; by `generationKey`. */
  readonly rejectedGenerations: Input<RejectedGeneration>;
  /** Objects whose newest generation waits for others; by `generationKey`. */
  readonly waiting: Input<WaitingObject>;
  /** Our own bugs, with the objects affected; by what failed. */
  readonly failures: Input<{ readonly problems: readonly Problem[] }>;
  /** Clusters besides the own one whose objects are sources, too; by id. */
  readonly remoteClusters: Input<{ readonly id: string }>;
  /** By stream id. */
  readonly proxies: Input<ConnectedProxy>;
  /** Automatic addresses that no status has: of files. By object. */
  readonly allocated: Input<readonly AllocatedAddress[]>;
  /** The types computed on demand that a stream has asked for; by stream id. */
  readonly asked: Input<{ readonly typeUrls: readonly string[] }>;
  /**
   * For views that are built over several commits: how many shards of each namespace exist so far. No proxy gets a
   * world from them until all do. By the key of the view traits; absent: all shards.
   */
  readonly shardsMade: Input<number>;
}

/** Earlier generations of an object that may be good, newest first. Absent once proxies have acknowledged the newest. */
export interface FormerGenerations {
  readonly objects: readonly KubernetesObject[];
}

/** What proxies reject of an object. */
export interface RejectedGeneration {
  readonly uid: string;
  readonly generations: readonly {
    readonly generation: number;
    /** It changed together with other objects; each is tried alone to find out which of them is to blame. */
    readonly isSuspect?: true;
    /**
     * One tenant said so, of an object that is not its own, or only gRPC's libraries did, and nobody else was concerned:
     * others are to find out.
     */
    readonly isHere?: true;
    /** Not this replica's proxies said so, but those of another one, or before a restart. */
    readonly isRecalled?: true;
    /** How many proxies said so. */
    readonly proxies: number;
    /** Some of them. */
    readonly rejections: readonly {
      readonly nodeId: string;
      readonly build: string;
      readonly typeUrl: string;
      readonly name: string;
      /** The proxy's own words. */
      readonly message: string;
    }[];
  }[];
}

/** What is known of an object whose newest generation is not to be in force yet. */
export interface WaitingObject {
  /** The generation that is in force; absent if nothing of the object is. */
  readonly instead?: KubernetesObject;
  /** For what it waits, and for how long: a sentence. */
  readonly waits: string;
}

/** What an object was; without one, it did not exist. */
export interface FormerObject {
  readonly object?: KubernetesObject;
}

export function declareInputs(graph: Graph): Inputs {
  const objects = Object.fromEntries(
    kinds.map(({ name }) => [name, graph.input<KubernetesObject>(`objects.${name}`)]),
  ) as Record<KindName, Input<KubernetesObject>>;
  return {
    options: graph.input('options'),
    objects,
    lastGood: graph.input('lastGood'),
    gatewayAddresses: graph.input('gatewayAddresses'),
    keySets: graph.input('keySets'),
    credentials: graph.input('credentials'),
    trustBundle: graph.input('trustBundle'),
    formerPeersOfClients: graph.input('formerPeersOfClients'),
    formerPeersOfServers: graph.input('formerPeersOfServers'),
    lostEndpoints: graph.input('lostEndpoints'),
    secretAccess: graph.input('secretAccess'),
    versions: graph.input('versions'),
    formerGenerations: graph.input('formerGenerations'),
    rejectedGenerations: graph.input('rejectedGenerations'),
    waiting: graph.input('waiting'),
    failures: graph.input('failures'),
    remoteClusters: graph.input('remoteClusters'),
    proxies: graph.input('proxies'),
    allocated: graph.input('allocated'),
    asked: graph.input('asked'),
    shardsMade: graph.input('shardsMade'),
  };
}

/** The options; the first commit writes them before anything else. */
export function optionsOf(read: Reader, inputs: Inputs): MeshOptions {
  return read.get(inputs.options, ONE) ?? defaultMeshOptions;
}

/** Key of another object from the same source as `key`. */
export function siblingKey(key: string, namespace: string, name: string): string {
  return objectKey(sourceOfKey(key), namespace, name);
}
