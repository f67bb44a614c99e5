import { isObject } from '../api/json.ts';
import { type Clock } from '../base/clock.ts';
import type { FetchedKeySet } from '../model/key-set.ts';
import type { JwksSource } from '../model/request-authentication.ts';
import { FreshAnswers, NoAnswer } from '../base/fresh-answers.ts';
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
const RETRY = { first: 1_000, longest: 60 * 60_000 };
/** Keys that could not be fetched for so long may have been withdrawn; as in Istio. */
const LONGEST_USE = 7 * 24 * 3_600_000;
/** Fetches at a time. */
const AT_ONCE = 8;
const MOST_BYTES = 256 * 1024;

export interface KeySetQuestion {
  readonly source: JwksSource;
  /** In whose turns it is fetched. */
  readonly namespace: string;
}

/** Keeps the public keys of issuers up to date. A source that fails keeps its last good keys for a week. */
export class KeySets extends FreshAnswers<KeySetQuestion, FetchedKeySet> {
  constructor({ fetchText, ...options }: KeySetsOptions) {
    const { clock } = options;
    super({
      ...options,
      ask: async ({ source }, signal) => ({ answer: await fetchKeySet(source, fetchText, signal), again: REFRESH }),
      failed: (error, { answer: before, at }): FetchedKeySet => {
        const isKept = at !== undefined && clock.now() - at < LONGEST_USE;
        const fetchedAt = before?.fetchedAt ?? timeOf(at, clock);
        return {
          ...(isKept && before?.jwks !== undefined ? { jwks: before.jwks } : {}),
          problem: reasonOf(error),
          ...(fetchedAt === undefined ? {} : { fetchedAt }),
        };
      },
      retry: RETRY,
      patience: ({ source }) => source.timeout,
      isSame: (a, b) => a.source.timeout === b.source.timeout,
      atOnce: AT_ONCE,
      clientOf: (_, { namespace }) => namespace,
    });
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
  if (error instanceof FetchError || error instanceof NoAnswer) return error.message.slice(0, 200);
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  return code ?? 'the connection failed';
}
