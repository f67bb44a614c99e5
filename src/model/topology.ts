import type { Labels } from './labels.ts';

/** From where a proxy looks at endpoints. Only assignments that prefer near endpoints, or hide far ones, depend on it. */
export interface Topology {
  /** `region/zone/subzone`; empty when unknown. */
  readonly locality: string;
  readonly network: string;
  readonly cluster: string;
  /** Node of the proxy; empty when unknown. */
  readonly nodeName: string;
  /** Those labels of the proxy that a failover priority names, topology labels included. */
  readonly labels: Labels;
}
