import { isOwnProxy } from './address.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import type { GlobalUse } from './cluster-mesh.ts';
import type { Labels } from './labels.ts';
import { ownValue } from './own-value.ts';
import { contains, firstBy } from './remembered.ts';

/** Istio's protocols. `Unsupported` is a port that names none: its protocol is found by sniffing. */
export type Protocol =
  | 'HTTP'
  | 'HTTP2'
  | 'HTTP_PROXY'
  | 'GRPC'
  | 'GRPCWeb'
  | 'TCP'
  | 'HTTPS'
  | 'TLS'
  | 'Mongo'
  | 'Redis'
  | 'MySQL'
  | 'UDP'
  | 'Unsupported';

export type ProtocolClass = 'http' | 'tcp' | 'sniffed' | 'udp';

export function protocolClass(protocol: Protocol): ProtocolClass {
  switch (protocol) {
    case 'HTTP':
    case 'HTTP2':
    case 'HTTP_PROXY':
    case 'GRPC':
    case 'GRPCWeb':
      return 'http';
    case 'UDP':
      return 'udp';
    case 'Unsupported':
      return 'sniffed';
    default:
      return 'tcp';
  }
}

/** Whether requests to such a port have routes: it is HTTP, or may be. */
export function isRouted(protocol: Protocol): boolean {
  const kind = protocolClass(protocol);
  return kind === 'http' || kind === 'sniffed';
}

/** The port with a number. TCP and UDP ports may have the same one: the first that is written. */
export const portNumbered = firstBy(({ number }: ServicePort) => number);

/** The same of ports to which there are clusters. */
export const servedPort = firstBy(({ number, protocol }: ServicePort) => (protocol === 'UDP' ? undefined : number));

/** The same of ports to which requests have routes. */
export const routedPort = firstBy(({ number, protocol }: ServicePort) => (isRouted(protocol) ? number : undefined));

/** Explicit HTTP/2: the proxy speaks it to the endpoints without negotiation. */
export function isHttp2(protocol: Protocol): boolean {
  return protocol === 'HTTP2' || protocol === 'GRPC' || protocol === 'GRPCWeb';
}

/** Ports whose connections carry a TLS server name. */
export function isTls(protocol: Protocol): boolean {
  return protocol === 'HTTPS' || protocol === 'TLS';
}

/**
 * How a host's addresses are found. The names are Istio's: ClientSideLB is STATIC or a Service, Passthrough is NONE or
 * headless.
 */
export type Resolution = 'ClientSideLB' | 'DNSLB' | 'DNSRoundRobinLB' | 'Passthrough' | 'Alias' | 'DynamicDNS';

/** How many Services of type ExternalName may lead from one to the next; a longer chain is a loop. */
export const longestAliasChain = 8;

export interface ServicePort {
  /** Empty for a single unnamed port. Identifies the port's endpoints. */
  readonly name: string;
  readonly number: number;
  readonly protocol: Protocol;
  /** For a Service: number or name of the container port. For a ServiceEntry: number. Absent: the port number. */
  readonly targetPort?: number | string;
}

/** An endpoint in a ServiceEntry itself, before its ports are known. */
export interface InlineEndpoint {
  readonly address: string;
  /** The ports of its ServiceEntry; if several claim the host, these may be only some of the service's ports. */
  readonly servicePorts: readonly ServicePort[];
  /** Its own port numbers, by name of the service port. */
  readonly ports: Readonly<Record<string, number>>;
  readonly labels: Labels;
  readonly locality: string;
  readonly network: string;
  readonly weight?: number;
  /** SPIFFE ID, or empty. */
  readonly identity: string;
  readonly tlsMode: 'istio' | 'disabled';
  /** It is the host itself, which Envoy resolves if no endpoint is given. */
  readonly isHost?: true;
}

/** One host of the mesh. A Service has one; a ServiceEntry has one for each of its hosts. */
export interface MeshService extends Aged {
  readonly host: string;
  /** Namespace of the object that claims the host. */
  readonly namespace: string;
  /** Name of the Service; for a ServiceEntry, the host, as in Istio's metadata. */
  readonly name: string;
  readonly registry: 'Kubernetes' | 'External';
  readonly resolution: Resolution;
  readonly ports: readonly ServicePort[];
  /** Virtual IPs and CIDRs; only `0.0.0.0` if there are none. */
  readonly addresses: readonly string[];
  /** Which other cluster this Service is in; absent: the own one. Of a service in several, that of the first. */
  readonly remote?: string;
  /** Virtual IPs that proxies in other clusters use instead, by cluster. */
  readonly addressesIn?: Readonly<Record<string, readonly string[]>>;
  /** Ranges that do not count on a port because a Service in another namespace has it: see {@link LostRange}. */
  readonly lostRanges?: readonly LostRange[];
  /** Automatically allocated addresses (from the status of a ServiceEntry); used only by proxies that capture DNS. */
  readonly autoAddresses: readonly string[];
  /** `*`, `~` (nobody) or namespaces; `.` is already replaced by the service's own namespace. Sorted. */
  readonly exportTo: readonly string[];
  /** Outside the mesh: no mutual TLS. ExternalName, or location MESH_EXTERNAL. */
  readonly meshExternal: boolean;
  /** Endpoints of a headless Service have names before they are ready: `publishNotReadyAddresses`. */
  readonly publishesNotReady?: true;
  /** Sessions stay on one endpoint, even while it drains. */
  readonly persistentSession: boolean;
  /** Routers behind it listen on its target ports instead of the ports that their Gateways name. */
  readonly translatesPorts: boolean;
  /** Labels of the workloads behind it; absent: it selects none. */
  readonly selector?: Labels;
  /** The target of an Alias (Service of type ExternalName). */
  readonly externalName?: string;
  /** Endpoints in the ServiceEntry itself. */
  readonly endpoints: readonly InlineEndpoint[];
  /**
   * Subject names accepted in the upstream certificate: service-account annotations, or ServiceEntry.subjectAltNames.
   */
  readonly subjectAltNames: readonly string[];
  /** `trafficDistribution`, settled from spec and annotation. */
  readonly trafficDistribution?: 'same-zone' | 'same-node';
  /** Cilium's annotations make it global: endpoints of the other clusters of a ClusterMesh count, too. */
  readonly global?: GlobalUse;
  /** `internalTrafficPolicy: Local`. */
  readonly nodeLocal: boolean;
  /** Hosts of Alias services that point here; served as additional domains. Filled in when claims are merged. */
  readonly aliases: readonly Alias[];
  /** ServiceEntry annotation `istio.io/connect-strategy: RACE_FIRST_TCP_CONNECT`. */
  readonly raceConnect: boolean;
  /** Number of hosts in its ServiceEntry; absent if one. */
  readonly hostsOfEntry?: number;
  readonly origins: readonly ObjectRef[];
}

/**
 * A range of a ServiceEntry that covers an address of a Service, on an HTTP port of that Service. On such a port, HTTP
 * Services share the port's listener instead of having their own, and in that listener Envoy matches the range of the
 * destination first.
 */
export interface LostRange {
  /** As written in the addresses. */
  readonly range: string;
  readonly port: number;
  /** The first of these Services, and its address. */
  readonly owner: ObjectRef;
  readonly address: string;
}

export interface Alias {
  readonly host: string;
  /** Who sees it, and every alias on its way to the service: like {@link MeshService.exportTo}. */
  readonly exportTo: readonly string[];
  readonly namespace: string;
  readonly origins: readonly ObjectRef[];
}

/** `namespace/host`: the key of a service. Two namespaces may claim the same host. */
export function serviceKey(service: Pick<MeshService, 'namespace' | 'host'>): string {
  return `${service.namespace}/${service.host}`;
}

export function isVisibleTo(service: Pick<MeshService, 'exportTo'>, namespace: string): boolean {
  return contains(service.exportTo, '*') || contains(service.exportTo, namespace);
}

/** The aliases of a service that clients in a namespace see. */
export function aliasesFor({ aliases }: Pick<MeshService, 'aliases'>, namespace: string): readonly Alias[] {
  return aliases.length === 0 ? aliases : aliases.filter((alias) => isVisibleTo(alias, namespace));
}

/**
 * Its rank for clients in a namespace, among everything they see: first what only their own namespace sees, then what
 * is exported to them by name, then what everyone sees.
 */
export function exportRank(service: Pick<MeshService, 'exportTo' | 'namespace'>, client: string): 0 | 1 | 2 {
  if (contains(service.exportTo, '*')) return 2;
  return service.namespace === client ? 0 : 1;
}

/** A headless Kubernetes Service, or a ServiceEntry with resolution NONE. */
export function isHeadless(service: MeshService): boolean {
  return service.resolution === 'Passthrough';
}

/** Whether the proxy finds its endpoints by DNS. */
export function isDns(service: Pick<MeshService, 'resolution'>): boolean {
  return service.resolution === 'DNSLB' || service.resolution === 'DNSRoundRobinLB';
}

/** Cluster name: `outbound|80|v1|reviews.default.svc.cluster.local`. */
export function outboundCluster(port: number, subset: string, host: string): string {
  return `outbound|${port}|${subset}|${host}`;
}

/** Parts of a name that {@link outboundCluster} made. */
export function parseOutboundCluster(name: string): {
  readonly port: string;
  readonly subset: string;
  readonly host: string;
} {
  const [, port = '', subset = '', host = ''] = name.split('|');
  return { port, subset, host };
}

/** SNI for mutual TLS connections, and name of the AUTO_PASSTHROUGH clusters: `outbound_.80_.v1_.host`. */
export function sniCluster(port: number, subset: string, host: string): string {
  return `outbound_.${port}_.${subset}_.${host}`;
}

export function inboundCluster(targetPort: number): string {
  return `inbound|${targetPort}||`;
}

/**
 * Who sees a service: if an endpoint is the client's own proxy, with its admin interface and its agent's sockets, only
 * clients in the service's own namespace do. What the root namespace writes is for everyone.
 */
export function exportsOf(
  { exportTo, namespace, endpoints }: Pick<MeshService, 'exportTo' | 'namespace'> & { endpoints: readonly Targets[] },
  rootNamespace: string,
): readonly string[] {
  const own = exportTo.filter((client) => client === namespace);
  if (namespace === rootNamespace || own.length === exportTo.length) return exportTo;
  if (!endpoints.some(isOwn)) return exportTo;
  return exportTo.includes('*') ? [namespace] : own.length > 0 ? own : ['~'];
}

/** The addresses and ports that an endpoint may have. */
type Targets = Pick<InlineEndpoint, 'address' | 'ports' | 'servicePorts'>;

export function isOwn({ address, ports, servicePorts }: Targets): boolean {
  const targets = servicePorts.map(({ targetPort, number }) => (typeof targetPort === 'number' ? targetPort : number));
  return isOwnProxy(address, [...Object.values(ports), ...targets]);
}

/** The virtual IPs and CIDRs of a service for proxies of a cluster; empty: the own one. */
export function addressesIn({ addresses, addressesIn: others }: MeshService, cluster: string): readonly string[] {
  return (others && ownValue(others, cluster)) ?? addresses;
}

/**
 * Whether these addresses are its own there. Those that it has in another cluster may be somebody else's in this one:
 * clusters may use the same ranges.
 */
export function isAtHomeIn(service: MeshService, cluster: string): boolean {
  const { registry, remote = '', addressesIn: others = {} } = service;
  return registry === 'External' || remote === cluster || ownValue(others, cluster) !== undefined;
}
