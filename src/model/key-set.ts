import type { JwksSource } from './request-authentication.ts';

/** What is known of an issuer's public keys that are fetched. Plain JSON: an input of the graph. */
export interface FetchedKeySet {
  /** The last good key set; undefined: there never was one. */
  readonly jwks?: string;
  /** Why the last attempt failed; undefined: it did not. */
  readonly problem?: string;
  /** RFC 3339: when the key set was last fetched, if the last attempt failed. */
  readonly fetchedAt?: string;
}

/** Rules with the same key share a fetch. */
export function keySetKey({ issuer, uri }: JwksSource): string {
  return uri === '' ? `issuer ${issuer}` : uri;
}
