import type { Clock } from '../base/clock.ts';
import type { Credential, CredentialKey, CredentialPart } from '../model/credential.ts';
import { type Entries, type Read, readCredential } from './read-credential.ts';

export interface CredentialStoreOptions {
  /** Called whenever something about an object changes, or with undefined when nobody needs it any more. */
  readonly write: (key: CredentialKey, credential: Credential | undefined) => void;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface Part<Content> extends CredentialPart<Content> {
  readonly expires?: Date;
}

interface Stored {
  readonly exists: boolean;
  readonly grants: readonly string[];
  readonly pair: Part<NonNullable<Credential['pair']['content']>>;
  readonly roots: Part<NonNullable<Credential['roots']['content']>>;
}

/** Milliseconds between two looks at what has expired. */
const EXPIRY_CHECK = 60 * 60_000;

/**
 * What the Secrets and ConfigMaps that proxies need contain. Content that was good stays in use, whatever becomes of
 * its object, until it is no longer needed or this process ends: proxies keep what they have in any case, and one that
 * starts anew should get the same.
 */
export class CredentialStore {
  readonly #options: CredentialStoreOptions;
  readonly #stored = new Map<CredentialKey, Stored>();

  constructor(options: CredentialStoreOptions) {
    this.#options = options;
    this.#checkLater();
  }

  /** Whether anything has been said about the object. */
  has(key: CredentialKey): boolean {
    return this.#stored.has(key);
  }

  /** What the object contains now; undefined: it does not exist. `grants`: see {@link Credential}. */
  found(key: CredentialKey, entries: Entries | undefined, grants: readonly string[] = []): void {
    if (entries === undefined) {
      this.#failed(key, 'does not exist', false);
      return;
    }
    const before = this.#stored.get(key);
    const { pair, roots } = readCredential(entries);
    this.#put(key, {
      exists: true,
      grants,
      pair: this.#partOf(pair, before?.pair),
      roots: this.#partOf(roots, before?.roots),
    });
  }

  /** The object may exist, but cannot be read. */
  failed(key: CredentialKey, problem: string): void {
    this.#failed(key, problem, true);
  }

  /** Nobody needs it any more. */
  forget(key: CredentialKey): void {
    if (this.#stored.delete(key)) this.#options.write(key, undefined);
  }

  #failed(key: CredentialKey, problem: string, exists: boolean): void {
    const { grants = [], pair = {}, roots = {} }: Partial<Stored> = this.#stored.get(key) ?? {};
    const hasContent = pair.content !== undefined || roots.content !== undefined;
    this.#put(key, { exists: exists || hasContent, grants, pair: { ...pair, problem }, roots: { ...roots, problem } });
  }

  #partOf<Content>(read: Read<Content>, before: Part<Content> | undefined): Part<Content> {
    if ('content' in read) return this.#looked(read);
    return { ...before, problem: read.problem };
  }

  #looked<P extends Part<unknown>>(part: P): P {
    const { expires, problem } = part;
    if (expires === undefined || problem !== undefined || expires > this.#options.clock.date()) return part;
    return { ...part, problem: `has a certificate that expired at ${expires.toISOString()}` };
  }

  #checkLater(): void {
    const { clock, signal } = this.#options;
    if (signal.aborted) return;
    const cancel = clock.after(EXPIRY_CHECK, () => {
      signal.removeEventListener('abort', cancel);
      for (const [key, { exists, grants, pair, roots }] of this.#stored)
        this.#put(key, { exists, grants, pair: this.#looked(pair), roots: this.#looked(roots) });
      this.#checkLater();
    });
    signal.addEventListener('abort', cancel, { once: true });
  }

  #put(key: CredentialKey, stored: Stored): void {
    const before = this.#stored.get(key);
    this.#stored.set(key, stored);
    const [was, is] = [before && credentialOf(before), credentialOf(stored)];
    if (JSON.stringify(was) !== JSON.stringify(is)) this.#options.write(key, is);
  }
}

function credentialOf({ exists, grants, pair, roots }: Stored): Credential {
  return { exists, ...(grants.length > 0 && { grants }), pair: partOf(pair), roots: partOf(roots) };
}

function partOf<Content>({ content, problem }: Part<Content>): CredentialPart<Content> {
  return { ...(content !== undefined && { content }), ...(problem !== undefined && { problem }) };
}
