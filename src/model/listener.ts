import type { ObjectRef } from '../api/object.ts';
import { type Aged, compareAge } from './age.ts';
import type { ListenerSettings } from './mesh-config.ts';
import type { Protocol } from './service.ts';
import type { Traits } from './traits.ts';

/**
 * What one service port asks of the listener at an address and port. Claims are plain data: two services that ask for
 * the same thing make equal claims.
 */
export type ListenerClaim = HttpClaim | L4Claim;

interface ClaimOfBind {
  readonly bind: Bind;
  readonly port: number;
}

export interface Bind {
  /** The first one names the listener; others are of the other IP family. `unix://path` for a socket. */
  readonly addresses: readonly [string, ...string[]];
  /** Whether the listener really binds its port; otherwise it receives redirected connections. */
  readonly toPort: boolean;
}

/** The host tells requests apart, so all HTTP services on a port make the same claim. */
export interface HttpClaim extends ClaimOfBind {
  readonly kind: 'http';
  /** Name of the route table. */
  readonly routes: string;
  readonly grpcWeb: boolean;
  /** `protocol: HTTP_PROXY` of a Sidecar: no other protocol is detected. */
  readonly proxy: boolean;
  /** Host of a DYNAMIC_DNS ServiceEntry, whose requests need a filter. */
  readonly dynamicHost?: string;
}

/**
 * Connections to one service. A sniffed port also serves HTTP, with its own route table unless the bind is a wildcard.
 */
export interface L4Claim extends ClaimOfBind {
  readonly kind: 'tcp' | 'sniffed';
  readonly protocol: Protocol;
  /** For explanations, and for notifying the loser of a conflict. */
  readonly host: string;
  readonly namespace: string;
  readonly origins: readonly ObjectRef[];
  /** Name of the route table of a sniffed port; empty otherwise. */
  readonly routes: string;
  readonly chains: readonly L4Chain[];
}

/** Where matching connections go. */
export interface L4Chain {
  /** Server names; empty or with `*`: any. */
  readonly serverNames: readonly string[];
  /** Destination addresses and ranges; empty: any. */
  readonly subnets: readonly string[];
  readonly target: L4Target;
  /** The object that decided. */
  readonly route?: { readonly ref: ObjectRef };
}

export interface L4Target {
  /** With several clusters, or with one left from a list of several, weights apply. */
  readonly clusters: readonly { readonly name: string; readonly weight: number }[];
  readonly weighted: boolean;
  readonly statPrefix: string;
  readonly protocol: Protocol;
  /** Milliseconds, from the DestinationRule. */
  readonly idleTimeout?: number;
  readonly maxConnectionDuration?: number;
  readonly hashSourceIp: boolean;
  readonly tunnel?: { readonly hostname: string; readonly usePost: boolean };
  /** Host of a DYNAMIC_DNS ServiceEntry: Envoy resolves the server name. */
  readonly dynamicHost?: string;
  /** Its port. */
  readonly dynamicPort?: number;
  readonly origins: readonly ObjectRef[];
}

/** A claim with what decides between it and others: the rank of the service that makes it, then its age. */
export interface AgedClaim {
  /** See {@link exportRank}; at an address, a public ServiceEntry ranks after these, and a Service of another cluster last. */
  readonly rank: number;
  readonly age: Aged;
  readonly claim: ListenerClaim;
}

/** The result of the claims for one address and port. */
export interface ResolvedListener {
  readonly bind: Bind;
  readonly port: number;
  readonly chains: readonly OutboundChain[];
  readonly conflicts: readonly ListenerConflict[];
}

export interface OutboundChain {
  /** Empty, or with `*`: any. */
  readonly serverNames: readonly string[];
  readonly subnets: readonly string[];
  /** Only connections that start like plaintext HTTP. */
  readonly plaintextHttp: boolean;
  readonly serves:
    | { readonly kind: 'http'; readonly claim: Pick<HttpClaim, 'routes' | 'grpcWeb' | 'dynamicHost'> }
    | { readonly kind: 'l4'; readonly chain: L4Chain };
}

/** A claim that loses its place to an older one, in whole or in part. */
export interface ListenerConflict {
  readonly loser: L4Claim;
  /** Host of the service that has the place; empty for HTTP services, which share theirs. */
  readonly winner: string;
}

/** `0.0.0.0_80`: the name of a listener, and the key under which claims meet. */
export function listenerName({
  bind,
  port,
}: {
  readonly bind: Pick<Bind, 'addresses'>;
  readonly port: number;
}): string {
  return `${bind.addresses[0]}_${port}`;
}

/** By rank, then oldest first; the sort is stable, so claims of one service keep their order. */
export function sortClaims(claims: readonly AgedClaim[]): AgedClaim[] {
  return [...claims].sort((a, b) => a.rank - b.rank || compareAge(a.age, b.age));
}

/**
 * Removes claims that change nothing: on one listener, HTTP after HTTP. What a thousand HTTP services ask of one port
 * becomes one claim, with the age of the oldest. The claims are for one listener, oldest first; the results for two
 * lists may be merged by age and summarised again.
 */
export function summariseClaims(claims: readonly AgedClaim[]): readonly AgedClaim[] {
  let seen = false;
  return claims.filter(({ claim }) => {
    if (claim.kind !== 'http') return true;
    const needed = claim.proxy || !seen;
    seen = true;
    return needed;
  });
}

/** The port on which clients find their HTTP proxy. 0: none. */
export function httpProxyPort(
  traits: Pick<Traits, 'httpProxyPort'>,
  { proxyHttpPort, proxyListenPort }: Pick<ListenerSettings, 'proxyHttpPort' | 'proxyListenPort'>,
): number {
  return proxyListenPort > 0 ? traits.httpProxyPort || proxyHttpPort : 0;
}
