import type { Clock } from '../base/clock.ts';
import { AccessReviews, type AccessReviewsOptions } from '../credentials/access-reviews.ts';
import { entriesOfConfigMap, entriesOfSecret } from '../credentials/entries.ts';
import { type Entries, credentialEntries } from '../credentials/read-credential.ts';
import type { Engine } from '../engine/engine.ts';
import { followWanted } from '../engine/wanted.ts';
import { NamedObjects, type NamedObjectsOptions } from '../kube/reading/named-objects.ts';
import { type CredentialObject, GRANTS, grantsIn, parseAccountKey, parseCredentialKey } from '../model/credential.ts';
import type { WantedCredential } from '../mesh/resources/credentials.ts';
import { WantedByCluster } from './wanted-by-cluster.ts';

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

/** Reads the Secrets and ConfigMaps that proxies need, and who may have them: those of each cluster in that cluster. */
export class ClusterCredentials {
  readonly #credentials: Engine['credentials'];
  readonly #writeAccess: AccessReviewsOptions['write'];
  readonly #clock: Clock;
  readonly #objects: WantedByCluster<WantedCredential>;
  readonly #accounts: WantedByCluster<true>;

  constructor({ mesh, credentials, committer }: Pick<Engine, 'mesh' | 'credentials' | 'committer'>, clock: Clock) {
    this.#credentials = credentials;
    this.#writeAccess = committer.into(mesh.inputs.secretAccess);
    this.#clock = clock;
    this.#objects = new WantedByCluster(
      (key) => parseCredentialKey(key).cluster,
      (key, cluster) => {
        // Those of the own cluster may be in files, which are there all the same.
        if (cluster !== undefined) credentials.forget(key);
      },
    );
    this.#accounts = new WantedByCluster(
      (account) => parseAccountKey(account).cluster,
      (account) => this.#writeAccess(account, undefined),
    );
    followWanted(mesh.graph, mesh.wanted.credentials, this.#objects);
    followWanted(mesh.graph, mesh.wanted.secretAccess, this.#accounts);
  }

  /** Whether somebody there is to be given Secrets. */
  isWantedOf(cluster: string): boolean {
    return this.#accounts.has(cluster);
  }

  /** Reads what is wanted of a cluster this way, until the signal fires. */
  join({ cluster, review, toGrant, ...options }: CredentialAccess): void {
    const credentials = this.#credentials;
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
      write: this.#writeAccess,
    });
    this.#objects.join(cluster, named, signal);
    this.#accounts.join(cluster, reviews, signal);
  }
}

function entriesOf({ kind }: CredentialObject, content: { readonly data: unknown }): Entries {
  return kind === 'Secret' ? entriesOfSecret(content) : entriesOfConfigMap(content);
}
