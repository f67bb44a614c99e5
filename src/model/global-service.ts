import type { Transport } from '../api/core.ts';

/**
 * Pairs of address and port of the frontends, or the back ends, of one service. As text they take about what an etcd takes
 * as one value; what has more is neither written nor read.
 */
export const MOST_GLOBAL_ENDPOINTS = 40_000;

/** A Service of this cluster as the other clusters of a ClusterMesh are to know it. Addresses are canonical. */
export interface GlobalService {
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly selector: Readonly<Record<string, string>>;
  /** Its own addresses; none if it is headless. */
  readonly frontends: readonly GlobalAddress[];
  /** By address. */
  readonly backends: readonly GlobalBackend[];
}

export interface GlobalAddress {
  readonly address: string;
  /** By name. */
  readonly ports: readonly NamedPort[];
}

export interface GlobalBackend extends GlobalAddress {
  /** Of a Pod of a StatefulSet. */
  readonly hostname?: string;
  readonly zone?: string;
  /** Clients of these zones are to use it; absent: it does not say. */
  readonly forZones?: readonly string[];
}

export interface NamedPort {
  /** Empty if it is the only one. */
  readonly name: string;
  readonly port: number;
  readonly protocol: Transport;
}
