import type { Labels } from './labels.ts';

/** `Terminating` endpoints are never sent. */
export type Health = 'Healthy' | 'UnHealthy' | 'Draining' | 'Terminating';

/** An address that serves one port of a service. */
export interface Endpoint {
  /** First one is the address; further ones are the same endpoint in other IP families. A path for a unix socket (port 0). */
  readonly addresses: readonly string[];
  readonly port: number;
  /** Name of the service port that it serves. */
  readonly portName: string;
  /** Number of that port in its ServiceEntry. Several of one host may have one name for different numbers. */
  readonly servicePort?: number;
  /** Absent where Istio sets none: inline endpoints and WorkloadEntries. */
  readonly health?: Health;
  readonly labels: Labels;
  /** `region/zone/subzone`; empty when unknown. */
  readonly locality: string;
  readonly network: string;
  readonly cluster: string;
  /** SPIFFE id; empty without a service account. */
  readonly identity: string;
  /** `istio` when the peer's proxy terminates mutual TLS, else `disabled`. */
  readonly tlsMode: 'istio' | 'disabled';
  /** Absent counts as 1. */
  readonly weight?: number;
  /** Name and namespace of the workload, for telemetry. */
  readonly workload: string;
  readonly namespace: string;
  readonly nodeName: string;
}

/** What runs behind an address: a Pod or a WorkloadEntry. */
export interface Workload {
  readonly kind: 'Pod' | 'WorkloadEntry';
  readonly namespace: string;
  readonly name: string;
  readonly addresses: readonly string[];
  /** Labels with topology (region, zone, cluster, node name, network) added. */
  readonly labels: Labels;
  readonly identity: string;
  readonly tlsMode: 'istio' | 'disabled';
  readonly locality: string;
  readonly network: string;
  readonly nodeName: string;
  /** Name of the workload that owns it (Deployment, CronJob, ...). */
  readonly workload: string;
  /** Container ports by name (Pod), or ports by name (WorkloadEntry). */
  readonly ports: Readonly<Record<string, number>>;
  /** WorkloadEntry. */
  readonly weight?: number;
  /** Only ready Pods and healthy WorkloadEntries are endpoints of a ServiceEntry. */
  readonly ready: boolean;
}

/** What clusters and listeners need to know of the endpoints of a service. Changes rarely while endpoints come and go. */
export interface EndpointSummary {
  /** Sorted, distinct SPIFFE ids. */
  readonly identities: readonly string[];
  /** Whether any endpoint has no mutual TLS (or there is none at all). */
  readonly plaintext: boolean;
  /** Headless services only: sorted distinct addresses, those not ready included. */
  readonly addresses: readonly string[];
  /** DNS services only: the endpoints, which stand in the cluster itself. */
  readonly dnsEndpoints: readonly Endpoint[];
}

/** Endpoints that are leaving by this label get no new requests. */
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
