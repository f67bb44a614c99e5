import type { Authenticate, Caller, Unauthenticated } from '../ads/transport/authentication.ts';
import type { ClientCertificate } from '../ads/transport/secure-port.ts';
import type { PeerIdentity } from '../ads/types.ts';
import { parseSpiffeId } from '../identity/spiffe.ts';
import { Reviews } from './reviews.ts';
import type { TokenIssuer, TokenIssuers } from './token-issuer.ts';

export interface AuthenticatorOptions {
  /** Id of the cluster in which this runs. */
  readonly clusterId: string;
  /** Ids of clusters by their other names. */
  readonly aliases: Readonly<Record<string, string>>;
  /** The trust domain of a cluster's accounts; undefined: the cluster is not served, or not yet. */
  readonly trustDomainOf: (cluster: string) => string | undefined;
  /** Issues the tokens of the own cluster, or undefined if there is no API server, and no such token is accepted. */
  readonly own: TokenIssuer | undefined;
  /** Issue the tokens of other clusters. */
  readonly others: TokenIssuers;
  /** Milliseconds on a clock that never jumps. */
  readonly now: () => number;
  /** Wall clock, for the expiry of tokens. */
  readonly date: () => Date;
}

/** How many answers about tokens of the own cluster are kept, and of each other cluster: there may be a hundred. */
const [MOST_OF_OWN, MOST_OF_OTHERS] = [20_000, 4_000];

/**
 * Who a caller is: by its client certificate, or else by its token. Both name a service account and its cluster.
 *
 * A token proves an account of the cluster that the caller names, if the API server of that cluster says so; no other API
 * server is asked. A certificate must have the trust domain of its cluster; aliases do not count, as in Istio.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  const { clusterId, now, date } = options;
  const known = new WeakMap<TokenIssuer, Reviews>();
  const reviewsOf = (issuer: TokenIssuer): Reviews => {
    const most = issuer.cluster === clusterId ? MOST_OF_OWN : MOST_OF_OTHERS;
    const reviews = known.get(issuer) ?? new Reviews({ issuer, most, now, date });
    known.set(issuer, reviews);
    return reviews;
  };
  return async (caller) => {
    const { certificate } = caller;
    switch (certificate.kind) {
      case 'valid':
        return ofCertificate(certificate, options);
      case 'invalid':
        return nobody('certificate', `the client certificate is not accepted (${certificate.problem})`);
      case 'none':
        return ofToken(caller, options, reviewsOf);
    }
  };
}

/** The organizational unit in certificates of accounts in other clusters: see {@link clusterIn}. */
export function unitOf(cluster: string, clusterId: string): string | undefined {
  return cluster === clusterId ? undefined : cluster;
}

/** No namespace has a space in its name, so none is the tenant that stands for a cluster. */
function tenantOf(namespace: string, cluster: string, clusterId: string): string {
  return cluster === clusterId ? namespace : `cluster ${cluster}`;
}

/** A certificate without a unit belongs to the own cluster, or another authority below the same root has signed it. */
function clusterIn([unit, ...more]: readonly string[], clusterId: string): string | undefined {
  return more.length === 0 ? (unit ?? clusterId) : undefined;
}

function ofCertificate(
  { names, units }: Extract<ClientCertificate, { kind: 'valid' }>,
  { clusterId, trustDomainOf }: AuthenticatorOptions,
): PeerIdentity | Unauthenticated {
  const uris = names.filter((name) => name.startsWith('URI:'));
  const [uri = ''] = uris;
  const found = uris.length === 1 ? parseSpiffeId(uri.slice('URI:'.length)) : undefined;
  if (found === undefined) return nobody('certificate', 'the client certificate must name one SPIFFE identity');
  const cluster = clusterIn(units, clusterId);
  const trustDomain = cluster === undefined ? undefined : trustDomainOf(cluster);
  if (cluster === undefined || trustDomain === undefined)
    return nobody('cluster', 'the client certificate is of a cluster that is not known');
  if (found.trustDomain !== trustDomain)
    return nobody('trust_domain', 'the client certificate is of another trust domain');
  return { ...found, cluster, tenant: tenantOf(found.namespace, cluster, clusterId) };
}

async function ofToken(
  { address, token, cluster: name }: Caller,
  { clusterId, aliases, own, others, trustDomainOf }: AuthenticatorOptions,
  reviewsOf: (issuer: TokenIssuer) => Reviews,
): Promise<PeerIdentity | Unauthenticated> {
  if (token === undefined) return nobody('none', 'neither a client certificate nor a token was presented');
  const cluster = name === '' ? clusterId : Object.hasOwn(aliases, name) ? aliases[name]! : name;
  const isOwn = cluster === clusterId;
  const issuer = isOwn ? own : others.issuerOf(cluster);
  if (issuer === undefined)
    return isOwn
      ? nobody('token', 'tokens are not accepted here; present a client certificate')
      : nobody('cluster', 'the token is of a cluster that is not known');
  const trustDomain = issuer === 'unread' ? undefined : trustDomainOf(cluster);
  if (issuer === 'unread' || trustDomain === undefined)
    return later('cluster', 'the cluster of the token has not been read yet');
  const found = await reviewsOf(issuer).of(token, address);
  if (found === 'busy') return later('busy', 'too many tokens wait to be reviewed');
  if (found === 'unavailable')
    return later('api_server', `the API server${isOwn ? '' : ' of its cluster'} cannot review the token now`);
  if (found.kind === 'invalid') return nobody('token', 'the token is not accepted');
  const { namespace, serviceAccount } = found;
  return { trustDomain, namespace, serviceAccount, cluster, tenant: tenantOf(namespace, cluster, clusterId) };
}

const nobody = (reason: string, message: string): Unauthenticated => ({ code: 'UNAUTHENTICATED', reason, message });
const later = (reason: string, message: string): Unauthenticated => ({ code: 'UNAVAILABLE', reason, message });
