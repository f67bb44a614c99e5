import type { ClusterAccess, Kubeconfig } from './kubeconfig.ts';
import { type Owner, ownerKey, printOwner } from './owner.ts';

/** Clusters, and kubeconfigs of one owner that are looked at. */
export const MOST_CLUSTERS = 100;

/** What one owner says. */
export interface OwnedKubeconfigs {
  readonly owner: Owner;
  /** RFC 3339; empty for files. */
  readonly created: string;
  /** By cluster id; by an empty one, what cannot be read well enough to know which cluster it is. */
  readonly kubeconfigs: ReadonlyMap<string, Kubeconfig>;
  /** Entries beyond {@link MOST_CLUSTERS}, which are not looked at. */
  readonly ignored: number;
}

/** A cluster that somebody names. */
export interface OwnedCluster {
  readonly id: string;
  readonly owner: Owner;
  /** Absent: the owner's kubeconfig for it is refused. */
  readonly access?: ClusterAccess;
}

/** Why something that an owner says has no effect. */
export interface OwnerRefusal {
  readonly owner: Owner;
  /** Absent: it is about the owner as a whole. */
  readonly cluster?: string;
  /** As in `data[east].users[0].user.exec` of a Secret; empty: all of it. */
  readonly field: string;
  readonly message: string;
}

export interface OwnedClusters {
  /** By cluster id. At most {@link MOST_CLUSTERS} have access. */
  readonly clusters: ReadonlyMap<string, OwnedCluster>;
  readonly refusals: readonly OwnerRefusal[];
}

/**
 * Which owner has which cluster. Of Secrets, the oldest one that names it; of files, the one that has it already, or
 * else the first by name. This holds also if its kubeconfig is refused, so that a mistake of one owner does not give its
 * cluster to another. When it goes, the next one has it.
 * @param former what this function returned before.
 */
export function ownedClusters(
  owned: readonly OwnedKubeconfigs[],
  ownCluster: string,
  former: OwnedClusters['clusters'] = new Map(),
): OwnedClusters {
  const clusters = new Map<string, OwnedCluster>();
  const refusals: OwnerRefusal[] = [];
  let reachable = 0;
  const kubeconfigsOf = new Map(owned.map(({ owner, kubeconfigs }) => [ownerKey(owner), kubeconfigs]));
  /** The file that had the cluster before, and still names it. */
  const keeperOf = (id: string): Owner | undefined => {
    const keeper = former.get(id)?.owner;
    return keeper?.kind === 'File' && kubeconfigsOf.get(ownerKey(keeper))?.has(id) === true ? keeper : undefined;
  };
  for (const { owner, kubeconfigs, ignored } of [...owned].sort(byPreference(former))) {
    for (const [id, content] of kubeconfigs) {
      const refuse = (message: string, field = ''): void => {
        const cluster = id === '' ? {} : { cluster: id };
        refusals.push({ owner, ...cluster, field: fieldOf(owner, id, field), message });
      };
      const holder = clusters.get(id)?.owner ?? keeperOf(id);
      if (id === '') refuse('refused' in content ? content.refused.message : 'names no cluster', refusedField(content));
      else if (!ID.test(id))
        refuse(
          'is not a name for a cluster: use at most 253 characters, without spaces and slashes, not beginning with cilium:',
        );
      else if (id === ownCluster)
        refuse('is the cluster of this control plane, which needs no kubeconfig; it is ignored');
      else if (holder !== undefined && ownerKey(holder) !== ownerKey(owner)) {
        const what = owner.kind === 'Secret' ? 'the older Secret' : 'the file';
        refuse(`is ignored: ${what} ${printOwner(holder)} has this cluster; delete one of them`);
      } else if ('refused' in content) {
        clusters.set(id, { id, owner });
        refuse(content.refused.message, content.refused.field);
      } else if (reachable === MOST_CLUSTERS)
        refuse(`is ignored: there are more than ${MOST_CLUSTERS} clusters; delete others`);
      else {
        reachable++;
        clusters.set(id, { id, owner, access: content.access });
      }
    }
    if (ignored > 0)
      refusals.push({
        owner,
        field: owner.kind === 'Secret' ? 'data' : '',
        message: `has ${ignored} entries more than the ${MOST_CLUSTERS} that are read; they are ignored`,
      });
  }
  return { clusters, refusals };
}

/** Part of the keys of objects; `cilium:NAME` is what an etcd of a ClusterMesh says about a cluster. */
const ID = /^(?!cilium:)[^/\s]{1,253}$/;

function fieldOf(owner: Owner, id: string, field: string): string {
  if (owner.kind === 'File') return field;
  return `data[${id}]${field === '' ? '' : `.${field}`}`;
}

function refusedField(content: Kubeconfig): string {
  return 'refused' in content ? content.refused.field : '';
}

function byPreference(former: OwnedClusters['clusters']): (a: OwnedKubeconfigs, b: OwnedKubeconfigs) => number {
  const holders = new Set(Array.from(former.values(), ({ owner }) => ownerKey(owner)));
  const rank = ({ owner }: OwnedKubeconfigs): number => Number(owner.kind === 'File' && !holders.has(ownerKey(owner)));
  return (a, b) =>
    rank(a) - rank(b) || compare(a.created, b.created) || compare(printOwner(a.owner), printOwner(b.owner));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
