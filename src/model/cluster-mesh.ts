import type { Transport } from '../api/core.ts';
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

/** What a global Service takes of the endpoints in other clusters, and when it uses them. */
export interface GlobalUse {
  readonly affinity: Affinity;
  /** Of its addresses, or, if it is headless, of those that it may have. */
  readonly families: readonly AddressFamily[];
  /** Its ports. A name may be empty. */
  readonly ports: readonly { readonly name: string; readonly protocol: Transport }[];
}

export type AddressFamily = 'IPv4' | 'IPv6';

/**
 * The ports of a global Service that a port of an endpoint in another cluster serves: those of its name and protocol. If
 * either has no name, the protocol alone counts. Source: Cilium pkg/loadbalancer/writer, `SelectBackends`.
 */
export function portsServedBy(
  { name = '', protocol = 'TCP' }: { readonly name?: string; readonly protocol?: Transport },
  { ports }: Pick<GlobalUse, 'ports'>,
): readonly string[] {
  return ports
    .filter((port) => port.protocol === protocol && (name === '' || port.name === '' || port.name === name))
    .map((port) => port.name);
}

type Annotations = Readonly<Record<string, string>>;

/** Cilium's names for them; those of releases before 1.14 come second. */
const GLOBAL = ['service.cilium.io/global', 'io.cilium/global-service'];
const SHARED = ['service.cilium.io/shared', 'io.cilium/shared-service'];
const AFFINITY = ['service.cilium.io/affinity', 'io.cilium/service-affinity'];

/** What the annotations of a Service say. Undefined: it is not global, and has no endpoints of other clusters. */
export function affinityOf(annotations: Annotations): Affinity | undefined {
  if (valueOf(annotations, GLOBAL) !== 'true') return undefined;
  const affinity = valueOf(annotations, AFFINITY);
  return affinity === 'local' || affinity === 'remote' ? affinity : 'none';
}

/** Whether the endpoints of a Service are for the other clusters, too: if it is global, unless it says otherwise. */
export function isShared(annotations: Annotations): boolean {
  return valueOf(annotations, GLOBAL) === 'true' && (valueOf(annotations, SHARED) ?? 'true') === 'true';
}

const GLOBAL_NAMESPACE = ['clustermesh.cilium.io/global'];

/** Whether Services of the namespace can be global, by the annotations of the Namespace: unless it says otherwise. */
export function isGlobalNamespace(annotations: Annotations): boolean {
  return (valueOf(annotations, GLOBAL_NAMESPACE) ?? 'true') === 'true';
}

function valueOf(annotations: Annotations, names: readonly string[]): string | undefined {
  for (const name of names) {
    const value = ownValue(annotations, name);
    if (value !== undefined) return value.toLowerCase();
  }
  return undefined;
}
