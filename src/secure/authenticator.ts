import { createHash } from 'node:crypto';
import type { Authenticate, Caller, Unauthenticated } from '../ads/transport/authentication.ts';
import { Headcount } from '../ads/transport/headcount.ts';
import type { PeerIdentity } from '../ads/types.ts';
import { parseSpiffeId } from '../identity/spiffe.ts';
import { TokenCache, type TokenReview } from './token-cache.ts';

export interface AuthenticatorOptions {
  readonly trustDomain: () => string;
  /** Rejects if the API server cannot be asked; undefined: there is none, and tokens are worth nothing. */
  readonly review: ((token: string) => Promise<TokenReview>) | undefined;
  /** Whether tokens from a cluster of this name are for us; empty: the caller does not say. */
  readonly isOurCluster: (name: string) => boolean;
  /** Milliseconds on a clock that never jumps. */
  readonly now: () => number;
  /** Wall clock, for the expiry of tokens. */
  readonly date: () => Date;
}

/** Reviews at a time, and how many more may wait; half of them for one address. */
const [AT_ONCE, WAITING] = [20, 2_000];

/**
 * Who a caller is: by its client certificate, or else by its token. Both name a service account. The trust domain of a
 * certificate must be the mesh's own; aliases do not count, as in Istio.
 */
export function createAuthenticator(options: AuthenticatorOptions): Authenticate {
  const cache = new TokenCache({ now: options.now, date: options.date });
  const reviews = new Reviews(options, cache);
  return async (caller) => {
    const { certificate } = caller;
    switch (certificate.kind) {
      case 'valid':
        return ofCertificate(certificate.names, options.trustDomain());
      case 'invalid':
        return nobody('certificate', `the client certificate is not accepted (${certificate.problem})`);
      case 'none':
        return ofToken(caller, options, reviews);
    }
  };
}

function ofCertificate(names: readonly string[], trustDomain: string): PeerIdentity | Unauthenticated {
  const uris = names.filter((name) => name.startsWith('URI:'));
  const [uri = ''] = uris;
  const found = uris.length === 1 ? parseSpiffeId(uri.slice('URI:'.length)) : undefined;
  if (found === undefined) return nobody('certificate', 'the client certificate must name one SPIFFE identity');
  if (found.trustDomain !== trustDomain)
    return nobody('trust_domain', 'the client certificate is of another trust domain');
  return found;
}

async function ofToken(
  { address, token, cluster }: Caller,
  { review, isOurCluster, trustDomain }: AuthenticatorOptions,
  reviews: Reviews,
): Promise<PeerIdentity | Unauthenticated> {
  if (token === undefined) return nobody('none', 'neither a client certificate nor a token was presented');
  if (review === undefined) return nobody('token', 'tokens are not accepted here; present a client certificate');
  if (!isOurCluster(cluster)) return nobody('cluster', 'the token is of a cluster that is not known');
  const found = await reviews.of(token, address);
  if (found === 'busy') return { code: 'UNAVAILABLE', reason: 'busy', message: 'too many tokens wait to be reviewed' };
  if (found === 'unavailable')
    return { code: 'UNAVAILABLE', reason: 'api_server', message: 'the API server cannot review the token now' };
  const account = found.kind === 'valid' ? accountOf(found) : undefined;
  return account === undefined
    ? nobody('token', 'the token is not accepted')
    : { trustDomain: trustDomain(), ...account };
}

/** `system:serviceaccount:namespace:name` */
function accountOf({ username, groups }: Extract<TokenReview, { kind: 'valid' }>) {
  const [system, kind, namespace = '', serviceAccount = '', ...more] = username.split(':');
  const isAccount = system === 'system' && kind === 'serviceaccount' && more.length === 0;
  if (!isAccount || namespace === '' || serviceAccount === '' || !groups.includes('system:serviceaccounts'))
    return undefined;
  return { namespace, serviceAccount };
}

const nobody = (reason: string, message: string): Unauthenticated => ({ code: 'UNAUTHENTICATED', reason, message });

/** Asks the API server about tokens, each once at a time. */
class Reviews {
  readonly #options: AuthenticatorOptions;
  readonly #cache: TokenCache;
  readonly #underWay = new Map<string, Promise<TokenReview | 'unavailable'>>();
  readonly #line: (() => void)[] = [];
  readonly #callers = new Headcount(AT_ONCE + WAITING);
  #running = 0;

  constructor(options: AuthenticatorOptions, cache: TokenCache) {
    this.#options = options;
    this.#cache = cache;
  }

  async of(token: string, address: string): Promise<TokenReview | 'busy' | 'unavailable'> {
    // The tokens themselves are not kept.
    const key = createHash('sha256').update(token).digest('base64');
    const known = this.#cache.fresh(key);
    if (known !== undefined) return known;
    const running = this.#underWay.get(key);
    if (running !== undefined) return running;
    if (this.#callers.enter(address) !== undefined) return this.#cache.stale(key) ?? 'busy';
    const review = this.#review(key, token).finally(() => {
      this.#underWay.delete(key);
      this.#callers.leave(address);
    });
    this.#underWay.set(key, review);
    return review;
  }

  async #review(key: string, token: string): Promise<TokenReview | 'unavailable'> {
    if (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#line.push(resolve));
    this.#running++;
    try {
      const found = await this.#options.review!(token);
      this.#cache.add(key, found, token);
      return found;
    } catch {
      // What was valid stays so until it expires.
      return this.#cache.stale(key) ?? 'unavailable';
    } finally {
      this.#running--;
      this.#line.shift()?.();
    }
  }
}
