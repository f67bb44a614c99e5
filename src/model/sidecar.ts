import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import { isSubsetOf, isWildcard, hostsMatch } from './host.ts';
import type { SidecarIngress } from './inbound.ts';
import type { Labels } from './labels.ts';
import type { OutboundPolicy } from './mesh-config.ts';
import type { MeshService, Protocol } from './service.ts';
import type { ConnectionPool } from './traffic-policy.ts';
import type { Destination } from './virtual-service.ts';

/** A Sidecar as parsed. */
export interface SidecarModel extends Aged {
  /** `source/namespace/name`. */
  readonly key: string;
  readonly ref: ObjectRef;
  /** Absent: every workload in the namespace; in the root namespace, in every namespace. */
  readonly workloadSelector?: Labels;
  /** Never empty: a Sidecar without egress listeners sees everything. */
  readonly egress: readonly EgressListener[];
  /** Empty: the ports of the Services that select the workload. */
  readonly ingress: readonly IngressListener[];
  /** Absent: the mesh's. */
  readonly outboundTrafficPolicy?: {
    readonly mode: Exclude<OutboundPolicy, 'ALLOW_ANY_DYNAMIC_DNS'>;
    readonly egressProxy?: Destination;
  };
  readonly inboundConnectionPool?: ConnectionPool;
}

export interface EgressListener {
  /** Absent: the catch-all, for every port that no earlier listener took. 0: a unix socket. */
  readonly port?: { readonly number: number; readonly name: string; readonly protocol: Protocol };
  /** An address or `unix://path`; empty: the same as without a Sidecar. */
  readonly bind: string;
  /** `captureMode: NONE`, or a unix socket: the listener binds its address. */
  readonly bindToPort: boolean;
  readonly hosts: readonly EgressHost[];
}

export interface EgressHost {
  /** A namespace, `.` (the client's) or `*`. */
  readonly namespace: string;
  readonly host: string;
  /** `~namespace/host`: what it names is excluded. */
  readonly excluded: boolean;
}

export interface IngressListener extends SidecarIngress {
  readonly port: number;
  readonly name: string;
  readonly protocol: Protocol;
  readonly connectionPool?: ConnectionPool;
}

/** The listeners of a proxy that no Sidecar selects. */
export const everything: readonly EgressListener[] = [
  { bind: '', bindToPort: false, hosts: [{ namespace: '*', host: '*', excluded: false }] },
];

/** Whether egress hosts import a service. Visibility is checked elsewhere. */
export function egressImports(
  hosts: readonly EgressHost[],
  clientNamespace: string,
  service: { readonly namespace: string; readonly host: string },
): boolean {
  return imports(hosts, clientNamespace, service.namespace, service.host, isSubsetOf);
}

/** The ports of a service that an egress listener imports. */
export function importedPorts(
  listener: EgressListener,
  clientNamespace: string,
  service: Pick<MeshService, 'namespace' | 'host' | 'ports'>,
): number[] {
  if (!egressImports(listener.hosts, clientNamespace, service)) return [];
  return service.ports.map((port) => port.number).filter((port) => takesPort(listener, port));
}

/**
 * A listener with a port imports only that port, except an HTTP proxy or a unix socket: through these, any port is
 * reachable.
 */
export function takesPort({ port: own }: EgressListener, port: number): boolean {
  return own === undefined || own.number === 0 || own.protocol === 'HTTP_PROXY' || own.number === port;
}

/**
 * Whether egress hosts import a VirtualService, by one of its hosts. A wildcard matches more here than for services.
 */
export function egressImportsRoutes(
  hosts: readonly EgressHost[],
  clientNamespace: string,
  routes: { readonly namespace: string; readonly hosts: readonly string[] },
): boolean {
  return routes.hosts.some((host) => imports(hosts, clientNamespace, routes.namespace, host, hostsMatch));
}

function imports(
  hosts: readonly EgressHost[],
  clientNamespace: string,
  namespace: string,
  host: string,
  matches: (host: string, imported: string) => boolean,
): boolean {
  let imported = false;
  for (const entry of hosts) {
    const scope = entry.namespace === '.' ? clientNamespace : entry.namespace;
    if (scope !== '*' && scope !== namespace) continue;
    if (entry.excluded) {
      if (isSubsetOf(host, entry.host)) return false;
    } else if (!imported) {
      imported = isWildcard(host) || isWildcard(entry.host) ? matches(host, entry.host) : host === entry.host;
    }
  }
  return imported;
}
