import { isObject } from '../api/json.ts';

/** What an API server says about a token: whose it is. */
export type TokenReview =
  | { readonly kind: 'valid'; readonly namespace: string; readonly serviceAccount: string }
  | { readonly kind: 'invalid' };

/** Milliseconds for which an answer is used without asking again. */
const VALID_MS = 60_000;
const INVALID_MS = 10_000;

export interface TokenCacheOptions {
  /** Valid tokens that are kept, and as many others. */
  readonly most: number;
  /** Milliseconds on a clock that never jumps. */
  readonly now: () => number;
  /** Wall clock, for the expiry of tokens. */
  readonly date: () => Date;
}

interface Entry {
  readonly review: TokenReview;
  /** On the clock that never jumps. */
  readonly freshUntil: number;
  /** On the wall clock; a token is valid until then at most. */
  readonly expiresAt: number;
}

/** What is known about tokens, by hash. The oldest entries of a kind go first: bad tokens never displace good ones. */
export class TokenCache {
  readonly #entries = { valid: new Map<string, Entry>(), invalid: new Map<string, Entry>() };
  readonly #options: TokenCacheOptions;

  constructor(options: TokenCacheOptions) {
    this.#options = options;
  }

  add(key: string, review: TokenReview, token: string): void {
    for (const entries of Object.values(this.#entries)) entries.delete(key);
    const entries = this.#entries[review.kind];
    const freshFor = review.kind === 'valid' ? VALID_MS : INVALID_MS;
    entries.set(key, { review, freshUntil: this.#options.now() + freshFor, expiresAt: expiryOf(token) });
    for (const oldest of entries.keys()) {
      if (entries.size <= this.#options.most) break;
      entries.delete(oldest);
    }
  }

  /** An answer that need not be asked for again. */
  fresh(key: string): TokenReview | undefined {
    const entry = this.#entries.valid.get(key) ?? this.#entries.invalid.get(key);
    return entry !== undefined && this.#options.now() < entry.freshUntil ? this.#unexpired(entry) : undefined;
  }

  /** A token that was valid, and has not expired. */
  stale(key: string): TokenReview | undefined {
    const entry = this.#entries.valid.get(key);
    return entry && this.#unexpired(entry);
  }

  #unexpired({ review, expiresAt }: Entry): TokenReview | undefined {
    return review.kind === 'invalid' || this.#options.date().getTime() < expiresAt ? review : undefined;
  }
}

/** The `exp` claim, in milliseconds. It was verified together with the token; a token without one expires at once. */
function expiryOf(token: string): number {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
    const exp = isObject(payload) ? payload['exp'] : undefined;
    return typeof exp === 'number' ? exp * 1000 : 0;
  } catch {
    return 0;
  }
}
