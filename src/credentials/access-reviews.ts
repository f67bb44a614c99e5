import type { Clock } from '../base/clock.ts';
import { FreshAnswers } from '../base/fresh-answers.ts';
import { type Account, type AccountKey, parseAccountKey } from '../model/credential.ts';

export interface AccessReviewsOptions {
  /** Whether a service account may read the Secrets of its namespace. Rejects if that cannot be found out now. */
  readonly review: (account: Account) => Promise<boolean>;
  /** Called when an answer changes, or with undefined when nobody needs it any more. */
  readonly write: (account: AccountKey, answer: { readonly allowed: boolean } | undefined) => void;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Milliseconds: rights that are granted or taken have an effect within a minute. */
const REFRESH = 50_000;
const RETRY = 2_000;
const AT_ONCE = 8;

/** Which service accounts may have Secrets, kept up to date. While it cannot be found out, the last answer counts. */
export class AccessReviews {
  readonly #answers: FreshAnswers<AccountKey, { readonly allowed: boolean }>;

  constructor({ review, ...options }: AccessReviewsOptions) {
    this.#answers = new FreshAnswers({
      ...options,
      ask: async (account) => ({ answer: { allowed: await review(parseAccountKey(account)) }, again: REFRESH }),
      failed: (_, { answer }) => answer,
      retry: { first: RETRY, longest: RETRY },
      isSame: () => true,
      atOnce: AT_ONCE,
      clientOf: (account) => account,
    });
  }

  want(account: AccountKey): void {
    this.#answers.want(account, account);
  }

  unwant(account: AccountKey): void {
    this.#answers.unwant(account);
  }
}
