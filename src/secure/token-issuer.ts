import type { TokenReview } from './token-cache.ts';

/**
 * The cluster that issued a token. Answers about tokens are kept per object: a new connection to the cluster is another
 * object, for which none are known yet.
 */
export interface TokenIssuer {
  readonly cluster: string;
  /** Asks the API server of this cluster. Rejects if it does not answer. */
  readonly review: (token: string) => Promise<TokenReview>;
}

/** Clusters whose tokens are accepted. */
export interface TokenIssuers {
  /** By its id. `unread`: the cluster is known, but what is there is not served yet. */
  issuerOf(cluster: string): TokenIssuer | 'unread' | undefined;
}
