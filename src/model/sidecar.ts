import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import { type HostSet, covers, hostSet, overlaps } from './host-set.ts';
import type { SidecarIngress } from './inbound.ts';
import type { Labels } from './labels.ts';
import type { OutboundPolicy } from './mesh-config.ts';
import { remembered } from './remembered.ts';
import type { MeshService, Protocol } from './service.ts';
import type { ConnectionPool } from './traffic-policy.ts';
import type { Destination } from './route.ts';

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
  const parts = importsFrom(hosts, clientNamespace, service.namespace);
  return isImported(parts, service.host, covers);
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
export function egressImportsRoutes(hosts: readonly EgressHost[], clientNamespace: string, routes: Routes): boolean {
  const { length } = routes.hosts;
  return (length <= FEW ? importsRoutes(hosts, clientNamespace) : importsManyRoutes(hosts)(clientNamespace))(routes);
}

interface Routes {
  readonly namespace: string;
  readonly hosts: readonly string[];
}

/** With more hosts, an answer is kept: each of them asks. */
const FEW = 8;

function importsRoutes(hosts: readonly EgressHost[], clientNamespace: string): (routes: Routes) => boolean {
  return (routes) => {
    const parts = importsFrom(hosts, clientNamespace, routes.namespace);
    return routes.hosts.some((host) => isImported(parts, host, overlaps));
  };
}

const importsManyRoutes = remembered((hosts: readonly EgressHost[]) => {
  const byClient = new Map<string, (routes: Routes) => boolean>();
  return (client: string): ((routes: Routes) => boolean) => {
    const known = byClient.get(client) ?? remembered(importsRoutes(hosts, client));
    byClient.set(client, known);
    return known;
  };
});

/** Egress hosts for one namespace. */
interface Imports {
  readonly included: HostSet;
  readonly excluded: HostSet;
}

const byNamespace = remembered((hosts: readonly EgressHost[]): ReadonlyMap<string, Imports> => {
  const groups = Map.groupBy(hosts, ({ namespace }) => namespace);
  const setOf = (entries: readonly EgressHost[], excludes: boolean): HostSet =>
    hostSet(entries.filter(({ excluded }) => excluded === excludes).map(({ host }) => host));
  return new Map(
    Array.from(groups, ([namespace, entries]) => [
      namespace,
      { included: setOf(entries, false), excluded: setOf(entries, true) },
    ]),
  );
});

/** What egress hosts say about a namespace. */
export function importsFrom(
  hosts: readonly EgressHost[],
  clientNamespace: string,
  namespace: string,
): readonly Imports[] {
  const all = byNamespace(hosts);
  const names = namespace === clientNamespace ? ['*', namespace, '.'] : ['*', namespace];
  return names.map((name) => all.get(name)).filter((found) => found !== undefined);
}

function isImported(parts: readonly Imports[], host: string, matches: typeof covers | typeof overlaps): boolean {
  return parts.some(({ included }) => matches(included, host)) && !parts.some(({ excluded }) => covers(excluded, host));
}
