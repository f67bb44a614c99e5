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
}

/** Nothing is known, or nothing matters. */
export const nowhere: Topology = { locality: '', network: '', cluster: '', nodeName: '', labels: {} };
