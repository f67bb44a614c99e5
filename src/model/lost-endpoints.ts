import type { TargetRef } from '../api/core.ts';

/** On a Service: endpoints that were lost before this time (RFC 3339) are not held any longer. */
export const RELEASE_ANNOTATION = 'fairlead.dev/release-endpoints';

/** What one object (EndpointSlice, Endpoints) listed, until a list of the API server had none of it for the Service. */
export interface LostEndpoints {
  readonly namespace: string;
  /** Name of the Service. */
  readonly service: string;
  /** From an object of kind Endpoints, which counts only for Services without slices. */
  readonly legacy: boolean;
  readonly endpoints: readonly LostEndpoint[];
}

/** An endpoint that was ready. */
export interface LostEndpoint {
  readonly address: string;
  readonly ports: readonly { readonly name?: string; readonly port?: number }[];
  readonly pod: Required<Pick<TargetRef, 'namespace' | 'name' | 'uid'>>;
  /** RFC 3339: when the list without it was complete, and when it is forgotten. */
  readonly since: string;
  readonly until: string;
  /** The API server has sent something new about Pods since. */
  readonly confirmed: boolean;
}
