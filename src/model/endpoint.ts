import type { Labels } from './labels.ts';

/** `Terminating` endpoints are never sent. */
export type Health = 'Healthy' | 'UnHealthy' | 'Draining' | 'Terminating';

/** An address that serves one port of a service. */
export interface Endpoint {
  /**
   * The first one is the address; the others are the same endpoint in other IP families. A path for a unix socket (port
   * 0).
   */
  readonly addresses: readonly string[];
  readonly port: number;
  /** Name of the service port that it serves. */
  readonly portName: string;
  /**
   * Number of that port in its ServiceEntry. Several ServiceEntries for one host may use one name for different
   * numbers.
   */
  readonly servicePort?: number;
  /** Absent where Istio sets none: inline endpoints and WorkloadEntries. */
  readonly health?: Health;
  readonly labels: Labels;
  /** `region/zone/subzone`; empty if unknown. */
  readonly locality: string;
  readonly network: string;
  readonly cluster: string;
  /** It is in another cluster of a ClusterMesh. */
  readonly viaClusterMesh?: true;
  /** SPIFFE ID; empty without a service account. */
  readonly identity: string;
  /** `istio` if the peer's proxy terminates mutual TLS, otherwise `disabled`. */
  readonly tlsMode: 'istio' | 'disabled';
  /** A PeerAuthentication has turned mutual TLS off there. */
  readonly disablesMtls?: true;
  /** Absent means 1. */
  readonly weight?: number;
  /** Name and namespace of the workload, for telemetry. */
  readonly workload: string;
  readonly namespace: string;
  readonly nodeName: string;
  /** The name of its Pod under that of its headless Service; absent: it has none. */
  readonly hostname?: string;
}

/** What runs behind an address: a Pod or a WorkloadEntry. */
export interface Workload {
  readonly kind: 'Pod' | 'WorkloadEntry';
  /** Where the object is. */
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
  readonly addresses: readonly string[];
  /** Labels, including those for topology (region, zone, cluster, node name, network). */
  readonly labels: Labels;
  readonly identity: string;
  readonly tlsMode: 'istio' | 'disabled';
  readonly locality: string;
  readonly network: string;
  /** The network is that of its cluster or address: it does not name one itself. */
  readonly inheritsNetwork?: true;
  readonly nodeName: string;
  /** Name of the workload that owns it (Deployment, CronJob, ...). */
  readonly workload: string;
  /** Container ports by name (Pod), or ports by name (WorkloadEntry). */
  readonly ports: Readonly<Record<string, number>>;
  /** WorkloadEntry only. */
  readonly weight?: number;
  /** Only ready Pods and healthy WorkloadEntries are endpoints of a ServiceEntry. */
  readonly ready: boolean;
}

/** What clusters and listeners need to know about a service's endpoints. Rarely changes when endpoints come and go. */
export interface EndpointSummary {
  /** Sorted, distinct SPIFFE IDs. */
  readonly identities: readonly string[];
  /** Whether any endpoint lacks mutual TLS (or there are no endpoints). */
  readonly plaintext: boolean;
  /** Headless services only: sorted, distinct addresses, including those that are not ready. */
  readonly addresses: readonly string[];
  /** How many more there are: too many to listen at. Absent: none. */
  readonly ignoredAddresses?: number;
  /** DNS services only: the endpoints, which are inside the cluster itself. */
  readonly dnsEndpoints: readonly Endpoint[];
  /** Sorted, distinct networks that they are in; absent: they are in none. */
  readonly networks?: readonly string[];
}

/** Endpoints that are draining because of this label get no new requests. */
const drainingLabel = 'istio.io/draining';

export function isDraining({
  health,
  labels,
}: {
  readonly health?: Health | undefined;
  readonly labels: Labels;
}): boolean {
  return health === 'Draining' || (labels[drainingLabel] ?? '') !== '';
}
