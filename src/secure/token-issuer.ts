import type { TokenReview } from './token-cache.ts';

/**
 * A cluster as the one who issued a token. What is known about tokens belongs to this object: a new connection to the
 * cluster is another one, and knows nothing yet.
 */
export interface TokenIssuer {
  readonly cluster: string;
  /** By the API server of this cluster. Rejects if it does not say. */
  readonly review: (token: string) => Promise<TokenReview>;
}

/** Clusters whose tokens are accepted. */
export interface TokenIssuers {
  /** By its id. `unread`: the cluster is known, but what is there is not served yet. */
  issuerOf(cluster: string): TokenIssuer | 'unread' | undefined;
}
