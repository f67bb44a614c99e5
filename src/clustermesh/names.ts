import { quote } from '../api/quote.ts';

/** `--max-connected-clusters`: how many clusters a mesh can have. All clusters of a mesh must agree. */
export type ClusterLimit = 255 | 511;

/** A cluster of the mesh, as itself and all others know it. */
export interface MeshCluster {
  readonly name: string;
  /** From 1 to the limit. */
  readonly id: number;
  readonly limit: ClusterLimit;
}

/** Why a text is not a cluster's name. Source: Cilium pkg/clustermesh/types, `ValidateClusterName`. */
export function clusterNameProblem(name: string): string | undefined {
  if (!/^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$/.test(name))
    return `${quote(name)} is not a cluster name: use at most 32 lower-case letters, digits and dashes`;
  // It is the name of clusters that are in no mesh.
  if (name === 'default') return '"default" cannot be the name of a cluster in a mesh; choose another one';
  return undefined;
}

/** Why a number is not a cluster's id. */
export function clusterIdProblem(id: number, limit: ClusterLimit): string | undefined {
  if (Number.isInteger(id) && id >= 1 && id <= limit) return undefined;
  return `cluster id ${id} is not from 1 to ${limit}`;
}

/**
 * Why a remote cluster cannot have its id, which every cluster of a mesh has to itself.
 *
 * @param holders The other remote clusters, by id.
 */
export function reservationProblem(
  remote: MeshCluster,
  own: MeshCluster,
  holders: ReadonlyMap<number, string>,
): string | undefined {
  const problem = clusterIdProblem(remote.id, own.limit);
  if (problem !== undefined) return `${problem}; give cluster ${remote.name} another one`;
  if (remote.id === own.id) return `cluster id ${remote.id} is that of this cluster; give one of them another id`;
  const holder = holders.get(remote.id);
  if (holder === undefined || holder === remote.name) return undefined;
  return `cluster id ${remote.id} is that of cluster ${holder}, too; give one of them another id`;
}

/** Security identities have 24 bits, the first of which are the id of the cluster. */
export interface IdentityRange {
  readonly first: number;
  readonly last: number;
}

export function identityRange({ id, limit }: MeshCluster): IdentityRange {
  const size = limit === 255 ? 1 << 16 : 1 << 15;
  return { first: id * size, last: id * size + size - 1 };
}
