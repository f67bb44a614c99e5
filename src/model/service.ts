import { isOwnProxy } from './address.ts';
import type { ObjectRef } from '../api/object.ts';
import type { Aged } from './age.ts';
import type { Labels } from './labels.ts';

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

/** Explicit HTTP/2: the proxy speaks it to the endpoints without negotiation. */
export function isHttp2(protocol: Protocol): boolean {
  return protocol === 'HTTP2' || protocol === 'GRPC' || protocol === 'GRPCWeb';
}

/** Ports whose connections carry a TLS server name. */
export function isTls(protocol: Protocol): boolean {
  return protocol === 'HTTPS' || protocol === 'TLS';
}

/** How the addresses of a host are found. Istio's names: ClientSideLB is STATIC or a Service, Passthrough is NONE or headless. */
export type Resolution = 'ClientSideLB' | 'DNSLB' | 'DNSRoundRobinLB' | 'Passthrough' | 'Alias' | 'DynamicDNS';

export interface ServicePort {
  /** Empty for a single unnamed port. Endpoints are found by it. */
  readonly name: string;
  readonly number: number;
  readonly protocol: Protocol;
  /** A Service: number or the name of a container port. A ServiceEntry: number. Absent: the number of the port. */
  readonly targetPort?: number | string;
}

/** An endpoint of a ServiceEntry itself, before its ports are known. */
export interface InlineEndpoint {
  readonly address: string;
  /** The ports of its ServiceEntry, which may be some of those of the service when several claim the host. */
  readonly servicePorts: readonly ServicePort[];
  /** Numbers of its own, by name of the service port. */
  readonly ports: Readonly<Record<string, number>>;
  readonly labels: Labels;
  readonly locality: string;
  readonly network: string;
  readonly weight?: number;
  /** SPIFFE id or empty. */
  readonly identity: string;
  readonly tlsMode: 'istio' | 'disabled';
  /** It is the host itself, which is looked up where no endpoint is written. */
  readonly isHost?: true;
}

/** One host of the mesh. A Service has one, a ServiceEntry one for each of its hosts. */
export interface MeshService extends Aged {
  readonly host: string;
  /** Namespace of the object that claims the host. */
  readonly namespace: string;
  /** Name of the Service; for a ServiceEntry the host, as in Istio's metadata. */
  readonly name: string;
  readonly registry: 'Kubernetes' | 'External';
  readonly resolution: Resolution;
  readonly ports: readonly ServicePort[];
  /** Virtual IPs and CIDRs; `0.0.0.0` alone when there is none. */
  readonly addresses: readonly string[];
  /** Where a port does not count, since a Service of another namespace has it: see {@link LostRange}. */
  readonly lostRanges?: readonly LostRange[];
  /** Automatically allocated addresses (status of a ServiceEntry); only proxies that capture DNS use them. */
  readonly autoAddresses: readonly string[];
  /** `*`, `~` (nobody) or namespaces; `.` is already replaced by the own namespace. Sorted. */
  readonly exportTo: readonly string[];
  /** Outside the mesh: no mutual TLS. ExternalName, or location MESH_EXTERNAL. */
  readonly meshExternal: boolean;
  /** Sessions stick to an endpoint, also while it drains. */
  readonly persistentSession: boolean;
  /** Routers that it leads to listen on its target ports, not on the ports that their Gateways name. */
  readonly translatesPorts: boolean;
  /** Labels of the workloads behind it; absent: selected by nothing. */
  readonly selector?: Labels;
  /** The target of an Alias (Service of type ExternalName). */
  readonly externalName?: string;
  /** Endpoints that stand in the ServiceEntry itself. */
  readonly endpoints: readonly InlineEndpoint[];
  /** Subject names that the upstream certificate may have: service-account annotations, or ServiceEntry.subjectAltNames. */
  readonly subjectAltNames: readonly string[];
  /** `trafficDistribution`, settled from spec and annotation. */
  readonly trafficDistribution?: 'same-zone' | 'same-node';
  /** `internalTrafficPolicy: Local`. */
  readonly nodeLocal: boolean;
  /** Hosts of Alias services that point here; they are served as further domains. Filled in when claims are merged. */
  readonly aliases: readonly Alias[];
  /** ServiceEntry annotation `istio.io/connect-strategy: RACE_FIRST_TCP_CONNECT`. */
  readonly raceConnect: boolean;
  /** Number of hosts of its ServiceEntry; absent for one. */
  readonly hostsOfEntry?: number;
  readonly origins: readonly ObjectRef[];
}

/**
 * A range of a ServiceEntry that covers an address of a Service, on an HTTP port of that Service. There HTTP Services have no
 * listener of their own but share that of the port, in which Envoy looks for the range of the destination first.
 */
export interface LostRange {
  /** As it stands among the addresses. */
  readonly range: string;
  readonly port: number;
  /** The first of these Services, and its address. */
  readonly owner: ObjectRef;
  readonly address: string;
}

export interface Alias {
  readonly host: string;
  readonly namespace: string;
  readonly origins: readonly ObjectRef[];
}

/** `namespace/host`: the key of a service. Two namespaces may claim one host. */
export function serviceKey(service: Pick<MeshService, 'namespace' | 'host'>): string {
  return `${service.namespace}/${service.host}`;
}

export function isVisibleTo(service: Pick<MeshService, 'exportTo'>, namespace: string): boolean {
  return service.exportTo.includes('*') || service.exportTo.includes(namespace);
}

/**
 * Where clients of a namespace find it among all that they see: what only their own namespace sees comes first, then what
 * is exported to them by name, then what everybody sees.
 */
export function exportRank(service: Pick<MeshService, 'exportTo' | 'namespace'>, client: string): 0 | 1 | 2 {
  if (service.exportTo.includes('*')) return 2;
  return service.namespace === client ? 0 : 1;
}

/** A headless Kubernetes Service, or a ServiceEntry with resolution NONE. */
export function isHeadless(service: MeshService): boolean {
  return service.resolution === 'Passthrough';
}

/** Whether its endpoints come from DNS, inside the proxy. */
export function isDns(service: Pick<MeshService, 'resolution'>): boolean {
  return service.resolution === 'DNSLB' || service.resolution === 'DNSRoundRobinLB';
}

/** Cluster name: `outbound|80|v1|reviews.default.svc.cluster.local`. */
export function outboundCluster(port: number, subset: string, host: string): string {
  return `outbound|${port}|${subset}|${host}`;
}

/** SNI of mutual TLS connections, and name of the clusters of AUTO_PASSTHROUGH: `outbound_.80_.v1_.host`. */
export function sniCluster(port: number, subset: string, host: string): string {
  return `outbound_.${port}_.${subset}_.${host}`;
}

export function inboundCluster(targetPort: number): string {
  return `inbound|${targetPort}||`;
}

/**
 * Who sees a service: endpoints that are the client's own proxy, with its admin interface and its agent's sockets, are for
 * clients of its own namespace. What the root namespace writes is for all.
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

/** Where an endpoint may be. */
type Targets = Pick<InlineEndpoint, 'address' | 'ports' | 'servicePorts'>;

export function isOwn({ address, ports, servicePorts }: Targets): boolean {
  const targets = servicePorts.map(({ targetPort, number }) => (typeof targetPort === 'number' ? targetPort : number));
  return isOwnProxy(address, [...Object.values(ports), ...targets]);
}
