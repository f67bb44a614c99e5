import { createHash } from 'node:crypto';
import { Headcount } from '../ads/transport/headcount.ts';
import { FairSemaphore, Permit } from '../base/fair-semaphore.ts';
import { TokenCache, type TokenReview } from './token-cache.ts';
import type { TokenIssuer } from './token-issuer.ts';

export interface ReviewsOptions {
  readonly issuer: TokenIssuer;
  /** How many answers are kept: see `TokenCacheOptions`. */
  readonly most: number;
  /** Milliseconds on a clock that never jumps. */
  readonly now: () => number;
  /** Wall clock. */
  readonly date: () => Date;
}

/** Reviews at a time, and how many more may wait; half of each for one address. Addresses take turns. */
const [AT_ONCE, WAITING] = [20, 2_000];
/** Milliseconds: callers that have waited longer for their turn are told to try again. Agents give up after 20 s. */
const LONGEST_WAIT = 10_000;

/** Asks the API server of one cluster about tokens, each once at a time. */
export class Reviews {
  readonly #options: ReviewsOptions;
  readonly #cache: TokenCache;
  readonly #underWay = new Map<string, Promise<TokenReview | 'unavailable'>>();
  readonly #turns = new FairSemaphore(AT_ONCE);
  readonly #callers = new Headcount(AT_ONCE + WAITING);

  constructor(options: ReviewsOptions) {
    this.#options = options;
    this.#cache = new TokenCache(options);
  }

  async of(token: string, address: string): Promise<TokenReview | 'busy' | 'unavailable'> {
    // The tokens themselves are not kept.
    const key = createHash('sha256').update(token).digest('base64');
    const known = this.#cache.fresh(key);
    if (known !== undefined) return known;
    const running = this.#underWay.get(key);
    if (running !== undefined) return running;
    if (this.#callers.enter(address) !== undefined) return this.#cache.stale(key) ?? 'busy';
    const review = this.#review(key, token, address).finally(() => {
      this.#underWay.delete(key);
      this.#callers.leave(address);
    });
    this.#underWay.set(key, review);
    return review;
  }

  async #review(key: string, token: string, address: string): Promise<TokenReview | 'unavailable'> {
    const { issuer, now } = this.#options;
    const began = now();
    const turn = new Permit(this.#turns, address);
    await new Promise<void>((resolve) => turn.take(resolve));
    try {
      if (now() - began > LONGEST_WAIT) return this.#cache.stale(key) ?? 'unavailable';
      const found = await issuer.review(token);
      this.#cache.add(key, found, token);
      return found;
    } catch {
      // What was valid stays so until it expires.
      return this.#cache.stale(key) ?? 'unavailable';
    } finally {
      turn.leave();
    }
  }
}
