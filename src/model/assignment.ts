import type { Endpoint, Health } from './endpoint.ts';
import type { Labels } from './labels.ts';

/** What decides where in an assignment an endpoint stands. */
export interface Placed {
  /** `region/zone/subzone`; empty if unknown. */
  readonly locality: string;
  readonly weight: number;
  readonly labels: Labels;
}

/**
 * An endpoint as assignments have it: what decides in which of them it is, and its two forms. A form is what the encoder
 * made of it, once for all assignments: only the encoder looks into it.
 */
export interface AssignableEndpoint<Form> extends Placed {
  readonly portName: string;
  /** The first address. */
  readonly address: string;
  readonly port: number;
  readonly cluster: string;
  readonly viaClusterMesh: boolean;
  readonly network: string;
  readonly nodeName: string;
  readonly health: Health | undefined;
  /** Whether the address is valid in an assignment: an IP, or the path of a unix socket. */
  readonly sendable: boolean;
  /** The endpoint came from a Kubernetes slice or Pod: in a network, an address serves a port once. */
  readonly fromSlice: boolean;
  readonly plain: Form;
  /** With the mark that selects mutual TLS; the same as `plain` if the peer has none. */
  readonly mtls: Form;
  /** A PeerAuthentication has turned mutual TLS off. */
  readonly disablesMtls: boolean;
}

/** A gateway of another network, in place of the endpoints there: it has a share of their weight, in their locality. */
export type GatewayEndpoint = Endpoint & Placed;

/** The endpoints of a cluster as clients at one place use them: a ClusterLoadAssignment that only needs to be written. */
export interface SettledAssignment<Form> {
  readonly clusterName: string;
  /** In their order; empty if there are no endpoints. */
  readonly localities: readonly SettledLocality<Form>[];
  /**
   * The next priority is used once no healthy endpoint is left of one. Otherwise, Envoy leaves a priority bit by bit, as its
   * share of healthy endpoints falls.
   */
  readonly untilTheLastOne: boolean;
  /** Whether requests may go to any of the endpoints. */
  readonly ready: boolean;
}

/** Endpoints with the same locality and priority. */
export interface SettledLocality<Form> {
  readonly region: string;
  readonly zone: string;
  readonly subzone: string;
  readonly weight: number;
  /** 0 is used first. */
  readonly priority: number;
  /** Of each endpoint, the form in which it is sent: with the mark that selects mutual TLS, or without. */
  readonly endpoints: readonly Form[];
  /** Behind these; all of them with that mark. */
  readonly gateways: readonly GatewayEndpoint[];
}
