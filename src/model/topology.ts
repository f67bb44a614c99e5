import type { Labels } from './labels.ts';

/**
 * The place from which a proxy sees endpoints. Only assignments that prefer near endpoints, or hide far ones, depend on
 * it.
 */
export interface Topology {
  /** `region/zone/subzone`; empty if unknown. */
  readonly locality: string;
  readonly network: string;
  readonly cluster: string;
  /** The proxy's node; empty if unknown. */
  readonly nodeName: string;
  /** The proxy's labels that a failover priority names, including topology labels. */
  readonly labels: Labels;
  /** Which gateways of networks the proxy can reach; absent: those with IPv4 addresses. */
  readonly ipFamily?: 'v6' | 'dual';
  /** Only endpoints in these networks, or in none, are for the proxy; absent: all. */
  readonly requestedNetworks?: readonly string[];
}

/** Nothing is known, or nothing matters. */
export const nowhere: Topology = { locality: '', network: '', cluster: '', nodeName: '', labels: {} };
