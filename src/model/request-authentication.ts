import type { PolicyObject } from './policy-target.ts';
import type { Source } from './provenance.ts';

/** A RequestAuthentication. */
export interface RequestAuthenticationModel extends PolicyObject {
  readonly rules: readonly JwtRule[];
}

/** An issuer whose tokens are accepted. */
export interface JwtRule {
  /** Where it is in the object. */
  readonly field: string;
  readonly issuer: string;
  readonly audiences: readonly string[];
  readonly keys: JwtKeys;
  readonly fromHeaders: readonly { readonly name: string; readonly prefix: string }[];
  readonly fromParams: readonly string[];
  readonly fromCookies: readonly string[];
  readonly outputPayloadToHeader: string;
  readonly forwardOriginalToken: boolean;
  readonly outputClaimToHeaders: readonly { readonly header: string; readonly claim: string }[];
  readonly spaceDelimitedClaims: readonly string[];
  /** A request without a token is refused. */
  readonly required: boolean;
}

/**
 * Whether the workload may only be given requests that the rule has seen: it refuses those without a token, or writes
 * headers that the workload believes.
 */
export function mustSeeRequests(rule: JwtRule): boolean {
  return rule.required || writtenHeaders(rule).length > 0;
}

/** The headers that the rule writes, as their owner spells them. */
export function writtenHeaders({ outputPayloadToHeader, outputClaimToHeaders }: JwtRule): readonly string[] {
  const ofClaims = outputClaimToHeaders.map(({ header }) => header);
  return outputPayloadToHeader === '' ? ofClaims : [outputPayloadToHeader, ...ofClaims];
}

/** An issuer with the keys by which its tokens are verified. */
export interface JwtIssuer {
  readonly rule: JwtRule;
  /** A key set; undefined: no token is accepted. */
  readonly jwks: string | undefined;
  readonly source: Source;
}

/** Issuers that look for tokens in the same places, and in no others. */
export interface TokenCheck {
  /** Their rules name these places only, and write nothing. */
  readonly issuers: readonly JwtIssuer[];
}

/** Where an issuer's public keys are. */
export type JwtKeys =
  | { readonly kind: 'inline'; readonly jwks: string }
  | { readonly kind: 'fetched'; readonly source: JwksSource }
  /** They cannot be read: no token is accepted. */
  | { readonly kind: 'none' };

export interface JwksSource {
  readonly issuer: string;
  /** Empty: found by OpenID discovery at the issuer. */
  readonly uri: string;
  /** Milliseconds for one fetch. */
  readonly timeout: number;
}
