/**
 * The keys of Cilium's etcd. A cluster's own etcd has its `state`; KVStoreMesh keeps the state of other clusters in its
 * `cache`, with the cluster in each key. Source: Cilium pkg/kvstore, pkg/clustermesh.
 */
export type Tree = 'state' | 'cache';

export const storedKinds = ['nodes', 'services', 'endpointslices', 'identities', 'ip'] as const;
export type StoredKind = (typeof storedKinds)[number];

/** Written every minute. Readers may read this prefix, but not one with a slash at the end. */
export const HEARTBEAT = 'cilium/.heartbeat';

/** The only key of its prefix that readers may read. */
export function clusterConfigKey(cluster: string): string {
  return `cilium/cluster-config/${cluster}`;
}

/** What all keys of a kind begin with. Readers may not ask for less. The rest of a key is its suffix. */
export function prefixOf(kind: StoredKind, tree: Tree, cluster: string): string {
  const root = rootOf(kind, tree);
  if (kind === 'identities') return tree === 'state' ? `${root}/id/` : `${root}/${cluster}/id/`;
  if (kind === 'ip') return tree === 'state' ? `${root}/default/` : `${root}/${cluster}/`;
  return `${root}/${cluster}/`;
}

/** What the canaries of a cluster begin with. */
export function canaryPrefix(cluster: string): string {
  return `cilium/synced/${cluster}/`;
}

/** Exists once all keys of the kind were written. */
export function canaryKey(kind: StoredKind, tree: Tree, cluster: string): string {
  return canaryPrefix(cluster) + rootOf(kind, tree);
}

/** The kind that a canary is about, or undefined if it is of another tree, or of a kind that is not known. */
export function kindOfCanary(key: string, tree: Tree, cluster: string): StoredKind | undefined {
  return storedKinds.find((kind) => canaryKey(kind, tree, cluster) === key);
}

/** The suffix of what is in a namespace. */
export function namespacedSuffix(namespace: string, name: string): string {
  return `${namespace}/${name}`;
}

function rootOf(kind: StoredKind, tree: Tree): string {
  return `cilium/${tree}/${kind}/v1`;
}
