import { isObject } from '../api/json.ts';
import { type Clock } from '../base/clock.ts';
import type { FetchedKeySet } from '../model/key-set.ts';
import type { JwksSource } from '../model/request-authentication.ts';
import { FairSemaphore, Permit } from '../base/fair-semaphore.ts';
import { readKeySet } from '../reconcilers/security/key-set.ts';
import { FetchError } from './fetch-text.ts';

export interface KeySetsOptions {
  /** Rejects when the signal fires. */
  readonly fetchText: (
    url: string,
    options: { readonly signal: AbortSignal; readonly mostBytes: number },
  ) => Promise<string>;
  /** Called whenever something about a source changes; undefined if it is no longer wanted. */
  readonly write: (key: string, found: FetchedKeySet | undefined) => void;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  readonly signal: AbortSignal;
}

/** Milliseconds between two fetches of a key set; as in Istio. */
const REFRESH = 20 * 60_000;
/** After a failure: first and longest delay. */
const [FIRST_RETRY, LONGEST_RETRY] = [1_000, 60 * 60_000];
/** Keys that could not be fetched for so long may have been withdrawn; as in Istio. */
const LONGEST_USE = 7 * 24 * 3_600_000;
/** Fetches at a time; those for one namespace may be half of them. Others wait for their turn. */
const AT_ONCE = 8;
const MOST_BYTES = 256 * 1024;

interface Entry {
  readonly key: string;
  readonly source: JwksSource;
  readonly turn: Permit;
  found: FetchedKeySet;
  /** On the clock; undefined: never. */
  succeededAt: number | undefined;
  failures: number;
  cancel: () => void;
}

/** Keeps the public keys of issuers up to date. A source that fails keeps its last good keys for a week. */
export class KeySets {
  readonly #options: KeySetsOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #turns = new FairSemaphore(AT_ONCE);

  constructor(options: KeySetsOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => {
      const entries = [...this.#entries.values()];
      this.#entries.clear();
      for (const entry of entries) entry.cancel();
    });
  }

  /**
   * A source that is wanted is fetched at once, and then from time to time.
   *
   * @param wanted `namespace`: in whose turns it is fetched.
   */
  want(key: string, { source, namespace }: { readonly source: JwksSource; readonly namespace: string }): void {
    if (this.#options.signal.aborted) return;
    const known = this.#entries.get(key);
    if (known?.source.timeout === source.timeout) return;
    const kept = known ?? { found: {}, succeededAt: undefined, failures: 0 };
    known?.cancel();
    const turn = new Permit(this.#turns, namespace);
    const entry: Entry = { ...kept, key, source, turn, cancel: () => undefined };
    this.#entries.set(key, entry);
    this.#enqueue(entry);
  }

  unwant(key: string): void {
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    entry.cancel();
    this.#entries.delete(key);
    this.#options.write(key, undefined);
  }

  #enqueue(entry: Entry): void {
    const { turn } = entry;
    entry.cancel = () => turn.leave();
    turn.take(() => void this.#fetch(entry).finally(() => turn.leave()));
  }

  /** Never rejects. */
  async #fetch(entry: Entry): Promise<void> {
    const { clock, signal: ended } = this.#options;
    const end = new AbortController();
    const stop = (): void => end.abort();
    const cancelTimer = clock.after(entry.source.timeout, () =>
      end.abort(new FetchError(`no answer within ${entry.source.timeout} ms`)),
    );
    ended.addEventListener('abort', stop);
    entry.cancel = stop;
    const result = await fetchKeySet(entry.source, this.#options.fetchText, end.signal).catch((error: unknown) => ({
      problem: reasonOf(end.signal.aborted ? end.signal.reason : error),
    }));
    cancelTimer();
    ended.removeEventListener('abort', stop);
    // It was given up, or replaced, meanwhile.
    if (ended.aborted || this.#entries.get(entry.key) !== entry) return;
    this.#keep(entry, result);
    const delay = entry.failures === 0 ? REFRESH : Math.min(LONGEST_RETRY, FIRST_RETRY * 2 ** (entry.failures - 1));
    entry.cancel = clock.after(delay * (0.9 + 0.2 * this.#options.random()), () => this.#enqueue(entry));
  }

  #keep(entry: Entry, result: { readonly jwks: string } | { readonly problem: string }): void {
    const { clock, write } = this.#options;
    const before = entry.found;
    if ('jwks' in result) {
      entry.failures = 0;
      entry.succeededAt = clock.now();
      entry.found = { jwks: result.jwks };
    } else {
      entry.failures = Math.min(entry.failures + 1, 30);
      const isKept = entry.succeededAt !== undefined && clock.now() - entry.succeededAt < LONGEST_USE;
      const fetchedAt = before.fetchedAt ?? timeOf(entry.succeededAt, clock);
      entry.found = {
        ...(isKept && before.jwks !== undefined ? { jwks: before.jwks } : {}),
        problem: result.problem,
        ...(fetchedAt === undefined ? {} : { fetchedAt }),
      };
    }
    if (JSON.stringify(before) !== JSON.stringify(entry.found)) write(entry.key, entry.found);
  }
}

function timeOf(at: number | undefined, clock: Clock): string | undefined {
  if (at === undefined) return undefined;
  return new Date(clock.date().getTime() - (clock.now() - at)).toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The public keys of an issuer. Rejects with a {@link FetchError}, or with what the connection failed of. */
export async function fetchKeySet(
  source: JwksSource,
  fetchText: KeySetsOptions['fetchText'],
  signal: AbortSignal,
): Promise<{ readonly jwks: string }> {
  const get = (url: string) => fetchText(url, { signal, mostBytes: MOST_BYTES });
  const uri = source.uri === '' ? discovered(await get(discoveryOf(source.issuer))) : source.uri;
  const found = readKeySet(await get(uri));
  if ('problem' in found) throw new FetchError(`the answer ${found.problem}`);
  // Not all that it contains: whoever reads a proxy's configuration would see what the URL says.
  return { jwks: found.essence };
}

/** Source: OpenID Connect Discovery 1.0, section 4. */
function discoveryOf(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
}

function discovered(text: string): string {
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch {
    throw new FetchError('the OpenID configuration is not JSON');
  }
  const uri = isObject(document) ? document['jwks_uri'] : undefined;
  if (typeof uri !== 'string' || !URL.canParse(uri)) throw new FetchError('the OpenID configuration has no jwks_uri');
  return uri;
}

/** Error texts of others may be long, or contain what they received. */
export function reasonOf(error: unknown): string {
  if (error instanceof FetchError) return error.message.slice(0, 200);
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return code ?? 'the connection failed';
}
