import { isObject } from '../api/json.ts';
import { isCertificate } from '../identity/roots.ts';
import type { Entries, Rotation } from '../identity/rotation.ts';
import type { KubeApi } from '../kube/client/client.ts';
import { type StoredSecret, getSecret, isEmpty, putSecret } from '../kube/client/secrets.ts';

/** What was read, so that nothing newer is replaced. */
export type RotationVersion = Pick<StoredSecret, 'metadata'>;

/** What is kept of a rotation. */
export interface StoredRotation {
  /** Absent: there is none yet. */
  readonly rotation?: Rotation;
  /** What signed; only without a rotation: somebody has restored it alone. */
  readonly signing?: Entries;
  /** Roots that an operator gives up: see `AbandonedRoots`. */
  readonly abandoned?: string;
  readonly version?: RotationVersion;
}

/** Keeps a rotation. */
export interface RotationStore {
  /** Rejects if it cannot be read. */
  read(): Promise<StoredRotation>;
  /** False if there is a newer version than the one that was read. */
  write(rotation: Rotation, version: RotationVersion | undefined): Promise<boolean>;
  /** How an operator gives up these roots: a command. */
  toAbandon(id: string, version: RotationVersion | undefined): string;
}

/** For a single process without a cluster. */
export function inMemory(): RotationStore {
  let kept: Rotation | undefined;
  return {
    read: () => Promise.resolve(kept === undefined ? {} : { rotation: kept }),
    write(rotation) {
      kept = rotation;
      return Promise.resolve(true);
    },
    // There is nobody who could have published any.
    toAbandon: () => '',
  };
}

/** It holds the key that signs: what was plugged in may be replaced before all proxies trust what replaces it. */
const SECRET = 'fairlead-ca';
/** The entry beside those that sign. */
const STATE = 'rotation.json';
/** An annotation whose value is the hash of the roots to give up: it permits nothing later. */
const ABANDON = 'fairlead.dev/abandon-roots';

/** For all replicas in a cluster. */
export function inSecret(api: KubeApi, namespace: string, signal: AbortSignal): RotationStore {
  return {
    async read() {
      const secret = await getSecret(api, namespace, SECRET, signal);
      if (secret === undefined) return {};
      const { metadata } = secret;
      const { annotations } = metadata;
      const abandoned = isObject(annotations) ? annotations[ABANDON] : undefined;
      const found = { ...(typeof abandoned === 'string' && { abandoned }), version: { metadata } };
      if (isEmpty(secret)) return found;
      const { [STATE]: state, ...signing } = secret.entries;
      if (state === undefined) return { signing, ...found };
      const rotation = readState(state, signing);
      if (rotation === undefined) throw new Error(unreadable(namespace));
      return { rotation, ...found };
    },
    toAbandon(id, version) {
      const secrets = `kubectl --namespace ${namespace}`;
      const make = version === undefined ? `${secrets} create secret generic ${SECRET} --type Opaque && ` : '';
      return `${make}${secrets} annotate --overwrite secret ${SECRET} ${ABANDON}=${id}`;
    },
    write({ signing, ...state }, former) {
      const entries = { ...signing, [STATE]: JSON.stringify(state) };
      return putSecret(api, namespace, SECRET, { type: 'Opaque', entries, former }, signal);
    },
  };
}

/** The Secret may hold the only key of the root that proxies trust: nobody is to delete it. */
function unreadable(namespace: string): string {
  const patch = `[{"op":"remove","path":"/data/${STATE}"}]`;
  return (
    `Secret ${namespace}/${SECRET}: ${STATE} is not valid. Restore the Secret from a backup; without one, remove this ` +
    `entry alone, and keep the key beside it: ` +
    `kubectl --namespace ${namespace} patch secret ${SECRET} --type json --patch '${patch}'`
  );
}

function readState(text: string, signing: Entries): Rotation | undefined {
  let state: unknown;
  try {
    state = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(state)) return undefined;
  const { since, roots, replicas, longest, own } = state;
  const isValid =
    isMoment(since) &&
    isMomentOrAbsent(longest) &&
    (own === undefined || typeof own === 'boolean') &&
    Array.isArray(roots) &&
    roots.every(isRoot) &&
    isObject(replicas) &&
    Object.values(replicas).every(isProgress);
  return isValid
    ? ({
        signing,
        ...(own !== undefined && { own }),
        ...{ since, roots, replicas },
        ...(longest !== undefined && { longest }),
      } as unknown as Rotation)
    : undefined;
}

function isRoot(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { certificate, since, by, until } = value;
  return (
    typeof certificate === 'string' &&
    isCertificate(certificate) &&
    isMoment(since) &&
    isMomentOrAbsent(by) &&
    isMomentOrAbsent(until)
  );
}

function isProgress(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { at, bundle, proxies, noneSince, namespaces = 0 } = value;
  return (
    isMoment(at) &&
    isMomentOrAbsent(noneSince) &&
    typeof bundle === 'string' &&
    [proxies, namespaces].every(Number.isSafeInteger)
  );
}

function isMoment(value: unknown): boolean {
  return typeof value === 'string' && !Number.isNaN(Date.parse(value));
}

function isMomentOrAbsent(value: unknown): boolean {
  return value === undefined || isMoment(value);
}
