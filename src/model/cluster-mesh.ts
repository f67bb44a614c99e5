import { ownValue } from './own-value.ts';

const PREFIX = 'cilium:';

/** The source of what another cluster's etcd says. The id of a cluster that a Secret names has no colon. */
export function clusterMeshSource(cluster: string): string {
  return `${PREFIX}${cluster}`;
}

export function isClusterMesh(source: string): boolean {
  return source.startsWith(PREFIX);
}

/** The cluster that the objects of a source are in. */
export function clusterOfSource(source: string): string {
  return isClusterMesh(source) ? source.slice(PREFIX.length) : source;
}

/**
 * Which endpoints of a global Service are used as long as any of them is healthy: those of this cluster (`local`), those of
 * the others (`remote`), or all alike (`none`).
 */
export type Affinity = 'none' | 'local' | 'remote';

type Annotations = Readonly<Record<string, string>>;

/** Cilium's names for them; those of releases before 1.14 come second. */
const GLOBAL = ['service.cilium.io/global', 'io.cilium/global-service'];
const AFFINITY = ['service.cilium.io/affinity', 'io.cilium/service-affinity'];

/** What the annotations of a Service say. Undefined: it is not global, and has no endpoints of other clusters. */
export function affinityOf(annotations: Annotations): Affinity | undefined {
  if (valueOf(annotations, GLOBAL) !== 'true') return undefined;
  const affinity = valueOf(annotations, AFFINITY);
  return affinity === 'local' || affinity === 'remote' ? affinity : 'none';
}

function valueOf(annotations: Annotations, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = ownValue(annotations, name);
    if (value !== undefined) return value.toLowerCase();
  }
  return undefined;
}
