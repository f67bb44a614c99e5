import type { Secret } from '../api/core.ts';
import { type ClusterAccess, type Kubeconfig, type KubeconfigRules, readKubeconfig } from './kubeconfig.ts';

/** Clusters, and entries of one Secret that are looked at. */
export const MOST_CLUSTERS = 100;

export interface SecretRef {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** What a Secret with the label `istio/multiCluster: "true"` says: one kubeconfig per cluster id. Read once per change. */
export interface RemoteSecret {
  readonly ref: SecretRef;
  /** RFC 3339. */
  readonly created: string;
  readonly entries: ReadonlyMap<string, Kubeconfig>;
  /** Entries beyond {@link MOST_CLUSTERS}, which are not looked at. */
  readonly ignored: number;
}

/** A cluster that a Secret names. */
export interface RemoteCluster {
  readonly id: string;
  readonly secret: SecretRef;
  /** Absent: the Secret's kubeconfig for it is refused. */
  readonly access?: ClusterAccess;
}

/** Why an entry of a Secret has no effect. */
export interface RemoteRefusal {
  readonly secret: SecretRef;
  /** Absent: it is about the Secret as a whole. */
  readonly cluster?: string;
  /** In the Secret, as in `data[east].users[0].user.exec`. */
  readonly field: string;
  readonly message: string;
}

export interface RemoteClusters {
  /** By cluster id. At most {@link MOST_CLUSTERS} have access. */
  readonly clusters: ReadonlyMap<string, RemoteCluster>;
  readonly refusals: readonly RemoteRefusal[];
}

export function readRemoteSecret({ metadata, data = {} }: Secret, rules: KubeconfigRules): RemoteSecret {
  const { namespace = '', name, uid = '', creationTimestamp = '' } = metadata;
  const ids = Object.keys(data).sort();
  const read = (id: string): Kubeconfig =>
    readKubeconfig(Buffer.from(data[id] ?? '', 'base64').toString('utf8'), rules);
  return {
    ref: { namespace, name, uid },
    created: creationTimestamp,
    entries: new Map(ids.slice(0, MOST_CLUSTERS).map((id) => [id, read(id)])),
    ignored: Math.max(0, ids.length - MOST_CLUSTERS),
  };
}

/**
 * Which Secret has which cluster: the oldest one that names it, even if its kubeconfig is refused, so that a mistake in
 * one Secret does not give its cluster to another. When it goes, the next one has it.
 */
export function remoteClusters(secrets: readonly RemoteSecret[], ownCluster: string): RemoteClusters {
  const clusters = new Map<string, RemoteCluster>();
  const refusals: RemoteRefusal[] = [];
  let reachable = 0;
  for (const { ref, entries, ignored } of [...secrets].sort(oldestFirst)) {
    for (const [id, content] of entries) {
      const refuse = (message: string, field = ''): number =>
        refusals.push({ secret: ref, cluster: id, field: `data[${id}]${field === '' ? '' : `.${field}`}`, message });
      const holder = clusters.get(id);
      if (id === ownCluster) refuse('is the cluster of this control plane, which needs no Secret; it is ignored');
      else if (holder !== undefined) {
        const { namespace, name } = holder.secret;
        refuse(`is ignored: the older Secret ${namespace}/${name} has this cluster; delete one of them`);
      } else if ('refused' in content) {
        clusters.set(id, { id, secret: ref });
        refuse(content.refused.message, content.refused.field);
      } else if (reachable === MOST_CLUSTERS)
        refuse(`is ignored: there are more than ${MOST_CLUSTERS} clusters; delete Secrets of others`);
      else {
        reachable++;
        clusters.set(id, { id, secret: ref, access: content.access });
      }
    }
    if (ignored > 0)
      refusals.push({
        secret: ref,
        field: 'data',
        message: `has ${ignored} entries more than the ${MOST_CLUSTERS} that are read; they are ignored`,
      });
  }
  return { clusters, refusals };
}

function oldestFirst(a: RemoteSecret, b: RemoteSecret): number {
  return compare(a.created, b.created) || compare(a.ref.name, b.ref.name);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
