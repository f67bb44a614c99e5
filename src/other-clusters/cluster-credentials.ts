import type { Clock } from '../base/clock.ts';
import { AccessReviews, type AccessReviewsOptions } from '../credentials/access-reviews.ts';
import { entriesOfConfigMap, entriesOfSecret } from '../credentials/entries.ts';
import { type Entries, credentialEntries } from '../credentials/read-credential.ts';
import type { Engine } from '../engine/engine.ts';
import { NamedObjects, type NamedObjectsOptions } from '../kube/named-objects.ts';
import {
  type AccountKey,
  type CredentialKey,
  type CredentialObject,
  GRANTS,
  grantsIn,
  parseAccountKey,
  parseCredentialKey,
} from '../model/credential.ts';
import type { WantedCredential } from '../mesh/resources/credentials.ts';

/** Reads what is wanted of one cluster: see `NamedObjects`. */
export type ReadsNamed = Pick<NamedObjects, 'want' | 'unwant'>;

/** A way to the Secrets of a cluster. */
export interface CredentialAccess extends Omit<NamedObjectsOptions, 'entries' | 'annotation' | 'sink'> {
  /** Absent: the own one. */
  readonly cluster?: string;
  /** Whether an account there may have the Secrets of its namespace. */
  readonly review: AccessReviewsOptions['review'];
  /** What to do if a Secret may not be read: the end of a sentence. */
  readonly toGrant: string;
}

interface Reader {
  readonly cluster: string | undefined;
  readonly named: ReadsNamed;
  readonly reviews: AccessReviews;
}

/** Reads the Secrets and ConfigMaps that proxies need, and who may have them: those of each cluster in that cluster. */
export class ClusterCredentials {
  readonly #engine: Pick<Engine, 'mesh' | 'credentials' | 'committer'>;
  readonly #clock: Clock;
  readonly #wanted = new Map<CredentialKey, WantedCredential>();
  readonly #accounts = new Set<AccountKey>();
  readonly #readers = new Set<Reader>();

  constructor(engine: Pick<Engine, 'mesh' | 'credentials' | 'committer'>, clock: Clock) {
    this.#engine = engine;
    this.#clock = clock;
    engine.mesh.onWantedCredentials((key, object) => this.#want(key, object));
    engine.mesh.onWantedSecretAccess((account, isWanted) => this.#wantAccess(account, isWanted));
  }

  /** Whether somebody there is to be given Secrets. */
  isWantedOf(cluster: string): boolean {
    return [...this.#accounts].some((account) => parseAccountKey(account).cluster === cluster);
  }

  /** Reads what is wanted of a cluster this way, until the signal fires. */
  join({ cluster, review, toGrant, ...options }: CredentialAccess): void {
    const { credentials } = this.#engine;
    const named = new NamedObjects({
      ...options,
      entries: credentialEntries,
      annotation: GRANTS,
      sink: {
        found: (key, content) =>
          credentials.found(
            key,
            content && entriesOf(parseCredentialKey(key), content),
            grantsIn(content?.annotations),
          ),
        failed: (key, { code }) => {
          if (code === 403) credentials.failed(key, `cannot be read: ${toGrant}`);
        },
        refused: (key) =>
          credentials.failed(key, 'is not read: the namespaces of the objects that name it name too many; name fewer'),
      },
    });
    const forgetting: ReadsNamed = {
      want: (key, object) => named.want(key, object),
      unwant(key) {
        named.unwant(key);
        credentials.forget(key);
      },
    };
    this.read({ cluster, named: forgetting, review, signal: options.signal });
  }

  /** The same, with something else than an API server. */
  read({
    cluster,
    named,
    review,
    signal,
  }: {
    readonly cluster: string | undefined;
    readonly named: ReadsNamed;
    readonly review: AccessReviewsOptions['review'];
    readonly signal: AbortSignal;
  }): void {
    if (signal.aborted) return;
    const reviews = new AccessReviews({
      ...{ review, clock: this.#clock, random: Math.random, signal },
      write: (account, answer) => this.#write(account, answer),
    });
    const reader: Reader = { cluster, named, reviews };
    this.#readers.add(reader);
    signal.addEventListener('abort', () => this.#readers.delete(reader), { once: true });
    for (const [key, object] of this.#wanted) if (object.cluster === cluster) named.want(key, object);
    for (const account of this.#accounts) if (parseAccountKey(account).cluster === cluster) reviews.want(account);
  }

  #want(key: CredentialKey, object: WantedCredential | undefined): void {
    const { cluster } = object ?? parseCredentialKey(key);
    if (object === undefined) this.#wanted.delete(key);
    else this.#wanted.set(key, object);
    for (const reader of this.#readers) {
      if (reader.cluster !== cluster) continue;
      if (object === undefined) reader.named.unwant(key);
      else reader.named.want(key, object);
    }
    // Also while the cluster is away. Those of the own one may be in files, which are there all the same.
    if (object === undefined && cluster !== undefined) this.#engine.credentials.forget(key);
  }

  #wantAccess(account: AccountKey, isWanted: boolean): void {
    const { cluster } = parseAccountKey(account);
    if (isWanted) this.#accounts.add(account);
    else this.#accounts.delete(account);
    for (const { cluster: of, reviews } of this.#readers) {
      if (of !== cluster) continue;
      if (isWanted) reviews.want(account);
      else reviews.unwant(account);
    }
    if (!isWanted) this.#write(account, undefined);
  }

  #write(account: AccountKey, answer: { readonly allowed: boolean } | undefined): void {
    const { committer, mesh } = this.#engine;
    committer.write(mesh.inputs.secretAccess.write(account, answer));
  }
}

function entriesOf({ kind }: CredentialObject, content: { readonly data: unknown }): Entries {
  return kind === 'Secret' ? entriesOfSecret(content) : entriesOfConfigMap(content);
}
