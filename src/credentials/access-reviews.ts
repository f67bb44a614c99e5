import type { Clock } from '../base/clock.ts';
import { type Account, type AccountKey, parseAccountKey } from '../model/credential.ts';

export interface AccessReviewsOptions {
  /** Whether a service account may read the Secrets of its namespace. Rejects if that cannot be found out now. */
  readonly review: (account: Account) => Promise<boolean>;
  /** Called when an answer changes; undefined: nobody needs it any more. */
  readonly write: (account: AccountKey, answer: { readonly allowed: boolean } | undefined) => void;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Milliseconds: rights that are granted or taken have an effect within a minute. */
const REFRESH = 50_000;
const RETRY = 2_000;
/** Reviews at a time. Others wait in line. */
const AT_ONCE = 8;

interface Entry {
  readonly account: AccountKey;
  allowed: boolean | undefined;
  cancel: () => void;
}

/** Which service accounts may have Secrets, kept up to date. While it cannot be found out, the last answer counts. */
export class AccessReviews {
  readonly #options: AccessReviewsOptions;
  readonly #entries = new Map<AccountKey, Entry>();
  readonly #line = new Set<Entry>();
  #running = 0;

  constructor(options: AccessReviewsOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => {
      for (const { account } of [...this.#entries.values()]) this.#drop(account);
    });
  }

  want(account: AccountKey): void {
    if (this.#options.signal.aborted || this.#entries.has(account)) return;
    const entry: Entry = { account, allowed: undefined, cancel: () => undefined };
    this.#entries.set(account, entry);
    this.#enqueue(entry);
  }

  unwant(account: AccountKey): void {
    if (this.#drop(account)) this.#options.write(account, undefined);
  }

  #drop(account: AccountKey): boolean {
    const entry = this.#entries.get(account);
    if (entry === undefined) return false;
    entry.cancel();
    this.#line.delete(entry);
    return this.#entries.delete(account);
  }

  #enqueue(entry: Entry): void {
    this.#line.add(entry);
    this.#next();
  }

  #next(): void {
    for (const entry of this.#line) {
      if (this.#running >= AT_ONCE) return;
      this.#line.delete(entry);
      this.#running++;
      void this.#review(entry).finally(() => {
        this.#running--;
        this.#next();
      });
    }
  }

  /** Never rejects. */
  async #review(entry: Entry): Promise<void> {
    const { review, write, clock, random } = this.#options;
    const allowed = await review(parseAccountKey(entry.account)).catch(() => undefined);
    // It was given up meanwhile.
    if (this.#entries.get(entry.account) !== entry) return;
    if (allowed !== undefined && allowed !== entry.allowed) {
      entry.allowed = allowed;
      write(entry.account, { allowed });
    }
    const delay = allowed === undefined ? RETRY : REFRESH;
    entry.cancel = clock.after(delay * (0.9 + 0.2 * random()), () => this.#enqueue(entry));
  }
}
