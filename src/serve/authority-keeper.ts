import { type AuthoritySource, type StoredAuthority, onlyKnown, readStored } from './authority-source.ts';
import { type Clock, sleep } from '../base/clock.ts';
import { abandonedBy } from '../identity/abandoned-roots.ts';
import { readableRoots } from '../identity/roots.ts';
import {
  type Entries,
  type Plugged,
  type Progress,
  type Rotation,
  advance,
  allow,
  begin,
  bundleOf,
  withReport,
  sameEntries,
} from '../identity/rotation.ts';
import { stepsBetween } from '../identity/rotation-report.ts';
import { selfSigned } from '../identity/self-signed.ts';
import { type SigningMaterial, readMaterial } from '../identity/signing-material.ts';
import type { Published } from '../kube/writing/published-roots.ts';
import type { RotationStore, StoredRotation } from './rotation-store.ts';

export interface AuthorityKeeperOptions {
  readonly from: AuthoritySource;
  /** What replicas and restarts share. */
  readonly store: RotationStore;
  /** What Pods were told to trust before this began. */
  readonly published: () => Promise<Published>;
  /** Name of this replica. */
  readonly identity: string;
  readonly trustDomain: () => string;
  /** Called with what is to be used from now on: its roots are the bundle. */
  readonly use: (material: SigningMaterial) => Promise<void>;
  /** Called with each new state. */
  readonly changed: (rotation: Rotation) => void;
  /** How far this replica's proxies, and the namespaces that it writes to, are with the bundle in use. */
  readonly progress: () => Pick<Progress, 'bundle' | 'proxies' | 'namespaces'>;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: { info(message: string, fields: object): void; warn(message: string, fields: object): void };
  readonly signal: AbortSignal;
}

interface Look {
  readonly problem?: string;
  readonly outrun?: boolean;
}

/** Milliseconds between two looks. */
const EVERY = 60_000;
/** The same until there is an authority, and when another replica was faster. */
const FIRST = 2_000;

/** Writes of one thing while others write. */
const MOST_TRIES = 5;

/**
 * Keeps the authority up to date with where it is stored, and has another root trusted before it signs. What cannot be
 * used leaves the former one in place. In a cluster without one, a self-signed one is made; of several replicas, the
 * one that creates the Secret first wins. Ends with the signal; never rejects.
 */
export async function keepAuthority(authority: AuthorityKeeper): Promise<void> {
  const { clock, log, random, signal } = authority.options;
  let said = '';
  const say = (problem: string | undefined): void => {
    if (problem !== undefined && problem !== said)
      log.warn('Signing certificates cannot be used', {
        problem,
        former: authority.isInUse ? 'stays in use' : 'none',
      });
    said = problem ?? '';
  };
  while (!signal.aborted) {
    let ms = FIRST;
    try {
      const { problem, outrun } = await authority.look();
      say(problem);
      if (authority.isInUse && !outrun) ms = EVERY;
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
      if (authority.isInUse) ms = EVERY;
    }
    await sleep(clock, ms * (0.9 + 0.2 * random()), { signal });
  }
}

/** What signs, and what is trusted, as far as this replica knows. */
export class AuthorityKeeper {
  readonly options: AuthorityKeeperOptions;
  #stored: StoredAuthority | undefined;
  #rotation: Rotation | undefined;

  constructor(options: AuthorityKeeperOptions) {
    this.options = options;
  }

  get isInUse(): boolean {
    return this.#rotation !== undefined;
  }

  /** Does what is to be done now. `problem`: why what is stored cannot be used. `outrun`: another replica was faster. */
  async look(): Promise<Look> {
    const { clock, store } = this.options;
    // In this order: what a replica with a newer view of the signing certificates has written is not undone.
    const found = await store.read();
    const former = found.rotation ?? this.#rotation;
    if (former === undefined) return this.#begin(found);
    // What signs is never given up because the Secret that it came from is lost.
    const { problem, plugged } = await this.#plugged(() =>
      former.own ? Promise.resolve(former.signing) : this.#newRoot(),
    );
    const next = advance(this.#withProgress(former), plugged, clock.date());
    const written = next === found.rotation || (await store.write(next, found.version));
    if (!written) return { outrun: true };
    await this.#take(next);
    return problem === undefined ? {} : { problem };
  }

  /** Nothing has signed yet, or what has is lost. */
  async #begin({ signing, abandoned, version }: StoredRotation): Promise<Look> {
    const { clock, published, store } = this.options;
    const { own, others } = await published();
    const refusal = (root: string | undefined): string | undefined => {
      const lost = abandonedBy(root, own === undefined ? others : [own]);
      if (lost === undefined || lost.id === abandoned) return undefined;
      return (
        `Pods trust another root, ${lost.names.join(' and ')} (ConfigMap istio-ca-root-cert in ${lost.namespace}), and ` +
        `${root === undefined ? 'there is no Secret with its key' : 'the signing certificates are not of it'}. Restore ` +
        `the Secrets istio-ca-secret, fairlead-ca and cacerts from a backup. To begin with another root all the same, ` +
        `which ends mutual TLS with every Pod until that has a new certificate: ${store.toAbandon(lost.id, version)}`
      );
    };
    const read = signing === undefined ? undefined : readMaterial(signing, clock.date());
    const { problem, plugged } =
      read === undefined
        ? await this.#plugged(() => {
            const problem = refusal(undefined);
            return problem === undefined ? this.#newRoot() : Promise.reject(new Error(problem));
          })
        : 'problem' in read
          ? { problem: `what signed, beside the state of the rotation: ${read.problem}` }
          : { plugged: { entries: signing!, material: read.material } };
    if (plugged === undefined) return { problem: problem! };
    const refused = refusal(plugged.material.root);
    if (refused !== undefined) return { problem: refused };
    const trusted = own === undefined || abandonedBy(plugged.material.root, [own]) ? [] : readableRoots(own.pem);
    const next = begin(plugged, clock.date(), trusted);
    if (!(await store.write(next, version))) return { outrun: true };
    await this.#take(next);
    return {};
  }

  /** Settles when a certificate that expires then may be handed out. Rejects if this cannot be recorded. */
  async allow(expires: Date): Promise<void> {
    const { clock, store } = this.options;
    if (this.#rotation === undefined || allow(this.#rotation, expires, clock.date()) === this.#rotation) return;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const { rotation = this.#rotation, version } = await store.read();
      const next = allow(rotation, expires, clock.date());
      if (next !== rotation && !(await store.write(next, version))) continue;
      this.#rotation = { ...this.#rotation, longest: next.longest! };
      return;
    }
    throw new Error('other replicas write at the same time');
  }

  /** @param create what our own Secret is filled with if it is empty and nothing is in use. */
  async #plugged(create: () => Promise<Entries>): Promise<{ readonly problem?: string; readonly plugged?: Plugged }> {
    try {
      const stored = await readStored(this.options, this.isInUse ? this.#stored : undefined, create);
      const read = readMaterial(stored.entries, this.options.clock.date());
      if ('problem' in read) return read;
      this.#stored = stored;
      return { plugged: { own: stored.isOwn, entries: onlyKnown(stored.entries), material: read.material } };
    } catch (error) {
      return { problem: error instanceof Error ? error.message : String(error) };
    }
  }

  #newRoot(): Promise<Entries> {
    return selfSigned(this.options.trustDomain(), this.options.clock.date());
  }

  #withProgress(rotation: Rotation): Rotation {
    const { clock, identity, progress } = this.options;
    return withReport(rotation, identity, progress(), clock.date());
  }

  async #take(next: Rotation): Promise<void> {
    const { changed, clock, log, use } = this.options;
    const former = this.#rotation;
    const isNew = former === undefined || !sameEntries(former.signing, next.signing);
    const read = readMaterial(next.signing, clock.date());
    if ('problem' in read) throw new Error(read.problem);
    if (isNew || bundleOf(former) !== bundleOf(next))
      await use({ ...read.material, roots: next.roots.map(({ certificate }) => certificate) });
    this.#rotation = next;
    changed(next);
    if (isNew) log.info('Signing certificates', { expires: read.material.expires.toISOString() });
    for (const { message, ...fields } of former === undefined ? [] : stepsBetween(former, next))
      log.info(message, fields);
  }
}
